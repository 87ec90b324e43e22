"""Several at once: each waits for the one before, and for nobody who does not let go."""

import fcntl
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from repro.storage import lock
from repro.storage.lock import alone, locked


def test_threads_that_lock_a_folder_lose_no_count(tmp_path: Path) -> None:
    counted, together = tmp_path / "counted", threading.Barrier(4)

    def count(_: int) -> None:
        together.wait()
        for _ in range(5):
            with locked(counted.parent) as mine:
                found = int(counted.read_text()) if counted.exists() else 0
                time.sleep(0.005)
                counted.write_text(str(found + 1))
                assert mine

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(count, range(4)))
    with pytest.raises(KeyError), locked(tmp_path):
        raise KeyError
    with locked(tmp_path, 0.0) as mine:
        assert mine, "an error releases it"
    assert counted.read_text() == "20"
    assert [path.name for path in counted.parent.iterdir()] == ["counted"], "the lock is no file"


def test_a_lock_is_waited_for_only_so_long(tmp_path: Path) -> None:
    with locked(tmp_path):
        began = time.monotonic()
        with locked(tmp_path, 0.5) as mine:
            assert not mine
            assert 0.5 <= time.monotonic() - began < 5
        with locked(tmp_path, 0.0) as mine:
            assert not mine


def test_work_is_done_twice_rather_than_never(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock, "WORK", 0.5)
    told: list[str] = []
    with alone(tmp_path / "new" / "lock", told.append):
        assert told == []
        with alone(tmp_path / "new" / "lock", told.append):  # as beside a process that was stopped
            assert "waiting for it" in told[0]
            assert "going on without it" in told[1]


def test_a_disk_without_locks_keeps_nobody_waiting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def none_here(*of: object) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(fcntl, "flock", none_here)
    began = time.monotonic()
    with locked(tmp_path) as mine:
        assert mine
        assert time.monotonic() - began < 5


def test_only_a_file_that_may_be_missing_is_made(tmp_path: Path) -> None:
    """A run's folder that was deleted meanwhile must not come back as a file: the run could not make it again."""
    with pytest.raises(FileNotFoundError), locked(tmp_path / "run"):
        pass
    assert not (tmp_path / "run").exists()
    with locked(tmp_path / "lock", make=True) as mine:
        assert mine
