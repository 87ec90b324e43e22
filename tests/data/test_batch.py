"""A batch holds the tokens of its sentences, padded, and the target shifted right by one."""

import itertools
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from lightning.fabric.utilities import move_data_to_device
from model.samples import encoded
from torch.utils.data._utils.pin_memory import pin_memory

from repro.data.batch import Batch, make_batch
from repro.model.masks import Ragged
from repro.model.special_tokens import EOS, PAD

SOURCE = encoded([[5, 6, 7], [], [60_000], [8, 9]])
TARGET = encoded([[11], [12, 13], [14, 15, 16], [17, 18]])

Pairs = list[tuple[list[int], list[int]]]
token = st.integers(2, 2**16 - 1)
sides = st.lists(st.tuples(st.lists(token, max_size=9), st.lists(token, max_size=9)), min_size=1, max_size=12)


def test_a_batch_made_by_hand() -> None:
    batch = make_batch(SOURCE, TARGET, np.array([3, 0, 2]), n_update=23, micro=1, step=7)
    assert batch.sentence.tolist() == [3, 0, 2]
    assert batch.source.tolist() == [[8, 9, EOS, PAD], [5, 6, 7, EOS], [60_000, EOS, PAD, PAD]]
    assert batch.target.tolist() == [[17, 18, EOS, PAD], [11, EOS, PAD, PAD], [14, 15, 16, EOS]]
    assert batch.decoder_in.tolist() == [[PAD, 17, 18, EOS], [PAD, 11, EOS, PAD], [PAD, 14, 15, 16]]
    assert (batch.n_source, batch.n_target, batch.slots) == (3 + 4 + 2, 3 + 2 + 4, 24)
    assert (batch.n_update, batch.micro, batch.step) == (23, 1, 7)


def test_an_empty_share_is_one_row_of_padding() -> None:
    batch = make_batch(SOURCE, TARGET, np.array([], dtype=np.int64), n_update=23)
    assert batch.sentence.tolist() == [-1]
    for ids in (batch.source, batch.decoder_in, batch.target):
        assert ids.tolist() == [[PAD]]
        assert ids.dtype == torch.int64
    assert (batch.n_source, batch.n_target, batch.n_update) == (0, 0, 23)


@given(sides)
def test_what_is_read_is_what_came_before(pairs: Pairs) -> None:
    source, target = (encoded(side) for side in zip(*pairs, strict=True))
    batch = make_batch(source, target, np.arange(len(pairs)), n_update=1)
    assert (batch.decoder_in[:, 0] == PAD).all()
    assert torch.equal(batch.decoder_in[:, 1:], batch.target[:, :-1])
    assert batch.decoder_in.shape == batch.target.shape


def same(one: Batch, other: Batch) -> bool:
    return all(
        torch.equal(a, b) if isinstance(a, torch.Tensor) else a == b
        for a, b in zip(vars(one).values(), vars(other).values(), strict=True)
    )


def test_the_loader_pins_a_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    # pinning needs an accelerator: count the calls instead
    calls = itertools.count()
    monkeypatch.setattr(torch.Tensor, "pin_memory", lambda tensor: (next(calls), tensor.clone())[1])
    batch = make_batch(SOURCE, TARGET, np.array([3, 0, 2]), n_update=23, micro=1, step=7)
    assert same(pin_memory(batch), batch)
    assert next(calls) == 3


class Noted:
    """A side of a batch that notes how it is moved."""

    def __init__(self) -> None:
        self.moved: list[tuple[Any, bool]] = []

    def to(self, device: Any, non_blocking: bool = False) -> "Noted":
        self.moved.append((device, non_blocking))
        return self


@pytest.mark.parametrize(("device", "at_once"), [("cuda:1", True), ("cpu", False)])
def test_lightning_sends_a_batch_to_a_gpu_without_waiting_for_it(device: str, at_once: bool) -> None:
    sides: Any = {name: Noted() for name in ("source", "decoder_in", "target")}
    numbers = {"n_source": 9, "n_target": 8, "n_update": 23, "micro": 1, "step": 7}
    moved = move_data_to_device(Batch(torch.tensor([3]), **sides, **numbers), torch.device(device))
    assert [side.moved for side in sides.values()] == [[(torch.device(device), at_once)]] * 3
    assert moved.sentence.device.type == "cpu"  # messages read it
    assert {name: getattr(moved, name) for name in numbers} == numbers


def test_what_two_sides_share_is_moved_once() -> None:
    moved = make_batch(SOURCE, TARGET, np.arange(2), n_update=5, packed=True).to("meta")
    assert isinstance(moved.decoder_in, Ragged)
    assert isinstance(moved.target, Ragged)
    assert moved.decoder_in.ends is moved.target.ends
    assert moved.decoder_in.position is moved.target.position
    assert moved.decoder_in.ids is not moved.target.ids
    assert all(part.is_meta for part in (moved.target.ids, moved.target.position, moved.target.ends))
