"""Hybrids are the Transformer but for one slot: its layers, written out once more around what stands there."""

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from repro.model.config import Hyper
from repro.model.masks import Padded
from repro.model.rivals.hybrids import GatedConvolution, HybridDecoder, HybridEncoder, Nothing, Recurrence

HYPER = Hyper(n_layers=2, d_model=8, d_ff=32, n_heads=2, d_k=4, d_v=4, dropout=0.0)
SOURCE, DECODER_IN = torch.tensor([[5, 3, 7, 1]]), torch.tensor([[0, 3, 5]])


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
    x = model.embedding(SOURCE) + model.source_positions(0, 4)
    for layer in model.encoder:
        mixed = slot_by_hand(layer.self_attention, x, "encoder") if system is HybridEncoder else layer.self_attention(x)
        x = layer.norms[0](x + mixed)
        x = layer.norms[1](x + layer.feed_forward(x))
    memory, sees_past = x, Padded(DECODER_IN).causal(torch.float64)
    x = model.embedding(DECODER_IN) + model.target_positions(0, 3)
    for layer in model.decoder:
        own = system is HybridDecoder
        mixed = slot_by_hand(layer.self_attention, x, "decoder") if own else layer.self_attention(x, sees_past)
        x = layer.norms[0](x + mixed)
        x = layer.norms[1](x + layer.cross_attention(x, memory))
        x = layer.norms[2](x + layer.feed_forward(x))
    torch.testing.assert_close(model.encode(SOURCE), memory, rtol=0, atol=1e-12)
    torch.testing.assert_close(model.decode(DECODER_IN, memory, SOURCE), x, rtol=0, atol=1e-12)
