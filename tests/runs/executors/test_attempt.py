"""One attempt at a run: how it went, and who is told."""

from types import SimpleNamespace
from typing import Any

import pytest

from repro.runs.execution import Stopped
from repro.runs.executors.attempt import attempt


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
