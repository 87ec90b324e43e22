"""Positional encodings other than full sinusoids. Paper: section 3.5; row E of Table 3 has learned ones."""

import torch
from torch import Tensor, nn

from repro.model.embedding import SinusoidalPositions

SCALE = 128  # scalar positions are divided by it: the first 128 are below 1, the size of an embedding's coordinate


class NoPositions(nn.Module):
    """Zero at every position: only the decoder's mask tells the order of tokens."""

    code: Tensor

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.register_buffer("code", torch.zeros(1, d_model), persistent=False)

    def forward(self, start: int, stop: int) -> Tensor:
        """[stop - start, d_model]."""
        return self.code.expand(stop - start, -1)


class ScalarPositions(nn.Module):
    """pos / 128 in the first coordinate, 0 in the others."""

    unit: Tensor

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.register_buffer("unit", torch.eye(1, d_model), persistent=False)

    def forward(self, start: int, stop: int) -> Tensor:
        """[stop - start, d_model]."""
        places = torch.arange(start, stop, device=self.unit.device).unsqueeze(1)
        return places / SCALE * self.unit


class OneHotPositions(nn.Module):
    """Row pos of the unit matrix; positions from d_model on all get the last row."""

    rows: Tensor

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.register_buffer("rows", torch.eye(d_model), persistent=False)

    def forward(self, start: int, stop: int) -> Tensor:
        """[stop - start, d_model]."""
        places = torch.arange(start, stop, device=self.rows.device)
        return self.rows[places.clamp(max=len(self.rows) - 1)]


class FastSinusoids(SinusoidalPositions):
    """Only the sinusoids with the shorter wavelengths, in the first half of the dimensions; 0 in the second half."""

    def forward(self, start: int, stop: int) -> Tensor:
        fast, slow = super().forward(start, stop).chunk(2, dim=-1)
        return torch.cat([fast, torch.zeros_like(slow)], dim=-1)


class SlowSinusoids(SinusoidalPositions):
    """Only the sinusoids with the longer wavelengths, in the second half of the dimensions; 0 in the first half."""

    def forward(self, start: int, stop: int) -> Tensor:
        fast, slow = super().forward(start, stop).chunk(2, dim=-1)
        return torch.cat([torch.zeros_like(fast), slow], dim=-1)
