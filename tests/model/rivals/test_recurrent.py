"""Recurrent systems, with soft alignment and without, by hand, and by PyTorch's own packed layers."""

from functools import partial
from math import exp
from typing import Any

import pytest
import torch
from model.samples import exactly
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from repro.model.config import Hyper
from repro.model.rivals.attention_rnn import Dot, ScaledDot, SoftAlignment
from repro.model.rivals.recurrent import GRU, LSTM, BothWays, Simple, StaticLast, StaticMean, backwards
from repro.model.rivals.size import widest

HYPER = Hyper(n_layers=2, d_model=6, d_ff=32, n_heads=3, d_k=2, d_v=2, dropout=0.0)
LENGTHS = torch.tensor([5, 2, 1, 4])


@pytest.mark.parametrize("kind", [LSTM, GRU])
def test_steps_are_the_sequence(kind: Any) -> None:
    unit, x, s = kind(3, 5).double(), torch.randn(2, 7, 3).double(), torch.randn(2, 5).double()
    state, states = unit.begun(s), []
    for x_i in x.unbind(dim=1):
        state = unit.step(x_i, state)
        states.append(state[0])
    torch.testing.assert_close(torch.stack(states, dim=1), unit.read(x, unit.begun(s)), rtol=0, atol=1e-14)


@pytest.mark.parametrize(("kind", "theirs"), [(LSTM, nn.LSTM), (GRU, nn.GRU)])
def test_both_ways_are_pytorchs_packed_layer(kind: Any, theirs: Any) -> None:
    ours, x = BothWays(kind, 3, 5).double(), torch.randn(4, 5, 3).double()
    oracle = theirs(3, 5, batch_first=True, bidirectional=True).double()
    for way, end in ((ours.forth, ""), (ours.back, "_reverse")):
        for name, parameter in way.named_parameters():
            getattr(oracle, name + end).data = parameter.data
    packed, _ = oracle(pack_padded_sequence(x, LENGTHS, batch_first=True, enforce_sorted=False))
    expected, _ = pad_packed_sequence(packed, batch_first=True)
    found = ours(x, LENGTHS)
    for i, n in enumerate(LENGTHS):
        torch.testing.assert_close(found[i, :n], expected[i, :n], rtol=0, atol=1e-14)


def read(model: Any, source: Tensor) -> tuple[Tensor, Tensor]:
    memory = model.encode(source)
    return memory, model.context(memory, source)


SOURCE = torch.tensor([[5, 3, 7, 1], [4, 1, 0, 0]])


def test_contexts_are_the_states_that_the_equations_name() -> None:
    model = StaticLast(HYPER, 11).double()
    memory, c = read(model, SOURCE)
    w = model.width
    assert torch.equal(c[0], torch.cat([memory[0, 3, :w], memory[0, 0, w:]]))
    assert torch.equal(c[1], torch.cat([memory[1, 1, :w], memory[1, 0, w:]]))
    s, cell = model.first_state(memory, SOURCE)
    assert torch.equal(s, model.first(memory[:, 0, w:]).tanh())
    assert not cell.any()
    mean = StaticMean(HYPER, 11).double()
    memory, c = read(mean, SOURCE)
    torch.testing.assert_close(c[1], (memory[1, 0] + memory[1, 1]) / 2, rtol=0, atol=1e-15)


def test_the_simple_system_knows_the_last_state_alone_and_which_it_is_says_the_order() -> None:
    for order, read_last in ((None, SOURCE[:, -1:]), (backwards, SOURCE[:, :1])):
        model = (Simple if order is None else partial(Simple, order=order))(HYPER, 11).double()
        memory, c = read(model, SOURCE)
        assert c.shape == (2, 0)
        x = model.embedding(SOURCE[:1] if order is None else SOURCE[:1].flip(1))
        torch.testing.assert_close(x[:, -1], model.embedding(read_last[:1, 0]), rtol=0, atol=0)
        s, _ = model.first_state(memory, SOURCE)
        torch.testing.assert_close(s[:1], model.first(model.encoder.read(x)[:, -1]).tanh(), rtol=0, atol=1e-15)


def test_the_widest_is_the_last_multiple_of_8_that_fits() -> None:
    hyper, holder = Hyper(n_layers=1, d_model=8, d_ff=1, n_heads=1, d_k=1, d_v=1), nn.Module()
    # parameters of the base outside its embedding: 3 * (9 * 3 + 2 * 8) + 2 * (9 + 16) + 5 * 16 = 259
    assert widest(holder, hyper, lambda width: {"line": nn.Linear(9, width)}) == 24  # 240; 320 are too many
    assert isinstance(holder.line, nn.Linear)
    assert holder.line.weight.shape == (24, 9)


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


def test_the_recursion_by_its_equations() -> None:
    """Written once more as the papers have it, with a loop over the words."""
    model, decoder_in = SoftAlignment(HYPER, 11).double(), torch.tensor([[0, 3, 5], [0, 2, 4]])
    h, looked, found = decoded(model, decoder_in)
    maps = model.attention_maps(SOURCE, decoder_in)["decoder.0.cross_attention"]
    assert maps.shape == (2, 1, 3, 4)
    for b, m in enumerate((4, 2)):
        rows: list[list[float]] = []
        s, cell = torch.tanh(model.first(h[b, 0, model.width :])), torch.zeros(model.width).double()

        def seen(q: Tensor, b: int = b, m: int = m, rows: list[list[float]] = rows) -> Tensor:
            score = model.score
            scores = [score.v(torch.tanh(score.queries(q) + score.keys(h[b, j]))).item() for j in range(m)]
            weights = [exp(one) / sum(map(exp, scores)) for one in scores]
            rows.append([*weights, *[0.0] * (4 - m)])
            return sum((a * h[b, j] for j, a in enumerate(weights)), torch.zeros_like(h[b, 0]))

        for i in range(3):
            e = model.embedding(decoder_in[b, i])
            c = seen(s)
            s, cell = (part[0] for part in model.unit.step(torch.cat([e, c])[None], (s[None], cell[None])))
            r = model.readout.linear(torch.cat([s, c, e])).view(-1, 2).amax(dim=1)
            torch.testing.assert_close(found[b, i], r, rtol=0, atol=1e-12)
        torch.testing.assert_close(maps[b, 0], torch.tensor(rows).double(), rtol=0, atol=1e-6)
    assert looked.keys.shape == (2, 4, model.width)
