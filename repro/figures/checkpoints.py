"""Measurements of checkpoints for pictures: which runs, on which text, and the file that outlasts the checkpoints."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from repro.results.record import Record
from repro.runs.outputs import at_hand
from repro.storage import signed_json

if TYPE_CHECKING:
    from repro.data.shards import Encoded
    from repro.data.tokenizer import Tokenizer

FORMAT = 1
Measure = Callable[[Sequence[Record], Path, Path], Any]  # records, their runs, the cache -> what is measured


class Probe(NamedTuple):
    """Something that is measured of checkpoints."""

    name: str  # of its file
    command: str  # which trains the runs
    measure: Measure
    rows: tuple[tuple[str, str], ...]  # table and row of each run


def runs_of_rows(wanted: Sequence[tuple[str, str]], of: Callable[[str], Sequence[Record]], runs: Path) -> list[Record]:
    """For each row a finished run whose folder is in `runs`; an empty list if a row has none.

    For the first row it is the run of the lowest seed. For the others it is that of the same seed, if there is one;
    they must have read the same text in the same tokens. Runs of uncommitted code are not compared, but one may be
    shown by itself.
    """
    found: list[Record] = []
    for table, row in wanted:
        fitting = [
            record
            for record in of(table)
            if record.row == row
            and record.status == "finished"
            and not (record.stamp["dirty"] and len(wanted) > 1)
            and (runs / record.run / "record.json").is_file()
            and all((record.corpus, record.tokenizer) == (other.corpus, other.tokenizer) for other in found[:1])
        ]
        if not fitting:
            return []
        found.append(min(fitting, key=lambda record: (bool(found) and record.seed != found[0].seed, record.seed)))
    return found


def dev_pairs(record: Record, cache: Path) -> list[tuple[str, str]]:
    """The lines of dev on which a run was scored. Raises ValueError where they are not available."""
    if (corpus := at_hand(record, cache)) is None:
        name = record.corpus["name"]
        raise ValueError(
            f"expected the text of run {record.run}, {name} {record.pair}, in {cache}, found none. Give the "
            f"--cache-dir of that run, or run {record.table} again."
        )
    return list(corpus.dev.pairs())


def sides_of(pairs: Sequence[tuple[str, str]], tokenizer: "Tokenizer") -> "tuple[Encoded, Encoded]":
    """Sources and targets as ids, each with its end symbol."""
    from repro.data.shards import Encoded  # it brings a library that a command's first line does not wait for

    source, target = (Encoded(*tokenizer.encode(list(side))) for side in zip(*pairs, strict=True))
    return source, target


def measured(to: Path, probe: Probe, records: Sequence[Record], runs: Path, cache: Path, *, scale: str) -> Any:
    """The measurement of the records' runs, or else the one in `to`. Raises ValueError that names the command to run.

    It is measured once, and again for other runs. It names its `run`, or each of its `runs`, as `whose` does.
    """
    file, command = to / f"{probe.name}.json", f"{probe.command} --scale {scale}"
    advice = f"Restore it from git, or delete it and run `{command}`."
    kept = signed_json.read(file, "a measurement", FORMAT, advice) if file.exists() else None
    ids = [record.run for record in records]
    if ids and (kept is None or [one["run"] for one in kept.get("runs", [kept])] != ids):
        kept = {"format": FORMAT, **probe.measure(records, runs, cache)}
        signed_json.write(file, kept)
    if kept is None:
        raise ValueError(f"no {file}, and no finished run with its checkpoints to make it from. Run `{command}`.")
    return kept


def told_runs(runs: Sequence[Mapping[str, Any]]) -> str:
    """The runs behind the numbers, for a caption."""
    each = "; ".join(f"{one['row']} seed {one['seed']}, run {one['run']}, commit {one['commit'][:12]}" for one in runs)
    return f"Scale {runs[0]['scale']}, corpus {runs[0]['corpus']} {runs[0]['pair']}: {each}."


def whose(record: Record) -> dict[str, Any]:
    """The facts about a run that are stored with a measurement."""
    return {
        "row": record.row,
        "seed": record.seed,
        "scale": record.scale,
        "corpus": record.corpus["name"],
        "pair": record.pair,
        "run": record.run,
        "commit": record.stamp["commit"] or "none",
    }
