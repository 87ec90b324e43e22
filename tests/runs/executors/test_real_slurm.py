"""The batch script on a real Slurm of this machine, where there is one: limits, cancels and a whole sweep."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from runs.executors.slurm_one_machine import one_machine, why_not
from runs.executors.typed_sweeps import ROOT, begin, came, finish
from waiting import until

from repro.runs.executors.slurm import SlurmArray


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """What the commands of a real Slurm need in the environment."""
    if reason := why_not():
        pytest.skip(reason)
    with one_machine(tmp_path_factory.mktemp("slurm")) as found:
        yield os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"} | found


def called(environment: dict[str, str], *words: str, cwd: Path | None = None) -> str:
    done = subprocess.run(words, env=environment, cwd=cwd, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, (words, done.stderr)
    return done.stdout.strip()


def is_idle(environment: dict[str, str]) -> bool:
    return not called(environment, "squeue", "--noheader")


def toy(folder: Path, text: str) -> SlurmArray:
    """An array of two tasks whose run is `text`, in a folder with blanks and quotes in its name."""
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
        whole=2,
        parallelism=None,
        processors=1,
        gpus=0,
        memory=50 * 2**20,
        minutes=1,
    )
    one.file.write_text(one.script)
    return one


def submitted(environment: dict[str, str], one: SlurmArray, *tasks: int) -> str:
    return called(environment, *one.sbatch(tasks), cwd=one.folder)


def test_a_task_of_a_real_slurm_makes_its_run(slurm: dict[str, str], tmp_path: Path) -> None:
    one = toy(tmp_path, 'printf "<%s>" "$@"; env | grep ^SLURM_NTASKS=')
    job = submitted(slurm, one, 1, 2)
    until(lambda: is_idle(slurm))
    for task in (1, 2):
        said = (one.folder / f"{job}_{task}.log").read_text()
        assert f"<--on><here><--jobs><1><--shard><{task}/2>" in said
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
    one = toy(tmp_path, STOPS)
    submitted(slurm | {"SBATCH_SIGNAL": "B:USR1@30"}, one, 1)
    until(lambda: is_idle(slurm))
    # once: the second time ends a run without a checkpoint
    assert ((one.folder / "heard").read_text(), (one.folder / "done").exists()) == ("USR1\n", True)
    for name in ("heard", "done", "begun"):
        (one.folder / name).unlink()
    submitted(slurm, one, 1)
    until((one.folder / "begun").exists)
    called(slurm, "scancel", f"--name={one.name}")
    until(lambda: is_idle(slurm))
    assert ((one.folder / "heard").read_text(), (one.folder / "done").exists()) == ("TERM\n", False)


@pytest.mark.faults
def test_a_sweep_that_is_stopped_on_its_way_has_the_records_of_this_machine(
    slurm: dict[str, str], tmp_path: Path
) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    options = "--steps=30"
    finish(begin(here, options, "--jobs=1"), here)
    assert "1 run; logs are" in finish(begin(there, options, "--on=slurm", **slurm), there)
    assert "in the queue already" in finish(begin(there, options, "--on=slurm", **slurm), there)
    until(lambda: list(there.glob("runs/*/checkpoints/step-*")))
    [job] = {one.partition("_")[0] for one in called(slurm, "squeue", "--noheader", "--format=%i").split("\n")}
    called(slurm, "scancel", "--batch", "--signal=USR1", f"{job}_1")  # as before the limit of time
    until(lambda: is_idle(slurm), 400.0)
    log = (there / "runs" / "slurm" / f"{job}_1.log").read_text()
    assert "The same command resumes there." in log
    assert "finished before" in finish(begin(there, options, "--on=slurm", **slurm), there)
    assert came(there) == came(here)
    assert sys.executable in (next((there / "runs" / "slurm").glob("*.sbatch"))).read_text()
