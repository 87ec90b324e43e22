"""Sentences one after the other without padding between them: how a GPU reads a batch.

B sentences, N pieces of all of them. No work is done for padding, and the shape that all layers see is N, which is
rounded up, so that a compiler and a queue of kernels meet few shapes.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from repro.symbols import PAD

ROUND = 512  # N is a multiple of it


@dataclass
class Packed:
    """The ids of B sentences in a row; what fills up the end is sentences of padding.

    Mutable for Lightning's sake, which moves its fields to the device.
    """

    ids: Tensor  # int64 [N]
    position: Tensor  # int64 [N] of each piece in its sentence
    ends: Tensor  # int32 [B + 1]: 0, then where each sentence ends
    longest: int  # pieces of a sentence, at most

    def numel(self) -> int:
        """Slots that cost computation, as of a padded tensor."""
        return self.ids.numel()

    def flatten(self) -> Tensor:
        """The ids, [N], as of a padded tensor."""
        return self.ids

    def to(self, device: torch.device | str, non_blocking: bool = False) -> Self:
        """The same on another device."""
        return self._each(lambda part: part.to(device, non_blocking=non_blocking))

    def pin_memory(self) -> Self:
        """The same in pinned memory."""
        return self._each(Tensor.pin_memory)

    def _each(self, change: Callable[[Tensor], Tensor]) -> Self:
        return type(self)(change(self.ids), change(self.position), change(self.ends), self.longest)


def paired(*sides: Packed) -> list[Packed]:
    """The sides with equally many sentences: where one needed fewer to fill up, it gets empty ones."""
    n = max(len(side.ends) for side in sides)
    return [
        Packed(side.ids, side.position, torch.cat([side.ends, side.ends[-1:].expand(n - len(side.ends))]), side.longest)
        for side in sides
    ]


def pack(rows: Tensor, lengths: Sequence[int] | Tensor) -> Packed:
    """The first `lengths` pieces of each of the rows, int64 [B, L]."""
    lengths = torch.as_tensor(lengths, dtype=torch.int64)
    longest = max(1, rows.shape[1])
    total = int(lengths.sum())
    missing = -total % ROUND if total else ROUND  # an empty share is padding alone
    fill = torch.full((-(-missing // longest),), longest)
    if len(fill):
        fill[-1] = missing - longest * (len(fill) - 1)
    real = torch.arange(rows.shape[1]) < lengths[:, None]
    all_lengths = torch.cat([lengths, fill])
    ends = torch.cat([lengths.new_zeros(1), all_lengths.cumsum(0)])
    n = int(ends[-1])
    return Packed(
        ids=torch.cat([rows[real], torch.full((missing,), PAD)]),
        position=torch.arange(n) - ends[:-1].repeat_interleave(all_lengths),
        ends=ends.int(),
        longest=longest,
    )
