"""Batch normalisation instead of layer normalisation (Ioffe and Szegedy 2015). Paper: section 3.1.

Means are over tokens, not over the width, so a token's output depends on the other tokens of its update. In the decoder
these include later ones: in training, the future leaks. Shapes: B sentences, L tokens, D = d_model.
"""

from collections.abc import Iterable

import torch
from torch import Tensor, nn

from repro.model.config import Hyper
from repro.model.layers import NORM_EPS, PostNorm
from repro.model.masks import read_so_far
from repro.model.special_tokens import PAD
from repro.model.transformer import Transformer

MOMENTUM = 0.1  # fraction by which each update moves the running mean and variance


class TokenBatchNorm(nn.Module):
    """gain (x - mean) / sqrt(variance + eps) + bias, over a batch's real tokens; running statistics in evaluation."""

    mean: Tensor
    variance: Tensor
    real: Tensor | None = None  # bool [B, L, 1], set before each batch

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.gain, self.bias = nn.Parameter(torch.ones(d_model)), nn.Parameter(torch.zeros(d_model))
        self.register_buffer("mean", torch.zeros(d_model))
        self.register_buffer("variance", torch.ones(d_model))

    def forward(self, x: Tensor) -> Tensor:
        """[B, L, D] -> [B, L, D]."""
        mean, variance = self._of_batch(x) if self.training else (self.mean, self.variance)
        return self.gain * (x - mean) * (variance + NORM_EPS).rsqrt() + self.bias

    def _of_batch(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and variance [D] of the real tokens; also updates the running ones."""
        assert self.real is not None, "told by BatchNormalised before each batch"
        share = self.real.to(x.dtype) / self.real.sum().clamp(min=1)
        mean = (share * x).sum(dim=(0, 1))
        variance = (share * (x - mean).square()).sum(dim=(0, 1))
        for running, now in ((self.mean, mean), (self.variance, variance)):
            running.lerp_(now.detach().to(running.dtype), MOMENTUM)
        return mean, variance


class PostBatchNorm(PostNorm):
    """BatchNorm(x + f(x))."""

    @staticmethod
    def norm(d_model: int) -> nn.Module:
        return TokenBatchNorm(d_model)


class BatchNormalised(Transformer):
    """The Transformer with batch normalisation, whose norms are told which tokens are real."""

    reads_ragged = False
    needs_whole_updates = True

    def __init__(self, hyper: Hyper, vocab_size: int) -> None:
        super().__init__(hyper, vocab_size, around=PostBatchNorm)

    def encode(self, source: Tensor) -> Tensor:  # type: ignore[override]
        tell(self.encoder.modules(), source != PAD)
        return super().encode(source)

    def decode(self, decoder_in: Tensor, memory: Tensor, source: Tensor) -> Tensor:  # type: ignore[override]
        tell(self.decoder.modules(), read_so_far(decoder_in))
        return super().decode(decoder_in, memory, source)


def tell(parts: Iterable[nn.Module], real: Tensor) -> None:
    """Tell the norms among `parts` which tokens of the next batch are real, bool [B, L]."""
    for part in parts:
        if isinstance(part, TokenBatchNorm):
            part.real = real.unsqueeze(-1)
