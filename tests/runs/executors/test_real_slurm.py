"""Sweeps on a real Slurm of this machine, where there is one: limits, cancels, kills, pre-emption, two at once."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from runs.executors.slurm_one_machine import one_machine, why_not
from waiting import until

from repro.results.record import Record, load
from repro.runs.executors.slurm import SlurmArray

ROOT = Path(__file__).parents[3]
EXPERIMENT = '''
"""Two rows of which one diverges."""

from dataclasses import replace

from repro.experiment import Paper, Row, main

TABLE = "table_x"
ROWS = [Row("wild", lambda base: replace(base, lr_factor=1e20), Paper())]

if __name__ == "__main__":
    main(TABLE, ROWS)
'''


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
        parallelism=None,
        processors=1,
        gpus=0,
        memory=50 * 2**20,
        minutes=1,
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
    until(lambda: queue(slurm) == [""])
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
    until(lambda: queue(slurm) == [""])
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
    until((one.folder / "begun").exists)
    called(slurm, "scancel", str(job))
    until(lambda: queue(slurm) == [""])
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
    until((one.folder / "begun").exists)
    urgent = ["sbatch", "--partition=urgent", "--exclusive", "--output=/dev/null", "--wrap=sleep 1"]
    called(slurm, *urgent)
    until(lambda: queue(slurm) == [""])
    assert (one.folder / "heard").read_text() == "TERM\n"
    assert one.log(job, 1).read_text().endswith(": ended with exit code 0\n")


# ---- whole sweeps


def words(folder: Path, *more: str) -> list[str]:
    (folder / "table_x.py").write_text(EXPERIMENT.lstrip())
    places = {"results": "own", "runs": "runs", "cache": "cache"}
    options = [f"--{name}-dir={folder / place}" for name, place in places.items()]
    store = f"--tracking-uri=sqlite:///{folder / 'mlflow.db'}"
    return [sys.executable, str(folder / "table_x.py"), "--scale=smoke", "--steps=400", *options, store, *more]


def records(folder: Path) -> dict[str, Record]:
    return {done.row: done for done in map(load, folder.glob("runs/*/record.json"))}


def computed(folder: Path) -> dict[str, object]:
    """All of the records but what they cost and when they were made."""
    return {
        row: (one.run, one.status, one.scores, one.curves, (one.determinism or {}).get("weights"))
        for row, one in records(folder).items()
    }


@pytest.fixture(scope="module")
def calm(slurm: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    """What the rows are when nothing happens to them."""
    folder = tmp_path_factory.mktemp("calm")
    done = subprocess.run(words(folder, "--jobs=1"), env=slurm, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 70, done.stdout + done.stderr
    found = computed(folder)
    assert {row: status for row, (_, status, *_) in found.items()} == {"base": "finished", "wild": "diverged"}  # type: ignore[misc]
    return found


class Driver:
    """The command that follows the array."""

    def __init__(self, environment: dict[str, str], folder: Path, *more: str) -> None:
        self.folder, self.said = folder, folder / f"said{len(list(folder.glob('said*')))}"
        with self.said.open("wb") as said:
            self.process = subprocess.Popen(
                words(folder, "--on=slurm", *more), env=environment, cwd=folder, stdout=said, stderr=said
            )

    def end(self) -> tuple[int, str]:
        return self.process.wait(400), self.said.read_text()


def steps(folder: Path, row: str = "base") -> int:
    """How many steps the run of a row has noted."""
    text = b'"row": "' + row.encode() + b'"'
    for file in folder.glob("runs/*/run.json"):
        if text in file.read_bytes() and (file.parent / "journal.jsonl").exists():
            return (file.parent / "journal.jsonl").read_bytes().count(b'"kind": "train"')
    return 0


@pytest.mark.faults
def test_stopped_killed_and_left_alone_the_records_are_the_same_to_the_bit(
    slurm: dict[str, str], calm: dict[str, object], tmp_path: Path
) -> None:
    driver = Driver(slurm, tmp_path)
    until(lambda: steps(tmp_path) >= 2)
    [job] = {one.partition("_")[0] for one in queue(slurm)}
    called(slurm, "scancel", "--batch", "--signal=USR1", f"{job}_1")  # as before the limit of time
    driver.process.kill()  # the driver is lost
    driver.process.wait()
    log = next((tmp_path / "runs" / "slurm").glob(f"{job}_1.log"))
    until(lambda: "queued again 1 times" in log.read_text())
    driver = Driver(slurm, tmp_path)
    before = steps(tmp_path)
    until(lambda: steps(tmp_path) > before)
    killed = [
        int(path.parent.name) for path in Path("/proc").glob("[0-9]*/cmdline") if is_run_of(path, tmp_path, b"1/2")
    ]
    assert len(killed) == 1
    os.kill(killed[0], signal.SIGKILL)
    code, said = driver.end()
    assert code == 70, said
    assert f"In Slurm's queue already: job {job} with" in said
    assert "ended with exit code 138" in log.read_text()
    assert "ended with exit code 137" in log.read_text()
    assert len(list((tmp_path / "runs" / "slurm").glob("*_1.log"))) == 1, "it was submitted once"
    assert computed(tmp_path) == calm


def is_run_of(cmdline: Path, folder: Path, shard: bytes) -> bool:
    try:
        said = cmdline.read_bytes().split(b"\0")
    except OSError:
        return False  # it has ended meanwhile
    return os.fsencode(folder / "table_x.py") in said[:2] and shard in said


@pytest.mark.faults
def test_two_commands_at_once_make_each_run_once(
    slurm: dict[str, str], calm: dict[str, object], tmp_path: Path
) -> None:
    drivers = [Driver(slurm, tmp_path, *more) for more in ([], [], ["--rows", "base"])]
    ends = [driver.end() for driver in drivers]
    assert [code for code, _ in ends] == [70, 70, 0], ends
    assert computed(tmp_path) == calm
    [base] = [path.parent for path in tmp_path.glob("runs/*/record.json") if load(path).row == "base"]
    lines = [line for line in (base / "journal.jsonl").read_text().split("\n") if '"kind": "train"' in line]
    assert len(lines) == len(set(lines)) == len({line.partition('"step": ')[2].split(",")[0] for line in lines})


@pytest.mark.faults
def test_a_run_of_two_processes_is_stopped_at_its_limit_and_goes_on(slurm: dict[str, str], tmp_path: Path) -> None:
    options = ("--rows", "base", "--devices=2", "--steps=200")
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    subprocess.run(words(here, *options), env=slurm, cwd=here, capture_output=True, check=True)
    driver = Driver(slurm, there, *options)
    until(lambda: steps(there) >= 2)
    [job] = {one.partition("_")[0] for one in queue(slurm)}
    called(slurm, "scancel", "--batch", "--signal=USR1", f"{job}_1")  # as before the limit of time
    code, said = driver.end()
    assert code == 0, said
    assert "2 processors" in said
    log = next((there / "runs" / "slurm").glob(f"{job}_1.log")).read_text()
    assert "ended with exit code 138" in log
    assert "queued again 1 times" in log
    assert computed(there) == computed(here)
