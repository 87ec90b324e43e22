"""Sentences one after the other without padding between them: how a GPU reads a batch.

B sentences, N tokens of all of them. No work is done for padding, and the shape that all layers see is N, which is
rounded up, so that a compiler and a queue of kernels meet few shapes.

Two functions are all that the model knows of it: `arranged`, where ids come in, and `mixed`, where queries meet keys.

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

    def encodings(self, positions: nn.Module) -> Tensor:
        """What `positions` gives for each token: [N, D]."""
        encodings: Tensor = positions(0, self.longest)[self.position]
        return encodings

    def seen_from(self, other: "Ragged", dtype: torch.dtype) -> "RaggedMask":
        """All tokens of a sentence, as those of the same sentence in `other` see them."""
        return RaggedMask(other.ends, self.ends, other.bound, self.bound)

    def causal(self, dtype: torch.dtype) -> "RaggedMask":
        """Each position sees those before it and itself."""
        return RaggedMask(self.ends, self.ends, self.bound, self.bound, causal=True)

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


def arranged(ids: "Tensor | Ragged") -> "Padded | Ragged":
    """What the model reads: a ragged batch as it is, ids [B, L] as padded sentences."""
    return ids if isinstance(ids, Ragged) else Padded(ids)


@dataclass(frozen=True)
class RaggedMask:
    """Who may see whom among sentences in a row: each query the keys of its own sentence."""

    queries: Tensor  # int32 [B + 1]: 0, then where the queries of each sentence end
    keys: Tensor  # int32 [B + 1]
    longest_query: int
    longest_key: int
    causal: bool = False  # and of them only those up to its own position


Sees = Tensor | RaggedMask | None  # a bias that broadcasts to [B, H, Q, K], or of ragged batches; None: everything


class Mixes(Protocol):
    """How queries meet keys, see `attention.Mixing`."""

    in_kernel: bool  # the kernel for unequal lengths computes the same

    def __call__(
        self, q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None, dropout: nn.Module | None = None, /
    ) -> Tensor: ...


def mixed(mixing: Mixes, q: Tensor, k: Tensor, v: Tensor, sees: Sees, dropout: nn.Module | None = None) -> Tensor:
    """The heads that `mixing` makes of padded sentences [B, H, Q, E], or of sentences in a row [H, Q, E]."""
    if isinstance(sees, RaggedMask):
        return ragged_attention(mixing, q, k, v, sees, dropout)
    return mixing(q, k, v, sees, dropout)


WIDEST = 256  # a head of the kernel for unequal lengths; it is FlashAttention, which needs a card of 8.0 or newer


def has_kernel(q: Tensor, d_v: int) -> bool:
    """Whether the kernel for unequal lengths takes such queries, and values of width `d_v`."""
    if not q.is_cuda or q.dtype not in (torch.bfloat16, torch.float16) or max(q.shape[-1], d_v) > WIDEST:
        return False
    return bool(torch.cuda.get_device_properties(q.device).major >= 8)


def ragged_attention(
    mixing: Mixes, q_HQE: Tensor, k_HKE: Tensor, v_HKE: Tensor, spans: RaggedMask, dropout: nn.Module | None = None
) -> Tensor:
    """For sentences in a row, [H, Q, E]: by a kernel for unequal lengths where there is one, else padded.

    The kernel has no dropout of its weights.
    """
    if not (mixing.in_kernel and dropout is None and has_kernel(q_HQE, v_HKE.shape[-1])):
        return _padded_attention(mixing, q_HQE, k_HKE, v_HKE, spans, dropout)
    from torch.nn.attention.varlen import varlen_attn  # seconds, as it brings the compiler, and only a GPU needs it

    d_k, d_v = q_HQE.shape[-1], v_HKE.shape[-1]
    width = -(-max(d_k, d_v) // 8) * 8  # the kernel's heads are equally wide, by eights
    q, k, v = (_widened(x, width).transpose(0, 1) for x in (q_HQE, k_HKE, v_HKE))
    heads = varlen_attn(
        q, k, v, spans.queries, spans.keys, spans.longest_query, spans.longest_key,
        scale=d_k**-0.5, window_size=(-1, 0 if spans.causal else -1),
    )  # fmt: skip
    assert isinstance(heads, Tensor)  # a tuple only where more is asked for
    return heads.transpose(0, 1)[..., :d_v]


def _widened(x_HQE: Tensor, width: int) -> Tensor:
    missing = width - x_HQE.shape[-1]
    return F.pad(x_HQE, (0, missing)) if missing else x_HQE  # a pad of nothing is a copy


def _padded_attention(
    mixing: Mixes, q_HQE: Tensor, k_HKE: Tensor, v_HKE: Tensor, spans: RaggedMask, dropout: nn.Module | None
) -> Tensor:
    """Each sentence in a row of its own, as long as the longest. Nothing here waits for a number of the device."""
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
    sentence = torch.searchsorted(spans.queries[1:], token, right=True, out_int32=True)  # that ends after it
    return heads_BHQE.transpose(0, 1)[:, sentence, token - spans.queries[sentence]]


@dataclass(frozen=True)
class _Grid:
    place: Tensor  # int64 [B, longest] of each token in the row of all; where there is none, of some other
    real: Tensor  # bool [B, longest]


def _grid(ends: Tensor, longest: int, n_tokens: int) -> _Grid:
    begin, end = ends[:-1, None].long(), ends[1:, None].long()
    place = begin + torch.arange(longest, device=ends.device)
    return _Grid(place.clamp(max=n_tokens - 1), place < end)
