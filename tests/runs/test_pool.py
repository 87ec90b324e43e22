"""Whoever makes the runs of a sweep, records are the same to the bit; how a run ends, in this process or in a pool.

In the first part workers are small programs.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import psutil
import pytest
import torch
from own_signals import own_signals
from runs.typed_sweeps import begin, came, checkpointed, finish, said
from typed import ROOT
from waiting import until

from repro.runs import pool
from repro.runs.command import FAILED, Signals
from repro.runs.pool import LOGS, MARK, InProcess, Pool, Worker
from repro.runs.progress import Progress

PATIENCE = 60.0  # seconds after which what never ends is ended, and its test fails
# what a worker does with the cell that it was given stands in its last argument
PROGRAM = """
import json, os, signal, sys, time
from pathlib import Path

def tell(end="\\n", **message):
    print("\\x1e" + json.dumps(message), end=end, flush=True)

def first(name):  # whether nobody has asked this before
    try:
        return bool(os.mkdir(name)) or True
    except FileExistsError:
        return False

def stop(*_):  # as a worker does: a run is told, and without one the process ends
    with open(f"asked {os.getpid()}", "a") as asked:
        asked.write("x")
    if not is_busy:
        sys.exit(143)

is_busy = False
signal.signal(signal.SIGTERM, stop)
print("what the experiment's file prints", flush=True)
print("the last words", file=sys.stderr, flush=True)
tell(ready=True)
for line in sys.stdin:
    job = json.loads(line)
    cell, code = job["number"], 0
    with open("given", "a") as given:
        given.write(f"{cell} {job['run']} {os.getpid()}\\n")
    is_busy = True
    exec(sys.argv[1])
    is_busy = False
    tell(ended=code)
