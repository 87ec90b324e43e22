"""Durable writes: at every point of a crash a file is absent, the old or the new one; a disk that refuses is named."""

import errno
import json
import math
import os
import pickle
import socket
from array import array
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from faults.disk import Disk, prepack, refusing
from waiting import ended_process

from repro.storage import atomic
from repro.storage.atomic import (
    Appended,
    DiskError,
    Hashed,
    beside,
    check_folder,
    is_dead,
    sweep,
    this_process,
    write_bytes,
    write_json,
    write_text,
)


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An empty one, with room for others beside it."""
    (tmp_path / "folder").mkdir()
    return tmp_path / "folder"


# ---- a crash


@pytest.mark.parametrize("before", [{}, {"x": b"old"}], ids=["first", "again"])
def test_a_crash_at_any_call_leaves_the_old_file_or_the_new(folder: Path, before: dict[str, bytes]) -> None:
    prepack(before, folder)
    with Disk(folder).watching() as disk:
        write_bytes(folder / "x", b"new")
    assert len(list(disk.left())) > 5
    for when, left in disk.left():
        prepack(left, folder)
        sweep(folder, alone=True)
        assert files(folder) in (before, {"x": b"new"}), when
    _, end = disk.moments[-1]
    assert all(left == {"x": b"new"} for left in end.power_lost()), "it had returned, and yet it was not on the disk"


def test_new_folders_survive_a_crash_too(folder: Path) -> None:
    with Disk(folder).watching() as disk:
        write_text(folder / "a" / "b" / "x", "new")
    _, end = disk.moments[-1]
    assert all(left == {"a/b/x": b"new"} for left in end.power_lost())


def test_short_writes_go_on_and_half_a_piece_is_taken_back(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    really, room = os.write, [2] * 10

    def write(file: int, data: memoryview) -> int:
        if not room:
            raise OSError(errno.ENOSPC, "No space left on device")
        return really(file, data[: room.pop()])

    monkeypatch.setattr(os, "write", write)
    write_bytes(folder / "x", lambda file: file.write(array("h", b"twelve bytes")))
    file = Appended(folder / "y")
    file.append(b"seven b")
    room.append(2)
    with pytest.raises(DiskError, match="No space left"):
        file.append(b"half of it")
    room += [9]
    file.append(b" more")
    file.close()
    assert files(folder) == {"x": b"twelve bytes", "y": b"seven b more"}


# ---- errors


def test_an_error_of_the_writer_leaves_the_old_file_and_nothing_else(folder: Path) -> None:
    write_bytes(folder / "x", b"old")

    def fails(file: Hashed) -> None:
        file.write(b"ne")
        raise ValueError("no more")

    with pytest.raises(ValueError, match="no more"):
        write_bytes(folder / "x", fails)
    assert files(folder) == {"x": b"old"}


WHOLE = ("open", "write", "fsync", "close", "replace", "open", "fsync", "close")  # the last three: of the folder
GROWING = ("open", "open", "fsync", "close", "ftruncate", "write", "fsync", "close")  # the second to the fourth


@pytest.mark.parametrize("k", range(len(WHOLE)))
def test_a_disk_that_refuses_any_call_is_named(folder: Path, k: int) -> None:
    (folder / "x").write_bytes(b"old")
    said = rf"^{folder}/x cannot be written to: No space left on device \(3 bytes needed, [\d,]+ free\)\. [A-Z].*\.$"
    with refusing(folder, k, errno.ENOSPC) as made, pytest.raises(DiskError, match=said) as refused:
        write_bytes(folder / "x", b"new")
    copy = pickle.loads(pickle.dumps(refused.value))  # as it comes from another process
    assert (str(copy), copy.errno) == (str(refused.value), errno.ENOSPC)
    assert made[: k + 1] == list(WHOLE[: k + 1])
    assert files(folder) == {"x": b"new" if k > WHOLE.index("replace") else b"old"}
    write_bytes(folder / "x", b"newer")
    assert files(folder) == {"x": b"newer"}


def grow(path: Path) -> None:
    file = Appended(path)
    try:
        file.cut(4)
        file.append(b"two\n")
        file.push()
    finally:
        file.close()


@pytest.mark.parametrize("k", range(len(GROWING)))
def test_a_disk_that_refuses_any_call_of_a_file_that_grows_is_named(folder: Path, k: int) -> None:
    (folder / "x").write_bytes(b"one\ntorn")
    said = f"^{folder}/x cannot be written to: {os.strerror(errno.EIO)}"
    with refusing(folder, k, errno.EIO) as made, pytest.raises(DiskError, match=said):
        grow(folder / "x")
    assert made[: k + 1] == list(GROWING[: k + 1])
    assert files(folder)["x"] in (b"one\ntorn", b"one\n", b"one\ntwo\n")
    grow(folder / "x")
    assert files(folder)["x"] == b"one\ntwo\n"


def test_a_file_where_a_folder_should_be(folder: Path) -> None:
    (folder / "x").touch()
    for place in (folder / "x" / "y", folder / "x"):
        with pytest.raises(DiskError, match=f"^{folder}/x cannot be written to: Not a directory.* name another folder"):
            check_folder(place)
    said = f"^{folder} cannot be written to: No space left"
    for k in range(4):  # to open, to write, to push, to close
        with refusing(folder, k, errno.ENOSPC), pytest.raises(DiskError, match=said):
            check_folder(folder)
    assert [*files(folder)] == ["x"]
    check_folder(folder / "a" / "b")
    assert files(folder / "a" / "b") == {}


# ---- names


def test_no_two_writers_share_a_name(folder: Path) -> None:
    # threads of one process, and processes with the same number on different machines
    names = {beside(folder / "x", "partial").name for _ in range(1_000)}
    assert len(names) == 1_000
    assert all(name.startswith(".x.") and f".{os.getpid()}." in name for name in names)
    contents = [bytes([i]) * 70_000 for i in range(24)]
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda content: write_bytes(folder / "x", content), contents))
    assert files(folder)["x"] in contents
    assert list(files(folder)) == ["x"]


def test_sweeping_spares_those_who_live(folder: Path) -> None:
    ours = beside(folder / "[a] *?ß.b", atomic.PARTIAL)
    theirs = ours.with_name(ours.name.replace(f".{os.getpid()}.", f".{ended_process()}."))
    far = theirs.with_name(theirs.name.replace(socket.gethostname(), "another.machine"))
    kept = {ours.name, far.name, "x.partial", ".hidden", ".partial", "step-1.safetensors"}
    for name in (*kept, theirs.name):
        (folder / name).touch()
    assert atomic.left_beside(folder / "[a] *?ß.b", atomic.PARTIAL) == [theirs]
    sweep(folder.parent, alone=False)
    assert set(files(folder)) == kept
    sweep(folder, alone=True)
    assert set(files(folder)) == kept - {ours.name, far.name}
    sweep(folder / "absent", alone=True)


# ---- contents


def test_text_is_written_as_it_stands_and_json_is_sorted_readable_and_strict(folder: Path) -> None:
    write_text(folder / "text", "ä\r\n\u2028b\n")
    assert files(folder)["text"] == b"\xc3\xa4\r\n\xe2\x80\xa8b\n"
    write_json(folder / "x", {"b": [1, 2.5, None], "a": "ß"})
    assert files(folder)["x"].decode() == '{\n "a": "ß",\n "b": [\n  1,\n  2.5,\n  null\n ]\n}\n'
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_json(folder / "x", {"a": math.nan})
    assert json.loads(files(folder)["x"])["a"] == "ß"


# ---- whose files these are


def test_an_ended_process_of_this_machine_is_dead_and_of_another_none_is(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = this_process() | {"pid": ended_process()}
    assert is_dead(ended)
    assert not is_dead(ended | {"host": "elsewhere"})
    assert not is_dead({})
    assert not is_dead(this_process())

    def not_yours(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "kill", not_yours)
    assert not is_dead(ended), "it is another user's"


def test_a_process_that_ended_and_that_nobody_asked_for_is_dead() -> None:
    if not (child := os.fork()):
        os._exit(0)
    os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
    try:
        assert is_dead(this_process() | {"pid": child}) == Path("/proc/self/stat").exists()
    finally:
        os.waitpid(child, 0)
