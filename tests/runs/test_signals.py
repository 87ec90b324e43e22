"""Real signals to this process: the first asks, the second ends, and before training the first does."""

import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from own_signals import own_signals

from repro.runs.signals import PARENT, STOPPING, Signals


class Ended(BaseException):
    """Stands for the end of the process."""


@pytest.fixture(autouse=True)
def _own_signals() -> Iterator[None]:
    with own_signals():
        yield


@pytest.fixture
def signals(monkeypatch: pytest.MonkeyPatch) -> Signals:
    def end(code: int) -> None:
        raise Ended(code)

    monkeypatch.delenv("TORCHELASTIC_RUN_ID", raising=False)
    monkeypatch.setattr(os, "_exit", end)
    return Signals()


def test_before_training_it_ends_the_process(signals: Signals, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        os.kill(os.getpid(), signal.SIGTERM)
    assert stopped.value.code == 128 + signal.SIGTERM
    assert capfd.readouterr().err == "\nStopped before training.\n"


@pytest.mark.parametrize("number", STOPPING)
def test_in_training_it_asks_and_the_second_ends_it_at_once(
    signals: Signals, number: signal.Signals, capfd: pytest.CaptureFixture[str]
) -> None:
    signals.training = True
    assert not signals.should_stop()
    os.kill(os.getpid(), number)
    assert signals.should_stop()
    assert signals.received == number
    # the answer is there before anybody has looked at the flag
    assert capfd.readouterr().err == "\nStopping after this step, with a checkpoint. A second signal stops at once.\n"
    with pytest.raises(Ended) as ended:
        os.kill(os.getpid(), signal.SIGTERM)
    assert ended.value.args == (143,)
    assert capfd.readouterr().err.startswith("\nStopped at once; ")


def test_a_signal_is_obeyed_though_nobody_reads_the_answer(signals: Signals) -> None:
    signals.training = True
    reader, writer = os.pipe()
    os.close(reader)
    kept = os.dup(2)
    try:
        os.dup2(writer, 2)
        os.kill(os.getpid(), signal.SIGTERM)
        with pytest.raises(Ended):
            os.kill(os.getpid(), signal.SIGTERM)
    finally:
        os.dup2(kept, 2)
        for one in (kept, writer):
            os.close(one)
    assert signals.should_stop()


def test_on_a_terminal_the_answer_stays_above_lines_that_move(
    signals: Signals, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    signals.training = True
    monkeypatch.setattr(os, "isatty", lambda number: number == 2)
    os.kill(os.getpid(), signal.SIGINT)
    assert capfd.readouterr().err.endswith("A second signal stops at once.\n\n")


def test_of_several_processes_the_first_answers(
    signals: Signals, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    signals.training = True
    monkeypatch.setenv("RANK", "1")
    os.kill(os.getpid(), signal.SIGINT)
    assert signals.should_stop()
    assert capfd.readouterr().err == ""


def test_an_echo_of_the_launcher_is_not_a_second_signal(signals: Signals, monkeypatch: pytest.MonkeyPatch) -> None:
    # Ctrl-C reaches the processes from the terminal, and again from the launcher that had it too
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "1")
    signals.training = True
    for _ in range(2):
        os.kill(os.getpid(), signal.SIGINT)
    assert signals.received == signal.SIGINT
    signals.since -= 6.0
    with pytest.raises(Ended):
        os.kill(os.getpid(), signal.SIGINT)


def test_what_is_ignored_stays_ignored() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup does
    Signals()
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN


def test_signals_need_the_main_thread() -> None:
    # others get no signals
    with ThreadPoolExecutor(1) as pool, pytest.raises(ValueError, match="Start the experiment's file as a process of"):
        pool.submit(Signals).result()


def test_a_process_whose_launcher_is_lost_stops(signals: Signals, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "none")
    one_of_several = Signals()
    assert not one_of_several.should_stop()
    monkeypatch.setattr(os, "getppid", lambda: 1)
    assert one_of_several.should_stop()
    assert not signals.should_stop()  # of a shell that has ended nothing is concluded


def test_a_process_stops_with_the_one_that_was_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for parent, stops in ((os.getppid(), False), (os.getpid(), True)):
        monkeypatch.setenv(PARENT, str(parent))
        assert Signals().should_stop() is stops
        assert PARENT not in os.environ  # a process that this one starts has another parent
