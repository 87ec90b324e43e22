"""Outcomes of the tests that settle claims, and the one file that keeps them: results/tests.json. Paper: section 3.

A claim about how the model is built is settled by named tests, which must have been run before a page says so.
`python -m repro report --tests` runs exactly these tests, and pages read the outcomes.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal, NamedTuple
from xml.etree import ElementTree

from repro.claims.catalogue import Claim
from repro.claims.decisions import OF_HOUSE, Outcome
from repro.results.provenance import Provenance, provenance
from repro.storage import signed_json

FORMAT = 1
FILE = "tests.json"  # under results/
COMMAND = "python -m repro report --tests"
NOT_RUN = f"its tests were not run ({COMMAND})"


@dataclass(frozen=True)
class Ran:
    """One named test, all its parameters together."""

    test: str  # "tests/model/test_attention.py::test_equals_the_library"
    outcome: Literal["passed", "failed", "not run"]  # "not run" if one of its cases was skipped, or it has none
    cases: int


class SuiteRun(NamedTuple):
    """The named tests of one call, and where they ran."""

    ran: tuple[Ran, ...]
    stamp: Provenance


# Running


def named_tests(claims: Iterable[Claim]) -> list[str]:
    """The tests that claims name, each once, in the order of the list."""
    return list(dict.fromkeys(test for claim in claims for test in claim.tests))


def run(tests: Sequence[str], root: Path) -> SuiteRun:
    """Run exactly these tests by pytest, in a process of its own. Raises ValueError where it cannot begin."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        options = ("-q", "-p", "no:cacheprovider", "-o", "addopts=--import-mode=importlib", f"--junitxml={report}")
        # the report goes to a file, since memory would be lost with the process; its output is for the waiting user
        done = subprocess.run([sys.executable, "-m", "pytest", *options, *tests], cwd=root, env=os.environ, check=False)
        if done.returncode not in (0, 1) or not report.exists():
            expected = f"pytest in {root}: expected the named tests to be run, got exit code {done.returncode}."
            raise ValueError(f"{expected} Run it in a checkout, after pip install -c constraints.txt -e '.[test]'.")
        return SuiteRun(tuple(_outcomes(report.read_bytes(), tests)), provenance("cpu"))


def _outcomes(report: bytes, tests: Iterable[str]) -> Iterator[Ran]:
    """What came out of each of these tests, by pytest's report of their cases."""
    cases: dict[str, list[str]] = {}  # "tests/x/test_y.py::test_z" -> how each of its cases ended
    for case in ElementTree.fromstring(report).iter("testcase"):
        file, name = case.get("classname", "").replace(".", "/"), case.get("name", "").partition("[")[0]
        ends = [child.tag for child in case if child.tag in ("failure", "error", "skipped")]
        cases.setdefault(f"{file}.py::{name}", []).append(ends[0] if ends else "passed")
    for test in tests:
        ended = {*cases.get(test, ())}
        failed, passed = ended & {"failure", "error"}, ended == {"passed"}
        yield Ran(test, "failed" if failed else "passed" if passed else "not run", len(cases.get(test, ())))


# The file


def write_outcomes(results: Path, tests: SuiteRun) -> Path:
    """Write the outcomes with their checksum; returns the file."""
    content = {"format": FORMAT, "stamp": dict(tests.stamp), "tests": [asdict(one) for one in tests.ran]}
    signed_json.write(results / FILE, content)
    return results / FILE


def read_outcomes(results: Path) -> SuiteRun:
    """Read the outcomes; empty where no test was run. Raises ValueError that names file, finding and remedy."""
    file = results / FILE
    if not file.exists():
        return SuiteRun((), {})  # type: ignore[typeddict-item]
    advice = f"Restore it from git, or make it anew: {COMMAND}."
    content = signed_json.read(file, "outcomes of tests", FORMAT, advice)
    return SuiteRun(tuple(Ran(**one) for one in content["tests"]), content["stamp"])


# Verdicts


def verdicts_of_tests(claims: Iterable[Claim], tests: SuiteRun) -> dict[str, tuple[Outcome, str]]:
    """The verdict on each claim by its tests, or that they were not run."""
    outcomes = {one.test: one.outcome for one in tests.ran}
    found: dict[str, tuple[Outcome, str]] = {}
    for claim in claims:
        if failed := [test for test in claim.tests if outcomes.get(test) == "failed"]:
            found[claim.id] = OF_HOUSE.no if claim.holds else "not judged", f"failed: {', '.join(failed)}"
        elif any(outcomes.get(test) != "passed" for test in claim.tests):
            found[claim.id] = "not judged", NOT_RUN
        elif claim.tests:
            opposite = ", and they show the opposite" * (not claim.holds)
            found[claim.id] = OF_HOUSE.yes if claim.holds else OF_HOUSE.no, f"its tests pass{opposite}"
    return found
