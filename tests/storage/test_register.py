"""A file is read once a machine and start; whatever changes about it, or about the machine, it is read again."""

import functools
import hashlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from repro.data.workers import whole
from repro.storage import folder_cache, register
from repro.storage.folder_cache import made_once
from repro.storage.register import Register

ROOT = Path(__file__).parents[2]


@pytest.fixture
def boot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What says when this machine was started."""
    path = tmp_path / "boot_id"
    path.write_bytes(b"11111111-2222\n")
    monkeypatch.setattr(register, "BOOT", path)
    return path


@pytest.fixture
def hashed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The folders whose file was read, in order; nothing is remembered from call to call, as in new processes."""
    read: list[str] = []

    def noted(path: Path, size: int, mtime_ns: int) -> str:
        read.append(path.parent.name)
        return hashlib.sha256(path.read_bytes()).hexdigest()

    monkeypatch.setattr(folder_cache, "_sha256_of_file", noted)
    return read


def filled(place: Path, n: int = 3) -> list[Path]:
    """Folders of a file each."""

    def fill(folder: Path, i: int) -> dict[str, Any]:
        (folder / "file").write_bytes(f"content {i}".encode())
        return {"number": i}

    for i in range(n):
        made_once(place / f"{i}", functools.partial(fill, i=i))
    return [place / f"{i}" for i in range(n)]


def found(place: Path, folders: list[Path]) -> list[int]:
    """The facts of the folders that are whole, as a new process has them."""
    return [facts["number"] for facts in whole(folders, Register(place)).values()]


def lock_of(place: Path) -> Path:
    return place / f".verified.{socket.gethostname()}.lock"


@pytest.mark.usefixtures("boot")
def test_a_file_is_read_once(tmp_path: Path, hashed: list[str]) -> None:
    folders = filled(tmp_path)
    hashed.clear()
    for _ in range(3):
        assert found(tmp_path, folders) == [0, 1, 2]
    assert sorted(hashed) == ["0", "1", "2"]
    whole(folders)  # without a register: in any case
    assert len(hashed) == 6
    assert lock_of(tmp_path).read_bytes().count(b"\n") == 3


def restored(path: Path) -> None:
    """One bit flipped, and the time set back."""
    status, content = path.stat(), path.read_bytes()
    path.write_bytes(bytes([content[0] ^ 1]) + content[1:])
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def replaced(path: Path) -> None:
    """Another file of the same size and time."""
    status, other = path.stat(), path.with_name("other")
    other.write_bytes(path.read_bytes()[::-1])
    os.utime(other, ns=(status.st_atime_ns, status.st_mtime_ns))
    other.replace(path)


@pytest.mark.usefixtures("boot")
@pytest.mark.parametrize("change", [restored, replaced, Path.unlink], ids=["a bit", "another file", "gone"])
def test_what_has_changed_is_read_again(tmp_path: Path, hashed: list[str], change: Callable[[Path], None]) -> None:
    folders = filled(tmp_path)
    found(tmp_path, folders)
    hashed.clear()
    time.sleep(0.02)  # a tick of the file system's clock
    change(folders[1] / "file")
    assert found(tmp_path, folders) == [0, 2]
    assert hashed == (["1"] if (folders[1] / "file").exists() else [])


@pytest.mark.usefixtures("boot")
def test_a_touched_file_is_read_again_and_found_whole(tmp_path: Path, hashed: list[str]) -> None:
    folders = filled(tmp_path)
    found(tmp_path, folders)
    hashed.clear()
    os.utime(folders[2] / "file", (1, 1))
    for _ in range(2):
        assert found(tmp_path, folders) == [0, 1, 2]
    assert hashed == ["2"]


def test_a_machine_that_was_started_again_reads_again_and_forgets(
    tmp_path: Path, hashed: list[str], boot: Path
) -> None:
    folders = filled(tmp_path)
    found(tmp_path, folders)
    hashed.clear()
    boot.write_bytes(b"33333333-4444\n")
    for _ in range(2):
        assert found(tmp_path, folders) == [0, 1, 2]
    assert sorted(hashed) == ["0", "1", "2"]
    assert b"11111111-2222" not in lock_of(tmp_path).read_bytes()


def test_a_machine_that_does_not_say_when_it_was_started_reads_always(
    tmp_path: Path, hashed: list[str], boot: Path
) -> None:
    folders = filled(tmp_path)
    boot.unlink()
    hashed.clear()
    for _ in range(2):
        assert found(tmp_path, folders) == [0, 1, 2]
    assert len(hashed) == 6


@pytest.mark.usefixtures("boot")
def test_another_machine_reads_for_itself(tmp_path: Path, hashed: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    folders = filled(tmp_path)
    found(tmp_path, folders)
    hashed.clear()
    monkeypatch.setattr(socket, "gethostname", lambda: "elsewhere")
    assert found(tmp_path, folders) == [0, 1, 2]
    assert sorted(hashed) == ["0", "1", "2"]


@pytest.mark.usefixtures("boot")
def test_a_damaged_note_costs_a_reading_and_nothing_else(tmp_path: Path, hashed: list[str]) -> None:
    folders = filled(tmp_path)
    found(tmp_path, folders)
    hashed.clear()
    content = lock_of(tmp_path).read_bytes()
    lines = content.split(b"\n")
    lock_of(tmp_path).write_bytes(b"\n".join([lines[0], lines[1].replace(b", ", b"; ", 1), lines[2][:-9]]))
    assert found(tmp_path, folders) == [0, 1, 2]
    assert len(hashed) == 2
    hashed.clear()
    assert found(tmp_path, folders) == [0, 1, 2]  # the torn line was cut off, so what follows it is whole
    assert hashed == []


PROGRAM = """
import sys, time
from pathlib import Path
from repro.data.workers import whole
from repro.storage import folder_cache
from repro.storage.register import Register
place, read = Path(sys.argv[1]), folder_cache._sha256_of_file
def slow(path, size, mtime_ns):
    sys.stdout.write(path.parent.name + "\\n")  # one call: threads do not mix
    sys.stdout.flush()
    time.sleep(0.05)
    return read(path, size, mtime_ns)
folder_cache._sha256_of_file = slow
print("ready", flush=True)
sys.stdin.readline()
made = whole([place / f"{i}" for i in range(5)], Register(place))
assert [facts["number"] for facts in made.values()] == [0, 1, 2, 3, 4]
"""


@pytest.mark.skipif(not register.BOOT.exists(), reason="this machine does not say when it was started")
def test_of_eight_processes_at_once_one_reads(tmp_path: Path) -> None:
    filled(tmp_path, 5)
    command, pipe = [sys.executable, "-c", PROGRAM, str(tmp_path)], subprocess.PIPE
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    processes = [subprocess.Popen(command, env=environment, stdin=pipe, stdout=pipe, text=True) for _ in range(8)]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:  # all may begin before the first is waited for
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    said = [process.communicate(timeout=120)[0].split() for process in processes]
    assert [process.returncode for process in processes] == [0] * 8
    assert sorted(name for names in said for name in names) == ["0", "1", "2", "3", "4"]
