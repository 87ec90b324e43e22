"""What a run scores on test sets beside that of its corpus: a Parquet file each, by the name of the set.

Of each: its text by SHA-256, the scores of the run's task with their signatures, and what was written. The test set of
the record stays the one that verdicts are read from; these decide nothing, and a run has those that lay beside its
text. Others report Multi30k on three test sets, for one.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from repro.results import artifacts
from repro.results.artifacts import Artifact
from repro.results.frame import DataFrame, runs_in, spread, widened
from repro.results.notes import SCORERS
from repro.results.record import Record, path
from repro.results.task import SPLITS, Named, number


class FurtherTest(NamedTuple):
    """One run on one test set."""

    sha256: str  # of the text, both sides
    scores: Named  # as those of the record's own test set
    hypotheses: list[str]  # in the order of the text


def write_further(place: Path, run: str, tests: Mapping[str, FurtherTest]) -> None:
    """Write what stands beside the record at `place`."""
    for name, test in tests.items():
        about = {"run": run, "sha256": test.sha256, "scores": test.scores}
        artifacts.write(place, name, Artifact(about, {"hypothesis": test.hypotheses}))


def read_further(place: Path, run: str) -> dict[str, FurtherTest]:
    """What the run scored on other test sets, by name; nothing where none stands beside the record at `place`.

    Raises ValueError for what is damaged, or of another run.
    """
    made = {}
    for name in artifacts.texts(place):
        if name in SPLITS or (found := artifacts.read(place, name)) is None:
            continue
        if found.about["run"] != run:
            raise ValueError(
                f"{place}: expected {name} of run {run}, got that of run {found.about['run']}. Restore its file from "
                "git, or delete it and run the row again."
            )
        hypotheses = [*map(str, found.columns["hypothesis"])]
        made[name] = FurtherTest(found.about["sha256"], found.about["scores"], hypotheses)
    return made


def with_further(frame: DataFrame, records: Iterable[Record], results: Path) -> DataFrame:
    """The frame with the scores of each row on other test sets: `further/<set>/<score>`, and `further/<set>/n`.

    That is how many of the row's runs were scored on it: not all need be. No column where none was.
    """
    lines = []
    for runs in runs_in(frame, records):
        found = [read_further(path(results, record), record.run) for record in runs]
        line: dict[str, float | None] = {}
        for name in dict.fromkeys(name for tests in found for name in tests):
            scores = [tests[name].scores for tests in found if name in tests]
            line[f"further/{name}/n"] = len(scores)
            for score in SCORERS:
                values = [number(one, score) for one in scores]
                line |= spread(f"further/{name}/{score}", [value for value in values if value is not None])
        lines.append(line)
    return widened(frame, lines, dtype=float) if any(lines) else frame
