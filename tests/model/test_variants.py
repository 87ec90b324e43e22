"""What each variant of the Transformer must keep: causal, blind for padding, one in search and training, exact.

Numbers are float64 unless rounding is what is looked at. The exceptions are known by name, and must be exceptions.
"""

import math
import shutil
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from lab_systems import NOT_CAUSAL, NOT_CAUSAL_IN_TRAINING, READ_ANEW, VARIANTS
from model.narrow_products import Products, both_ways
from torch import Tensor, nn
from training.tiny_run import digest, train

from repro.data.batch import make_batch
from repro.decoding.search import Search
from repro.decoding.translate import translate
from repro.model.bfloat16 import without_gradients
from repro.model.build import build, reads_ragged
from repro.model.config import LEARNED_POSITIONS, Hyper
from repro.model.cost import n_parameters
from repro.model.counted import counted_flops, counted_parameters
from repro.model.loss import smoothed_cross_entropy
from repro.model.protocol import PlainState
from repro.model.special_tokens import EOS, PAD
from repro.runs.scales import SCALES

pytestmark = pytest.mark.usefixtures("one_thread")
B, S, T, V = 3, 7, 5, 23
HYPER = Hyper(n_layers=2, d_model=16, d_ff=11, n_heads=3, d_k=2, d_v=5, dropout=0.0)
LAPTOP = SCALES["laptop"].base
everywhere = pytest.mark.parametrize("name", VARIANTS)


def made(name: str) -> Any:
    """In float64, biases and norms drawn too."""
    model = build(VARIANTS[name], HYPER, V).double().eval()
    for of, parameter in model.named_parameters():
        if parameter.dim() == 1:
            nn.init.normal_(parameter, mean=float(of.endswith(("weight", "gain")) and "norm" in of), std=0.3)
    return model


def tokens(*shape: int, n: int = V) -> Tensor:
    return torch.randint(EOS, n, shape)


def shifted(target: Tensor) -> Tensor:
    return F.pad(target[:, :-1], (1, 0), value=PAD)


def hidden(model: Any, source: Tensor, decoder_in: Tensor) -> Tensor:
    found: Tensor = model.decode(decoder_in, model.encode(source), source)
    return found


def same(found: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)


def other_from(t: int, decoder_in: Tensor) -> Tensor:
    """All tokens from t on are others."""
    other = decoder_in.clone()
    other[:, t:] = EOS + (other[:, t:] - EOS + 1) % (V - EOS)
    return other


@everywhere
@pytest.mark.parametrize("training", [False, True])
def test_the_past_alone_decides(name: str, training: bool) -> None:
    model, source, decoder_in = made(name).train(training), tokens(B, S), shifted(tokens(B, T))
    leaks = NOT_CAUSAL_IN_TRAINING if training else NOT_CAUSAL

    def read(ids: Tensor) -> Tensor:
        torch.manual_seed(5)  # what is drawn in training is drawn again
        return hidden(model, source, ids)

    expected = read(decoder_in)
    before = [read(other_from(t, decoder_in))[:, :t] - expected[:, :t] for t in range(1, T)]
    assert (max(change.abs().max().item() for change in before) > 1e-6) == (name in leaks)
    if name not in leaks:
        assert all((change.abs() < 1e-12).all() for change in before)
    assert (read(other_from(T - 1, decoder_in))[:, -1] != expected[:, -1]).any()


@everywhere
@pytest.mark.parametrize("training", [False, True])
def test_padding_changes_nothing(name: str, training: bool) -> None:
    model, source, decoder_in = made(name).train(training and name != "hard, sampled"), tokens(B, S), tokens(B, T)
    source[1, 4:] = PAD
    decoder_in[:, 0] = PAD
    decoder_in[2, 3:] = PAD
    expected = hidden(model, source, decoder_in)
    wider = hidden(model, F.pad(source, (0, 3), value=PAD), F.pad(decoder_in, (0, 2), value=PAD))
    same(wider[:, :T][[0, 1]], expected[[0, 1]])
    same(wider[2, :3], expected[2, :3])
    if not (training and name == "batch norm"):  # whose sentences meet
        same(hidden(model, source[1:2, :4], decoder_in[1:2]), expected[1:2])
        same(hidden(model, source[2:], decoder_in[2:, :3]), expected[2:, :3])


