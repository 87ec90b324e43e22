"""One sweep by one process, as it is typed, for all who read what it says or hold other sweeps against it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from repro.results.places import experiment_files


@pytest.fixture(scope="session")
def typed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The folder in which the command of two rows was typed, and what it said; only then a report is made."""
    folder = tmp_path_factory.mktemp("typed")
    shutil.copytree(experiment_files(), folder / "experiments")
    words = ["experiments/table3_A.py", "--scale", "smoke", "--rows", "base", "h=1", "--steps", "4", "--jobs", "1"]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, *words], cwd=folder, env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    return folder, done.stdout
