"""Planted defects: each can be planted in the code as it stands, and the runner tells red from green."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest
from faults.defects import DEFECTS, Defect
from faults.plant import ROOT, failures, planted


@pytest.mark.parametrize("defect", DEFECTS, ids=lambda defect: defect.name)
def test_a_defect_fits_the_code(defect: Defect) -> None:
    text = planted(defect)
    if defect.file.endswith(".py"):  # a script of the report is JavaScript: the browser's tests run it
        ast.parse(text)
    assert defect.tests


def test_each_defect_has_a_name_of_its_own() -> None:
    assert len({defect.name for defect in DEFECTS}) == len(DEFECTS)


def test_each_test_that_is_named_is_there(collected_tests: set[str]) -> None:
    """With its parameters, which only a collection knows: that of now where it has them, else one of its own."""
    there = collected_tests | {test.partition("[")[0] for test in collected_tests}
    named = {test for defect in DEFECTS for test in defect.tests} - there
    if not named:
        return
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-o", "addopts=--import-mode=importlib", *named]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, "\n".join(line for line in done.stdout.split("\n") if "ERROR" in line) + done.stderr


def test_the_runner_tells_red_from_green(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "sample.py").write_text("def f() -> int:\n    return 1\n")
    (tmp_path / "test_sample.py").write_text(
        "from sample import f\n\ndef test_sees():\n    assert f() == 1\n\ndef test_is_blind():\n    f()\n"
    )
    (tmp_path / "pyproject.toml").write_text("[tool.pytest]\n")

    def wrong(name: str, new: str, test: str) -> int:
        return failures([Defect(name, "sample.py", "return 1", new, (f"test_sample.py::{test}",))], tmp_path)

    assert wrong("seen", "return 2", "test_sees") == 0
    assert wrong("not seen", "return 2", "test_is_blind") == 1
    assert wrong("no such test", "return 2", "test_absent") == 2  # neither before nor with the defect
    assert wrong("no Python", "return (", "test_sees") == 1  # a test that cannot begin has noticed nothing
    printed = capsys.readouterr().out
    assert [word in printed for word in ("red  ", "STAYED GREEN", "DID NOT RUN", "RED WITHOUT A DEFECT")] == [True] * 4
    assert "return 1" in (tmp_path / "sample.py").read_text(), "the defect was left in"


def test_a_defect_that_no_longer_fits_is_named() -> None:
    with pytest.raises(ValueError, match="once in repro/storage/atomic.py, found it 0 times"):
        planted(Defect("gone", "repro/storage/atomic.py", "no such line", "", ("x",)))
