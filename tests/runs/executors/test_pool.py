"""What becomes of runs whose workers are done, die, lack memory or lose a record; and workers that are real processes.

Where runs are looked at, workers play a part; where workers are, they are small programs.
"""

import itertools
import os
import queue
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from first_words import ROOT
from own_signals import own_signals

from repro.runs.executors import pool
from repro.runs.executors.executor import FAILED, OUT_OF_MEMORY, Job, JobResult
from repro.runs.executors.pool import LocalWorker, Message, Pool
from repro.runs.executors.tail import how_it_ended, tail
from repro.runs.progress import Progress
from repro.runs.signals import Signals

PATIENCE = 60.0  # seconds after which what never ends is ended, and its test fails
Part = Callable[["Player", int], None]  # what a worker does with the cell that it was given


class Player:
    """A worker that is ready at once and does with each run what its part says."""

    def __init__(self, number: int, part: Part, log: Path) -> None:
        self.log, self.pid, self.number, self.part = str(log), -number, number, part
        self.told: queue.SimpleQueue[Message | None] = queue.SimpleQueue()
        self.code, self.asked_to_stop, self.given = 0, threading.Event(), []  # type: ignore[var-annotated]
        self.tell(ready=True)

    def tell(self, **message: Any) -> None:
        self.told.put(message)

    def die(self, code: int) -> None:
        self.code = code
        self.told.put(None)

    def send(self, message: Message) -> None:
        number = message.get("make", message.get("measure"))
        self.given.append((number, message["run"]))
        self.part(self, number)

    def messages(self) -> Iterator[Message]:
        while (message := self.told.get()) is not None:
            yield message

    def hang_up(self) -> None:
        self.asked_to_stop.set()
        self.told.put(None)

    def end(self, at_once: bool = False) -> int:
        self.hang_up()
        return self.code


class Play:
    """A sweep of some runs on players; remembers who was given what, and how many worked at once."""

    def __init__(self, tmp_path: Path, part: Part, *, n_runs: int, n_workers: int = 2) -> None:
        self.players: list[Player] = []
        self.records: set[int] = set(range(n_runs))  # whose record is there once a worker says so
        self.part, self.log = part, tmp_path / "log"
        self.log.write_text("the last words\n")
        self.work = [Job(cell=cell, run=self.run(cell)) for cell in range(n_runs)]
        self.n_workers, self.n_made, self.measured = n_workers, n_runs, False

    def run(self, cell: int) -> Any:
        def finished() -> Any:
            return SimpleNamespace(cell=cell) if cell in self.records else None

        return SimpleNamespace(id=f"id{cell}", folder=f"runs/id{cell}", name=f"row{cell}", finished=finished)

    def start(self, number: int) -> Player:
        self.players.append(Player(number, self.part, self.log))
        return self.players[-1]

    def made(self) -> list[tuple[int, int]]:
        """Cell and exit code of each run, in the order of their ends."""
        with own_signals():
            self.signals = Signals()
            patience = threading.Timer(PATIENCE, vars(self.signals).update, [{"received": signal.SIGALRM}])
            patience.start()
            with (
                Pool(self.start, self.n_workers, self.signals) as workers,
                Progress("table", len(self.work)) as progress,
            ):
                if self.measured:
                    workers.measure(self.work, progress)
                found: list[JobResult] = list(workers.make(self.work[: self.n_made], progress))
                assert len(progress.lanes) <= self.n_workers
        patience.cancel()
        for one in found:
            assert (one.record is not None) == (one.code == 0)
        return [(int(one.run.id[2:]), one.code) for one in found]

    @property
    def given(self) -> list[int]:
        """The cells that were given to somebody, each as often as it was."""
        return sorted(cell for player in self.players for cell, _ in player.given)


def well(player: Player, cell: int) -> None:
    player.tell(begin=f"row{cell}", total=2)
    player.tell(step=1, numbers={"loss": 2.5})
    player.tell(step=2, numbers={"loss": 2.25})
    player.tell(ended=0)


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "LOOK", 0.01)


