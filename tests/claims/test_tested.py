"""Claims that named tests settle: the tests are run, what came out is kept, and pages say no more than that."""

import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from repro.claims import tested
from repro.claims.catalogue import LISTED, Claim
from repro.claims.tested import COMMAND, FILE, Ran, SuiteRun, read_outcomes, run, verdicts_of_tests

ROOT = Path(__file__).parents[2]
STAMP: Any = {"commit": "1" * 40, "dirty": False, "started": "2026-11-22T00:00:00+00:00"}


def ran(*outcomes: Any) -> SuiteRun:
    """Tests a, b .. with these outcomes."""
    return SuiteRun(tuple(Ran(f"tests/{name}", one, 1) for name, one in zip("abc", outcomes, strict=False)), STAMP)


@pytest.mark.parametrize(
    ("outcomes", "holds", "verdict", "reason"),
    [
        (["passed", "passed"], True, "holds here", "its tests pass"),
        (["passed", "failed"], True, "does not hold here", "failed: tests/b"),
        (["passed", "not run"], True, "not judged", f"its tests were not run ({COMMAND})"),
        ([], True, "not judged", f"its tests were not run ({COMMAND})"),
        (["passed", "passed"], False, "does not hold here", "its tests pass, and they show the opposite"),
        (["failed", "passed"], False, "not judged", "failed: tests/a"),  # then they show nothing
    ],
)
def test_a_claim_holds_where_its_tests_passed(outcomes: Sequence[str], holds: bool, verdict: str, reason: str) -> None:
    claim = Claim(id="C99", where="1", says="x", kind="structural", tests=("tests/a", "tests/b"), holds=holds)
    without = Claim(id="C98", where="1", says="x", kind="structural")
    assert verdicts_of_tests([claim, without], ran(*outcomes)) == {"C99": (verdict, reason)}


def project(folder: Path) -> Path:
    """A checkout of some tests."""
    (folder / "tests").mkdir(parents=True)
    (folder / "pyproject.toml").write_text("[tool.pytest]\n")
    (folder / "tests" / "test_some.py").write_text(
        # nothing of the package: which one would be found depends on how it is installed
        "import pytest\n\n\n"
        "def test_good():\n    assert 1\n\n\n"
        "def test_bad():\n    assert 0\n\n\n"
        "@pytest.mark.parametrize('n', [1, 2, 3])\ndef test_each(n):\n    assert n\n\n\n"
        "@pytest.mark.parametrize('n', [1, 2, 3])\ndef test_most(n):\n    assert n < 3\n\n\n"
        "@pytest.mark.parametrize('n', [1, 2])\ndef test_some(n):\n    if n > 1:\n        pytest.skip('no')\n\n\n"
        "def test_never_asked():\n    assert False\n"
    )
    return folder


def test_exactly_the_named_tests_are_run(tmp_path: Path) -> None:
    names = [f"tests/test_some.py::test_{name}" for name in ("good", "bad", "each", "most", "some")]
    found = run(names, project(tmp_path))
    came_out = [("passed", 1), ("failed", 1), ("passed", 3), ("failed", 3), ("not run", 2)]
    expected = [(name, *of) for name, of in zip(names, came_out, strict=True)]
    assert [(one.test, one.outcome, one.cases) for one in found.ran] == expected
    assert re.fullmatch("[0-9a-f]{64}", found.stamp["fingerprint"])


def test_tests_that_cannot_begin_are_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.executable", shutil.which("false"))
    with pytest.raises(ValueError, match="expected the named tests to be run, got exit code 1"):
        run(["tests/test_some.py::test_good"], tmp_path)


def test_what_came_out_survives_its_file_and_edits_are_refused(tmp_path: Path) -> None:
    tests = ran("passed", "failed")
    assert read_outcomes(tmp_path).ran == ()
    file = tested.write_outcomes(tmp_path, tests)
    assert read_outcomes(tmp_path) == tests
    file.write_text(file.read_text().replace('"failed"', '"passed"'))
    with pytest.raises(ValueError, match=rf"^{file}: edited by hand or damaged.* make it anew: {COMMAND}\.$"):
        read_outcomes(tmp_path)


def test_the_published_outcomes_are_those_of_the_list() -> None:
    published = read_outcomes(ROOT / "results")
    assert [one.test for one in published.ran] == tested.named_tests(LISTED), f"{FILE} names other tests: {COMMAND}"
    assert [one.test for one in published.ran if one.outcome != "passed"] == []
    assert not published.stamp["dirty"], f"{FILE}: made of uncommitted code: commit, then {COMMAND}"
