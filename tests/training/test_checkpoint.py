"""Checkpoints: what goes in comes out, and what is not what went in is refused."""

import hashlib
import math
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import save_file
from torch import Tensor

from repro.durable import sweep
from repro.training import checkpoint
from repro.training.checkpoint import (
    CheckpointError,
    DamagedCheckpoint,
    SafetensorsIO,
    checkpoints,
    load,
    path_of,
    save,
    weights,
)

RUN = "0123456789abcdef"
STATE = {
    "epoch": 3,
    "rate": 1e-9,
    "name": "Grüße\n",
    "none": None,
    "flags": [True, False],
    "betas": (0.9, 0.98),
    "empty": [{}, [], ()],
    "state_dict": {
        "model.w": torch.arange(15.0).view(3, 5),
        "model.norm.b": torch.tensor([1.5, -2.5, 0.0], dtype=torch.bfloat16),
        "train_loss.value": torch.tensor(3.0, dtype=torch.float64),
    },
    "optimizer": {
        0: {"step": torch.tensor(7, dtype=torch.int64), "seen": torch.tensor([True, False])},
        11: {},
    },
    "nothing": torch.empty(0, 3),
    "turned": torch.arange(6).view(2, 3).T,  # not contiguous
}


def equal(a: Any, b: Any) -> bool:
    """The same values, types, order of keys; tensors to the bit."""
    if type(a) is not type(b):
        return False
    if isinstance(a, Tensor):
        return a.dtype == b.dtype and torch.equal(a, b)
    if isinstance(a, dict):
        return list(a) == list(b) and all(equal(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(equal(x, y) for x, y in zip(a, b, strict=True))
    return bool(a == b)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A good checkpoint."""
    save(path_of(tmp_path, 7), STATE, RUN)
    return path_of(tmp_path, 7)


def test_what_goes_in_comes_out(path: Path) -> None:
    assert equal(load(path, RUN), STATE)


keys = st.text("ab/1", max_size=3) | st.integers(0, 11) | st.tuples(st.integers(0, 1))
leaves = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
    | st.integers(0, 99).map(torch.tensor)
)


@given(st.recursive(leaves, lambda inner: st.lists(inner) | st.tuples(inner) | st.dictionaries(keys, inner)))
def test_any_nested_state_comes_out(tmp_path_factory: pytest.TempPathFactory, value: Any) -> None:
    # also where two places read alike: {1: x, "1": y}, {"a/b": x, "a": {"b": y}}
    path = tmp_path_factory.getbasetemp() / "any.safetensors"
    with mock.patch.object(os, "fsync"):  # the disk is slow, and not the question
        save(path, {"value": value}, RUN)
    assert equal(load(path, RUN), {"value": value})


def test_files_sort_by_step(tmp_path: Path) -> None:
    for step in (100_000, 9, 1_500):
        save(path_of(tmp_path, step), {}, RUN)
    (tmp_path / "step-000000003.damaged").touch()
    assert checkpoints(tmp_path) == [path_of(tmp_path, step) for step in (9, 1_500, 100_000)]
    assert checkpoints(tmp_path / "absent") == []


def test_weights_are_the_models_own(path: Path) -> None:
    assert equal(weights(path, RUN), {name: STATE["state_dict"][f"model.{name}"] for name in ("w", "norm.b")})


def test_lightnings_way_in_and_out(tmp_path: Path) -> None:
    io = SafetensorsIO(RUN)
    io.save_checkpoint(STATE, tmp_path / "x")
    assert equal(io.load_checkpoint(tmp_path / "x"), STATE)
    with pytest.raises(CheckpointError, match="expected run other"):
        SafetensorsIO("other").load_checkpoint(tmp_path / "x")
    io.remove_checkpoint(tmp_path / "x")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ({1, 2}, "set"),
        (b"bytes", "bytes"),
        (1j, "complex"),
        (Path("x"), "PosixPath"),
        (torch.float32, "dtype"),
        (print, "builtin_function_or_method"),
    ],
)
def test_what_is_not_plain_is_refused(tmp_path: Path, value: Any, kind: str) -> None:
    for state in ({"a": [value]}, {"a": {value if kind != "set" else frozenset(value): 0}}):
        with pytest.raises(CheckpointError, match=rf"plain values and tensors only; /a/.* is a (frozen)?{kind}"):
            save(tmp_path / "x", state, RUN)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_numbers_that_json_lacks_are_refused(tmp_path: Path, value: float) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        save(tmp_path / "x", {"a": value}, RUN)
    assert list(tmp_path.iterdir()) == []


def test_no_pickle(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: Any, **named: Any) -> None:
        raise AssertionError("a pickle was read or written")

    for name in ("load", "loads", "dump", "dumps", "Pickler", "Unpickler"):
        monkeypatch.setattr(f"pickle.{name}", refuse)
    monkeypatch.setattr("torch.load", refuse)
    monkeypatch.setattr("torch.save", refuse)
    save(path, STATE, RUN)
    load(path, RUN)


# What is wrong is said: a file that is not what was written, of another run, of another format.


def test_every_flipped_bit_is_found(path: Path) -> None:
    good, chance = path.read_bytes(), random.Random(0)
    header = 8 + int.from_bytes(good[:8], "little")
    offsets = [*range(8), header - 1, header, len(good) - 1]
    offsets += [chance.randrange(header) for _ in range(150)]
    offsets += [chance.randrange(header, len(good)) for _ in range(50)]
    for offset in offsets:
        bad = bytearray(good)
        bad[offset] ^= 1 << chance.randrange(8)
        path.write_bytes(bad)
        with pytest.raises(CheckpointError):
            load(path, RUN)


def test_every_truncation_is_found(path: Path) -> None:
    good = path.read_bytes()
    for length in {*range(16), *range(16, len(good), 23), len(good) - 1}:
        path.write_bytes(good[:length])
        with pytest.raises(DamagedCheckpoint, match="no readable checkpoint"):
            load(path, RUN)
    path.write_bytes(good + b"\0")
    with pytest.raises(DamagedCheckpoint):
        load(path, RUN)


@pytest.mark.parametrize("content", [b"", b"\x80\x04K\x01.", b"\0" * 1_000, b"<html>404</html>"])
def test_another_kind_of_file_is_refused(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    with pytest.raises(DamagedCheckpoint, match=r"step-000000007.* Delete it to go on from the one before"):
        load(path, RUN)


def test_a_file_that_is_absent_is_named(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"step-000000007\.safetensors"):
        load(path_of(tmp_path, 7), RUN)


def test_another_runs_checkpoint_is_refused(path: Path) -> None:
    with pytest.raises(CheckpointError, match=f"of run {RUN}, expected run other: .* Move it back") as caught:
        load(path, "other")
    assert not isinstance(caught.value, DamagedCheckpoint)  # it is whole: going on from the one before is wrong


def test_another_format_is_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoint, "FORMAT", "2")
    with pytest.raises(CheckpointError, match="has checkpoint format 1, expected 2") as caught:
        load(path, RUN)
    assert not isinstance(caught.value, DamagedCheckpoint)
    save_file({"w": torch.ones(1)}, path)  # somebody else's safetensors
    with pytest.raises(CheckpointError, match="has checkpoint format None, expected 2"):
        load(path, RUN)


def test_the_payload_of_another_checkpoint_is_refused(path: Path, tmp_path: Path) -> None:
    # same shapes, so nothing but the SHA-256 can tell
    other = tmp_path / "other"
    save(other, STATE | {"state_dict": {name: 2 * x for name, x in STATE["state_dict"].items()}}, RUN)
    good, bad = path.read_bytes(), other.read_bytes()
    assert len(good) == len(bad)
    header = 8 + int.from_bytes(good[:8], "little")
    path.write_bytes(good[:header] + bad[header:])
    with pytest.raises(DamagedCheckpoint, match="SHA-256"):
        load(path, RUN)


# A crash while writing: the old file or the new one, never half of one.


class Crash(BaseException):
    """The process dies here: it runs no more code, so it tidies nothing up."""


def crash_at(monkeypatch: pytest.MonkeyPatch, k: int) -> Callable[[], int]:
    """Die at the k-th call of `os.fsync` or `os.replace`, before it acts; gives the number of calls so far."""
    calls = 0

    def counted(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            nonlocal calls
            calls += 1
            if calls == k:
                monkeypatch.setattr(Path, "unlink", lambda *_, **__: None)
                raise Crash
            return function(*arguments)

        return call

    monkeypatch.setattr(os, "fsync", counted(os.fsync))
    monkeypatch.setattr(os, "replace", counted(os.replace))
    return lambda: calls


@pytest.mark.parametrize("k", [1, 2, 3])
def test_a_crash_while_writing_leaves_a_good_file(path: Path, monkeypatch: pytest.MonkeyPatch, k: int) -> None:
    new = STATE | {"epoch": 4}
    with monkeypatch.context() as patch:
        crash_at(patch, k)
        with pytest.raises(Crash):
            save(path, new, RUN)
    assert equal(load(path, RUN), new if k == 3 else STATE)  # 1: file to disk, 2: its name, 3: the name to disk
    sweep(path.parent)
    assert list(path.parent.iterdir()) == [path]


def test_there_is_no_other_crash_point(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = crash_at(monkeypatch, k=-1)
    save(path, STATE, RUN)
    assert calls() == 3


def test_a_full_disk_costs_nothing_old(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = hashlib.sha256(path.read_bytes()).digest()

    def half(tensors: dict[str, Tensor], partial: Path, metadata: dict[str, str]) -> None:
        partial.write_bytes(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(checkpoint, "save_file", half)
    with pytest.raises(OSError, match="No space left"):
        save(path, STATE, RUN)
    assert hashlib.sha256(path.read_bytes()).digest() == before
    assert list(path.parent.iterdir()) == [path]
