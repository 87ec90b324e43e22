"""A run's folder, as MLflow shows it.

runs/<id>/run.json        what the run is: tags, parameters, the paper's numbers
runs/<id>/journal.jsonl   what it measured
runs/<id>/system.jsonl    what the machine did meanwhile
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from repro import durable
from repro.journal import FINAL, FRAME, Line, locked, read

JOURNALS = ("journal.jsonl", "system.jsonl")


class Point(NamedTuple):
    """One value of one curve."""

    key: str
    step: int
    value: float
    time: int  # milliseconds


def write_run(
    folder: Path,
    run: str,
    *,
    tags: Mapping[str, object],
    params: Mapping[str, object],
    paper: Mapping[str, float | None],
    order: int = 0,
    origin: Mapping[str, object] | None = None,
) -> None:
    """Write run.json, the description that `mirror` reads.

    `tags` has table, row, seed, scale, corpus and pair (and tables, where several tables show the row).
    `paper` is the row as printed, ppl and bleu; `order` its place in the table, the base row being 0.
    `origin` is what the run's id was made of, and where its code came from (`repro/lineage.py`).
    """
    value = {"run": run, "tags": dict(tags), "params": dict(params), "paper": dict(paper), "order": order}
    value |= {"origin": dict(origin)} if origin else {}
    durable.write_json(folder / "run.json", value)


def describe(folder: Path) -> dict[str, Any]:
    """Read run.json."""
    path = folder / "run.json"
    try:
        run: dict[str, Any] = json.loads(path.read_bytes())
        if not re.fullmatch(r"[\w.-]+", run["run"]):
            raise ValueError(f"run is {run['run']!r}")
        return run | {"tags": {k: str(v) for k, v in run["tags"].items()}, "paper": {**run["paper"]}}
    except (FileNotFoundError, NotADirectoryError):
        raise FileNotFoundError(f"{path} is missing; expected a run's folder, runs/<id>.") from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{path}: expected run, tags, params and paper, got {error!r}.") from error


def points(folder: Path) -> list[Point]:
    """All that MLflow shows of a run folder, each (key, step) once.

    The paper's and the final numbers stand at step 0: there MLflow draws a bar with its value, anywhere
    else a lonely dot.
    """
    run, lines = describe(folder), [line for name in JOURNALS for line in read(folder / name)]
    began = round(lines[0]["time"] * 1000) if lines else 0
    printed = {**run["paper"], "row": run.get("order")}
    paper = [Point(f"paper/{name}", 0, float(v), began) for name, v in printed.items() if v is not None]
    return list({(point.key, point.step): point for point in [*paper, *measured(lines)]}.values())


def measured(lines: Iterable[Line]) -> Iterator[Point]:
    """The points of journal lines."""
    for line in lines:
        step = 0 if line["kind"] == FINAL else line["step"]
        for name, value in line.items():
            if name not in FRAME:
                yield Point(f"{line['kind']}/{name}", step, value, round(line["time"] * 1000))


def is_training(folder: Path) -> bool:
    """Whether a process writes the journal of this run folder now."""
    journal = folder / JOURNALS[0]
    if not journal.exists():
        return False
    with locked(journal, patience=0.0) as idle:
        return not idle


def outcome(folder: Path) -> str:
    """What became of a run, told by its files: it has a record, or its journal has a writer, or neither."""
    if (folder / "record.json").exists():
        return "FINISHED"
    return "RUNNING" if is_training(folder) else "KILLED"
