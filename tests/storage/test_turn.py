"""Several at once in a folder: each waits for its turn, and for nobody who does not let go."""

import fcntl
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from repro.storage import turn
from repro.storage.turn import in_turn


def test_what_several_read_and_write_at_once_lacks_nothing(tmp_path: Path) -> None:
    counted, together = tmp_path / "folder" / "counted", threading.Barrier(4)

    def count(_: int) -> None:
        together.wait()
        for _ in range(5):
            with in_turn(counted.parent):
                found = int(counted.read_text()) if counted.exists() else 0
                time.sleep(0.005)
                counted.write_text(str(found + 1))

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(count, range(4)))
    assert counted.read_text() == "20"
    assert [path.name for path in counted.parent.iterdir()] == ["counted"], "the lock is no file"


def test_who_does_not_let_go_is_waited_for_a_while(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turn, "PATIENCE", 0.1)
    with in_turn(tmp_path):
        began = time.monotonic()
        with in_turn(tmp_path):
            assert 0.1 <= time.monotonic() - began < 5


def test_a_disk_without_locks_keeps_nobody_waiting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def none_here(*of: object) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(fcntl, "flock", none_here)
    began = time.monotonic()
    with in_turn(tmp_path):
        assert time.monotonic() - began < 5


def test_an_error_ends_the_turn(tmp_path: Path) -> None:
    with pytest.raises(KeyError), in_turn(tmp_path):
        raise KeyError
    began = time.monotonic()
    with in_turn(tmp_path):
        assert time.monotonic() - began < 5
