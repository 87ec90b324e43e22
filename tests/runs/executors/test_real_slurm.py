"""The batch script on a real Slurm of this machine, where there is one: limits, cancels and a whole sweep."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from runs.executors.slurm_one_machine import one_machine, why_not
from runs.executors.test_slurm import SCRIPT, program
from runs.executors.typed_sweeps import ROOT, begin, came, finish, words
from waiting import until


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """What the commands of a real Slurm need in the environment."""
    if reason := why_not():
        pytest.skip(reason)
    with one_machine(tmp_path_factory.mktemp("slurm")) as found:
        yield os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"} | found


def called(environment: dict[str, str], *command: str, cwd: Path | None = None) -> str:
    done = subprocess.run(command, env=environment, cwd=cwd, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, (command, done.stderr)
    return done.stdout.strip()


def is_idle(environment: dict[str, str]) -> bool:
    return not called(environment, "squeue", "--noheader")


def submitted(environment: dict[str, str], folder: Path, n: int, *command: str, memory: int = 50) -> str:
    """The number of the job: an array of `n` tasks, whose logs go to the folder."""
    how = ("--parsable", f"--array=1-{n}", f"--mem={memory}M", "--job-name=toy")
    return called(environment, "sbatch", *how, str(SCRIPT), *command, cwd=folder)


def test_a_task_of_a_real_slurm_makes_its_share(slurm: dict[str, str], tmp_path: Path) -> None:
    run = program(tmp_path / "it's mine", 'printf "<%s>" "$@"; env | grep ^SLURM_NTASKS=')
    job = submitted(slurm, tmp_path, 2, run, "a b")
    until(lambda: is_idle(slurm))
    for task in (1, 2):
        said = (tmp_path / f"slurm-{job}_{task}.out").read_text()
        assert f"<a b><--jobs><1><--shard><{task}/2>" in said
        assert "SLURM_NTASKS=1\n" in said  # so that nobody takes it for one of several processes of a run


# stops like a run, and the second time it is done
STOPS = """
trap 'echo USR1 >> heard; exit 138' USR1
trap 'echo TERM >> heard; exit 143' TERM
[ "${SLURM_RESTART_COUNT:-0}" -ge 1 ] && { touch done; exit 0; }
touch begun
while :; do sleep 0.05; done
"""


@pytest.mark.faults
def test_a_task_near_its_limit_is_warned_and_goes_on_and_a_cancelled_one_does_not(
    slurm: dict[str, str], tmp_path: Path
) -> None:
    run = program(tmp_path / "run", STOPS)
    submitted(slurm | {"SBATCH_SIGNAL": "B:USR1@30", "SBATCH_TIMELIMIT": "1"}, tmp_path, 1, run)
    until(lambda: is_idle(slurm))
    # once: the second time ends a run without a checkpoint
    assert ((tmp_path / "heard").read_text(), (tmp_path / "done").exists()) == ("USR1\n", True)
    for name in ("heard", "done", "begun"):
        (tmp_path / name).unlink()
    submitted(slurm, tmp_path, 1, run)
    until((tmp_path / "begun").exists)
    called(slurm, "scancel", "--name=toy")
    until(lambda: is_idle(slurm))
    assert ((tmp_path / "heard").read_text(), (tmp_path / "done").exists()) == ("TERM\n", False)


@pytest.mark.faults
def test_a_sweep_that_is_stopped_on_its_way_has_the_records_of_this_machine(
    slurm: dict[str, str], tmp_path: Path
) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    options = "--steps=30"
    finish(begin(here, options, "--jobs=1"), here)
    there.mkdir()
    job = submitted(slurm, there, 1, sys.executable, *words(there, options), memory=2_000)
    until(lambda: list(there.glob("runs/*/checkpoints/step-*")))
    called(slurm, "scancel", "--batch", "--signal=USR1", f"{job}_1")  # as before the limit of time
    until(lambda: is_idle(slurm), 400.0)
    assert "The same command resumes there." in (there / f"slurm-{job}_1.out").read_text()
    assert "finished before" in finish(begin(there, options), there)
    assert came(there) == came(here)
