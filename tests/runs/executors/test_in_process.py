"""One attempt at a run: how it went, who is told, and what is left behind."""

import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from repro.runs.executors.executor import InProcess
from repro.runs.run import Run
from repro.storage.journal import Journal


def made_here(
    monkeypatch: pytest.MonkeyPatch, how: dict[str, Any], group: Any = None
) -> tuple[list[tuple[str, int]], list[str]]:
    """Runs of these names, each of which ends with a code or raises: how each was said to end, and what was said."""

    def ends(run: Any, *_: Any) -> tuple[None, int]:
        assert signals.training
        if isinstance(end := how[run.name], Exception):
            raise end
        return None, end

    monkeypatch.setattr("repro.runs.executors.executor.attempt", ends)
    said: list[str] = []
    lane = SimpleNamespace(take=lambda cell: None, say=said.append)
    progress: Any = SimpleNamespace(lane=lambda: lane, say=said.append)
    signals: Any = SimpleNamespace(training=False, should_stop=lambda: False)
    work: Any = [
        SimpleNamespace(run=SimpleNamespace(name=name, spec=SimpleNamespace(threads=1), id="0f"), cell=cell)
        for cell, name in enumerate(how)
    ]
    try:
        made = list(InProcess(Any, signals, group).make(work, progress))  # type: ignore[arg-type]
    finally:
        assert not signals.training, "a signal would be held back"
    return [(one.run.name, one.code) for one in made], said


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (RuntimeError("CUDA error: head too wide"), 1),
        (ValueError("expected 4, got 5."), 2),
    ],
)
def test_the_error_of_one_run_ends_no_other(monkeypatch: pytest.MonkeyPatch, error: Exception, code: int) -> None:
    made, said = made_here(monkeypatch, {"base": 0, "h=1": error, "h=4": 0})
    assert made == [("base", 0), ("h=1", code), ("h=4", 0)]
    assert said == [f"h=1: run 0f failed. {type(error).__name__}: {error}"]


@pytest.mark.parametrize(
    ("error", "others", "group"),
    [
        (RuntimeError("its own"), {}, None),
        (OSError("the disk's"), {"h=4": 0}, None),
        (RuntimeError("x"), {"h=4": 0}, 1),
    ],
)
def test_errors_that_every_run_would_meet_are_raised(
    monkeypatch: pytest.MonkeyPatch, error: Exception, others: dict[str, Any], group: Any
) -> None:
    with pytest.raises(type(error), match=str(error)):
        made_here(monkeypatch, {"base": error, **others}, group)


def test_a_curve_has_what_is_a_number(tmp_path: Path) -> None:
    with Journal(tmp_path / "journal.jsonl", attempt=1, check=lambda: None) as journal:
        journal.append("train", 1, nll=2.0)
        journal.append("train", 2, nll=math.nan)  # as a GPU writes it, whose check comes a step late
    run: Any = SimpleNamespace(dir=SimpleNamespace(folder=tmp_path))
    assert Run._curve(run, "train") == {"step": [1], "nll": [2.0]}


@pytest.mark.parametrize(
    ("given_up", "expected"),
    [(None, "malloc: kept, layers: compiled, batches: packed"), ("too many shapes", "malloc: kept, batches: packed")],
)
def test_the_record_says_compiled_of_what_was(
    monkeypatch: pytest.MonkeyPatch, given_up: str | None, expected: str
) -> None:
    said: list[str] = []
    run: Any = SimpleNamespace(dir=SimpleNamespace(name="base seed 1"), progress=SimpleNamespace(say=said.append))
    monkeypatch.setattr("repro.model.compiled.given_up", lambda: given_up)
    assert Run._as_it_was(run, "malloc: kept, layers: compiled, batches: packed") == expected
    assert Run._as_it_was(run, "malloc: kept") == "malloc: kept"
    assert len(said) == (given_up is not None)
