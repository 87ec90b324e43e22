"""Who sees whom where attention is restricted, and where the decoder has no mask."""

import torch

from repro.model.ablations.parts import NoMask
from repro.model.ablations.reach import Restricted
from repro.model.config import Hyper
from repro.model.special_tokens import PAD

HYPER = Hyper(n_layers=2, d_model=6, d_ff=5, n_heads=2, d_k=3, d_v=3, dropout=0.0)


def test_the_encoder_sees_half_of_them_on_each_side_and_the_decoder_the_last() -> None:
    model, source, decoder_in = Restricted(HYPER, 23, r=5), torch.arange(2, 13)[None], torch.arange(2, 11)[None]
    maps = model.attention_maps(source, decoder_in)
    near = (torch.arange(11) - torch.arange(11)[:, None]).abs() <= 2
    last = torch.tensor([[i - 4 <= j <= i for j in range(9)] for i in range(9)])
    for layer in range(2):
        assert torch.equal((maps[f"encoder.{layer}.self_attention"] > 0).all(1)[0], near)
        assert torch.equal((maps[f"decoder.{layer}.self_attention"] > 0).all(1)[0], last)
        assert (maps[f"decoder.{layer}.cross_attention"] > 0).all(), "the source is seen whole"


def test_without_a_mask_all_but_padding_at_the_end_is_seen() -> None:
    weights = NoMask(HYPER, 23).attention_maps(torch.tensor([[2, 3]]), torch.tensor([[PAD, 2, 3, PAD]]))
    assert torch.equal((weights["decoder.0.self_attention"] > 0).all(1)[0, 0], torch.tensor([True, True, True, False]))
