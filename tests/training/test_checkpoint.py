"""Checkpoints: what goes in comes out, and what is not what went in is refused."""

import errno
import hashlib
import json
import math
import os
import random
import re
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import torch
from faults.disk import Disk
from hypothesis import example, given
from hypothesis import strategies as st
from safetensors.torch import save as in_bytes
from torch import Tensor

from repro.training import checkpoint
from repro.training.checkpoint import CheckpointError, DamagedCheckpoint, average, load, path_of, save, weights
from repro.training.cpu_tuning import PeakMemory
from repro.training.loop import SafetensorsIO

RUN = "0123456789abcdef"
GOLDEN = Path(__file__).parent / "golden"
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
    "optimizer": {0: {"step": torch.tensor(7, dtype=torch.int64), "seen": torch.tensor([True, False])}, 11: {}},
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
    assert equal(weights(path, RUN), {name: STATE["state_dict"][f"model.{name}"] for name in ("w", "norm.b")})


def test_each_type_of_numbers_comes_out(tmp_path: Path) -> None:
    floats = (torch.float64, torch.float32, torch.float16, torch.bfloat16)
    whole = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool)
    state = {str(dtype): torch.tensor([0, 1, 1], dtype=dtype) for dtype in (*floats, *whole)}
    save(tmp_path / "x", state, RUN)
    assert equal(load(tmp_path / "x", RUN), state)


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
@example(value={1: torch.tensor(1), "1": torch.tensor(2), "a/b": torch.tensor(3), "a": {"b": torch.tensor(4)}})
def test_any_nested_state_comes_out(tmp_path_factory: pytest.TempPathFactory, value: Any) -> None:
    # also where two places read alike
    path = tmp_path_factory.getbasetemp() / "any.safetensors"
    with mock.patch.object(os, "fsync"):  # the disk is slow, and not the question
        save(path, {"value": value}, RUN)
    assert equal(load(path, RUN), {"value": value})


def test_files_sort_by_step(tmp_path: Path) -> None:
    for step in (100_000, 9, 1_500):
        save(path_of(tmp_path, step), {}, RUN)
    (tmp_path / "step-000000003.damaged").touch()
    assert checkpoint.checkpoints(tmp_path) == [path_of(tmp_path, step) for step in (9, 1_500, 100_000)]
    assert checkpoint.checkpoints(tmp_path / "absent") == []


def test_lightnings_way_in_and_out(tmp_path: Path) -> None:
    io = SafetensorsIO(RUN)
    state = STATE | {"optimizer_states": [], "loops": {}, "global_step": 7}
    io.save_checkpoint(state, tmp_path / "x")
    assert equal(io.load_checkpoint(tmp_path / "x"), state)
    with pytest.raises(CheckpointError, match="expected run other"):
        SafetensorsIO("other").load_checkpoint(tmp_path / "x")
    io.remove_checkpoint(tmp_path / "x")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("value", "kind"), [(frozenset({1}), "frozenset"), (torch.float32, "dtype")])
def test_what_is_not_plain_is_refused(tmp_path: Path, value: Any, kind: str) -> None:
    for state in ({"a": [value]}, {"a": {value: 0}}):
        with pytest.raises(CheckpointError, match=rf"plain values and tensors only; /a/.* is a {kind}"):
            save(tmp_path / "x", state, RUN)
    with pytest.raises(ValueError, match="not JSON compliant"):
        save(tmp_path / "x", {"a": math.nan}, RUN)
    assert list(tmp_path.iterdir()) == []


# What is wrong is said: a file that is not what was written, of another run, of another format.


def test_a_thousand_flipped_bytes_are_all_found(path: Path) -> None:
    good, chance = path.read_bytes(), random.Random(0)
    header = 8 + int.from_bytes(good[:8], "little")
    places = [*range(8), header - 1, header, len(good) - 33, len(good) - 32, len(good) - 1]
    places += [chance.randrange(header) for _ in range(500)]
    places += [chance.randrange(header, len(good)) for _ in range(1_000 - len(places))]
    for place in places:
        bad = bytearray(good)
        bad[place] ^= chance.randrange(1, 256)
        path.write_bytes(bad)
        with pytest.raises(DamagedCheckpoint):
            load(path, RUN)
    others = b"\x80\x04K\x01.", b"\0" * 1_000, in_bytes({"w": torch.ones(1)})  # a pickle, nothing, no digest
    for bad in (*(good[:length] for length in range(0, len(good), 97)), good[:-1], good + b"\0", *others):
        path.write_bytes(bad)
        with pytest.raises(DamagedCheckpoint, match=r"step-000000007.* Delete it, and the run goes on from the one"):
            load(path, RUN)


