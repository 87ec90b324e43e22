"""Convolutional systems and hybrids by their equations, written once more with loops over the words."""

from dataclasses import replace
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from repro.model.config import Hyper
from repro.model.masks import Padded
from repro.model.rivals.bytenet import ByteNet, ResidualBlock
from repro.model.rivals.convolution import SequenceConvolution
from repro.model.rivals.convs2s import ConvS2S
from repro.model.rivals.hybrids import GatedConvolution, HybridDecoder, HybridEncoder, Nothing, Recurrence
from repro.runs.scales import SCALES

HYPER = Hyper(n_layers=2, d_model=8, d_ff=32, n_heads=2, d_k=4, d_v=4, dropout=0.0)
SOURCE = torch.tensor([[5, 3, 7, 1], [4, 1, 0, 0]])
DECODER_IN = torch.tensor([[0, 3, 5], [0, 2, 4]])


def of_ones(**options: Any) -> SequenceConvolution:
    convolution = SequenceConvolution(1, 1, **options).double()
    convolution.linear.weight.data.fill_(1)
    convolution.linear.bias.data.zero_()
    return convolution


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize(("kernel", "dilation"), [(3, 1), (5, 2)])
def test_it_is_pytorchs_convolution(kernel: int, dilation: int, causal: bool) -> None:
    convolution, x = (
        SequenceConvolution(2, 7, kernel=kernel, dilation=dilation, causal=causal).double(),
        torch.randn(3, 11, 2),
    )
    x = x.double()
    reach = (kernel - 1) * dilation
    padded = F.pad(x, (0, 0, *((reach, 0) if causal else (reach // 2, reach // 2)))).transpose(1, 2)
    weight = convolution.linear.weight.view(7, kernel, 2).transpose(1, 2)
    expected = F.conv1d(padded, weight, convolution.linear.bias, dilation=dilation).transpose(1, 2)
    torch.testing.assert_close(convolution(x), expected, rtol=0, atol=1e-14)


def test_dilation_doubled_reaches_exponentially() -> None:
    """Five layers of kernel 3 with dilations 1 to 16 see 2 * 31 tokens back; ten without dilation would see 20."""
    x = torch.zeros(1, 80, 1).double()
    x[0, 5] = 1
    for dilation in (1, 2, 4, 8, 16):
        x = of_ones(kernel=3, dilation=dilation, causal=True)(x)
    assert x[0, :, 0].nonzero().flatten().tolist() == list(range(5, 5 + 62 + 1))


# ByteNet: a column of the decoder stands on the same column of the encoder; beyond the source on zeros.


def test_a_block_of_bytenet_by_its_equation() -> None:
    block, x = ResidualBlock(6, kernel=3, dilation=2, causal=True).double(), torch.randn(1, 7, 6).double()
    (norm, _), down, (narrow, _) = block.down
    (wide, _), up = block.up
    inner = narrow(down(norm(x).relu())).relu()
    padded = torch.cat([torch.zeros(1, 4, 3).double(), inner], dim=1)
    mixed = torch.stack(
        [block.mix.linear(torch.cat([padded[0, i], padded[0, i + 2], padded[0, i + 4]])) for i in range(7)]
    )
    torch.testing.assert_close(block(x)[0], x[0] + up(wide(mixed).relu()), rtol=0, atol=1e-13)


def test_dilations_double_and_begin_again() -> None:
    model = ByteNet(replace(HYPER, n_layers=3, d_model=16), 11)
    for side in (model.encoder, model.decoder):
        assert [block.mix.dilation for block in side] == [1, 2, 4, 8, 16, 1]  # type: ignore[union-attr]
    assert [block.mix.before for block in model.encoder] == [1, 2, 4, 8, 16, 1]  # type: ignore[union-attr]
    assert [block.mix.before for block in model.decoder] == [2, 4, 8, 16, 32, 2]  # type: ignore[union-attr]


def test_a_token_of_the_decoder_sees_its_own_column_and_none_beyond_the_source() -> None:
    model = ByteNet(replace(HYPER, n_layers=3, d_model=16), 11).double()
    decoder_in, z = torch.tensor([[0, 3, 5, 2, 6, 7]] * 2), torch.randn(2, 4, model.width).double()
    z[1, 2:] = 0
    model.decoder = torch.nn.ModuleList()
    found = model.decode(decoder_in, z, SOURCE)
    e, nothing = model.embedding(decoder_in), torch.zeros(model.width).double()
    for b in range(2):
        for t in range(6):
            u = z[b, t] if t < (4, 2)[b] else nothing
            expected = model.output(model.target_in(torch.cat([u, e[b, t]])))
            torch.testing.assert_close(found[b, t], expected, rtol=0, atol=1e-13)


# ConvS2S, and how it begins.


def glu(of: Any, seen: list[Tensor]) -> Tensor:
    a, b = of.linear(torch.cat(seen)).chunk(2)
    return a * torch.sigmoid(b)


def by_hand(model: Any, source: list[int], target: list[int]) -> Tensor:
    """The equations, sentence by sentence and word by word, without padding."""
    half, nothing = 0.5**0.5, torch.zeros(8).double()
    scaled = model.embedding(torch.arange(11))
    e = [0.1 * scaled[word] + p for word, p in zip(source, model.source_positions.weight, strict=False)]
    x = list(e)
    for block in model.encoder:
        padded = [nothing, *x, nothing]
        x = [(x[j] + glu(block, padded[j : j + 3])) * half for j in range(len(x))]
    z = x
    g = [0.1 * scaled[word] + p for word, p in zip(target, model.target_positions.weight, strict=False)]
    x = list(g)
    for block, attention in zip(model.decoder, model.attention, strict=True):
        padded, new = [nothing, nothing, *x], []
        for i in range(len(x)):
            y = glu(block, padded[i : i + 3])
            q = (attention.ask(y) + g[i]) * half
            a = torch.stack([q @ one for one in z]).softmax(dim=0)
            c = len(z) ** 0.5 * sum(a[j] * (z[j] + e[j]) for j in range(len(z))) * half
            new.append((x[i] + (y + attention.answer(c)) * half) * half)
        x = new
    return torch.stack([model.output(one) for one in x])


def test_convs2s_is_its_equations() -> None:
    model = ConvS2S(replace(HYPER, n_layers=1), 11).double()
    assert (model.width, len(model.encoder), len(model.decoder)) == (8, 2, 2)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    found = model.decode(DECODER_IN, model.encode(SOURCE), SOURCE)
    for row, source, target in zip(found, ([5, 3, 7, 1], [4, 1]), DECODER_IN.tolist(), strict=True):
        torch.testing.assert_close(row, by_hand(model, source, target), rtol=0, atol=1e-12)


def test_embeddings_and_positions_have_a_spread_of_a_tenth() -> None:
    model = ConvS2S(SCALES["laptop"].base, 3_000).eval()
    none = torch.zeros(1, 1, 64)
    embedded = model.embedded(torch.arange(1, 3_000)[None], none)
    assert embedded.std().item() == pytest.approx(0.1, rel=0.02)
    assert model.source_positions.weight.std().item() == pytest.approx(0.1, rel=0.02)


def test_the_first_weights_keep_the_variance() -> None:
    model = ConvS2S(SCALES["laptop"].base, 3_000)
    kept = 0.9
    assert model.encoder[0].linear.weight.var().item() == pytest.approx(4 * kept / (3 * 64), rel=0.05)
    assert model.attention[0].ask.weight.var().item() == pytest.approx(kept / 64, rel=0.1)
    # docs/deviations.md: of its authors without `kept`, as no dropout stands in front
    assert model.output.weight.var().item() == pytest.approx(kept / model.width, rel=0.1)
    assert not model.output.bias.any()
    source = torch.randint(2, 3_000, (32, 16))
    z, e = model.encode(source).chunk(2, dim=-1)
    assert 0.3 < z.std().item() / e.std().item() < 1.5  # of 6 blocks


def test_the_encoder_gets_its_share_of_the_gradient_and_the_embeddings_get_all_of_theirs() -> None:
    """2 blocks of the decoder send gradients back to z, twice each: a quarter of their sum is passed on."""
    model = ConvS2S(replace(HYPER, n_layers=1), 11).double()
    memory = model.encode(SOURCE)
    detached = memory.detach().requires_grad_()
    model.decode(DECODER_IN, detached, SOURCE).sum().backward()
    of_z, of_e = detached.grad.chunk(2, dim=-1)
    inside = model.encoder[0].linear.weight, model.source_positions.weight

    def sent(through_z: Tensor, through_e: Tensor) -> tuple[Tensor, ...]:
        """What these gradients of z and e come to inside the encoder, by a network of which nothing is scaled."""
        return torch.autograd.grad(model.encode(SOURCE), inside, torch.cat([through_z, through_e], dim=-1))

    nothing = torch.zeros_like(of_z)
    found = torch.autograd.grad(memory, inside, detached.grad)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Tensor, "register_hook", lambda self, hook: None)
        from_z, from_e = sent(of_z, nothing), sent(nothing, of_e)
    for one, z, e in zip(found, from_z, from_e, strict=True):
        torch.testing.assert_close(one, z / 4 + e, rtol=1e-12, atol=1e-14)
    assert not from_e[0].any(), "no convolution stands between an embedding and its sum"
    assert from_e[1].any()


# Hybrids are the Transformer but for one slot.


def slot_by_hand(slot: Any, x: Tensor, side: str) -> Tensor:
    """What stands in the slot, of one sentence without padding."""
    if isinstance(slot, Nothing):
        return torch.zeros_like(x)
    if isinstance(slot, Recurrence):
        if side == "decoder":
            return slot.unit.read(x)  # type: ignore[union-attr]
        forth, back = slot.unit.forth.read(x), slot.unit.back.read(x.flip(1)).flip(1)  # type: ignore[union-attr]
        return torch.cat([forth, back], dim=-1)
    ends = (2, 0) if side == "decoder" else (1, 1)
    weight = slot.convolution.linear.weight.view(16, 3, 8).transpose(1, 2)
    made = F.conv1d(F.pad(x.transpose(1, 2), ends), weight, slot.convolution.linear.bias).transpose(1, 2)
    return F.glu(made)


@pytest.mark.parametrize(
    ("system", "slot"),
    [
        (HybridEncoder, Recurrence),
        (HybridEncoder, GatedConvolution),
        (HybridDecoder, Recurrence),
        (HybridDecoder, GatedConvolution),
        (HybridDecoder, Nothing),
    ],
)
def test_all_but_one_slot_is_the_transformer(system: Any, slot: Any) -> None:
    model = system(HYPER, 11, slot=slot).double()
    x = model.embedding(SOURCE[:1]) + model.source_positions(0, 4)
    for layer in model.encoder:
        mixed = slot_by_hand(layer.self_attention, x, "encoder") if system is HybridEncoder else layer.self_attention(x)
        x = layer.norms[0](x + mixed)
        x = layer.norms[1](x + layer.feed_forward(x))
    memory, sees_past = x, Padded(DECODER_IN[:1]).causal(torch.float64)
    x = model.embedding(DECODER_IN[:1]) + model.target_positions(0, 3)
    for layer in model.decoder:
        own = system is HybridDecoder
        mixed = slot_by_hand(layer.self_attention, x, "decoder") if own else layer.self_attention(x, sees_past)
        x = layer.norms[0](x + mixed)
        x = layer.norms[1](x + layer.cross_attention(x, memory))
        x = layer.norms[2](x + layer.feed_forward(x))
    torch.testing.assert_close(model.encode(SOURCE[:1]), memory, rtol=0, atol=1e-12)
    torch.testing.assert_close(model.decode(DECODER_IN[:1], memory, SOURCE[:1]), x, rtol=0, atol=1e-12)
