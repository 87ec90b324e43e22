"""Planted defects: each can be planted in the code as it stands, and turns the tests red that are there to find it.

    pytest -m faults tests/faults/test_plant.py -k WORD_OF_ITS_NAME

A test that stays green with its defect in place proves nothing: that is a failure here. So is a test that is red
without any defect, and one that cannot run.
"""

import ast
import functools
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from faults.defects import DEFECTS, Defect

ROOT = Path(__file__).parents[2]
FOLDERS = ("repro", "experiments", "tests", "benchmarks", "docs")  # copied, with the files beside them
PYTEST = (sys.executable, "-m", "pytest", "-q", "-o", "addopts=--import-mode=importlib")
GREEN, RED = 0, 1  # pytest's exit codes; any other means that the test itself did not run
each_defect = pytest.mark.parametrize("defect", DEFECTS, ids=lambda defect: defect.name)


def planted(defect: Defect) -> str:
    """The text of the defect's file with the defect in it."""
    text = (ROOT / defect.file).read_text("utf-8")
    assert text.count(defect.old) == 1, f"The code has changed: write the defect of {defect.file} anew."
    return text.replace(defect.old, defect.new)


@each_defect
def test_a_defect_fits_the_code_and_its_tests_are_there(defect: Defect) -> None:
    ast.parse(planted(defect))
    for file, name in (test.partition("[")[0].split("::") for test in defect.tests):
        assert f"def {name}(" in (ROOT / file).read_text("utf-8"), f"{file}::{name}"


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What tests need of the checkout."""
    folder = tmp_path_factory.mktemp("copy")
    for name in FOLDERS:
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__", ".*"))
    for file in ROOT.glob("[!.]*.*"):
        if file.is_file():  # an editable installation leaves a folder of such a name
            shutil.copy(file, folder)
    return folder


def outcome(copy: Path, test: str) -> tuple[int, str]:
    """The exit code of one test in the copy, and what was printed."""
    environment = os.environ | {"PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}  # no stale byte code
    command = [*PYTEST, "-x", "-p", "no:cacheprovider", test]
    with tempfile.TemporaryFile() as said:  # no pipe, which a child of the test may hold open
        code = subprocess.run(command, cwd=copy, env=environment, stdout=said, stderr=said, timeout=600).returncode
        said.seek(0)
        return code, said.read().decode("utf-8", "replace")


sound = functools.cache(outcome)


@pytest.mark.faults
@each_defect
def test_its_tests_turn_red(copy: Path, defect: Defect) -> None:
    for test in defect.tests:
        code, printed = sound(copy, test)
        assert code == GREEN, f"{test} is not green without a defect: {printed}"
    file, text = copy / defect.file, planted(defect)
    file.write_text(text, "utf-8")
    try:
        for test in defect.tests:
            code, printed = outcome(copy, test)
            assert code == RED, f"{test} stayed green, or did not run: {printed}"
    finally:
        shutil.copy(ROOT / defect.file, file)
