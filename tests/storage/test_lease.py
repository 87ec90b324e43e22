"""One owner at a time, with locks or without; a file's time is its heartbeat."""

import errno
import os
import threading
import time
from pathlib import Path

import pytest
from faults.disk import tmpfs
from waiting import until

from repro.storage import lease, signed_json
from repro.storage.atomic import DiskError
from repro.storage.folder_cache import alone
from repro.storage.journal import Journal, encoded, read, read_all
from repro.storage.lease import Lease, NoProgress, Superseded, let_go, was_killed
from repro.storage.process import is_dead, this_process


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease, "EVERY", 0.05)


def owner(run: Path, number: int) -> Path:
    return run / "attempts" / f"{number:06}" / "owner.json"


def abandoned(run: Path, number: int, step: int = 0, **other: object) -> None:
    """An attempt of a process that gives no sign of life."""
    signed_json.write(owner(run, number), this_process() | {"step": step, "format": 1, "host": "elsewhere"} | other)
    os.utime(owner(run, number), (7, 7))


def test_attempts_are_numbered_and_let_go_at_once(tmp_path: Path) -> None:
    for number in (1, 2, 3, 4):  # at one step: who let go is not counted as killed
        with Lease(tmp_path, step=0) as held:
            assert held.number == number
            held.check()
        assert owner(tmp_path, number).stat().st_mtime == 0


def test_a_second_process_is_refused_and_told_who_writes(tmp_path: Path) -> None:
    with Lease(tmp_path, step=0), pytest.raises(BlockingIOError, match=rf"process {os.getpid()} on \S+ \(attempt 1\)"):
        Lease(tmp_path, step=0)
    assert [path.name for path in (tmp_path / "attempts").iterdir()] == ["000001"]


def test_a_silent_owner_is_replaced_and_may_write_no_more(tmp_path: Path) -> None:
    with Lease(tmp_path, step=0) as held, Journal(tmp_path / "a.jsonl", check=held.check) as journal:
        journal.append("train", 1, loss=3.0)
        abandoned(tmp_path, 2)
        with pytest.raises(Superseded, match=r"taken over by process \d+ on elsewhere \(attempt 2\)"):
            journal.append("train", 2, loss=2.0)
        with pytest.raises(Superseded):
            journal.sync()
    assert [line["step"] for line in read(tmp_path / "a.jsonl")] == [1]


def test_a_disk_that_refuses_is_named(tmp_path: Path) -> None:
    with tmpfs(tmp_path / "disk", 65_536, read_only=True) as disk:
        with pytest.raises(DiskError, match=r"disk/run cannot be written to: Read-only .* another folder"):
            Lease(disk / "run", step=0)
        with pytest.raises(DiskError, match="disk/new cannot be written to"), alone(disk / "new" / "lock", print):
            pass


def test_attempts_that_may_not_be_read_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(self: Path) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    with Lease(tmp_path, step=0):
        monkeypatch.setattr(Path, "iterdir", refused)
        with pytest.raises(DiskError, match=r"attempts cannot be written to: Permission denied .* another folder"):
            Lease(tmp_path, step=0)


def test_one_beat_that_fails_ends_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    utime, failed = os.utime, threading.Event()

    def stale(*of: object) -> None:
        failed.set()
        raise OSError(errno.ESTALE, "Stale file handle")

    with Lease(tmp_path, step=0):
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


def test_a_silent_owner_that_holds_its_lock_is_not_replaced(tmp_path: Path) -> None:
    abandoned(tmp_path, 1)
    with pytest.raises(BlockingIOError, match="holds its lock but gives no sign of life"):
        Lease(tmp_path, step=0, is_held=lambda: True)


def test_a_dead_owner_is_replaced_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease, "EVERY", 60.0)
    me = this_process()
    if me["began"] is None:
        pytest.skip("this system does not tell which process is which")
    abandoned(tmp_path, 1, host=me["host"], began="another process had this number")
    began = time.monotonic()
    with Lease(tmp_path, step=0) as held:
        assert held.number == 2
    assert time.monotonic() - began < 10


def test_of_eight_at_once_one_gets_the_lease(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease, "EVERY", 1.0)  # a busy machine may keep whom has it silent for a tenth of a second
    together, held, refused = threading.Barrier(8), [], []

    def take() -> None:
        together.wait()
        try:
            held.append(Lease(tmp_path, step=0))
        except BlockingIOError as error:
            refused.append(error)

    threads = [threading.Thread(target=take) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(held), len(refused)) == (1, 7)
    held[0].close()


@pytest.mark.parametrize(("steps", "says"), [((4, 4), False), ((0, 4, 4), False), ((0, 4, 4, 4), True)])
def test_killed_three_times_without_progress_it_says_so_once(
    tmp_path: Path, steps: tuple[int, ...], says: bool
) -> None:
    for number, step in enumerate(steps, 1):
        abandoned(tmp_path, number, step)
    if says:
        with pytest.raises(NoProgress, match="no progress in 3 attempts. All began after step 4"):
            Lease(tmp_path, step=4)
    Lease(tmp_path, step=4).close()


def test_after_a_damaged_owner_the_same_command_goes_on(tmp_path: Path) -> None:
    abandoned(tmp_path, 1, step=4)
    owner(tmp_path, 1).write_bytes(b"")
    os.utime(owner(tmp_path, 1), (7, 7))
    told: list[str] = []
    with Lease(tmp_path, step=4, tell=told.append) as held:
        assert held.number == 2
        held.check()
    [said] = told
    assert said.startswith(f"{owner(tmp_path, 1)} is damaged or of another version")


def test_an_owner_whose_file_is_damaged_is_still_heard(tmp_path: Path) -> None:
    with Lease(tmp_path, step=0) as held:
        owner(tmp_path, 1).write_bytes(b"{")
        with pytest.raises(BlockingIOError, match=r"has a writer: process \? on \? \(attempt 1\)"):
            Lease(tmp_path, step=0, tell=lambda said: None)
        held.check()


def test_no_flipped_bit_makes_a_living_owner_count_as_dead(tmp_path: Path) -> None:
    with Lease(tmp_path, step=0):
        path = owner(tmp_path, 1)
        whole = path.read_bytes()
        assert lease._owner(path.parent)["pid"] == os.getpid()
        for i in range(8 * len(whole)):
            flipped = bytearray(whole)
            flipped[i // 8] ^= 1 << i % 8
            path.write_bytes(flipped)
            assert not is_dead(lease._owner(path.parent)), flipped
        path.write_bytes(whole)


def test_a_clock_in_1970_does_not_release_a_lease(tmp_path: Path) -> None:
    abandoned(tmp_path, 1)
    for seconds in (-0.5, 0.25):
        os.utime(owner(tmp_path, 1), (seconds, seconds))
        assert lease._heard(owner(tmp_path, 1).parent) not in (0, -1)


def test_a_killed_run_stays_killed_until_it_is_released(tmp_path: Path) -> None:
    assert not was_killed(tmp_path), "nobody was ever there"
    with Lease(tmp_path, step=0):
        assert was_killed(tmp_path), "it lives: who asks looks for its lock"
    assert not was_killed(tmp_path)
    abandoned(tmp_path, 2)
    assert was_killed(tmp_path)
    let_go(tmp_path)
    assert not was_killed(tmp_path)
    (tmp_path / "attempts" / "000003").mkdir()  # killed before it said who it is: it did nothing
    assert not was_killed(tmp_path)
