"""One sweep by one process, as it is typed, for all who read what it says; and runs that are not looked inside."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from repro.results.places import experiment_files


@pytest.fixture(scope="session")
def typed(made_once: Callable[[str, Callable[[Path], object]], Path], template: Path) -> tuple[Path, str]:
    """The folder in which the command of two rows was typed, and what it said; only then a report is made."""

    def fill(folder: Path) -> None:
        shutil.copytree(experiment_files(), folder / "experiments")
        shutil.copy(template, folder / "mlflow.db")  # making one takes 3 s
        words = ["experiments/table3_A.py", "--scale", "smoke", "--rows", "base", "h=1", "--steps", "4", "--jobs", "1"]
        environment = os.environ | {"OMP_NUM_THREADS": "1"}
        done = subprocess.run([sys.executable, *words], cwd=folder, env=environment, capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, "")
        (folder / "said").write_text(done.stdout)

    folder = made_once("typed", fill)
    return folder, (folder / "said").read_text()


@pytest.fixture(scope="module")
def not_looked_inside() -> Iterator[None]:
    """What a run does inside is not written beside it: that takes a third of the time of a small run."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("repro.runs.outputs.is_inside_of", lambda *_: True)
        yield
