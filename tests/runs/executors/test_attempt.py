"""One attempt at a run: how it went, who is told, and what is left behind."""

import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from repro.runs.execution import Execution, Stopped
from repro.runs.executors.attempt import attempt
from repro.runs.executors.here import Here
from repro.storage.journal import Journal


@pytest.mark.parametrize("is_first", [True, False])
def test_who_is_stopped_alone_tells_those_that_wait_for_it(is_first: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []

    class Stands:
        """An execution that was asked to stop while it decoded."""

        def __init__(self, **_: Any) -> None:
            self.is_first = is_first

        def agreed_finished(self) -> None:
            return None

        def execute(self) -> None:
            raise Stopped("base seed 1: stopped")

    monkeypatch.setattr("repro.runs.execution.Execution", Stands)
    monkeypatch.setattr("repro.runs.executors.attempt.check_room", lambda *_: None)
    run: Any = SimpleNamespace(
        settings=SimpleNamespace(name="base seed 1"), corpus=None, prepared=None, runs=None, folder=None
    )
    watched: Any = SimpleNamespace(say=lambda _: None)
    group: Any = SimpleNamespace(talk=SimpleNamespace(fail=told.append))
    assert attempt(run, Any, watched, lambda: True, group=group) == (None, 128 + 15)  # type: ignore[arg-type]
    assert told == ["base seed 1: stopped"] * is_first
    assert attempt(run, Any, watched, lambda: True) == (None, 128 + 15)  # type: ignore[arg-type]


def test_an_attempt_that_raises_leaves_nobody_to_hold_back_a_signal(monkeypatch: pytest.MonkeyPatch) -> None:
    signals: Any = SimpleNamespace(training=False, should_stop=lambda: False)
    seen: list[bool] = []

    def broken(*_: Any) -> None:
        seen.append(signals.training)
        raise OSError("gone")

    monkeypatch.setattr("repro.runs.executors.here.attempt", broken)
    lane = SimpleNamespace(take=lambda cell: None)
    progress: Any = SimpleNamespace(lane=lambda: lane, say=lambda _: None)
    one: Any = SimpleNamespace(run=SimpleNamespace(settings=SimpleNamespace(threads=1)), cell=0)
    with pytest.raises(OSError, match="gone"):
        list(Here(Path(), Any, signals).make([one], progress))  # type: ignore[arg-type]
    assert seen == [True]
    assert not signals.training


def test_a_curve_has_what_is_a_number(tmp_path: Path) -> None:
    with Journal(tmp_path / "journal.jsonl", attempt=1, check=lambda: None) as journal:
        journal.append("train", 1, nll=2.0)
        journal.append("train", 2, nll=math.nan)  # as a GPU writes it, whose check comes a step late
    run: Any = SimpleNamespace(folder=tmp_path)
    assert Execution._curve(run, "train") == {"step": [1], "nll": [2.0]}
