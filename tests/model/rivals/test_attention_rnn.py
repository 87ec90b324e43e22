"""Soft alignment by hand: scores, weights, what asks, and what is shared in a search."""

from math import exp, tanh
from typing import Any

import pytest
import torch
from model.samples import exactly
from torch import Tensor

from repro.model.config import Hyper
from repro.model.rivals.attention_rnn import Additive, AskedByNewState, AskedByToken, Dot, ScaledDot, SoftAlignment
from repro.model.rivals.recurrent import GRU

HYPER = Hyper(n_layers=2, d_model=6, d_ff=32, n_heads=3, d_k=2, d_v=2, dropout=0.0)
SOURCE = torch.tensor([[5, 3, 7, 1], [4, 1, 0, 0]])


def test_the_additive_score_by_hand() -> None:
    score = Additive(1, 1, 2).double()
    score.queries.weight.data = exactly([[2.0], [3.0]])
    score.keys.weight.data = exactly([[5.0], [7.0]])
    score.keys.bias.data = exactly([0.1, 0.2])
    score.v.weight.data = exactly([[11.0, 13.0]])
    found = score(exactly([[[0.1]]]), score.keys(exactly([[[0.2], [-0.3]]])))
    expected = [11 * tanh(0.2 + 5 * h + 0.1) + 13 * tanh(0.3 + 7 * h + 0.2) for h in (0.2, -0.3)]
    assert found.flatten().tolist() == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize(("kind", "times"), [(Dot, 1.0), (ScaledDot, 0.5)])
def test_the_dot_scores_by_hand(kind: Any, times: float) -> None:
    score = kind(1, 1, 4).double()
    score.queries.weight.data = exactly([[2.0], [3.0], [0.0], [1.0]])
    score.keys.weight.data = exactly([[5.0], [7.0], [9.0], [0.0]])
    found = score(exactly([[[1.0], [2.0]]]), score.keys(exactly([[[1.0], [-3.0]]])))
    assert found.tolist() == [[[31 * times, -93 * times], [62 * times, -186 * times]]]  # 2 * 5 + 3 * 7 = 31


def decoded(model: Any, decoder_in: Tensor) -> tuple[Any, Any, Any]:
    memory = model.encode(SOURCE)
    return memory, model.looked_at(memory, SOURCE), model.decode(decoder_in, memory, SOURCE)


@pytest.mark.parametrize("kind", [SoftAlignment, AskedByToken, AskedByNewState])
def test_the_recursion_by_its_equations(kind: Any) -> None:
    """Written once more as the papers have it, with a loop over the words."""
    model, decoder_in = kind(HYPER, 11).double(), torch.tensor([[0, 3, 5], [0, 2, 4]])
    h, looked, found = decoded(model, decoder_in)
    maps = model.attention_maps(SOURCE, decoder_in)["decoder.0.cross_attention"]
    assert maps.shape == (2, 1, 3, 4)
    for b, m in enumerate((4, 2)):
        rows: list[list[float]] = []
        s, cell = torch.tanh(model.first(h[b, 0, model.width :])), torch.zeros(model.width).double()
        c = torch.zeros(2 * model.width).double()

        def seen(q: Tensor, b: int = b, m: int = m, rows: list[list[float]] = rows) -> Tensor:
            score = model.score
            scores = [score.v(torch.tanh(score.queries(q) + score.keys(h[b, j]))).item() for j in range(m)]
            weights = [exp(one) / sum(map(exp, scores)) for one in scores]
            rows.append([*weights, *[0.0] * (4 - m)])
            return sum((a * h[b, j] for j, a in enumerate(weights)), torch.zeros_like(h[b, 0]))

        for i in range(3):
            e = model.embedding(decoder_in[b, i])
            if kind is SoftAlignment:
                c = seen(s)
            elif kind is AskedByToken:
                c = seen(e)
            s, cell = (part[0] for part in model.unit.step(torch.cat([e, c])[None], (s[None], cell[None])))
            if kind is AskedByNewState:
                c = seen(s)
            r = model.readout.linear(torch.cat([s, c, e])).view(-1, 2).amax(dim=1)
            torch.testing.assert_close(found[b, i], r, rtol=0, atol=1e-12)
        torch.testing.assert_close(maps[b, 0], torch.tensor(rows).double(), rtol=0, atol=1e-6)
    assert looked.keys.shape == (2, 4, model.width)


def test_a_search_keeps_one_memory_a_sentence() -> None:
    model = SoftAlignment(HYPER, 11, unit=GRU)
    with torch.no_grad():
        state = model.start(SOURCE).reorder(torch.tensor([0, 0, 0, 1, 1, 1]))
        _, state = model.advance(torch.tensor([3, 4, 5, 3, 4, 5]), state)
    assert [part.shape[0] for part in state.own] == [6, 6]  # c and s; a GRU has no cell
    assert [part.shape[0] for part in state.shared] == [2, 2, 2]  # h, keys, mask
    assert (state.width, state.position) == (3, 1)
