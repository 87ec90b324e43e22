"""A worker whose run has several processes: what it starts, what it tells, and how it has them stop."""

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from own_signals import own_signals

from repro.runs.executors import together
from repro.runs.executors.channel import WORKER
from repro.runs.executors.together import make_together

HERE = ["python", "/x/table.py", "--on", "ray", "--devices", "2", "--shard", "2/3"]


class Told:
    """What a run tells."""

    def __init__(self) -> None:
        self.heard: list[Any] = []

    def say(self, text: str) -> None:
        self.heard.append(text)

    def begin(self, what: str, total: int) -> None:
        self.heard.append((what, total))

    def step(self, done: int, **numbers: float) -> None:
        self.heard.append(done)


@pytest.fixture(autouse=True)
def _own_signals() -> Iterator[None]:
    with own_signals():
        yield


def made(folder: Path, launch: Any, monkeypatch: pytest.MonkeyPatch, *, stop: bool = False, done: bool = False) -> Any:
    """Run 1 of the second third of eight, by a launcher that is `launch`: the exit code, and what was told."""
    monkeypatch.setattr(together, "launch", launch)
    monkeypatch.setattr(together, "LOOK", 0.01)
    monkeypatch.setattr(together, "this_command", lambda: HERE)
    monkeypatch.setenv(WORKER, "3,4")
    run: Any = SimpleNamespace(
        folder=folder,
        finished=lambda: done,
        settings=SimpleNamespace(name="base seed 1", hyper=SimpleNamespace(steps=40)),
    )
    workshop: Any = SimpleNamespace(options=SimpleNamespace(shard="2/3", processes=2), whole=list("abcdefgh"))
    told = Told()
    return make_together(1, run, workshop, told, lambda: stop), told.heard


def test_the_processes_make_that_run_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    launched: list[Any] = []

    def launch(command: list[str], devices: int) -> int:
        assert WORKER not in os.environ  # they would look for files that are not theirs
        assert Path(command[-1]).is_dir()
        launched.append((command[:-1], devices))
        return 0

    assert made(tmp_path, launch, monkeypatch, done=True)[0] == 0
    words = ["--on", "here", "--jobs", "1", "--shard", "5/8", "--results-dir"]  # b, e, h are the second third
    assert launched == [([*HERE[1:], *words], 2)]


@pytest.mark.parametrize("code", [2, 71, 137])
def test_the_exit_code_is_that_of_the_first_to_fail(code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert made(tmp_path, lambda command, devices: code, monkeypatch)[0] == code
    assert made(tmp_path, lambda command, devices: 70, monkeypatch, done=True)[0] == 0  # it diverged, and has a record


def test_steps_are_told_as_the_journal_has_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def launch(command: list[str], devices: int) -> int:
        time.sleep(0.2)
        for step in (5, 10):
            (tmp_path / "journal.jsonl").write_text(f'{{"crc32": "0", "kind": "train", "step": {step}}}\n')
            time.sleep(0.2)
        return 0

    assert made(tmp_path, launch, monkeypatch)[1] == [("base seed 1", 40), 0, 5, 10]


def test_asked_to_stop_the_launcher_hears_it_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[int] = []
    before = signal.getsignal(signal.SIGTERM)

    def launch(command: list[str], devices: int) -> int:
        time.sleep(0.1)  # nobody listens yet
        signal.signal(signal.SIGTERM, lambda number, frame: heard.append(number))
        time.sleep(0.2)
        return 128 + signal.SIGTERM

    assert made(tmp_path, launch, monkeypatch, stop=True)[0] == 143
    assert heard == [signal.SIGTERM]
    assert signal.getsignal(signal.SIGTERM) is before  # what the launcher put there is gone with it
