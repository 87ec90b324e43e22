"""Durable writes: at every point of a crash a file is absent, the old one or the new one."""

import json
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from repro import durable
from repro.durable import replacing, sweep, write_bytes, write_json, write_text


class Crash(BaseException):
    """The process dies here: it runs no more code, so it tidies nothing up."""


class Process:
    """Counts the calls that reach the disk, and dies at the k-th, before or after it acts."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, k: int = 0, after: bool = False) -> None:
        self.monkeypatch, self.k, self.after = monkeypatch, k, after
        self.calls: list[str] = []
        for name in ("open", "fsync", "replace"):
            monkeypatch.setattr(os, name, self._counted(name, getattr(os, name)))

    def _counted(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            self.calls.append(name)
            if len(self.calls) == self.k and not self.after:
                self._die()
            result = function(*arguments, **named)
            if len(self.calls) == self.k:
                self._die()
            return result

        return call

    def _die(self) -> None:
        self.monkeypatch.setattr(Path, "unlink", lambda *_, **__: None)
        raise Crash


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_the_bytes_are_on_the_disk_before_they_take_the_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    process = Process(monkeypatch)
    write_bytes(tmp_path / "x", b"new")
    assert process.calls == ["fsync", "replace", "open", "fsync"]  # the last two: the folder


@pytest.mark.parametrize("before", [{}, {"x": b"old"}], ids=["first", "again"])
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("k", [1, 2, 3, 4])
def test_a_crash_at_each_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: dict[str, bytes], after: bool, k: int
) -> None:
    for name, content in before.items():
        (tmp_path / name).write_bytes(content)
    with monkeypatch.context() as patch:
        Process(patch, k, after)
        with pytest.raises(Crash):
            write_bytes(tmp_path / "x", b"new")
    sweep(tmp_path)
    took_the_name = k > 2 or (k == 2 and after)
    assert files(tmp_path) == ({"x": b"new"} if took_the_name else before)


def test_a_crash_halfway_through_the_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "x").write_bytes(b"old")

    def half(file: BinaryIO) -> None:
        file.write(b"ne")
        raise Crash

    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", lambda *_, **__: None)
        with pytest.raises(Crash):
            write_bytes(tmp_path / "x", half)
    (partial,) = files(tmp_path).keys() - {"x"}
    assert partial.startswith(".")  # no listing by pattern takes it for a file of ours
    assert partial.endswith(durable.PARTIAL)
    sweep(tmp_path)
    assert files(tmp_path) == {"x": b"old"}


def test_an_error_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    write_bytes(tmp_path / "x", b"old")

    def fails(file: BinaryIO) -> None:
        file.write(b"ne")
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space left"):
        write_bytes(tmp_path / "x", fails)
    assert files(tmp_path) == {"x": b"old"}


def test_a_writer_that_writes_nothing_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), replacing(tmp_path / "x"):
        pass
    assert files(tmp_path) == {}


def test_the_partial_file_is_in_the_same_folder(tmp_path: Path) -> None:
    # a rename within a folder is one step; across file systems it is a copy that can break off
    with replacing(tmp_path / "x") as partial:
        assert partial.parent == tmp_path
        partial.write_bytes(b"new")
    assert files(tmp_path) == {"x": b"new"}


def test_folders_are_made(tmp_path: Path) -> None:
    write_text(tmp_path / "a" / "b" / "x", "new")
    assert files(tmp_path / "a" / "b") == {"x": b"new"}


def test_text_is_written_as_it_stands(tmp_path: Path) -> None:
    write_text(tmp_path / "x", "ä\r\n\u2028b\n")
    assert files(tmp_path) == {"x": b"\xc3\xa4\r\n\xe2\x80\xa8b\n"}


def test_json_is_sorted_readable_and_strict(tmp_path: Path) -> None:
    write_json(tmp_path / "x", {"b": [1, 2.5, None], "a": "ß"})
    assert files(tmp_path)["x"].decode() == '{\n "a": "ß",\n "b": [\n  1,\n  2.5,\n  null\n ]\n}\n'
    for value in (math.nan, math.inf):
        with pytest.raises(ValueError, match="not JSON compliant"):
            write_json(tmp_path / "x", {"a": value})
    assert json.loads(files(tmp_path)["x"])["a"] == "ß"


def test_sweeping_takes_partial_files_only(tmp_path: Path) -> None:
    for name in (".x.17.partial", "x.partial", ".hidden", "step-1.safetensors"):
        (tmp_path / name).write_bytes(b"")
    sweep(tmp_path)
    assert set(files(tmp_path)) == {"x.partial", ".hidden", "step-1.safetensors"}
    sweep(tmp_path / "absent")


@pytest.mark.skipif(os.geteuid() == 0, reason="for root no folder is read-only")
def test_a_folder_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    tmp_path.chmod(0o555)
    try:
        with pytest.raises(PermissionError):
            write_bytes(tmp_path / "x", b"new")
    finally:
        tmp_path.chmod(0o755)
