"""One suite for everybody who makes the runs of a sweep: whoever it is, the records are the same to the bit."""

import re
import shutil
import signal
import subprocess
from pathlib import Path
from typing import Any

import psutil
import pytest
from runs.executors.typed_sweeps import begin, came, checkpointed, finish, said
from waiting import until

ROWS = ("base", "h=1")
SHORT, LONG = "--steps=4", "--steps=60"  # the second: six checkpoints


@pytest.fixture(scope="session")
def alone(typed: tuple[Path, str]) -> dict[str, Any]:
    """What one process makes, one run after the other."""
    made = came(typed[0])
    assert len(made) == len(ROWS)
    return made


@pytest.mark.parametrize(
    "sweeps",
    [
        pytest.param([["--jobs=2"]], id="2 jobs"),
        pytest.param([[f"--shard={i}/2", "--jobs=1"] for i in (1, 2)], id="shards", marks=pytest.mark.faults),
    ],
)
def test_the_records_are_those_of_one_process_to_the_bit(
    sweeps: list[list[str]], alone: dict[str, Any], tmp_path: Path, template: Path
) -> None:
    shutil.copy(template, tmp_path / "mlflow.db")  # making one takes 3 s
    for options in sweeps:
        finish(begin(tmp_path, SHORT, *options, rows=ROWS), tmp_path)
    assert came(tmp_path) == alone
    assert all(re.search(rf"^{row} seed 1: dev PPL ", said(tmp_path), re.MULTILINE) for row in ROWS)
    assert list((tmp_path / "runs").glob(".workers/*")) == []  # a good end leaves no log


@pytest.fixture(scope="session")
def calm(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """A longer sweep in which nothing happens."""
    folder = tmp_path_factory.mktemp("calm")
    finish(begin(folder, LONG, "--jobs=1", rows=ROWS), folder)
    return came(folder)


def trains(folder: Path) -> "tuple[subprocess.Popen[bytes], list[psutil.Process]]":
    """A longer sweep that has a checkpoint, and its workers."""
    sweep = begin(folder, LONG, "--jobs=2", rows=ROWS)
    until(lambda: checkpointed(folder))
    return sweep, workers_of(sweep)


def workers_of(sweep: "subprocess.Popen[bytes]") -> list[psutil.Process]:
    return [one for one in psutil.Process(sweep.pid).children() if "table3_A.py" in command_of(one)]


def command_of(one: psutil.Process) -> str:
    """Nothing of one that has ended in between: a sweep asks git, too."""
    try:
        return " ".join(one.cmdline())
    except psutil.NoSuchProcess:
        return ""


@pytest.mark.faults
def test_a_worker_that_is_killed_is_replaced_and_nothing_differs(calm: dict[str, Any], tmp_path: Path) -> None:
    sweep, workers = trains(tmp_path)
    workers[0].kill()
    until(lambda: len(checkpointed(tmp_path)) >= 4)
    workers_of(sweep)[0].kill()
    assert finish(sweep, tmp_path).count("Another takes its place") == 2
    assert came(tmp_path) == calm


@pytest.mark.faults
@pytest.mark.parametrize("who", ["the sweep", "all"])
def test_when_the_sweep_is_killed_its_workers_end_and_the_same_command_goes_on(
    who: str, calm: dict[str, Any], tmp_path: Path
) -> None:
    sweep, workers = trains(tmp_path)
    assert len(workers) == 2
    for one in [psutil.Process(sweep.pid), *(workers if who == "all" else [])]:
        one.kill()
    sweep.wait()
    _, alive = psutil.wait_procs(workers, timeout=60)
    assert alive == []
    finish(begin(tmp_path, LONG, "--jobs=2", rows=ROWS), tmp_path)
    assert came(tmp_path) == calm


@pytest.mark.faults
def test_a_signal_stops_all_with_a_checkpoint_and_the_same_command_goes_on(
    calm: dict[str, Any], tmp_path: Path
) -> None:
    sweep, workers = trains(tmp_path)
    sweep.send_signal(signal.SIGINT)
    assert sweep.wait(60) == 128 + signal.SIGINT, said(tmp_path)
    assert said(tmp_path).count("Stopping after this step, with a checkpoint.") == 1
    assert said(tmp_path).count("The same command resumes there.") == 2
    assert not any(one.is_running() for one in workers)
    finish(begin(tmp_path, LONG, "--jobs=2", rows=ROWS), tmp_path)
    assert came(tmp_path) == calm


@pytest.mark.faults
def test_two_sweeps_at_once_on_rows_that_overlap(alone: dict[str, Any], tmp_path: Path) -> None:
    for sweep in [begin(tmp_path, SHORT, "--jobs=2", rows=rows) for rows in (ROWS, ROWS[1:])]:
        # the row of both is left to the other, or was finished before
        assert sweep.wait(240) in (0, 75), said(tmp_path)
    finish(begin(tmp_path, SHORT, rows=ROWS), tmp_path)
    assert came(tmp_path) == alone
