"""Accuracy is the share of target tokens that the model would have written itself, given those before them.

Targets here are what the model writes greedily, but for every third token: that one and some after it are others.
"""

import copy
from collections.abc import Sequence

import numpy as np
import pytest
import torch
from decoding.conftest import V, decode
from torch import Tensor

from repro.data.batch import Batch, make_batch
from repro.data.shards import Encoded
from repro.decoding.search import Search
from repro.decoding.translate import score_tokens, translate
from repro.model.ragged import Ragged
from repro.model.special_tokens import EOS, PAD
from repro.model.transformer import Transformer

N = 30
Sides = tuple[Encoded, Encoded]


@pytest.fixture(scope="module")
def exact(model: Transformer) -> Transformer:
    """In float64, so that no order of sums decides which token is the most probable."""
    return copy.deepcopy(model).double().eval()


@pytest.fixture(scope="module")
def sides(exact: Transformer, text: Encoded) -> Sides:
    sources = [text.sentence(i) for i in range(N)]
    written = translate(exact, decode.encoded(sources), Search(beam=1))
    changed = [[2 + (token + 5) % (V - 2) if t % 3 == 2 else token for t, token in enumerate(ids)] for ids in written]
    return decode.encoded(sources), decode.encoded([np.append(ids, EOS).astype(np.int64) for ids in changed])


def batch(sides: Sides, sentences: Sequence[int] = range(N), *, packed: bool = False) -> Batch:
    return make_batch(*sides, np.array(sentences, np.int64), n_update=1, packed=packed)


def most_probable(model: Transformer, source: Tensor, read: Tensor) -> list[int]:
    """The token that each position of one sentence expects next, of equals the lowest."""
    with torch.no_grad():
        rows = model(source[None], read[None])[0].tolist()
    return [row.index(max(row)) for row in rows]


@pytest.fixture(scope="module")
def right(exact: Transformer, sides: Sides) -> list[list[bool]]:
    """Of each sentence by itself, token by token: whether it is the one that is expected."""
    found = []
    for i in range(N):
        source, target = (torch.from_numpy(side.sentence(i).astype(np.int64)) for side in sides)
        expected = most_probable(exact, source, torch.cat([torch.tensor([PAD]), target[:-1]]))
        found.append([one == other for one, other in zip(expected, target.tolist(), strict=True)])
    return found


def share(right: Sequence[Sequence[bool]]) -> float:
    return sum(map(sum, right)) / sum(map(len, right))


def test_it_is_the_share_of_tokens_that_a_loop_finds(exact: Transformer, sides: Sides, right: list[list[bool]]) -> None:
    assert 0.2 < share(right) < 0.8
    assert {line[-1] for line in right} == {False, True}, "the end symbol is one of them, expected or not"
    found = score_tokens(exact, [batch(sides)])
    assert found.accuracy == share(right)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("size", [1, 7, N])
def test_neither_batches_nor_padding_nor_packing_change_it(
    exact: Transformer, sides: Sides, right: list[list[bool]], size: int, packed: bool
) -> None:
    batches = [batch(sides, range(N)[i : i + size], packed=packed) for i in range(0, N, size)]
    assert isinstance(batches[0].target, Ragged) == packed
    assert score_tokens(exact, batches).accuracy == share(right)
