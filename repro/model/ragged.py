"""Sentences concatenated without padding between them, which is how a GPU reads a training batch.

B sentences, N tokens in all of them. No work is done for padding. The shape in all layers is N, which is rounded up,
so that a compiler and the GPU's kernels meet few different shapes.

The model uses only two functions of it: `arranged`, where ids come in, and `mixed`, where queries meet keys.

Shapes: H heads, Q queries and K keys of all sentences, E width of one head.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol, Self

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from repro.model.masks import Padded, hidden_bias
from repro.model.special_tokens import PAD

ROUND = 128  # N is a multiple of it


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


def arranged(ids: "Tensor | Ragged") -> "Padded | Ragged":
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


class Mixes(Protocol):
    """How queries meet keys, see `attention.Mixing`."""

    in_kernel: bool  # whether the kernel for unequal lengths computes the same function

    def __call__(
        self, q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None, dropout: nn.Module | None = None, /
    ) -> Tensor: ...


def mixed(mixing: Mixes, q: Tensor, k: Tensor, v: Tensor, sees: Sees, dropout: nn.Module | None = None) -> Tensor:
    """The output of each head by `mixing`, for padded sentences [B, H, Q, E] or a ragged batch [H, Q, E]."""
    if isinstance(sees, RaggedMask):
        return ragged_attention(mixing, q, k, v, sees, dropout)
    return mixing(q, k, v, sees, dropout)


WIDEST = 256  # the widest head of the kernel for unequal lengths, FlashAttention, which needs compute capability 8.0


def has_kernel(q: Tensor, d_v: int) -> bool:
    """Whether the kernel for unequal lengths accepts these queries, with values of width `d_v`."""
    if not q.is_cuda or q.dtype not in (torch.bfloat16, torch.float16) or max(q.shape[-1], d_v) > WIDEST:
        return False
    return bool(torch.cuda.get_device_properties(q.device).major >= 8)


def ragged_attention(
    mixing: Mixes, q_HQE: Tensor, k_HKE: Tensor, v_HKE: Tensor, spans: RaggedMask, dropout: nn.Module | None = None
) -> Tensor:
    """Attention in a ragged batch, [H, Q, E]: by a kernel for unequal lengths if possible, else padded.

    The kernel cannot apply dropout to the weights.
    """
    if not (mixing.in_kernel and dropout is None and has_kernel(q_HQE, v_HKE.shape[-1])):
        return _padded_attention(mixing, q_HQE, k_HKE, v_HKE, spans, dropout)
    from torch.nn.attention.varlen import varlen_attn  # here, as it imports the compiler for seconds, only for GPUs

    d_k, d_v = q_HQE.shape[-1], v_HKE.shape[-1]
    width = -(-max(d_k, d_v) // 8) * 8  # the kernel needs d_k = d_v, a multiple of 8
    q, k, v = (_widened(x, width).transpose(0, 1) for x in (q_HQE, k_HKE, v_HKE))
    heads = varlen_attn(
        q, k, v, spans.queries, spans.keys, spans.longest_query, spans.longest_key,
        scale=d_k**-0.5, window_size=(-1, 0 if spans.causal else -1),
    )  # fmt: skip
    assert isinstance(heads, Tensor)  # it returns a tuple only if more outputs are requested
    return heads.transpose(0, 1)[..., :d_v]


def _widened(x_HQE: Tensor, width: int) -> Tensor:
    missing = width - x_HQE.shape[-1]
    return F.pad(x_HQE, (0, missing)) if missing else x_HQE  # padding by nothing would copy


def _padded_attention(
    mixing: Mixes, q_HQE: Tensor, k_HKE: Tensor, v_HKE: Tensor, spans: RaggedMask, dropout: nn.Module | None
) -> Tensor:
    """The same with padding: one row for each sentence, as long as the longest. Nothing here waits for the device."""
    queries = _grid(spans.queries, spans.longest_query, q_HQE.shape[1])
    keys = _grid(spans.keys, spans.longest_key, k_HKE.shape[1])
    places = torch.arange(spans.longest_query, device=q_HQE.device)
    before = places[:, None] >= torch.arange(spans.longest_key, device=q_HQE.device)
    may_see = keys.real[:, None, :] & (before if spans.causal else True)  # [B, Q, K]
    bias = hidden_bias(may_see, q_HQE.dtype)[:, None]
    q, k, v = (
        x[:, grid.place].transpose(0, 1) for x, grid in ((q_HQE, queries), (k_HKE, keys), (v_HKE, keys))
    )  # [B, H, longest, E]
    heads_BHQE = mixing(q, k, v, bias, dropout)
    token = torch.arange(q_HQE.shape[1], device=q_HQE.device)
    sentence = torch.searchsorted(spans.queries[1:], token, right=True, out_int32=True)  # the first to end after it
    return heads_BHQE.transpose(0, 1)[:, sentence, token - spans.queries[sentence]]


@dataclass(frozen=True)
class _Grid:
    place: Tensor  # int64 [B, longest] index of each token among the N; an arbitrary one where there is no token
    real: Tensor  # bool [B, longest] where there is a token


def _grid(ends: Tensor, longest: int, n_tokens: int) -> _Grid:
    begin, end = ends[:-1, None].long(), ends[1:, None].long()
    place = begin + torch.arange(longest, device=ends.device)
    return _Grid(place.clamp(max=n_tokens - 1), place < end)
