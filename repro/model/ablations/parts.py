"""Layers without one of their parts: the feed-forward network, or the decoder's mask. Paper: sections 3.3 and 3.2.3."""

from typing import Any

import torch
from torch import Tensor, nn

from repro.model.config import Hyper
from repro.model.masks import Sees, hidden_bias, read_so_far
from repro.model.protocol import Plain
from repro.model.transformer import Transformer


class Nothing(nn.Module):
    """A sub-layer that adds nothing."""

    def __init__(self, **sizes: int) -> None:
        super().__init__()

    def forward(self, x: Tensor) -> Tensor:
        """Zero."""
        return torch.zeros_like(x)


class NoFeedForward(Transformer):
    """Attention alone: neither the feed-forward network nor the norm that belongs to it."""

    def __init__(self, hyper: Hyper, vocab_size: int) -> None:
        super().__init__(hyper, vocab_size, feed_forward=Nothing)
        for layer in (*self.encoder, *self.decoder):
            norms: Any = layer.norms
            norms[-1] = nn.Identity()


class NoMask(Plain, Transformer):  # type: ignore[misc]
    """The decoder's self-attention sees the whole target, in training even the tokens to be predicted.

    Every new token changes the states of all earlier ones, so each step of a search reads the prefix anew.
    """

    def _sees_past(self, read: Any) -> Sees:
        return hidden_bias(read_so_far(read.ids), self.embedding.weight.dtype)[:, None, None, :]
