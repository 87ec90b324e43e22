"""Packed bytes: no more memory than they need, and no bomb."""

import tracemalloc
from pathlib import Path

import pytest

from repro.storage import packed as storage
from repro.storage.packed import packed, unpacked


def test_a_small_file_takes_little_memory(tmp_path: Path) -> None:
    # under a limit of memory (ulimit -v) a sweep ended for one of these files, which it can do without
    (tmp_path / "x.gz").write_bytes(packed(b"x" * 78_000))
    tracemalloc.start()
    try:
        assert unpacked(tmp_path / "x.gz") == b"x" * 78_000
        assert tracemalloc.get_traced_memory()[1] < 4_000_000
    finally:
        tracemalloc.stop()


def test_a_bomb_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storage, "MOST", 5_000_000)
    (tmp_path / "x.gz").write_bytes(packed(bytes(5_000_000)))
    assert len(unpacked(tmp_path / "x.gz")) == 5_000_000
    (tmp_path / "x.gz").write_bytes(packed(bytes(5_000_001)))
    with pytest.raises(ValueError, match="x.gz holds more than 5,000,000 bytes"):
        unpacked(tmp_path / "x.gz")


def test_what_was_cut_is_named(tmp_path: Path) -> None:
    (tmp_path / "x.gz").write_bytes(packed(b"abc")[:-1])
    with pytest.raises(ValueError, match="x.gz is damaged"):
        unpacked(tmp_path / "x.gz")
