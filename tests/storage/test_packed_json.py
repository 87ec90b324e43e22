"""Small tables in packed files."""

import tracemalloc
from pathlib import Path

import pytest

from repro.storage import packed_json
from repro.storage.packed_json import packed, read_packed, unpacked, write_packed


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
    monkeypatch.setattr(packed_json, "MOST", 5_000_000)
    (tmp_path / "x.gz").write_bytes(packed(bytes(5_000_000)))
    assert len(unpacked(tmp_path / "x.gz")) == 5_000_000
    (tmp_path / "x.gz").write_bytes(packed(bytes(5_000_001)))
    with pytest.raises(ValueError, match="x.gz holds more than 5,000,000 bytes"):
        unpacked(tmp_path / "x.gz")


def test_what_was_written_is_read_and_what_was_changed_is_not(tmp_path: Path) -> None:
    write_packed(tmp_path / "x.gz", {"format": 1, "a": [1, 2]})
    assert read_packed(tmp_path / "x.gz", 1) == {"format": 1, "a": [1, 2]}
    good = (tmp_path / "x.gz").read_bytes()
    (tmp_path / "x.gz").write_bytes(good[:-1])
    with pytest.raises(ValueError, match="x.gz is damaged"):
        read_packed(tmp_path / "x.gz", 1)
