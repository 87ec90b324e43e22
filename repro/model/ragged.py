"""Sentences one after the other without padding between them: how a GPU reads a batch.

B sentences, N tokens of all of them. No work is done for padding, and the shape that all layers see is N, which is
rounded up, so that a compiler and a queue of kernels meet few shapes.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Self

import torch
from torch import Tensor

from repro.model.special_tokens import PAD

ROUND = 512  # N is a multiple of it


@dataclass
class Ragged:
    """The ids of B sentences in a row; what fills up the end is sentences of padding.

    Mutable for Lightning's sake, which moves its fields to the device.
    """

    ids: Tensor  # int64 [N]
    position: Tensor  # int64 [N] of each token in its sentence
    ends: Tensor  # int32 [B + 1]: 0, then where each sentence ends
    longest: int  # tokens of a sentence, at most

    @property
    def bound(self) -> int:
        """`longest`, rounded up: a kernel need not know it better, and a compiler meets fewer values."""
        return -(-self.longest // 32) * 32

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


def pack(ids: Tensor, lengths: Tensor) -> Ragged:
    """Sentences of these lengths, int64 [B], whose ids, int64, stand one after the other."""
    longest = max(1, *lengths.tolist()) if len(lengths) else 1
    missing = -len(ids) % ROUND if len(ids) else ROUND  # an empty share is padding alone
    full, rest = divmod(missing, longest)
    fill = lengths.new_tensor([longest] * full + [rest] * (rest > 0))
    all_lengths = torch.cat([lengths, fill])
    ends = torch.cat([lengths.new_zeros(1), all_lengths.cumsum(0)])
    return Ragged(
        ids=torch.cat([ids, ids.new_full((missing,), PAD)]),
        position=torch.arange(len(ids) + missing) - ends[:-1].repeat_interleave(all_lengths),
        ends=ends.int(),
        longest=longest,
    )


def shifted(target: Ragged) -> Ragged:
    """What the decoder reads: of each sentence padding first, then all but the last token. Paper: section 3.1."""
    ids = target.ids.roll(1)
    ids[target.position == 0] = PAD
    return replace(target, ids=ids)


def paired(a: Ragged, b: Ragged) -> tuple[Ragged, Ragged]:
    """Both with equally many sentences: where one needed fewer to fill up, it gets empty ones."""
    n = max(len(a.ends), len(b.ends))
    return _with_ends(a, n), _with_ends(b, n)


def _with_ends(side: Ragged, n: int) -> Ragged:
    return replace(side, ends=torch.cat([side.ends, side.ends[-1:].expand(n - len(side.ends))]))