@everywhere
def test_a_sentence_in_a_batch_is_read_as_it_is_alone(name: str) -> None:
    """As training makes batches: a shorter sentence has its end among what the decoder reads."""
    sentences = [np.array([*ids, EOS]) for ids in ([5, 7, 4], [9], [3, 8, 6, 2, 11])]

    def read(*which: int) -> Tensor:
        flat, lengths = np.concatenate([sentences[i] for i in which]), np.array([len(sentences[i]) for i in which])
        side: Any = SimpleNamespace(gather=lambda _: (flat, lengths))
        batch: Any = make_batch(side, side, np.array(which), n_update=len(flat))
        return hidden(model, batch.source, batch.decoder_in)

    model = made(name)
    together = read(0, 1, 2)
    for i, ids in enumerate(sentences):
        same(together[i : i + 1, : len(ids)], read(i))


@everywhere
def test_a_row_of_padding_alone_gives_numbers(name: str) -> None:
    """It stands in for the share of a process that has no sentence."""
    model, nothing = made(name), torch.full((1, 1), PAD)
    assert hidden(model, nothing, nothing).isfinite().all()
    loss = hidden(model.train(), nothing, nothing).sum()
    loss.backward()
    assert all(parameter.grad.isfinite().all() for parameter in model.parameters() if parameter.grad is not None)


@everywhere
def test_a_state_follows_its_hypotheses_in_any_order(name: str) -> None:
    model, source = made(name), tokens(B, S)
    source[1, 4:] = PAD
    random = np.random.RandomState(0)
    with torch.no_grad():
        state, plain = model.start(source), PlainState.begun(model, source)
        assert isinstance(state, PlainState) == (name in READ_ANEW)
        n, width = B, 1
        for step in range(6):
            ids = tokens(n * width)
            found, state = model.advance(ids, state)
            expected, plain = plain.advance(model, ids)
            same(found, expected)
            if step in (1, 3):  # sentences leave, and the others change places
                kept = torch.tensor(random.permutation(n)[: n - 1])
                state, plain, n = state.keep(kept), plain.keep(kept), n - 1
            parents = torch.tensor(random.randint(0, width, (n, 3)))  # some hypotheses double, others end
            rows = (torch.arange(n)[:, None] * width + parents).flatten()
            state, plain, width = state.reorder(rows), plain.reorder(rows), 3


class Sentences:
    """One side of a text in memory."""

    def __init__(self, n: int) -> None:
        self.lengths = 2 + np.random.RandomState(1).binomial(6, 0.5, n)
        self.ids = [
            np.append(np.random.RandomState(i).randint(EOS + 1, V, m - 1), EOS) for i, m in enumerate(self.lengths)
        ]

    def sentence(self, i: int) -> Any:
        return self.ids[i]


