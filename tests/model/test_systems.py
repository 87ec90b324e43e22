"""What each system beside the Transformer must keep: causal, blind for padding, one in search and training, exact.

Sizes are small primes where a system leaves them free, its numbers float64 unless rounding is what is looked at.
"""

import math
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from ladder_systems import SYSTEMS
from model.narrow_products import Products, both_ways
from model.test_variants import Sentences, hidden, same, shifted, tokens
from torch import Tensor, nn
from training.tiny_run import digest, train

from repro.decoding.search import Search
from repro.decoding.translate import translate
from repro.model.bfloat16 import without_gradients
from repro.model.build import build, gradient_norm, reads_ragged
from repro.model.config import LEARNED_POSITIONS, Hyper
from repro.model.cost import n_parameters
from repro.model.counted import counted_flops, counted_parameters
from repro.model.dropout import Dropout
from repro.model.loss import smoothed_cross_entropy
from repro.model.protocol import PlainState
from repro.model.rivals.bytenet import ByteNet
from repro.model.rivals.convs2s import ConvS2S
from repro.model.special_tokens import EOS, PAD
from repro.model.transformer import Transformer
from repro.runs.scales import SCALES

pytestmark = pytest.mark.usefixtures("one_thread")
B, S, T, V = 3, 7, 5, 23
HYPER = Hyper(n_layers=2, d_model=16, d_ff=32, n_heads=4, d_k=4, d_v=4, dropout=0.0)
LAPTOP = SCALES["laptop"].base
everywhere = pytest.mark.parametrize("system", SYSTEMS.values(), ids=SYSTEMS)


def made(system: Any, hyper: Hyper = HYPER) -> Any:
    """In float64, biases and norms drawn too."""
    model = build(system, hyper, V).double().eval()
    for name, parameter in model.named_parameters():
        if parameter.dim() == 1:
            nn.init.normal_(parameter, mean=float(name.endswith("weight") and "norm" in name), std=0.3)
    return model


@everywhere
def test_the_past_alone_decides(system: Any) -> None:
    model, source, decoder_in = made(system), tokens(B, S), shifted(tokens(B, T))
    expected = hidden(model, source, decoder_in)
    assert expected.shape == (B, T, HYPER.d_model)
    for t in range(1, T):
        other = decoder_in.clone()
        other[:, t:] = EOS + (other[:, t:] - EOS + 1) % (V - EOS)
        found = hidden(model, source, other)
        same(found[:, :t], expected[:, :t])
        assert (found[:, t] != expected[:, t]).any()


@everywhere
def test_each_word_of_the_source_is_read(system: Any) -> None:
    model, source, decoder_in = made(system), tokens(1, S), shifted(tokens(1, T))
    expected = hidden(model, source, decoder_in)
    for s in range(S):
        other = source.clone()
        other[:, s] = EOS + (other[:, s] - EOS + 1) % (V - EOS)
        assert (hidden(model, other, decoder_in) != expected).any()


@everywhere
def test_padding_changes_nothing(system: Any) -> None:
    model, source, decoder_in = made(system), tokens(B, S), shifted(tokens(B, T))
    source[1, 4:] = PAD
    expected = hidden(model, source, decoder_in)
    same(hidden(model, source[1:2, :4], decoder_in[1:2]), expected[1:2])
    same(hidden(model, F.pad(source, (0, 3), value=PAD), F.pad(decoder_in, (0, 2), value=PAD))[:, :T], expected)


@everywhere
def test_a_row_of_padding_alone_gives_numbers(system: Any) -> None:
    """It stands in for the share of a process that has no sentence."""
    model, nothing = made(system), torch.full((1, 1), PAD)
    assert hidden(model, nothing, nothing).isfinite().all()


@everywhere
def test_a_state_follows_its_hypotheses_in_any_order(system: Any) -> None:
    model, source = made(system), tokens(B, S)
    source[1, 4:] = PAD
    random = np.random.RandomState(0)
    with torch.no_grad():
        state, plain = model.start(source), PlainState.begun(model, source)
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