def test_each_run_is_given_once_and_known_by_its_id(tmp_path: Path) -> None:
    play = Play(tmp_path, well, n_runs=7)
    assert sorted(play.made()) == [(cell, 0) for cell in range(7)]
    assert sorted(one for player in play.players for one in player.given) == [(i, f"id{i}") for i in range(7)]
    assert len(play.players) == 2
    assert all(player.asked_to_stop.is_set() for player in play.players)


def test_workers_that_have_measured_make_the_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    play = Play(tmp_path, well, n_runs=4)
    play.measured, play.n_made = True, 1
    assert play.made() == [(0, 0)]
    assert play.given == [0, *range(4)]
    assert len(play.players) == 2
    assert "takes its place" not in capsys.readouterr().out


def test_workers_without_a_run_are_let_go(tmp_path: Path) -> None:
    left: list[int] = []

    def part(player: Player, cell: int) -> None:
        left.append(sum(not one.asked_to_stop.is_set() for one in play.players))
        well(player, cell)

    play = Play(tmp_path, part, n_runs=1, n_workers=3)
    assert play.made() == [(0, 0)]
    assert left == [1]


def test_one_worker_makes_the_runs_in_their_order(tmp_path: Path) -> None:
    assert Play(tmp_path, well, n_runs=5, n_workers=1).made() == [(cell, 0) for cell in range(5)]


def test_a_dead_worker_is_replaced_and_its_run_goes_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def part(player: Player, cell: int) -> None:
        if cell == 1 and player.number <= 2:
            player.tell(begin="row1", total=9)
            player.tell(step=3, numbers={})
            player.die(-signal.SIGKILL)
        else:
            well(player, cell)

    play = Play(tmp_path, part, n_runs=4)
    assert sorted(play.made()) == [(cell, 0) for cell in range(4)]
    assert play.given.count(1) in (2, 3)  # by the first two workers at most, then by one that came later
    said = capsys.readouterr().out
    assert "The worker of row1 ended by signal SIGKILL; log" in said
    assert "Another takes its place, and goes on from the last checkpoint." in said


def test_a_run_that_kills_every_worker_is_left_out_and_the_others_are_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def part(player: Player, cell: int) -> None:
        player.die(-signal.SIGSEGV) if cell == 0 else well(player, cell)

    play = Play(tmp_path, part, n_runs=3)
    assert sorted(play.made()) == [(0, FAILED), (1, 0), (2, 0)]
    assert play.given.count(0) == 3
    said = capsys.readouterr().out
    assert "3 workers in a row ended without a step of this run. It is skipped." in said
    assert "  | the last words" in said


def test_progress_resets_the_count_of_lost_workers(tmp_path: Path) -> None:
    def part(player: Player, cell: int) -> None:
        player.tell(begin="row0", total=99)
        for step in (10 * player.number, 10 * player.number + 5):
            player.tell(step=step, numbers={})
        player.die(1) if player.number < 8 else well(player, cell)

    assert Play(tmp_path, part, n_runs=1, n_workers=1).made() == [(0, 0)]


def test_a_run_out_of_memory_is_tried_once_more_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    busy: set[int] = set()
    beside: list[set[int]] = []
    lock = threading.Lock()

    def part(player: Player, cell: int) -> None:
        with lock:
            busy.add(cell)
            if cell == 0:
                beside.append(busy - {0})

        def later() -> None:
            time.sleep(0.05 * (1 + cell))
            with lock:
                busy.discard(cell)
            player.tell(ended=OUT_OF_MEMORY if cell == 0 else 0)

        threading.Thread(target=later).start()

    play = Play(tmp_path, part, n_runs=4)
    made = play.made()
    assert sorted(made) == [(0, OUT_OF_MEMORY), (1, 0), (2, 0), (3, 0)]
    assert made[-1] == (0, OUT_OF_MEMORY)
    assert len(beside) == 2
    assert beside[-1] == set()
    assert "row0 is tried again when no other run is in progress." in capsys.readouterr().out


def test_a_run_whose_workers_are_killed_is_tried_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    deaths: list[int] = []

    def part(player: Player, cell: int) -> None:
        if cell == 0 and len(deaths) < 2:
            deaths.append(player.number)
            player.die(-signal.SIGKILL)
        else:
            well(player, cell)

    assert sorted(Play(tmp_path, part, n_runs=3).made()) == [(0, 0), (1, 0), (2, 0)]
    assert "Out of memory? It is tried again when no other run is in progress." in capsys.readouterr().out


