"""What a run scores on test sets beside that of its corpus, in a file beside its record: `<row>-seed<k>.further.gz`.

Of each set, by name: its text by SHA-256, the scores of the run's task with their signatures, and what was written. The
test set of the record stays the one that verdicts are read from; these decide nothing, and a run has those that lay
beside its text. Others report Multi30k on three test sets, for one.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from repro.results.beside import copy_beside, is_packed_of
from repro.results.frame import runs_in, spread, widened
from repro.results.notes import SCORERS
from repro.results.record import Record, path
from repro.results.task import Named, number
from repro.storage.packed_json import read_packed, write_packed

if TYPE_CHECKING:
    from pandas import DataFrame

FORMAT = 1


class FurtherTest(NamedTuple):
    """One run on one test set."""

    sha256: str  # of the text, both sides
    scores: Named  # as those of the record's own test set
    hypotheses: list[str]  # in the order of the text


def further_file(place: Path) -> Path:
    """The file beside the record at `place`."""
    return place.with_name(f"{place.stem}.further.gz")


def write_further(place: Path, run: str, tests: Mapping[str, FurtherTest]) -> None:
    """Write the file beside the record at `place`."""
    content = {name: test._asdict() for name, test in tests.items()}
    write_packed(further_file(place), {"format": FORMAT, "run": run, "tests": content})


def read_further(place: Path, run: str) -> dict[str, FurtherTest]:
    """What the run scored on other test sets, by name; nothing where no file stands beside the record at `place`.

    Raises ValueError for a file that is damaged, or of another run.
    """
    file = further_file(place)
    if not file.exists():
        return {}
    try:
        content = read_packed(file, FORMAT)
        if content["run"] != run:
            raise ValueError(f"expected scores of run {run}, got those of run {content['run']}")
        return {name: _checked(test) for name, test in content["tests"].items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{file}: {error}. Restore the file from git, or delete it and run the row again.") from error


def is_further_of(place: Path, run: str) -> bool:
    """Whether the file at `place` is there, whole, and of this run."""
    return is_packed_of(further_file(place), FORMAT, run)


def copy_further(source: Path, target: Path, run: str) -> None:
    """Have beside the record at `target` what stands beside that at `source`; what is of another run goes."""
    copy_beside(further_file, is_further_of, source, target, run)


def with_further(frame: "DataFrame", records: Iterable[Record], results: Path) -> "DataFrame":
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


def _checked(test: Mapping[str, Any]) -> FurtherTest:
    made = FurtherTest(**test)
    if not isinstance(made.scores, dict) or not isinstance(made.hypotheses, list):
        raise ValueError("expected scores and translations of each test set")
    return made
