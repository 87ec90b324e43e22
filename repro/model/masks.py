"""Which position may see which: masks made from the ids and passed to the layers. Paper: sections 3.1 and 3.2.3.

A mask is a bias on the scores: 0 where a key may be attended to, very negative where not. `Padded` makes the masks of
padded sentences. `Ragged` has the same interface for sentences concatenated without padding between them, which is how
a GPU reads a training batch: no work is done for padding. The shape in all layers is then N, the tokens of all B
sentences, rounded up, so that a compiler and the GPU's kernels meet few different shapes.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Self

import torch
from torch import Tensor, nn

from repro.model.special_tokens import EOS, PAD

ROUND = 128  # N is a multiple of it


def hidden_bias(may_see: Tensor, dtype: torch.dtype) -> Tensor:
    """Turn a mask (True = may be attended to) into a bias on the scores: 0 or very negative.

    Very negative is half of the smallest finite number, not -infinity. So a query that may see nothing gets
    uniform weights instead of NaN, forward and backward, and adding a score cannot overflow.
    """
    zero = torch.zeros((), dtype=dtype, device=may_see.device)
    return torch.where(may_see, zero, torch.finfo(dtype).min / 2)


def padding_bias(ids: Tensor, dtype: torch.dtype) -> Tensor:
    """Hide the padding of ids [B, L] from every query: [B, 1, 1, L]."""
    return hidden_bias(ids != PAD, dtype)[:, None, None, :]


def read_so_far(decoder_in: Tensor) -> Tensor:
    """Which positions of a target that was shifted right belong to its sentence, bool [B, T].

    These are the padding at position 0 and the tokens, but not the EOS of a shorter sentence or the padding after it.
    """
    first = torch.arange(decoder_in.shape[1], device=decoder_in.device) == 0
    return (decoder_in > EOS) | first


@dataclass(frozen=True)
class Padded:
    """Sentences padded at their ends to one length."""

    ids: Tensor  # int64 [B, L]

    @property
    def longest(self) -> int:
        """The length of the longest sentence in tokens."""
        return self.ids.shape[1]

    def encodings(self, positions: nn.Module) -> Tensor:
        """The positional encodings of all tokens, [L, D], the same for all sentences."""
        encodings: Tensor = positions(0, self.longest)
        return encodings

    def seen_from(self, other: "Padded", dtype: torch.dtype) -> Tensor:
        """The mask with which each token of `other` sees all tokens of its own sentence here, [B, 1, 1, L]."""
        return padding_bias(self.ids, dtype)

    def causal(self, dtype: torch.dtype) -> Tensor:
        """The mask with which each position sees itself and those before it, [L, L]; padding, being last, is hidden."""
        causal = torch.ones(self.longest, self.longest, dtype=torch.bool, device=self.ids.device).tril()
        return hidden_bias(causal, dtype)


@dataclass
class Ragged:
    """The concatenated ids of B sentences; sentences of padding fill up the end.

    It is mutable because Lightning moves the fields to the device.
    """

    ids: Tensor  # int64 [N]
    position: Tensor  # int64 [N] of each token in its sentence
    ends: Tensor  # int32 [B + 1]: 0, then where each sentence ends
    longest: int  # tokens of the longest sentence

    @property
    def bound(self) -> int:
        """`longest` rounded up: a kernel needs only an upper bound, and a compiler meets fewer values."""
        return -(-self.longest // 32) * 32

    def encodings(self, positions: nn.Module) -> Tensor:
        """The positional encodings of all tokens, [N, D]."""
        encodings: Tensor = positions(0, self.longest)[self.position]
        return encodings

    def seen_from(self, other: "Ragged", dtype: torch.dtype) -> "RaggedMask":
        """The mask with which each token of `other` sees all tokens of its own sentence here."""
        return RaggedMask(other.ends, self.ends, other.bound, self.bound)

    def causal(self, dtype: torch.dtype) -> "RaggedMask":
        """The mask with which each position sees itself and those before it."""
        return RaggedMask(self.ends, self.ends, self.bound, self.bound, causal=True)

    def numel(self) -> int:
        """The number of token places, as of a padded tensor."""
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
    """Make a ragged batch from concatenated ids, int64, and the lengths of the sentences, int64 [B]."""
    longest = max(1, *lengths.tolist()) if len(lengths) else 1
    missing = -len(ids) % ROUND if len(ids) else ROUND  # an empty share is only padding
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
    """The input of the decoder: for each sentence padding, then all tokens but the last. Paper: section 3.1."""
    ids = target.ids.roll(1)
    ids[target.position == 0] = PAD
    return replace(target, ids=ids)


def paired(a: Ragged, b: Ragged) -> tuple[Ragged, Ragged]:
    """Both sides with equally many sentences: the one with fewer sentences of padding gets empty ones."""
    n = max(len(a.ends), len(b.ends))
    return _with_ends(a, n), _with_ends(b, n)


def _with_ends(side: Ragged, n: int) -> Ragged:
    return replace(side, ends=torch.cat([side.ends, side.ends[-1:].expand(n - len(side.ends))]))


def arranged(ids: Tensor | Ragged) -> Padded | Ragged:
    """The form in which the model reads ids: a ragged batch unchanged, ids [B, L] as `Padded`."""
    return ids if isinstance(ids, Ragged) else Padded(ids)


@dataclass(frozen=True)
class RaggedMask:
    """The mask of a ragged batch: each query sees the keys of its own sentence."""

    queries: Tensor  # int32 [B + 1]: 0, then where the queries of each sentence end
    keys: Tensor  # int32 [B + 1]
    longest_query: int
    longest_key: int
    causal: bool = False  # whether it sees only those up to its own position


Sees = Tensor | RaggedMask | None  # a bias that broadcasts to [B, H, Q, K], or a ragged mask; None hides nothing
