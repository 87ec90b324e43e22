"""What becomes of runs whose workers are done, die, are stopped or lose a record. Workers are small programs here."""

import os
import signal
import sys
import threading
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from own_signals import own_signals
from typed import ROOT

from repro.runs.executors import pool
from repro.runs.executors.executor import FAILED, LOGS, Job
from repro.runs.executors.pool import MARK, Pool, Worker
from repro.runs.progress import Progress
from repro.runs.signals import Signals

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
        self.work = [Job(number=cell, run=self.run(cell)) for cell in range(n_runs)]

    def run(self, cell: int) -> Any:
        return SimpleNamespace(
            id=f"id{cell}", folder=f"runs/id{cell}", name=f"row{cell}", finished=lambda: cell in self.records or None
        )

    def made(self, stop_when: str = "") -> dict[int, int]:
        """The exit code of each run; the sweep is asked to stop as soon as a file of that name is there."""
        with own_signals():
            signals, over = Signals(), threading.Event()

            def watch() -> None:
                for _ in range(int(PATIENCE / 0.02)):
                    if over.wait(0.02) or (stop_when and Path(stop_when).exists()):
                        break
                signals.received = 0 if over.is_set() else signal.SIGINT

            watching = threading.Thread(target=watch)
            watching.start()
            try:
                with (
                    Pool(self.command, Path("runs"), self.n_workers, signals) as workers,
                    Progress("table", len(self.work)) as progress,
                ):
                    found = list(workers.make(self.work, progress))
                    assert len(progress.lanes) <= self.n_workers
            finally:
                over.set()
                watching.join()
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


def test_one_worker_makes_the_runs_in_their_order() -> None:
    assert list(Play(n_runs=5, n_workers=1).made()) == [*range(5)]


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
    play = Play("code = 74 if cell == 1 else 0", n_runs=4)
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
from repro.runs.command import ended
from repro.runs.executors.pool import serve
from repro.runs.signals import Signals
options = SimpleNamespace(processes=2, threads=1, tracking_uri="nowhere:", runs_dir=None, products="fp32")
run = SimpleNamespace(name="h=1 seed 2")
session = SimpleNamespace(options=options, texts={1}, opened=lambda run: 1 / 0)
sys.exit(ended(lambda: serve(session, [run], Signals())))
"""


def test_errors_reach_the_sweep_when_the_log_is_full_and_a_stop_ends_a_worker() -> None:
    said: list[str] = []
    lane: Any = SimpleNamespace(say=said.append)
    environment = os.environ | {"PYTHONPATH": str(ROOT), "CUDA_VISIBLE_DEVICES": ""}
    worker = Worker([sys.executable, "-c", SERVES], Path("/dev/full"), environment)
    worker.log = Path("none")
    assert worker.ask({"number": 0, "run": "x"}, lane) == FAILED
    assert worker.ask({"number": 1, "run": "y"}, lane) == FAILED
    assert said == [
        "h=1 seed 2: run x failed. ZeroDivisionError: division by zero",
        "Run y failed. IndexError: list index out of range",
    ]
    worker.stop()
    assert worker.end() == 128 + signal.SIGTERM