@everywhere
def test_a_search_finds_what_it_finds_on_the_plain_state(system: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    model, source, search = build(system, HYPER, V).double(), Sentences(200), Search(beam=4, alpha=0.6, extra=4)
    for parameter in model.parameters():
        parameter.data *= 3 if parameter.dim() > 1 else 1  # so that what is read decides what is written
    found = translate(model, source, search)  # type: ignore[arg-type]
    assert len({*map(len, found)}) > 5
    assert len({*map(tuple, found)}) > 10
    monkeypatch.setattr(model, "start", partial(PlainState.begun, model))
    monkeypatch.setattr(model, "advance", lambda ids, state: state.advance(model, ids))
    assert translate(model, source, search) == found  # type: ignore[arg-type]


@everywhere
def test_learning_begins_at_a_guess_and_reaches_every_number(system: Any) -> None:
    n = 3_000
    model, source, target = build(system, LAPTOP, n), tokens(4, 16, n=n), tokens(4, 16, n=n)
    loss, nll = smoothed_cross_entropy(hidden(model, source, shifted(target)), model.embedding.weight, target, 0.1)
    assert abs(nll.item() / target.numel() - math.log(n)) < 0.1 * math.log(n)
    loss.backward()
    still = [name for name, parameter in model.named_parameters() if not parameter.grad.any()]
    assert still == []


@everywhere
def test_it_is_as_large_as_the_base_and_no_larger(system: Any) -> None:
    for name in ("laptop", "paper"):
        base = SCALES[name].base
        allowed = n_parameters(base, 0)
        n = counted_parameters(system, base, 0)
        if system is ConvS2S:  # its learned positions and its last map count with the embedding
            n -= 2 * LEARNED_POSITIONS * base.d_model + base.d_model * (base.d_model + 1)
        assert 0.85 * allowed < n <= allowed


@everywhere
def test_a_run_that_stops_goes_on_to_the_very_bits(system: Any, tmp_path: Path) -> None:
    options: dict[str, Any] = {"system": system, "sentences": 23, "steps": 4, "average": 1, "average_every": 1}
    size = {"d_model": 16, "d_ff": 32, "n_heads": 4, "d_k": 4, "d_v": 4}
    train(tmp_path / "unbroken", **options, **size)
    train(tmp_path / "stopped", stop_at=2, **options, **size)
    train(tmp_path / "stopped", **options, **size)
    assert digest(tmp_path / "stopped") == digest(tmp_path / "unbroken")


@everywhere
@both_ways
def test_bfloat16_gives_numbers(system: Any, products: Products) -> None:
    model, source, target = build(system, HYPER, V), tokens(B, S), tokens(B, T)
    with products():
        with torch.autocast("cpu", torch.bfloat16):
            found = hidden(model, source, shifted(target))
            loss, _ = smoothed_cross_entropy(found, model.embedding.weight, target, 0.1)
        loss.backward()
    assert all(parameter.grad.isfinite().all() for parameter in model.parameters())
    with products(), torch.autocast("cpu", torch.bfloat16), without_gradients():
        step, _ = model.eval().advance(torch.zeros(B, dtype=torch.int64), model.start(source))
    torch.testing.assert_close(step.float(), hidden(model, source, shifted(target))[:, 0], rtol=0, atol=0.1)


@everywhere
def test_what_is_known_of_its_class(system: Any) -> None:
    model = build(system, HYPER, V)
    assert not model.in_ctranslate2
    assert not reads_ragged(system)


LONGEST_GRADIENT = {
    "simple": 1.0,
    "simple, source reversed": 1.0,
    "static, last state": 1.0,
    "static, mean": 1.0,
    "soft alignment": 1.0,
    "soft alignment, dot": 1.0,
    "soft alignment, scaled dot": 1.0,
    "soft alignment, GRU": 1.0,
    "ByteNet": None,
    "ConvS2S": 1.0,
    "encoder: recurrent": None,
    "encoder: convolutional": None,
    "decoder: recurrent": None,
    "decoder: convolutional": None,
    "decoder: nothing": None,
    "asked by token": 1.0,
    "asked by new state": 1.0,
}


def test_gradients_of_recurrent_rows_and_of_convs2s_are_cut_to_norm_one() -> None:
    assert {name: gradient_norm(system) for name, system in SYSTEMS.items()} == LONGEST_GRADIENT


# What dropout sees in the order of a forward pass: on which side, and how wide it is.
EMBEDDED_AND_READ = ["source 16", "target 16", "target 16"]
OF_A_TRANSFORMER = ["source 16", *2 * 2 * ["source 16"], "target 16", *2 * 3 * ["target 16"]]
DROPPED = {
    "ConvS2S": ["source 16", *4 * ["source 8"], "target 16", *4 * ["target 8"], "target 16"],
    **{name: OF_A_TRANSFORMER for name in SYSTEMS if name.startswith(("encoder:", "decoder:"))},
}


@pytest.mark.parametrize("name", SYSTEMS)
def test_dropout_stands_where_it_is_said_to(name: str) -> None:
    """On e and on what the softmax reads; ConvS2S: before each convolution, too; hybrids: as section 5.4 has it."""
    model, sides = build(SYSTEMS[name], replace(HYPER, dropout=0.3), V).train(), {S: "source", T: "target"}
    seen: list[tuple[Tensor, Tensor]] = []
    droppers = [part for part in model.modules() if isinstance(part, Dropout | nn.Dropout)]
    assert {dropper.p for dropper in droppers} == {0.3}
    for dropper in droppers:
        dropper.register_forward_hook(lambda part, given, made: seen.append((*given, made)))
    found = hidden(model, tokens(B, S), shifted(tokens(B, T)))
    assert [f"{sides[x.shape[1]]} {x.shape[2]}" for x, _ in seen] == DROPPED.get(name, EMBEDDED_AND_READ)
    if DROPPED.get(name) is not OF_A_TRANSFORMER:
        assert found is seen[-1][1], "what the softmax reads was dropped last"


def recurrent(gates: int, d: int, w: int, *, ways: int, c: int) -> int:
    """Numbers of an encoder, of the map to the first state, of a decoder's unit and of the output."""
    encoder = ways * gates * w * (d + w + 2)
    return encoder + w * w + w + gates * w * (d + c + w + 2) + 2 * d * (w + c + d + 1)


@pytest.mark.parametrize(
    ("name", "width", "expected"),
    [
        ("simple", 160, recurrent(4, 64, 160, ways=1, c=0)),
        ("simple, source reversed", 160, recurrent(4, 64, 160, ways=1, c=0)),
        ("static, last state", 96, recurrent(4, 64, 96, ways=2, c=192)),
        ("static, mean", 96, recurrent(4, 64, 96, ways=2, c=192)),
        ("soft alignment", 96, recurrent(4, 64, 96, ways=2, c=192) + 96 * 96 + 192 * 96 + 96 + 96),
        ("soft alignment, dot", 96, recurrent(4, 64, 96, ways=2, c=192) + 96 * 96 + 192 * 96),
        ("soft alignment, scaled dot", 96, recurrent(4, 64, 96, ways=2, c=192) + 96 * 96 + 192 * 96),
        ("soft alignment, GRU", 104, recurrent(3, 64, 104, ways=2, c=208) + 104 * 104 + 208 * 104 + 104 + 104),
        # 2 N blocks of 6 w² a side, W_q and W_c, biases; maps between unequal widths alone, here none; then the rest
        ("ConvS2S", 64, 12 * (3 * 64 * 128 + 128) + 6 * (2 * 64 * 65) + 1_024 * 64 + 64 * 65),
        # a block of width w = 2 d: norms 4 d, 2 d, 2 d; down, convolution of 3 d², up; then the three maps
        ("ByteNet", 120, 12 * (8 * 60 + 121 * 60 + 181 * 60 + 61 * 120) + 65 * 120 + 185 * 120 + 240 + 121 * 64),
        # 774 numbers a unit of d_ff in six layers of the base's 256; three slots stand for 16,640 numbers each
        ("encoder: recurrent", 216, 350_208 - 774 * 40 + 3 * (2 * 4 * 32 * (64 + 32 + 2) - 16_640)),
        ("encoder: convolutional", 224, 350_208 - 774 * 32 + 3 * (193 * 128 - 16_640)),
        ("decoder: recurrent", 184, 350_208 - 774 * 72 + 3 * (4 * 64 * (64 + 64 + 2) - 16_640)),
        ("decoder: convolutional", 224, 350_208 - 774 * 32 + 3 * (193 * 128 - 16_640)),
        ("decoder: nothing", 320, 350_208 + 774 * 64 - 3 * 16_640),
        ("asked by token", 96, recurrent(4, 64, 96, ways=2, c=192) + 64 * 96 + 192 * 96 + 96 + 96),
    ],
)
def test_its_parameters_are_those_of_the_arithmetic(name: str, width: int, expected: int) -> None:
    assert counted_parameters(SYSTEMS[name], LAPTOP, 0) == expected
    model = build(SYSTEMS[name], LAPTOP, V)
    assert (model.d_ff if isinstance(model, Transformer) else model.width) == width


def asked(source: int, target: int, w: int, *, query: int, of_pair: int) -> int:
    """W q of each step, U h of each word, a score of `of_pair` numbers and the sum of 2 w for each pair of them."""
    return target * query * w + source * 2 * w * w + target * source * (of_pair + 2 * w)


@pytest.mark.parametrize(
    ("name", "gates", "w", "ways", "c", "asks"),
    [
        ("simple", 4, 160, 1, 0, 0),
        ("simple, source reversed", 4, 160, 1, 0, 0),
        ("static, last state", 4, 96, 2, 192, 0),
        ("static, mean", 4, 96, 2, 192, 0),
        ("soft alignment", 4, 96, 2, 192, asked(11, 13, 96, query=96, of_pair=96)),
        ("soft alignment, dot", 4, 96, 2, 192, asked(11, 13, 96, query=96, of_pair=96)),
        ("soft alignment, scaled dot", 4, 96, 2, 192, asked(11, 13, 96, query=96, of_pair=96)),
        ("soft alignment, GRU", 3, 104, 2, 208, asked(11, 13, 104, query=104, of_pair=104)),
        ("asked by token", 4, 96, 2, 192, asked(11, 13, 96, query=64, of_pair=96)),
        ("asked by new state", 4, 96, 2, 192, asked(11, 13, 96, query=96, of_pair=96)),
    ],
)
def test_operations_of_recurrent_systems_are_those_of_the_arithmetic(
    name: str, gates: int, w: int, ways: int, c: int, asks: int
) -> None:
    """2 operations a weight: 2 * 4 w (in + w) of an LSTM, 2 * 3 w (in + w) of a GRU, a token and direction."""
    s, t, d, n = 11, 13, 64, 600
    encoder, unit = s * ways * gates * w * (d + w), t * gates * w * (d + c + w)
    rest = w * w + t * (w + c + d) * 2 * d + t * d * n
    assert counted_flops(SYSTEMS[name], LAPTOP, n, 1, s, t) == 3 * 2 * (encoder + unit + rest + asks)


@pytest.mark.parametrize(
    ("name", "d_ff", "of_token"),
    [
        ("encoder: recurrent", 216, 2 * 4 * 32 * (64 + 32)),  # both directions of half the width
        ("encoder: convolutional", 224, 3 * 64 * 128),
        ("decoder: recurrent", 184, 4 * 64 * (64 + 64)),
        ("decoder: convolutional", 224, 3 * 64 * 128),
        ("decoder: nothing", 320, 0),
    ],
)
def test_operations_of_hybrids_are_those_of_the_arithmetic(name: str, d_ff: int, of_token: int) -> None:
    """Those of the Transformer, h d_k = h d_v = 64, without self-attention on one side; what stands in its slot."""
    tokens_of, d, n = {"encoder": 11, "decoder": 13}, 64, 600
    side, (s, t) = name.partition(":")[0], tokens_of.values()
    own = {of: m * 4 * d * d + m * m * 2 * d for of, m in tokens_of.items()}
    own[side] = tokens_of[side] * of_token
    layer = sum(own.values()) + (t + s) * 2 * d * d + t * s * 2 * d + (s + t) * 2 * d * d_ff
    assert counted_flops(SYSTEMS[name], LAPTOP, n, 1, s, t) == 3 * 2 * (3 * layer + t * d * n)


def test_operations_of_convolutional_systems_are_those_of_the_arithmetic() -> None:
    s, t, d, n = 11, 13, 64, 600
    softmax = t * 2 * d * n
    # 6 blocks a side of 2 * 3 w * 2 w; each attends with two maps, and meets each pair twice
    blocks = 6 * (s + t) * 12 * d * d + 6 * t * (4 * d * d + 4 * s * d) + t * 2 * d * d
    assert counted_flops(ConvS2S, LAPTOP, n, 1, s, t) == 3 * (blocks + softmax)
    # 6 blocks a side of 2 * 7 d² at half the width 120; maps from the embedding, from z and e, and to it
    blocks = 6 * (s + t) * 14 * 60 * 60 + s * 2 * d * 120 + t * 2 * (120 + d) * 120 + t * 2 * 120 * d
    assert counted_flops(ByteNet, LAPTOP, n, 1, s, t) == 3 * (blocks + softmax)