def forged(path: Path, about: dict[str, str]) -> None:
    """A file with its right digest at the end and these words at its head."""
    header = json.dumps({
        "__metadata__": about, "w": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]},
        "sha256": {"dtype": "U8", "shape": [32], "data_offsets": [1, 33]},
    }).encode()  # fmt: skip
    content = len(header).to_bytes(8, "little") + header + b"x"
    path.write_bytes(content + hashlib.sha256(content).digest())


@pytest.mark.parametrize("state", [None, '{"dict": []}', '{"tensor": "v"}', '{"set": []}', "[" * 100_000])
def test_what_is_no_checkpoint_is_named_though_its_digest_is_right(path: Path, state: str | None) -> None:
    forged(path, {"format": checkpoint.FORMAT, "run": RUN} | ({} if state is None else {"state": state}))
    with pytest.raises(CheckpointError, match=r"^.*step-000000007\.safetensors has the SHA-256 .* Delete it"):
        weights(path, RUN)
    with pytest.raises(CheckpointError, match=r"^.*step-000000007\.safetensors has the SHA-256 .* Delete it"):
        SafetensorsIO(RUN).load_checkpoint(path)
    forged(path, {})
    with pytest.raises(CheckpointError, match="has checkpoint format None"):
        load(path, RUN)
    forged(path, {"format": checkpoint.FORMAT})
    with pytest.raises(CheckpointError, match="is a checkpoint of run None"):
        load(path, RUN)


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_what_is_no_file_is_not_waited_for(path: Path, make: Any) -> None:
    make(path_of(path.parent, 8))
    with pytest.raises(DamagedCheckpoint, match="step-000000008.safetensors is no file"):
        load(path_of(path.parent, 8), RUN)
    checkpoint.prune(path.parent, keep=())
    assert checkpoint.newest_whole(path.parent, RUN) == path


def test_another_runs_checkpoint_is_refused(path: Path) -> None:
    with pytest.raises(CheckpointError, match=f"of run {RUN}, expected run other: .* Move it back") as caught:
        load(path, "other")
    assert not isinstance(caught.value, DamagedCheckpoint)  # it is whole: going on from the one before is wrong


def test_the_format_reads_what_it_once_wrote() -> None:
    # written when the format was new: whoever changes what a file holds changes FORMAT too
    assert equal(load(GOLDEN / f"format-{checkpoint.FORMAT}.safetensors", RUN), STATE)


@pytest.mark.parametrize(("why", "is_damage"), [(errno.ESTALE, False), (errno.EIO, True)])
def test_what_cannot_be_opened_now_is_not_damaged(
    path: Path, monkeypatch: pytest.MonkeyPatch, why: int, is_damage: bool
) -> None:
    def refused(*of: object, **how: object) -> Any:
        raise OSError(why, os.strerror(why), str(path))

    save(path_of(path.parent, 5), STATE, RUN)
    monkeypatch.setattr(checkpoint, "safe_open", refused)
    with pytest.raises(DamagedCheckpoint if is_damage else OSError, match=re.escape(os.strerror(why))) as caught:
        load(path, RUN)
    assert isinstance(caught.value, CheckpointError) == is_damage
    if not is_damage:
        with pytest.raises(OSError, match=re.escape(os.strerror(why))):
            checkpoint.newest_whole(path.parent, RUN)
        assert path.exists()
        monkeypatch.undo()
        assert checkpoint.newest_whole(path.parent, RUN) == path


def test_another_format_is_refused_and_is_not_damage(path: Path) -> None:
    changed = path.read_bytes()[:-32].replace(b'"format": "3"', b'"format": "4"')
    path.write_bytes(changed + hashlib.sha256(changed).digest())
    for read in (load, weights):
        with pytest.raises(CheckpointError, match="has checkpoint format 4, expected 3: another version") as caught:
            read(path, RUN)
    assert not isinstance(caught.value, DamagedCheckpoint)
    with pytest.raises(CheckpointError, match="has checkpoint format 4"):  # going on from the one before is wrong
        checkpoint.newest_whole(path.parent, RUN)


# A crash while writing (tests/faults/test_crashes.py has any call of it); and never fewer than two that are whole.


def test_a_save_that_a_crash_undid_is_made_again(tmp_path: Path) -> None:
    with Disk(tmp_path).watching() as disk:
        save(path_of(tmp_path, 1), STATE, RUN)
    _, end = disk.moments[-1]
    assert all(list(left) == [path_of(tmp_path, 1).name] for left in end.power_lost()), "it had returned"


@pytest.mark.parametrize(
    ("damaged", "kept"), [([], [4, 5]), ([5], [3, 4, 5]), ([4, 5], [2, 3, 4, 5]), ([1, 3, 4, 5], [2, 3, 4, 5])]
)
def test_two_whole_checkpoints_are_always_kept(tmp_path: Path, damaged: list[int], kept: list[int]) -> None:
    for step in range(1, 6):
        save(path_of(tmp_path, step), {"epoch": step, "w": torch.ones(5)}, RUN)
    for step in damaged:
        bad = bytearray(path_of(tmp_path, step).read_bytes())
        bad[-40] ^= 1
        path_of(tmp_path, step).write_bytes(bad)
    for _ in range(2):  # what was found damaged is so the second time as well
        checkpoint.prune(tmp_path, keep=[1])
    assert [checkpoint.step_of(path) for path in checkpoint.checkpoints(tmp_path)] == [1, *kept]