"""


class Play:
    """A sweep of some runs by such workers."""

    def __init__(self, part: str = "", *, n_runs: int, n_workers: int = 2, program: str = PROGRAM) -> None:
        self.command, self.n_workers = [sys.executable, "-c", program, part], n_workers
        self.records = set(range(n_runs))  # whose record is there once a worker says so
        self.work = [self.run(cell) for cell in range(n_runs)]

    def run(self, cell: int) -> Any:
        return SimpleNamespace(
            number=cell,
            id=f"id{cell}",
            folder=f"runs/id{cell}",
            name=f"row{cell}",
            finished=lambda: cell in self.records or None,
        )

    def made(self, stop_when: str = "") -> dict[int, int]:
        """The exit code of each run; the sweep is asked to stop as soon as a file of that name is there."""
        with own_signals(), pytest.MonkeyPatch.context() as patch:
            signals, end = Signals(), time.monotonic() + PATIENCE
            asked = [Path(stop_when)] if stop_when else []
            patch.setattr(signals, "should_stop", lambda: time.monotonic() > end or any(one.exists() for one in asked))
            with (
                Pool(self.command, Path("runs"), self.n_workers, signals) as workers,
                Progress("table", len(self.work)) as progress,
            ):
                found = list(workers.make(self.work, progress))
                assert len(progress.lanes) == min(self.n_workers, len(self.work)), "a line for each that has work"
            assert not signals.children
        for one in found:
            assert (one.record is not None) == (one.code == 0)
        return {int(one.run.id[2:]): one.code for one in found}


def given() -> list[tuple[int, str, int]]:
    """Cell, run and worker of each run that was handed to somebody."""
    lines = [line.split(" ") for line in Path("given").read_text().split("\n")[:-1]]
    return [(int(cell), run, int(pid)) for cell, run, pid in lines]


def logs() -> list[str]:
    return [path.read_text() for path in Path("runs", LOGS).iterdir()]


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(pool, "LOOK", 0.01)
    monkeypatch.chdir(tmp_path)


def test_each_run_is_given_once_by_its_id_and_what_a_worker_says_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    part = """
tell(begin=f"row{cell}", total=2)
tell(step=1, numbers={"loss": 2.5})
print(f"note {cell}", flush=True)
tell(step=2, numbers={"loss": 2.25})
"""
    assert Play(part, n_runs=7).made() == dict.fromkeys(range(7), 0)
    assert sorted((cell, run) for cell, run, _ in given()) == [(i, f"id{i}") for i in range(7)]
    assert len({worker for *_, worker in given()}) <= 2
    said = capsys.readouterr().out.split("\n")
    assert Counter(said)["note 3"] == 1
    assert "table  row3  2/2  loss 2.250" in "\n".join(said)
    assert "what the experiment's file prints" not in said
    assert logs() == []  # a good end leaves none
    assert list(Play(n_runs=3, n_workers=1).made()) == [*range(3)], "in their order"


@pytest.mark.parametrize(
    ("death", "how"),
    [
        ("tell(end='', begin='ro'); os.kill(os.getpid(), 9)", "by signal SIGKILL"),  # within a line
        ("sys.exit(3)", "with exit code 3"),
        ("tell(ended=143); sys.exit(143)", "with exit code 143"),  # stopped by somebody else
    ],
)
def test_a_lost_worker_is_replaced_and_its_run_goes_on(
    death: str, how: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert Play(f"if cell == 1 and first('dead'): {death}", n_runs=4).made() == dict.fromkeys(range(4), 0)
    assert [cell for cell, *_ in given()].count(1) == 2
    said = capsys.readouterr().out
    assert f"The worker of row1 ended {how}; log runs/{LOGS}/" in said
    assert "Another takes its place, and goes on from the last checkpoint." in said


def test_a_run_that_kills_every_worker_is_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    assert Play("if cell == 0: os.kill(os.getpid(), 11)", n_runs=3).made() == {0: FAILED, 1: 0, 2: 0}
    assert [cell for cell, *_ in given()].count(0) == 3
    assert "  | the last words\nIt was worker 3 of this run, which is left out." in capsys.readouterr().out
    assert logs() == ["the last words\n"] * 3


def test_a_failed_run_and_one_without_a_record_end_no_other(capsys: pytest.CaptureFixture[str]) -> None:
    play = Play("code = 74 if cell == 1 else 0", n_runs=4, n_workers=5)
    play.records.discard(2)
    assert play.made() == {0: 0, 1: 74, 2: FAILED, 3: 0}
    assert "row2: runs/id2 has no record" in capsys.readouterr().out


def test_workers_that_never_begin_end_the_sweep_with_their_log() -> None:
    play = Play(n_runs=2, program="import nothing_of_this_name")
    with pytest.raises(OSError, match=r"ended with exit code 1; log (.|\n)*  \| ModuleNotFoundError(.|\n)*not begun"):
        play.made()


def test_a_stop_reaches_each_worker_once_and_nothing_more_is_begun() -> None:
    part = """
if not first("one"):
    Path("begun").touch()
while not Path(f"asked {os.getpid()}").exists():
    time.sleep(0.01)
time.sleep(0.3)
code = 143
"""
    assert set(Play(part, n_runs=6).made(stop_when="begun").values()) == {143}
    assert len(given()) == 2
    assert [path.read_text() for path in Path().glob("asked *")] == ["x", "x"]
    assert logs() == []


def test_a_worker_that_takes_long_to_end_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "TIDY_UP", 0.2)
    program = f"import time; print('{MARK}' + '{{\"ended\": 0}}', flush=True); time.sleep({PATIENCE})"
    worker = Worker([sys.executable, "-c", program], Path("log"), dict(os.environ))
    assert worker.ask({}, None) == 0  # type: ignore[arg-type]
    assert worker.end() == -signal.SIGKILL


# what `serve` is given here is one run, which cannot be opened, and nothing that takes seconds to import
SERVES = """
import sys
from types import SimpleNamespace
sys.modules["repro.runs.run"] = SimpleNamespace()
from repro.runs.command import Signals, ended
from repro.runs.pool import serve
options = SimpleNamespace(tracking_uri="nowhere:", runs_dir=None, products="fp32")
class Task:
    def at(self, scale):
        return 1 / 0
