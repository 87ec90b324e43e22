"""One suite for everybody who makes the runs of a sweep: whoever it is, the records are the same to the bit."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
from waiting import until

ROOT = Path(__file__).parents[3]
ROWS = ("base", "h=1")

STEPS = 4
TIMED = ("train_seconds", "decode_seconds", "tokens_per_second", "peak_memory_bytes", "gpu_hours")


def command(folder: Path, *options: str, steps: int = STEPS, rows: tuple[str, ...] = ROWS) -> list[str]:
    places = [f"--{name}-dir={folder / name}" for name in ("runs", "results", "cache")]
    return [
        sys.executable, str(ROOT / "experiments/table3_A.py"), "--scale=smoke", f"--steps={steps}", *places,
        f"--tracking-uri=sqlite:///{folder / 'mlflow.db'}", "--rows", *rows, *options,
    ]  # fmt: skip


def environment() -> dict[str, str]:
    return os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}


def swept(folder: Path, *options: str, **sizes: Any) -> str:
    done = subprocess.run(command(folder, *options, **sizes), env=environment(), capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


HAPPENED = ("replayed", "repeated_lines")  # a record tells what was made twice after a loss


def facts(folder: Path) -> dict[str, Any]:
    """All that the records of a folder say, but for times and places; by run."""
    found = {}
    for file in (folder / "runs").glob("*/record.json"):
        record = json.loads(file.read_bytes())
        content = record.get("content", record)
        cost = {name: value for name, value in content["cost"].items() if name not in TIMED}
        unstamped = {name: value for name, value in content.items() if name not in ("stamp", "sha256")}
        unstamped["determinism"] = {
            name: value for name, value in content["determinism"].items() if name not in HAPPENED
        }
        last_mean = {name: value for name, value in content["last_mean"].items() if name != "seconds"}
        lines = [json.loads(line) for line in (file.parent / "journal.jsonl").read_bytes().split(b"\n") if line]
        journal = {(line["kind"], line["step"]): line.get("nll") for line in lines}
        found[file.parent.name] = (unstamped | {"cost": cost, "last_mean": last_mean}, journal)
    return found


@pytest.fixture(scope="session")
def alone(typed: tuple[Path, str]) -> dict[str, Any]:
    """The records that one process makes, one run after the other."""
    made = facts(typed[0])
    assert len(made) == len(ROWS)
    return made


def by_jobs(n: int) -> Callable[[Path], str]:
    return lambda folder: swept(folder, f"--jobs={n}")


def by_shards(folder: Path) -> str:
    return "".join(swept(folder, f"--shard={i}/2", "--jobs=1") for i in (1, 2))


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(by_jobs(2), id="2 jobs"),
        pytest.param(by_jobs(4), id="4 jobs", marks=pytest.mark.faults),
        pytest.param(by_shards, id="shards", marks=pytest.mark.faults),
    ],
)
def test_the_records_are_those_of_one_process_to_the_bit(
    make: Callable[[Path], str], alone: dict[str, Any], tmp_path: Path
) -> None:
    said = make(tmp_path)
    assert facts(tmp_path) == alone
    assert all(re.search(rf"^{row} seed 1: dev PPL ", said, re.MULTILINE) for row in ROWS)
    assert list((tmp_path / "runs").glob(".workers/*")) == []  # a good end leaves no log


def started(folder: Path, *options: str, steps: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        command(folder, *options, steps=steps),
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def checkpoints(folder: Path) -> list[Path]:
    return list((folder / "runs").glob("*/checkpoints/step-*.safetensors"))


def workers_of(sweep: subprocess.Popen[str]) -> list[psutil.Process]:
    return [one for one in psutil.Process(sweep.pid).children() if "table3_A.py" in command_of(one)]


def command_of(one: psutil.Process) -> str:
    """Nothing of one that has ended in between: a sweep asks git, too."""
    try:
        return " ".join(one.cmdline())
    except psutil.NoSuchProcess:
        return ""


LONG = 60  # steps: six checkpoints


@pytest.fixture(scope="session")
def calm(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The records of a longer sweep in which nothing happens."""
    folder = tmp_path_factory.mktemp("calm")
    swept(folder, "--jobs=1", steps=LONG)
    return facts(folder)


@pytest.mark.faults
def test_a_worker_that_is_killed_is_replaced_and_nothing_differs(calm: dict[str, Any], tmp_path: Path) -> None:
    sweep = started(tmp_path, "--jobs=2", steps=LONG)
    for n in (1, 4):
        until(lambda n=n: len(checkpoints(tmp_path)) >= n)  # type: ignore[misc]
        workers_of(sweep)[0].kill()
    said, _ = sweep.communicate()
    assert sweep.returncode == 0, said
    assert said.count("Another takes its place") == 2
    assert facts(tmp_path) == calm


@pytest.mark.faults
@pytest.mark.parametrize("who", ["the sweep", "all"])
def test_when_the_sweep_is_killed_its_workers_end_and_the_same_command_goes_on(
    who: str, calm: dict[str, Any], tmp_path: Path
) -> None:
    sweep = started(tmp_path, "--jobs=2", steps=LONG)
    until(lambda: checkpoints(tmp_path))
    workers = workers_of(sweep)
    assert len(workers) == 2
    for one in [psutil.Process(sweep.pid), *(workers if who == "all" else [])]:
        one.kill()
    sweep.wait()
    _, alive = psutil.wait_procs(workers, timeout=60)
    assert alive == []
    swept(tmp_path, "--jobs=2", steps=LONG)
    assert facts(tmp_path) == calm


@pytest.mark.faults
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_all_with_a_checkpoint_and_the_same_command_goes_on(
    number: signal.Signals, calm: dict[str, Any], tmp_path: Path
) -> None:
    sweep = started(tmp_path, "--jobs=2", steps=LONG)
    until(lambda: checkpoints(tmp_path))
    workers = workers_of(sweep)
    sweep.send_signal(number)
    said, _ = sweep.communicate(timeout=60)
    assert sweep.returncode == 128 + number, said
    assert said.count("Stopping after this step, with a checkpoint.") == 1
    assert said.count("The same command resumes there.") == 2
    assert not any(one.is_running() for one in workers)
    swept(tmp_path, "--jobs=2", steps=LONG)
    assert facts(tmp_path) == calm


@pytest.mark.faults
def test_two_sweeps_at_once_on_rows_that_overlap(alone: dict[str, Any], tmp_path: Path) -> None:
    sweeps = [
        subprocess.Popen(
            command(tmp_path, "--jobs=2", rows=rows),
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for rows in (ROWS, ROWS[1:])
    ]
    for sweep in sweeps:
        said, _ = sweep.communicate()
        assert sweep.returncode in (0, 75), said  # the row of both is left to the other, or was finished before
    swept(tmp_path)
    assert facts(tmp_path) == alone
