"""Sweeps on a real Slurm of this machine, where there is one: limits, cancels, kills, pre-emption, two at once."""

import os
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from runs.executors.slurm_one_machine import one_machine, why_not

from repro.runs.executors.slurm_array import Needs, SlurmArray

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """What the commands of a real Slurm need in the environment."""
    if reason := why_not():
        pytest.skip(reason)
    with one_machine(tmp_path_factory.mktemp("slurm")) as found:
        yield os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"} | found


def called(environment: dict[str, str], *words: str) -> str:
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, (words, done.stderr)
    return done.stdout.strip()


def wait(condition: Callable[[], object], seconds: float = 240) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.1)


# ---- the script alone, with a program of some lines for a run


def toy(folder: Path, text: str, *, tasks: int = 1) -> SlurmArray:
    """An array whose run is `text`, in a folder with blanks and quotes in its name."""
    folder = folder / 'it\'s "mine" $HOME'
    folder.mkdir()
    program = folder / "run"
    program.write_text(f"#!/bin/bash\n{text}\n")
    program.chmod(0o755)
    one = SlurmArray(
        name="toy-0123456789",
        command=[str(program)],
        cwd=folder,
        folder=folder,
        whole=tasks,
        shard=(1, 1),
        at_once=None,
        needs=Needs(processors=1, gpus=0, memory=50 * 2**20, minutes=1),
    )
    one.file.write_text(one.script(range(1, tasks + 1)))
    return one


def submit(environment: dict[str, str], one: SlurmArray, tasks: int = 1) -> int:
    words = one.sbatch(range(1, tasks + 1))
    done = subprocess.run(words, cwd=one.folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


def queue(environment: dict[str, str]) -> list[str]:
    return called(environment, "squeue", "--noheader", "--array", "--format=%F_%K %T").split("\n")


def test_a_task_of_a_real_slurm_makes_its_run(slurm: dict[str, str], tmp_path: Path) -> None:
    one = toy(tmp_path, 'printf "<%s>" "$@"; env | grep ^SLURM_NTASKS=', tasks=2)
    job = submit(slurm, one, tasks=2)
    wait(lambda: queue(slurm) == [""])
    for task in (1, 2):
        said = one.log(job, task).read_text()
        assert f"<--on><here><--jobs><1><--shard><{task}/2>" in said
        assert "SLURM_NTASKS=1\n" in said  # so that nobody takes it for one of several processes of a run
        assert said.endswith(": ended with exit code 0\n")


# stops like a run, and the second time it is done
STOPS = """
trap 'echo USR1 >> heard; exit 138' USR1
trap 'echo TERM >> heard; exit 143' TERM
[ "${SLURM_RESTART_COUNT:-0}" -ge 1 ] && exit 0
touch begun
while :; do sleep 0.05; done
"""


@pytest.mark.faults
def test_a_task_near_its_limit_is_warned_and_goes_on_in_another(slurm: dict[str, str], tmp_path: Path) -> None:
    one = toy(tmp_path, STOPS)
    job = submit(slurm | {"SBATCH_SIGNAL": "B:USR1@30"}, one)
    wait(lambda: queue(slurm) == [""])
    assert (one.folder / "heard").read_text() == "USR1\n"  # once: the second time ends a run without a checkpoint
    said = one.log(job, 1).read_text()
    assert "ended with exit code 138\n" in said
    assert f": queueing {job}_1 again\n" in said
    assert ": Slurm job " in said.partition("again\n")[2]
    assert "queued again 1 times" in said
    assert said.endswith(": ended with exit code 0\n")


@pytest.mark.faults
def test_a_cancelled_task_hears_of_it_once_and_does_not_come_back(slurm: dict[str, str], tmp_path: Path) -> None:
    one = toy(tmp_path, STOPS)
    job = submit(slurm, one)
    wait((one.folder / "begun").exists)
    called(slurm, "scancel", str(job))
    wait(lambda: queue(slurm) == [""])
    assert (one.folder / "heard").read_text() == "TERM\n"
    said = one.log(job, 1).read_text()
    assert "ended with exit code 143\n" in said
    assert "not queued again by this script: Slurm itself is ending the task" in said
    time.sleep(8)  # longer than what is queued again waits
    assert queue(slurm) == [""]


@pytest.mark.faults
def test_a_task_that_makes_room_for_another_comes_back(slurm: dict[str, str], tmp_path: Path) -> None:
    one = toy(tmp_path, STOPS)
    job = submit(slurm, one)
    wait((one.folder / "begun").exists)
    urgent = ["sbatch", "--partition=urgent", "--exclusive", "--output=/dev/null", "--wrap=sleep 1"]
    called(slurm, *urgent)
    wait(lambda: queue(slurm) == [""])
    assert (one.folder / "heard").read_text() == "TERM\n"
    assert one.log(job, 1).read_text().endswith(": ended with exit code 0\n")