run = SimpleNamespace(number=0, name="h=1 seed 2", text=None, task=Task())
sys.exit(ended(lambda: serve([run], [run], None, options, Signals())))
"""


def test_errors_reach_the_sweep_when_the_log_is_full_and_a_stop_ends_a_worker() -> None:
    said: list[str] = []
    lane: Any = SimpleNamespace(say=said.append)
    environment = os.environ | {"PYTHONPATH": str(ROOT), "CUDA_VISIBLE_DEVICES": ""}
    worker = Worker([sys.executable, "-c", SERVES], Path("/dev/full"), environment)
    worker.log = Path("none")
    assert worker.ask({"number": 0, "run": "x"}, lane) == FAILED
    assert said == ["h=1 seed 2: run x failed. ZeroDivisionError: division by zero"]
    worker.stop()
    assert worker.end() == 128 + signal.SIGTERM
    lost = "import torch; torch.cuda.is_initialized, torch.cuda.synchronize = lambda: True, lambda: torch.ones(-1)"
    worker = Worker([sys.executable, "-c", lost + SERVES], Path("log"), environment)
    assert worker.ask({"number": 0, "run": "x"}, lane) is None, "another takes its place"
    assert worker.end() == FAILED


# ---- in this process


def made_here(
    monkeypatch: pytest.MonkeyPatch, how: dict[str, Any], group: Any = None
) -> tuple[list[tuple[str, int]], list[str]]:
    """Runs of these names, each of which ends with a code or raises: how each was said to end, and what was said."""

    def ends(run: Any, *_: Any) -> tuple[None, int]:
        assert signals.training
        if isinstance(end := how[run.name], Exception):
            raise end
        return None, end

    monkeypatch.setattr(pool, "attempt", ends)
    said: list[str] = []
    lane = SimpleNamespace(say=said.append)
    progress: Any = SimpleNamespace(lane=lambda: lane, say=said.append)
    signals: Any = SimpleNamespace(training=False, should_stop=lambda: False)
    runs: Any = [SimpleNamespace(name=name, id="0f") for name in how]
    try:
        made = list(InProcess(Any, signals, group).make(runs, progress))  # type: ignore[arg-type]
    finally:
        assert not signals.training, "a signal would be held back"
    return [(one.run.name, one.code) for one in made], said


def test_the_error_of_one_run_ends_no_other_and_what_every_run_would_meet_is_raised(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for error, code in ((RuntimeError("CUDA error: head too wide"), 1), (ValueError("expected 4, got 5."), 2)):
        made, said = made_here(monkeypatch, {"base": 0, "h=1": error, "h=4": 0})
        assert made == [("base", 0), ("h=1", code), ("h=4", 0)]
        assert said == [f"h=1: run 0f failed. {type(error).__name__}: {error}"]
    with pytest.raises(RuntimeError, match="its own"):
        made_here(monkeypatch, {"base": RuntimeError("its own")})
    with pytest.raises(OSError, match="the disk's"):
        made_here(monkeypatch, {"base": OSError("the disk's"), "h=4": 0})
    with pytest.raises(RuntimeError, match="of a group"):
        made_here(monkeypatch, {"base": RuntimeError("of a group"), "h=4": 0}, group=1)
    error = torch.AcceleratorError("CUDA error: an illegal memory access was encountered")
    monkeypatch.setattr("torch.cuda.is_initialized", lambda: True)
    monkeypatch.setattr("torch.cuda.synchronize", mock.Mock(side_effect=[None, error]))
    assert made_here(monkeypatch, {"base": RuntimeError("its own"), "h=4": 0})[0] == [("base", 1), ("h=4", 0)]
    with pytest.raises(ConnectionError, match="resumes in a new one"):
        made_here(monkeypatch, {"base": error, "h=4": 0})


# ---- whole sweeps, as they are typed

ROWS = ("base", "h=1")
SHORT, LONG = "--steps=4", "--steps=60"  # the second: six checkpoints


@pytest.fixture(scope="session")
def alone(typed: tuple[Path, str]) -> dict[str, Any]:
    """What one process makes, one run after the other."""
    made = came(typed[0])
    assert len(made) == len(ROWS)
    return made


@pytest.mark.parametrize(
    "sweeps", [[["--jobs=2"]], pytest.param([[f"--shard={i}/2", "--jobs=1"] for i in (1, 2)], marks=pytest.mark.faults)]
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
    started = [one for one in psutil.process_iter(["ppid", "cmdline"]) if one.info["ppid"] == sweep.pid]
    return [one for one in started if "table3_A.py" in " ".join(one.info["cmdline"] or ())]  # it asks git, too


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
