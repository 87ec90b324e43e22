"""Worker processes of this machine and the pipes to them: played by small programs."""

import itertools
import os
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from first_words import ROOT

from repro.runs.executors import workers
from repro.runs.executors.channel import WORKER, Channel
from repro.runs.executors.dispatch import Dispatcher
from repro.runs.executors.worker import Printed, _Orders
from repro.runs.executors.workers import LocalWorker, how_it_ended, tail
from repro.runs.signals import Signals

PATIENCE = 60.0  # seconds after which what never ends is ended, and its test fails
ECHO = """
import os, sys
incoming, outgoing = map(int, os.environ["REPRO_WORKER"].split(","))
print("to the log", flush=True)
for line in os.fdopen(incoming, "rb"):
    os.write(outgoing, line)
sys.exit(int(sys.argv[1]))
"""


def played(tmp_path: Path, program: str, *words: str) -> LocalWorker:
    return LocalWorker([sys.executable, "-c", program, *words], tmp_path, 1, dict(os.environ))


def test_a_worker_hears_and_is_heard_and_ends_when_nothing_more_is_wanted(tmp_path: Path) -> None:
    worker = played(tmp_path, ECHO, "0")
    heard = worker.messages()
    worker.send({"make": 7, "run": "é\n"})
    assert next(heard) == {"make": 7, "run": "é\n"}
    assert Path(worker.log).exists()
    assert worker.end() == 0
    assert list(heard) == []
    assert not Path(worker.log).exists()  # a good end leaves none
    worker.send({"make": 8})  # to who is gone: nobody hears, and nothing is raised


def test_the_log_of_a_bad_end_stays(tmp_path: Path) -> None:
    worker = played(tmp_path, ECHO, "3")
    worker.send({"alive": True})
    heard = worker.messages()
    next(heard)
    assert worker.end() == 3
    assert list(heard) == []
    assert tail(worker.log) == "  | to the log"
    assert how_it_ended(3) == "with exit code 3"


@pytest.mark.parametrize(("program", "leaves"), [("while True: pass", 0), ("import nothing_of_this_name", 1)])
def test_who_was_not_needed_before_it_was_ready_leaves_no_log(tmp_path: Path, program: str, leaves: int) -> None:
    worker = played(tmp_path, program)
    with Dispatcher(lambda number: worker, 1, Signals()) as dispatcher:
        dispatcher.begin()
        assert Path(worker.log).exists()
        if leaves:
            os.waitid(os.P_PID, worker.pid, os.WEXITED | os.WNOWAIT)  # by itself: its words are kept
    assert len(list(Path(worker.log).parent.iterdir())) == leaves


def test_one_that_hangs_is_ended_while_somebody_listens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "TIDY_UP", 0.2)
    worker = played(tmp_path, ECHO, "0")
    worker.send({"alive": True})
    heard: list[Any] = []
    listening = threading.Thread(target=lambda: heard.extend(worker.messages()))
    listening.start()
    while not heard:
        pass
    os.kill(worker.pid, signal.SIGSTOP)
    patience = threading.Timer(PATIENCE, os.kill, [worker.pid, signal.SIGCONT])
    patience.start()
    assert worker.end() == -signal.SIGKILL
    patience.cancel()
    listening.join(60)
    assert not listening.is_alive()
    assert how_it_ended(-signal.SIGKILL) == "by signal SIGKILL"


@pytest.mark.parametrize(("says", "left"), [("", []), ("a word", ["  | a word"])])
def test_one_that_takes_long_to_end_leaves_a_log_where_it_said_something(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says: str, left: list[str]
) -> None:
    monkeypatch.setattr(workers, "TIDY_UP", 0.2)
    program = f"""if True:
        import os, sys, time
        print({says!r}, end="", file=sys.stderr, flush=True)
        os.write(int(os.environ["REPRO_WORKER"].split(",")[1]), b'{{"ready": true}}\\n')
        time.sleep({PATIENCE})
    """
    worker = played(tmp_path, program)
    assert next(worker.messages()) == {"ready": True}
    assert worker.end() == -signal.SIGKILL
    assert [tail(str(log)) for log in Path(worker.log).parent.iterdir()] == left


