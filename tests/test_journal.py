"""The journal survives every kind of end."""

import os
import socket
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tracked_runs import strict

from repro.journal import DERIVED, FRAME, Journal, read


def values(line: dict[str, Any]) -> dict[str, float]:
    return {name: value for name, value in line.items() if name not in FRAME}


def test_a_line_is_in_the_file_when_append_returns(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "run" / "journal.jsonl")
    journal.append("train", 50, loss=5.5, nll=5.25)
    (line,) = read(tmp_path / "run" / "journal.jsonl")
    assert (line["kind"], line["step"], line["attempt"]) == ("train", 50, 1)
    assert values(line) == {"loss": 5.5, "nll": 5.25}
    journal.close()
    journal.close()


def test_a_torn_line_is_cut_and_earlier_lines_are_kept(tmp_path: Path) -> None:
    """K5: the file ends at any byte of its last two lines."""
    path = tmp_path / "journal.jsonl"
    with Journal(path) as journal:
        for step in (10, 20, 30):
            journal.append("dev", step, nll=step / 7)
    whole = path.read_bytes()
    first, second = (i + 1 for i, byte in enumerate(whole[:-1]) if byte == ord("\n"))
    for end in range(first, len(whole) + 1):
        path.write_bytes(whole[:end])
        kept = [10, 20, 30][: 1 + (end >= second) + (end == len(whole))]
        assert [line["step"] for line in read(path)] == kept
        with Journal(path) as journal:
            assert journal.attempt == 2
            journal.append("dev", 40, nll=4.0)
        assert [(line["step"], line["attempt"]) for line in read(path)] == [*((s, 1) for s in kept), (40, 2)]


def test_steps_repeated_after_a_crash_appear_once_and_the_last_attempt_wins(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    for attempt, steps in ((1, (10, 20, 30)), (2, (20, 30, 40)), (3, (30, 40, 50))):
        with Journal(path) as journal:
            assert journal.attempt == attempt
            for step in steps:
                journal.append("train", step, loss=step + attempt / 10)
                journal.append("dev", step, nll=attempt)
    train = [line for line in read(path) if line["kind"] == "train"]
    assert [(line["step"], line["loss"]) for line in train] == [
        (10, 10.1), (20, 20.2), (30, 30.3), (40, 40.3), (50, 50.3),
    ]  # fmt: skip
    assert [line["nll"] for line in read(path) if line["kind"] == "dev"] == [1, 2, 3, 3, 3]


@given(st.dictionaries(st.from_regex(r"[a-z][a-z0-9_]{0,9}", fullmatch=True), st.floats(), max_size=5))
def test_any_float_is_strict_json_and_reads_back(tmp_path_factory: pytest.TempPathFactory, drawn: Any) -> None:
    wanted = {name: value for name, value in drawn.items() if name not in FRAME + DERIVED}
    path = tmp_path_factory.mktemp("any") / "journal.jsonl"
    with Journal(path) as journal:
        journal.append("train", 1, **wanted)
    strict(path.read_bytes())
    (line,) = read(path)
    assert {k: repr(v) for k, v in values(line).items()} == {k: repr(v) for k, v in wanted.items()}


@pytest.mark.parametrize("name", ["a b", "", "ä", "a/b", "time", "attempt", "paper", "row"])
def test_a_name_that_mlflow_or_the_journal_needs_otherwise_is_refused(tmp_path: Path, name: str) -> None:
    with Journal(tmp_path / "journal.jsonl") as journal:
        with pytest.raises(ValueError, match="cannot name a metric"):
            journal.append("train", 1, **{name: 1.0})
        with pytest.raises(ValueError, match="cannot name a metric"):
            journal.append(name, 1, loss=1.0)
    assert read(tmp_path / "journal.jsonl") == []


def test_a_full_disk_leaves_no_half_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Journal(tmp_path / "journal.jsonl") as journal:
        journal.append("train", 1, loss=1.0)
        write = os.write
        with monkeypatch.context() as patch:
            patch.setattr(os, "write", lambda file, data: write(file, data[:9]))
            with pytest.raises(OSError, match="No space left"):
                journal.append("train", 2, loss=2.0)
        journal.append("train", 3, loss=3.0)
    assert [line["step"] for line in read(tmp_path / "journal.jsonl")] == [1, 3]


def test_a_journal_has_one_writer(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    with Journal(path), pytest.raises(BlockingIOError, match="same run is training"):
        Journal(path, patience=0.1)
    with Journal(path, patience=0.0):
        pass


def test_a_changed_line_is_named(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    with Journal(path) as journal:
        journal.append("train", 1, loss=1.0)
    for wrong in (b"oops", b"[]", b"{}", b"\0\0", b'{"kind":"a","step":1,"time":1,"attempt":1,"x":[]}'):
        path.write_bytes(path.read_bytes().split(b"\n")[0] + b"\n" + wrong + b"\n")
        with pytest.raises(ValueError, match=r"journal\.jsonl, line 2: expected"):
            read(path)


def test_appending_reaches_for_no_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "socket", None)
    monkeypatch.setattr(sqlite3, "connect", None)
    with Journal(tmp_path / "journal.jsonl") as journal:
        journal.append("train", 1, loss=1.0)
        journal.sync()
