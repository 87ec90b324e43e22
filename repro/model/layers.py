"""Encoder and decoder layers: sub-layers with dropout, residual sum and normalisation. Paper: section 3.1, 3.3.

Post-norm, as printed: LayerNorm(x + Dropout(Sublayer(x))). Layers take numbers and ready masks; they know no
configuration and no ids. Shapes: B batch, S source tokens, T target tokens, D d_model.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from repro.model.attention import MultiHeadAttention, Sees, SelfAttention
from repro.model.prepacked import PackedLinear

NORM_EPS = 1e-6  # not in the paper; the first public code's


class Dropout(nn.Module):
    """Zero each number with probability `p`, scale the rest. Paper: section 5.4 (residual dropout).

    On a CPU, PyTorch draws one random number after another on one thread. Here each 64 random bits give four
    16-bit numbers to compare with a threshold: several times as fast, with p rounded to a multiple of 1/65536
    (deviation: p = 0.1 becomes 0.100006; the scale uses the rounded p, so the mean is kept).
    """

    def __init__(self, p: float) -> None:
        super().__init__()
        self.p = p
        self.dropped = round(p * 2**16)  # of 65,536 equally likely values

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or self.dropped == 0:
            return x
        if x.device.type != "cpu":
            return nn.functional.dropout(x, self.p)
        bits = torch.empty((x.numel() + 3) // 4, dtype=torch.int64).random_(-(2**63), None)
        numbers = bits.view(torch.int16)[: x.numel()].view(x.shape).to(torch.float32)
        kept = numbers.ge_(self.dropped - 2**15)  # 1 or 0, in place of the numbers: booleans are slow to multiply by
        return x * kept.mul_(2**16 / (2**16 - self.dropped)).to(x.dtype)


class FeedForward(nn.Sequential):
    """max(0, x W_1 + b_1) W_2 + b_2, at each position alike. Paper: section 3.3, equation (2)."""

    def __init__(self, *, d_model: int, d_ff: int) -> None:
        up, down = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)
        super().__init__(up, nn.ReLU(), down)  # not in place: `up` gives a view, whose gradient would be copied thrice
        for linear in (up, down):
            nn.init.xavier_uniform_(linear.weight)
            nn.init.zeros_(linear.bias)
        self.prepacked: dict[str, PackedLinear] = {}  # while the weights stay as they are

    def prepack(self, dtype: torch.dtype) -> None:
        """Have the products prepared, until `prepacked` is cleared: for weights that stay as they are."""
        for what, linear in (("up", self[0]), ("down", self[2])):
            assert isinstance(linear, nn.Linear)
            self.prepacked[what] = PackedLinear(linear.weight, linear.bias, dtype)

    def forward(self, x: Tensor) -> Tensor:
        """[..., D] -> [..., D]."""
        if self.prepacked:
            return self.prepacked["down"](self.prepacked["up"](x).relu_())
        made: Tensor = super().forward(x)  # type: ignore[no-untyped-call]
        return made


class EncoderLayer(nn.Module):
    """Self-attention, then the feed-forward network. Paper: section 3.1, left half of figure 1."""

    def __init__(self, *, d_model: int, d_ff: int, n_heads: int, d_k: int, d_v: int, dropout: float) -> None:
        super().__init__()
        self.self_attention = SelfAttention(d_model=d_model, n_heads=n_heads, d_k=d_k, d_v=d_v)
        self.feed_forward = FeedForward(d_model=d_model, d_ff=d_ff)
        self.norms = nn.ModuleList(nn.LayerNorm(d_model, eps=NORM_EPS) for _ in range(2))
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor, source_bias: Sees) -> Tensor:
        """x [B, S, D], source_bias [B, 1, 1, S] -> [B, S, D]; or x [N, D] with spans."""
        x = self.norms[0](x + self.dropout(self.self_attention(x, source_bias)))
        return self.norms[1](x + self.dropout(self.feed_forward(x)))


@dataclass
class LayerCache:
    """What one decoder layer remembers of B sentences while it writes W hypotheses of each.

    The hypotheses of a sentence share its slots, in the order of writing: parents change with every token, keys stay
    where they are, and a bias says which slots are a hypothesis's own past. Keys lie as `allocate_keys` makes them.
    """

    k: Tensor  # [B, H, room for slots, d_k]
    v: Tensor  # [B, H, room for slots, d_v]
    source_k: Tensor  # [B, H, S, d_k]
    source_v: Tensor  # [B, H, S, d_v]

    def write(self, k: Tensor, v: Tensor, used: int) -> tuple[Tensor, Tensor]:
        """Put keys and values [B, H, W, E] behind the `used` slots; back come all written so far."""
        stop = used + k.shape[2]
        self.k[:, :, used:stop], self.v[:, :, used:stop] = k, v
        return self.k[:, :, :stop], self.v[:, :, :stop]

    def moved(self, slots: Tensor, room: int) -> "LayerCache":
        """Only `slots` int64 [B, n] of each sentence, in this order, in new room."""
        k, v = allocate_keys(self.k, room), self.v.new_empty(*self.v.shape[:2], room, self.v.shape[3])
        for past, made in ((self.k, k), (self.v, v)):
            index = slots[:, None, :, None].expand(-1, past.shape[1], -1, past.shape[3])
            made[:, :, : slots.shape[1]] = past.gather(2, index)
        return LayerCache(k, v, self.source_k, self.source_v)


def allocate_keys(k: Tensor, room: int) -> Tensor:
    """Fresh memory for keys like k [B, H, any, d_k]: [B, H, room, d_k].

    On a CPU the numbers of one coordinate stand side by side, of all keys: few queries meet many of them, and a
    product of matrices so small is twice as fast if it has nothing to turn round (`benchmarks/decode.py`).
    """
    n, heads, _, d_k = k.shape
    return k.new_empty(n, heads, room, d_k) if k.is_cuda else k.new_empty(n, heads, d_k, room).transpose(2, 3)


class DecoderLayer(nn.Module):
    """Masked self-attention, attention to the encoder, feed-forward. Paper: section 3.1, right half of figure 1."""

    def __init__(self, *, d_model: int, d_ff: int, n_heads: int, d_k: int, d_v: int, dropout: float) -> None:
        super().__init__()
        self.self_attention = SelfAttention(d_model=d_model, n_heads=n_heads, d_k=d_k, d_v=d_v)
        self.cross_attention = MultiHeadAttention(d_model=d_model, n_heads=n_heads, d_k=d_k, d_v=d_v)
        self.feed_forward = FeedForward(d_model=d_model, d_ff=d_ff)
        self.norms = nn.ModuleList(nn.LayerNorm(d_model, eps=NORM_EPS) for _ in range(3))
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor, memory: Tensor, causal_bias: Sees, source_bias: Sees) -> Tensor:
        """x [B, T, D], memory [B, S, D], causal_bias [T, T], source_bias [B, 1, 1, S] -> [B, T, D]; or with spans."""
        x = self.norms[0](x + self.dropout(self.self_attention(x, causal_bias)))
        x = self.norms[1](x + self.dropout(self.cross_attention(x, memory, source_bias)))
        return self.norms[2](x + self.dropout(self.feed_forward(x)))

    def step(self, x: Tensor, cache: LayerCache, used: int, own_bias: Tensor, source_bias: Tensor) -> Tensor:
        """The same for one new position of W hypotheses, x [B, W, D], which it writes into the cache.

        own_bias [B, 1, W, used + W] hides the slots of other hypotheses. The W hypotheses of a sentence stand side by
        side as W queries, so the keys and values of its source are never copied.
        """
        q, k, v = self.self_attention.project(x)
        x = self.norms[0](x + self.self_attention.attend(q, *cache.write(k, v, used), own_bias))
        q = self.cross_attention.queries(x)
        x = self.norms[1](x + self.cross_attention.attend(q, cache.source_k, cache.source_v, source_bias))
        return self.norms[2](x + self.feed_forward(x))
