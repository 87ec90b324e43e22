"""Whoever makes the runs of a sweep, the records are the same to the bit; and how one attempt in this process ends."""

import math
import re
import shutil
import signal
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest
from runs.executors.typed_sweeps import begin, came, checkpointed, finish, said
from waiting import until

from repro.runs.executors.executor import InProcess
from repro.runs.run import Run
from repro.storage.journal import Journal

ROWS = ("base", "h=1")
SHORT, LONG = "--steps=4", "--steps=60"  # the second: six checkpoints


@pytest.fixture(scope="session")
def alone(typed: tuple[Path, str]) -> dict[str, Any]:
    """What one process makes, one run after the other."""
    made = came(typed[0])
    assert len(made) == len(ROWS)
    return made


@pytest.mark.parametrize(
    "sweeps",
    [
        pytest.param([["--jobs=2"]], id="2 jobs"),
        pytest.param([[f"--shard={i}/2", "--jobs=1"] for i in (1, 2)], id="shards", marks=pytest.mark.faults),
    ],
)
def test_the_records_are_those_of_one_process_to_the_bit(
    sweeps: list[list[str]], alone: dict[str, Any], tmp_path: Path, template: Path
) -> None:
    shutil.copy(template, tmp_path / "mlflow.db")  # making one takes 3 s
    for options in sweeps:
        finish(begin(tmp_path, SHORT, *options, rows=ROWS), tmp_path)
    assert came(tmp_path) == alone
    assert all(re.search(rf"^{row} seed 1: dev PPL ", said(tmp_path), re.MULTILINE) for row in ROWS)
    assert list((tmp_path / "runs").glob(".workers/*")) == []  # a good end leaves no log


@pytest.fixture(scope="session")
def calm(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """A longer sweep in which nothing happens."""
    folder = tmp_path_factory.mktemp("calm")
    finish(begin(folder, LONG, "--jobs=1", rows=ROWS), folder)
    return came(folder)


def trains(folder: Path) -> "tuple[subprocess.Popen[bytes], list[psutil.Process]]":
    """A longer sweep that has a checkpoint, and its workers."""
    sweep = begin(folder, LONG, "--jobs=2", rows=ROWS)
    until(lambda: checkpointed(folder))
    return sweep, workers_of(sweep)


def workers_of(sweep: "subprocess.Popen[bytes]") -> list[psutil.Process]:
    return [one for one in psutil.Process(sweep.pid).children() if "table3_A.py" in command_of(one)]


def command_of(one: psutil.Process) -> str:
    """Nothing of one that has ended in between: a sweep asks git, too."""
    try:
        return " ".join(one.cmdline())
    except psutil.NoSuchProcess:
        return ""


@pytest.mark.faults
def test_a_worker_that_is_killed_is_replaced_and_nothing_differs(calm: dict[str, Any], tmp_path: Path) -> None:
    sweep, workers = trains(tmp_path)
    workers[0].kill()
    until(lambda: len(checkpointed(tmp_path)) >= 4)
    workers_of(sweep)[0].kill()
    assert finish(sweep, tmp_path).count("Another takes its place") == 2
    assert came(tmp_path) == calm


@pytest.mark.faults
@pytest.mark.parametrize("who", ["the sweep", "all"])
def test_when_the_sweep_is_killed_its_workers_end_and_the_same_command_goes_on(
    who: str, calm: dict[str, Any], tmp_path: Path
) -> None:
    sweep, workers = trains(tmp_path)
    assert len(workers) == 2
    for one in [psutil.Process(sweep.pid), *(workers if who == "all" else [])]:
        one.kill()
    sweep.wait()
    _, alive = psutil.wait_procs(workers, timeout=60)
    assert alive == []
    finish(begin(tmp_path, LONG, "--jobs=2", rows=ROWS), tmp_path)
    assert came(tmp_path) == calm


@pytest.mark.faults
def test_a_signal_stops_all_with_a_checkpoint_and_the_same_command_goes_on(
    calm: dict[str, Any], tmp_path: Path
) -> None:
    sweep, workers = trains(tmp_path)
    sweep.send_signal(signal.SIGINT)
    assert sweep.wait(60) == 128 + signal.SIGINT, said(tmp_path)
    assert said(tmp_path).count("Stopping after this step, with a checkpoint.") == 1
    assert said(tmp_path).count("The same command resumes there.") == 2
    assert not any(one.is_running() for one in workers)
    finish(begin(tmp_path, LONG, "--jobs=2", rows=ROWS), tmp_path)
    assert came(tmp_path) == calm


# ---- in this process


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
