"""The systems of the ladder beside the Transformer: their size, where dropout stands, what they cost.

What they keep as every system does is tested in test_variants.py.
"""

from dataclasses import replace

import pytest
from lab_systems import LADDER_SYSTEMS as SYSTEMS
from model.samples import V, shifted, tokens
from model.test_variants import LAPTOP, OF_LADDER, B, S, T, hidden, made, other_from
from torch import Tensor, nn

from repro.model.build import build
from repro.model.config import LEARNED_POSITIONS
from repro.model.cost import n_parameters
from repro.model.counted import counted_flops, counted_parameters
from repro.model.embedding import Dropout
from repro.model.transformer import Transformer
from repro.runs.scales import SCALES

everywhere = pytest.mark.parametrize("name", SYSTEMS)


@everywhere
def test_each_word_of_the_source_is_read(name: str) -> None:
    model, source, decoder_in = made(name), tokens(1, S), shifted(tokens(1, T))
    expected = hidden(model, source, decoder_in)
    for s in range(S):
        other = source.clone()
        other[:, s] = other_from(s, source)[:, s]
        assert (hidden(model, other, decoder_in) != expected).any()


@everywhere
def test_it_is_as_large_as_the_base_and_no_larger(name: str) -> None:
    for scale in ("laptop", "paper"):
        base = SCALES[scale].base
        allowed = n_parameters(base, 0)
        n = counted_parameters(SYSTEMS[name], base, 0)
        if name == "ConvS2S":  # its learned positions and its last map count with the embedding
            n -= 2 * LEARNED_POSITIONS * base.d_model + base.d_model * (base.d_model + 1)
        assert 0.85 * allowed < n <= allowed


# What dropout sees in the order of a forward pass: on which side, and how wide it is.
EMBEDDED_AND_READ = ["source 16", "target 16", "target 16"]
OF_A_TRANSFORMER = ["source 16", *2 * 2 * ["source 16"], "target 16", *2 * 3 * ["target 16"]]
DROPPED = {
    "ConvS2S": ["source 16", *4 * ["source 8"], "target 16", *4 * ["target 8"], "target 16"],
    **{name: OF_A_TRANSFORMER for name in SYSTEMS if name.startswith(("encoder:", "decoder:"))},
}


@everywhere
def test_dropout_stands_where_it_is_said_to(name: str) -> None:
    """On e and on what the softmax reads; ConvS2S: before each convolution, too; hybrids: as section 5.4 has it."""
    model, sides = build(SYSTEMS[name], replace(OF_LADDER, dropout=0.3), V).train(), {S: "source", T: "target"}
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


SOFT = recurrent(4, 64, 96, ways=2, c=192) + 192 * 96  # and the map of what is asked


@pytest.mark.parametrize(
    ("name", "width", "expected"),
    [
        ("simple", 160, recurrent(4, 64, 160, ways=1, c=0)),
        ("static, last state", 96, recurrent(4, 64, 96, ways=2, c=192)),
        ("soft alignment", 96, SOFT + 96 * 96 + 96 + 96),
        ("soft alignment, dot", 96, SOFT + 96 * 96),
        ("soft alignment, GRU", 104, recurrent(3, 64, 104, ways=2, c=208) + 104 * 104 + 208 * 104 + 104 + 104),
        # 2 N blocks of 6 w² a side, W_q and W_c, biases; maps between unequal widths alone, here none; then the rest
        ("ConvS2S", 64, 12 * (3 * 64 * 128 + 128) + 6 * (2 * 64 * 65) + 1_024 * 64 + 64 * 65),
        # a block of width w = 2 d: norms 4 d, 2 d, 2 d; down, convolution of 3 d², up; then the three maps
        ("ByteNet", 120, 12 * (8 * 60 + 121 * 60 + 181 * 60 + 61 * 120) + 65 * 120 + 185 * 120 + 240 + 121 * 64),
        # 774 numbers a unit of d_ff in six layers of the base's 256; three slots stand for 16,640 numbers each
        ("encoder: recurrent", 216, 350_208 - 774 * 40 + 3 * (2 * 4 * 32 * (64 + 32 + 2) - 16_640)),
        ("encoder: convolutional", 224, 350_208 - 774 * 32 + 3 * (193 * 128 - 16_640)),
        ("decoder: recurrent", 184, 350_208 - 774 * 72 + 3 * (4 * 64 * (64 + 64 + 2) - 16_640)),
        ("decoder: nothing", 320, 350_208 + 774 * 64 - 3 * 16_640),
    ],
)
def test_its_parameters_are_those_of_the_arithmetic(name: str, width: int, expected: int) -> None:
    assert counted_parameters(SYSTEMS[name], LAPTOP, 0) == expected
    model = build(SYSTEMS[name], LAPTOP, V)
    assert (model.d_ff if isinstance(model, Transformer) else model.width) == width


def asked(source: int, target: int, w: int, *, query: int) -> int:
    """W q of each step, U h of each word, a score of w numbers and the sum of 2 w for each pair of them."""
    return target * query * w + source * 2 * w * w + target * source * 3 * w


@pytest.mark.parametrize(
    ("name", "gates", "w", "ways", "c", "asks"),
    [
        ("simple", 4, 160, 1, 0, 0),
        ("soft alignment", 4, 96, 2, 192, asked(11, 13, 96, query=96)),
        ("soft alignment, GRU", 3, 104, 2, 208, asked(11, 13, 104, query=104)),
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