@pytest.mark.parametrize("name", sorted(VARIANTS.keys() - READ_ANEW))
def test_a_search_finds_what_it_finds_on_the_plain_state(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    source: Any = Sentences(200)
    model, search = build(VARIANTS[name], HYPER, V).double(), Search(beam=4, alpha=0.6, extra=4)
    for parameter in model.parameters():
        parameter.data *= 3 if parameter.dim() > 1 else 1  # so that what is read decides what is written
    found = translate(model, source, search)
    assert len({*map(len, found)}) > 2
    assert len({*map(tuple, found)}) > 10
    monkeypatch.setattr(model, "start", partial(PlainState.begun, model))
    monkeypatch.setattr(model, "advance", lambda ids, state: state.advance(model, ids))
    assert translate(model, source, search) == found


@everywhere
def test_learning_begins_at_a_guess_and_reaches_every_number(name: str) -> None:
    n = 3_000
    model, source, target = build(VARIANTS[name], LAPTOP, n), tokens(4, 16, n=n), tokens(4, 16, n=n)
    loss, nll = smoothed_cross_entropy(hidden(model, source, shifted(target)), model.embedding.weight, target, 0.1)
    is_a_guess = abs(nll.item() / target.numel() - math.log(n)) < 0.1 * math.log(n)
    assert is_a_guess == (name != "no norm"), f"{nll.item() / target.numel():.2f} nats a token"
    loss.backward()
    still = {of for of, parameter in model.named_parameters() if not parameter.grad.any()}
    assert still == set()
    d_queries = LAPTOP.n_heads * LAPTOP.d_k
    asked = {
        of: bool(part.weight.grad[: 2 * d_queries].any())
        for of, part in model.named_modules()
        if of.endswith("attention") and len(part.weight) == 2 * d_queries + LAPTOP.n_heads * LAPTOP.d_v
    }
    assert {*asked.values()} <= {name != "hard"}, "of plain hard attention no gradient reaches W^Q and W^K"


@everywhere
def test_a_run_that_is_cut_off_goes_on_to_the_very_bits(name: str, tmp_path: Path) -> None:
    options: dict[str, Any] = {"system": VARIANTS[name], "sentences": 23, "steps": 2, "average": 1, "accumulate": 1}
    options |= {"average_every": 1, **{of: getattr(HYPER, of) for of in ("d_model", "n_heads", "d_k", "d_v", "d_ff")}}
    train(tmp_path, stop_at=1, **options)
    train(tmp_path, **options)
    twice = digest(tmp_path)
    shutil.rmtree(tmp_path)
    train(tmp_path, **options)
    assert digest(tmp_path) == twice


@everywhere
@both_ways
def test_bfloat16_gives_numbers(name: str, products: Products) -> None:
    model, source, target = build(VARIANTS[name], HYPER, V), tokens(B, S), tokens(B, T)
    with products():
        with torch.autocast("cpu", torch.bfloat16):
            found = hidden(model, source, shifted(target))
            loss, _ = smoothed_cross_entropy(found, model.embedding.weight, target, 0.1)
        loss.backward()
    assert all(parameter.grad.isfinite().all() for parameter in model.parameters())
    with products(), torch.autocast("cpu", torch.bfloat16), without_gradients():
        step, _ = model.eval().advance(torch.zeros(B, dtype=torch.int64), model.start(source))
        whole = hidden(model, source, shifted(target))[:, 0]
    if name not in NOT_CAUSAL:
        torch.testing.assert_close(step.float(), whole.float(), rtol=0, atol=0.3)


@everywhere
def test_what_is_known_of_its_class(name: str) -> None:
    model = build(VARIANTS[name], HYPER, V)
    assert not model.in_ctranslate2
    assert model.needs_whole_updates == (name == "batch norm")
    in_kernel = {"K = Q", "identical heads", "none", "scalar", "one-hot", "fast sinusoids", "slow sinusoids"}
    in_kernel |= {"pre-norm", "no norm", "no residual", "no feed-forward"}
    assert reads_ragged(VARIANTS[name]) == (name in in_kernel)


D, H, D_K, D_V, N, D_FF = (getattr(LAPTOP, of) for of in ("d_model", "n_heads", "d_k", "d_v", "n_layers", "d_ff"))
FEED_FORWARD = 2 * D * D_FF + D_FF + D
MORE_PARAMETERS = {  # than the base has, at laptop; 0 of all others
    "additive": 3 * N * H * D_K,
    "bilinear": 3 * N * H * D_K**2,
    "K = Q": -2 * N * (D + 1) * H * D_K,
    "static": 2 * N * 2 * H * D_K * (LEARNED_POSITIONS - (D + 1)),
    "relative": 2 * N * 17 * (D_K + D_V),
    "relative, clip 2": 2 * N * 5 * (D_K + D_V),
    "relative, sinusoids": 2 * N * 17 * (D_K + D_V),
    "pre-norm": 2 * 2 * D,
    "no norm": -N * (2 + 3) * 2 * D,
    "no feed-forward": -2 * N * (FEED_FORWARD + 2 * D),
}


@everywhere
def test_its_parameters_are_those_of_the_arithmetic(name: str) -> None:
    assert counted_parameters(VARIANTS[name], LAPTOP, 0) == n_parameters(LAPTOP, 0) + MORE_PARAMETERS.get(name, 0)


@everywhere
def test_its_operations_are_those_of_the_arithmetic(name: str) -> None:
    s, t, n = 11, 13, 600
    own, both = s * s + t * t, s * s + t * t + t * s  # pairs of self-attention, and of all three
    heads = H * (D_K + D_V)
    projected = 2 * (s + t) + s + t  # of width D_K + D_V: queries and keys, values and W^O, of self and of the source
    products = N * (projected * D * heads + both * heads + (s + t) * 2 * D * D_FF) + t * n * D
    more = {  # products of a layer of both sides
        "bilinear": N * (s + t + t) * H * D_K**2,
        "K = Q": -N * (s + t) * D * H * D_K,
        "static": -N * (s + t) * 2 * D * H * D_K,
        "no feed-forward": -N * (s + t) * 2 * D * D_FF,
        **{row: N * own * heads for row in VARIANTS if row.startswith("relative")},
    }
    assert counted_flops(VARIANTS[name], LAPTOP, n, 1, s, t) == 3 * 2 * (products + more.get(name, 0))
