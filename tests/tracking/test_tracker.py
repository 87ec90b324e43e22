"""A tracker in trouble costs a process one wait with an end, and one sentence."""

import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from loopback import LoopbackServer
from tracked_runs import describe, python
from tracking_server import Handler
from waiting import until

from repro.storage.journal import Journal
from repro.tracking.client import DEFAULT_URI
from repro.tracking.mirror import sync_soon
from repro.tracking.tracker import IN_TROUBLE, SERVER, Tracker
from repro.tracking.views import View, install_views


@pytest.fixture
def asleep() -> Iterator[threading.Thread]:
    """A thread that ends when the test does."""
    end = threading.Event()
    thread = threading.Thread(target=end.wait, daemon=True)
    thread.start()
    yield thread
    end.set()


def test_after_one_timeout_no_request_is_waited_for(asleep: threading.Thread) -> None:
    told: list[str] = []
    tracker = Tracker("http://127.0.0.1:1", runs=Path("there"), tell=told.append)
    assert tracker.patience == SERVER
    tracker.patience = 0.02
    assert not tracker.wait(asleep)
    assert tracker.patience == 0.0
    assert not tracker.wait(asleep)
    assert not tracker.ask(lambda: 1 / 0)  # not even begun
    assert told == [
        "MLflow at http://127.0.0.1:1 is behind: no answer within 0.02 s. Nothing is lost: the journals in there have "
        "everything. To catch up, type: python -m repro tracking sync --tracking-uri http://127.0.0.1:1 "
        "--runs-dir there"
    ]
    tracker.answers()  # a thread that was left behind came through
    assert tracker.patience == SERVER
    tracker.fails("503")
    assert tracker.patience == IN_TROUBLE
    assert len(told) == 1
    tracker.has_all()
    tracker.fails("503")
    assert len(told) == 2


@pytest.mark.parametrize(
    ("runs", "named"),
    [(Path("runs"), ""), (Path("my runs"), " --runs-dir 'my runs'")],
)
def test_what_to_type_for_a_broken_database_names_the_folder_of_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, runs: Path, named: str
) -> None:
    monkeypatch.chdir(tmp_path)
    told: list[str] = []
    tracker = Tracker(DEFAULT_URI, runs=runs, tell=told.append)
    (tmp_path / "mlflow.db").write_bytes(b"SQLite format 3\0 and nothing more")
    install_views(tracker, [View(scale="smoke", table="table2", title="Table 2")])
    tracker.has_all()
    describe(runs / "one", "one")
    sync_soon(tracker, runs / "one")
    remedy = f" && python -m repro tracking sync{named}"
    assert [said.partition(" lacks the view of table2 (")[1] != "" for said in told] == [True, False]
    assert [said.count(f" mlflow.db.broken1{remedy}") for said in told] == [1, 1]
    assert told[0].endswith(f"{remedy}); try again with: python -m repro tracking sync{named}")
    assert told[1].endswith(remedy)


LEAVES_SOMEBODY = """
import os, sys, time
import torch
from repro import experiment
from repro.tracking.tracker import Tracker

def held_in_a_library():
    def hold(gradient):
        while True:
            time.sleep(0.001)
    number = torch.ones(1, requires_grad=True)
    number.register_hook(hold)
    number.sum().backward()

def run(name, tables, argv):
    print("what was said last ", end="")
    tracker = Tracker("http://127.0.0.1:1", tell=lambda said: None)
    tracker.patience = 0.5
    assert not tracker.ask(held_in_a_library)
    if code == 130:
        sys.exit(code)  # by a signal
    return code

experiment._run = run
for code in (75, 130):
    if not (child := os.fork()):
        experiment.main("own", [])
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


def test_a_thread_left_in_a_library_does_not_abort_the_process() -> None:
    with python(LEAVES_SOMEBODY) as process:
        said, _ = process.communicate(timeout=120)
    assert said == b"what was said last 75\nwhat was said last 130\n"


def test_a_server_that_is_silent_at_the_start_is_told_of_once(dead: str) -> None:
    told: list[str] = []
    tracker = Tracker(dead, tell=told.append)
    tracker.look()
    tracker.fails("it still does not answer")
    assert len(told) == 1
    assert told[0].endswith(f"python -m repro tracking sync --tracking-uri {dead}")
    assert tracker.patience == IN_TROUBLE


class Dripping(LoopbackServer):
    """Answers one byte at a time, for ever."""

    def __init__(self) -> None:
        class Drip(Handler):
            def real(self) -> tuple[int, bytes]:
                return 200, b""

        super().__init__(Drip)
        self.asked: list[str] = []
        self.mlflow = SimpleNamespace()

    def fault(self, handler: Handler) -> None:
        handler.send(200, b"", 10**9)
        while not self.closing.wait(0.05):
            handler.wfile.write(b" ")
            handler.wfile.flush()


SWEEP = """
import sys
from pathlib import Path
from repro.storage.journal import Journal
from repro.tracking import tracker
from repro.tracking.mirror import Mirror
from repro.tracking.views import View, install_views
tracker.SERVER = tracker.IN_TROUBLE = 0.5
uri, runs = sys.argv[1], Path(sys.argv[2])
mlflow = tracker.Tracker(uri, runs=runs)
for folder in sorted(runs.iterdir()):
    mirror = Mirror(mlflow, folder, every=0.02)
    if folder.name.endswith("0"):
        sys.stdin.readline()  # it has begun to drip
    mirror.close()
install_views(mlflow, [View(scale="smoke", table="table2", title="Table 2")])
print("the end")
"""


def test_a_process_ends_though_its_tracker_drips(tmp_path: Path) -> None:
    """No read ever times out, as each brings a byte."""
    for i in range(3):
        describe(folder := tmp_path / "runs" / f"{i:016x}", folder.name)
        with Journal(folder / "journal.jsonl") as journal:
            journal.append("train", 1, loss=1.0)
    with Dripping() as server:
        process = python(SWEEP, f"http://127.0.0.1:{server.server_port}", tmp_path / "runs", stdin=subprocess.PIPE)
        until(lambda: bool(server.asked) or process.poll() is not None)
        said, _ = process.communicate(b"\n", timeout=300)
        assert not server.closing.is_set(), "it still dripped"
    assert process.returncode == 0, said
    lines = said.decode().strip().split("\n")
    assert lines[-1] == "the end"
    assert [line for line in lines[:-1] if "is behind: no answer within 0.5 s" not in line] == []
    assert len(lines) == 2
