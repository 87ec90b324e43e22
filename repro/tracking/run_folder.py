"""A run's folder, as MLflow shows it.

runs/<id>/run.json             what the run is: tags, parameters, the paper's numbers
runs/<id>/journal.jsonl        what it measured
runs/<id>/system.jsonl         what the machine did meanwhile
runs/<id>/record.<set>.parquet what it scored on other test sets
"""

import json
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

from repro.results.artifacts import read_further, state
from repro.storage import signed_json
from repro.storage.journal import FINAL, FRAME, Line
from repro.storage.lock import locked

APART = ("corpus", "pair", "text", "devices", "precision", "threads")  # tags: no mean is over runs that differ in one
PrintedScore = Literal["ppl", "bleu", "f1"]
PRINTED_SCORES: tuple[PrintedScore, ...] = get_args(PrintedScore)  # scores that the paper prints
UNKNOWN = "unknown"  # for runs described before these tags existed
JOURNALS = ("journal.jsonl", "system.jsonl")
RECORD = "record.json"
DIVERGED_TAG = "diverged"  # the tag of a run whose loss did not stay finite


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
    claims: str | None = None,
) -> str | None:
    """Write run.json, the description that the mirror reads.

    `tags` has table, row, seed, scale, the code that decided the result and those in `APART` (and tables, if several
    tables show the row).
    `paper` has the printed numbers of the row, by the names in `PRINTED_SCORES`; `order` is its place in the table, 0
    for the base row. `origin` is what the run's id was made of, and where its code came from (`repro/runs/run_dir.py`).
    `claims` is the digest of today's list of claims, None if the run began earlier. A new folder keeps it; a folder
    that was described before keeps the digest that it has, or none. Returns the digest that is kept. Raises ValueError
    if the earlier run.json is damaged: the execution's id would be lost, and MLflow would show one run as two.
    """
    try:
        before = describe(folder)
        execution, claims = before["execution"], before["claims"]
    except FileNotFoundError:
        execution = uuid.uuid4().hex  # identifies this folder and its copies; a folder made again gets another
    value: dict[str, Any] = {"run": run, "execution": execution, "order": order}
    value |= {"tags": dict(tags), "params": dict(params), "paper": dict(paper)}
    value |= {"origin": dict(origin)} if origin else {}
    value |= {"claims": claims} if claims else {}
    signed_json.write(folder / "run.json", value)
    return claims


def describe(folder: Path) -> dict[str, Any]:
    """Read run.json."""
    how = "Take it from a copy, or delete it: the same command then goes on, and MLflow shows the run a second time."
    try:
        run = signed_json.read(folder / "run.json", "a run", None, how)
    except (FileNotFoundError, NotADirectoryError):
        raise FileNotFoundError(f"{folder} has no run.json; expected a run's folder, runs/<id>.") from None
    tags = dict.fromkeys(("code", *APART), UNKNOWN) | {k: str(v) for k, v in run["tags"].items()}
    return {"claims": None} | run | {"tags": tags | {"published": "false"}}


def printed_points(run: Mapping[str, Any]) -> list[Point]:
    """The paper's numbers of a described run, and the place of its row in the table.

    They and the final numbers are at step 0: there MLflow draws a bar with its value, anywhere else a single dot.
    """
    numbers = {**run["paper"], "row": run.get("order")}
    return [Point(f"paper/{name}", 0, float(value), 0) for name, value in numbers.items() if value is not None]


def further_points(place: Path, run: str) -> list[Point]:
    """The scores on other test sets, if they are beside the record at `place`: `further/<set>/<score>`.

    Their time is that of the file: if the text changed and was scored again, the newer score replaces the old one.
    """
    return [
        Point(f"further/{name}/{score}", 0, value, max(0, (state(place, name) or [0])[0] // 1_000_000))
        for name, test in read_further(place, run).items()
        for score, value in test.scores.items()
        if isinstance(value, float)
    ]


def measured(line: Line) -> list[Point]:
    """The points of a journal line."""
    # MLflow accepts no time before 1970, which a wrong clock may show
    step, time = 0 if line["kind"] == FINAL else line["step"], max(0, round(line["time"] * 1000))
    return [Point(f"{line['kind']}/{name}", step, value, time) for name, value in line.items() if name not in FRAME]


def is_training(folder: Path) -> bool:
    """Whether a process writes the journal of this run folder now."""
    journal = folder / JOURNALS[0]
    if not journal.exists():
        return False
    with locked(journal, patience=0.0) as idle:
        return not idle


def outcome(folder: Path) -> str:
    """What became of a run, told by its files: it has a record, or its journal has a writer, or neither."""
    if found := status(folder):
        return "FINISHED" if found == "finished" else "FAILED"
    return "RUNNING" if is_training(folder) else "KILLED"


def status(folder: Path) -> str | None:
    """The status in the record, which is verified elsewhere; None if there is no record."""
    path = folder / RECORD
    return str(json.loads(path.read_bytes())["status"]) if path.exists() else None
