"""Claims that named tests settle: the tests are run, what came out is kept, and pages say no more than that."""

import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from repro.claims.catalogue import CLAIMS, LISTED
from repro.claims.claim import Claim
from repro.claims.tested import (
    COMMAND,
    FILE,
    Ran,
    SuiteRun,
    code_of,
    named_tests,
    read_outcomes,
    run,
    verdicts_of_tests,
    write_outcomes,
)

ROOT = Path(__file__).parents[2]
STAMP: Any = {"commit": "1" * 40, "dirty": False, "started": "2026-11-22T00:00:00+00:00"}


def ran(*outcomes: Any) -> SuiteRun:
    """Tests a, b .. with these outcomes."""
    return SuiteRun(tuple(Ran(f"tests/{name}", one, 1, "0") for name, one in zip("abc", outcomes, strict=False)), STAMP)


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
def test_a_claim_holds_where_all_its_tests_passed(
    outcomes: Sequence[str], holds: bool, verdict: str, reason: str
) -> None:
    claim = Claim(id="C99", where="1", says="x", kind="structural", tests=("tests/a", "tests/b"), holds=holds)
    assert verdicts_of_tests([claim], ran(*outcomes)) == {"C99": (verdict, reason)}


def test_only_claims_that_name_tests_are_judged_by_them() -> None:
    assert verdicts_of_tests(CLAIMS, ran()).keys() == {one.id for one in CLAIMS if one.tests}


def project(folder: Path) -> Path:
    """A checkout of one module and its tests."""
    (folder / "repro" / "model").mkdir(parents=True)
    (folder / "tests").mkdir()
    (folder / "repro" / "model" / "sizes.py").write_text("N = 2\n")
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
    assert [(one.test.removeprefix("tests/test_some.py::test_"), one.outcome, one.cases) for one in found.ran] == [
        ("good", "passed", 1),
        ("bad", "failed", 1),
        ("each", "passed", 3),
        ("most", "failed", 3),
        ("some", "not run", 2),
    ]
    assert re.fullmatch("[0-9a-f]{64}", found.stamp["fingerprint"])


def test_tests_that_cannot_begin_are_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.executable", shutil.which("false"))
    with pytest.raises(ValueError, match="expected the named tests to be run, got exit code 1"):
        run(["tests/test_some.py::test_good"], tmp_path)


def test_a_run_is_old_when_the_test_or_what_its_file_imports_is_another(tmp_path: Path) -> None:
    file, test = project(tmp_path) / "tests" / "test_some.py", "tests/test_some.py::test_good"
    file.write_text("from repro.model import sizes\nfrom repro.model.sizes import N\n\n\n" + file.read_text())

    def changed(path: Path, old: str, new: str) -> bool:
        before, text = code_of(test, tmp_path), path.read_text()
        assert text.count(old) == 1
        path.write_text(text.replace(old, new))
        after = code_of(test, tmp_path)
        path.write_text(text)
        return before != after

    sizes = tmp_path / "repro" / "model" / "sizes.py"
    assert changed(file, "assert 1\n", "assert True\n")
    assert changed(sizes, "N = 2", "N = 3")
    assert not changed(file, "assert 1\n", "assert 1  # a word\n")
    assert not changed(file, "assert 0", "assert None")  # another test
    assert not changed(sizes, "N = 2\n", '"""A word."""\n\nN = 2\n')


def test_what_came_out_survives_its_file_and_edits_are_refused(tmp_path: Path) -> None:
    tests = ran("passed", "failed")
    assert read_outcomes(tmp_path).ran == ()
    file = write_outcomes(tmp_path, tests)
    assert read_outcomes(tmp_path) == tests
    file.write_text(file.read_text().replace('"failed"', '"passed"'))
    with pytest.raises(ValueError, match=rf"^{file}: edited by hand or damaged.* make it anew: {COMMAND}\.$"):
        read_outcomes(tmp_path)


def test_the_published_outcomes_are_those_of_the_list_and_of_this_code() -> None:
    published = read_outcomes(ROOT / "results")
    assert [one.test for one in published.ran] == named_tests(LISTED), (
        f"{FILE}: other tests are named by now: {COMMAND}"
    )
    assert [one.test for one in published.ran if one.outcome != "passed"] == []
    assert not published.stamp["dirty"], f"{FILE}: made of uncommitted code: commit, then {COMMAND}"
    old = [one.test for one in published.ran if one.code != code_of(one.test, ROOT)]
    assert old == [], f"{FILE}: the code is another by now: {COMMAND}"