@pytest.mark.skipif(
    not Path("/proc/self/clear_refs").exists(), reason="only Linux tells the highest use of memory since"
)
def test_saving_holds_no_second_copy(tmp_path: Path) -> None:
    state = {str(i): torch.full((1_000_000,), float(i)) for i in range(24)}  # 4 MB each
    state["turned"] = torch.ones(1_000, 1_000).T
    memory = PeakMemory()
    before = memory.bytes() or 0
    save(path_of(tmp_path, 1), state, RUN)
    assert (memory.bytes() or 0) - before < 12e6  # one tensor that is not contiguous, and what hashing takes


# The mean of checkpoints


def states(n: int) -> list[dict[str, Tensor]]:
    generator = torch.Generator().manual_seed(0)
    shapes = {"matrix": (3, 5), "bias": (7,), "scalar": ()}

    def one() -> dict[str, Tensor]:
        return {name: torch.randn(shape, generator=generator) for name, shape in shapes.items()}

    return [one() for _ in range(n)]


@pytest.mark.parametrize("n", [1, 5])
def test_it_is_the_mean_tensor_by_tensor(n: int) -> None:
    many, before = states(n), states(n)
    found = average(iter(many))
    assert found.keys() == many[0].keys()
    for name, tensor in found.items():
        exact = torch.stack([state[name].double() for state in many]).mean(0)
        assert torch.equal(tensor, exact.float())
    assert all(torch.equal(a[name], b[name]) for a, b in zip(many, before, strict=True) for name in a)


def test_the_sum_is_kept_in_float64_and_each_tensor_in_its_type() -> None:
    # 2^24 + 1 does not exist in float32: a float32 sum would lose both ones
    found = average([{"w": torch.tensor(x)} for x in (2.0**24, 1.0, 1.0, -(2.0**24))])
    assert found["w"].item() == 0.5
    kinds = {str(kind): torch.ones(3, dtype=kind) for kind in (torch.float64, torch.float32, torch.bfloat16)}
    assert {name: str(mean.dtype) for name, mean in average([kinds] * 2).items()} == {name: name for name in kinds}


@pytest.mark.parametrize(
    ("many", "said"),
    [
        ([{"w": torch.ones(1)}, {"odd": torch.ones(1)}], r"Checkpoint 2 .* other weights than the first: odd, w\."),
        ([{"w": torch.zeros(3)}, {"w": torch.ones(1)}], r"2 .* another shape of w .*: expected \[3\], got \[1\]"),
        ([], "expected at least one checkpoint, got none"),
    ],
    ids=["weights", "shapes", "none"],
)
def test_what_has_no_mean_is_refused(many: list[dict[str, Tensor]], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        average(many)


def write(folder: Path, many: list[dict[str, Tensor]]) -> range:
    """Checkpoints three updates apart, the last after update 30; returns after which updates."""
    steps = range(33 - 3 * len(many), 31, 3)
    for step, state in zip(steps, many, strict=True):
        others = {"train_loss.total": torch.tensor(step)}
        save(path_of(folder, step), {"state_dict": {f"model.{k}": v for k, v in state.items()} | others}, RUN)
    return steps


def test_the_mean_of_the_last_leaves_damaged_ones_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    many = states(10)
    steps = write(tmp_path, many)
    assert checkpoint.last_mean(tmp_path, RUN, steps)[0] == [*steps]
    for gone in steps[:6]:
        path_of(tmp_path, gone).unlink()
    damaged = path_of(tmp_path, steps[7])
    damaged.write_bytes(damaged.read_bytes()[:-1] + b"?")
    found, mean = checkpoint.last_mean(tmp_path, RUN, steps)
    assert found == [steps[6], steps[8], steps[9]]
    assert all(torch.equal(mean[name], x) for name, x in average([many[6], many[8], many[9]]).items())
    assert f"{damaged} is damaged" in capsys.readouterr().out


def test_the_checkpoints_that_a_row_names_are_averaged(tmp_path: Path) -> None:
    many = states(3)
    steps = write(tmp_path, many)
    mean = checkpoint.averaged(tmp_path, RUN, steps[1:])
    assert all(torch.equal(mean[name], x) for name, x in average(many[1:]).items())
    with pytest.raises(ValueError, match=r"averages 4 checkpoints, but .* lacks step-000000033\S+, step-000000036"):
        checkpoint.averaged(tmp_path, RUN, range(27, 37, 3))
