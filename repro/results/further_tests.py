"""Scores of a run on further test sets, other than that of its corpus: a Parquet file each, by the name of the set.

Each file has the SHA-256 of the text, the scores of the run's task with their signatures, and the outputs. Verdicts
rest only on the record's own test set; these decide nothing. A run is scored on the sets that lay beside its text. For
example, others report Multi30k on three test sets.
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
    """Write the further tests of a run beside its record at `place`."""
    for name, test in tests.items():
        about = {"run": run, "sha256": test.sha256, "scores": test.scores}
        artifacts.write(place, name, Artifact(about, {"hypothesis": test.hypotheses}))


def read_further(place: Path, run: str) -> dict[str, FurtherTest]:
    """The run's further tests by name, from beside its record at `place`; empty where there are none.

    Raises ValueError for a file that is damaged or of another run.
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

    `n` is how many of the row's runs were scored on the set, maybe not all. No column where none was.
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
