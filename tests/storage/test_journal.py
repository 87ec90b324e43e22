"""The journal survives every kind of end."""

import itertools
import math
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tracked_runs import strict

from repro.storage.journal import FRAME, Journal, encoded, read


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
    text = (tmp_path / "run" / "journal.jsonl").read_bytes()
    head, rest = text[:22], text[22:]
    assert rest.endswith(b', "attempt": 1, "loss": 5.5, "nll": 5.25}\n')
    assert head == b'{"crc32": "%08x", ' % zlib.crc32(rest[:-1])


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


names = st.from_regex(r"[a-z][a-z0-9_]{0,9}", fullmatch=True).filter(lambda name: name not in (*FRAME, "crc32"))
numbers = st.floats() | st.integers(-(2**1023), 2**1023) | st.floats(width=32).map(np.float32) | st.booleans()


@given(drawn=st.dictionaries(names, numbers, max_size=5), step=st.integers(-(2**63), 2**63 - 1))
def test_any_number_is_strict_json_and_reads_back(drawn: Any, step: int) -> None:
    """V4: NaN, infinities, other kinds of numbers."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "journal.jsonl"
        with Journal(path) as journal:
            journal.append("train", step, **drawn)
        strict(path.read_bytes())
        (line,) = read(path)
    assert line["step"] == step
    assert {k: repr(v) for k, v in values(line).items()} == {k: repr(float(v)) for k, v in drawn.items()}


def test_a_journal_has_one_writer(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    with Journal(path), pytest.raises(BlockingIOError, match="same run is training"):
        Journal(path, patience=0.1)
    with Journal(path, patience=0.0):
        pass


def flips(whole: bytes) -> Iterator[bytes]:
    for i in range(8 * len(whole)):
        flipped = bytearray(whole)
        flipped[i // 8] ^= 1 << i % 8
        yield bytes(flipped)


def test_each_flipped_bit_is_noticed(tmp_path: Path) -> None:
    """Of a number that is another number too, of a step, of a sign, of the checksum, of a line's end."""
    path = tmp_path / "journal.jsonl"
    frames = ({"kind": "train", "step": step, "time": 1.5, "attempt": 1, "loss": 5.25} for step in itertools.count())
    # a checksum that is a number as well: without its name it would be a measured value
    path.write_bytes(encoded(next(frame for frame in frames if encoded(frame)[11:19].isdigit())))
    with Journal(path) as journal:
        journal.append("train", 400, loss=math.nan, nll=-1e-07)
        journal.append("dev", 400, nll=3.5)
    whole, n = path.read_bytes(), 0
    for flipped in flips(whole):
        path.write_bytes(flipped)
        if flipped[:-1] == whole[:-1]:  # of the last line's end: a torn line, whose step is made again
            assert len(read(path)) == 2
            continue
        with pytest.raises(ValueError, match=r"journal\.jsonl, line [123]: expected an object of numbers .* checksum"):
            read(path)
        n += 1
    assert n == 8 * (len(whole) - 1) > 2_000
    path.write_bytes(flipped := whole.replace(b"5.25", b"5.20"))
    with pytest.raises(ValueError, match=r"journal\.jsonl, line 1: expected"), Journal(path):
        pass
    assert path.read_bytes() == flipped  # nothing is cut that is not torn