def test_half_a_line_is_no_message(tmp_path: Path) -> None:
    worker = played(
        tmp_path, "import os; os.write(int(os.environ['REPRO_WORKER'].split(',')[1]), b'{\"say\": \"a\"}\\n{\"en')"
    )
    assert list(worker.messages()) == [{"say": "a"}]
    assert worker.end() == 0


@pytest.mark.parametrize("said", ["", "3", "a,b", "900,901"])
def test_what_is_left_of_a_worker_in_the_environment_is_refused(said: str) -> None:
    with pytest.raises(ValueError, match=f"{WORKER}={said} is set in the environment"):
        Channel.inherited({WORKER: said})
    assert Channel.inherited({}) is None


def test_what_is_printed_in_passing_is_said_line_by_line() -> None:
    said: list[str] = []
    told: Any = SimpleNamespace(say=said.append)
    out = Printed(told)
    print("Warning: step-000000004.safetensors is damaged\nGoing on", end=" ", file=out, flush=True)
    assert said == ["Warning: step-000000004.safetensors is damaged"]
    print("from the one before", file=out)
    assert said[1:] == ["Going on from the one before"]


FAILS = """
import os, sys
from types import SimpleNamespace
from repro.runs.command import ended
from repro.runs.executors.channel import Channel
from repro.runs.executors.worker import serve
from repro.runs.signals import Signals
options = SimpleNamespace(processes=2, threads=1, tracking_uri="nowhere:", runs_dir=None)
sys.exit(ended(lambda: serve(SimpleNamespace(options=options), [], Channel.inherited(os.environ), Signals())))
"""


def test_what_went_wrong_is_told_though_there_is_no_room_for_the_log(tmp_path: Path) -> None:
    logs = tmp_path / workers.LOGS
    logs.mkdir()
    (logs / f"{socket.gethostname()}-{os.getpid()}-1.log").symlink_to("/dev/full")
    worker = LocalWorker([sys.executable, "-c", FAILS], tmp_path, 1, os.environ | {"PYTHONPATH": str(ROOT)})
    worker.send({"make": 0, "run": "x"})
    failed = [message["said"] for message in itertools.islice(worker.messages(), 2) if "failed" in message]
    assert failed == ["IndexError: list index out of range"]
    assert worker.end() == 0


@contextmanager
def orders(stopped: bool = False) -> Iterator[tuple[_Orders, Channel]]:
    """Those of a worker, which somebody else may have stopped, and the sweep's end of its pipes."""
    hear, tell = os.pipe()
    heard, told = os.pipe()
    signals: Any = SimpleNamespace(should_stop=lambda: stopped)
    own, sweep = Channel(hear, told), Channel(heard, tell)
    patience = threading.Timer(PATIENCE, sweep.hang_up)
    patience.start()
    yield _Orders(own, signals), sweep
    patience.cancel()
    sweep.hang_up()
    own.hang_up()
    list(sweep.messages())


def test_a_worker_takes_one_run_after_the_other_until_the_sweep_is_gone() -> None:
    with orders() as (wanted, sweep):
        for cell in (3, 1):
            sweep.send({"make": cell})
        taken = iter(wanted)
        assert [next(taken), next(taken)] == [{"make": 3}, {"make": 1}]
        assert not wanted.should_stop()
        sweep.hang_up()
        assert list(taken) == []
        assert wanted.should_stop()  # also a run that is in the making


def test_a_worker_that_somebody_else_stopped_takes_nothing_more_and_ends() -> None:
    with orders(stopped=True) as (wanted, sweep):
        sweep.send({"make": 3})
        assert list(wanted) == []
