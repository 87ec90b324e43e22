"""Translation by the fast way equals a loop over whole passes, token for token."""

import copy
from collections.abc import Sequence
from functools import cache
from itertools import chain
from typing import Any

import numpy as np
import pytest
import torch
from decoding.conftest import V, decode
from decoding.test_beam import loop_search
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from repro.data.batch import Batch, make_batch
from repro.data.shards import Encoded
from repro.decoding.search import Search
from repro.decoding.translate import at_once, score_tokens, translate
from repro.model.masks import Ragged
from repro.model.special_tokens import EOS, PAD
from repro.model.transformer import Transformer


def padded(text: Any) -> Tensor:
    return pad_sequence(
        [torch.from_numpy(text.sentence(i).astype(np.int64)) for i in range(len(text))],
        batch_first=True,
        padding_value=PAD,
    )


def plain_search(
    model: Transformer, source: Tensor, limits: list[int], *, width: int, alpha: float
) -> list[tuple[int, ...]]:
    """The translations of source [N, S], by a whole pass of the decoder over each prefix."""
    with torch.no_grad():
        memory = model.encode(source)

    @cache
    @torch.no_grad()
    def after(sentence: int, prefix: tuple[int, ...]) -> tuple[float, ...]:
        of = slice(sentence, sentence + 1)
        hidden = model.decode(torch.tensor([(PAD, *prefix)]), memory[of], source[of])
        return tuple(model.embedding.logits(hidden[0, -1]).log_softmax(-1).tolist())

    return [loop_search(after, i, limit, width, alpha).ids for i, limit in enumerate(limits)]


@pytest.mark.parametrize(("width", "alpha"), [(1, 0.0), (4, 0.6), (3, 1.0)])
def test_the_fast_way_finds_what_the_plain_search_finds(
    model: Transformer, text: Encoded, width: int, alpha: float
) -> None:
    limits = [length + 9 for length in text.lengths.tolist()]
    found = translate(model, text, Search(width, alpha, extra=9))
    assert found[:10] == plain_search(model, padded(text), limits[:10], width=width, alpha=alpha)
    assert len(set(found)) > 100, "the sentences are to differ"
    assert EOS not in {token for ids in found for token in ids}


@pytest.mark.parametrize("width", [2, 7])
def test_no_beam_keeps_more_hypotheses_at_once_than_the_papers(model: Transformer, text: Any, width: int) -> None:
    """With a beam of 21 and as many sentences as with 4, parsing CRAFT took 17 GB."""
    done = [0]
    search = Search(width, 0.6, extra=9)
    found = translate(model, text, search, batch_tokens=300, between=done.append)
    taken = np.diff(done)
    longest = np.sort(text.lengths)[::-1][done[:-1]]  # of each batch: the longest sentences come first
    assert (taken * longest * max(width, 4) <= 300 * 4).all()
    assert len(taken) > 5, "several batches"
    assert taken.sum() == len(text)
    assert found == translate(model, text, search, batch_tokens=100_000), "and it finds the same"


def test_a_gpu_searches_more_at_once() -> None:
    assert (at_once(torch.device("cpu")), at_once(torch.device("cuda", 1))) == (4_096, 32_768)


# Perplexity, and accuracy: the share of target tokens that the model would have written, given those before them


FEW = 30
Sides = tuple[Encoded, Encoded]


@pytest.fixture(scope="module")
def exact(model: Transformer) -> Transformer:
    """In float64, so that no order of sums decides which token is the most probable."""
    return copy.deepcopy(model).double().eval()


@pytest.fixture(scope="module")
def sides(exact: Transformer, text: Encoded) -> Sides:
    sources = [text.sentence(i) for i in range(FEW)]
    written = translate(exact, decode.encoded(sources), Search(beam=1))
    changed = [[2 + (token + 5) % (V - 2) if t % 3 == 2 else token for t, token in enumerate(ids)] for ids in written]
    return decode.encoded(sources), decode.encoded([np.append(ids, EOS).astype(np.int64) for ids in changed])


def batch(sides: Sides, sentences: Sequence[int] = range(FEW), *, packed: bool = False) -> Batch:
    return make_batch(*sides, np.array(sentences, np.int64), n_update=1, packed=packed)


@pytest.fixture(scope="module")
def told(exact: Transformer, sides: Sides) -> list[list[tuple[float, bool]]]:
    """Of each sentence by itself, token by token: its log-probability, and whether it is the one that is expected."""
    found = []
    for i in range(FEW):
        source, target = (torch.from_numpy(side.sentence(i).astype(np.int64)) for side in sides)
        with torch.no_grad():
            rows = exact(source[None], torch.cat([torch.tensor([PAD]), target[:-1]])[None])[0].log_softmax(-1).tolist()
        found.append(
            [(row[gold], row.index(max(row)) == gold) for row, gold in zip(rows, target.tolist(), strict=True)]
        )
    return found


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("size", [1, 7, FEW])
def test_it_is_what_a_loop_over_tokens_finds_however_they_are_batched(
    exact: Transformer, sides: Sides, told: list[list[tuple[float, bool]]], size: int, packed: bool
) -> None:
    log_probs, right = zip(*chain(*told), strict=True)
    assert 0.2 < sum(right) / len(right) < 0.8
    assert {line[-1][1] for line in told} == {False, True}, "the end symbol is one of them, expected or not"
    batches = [batch(sides, range(FEW)[i : i + size], packed=packed) for i in range(0, FEW, size)]
    assert isinstance(batches[0].target, Ragged) == packed
    found = score_tokens(exact, batches)
    assert found.accuracy == sum(right) / len(right)
    assert found.nll == pytest.approx(-sum(log_probs) / len(log_probs), rel=1e-9)
