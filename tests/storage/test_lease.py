"""One owner at a time, with locks or without; a file's time is its heartbeat."""

import errno
import os
import threading
import time
from pathlib import Path

import pytest
from faults.disk import tmpfs
from waiting import ended_process, until

from repro.storage import lease, signed_json
from repro.storage.atomic import DiskError, this_process
from repro.storage.journal import Journal, encoded, read, read_all
from repro.storage.lease import Lease, Superseded


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease, "EVERY", 0.05)


def owner(run: Path, number: int) -> Path:
    return run / "attempts" / f"{number:06}" / "owner.json"


def abandoned(run: Path, number: int, **other: object) -> None:
    """An attempt of a process that gives no sign of life."""
    signed_json.write(owner(run, number), this_process() | {"format": 1, "host": "elsewhere"} | other)
    os.utime(owner(run, number), (7, 7))


def test_attempts_are_numbered_and_let_go_at_once(tmp_path: Path) -> None:
    for number in (1, 2, 3):
        with Lease(tmp_path) as held:
            assert held.number == number
            held.check()
        assert owner(tmp_path, number).stat().st_mtime == 0


def test_a_second_process_is_refused_and_told_who_writes(tmp_path: Path) -> None:
    with Lease(tmp_path), pytest.raises(BlockingIOError, match=rf"process {os.getpid()} on \S+ \(attempt 1\)"):
        Lease(tmp_path)
    assert [path.name for path in (tmp_path / "attempts").iterdir()] == ["000001"]


def test_a_silent_owner_is_replaced_and_may_write_no_more(tmp_path: Path) -> None:
    with Lease(tmp_path) as held, Journal(tmp_path / "a.jsonl", check=held.check) as journal:
        journal.append("train", 1, loss=3.0)
        abandoned(tmp_path, 2)
        with pytest.raises(Superseded, match=r"taken over by process \d+ on elsewhere \(attempt 2\)"):
            journal.append("train", 2, loss=2.0)
        with pytest.raises(Superseded):
            journal.sync()
    assert [line["step"] for line in read(tmp_path / "a.jsonl")] == [1]


def test_a_disk_that_refuses_is_named(tmp_path: Path) -> None:
    said = r"disk/run cannot be written to: Read-only .* another folder"
    with tmpfs(tmp_path / "disk", 65_536, read_only=True) as disk, pytest.raises(DiskError, match=said):
        Lease(disk / "run")


def test_one_beat_that_fails_ends_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    utime, failed = os.utime, threading.Event()

    def stale(*of: object) -> None:
        failed.set()
        raise OSError(errno.ESTALE, "Stale file handle")

    with Lease(tmp_path):
        monkeypatch.setattr(os, "utime", stale)
        assert failed.wait(60)
        monkeypatch.setattr(os, "utime", utime)
        heard = owner(tmp_path, 1).stat().st_mtime
        until(lambda: owner(tmp_path, 1).stat().st_mtime != heard)


def test_a_line_that_comes_too_late_counts_as_early(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    with Journal(path, attempt=3) as journal:
        journal.append("train", 1, loss=3.0)
    early = {"kind": "train", "step": 1, "time": 1.0, "attempt": 2, "loss": 9.0}
    path.write_bytes(path.read_bytes() + encoded(early))
    assert [line["loss"] for line in read_all(path)] == [3.0, 9.0]
    assert [line["loss"] for line in read(path)] == [3.0]


def test_a_dead_owner_is_replaced_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease, "EVERY", 60.0)
    abandoned(tmp_path, 1, host=this_process()["host"], pid=ended_process())
    began = time.monotonic()
    with Lease(tmp_path) as held:
        assert held.number == 2
    assert time.monotonic() - began < 10


def test_of_eight_at_once_one_gets_the_lease(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease, "EVERY", 1.0)  # a busy machine may keep whom has it silent for a tenth of a second
    together, held, refused = threading.Barrier(8), [], []

    def take() -> None:
        together.wait()
        try:
            held.append(Lease(tmp_path))
        except BlockingIOError as error:
            refused.append(error)

    threads = [threading.Thread(target=take) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(held), len(refused)) == (1, 7)
    held[0].close()


def test_a_damaged_owner_is_heard_while_it_beats_and_replaced_when_silent(tmp_path: Path) -> None:
    with Lease(tmp_path) as held:
        owner(tmp_path, 1).write_bytes(b"{")
        with pytest.raises(BlockingIOError, match=r"has a writer: process \? on \? \(attempt 1\)"):
            Lease(tmp_path)
        held.check()
    os.utime(owner(tmp_path, 1), (7, 7))
    with Lease(tmp_path) as heir:
        assert heir.number == 2
