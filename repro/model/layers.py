"""Encoder and decoder layers: sub-layers with dropout, residual sum and normalisation. Paper: section 3.1, 3.3.

Layers take numbers and ready-made masks, never configuration or ids. The code around a sub-layer, how queries meet
keys, self-attention and the feed-forward network are arguments; the defaults are the paper's.
Shapes: B batch, S source tokens, T target tokens, D d_model.
"""

from collections.abc import Callable

from torch import Tensor, nn

from repro.model.attention import Mixing, MultiHeadAttention, ScaledDotProduct, SelfAttention
from repro.model.embedding import Dropout
from repro.model.kv_cache import LayerCache
from repro.model.masks import Sees

NORM_EPS = 1e-6  # from the first public code; the paper gives none


class PostNorm:
    """What stands around a sub-layer, as printed: LayerNorm(x + Dropout(Sublayer(x))). Variants subclass this."""

    @staticmethod
    def norm(d_model: int) -> nn.Module:
        """The normalisation of one sub-layer."""
        return nn.LayerNorm(d_model, eps=NORM_EPS)

    @staticmethod
    def after_stack(d_model: int) -> nn.Module | None:
        """The normalisation after the last layer; post-norm needs none."""
        return None

    @staticmethod
    def around(
        x: Tensor, sub_layer: Callable[[Tensor], Tensor], norm: nn.Module, dropout: Callable[[Tensor], Tensor]
    ) -> Tensor:
        """The sub-layer with what stands around it, x [..., D] -> [..., D]."""
        made: Tensor = norm(x + dropout(sub_layer(x)))
        return made


class FeedForward(nn.Sequential):
    """max(0, x W_1 + b_1) W_2 + b_2, the same at each position. Paper: section 3.3, equation (2)."""

    def __init__(self, *, d_model: int, d_ff: int) -> None:
        up, down = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)
        super().__init__(up, nn.ReLU(), down)  # not in place: `up` gives a view, whose gradient would be copied thrice
        for linear in (up, down):
            nn.init.xavier_uniform_(linear.weight)
            nn.init.zeros_(linear.bias)


class EncoderLayer(nn.Module):
    """Self-attention, then the feed-forward network. Paper: section 3.1, left half of figure 1."""

    def __init__(
        self,
        *,
        d_model: int,
        d_ff: int,
        n_heads: int,
        d_k: int,
        d_v: int,
        dropout: float,
        attention_dropout: float = 0.0,
        mix: Callable[..., Mixing] = ScaledDotProduct,
        around: type[PostNorm] = PostNorm,
        self_attention: Callable[..., SelfAttention] = SelfAttention,
        feed_forward: Callable[..., nn.Module] = FeedForward,
    ) -> None:
        super().__init__()
        heads = {"n_heads": n_heads, "d_k": d_k, "d_v": d_v}
        self.self_attention = self_attention(d_model=d_model, **heads, dropout=attention_dropout, mix=mix)
        self.feed_forward = feed_forward(d_model=d_model, d_ff=d_ff)
        self.norms = nn.ModuleList(around.norm(d_model) for _ in range(2))
        self.dropout = Dropout(dropout)
        self.around = around.around

    def forward(self, x: Tensor, source_bias: Sees) -> Tensor:
        """x [B, S, D], source_bias [B, 1, 1, S] -> [B, S, D]; or x [N, D] with a RaggedMask."""
        x = self.around(x, lambda x: self.self_attention(x, source_bias), self.norms[0], self.dropout)
        return self.around(x, self.feed_forward, self.norms[1], self.dropout)


class DecoderLayer(nn.Module):
    """Masked self-attention, attention to the encoder, feed-forward. Paper: section 3.1, right half of figure 1."""

    def __init__(
        self,
        *,
        d_model: int,
        d_ff: int,
        n_heads: int,
        d_k: int,
        d_v: int,
        dropout: float,
        attention_dropout: float = 0.0,
        mix: Callable[..., Mixing] = ScaledDotProduct,
        mix_source: Callable[..., Mixing] = ScaledDotProduct,
        around: type[PostNorm] = PostNorm,
        self_attention: Callable[..., SelfAttention] = SelfAttention,
        feed_forward: Callable[..., nn.Module] = FeedForward,
    ) -> None:
        super().__init__()
        heads = {"n_heads": n_heads, "d_k": d_k, "d_v": d_v}
        self.self_attention = self_attention(d_model=d_model, **heads, dropout=attention_dropout, mix=mix)
        self.cross_attention = MultiHeadAttention(d_model=d_model, **heads, dropout=attention_dropout, mix=mix_source)
        self.feed_forward = feed_forward(d_model=d_model, d_ff=d_ff)
        self.norms = nn.ModuleList(around.norm(d_model) for _ in range(3))
        self.dropout = Dropout(dropout)
        self.around = around.around

    def forward(self, x: Tensor, memory: Tensor, causal_bias: Sees, source_bias: Sees) -> Tensor:
        """x [B, T, D], memory [B, S, D], causal_bias [T, T], source_bias [B, 1, 1, S] -> [B, T, D]; or ragged."""
        x = self.around(x, lambda x: self.self_attention(x, causal_bias), self.norms[0], self.dropout)
        x = self.around(x, lambda x: self.cross_attention(x, memory, source_bias), self.norms[1], self.dropout)
        return self.around(x, self.feed_forward, self.norms[2], self.dropout)

    def step(self, x: Tensor, cache: LayerCache, used: int, own_bias: Tensor, source_bias: Tensor) -> Tensor:
        """The same for one new position of W hypotheses, x [B, W, D]; writes its keys and values into the cache.

        own_bias [B, 1, W, used + W] hides the slots of other hypotheses. The W hypotheses of a sentence are W queries
        of one batch row, so the keys and values of the source are never copied.
        """

        def past(x: Tensor) -> Tensor:
            q, k, v = self.self_attention.project(x)
            return self.self_attention.attend(q, *cache.write(k, v, used), own_bias)

        def source(x: Tensor) -> Tensor:
            q = self.cross_attention.queries(x)
            return self.cross_attention.attend(q, cache.source_k, cache.source_v, source_bias)

        x = self.around(x, past, self.norms[0], self.dropout)
        x = self.around(x, source, self.norms[1], self.dropout)
        return self.around(x, self.feed_forward, self.norms[2], self.dropout)
