"""Translation of 200 sentences by the fast way equals the plain search, token for token."""

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from decoding.conftest import V, decode
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


@pytest.mark.parametrize(("width", "alpha"), [(1, 0.0), (4, 0.6), (3, 1.0)])
def test_the_fast_way_finds_what_the_plain_search_finds(
    model: Transformer, text: Any, width: int, alpha: float
) -> None:
    limits = [length + 9 for length in text.lengths.tolist()]
    expected = plain_search(model, padded(text), limits, width=width, alpha=alpha, theirs=False)
    found = translate(model, text, Search(width, alpha, extra=9))
    assert found == expected
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


Live = list[tuple[float, tuple[int, ...]]]  # log-probability and tokens, best first


@dataclass(frozen=True)
class Ended:
    """A hypothesis that is an answer, or was cut at the limit."""

    ids: tuple[int, ...]  # the end symbol included
    log_prob: float

    def worth(self, alpha: float) -> tuple[bool, float]:
        return self.ids[-1] == EOS, self.log_prob / ((5 + len(self.ids)) / 6) ** alpha


@torch.no_grad()
def next_log_probs(model: Transformer, source: Tensor, prefixes: Sequence[tuple[int, ...]], *, padding: bool) -> Tensor:
    """[rows, V] after each prefix, by a whole pass over it; all equally long. With padding, or without its share."""
    decoder_in = torch.tensor([(PAD, *prefix) for prefix in prefixes])
    logits = model.embedding.logits(model.decode(decoder_in, model.encode(source), source)[:, -1])
    if not padding:
        logits[:, PAD] = -torch.inf
    log_prob = logits.log_softmax(-1)
    log_prob[:, PAD] = -torch.inf
    return log_prob


def plain_search(
    model: Transformer, source: Tensor, limits: list[int], *, width: int, alpha: float, theirs: bool
) -> list[tuple[int, ...]]:
    """The translations of source [N, S] by our rules, or by those of CTranslate2."""
    live: dict[int, Live] = {i: [(0.0, ())] for i in range(len(source))}
    ended: dict[int, list[Ended]] = {i: [] for i in live}
    topped = set[int]()  # sentences whose best candidate was an end, once
    for length in range(1, max(limits) + 1):
        rows = [(i, ids) for i, beams in live.items() for _, ids in beams]
        log_prob = next_log_probs(model, source[[i for i, _ in rows]], [ids for _, ids in rows], padding=not theirs)
        value, token = log_prob.sort(dim=1, descending=True, stable=True)
        best = iter(zip(value[:, : 2 * width].tolist(), token[:, : 2 * width].tolist(), strict=True))
        for i, beams in list(live.items()):
            candidates = [
                (total + more, (*ids, token)) for total, ids in beams for more, token in zip(*next(best), strict=True)
            ]
            candidates.sort(key=lambda candidate: -candidate[0])
            candidates = candidates[: 2 * width if width > 1 else 1]
            if candidates[0][1][-1] == EOS:
                topped.add(i)
            eligible = candidates[:width] if theirs else candidates
            at_limit = length == limits[i]
            ended[i] += [Ended(ids, total) for total, ids in eligible if ids[-1] == EOS or (theirs and at_limit)]
            live[i] = [(total, ids) for total, ids in candidates if ids[-1] != EOS][:width]
            if theirs:
                done = len(ended[i]) >= width and (alpha > 0 or i in topped)
            else:
                hope = live[i][0][0] / ((5 + limits[i]) / 6) ** alpha if live[i] else -torch.inf
                done = bool(ended[i]) and max(one.worth(alpha)[1] for one in ended[i]) >= hope
                if at_limit and not ended[i]:
                    ended[i] = [Ended(ids, total) for total, ids in live[i]]
            if done or at_limit:
                del live[i]
        if not live:
            break
    answers = []
    for found in ended.values():
        if theirs:  # no more than the beam is wide come back, by their own penalty
            found = sorted(found, key=lambda one: -one.log_prob / (len(one.ids) if alpha else 1))[:width]
        ids = max(found, key=lambda one: one.worth(alpha)).ids
        answers.append(ids[:-1] if ids[-1] == EOS else ids)
    return answers


# Accuracy: the share of target tokens that the model would have written itself, given those before them


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
def right(exact: Transformer, sides: Sides) -> list[list[bool]]:
    """Of each sentence by itself, token by token: whether it is the one that is expected."""
    found = []
    for i in range(FEW):
        source, target = (torch.from_numpy(side.sentence(i).astype(np.int64)) for side in sides)
        with torch.no_grad():
            rows = exact(source[None], torch.cat([torch.tensor([PAD]), target[:-1]])[None])[0].tolist()
        found.append([row.index(max(row)) == gold for row, gold in zip(rows, target.tolist(), strict=True)])
    return found


def share(right: Sequence[Sequence[bool]]) -> float:
    return sum(map(sum, right)) / sum(map(len, right))


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("size", [1, 7, FEW])
def test_it_is_the_share_of_tokens_that_a_loop_finds_however_they_are_batched(
    exact: Transformer, sides: Sides, right: list[list[bool]], size: int, packed: bool
) -> None:
    assert 0.2 < share(right) < 0.8
    assert {line[-1] for line in right} == {False, True}, "the end symbol is one of them, expected or not"
    batches = [batch(sides, range(FEW)[i : i + size], packed=packed) for i in range(0, FEW, size)]
    assert isinstance(batches[0].target, Ragged) == packed
    assert score_tokens(exact, batches).accuracy == share(right)
