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


def test_each_test_that_is_named_is_there(collected_tests: set[str]) -> None:
    """With its parameters, which only a collection knows: that of now where it has them, else one of its own."""
    there = collected_tests | {test.partition("[")[0] for test in collected_tests}
    named = {test for defect in DEFECTS for test in defect.tests} - there
    if not named:
        return
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-o", "addopts=--import-mode=importlib", *named]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, "\n".join(line for line in done.stdout.split("\n") if "ERROR" in line) + done.stderr


@pytest.mark.slow
def test_the_runner_tells_red_from_green(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "sample.py").write_text("def f() -> int:\n    return 1\n")
    (tmp_path / "test_sample.py").write_text("from sample import f\n\ndef test_sees():\n    assert f() == 1\n")
    (tmp_path / "pyproject.toml").write_text("[tool.pytest]\n")
    defects = [
        Defect("seen", "sample.py", "return 1", "return 2", ("test_sample.py::test_sees",)),
        Defect("not seen", "sample.py", "return 1", "return 1.0", ("test_sample.py::test_sees",)),
        Defect("no such test", "sample.py", "return 1", "return 2", ("test_sample.py::test_absent",)),
    ]
    assert failures(defects, tmp_path) == 3
    printed = capsys.readouterr().out
    for said in ("RED WITHOUT A DEFECT  test_sample.py::test_absent", "  seen  ", "  not seen  ", "  no such test  "):
        assert printed.count(said) == 1
    words = [line.partition("  ")[0] for line in printed.split("\n") if " s  " in line and "::" in line]
    assert words == ["red", "STAYED GREEN", "DID NOT RUN"]
    assert "return 1" in (tmp_path / "sample.py").read_text(), "the defect was left in"
