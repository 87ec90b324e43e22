"""Real signals to this process: the first asks, the second ends, and before training the first does."""

import os
import signal
from collections.abc import Iterator

import pytest
from own_signals import own_signals

from repro.signals import STOPPING, Signals


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

    monkeypatch.delenv("LOCAL_RANK", raising=False)
    monkeypatch.setattr(os, "_exit", end)
    return Signals()


@pytest.mark.parametrize("number", STOPPING)
def test_before_training_it_ends_the_process(signals: Signals, number: signal.Signals) -> None:
    with pytest.raises(SystemExit) as stopped:
        os.kill(os.getpid(), number)
    assert stopped.value.code == 128 + number


@pytest.mark.parametrize("number", STOPPING)
def test_in_training_it_asks_and_the_second_ends_it_at_once(signals: Signals, number: signal.Signals) -> None:
    signals.training = True
    assert not signals.should_stop()
    os.kill(os.getpid(), number)
    assert signals.should_stop()
    assert signals.received == number
    with pytest.raises(Ended) as ended:
        os.kill(os.getpid(), signal.SIGTERM)
    assert ended.value.args == (143,)


def test_what_a_launcher_passes_on_is_not_a_second_one(signals: Signals, monkeypatch: pytest.MonkeyPatch) -> None:
    # Ctrl-C reaches the processes from the terminal, and again from the launcher that had it too
    monkeypatch.setenv("LOCAL_RANK", "1")
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