def test_a_failed_run_is_reported_and_the_others_are_made(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def part(player: Player, cell: int) -> None:
        if cell == 1:
            player.tell(say="Run id1 failed. error: no space left")
            player.tell(ended=74)
        else:
            well(player, cell)

    assert sorted(Play(tmp_path, part, n_runs=4).made()) == [(0, 0), (1, 74), (2, 0), (3, 0)]
    assert "Run id1 failed. error: no space left" in capsys.readouterr().out


def test_a_missing_record_is_a_failure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    play = Play(tmp_path, well, n_runs=3)
    play.records.discard(2)
    assert sorted(play.made()) == [(0, 0), (1, 0), (2, FAILED)]
    assert "but runs/id2 has no record" in capsys.readouterr().out


def test_workers_that_never_start_end_the_sweep_with_their_log(tmp_path: Path) -> None:
    play = Play(tmp_path, well, n_runs=2)

    def start(number: int) -> Player:
        player = Player(number, well, play.log)
        player.told.get()  # it never says that it is ready
        player.die(1)
        return player

    play.start = start  # type: ignore[method-assign]
    with pytest.raises(OSError, match=r"ended with exit code 1; log .*\n  \| the last words\n3 workers in a row"):
        play.made()


def test_a_signal_stops_all_and_nothing_more_is_begun(tmp_path: Path) -> None:
    def part(player: Player, cell: int) -> None:
        if len(play.given) == 2:
            play.signals.received = signal.SIGTERM
            for one in play.players:  # as a worker does that was asked to: it says so, and ends
                one.tell(ended=143)
        elif len(play.given) > 2:
            well(player, cell)

    play = Play(tmp_path, part, n_runs=6)
    assert sorted(play.made()) == [(0, 143), (1, 143)]
    assert play.given == [0, 1]


def test_a_worker_that_somebody_else_stopped_is_replaced_and_its_run_goes_on(tmp_path: Path) -> None:
    # as by who kills for want of memory, with SIGTERM: the sweep itself was not asked to stop
    def part(player: Player, cell: int) -> None:
        if player.number == 1:
            player.tell(ended=143)
            player.die(143)
        else:
            well(player, cell)

    play = Play(tmp_path, part, n_runs=2, n_workers=1)
    assert play.made() == [(0, 0), (1, 0)]
    assert play.given == [0, 0, 1] or play.given == [0, 0, 0, 1]


def test_a_worker_that_dies_while_stopping_counts_as_stopped(tmp_path: Path) -> None:
    def part(player: Player, cell: int) -> None:
        play.signals.received = signal.SIGINT

    play = Play(tmp_path, part, n_runs=3, n_workers=1)  # a stop ends the player, whatever it has
    assert play.made() == [(0, 143)]
    assert len(play.players) == 1


# ---- processes

ECHO = """
import sys
print("to the log", file=sys.stderr, flush=True)
print("of a file of the user's", flush=True)
for line in sys.stdin.buffer:
    sys.stdout.buffer.write(line)
    sys.stdout.flush()
sys.exit(int(sys.argv[1]))
"""


def played(tmp_path: Path, program: str, *words: str) -> LocalWorker:
    return LocalWorker([sys.executable, "-c", program, *words], tmp_path, 1, dict(os.environ))


def test_a_worker_exchanges_messages_and_ends_when_its_input_closes(tmp_path: Path) -> None:
    worker = played(tmp_path, ECHO, "0")
    heard = worker.messages()
    worker.send({"make": 7, "run": "é\n"})
    assert next(heard) == {"make": 7, "run": "é\n"}
    assert Path(worker.log).exists()
    worker.hang_up()
    assert list(heard) == []
    assert worker.end() == 0
    assert not Path(worker.log).exists()  # a good end leaves none
    worker.send({"make": 8})  # to who is gone: nobody hears, and nothing is raised


def test_the_log_of_a_bad_end_stays(tmp_path: Path) -> None:
    worker = played(tmp_path, ECHO, "3")
    worker.send({"alive": True})
    next(worker.messages())
    assert worker.end() == 3
    assert tail(worker.log) == "  | to the log"
    assert how_it_ended(3) == "with exit code 3"


@pytest.mark.parametrize(("program", "leaves"), [("while True: pass", 0), ("import nothing_of_this_name", 1)])
def test_a_worker_ended_before_it_was_ready_leaves_no_log(tmp_path: Path, program: str, leaves: int) -> None:
    worker = played(tmp_path, program)
    with own_signals(), Pool(lambda number: worker, 1, Signals()) as workers:
        workers.begin()
        assert Path(worker.log).exists()
        if leaves:
            os.waitid(os.P_PID, worker.pid, os.WEXITED | os.WNOWAIT)  # by itself: its words are kept
    assert len(list(Path(worker.log).parent.iterdir())) == leaves


def test_a_worker_that_takes_long_to_end_is_killed_and_its_log_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "TIDY_UP", 0.2)
    program = f"""if True:
        import sys, time
        print("a word", end="", file=sys.stderr, flush=True)
        print('{{"ready": true}}', flush=True)
        time.sleep({PATIENCE})
    """
    worker = played(tmp_path, program)
    assert next(worker.messages()) == {"ready": True}
    assert worker.end() == -signal.SIGKILL
    assert how_it_ended(-signal.SIGKILL) == "by signal SIGKILL"
    assert tail(worker.log) == "  | a word"


