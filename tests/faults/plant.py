"""Plant each known defect into a copy of the package and see the tests turn red that are there to find it.

    python tests/faults/plant.py                  all of them (minutes)
    python tests/faults/plant.py --list
    python tests/faults/plant.py NAME [NAME ...]

A test that stays green with its defect in place proves nothing: that is a failure here. So is a test that is red
without any defect, and one that cannot run. The defects stand in `defects.py` beside this file.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

TESTS = Path(__file__).parent.parent
ROOT = TESTS.parent
if __name__ == "__main__":
    sys.path[0] = str(TESTS)  # as pytest has it: pythonpath in pyproject.toml

from faults.defects import DEFECTS, Defect  # noqa: E402 (after its folder is on the path)

FOLDERS = ("repro", "experiments", "tests", "benchmarks", "docs")  # copied, with the files beside them
GREEN, RED = 0, 1  # pytest's exit codes; any other means that the test itself did not run
PATIENCE, TOO_LONG = 600.0, 124  # seconds; as the command `timeout` has it: a test that hangs has told nobody


def planted(defect: Defect, root: Path = ROOT) -> str:
    """The text of the defect's file with the defect in it."""
    text = (root / defect.file).read_text("utf-8")
    if (n := text.count(defect.old)) != 1:
        raise ValueError(
            f"{defect.name}: expected the old text once in {defect.file}, found it {n} times. The code has changed: "
            f"write the defect anew."
        )
    return text.replace(defect.old, defect.new)


def outcome(copy: Path, test: str) -> tuple[int, str]:
    """The exit code of one test in the copy, and what was printed."""
    environment = os.environ | {"PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}  # no stale byte code
    options = ("-q", "-x", "-p", "no:cacheprovider", "-o", "addopts=--import-mode=importlib")
    command = [sys.executable, "-m", "pytest", *options, test]
    with tempfile.TemporaryFile() as said:  # no pipe, which a child of the test may hold open
        try:
            code = subprocess.run(
                command, cwd=copy, env=environment, stdout=said, stderr=said, timeout=PATIENCE
            ).returncode
        except subprocess.TimeoutExpired:
            code = TOO_LONG
        said.seek(0)
        return code, said.read().decode("utf-8", "replace")


def copied(folder: Path) -> Path:
    """A copy of what tests need of the checkout."""
    for name in FOLDERS:
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__", ".*"))
    for file in ROOT.glob("[!.]*.*"):
        if file.is_file():  # an editable installation leaves a folder of such a name
            shutil.copy(file, folder)
    return folder


def failures(defects: Sequence[Defect], copy: Path) -> int:
    """Plant each defect in turn and print a line for it; gives the number of lines that are not as they should be."""
    bad = 0
    tests = dict.fromkeys(test for defect in defects for test in defect.tests)
    for test in tests:
        code, printed = outcome(copy, test)
        if code != GREEN:
            bad += 1
            print(f"RED WITHOUT A DEFECT  {test}\n{printed[-3_000:]}", flush=True)
    for defect in defects:
        file = copy / defect.file
        sound = file.read_bytes()
        file.write_text(planted(defect, copy), "utf-8")
        try:
            for test in defect.tests:
                started = time.monotonic()
                code, printed = outcome(copy, test)
                word = {RED: "red", GREEN: "STAYED GREEN"}.get(code, "DID NOT RUN")
                print(f"{word:<14}{time.monotonic() - started:5.1f} s  {defect.name}  {test}", flush=True)
                if code != RED:
                    bad += 1
                    print(printed[-3_000:], flush=True)
        finally:
            file.write_bytes(sound)
    return bad


def main() -> int:
    """Plant what is asked for."""
    asked = sys.argv[1:]
    if unknown := {*asked} - {"--list", *(defect.name for defect in DEFECTS)}:
        sys.exit(f"unknown: {', '.join(sorted(unknown))}; --list shows the names")
    if "--list" in asked:
        print("\n".join(f"{defect.name}\n    {defect.file}\n    {' '.join(defect.tests)}" for defect in DEFECTS))
        return 0
    chosen = [defect for defect in DEFECTS if not asked or defect.name in asked]
    with tempfile.TemporaryDirectory() as folder:
        bad = failures(chosen, copied(Path(folder)))
    print(f"{len(chosen)} defects, {bad} not as they should be")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
