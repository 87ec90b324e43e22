"""A tracker in trouble costs a process one wait with an end, and one sentence."""

import subprocess
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest
from file_server import LoopbackServer
from tracked_runs import describe, python
from tracking_server import Handler
from waiting import until

from repro.storage.journal import Journal
from repro.tracking.tracker import IN_TROUBLE, LIMIT, Tracker


def test_after_one_timeout_nothing_is_waited_for() -> None:
    told: list[str] = []
    tracker, end = Tracker("http://127.0.0.1:1", runs=Path("there"), tell=told.append), threading.Event()
    assert tracker.limit == LIMIT
    tracker.fails("503")
    assert tracker.limit == IN_TROUBLE
    tracker.limit = 0.02
    tracker.ask(end.wait)
    assert tracker.limit == 0.0
    tracker.ask(lambda: told.append("begun"))
    end.set()
    assert told == [
        "MLflow at http://127.0.0.1:1 is behind: 503. Nothing is lost: the journals in there have everything. To "
        "catch up, type: python -m repro tracking sync --tracking-uri http://127.0.0.1:1 --runs-dir there"
    ]


def test_work_that_fails_is_told_and_a_server_that_is_silent_at_the_start_but_once(dead: str) -> None:
    told: list[str] = []
    Tracker(dead, tell=told.append).ask(lambda: 1 / 0)
    assert "is behind: division by zero" in told.pop()
    tracker = Tracker(dead, tell=told.append)
    tracker.look()
    tracker.fails("it still does not answer")
    assert len(told) == 1
    assert told[0].endswith(f"python -m repro tracking sync --tracking-uri {dead}")


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
tracker.LIMIT = tracker.IN_TROUBLE = 0.5
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


@pytest.mark.slow
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
    first, last = said.decode().strip().split("\n")
    assert "is behind: no answer within 0.5 s" in first
    assert last == "the end"