def test_half_a_line_is_no_message(tmp_path: Path) -> None:
    worker = played(tmp_path, """print('{"say": "a"}'); print('{"en', end="")""")
    assert list(worker.messages()) == [{"say": "a"}]
    assert worker.end() == 0


# what `serve` is given here has one cell, whose run cannot be opened, and nothing that takes seconds to import
SERVES = """
import sys
from types import SimpleNamespace
sys.modules["repro.runs.run"] = SimpleNamespace()
from repro.runs.command import ended
from repro.runs.executors.pool import serve
from repro.runs.signals import Signals
options = SimpleNamespace(processes=2, threads=1, tracking_uri="nowhere:", runs_dir=None, products="fp32")
cell = SimpleNamespace(row=SimpleNamespace(name="h=1"), seed=2)
sys.exit(ended(lambda: serve(SimpleNamespace(options=options, texts={1}, run=lambda cell: 1 / 0), [cell], Signals())))
"""


def serving(tmp_path: Path) -> LocalWorker:
    environment = os.environ | {"PYTHONPATH": str(ROOT), "CUDA_VISIBLE_DEVICES": ""}
    return LocalWorker([sys.executable, "-c", SERVES], tmp_path, 1, environment)


def test_errors_reach_the_sweep_when_the_log_is_full(tmp_path: Path) -> None:
    logs = tmp_path / pool.LOGS
    logs.mkdir()
    (logs / f"{os.uname().nodename}-{os.getpid()}-1.log").symlink_to("/dev/full")
    worker = serving(tmp_path)
    worker.send({"make": 0, "run": "x"})
    worker.send({"make": 1, "run": "y"})
    failed = [message for message in itertools.islice(worker.messages(), 5) if "ready" not in message]
    assert failed == [
        {"say": "h=1 seed 2: run x failed. ZeroDivisionError: division by zero"},
        {"ended": FAILED},
        {"say": "Run y failed. IndexError: list index out of range"},
        {"ended": FAILED},
    ]
    assert worker.end() == 0


def test_a_stopped_worker_takes_no_further_run(tmp_path: Path) -> None:
    worker = serving(tmp_path)
    heard = worker.messages()
    assert next(heard) == {"ready": True}
    os.kill(worker.pid, signal.SIGTERM)
    time.sleep(0.2)
    worker.send({"make": 0, "run": "x"})
    assert list(heard) == []
    assert worker.end() == 128 + signal.SIGTERM


def test_printed_lines_reach_the_sweep() -> None:
    said: list[str] = []
    out = pool.Printed(said.append)
    print("Warning: step-000000004.safetensors is damaged\nGoing on", end=" ", file=out, flush=True)
    assert said == ["Warning: step-000000004.safetensors is damaged"]
    print("from the one before", file=out)
    assert said[1:] == ["Going on from the one before"]
