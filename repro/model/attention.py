"""Scaled dot-product attention and multi-head attention. Paper: section 3.2, figure 2.

Shapes: B batch, Q queries, K keys, H heads, E width of one head (d_k for q and k, d_v for v). In a batch without
padding (`masks.Ragged`) there is no B, and Q and K count the tokens of all sentences.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from repro.model.embedding import Dropout
from repro.model.masks import RaggedMask, Sees, hidden_bias

ALL = slice(None)  # rows of W^Q, W^K and W^V


def scaled_scores(q_BHQE: Tensor, k_BHKE: Tensor) -> Tensor:
    """q k^T / sqrt(d_k), [B, H, Q, K]. Paper: section 3.2.1."""
    return (q_BHQE * q_BHQE.shape[-1] ** -0.5) @ k_BHKE.transpose(-2, -1)


def softmax_of_seen(scores_BHQK: Tensor, bias: Tensor | None) -> Tensor:
    """softmax(scores + bias); each row sums to one."""
    if bias is not None:
        scores_BHQK = scores_BHQK + bias
    return scores_BHQK.softmax(dim=-1)


def attention_weights(q_BHQE: Tensor, k_BHKE: Tensor, bias: Tensor | None) -> Tensor:
    """softmax(q k^T / sqrt(d_k) + bias), [B, H, Q, K]; each row sums to one. Paper: section 3.2.1."""
    return softmax_of_seen(scaled_scores(q_BHQE, k_BHKE), bias)


def attention(
    q_BHQE: Tensor, k_BHKE: Tensor, v_BHKE: Tensor, bias: Tensor | None = None, dropout: nn.Module | None = None
) -> Tensor:
    """softmax(q k^T / sqrt(d_k)) v, [B, H, Q, E]. Paper: section 3.2.1, equation (1).

    `dropout` applies to the weights; the paper has none there. A GPU runs a fused kernel. A CPU runs the two plain
    products, which are faster than the fused kernel at sentence lengths (`benchmarks/attention.py`).
    """
    if q_BHQE.is_cuda and dropout is None:
        if bias is not None:
            bias = bias.to(q_BHQE.dtype)
        return F.scaled_dot_product_attention(q_BHQE, k_BHKE, v_BHKE, attn_mask=bias)
    weights_BHQK = attention_weights(q_BHQE, k_BHKE, bias)
    if dropout is not None:
        weights_BHQK = dropout(weights_BHQK)
    return weights_BHQK @ v_BHKE


class Mixing:
    """How queries meet keys and values: scores, then weights from the scores, then weighted sums of the values.

    A variant subclasses this and replaces one of the three steps; it also subclasses `nn.Module` if it has parameters.
    Each attention makes its own, from the number of heads and their widths.
    """

    in_kernel = False  # whether the kernel for unequal lengths computes the same function

    def __init__(self, *, n_heads: int, d_k: int, d_v: int) -> None:
        super().__init__()
        self.n_heads, self.d_k, self.d_v = n_heads, d_k, d_v

    def scores(self, q_BHQE: Tensor, k_BHKE: Tensor) -> Tensor:
        """How well each key answers each query, [B, H, Q, K]."""
        return scaled_scores(q_BHQE, k_BHKE)

    def select(self, scores_BHQK: Tensor, bias: Tensor | None) -> Tensor:
        """Turn scores into weights; a key that the bias hides gets 0."""
        return softmax_of_seen(scores_BHQK, bias)

    def weights(self, q_BHQE: Tensor, k_BHKE: Tensor, bias: Tensor | None) -> Tensor:
        """The weights of each query over the keys, [B, H, Q, K]."""
        return self.select(self.scores(q_BHQE, k_BHKE), bias)

    def __call__(
        self, q_BHQE: Tensor, k_BHKE: Tensor, v_BHKE: Tensor, bias: Tensor | None, dropout: nn.Module | None = None, /
    ) -> Tensor:
        """The output of each head, [B, H, Q, E]; `dropout` applies to the weights."""
        weights_BHQK = self.weights(q_BHQE, k_BHKE, bias)
        return (weights_BHQK if dropout is None else dropout(weights_BHQK)) @ v_BHKE


class ScaledDotProduct(Mixing):
    """Scaled dot-product attention, the paper's. Equation (1)."""

    in_kernel = True

    def __call__(
        self, q_BHQE: Tensor, k_BHKE: Tensor, v_BHKE: Tensor, bias: Tensor | None, dropout: nn.Module | None = None, /
    ) -> Tensor:
        return attention(q_BHQE, k_BHKE, v_BHKE, bias, dropout)


# Sentences without padding

WIDEST = 256  # the widest head of the kernel for unequal lengths, FlashAttention, which needs compute capability 8.0


def has_kernel(q: Tensor, d_v: int) -> bool:
    """Whether the kernel for unequal lengths accepts these queries, with values of width `d_v`."""
    if not q.is_cuda or q.dtype not in (torch.bfloat16, torch.float16) or max(q.shape[-1], d_v) > WIDEST:
        return False
    return bool(torch.cuda.get_device_properties(q.device).major >= 8)


def ragged_attention(
    mixing: Mixing, q_HQE: Tensor, k_HKE: Tensor, v_HKE: Tensor, spans: RaggedMask, dropout: nn.Module | None = None
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
    mixing: Mixing, q_HQE: Tensor, k_HKE: Tensor, v_HKE: Tensor, spans: RaggedMask, dropout: nn.Module | None
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


# Several heads


class MultiHeadAttention(nn.Module):
    """Concat(head_1 .. head_h) W^O, head_i = Attention(Q W_i^Q, K W_i^K, V W_i^V). Paper: section 3.2.2.

    The general form: queries come from one sequence, keys and values from another (encoder-decoder
    attention, section 3.2.3). W^Q, W^K and W^V of all heads are the rows of one matrix, heads side by
    side. d_k and d_v are free: W^O is (h d_v) x d_model. Biases as in the first public code.
    """

    def __init__(
        self,
        *,
        d_model: int,
        n_heads: int,
        d_k: int,
        d_v: int,
        dropout: float = 0.0,
        mix: Callable[..., Mixing] = ScaledDotProduct,
    ) -> None:
        """`dropout` applies to the attention weights; `mix` is how queries meet keys."""
        super().__init__()
        self.n_heads, self.d_k, self.d_v = n_heads, d_k, d_v
        self.d_queries = n_heads * d_k
        self.of_queries, self.of_memory = slice(self.d_queries), slice(self.d_queries, None)  # rows of W
        self.weight = nn.Parameter(torch.empty(n_heads * (2 * d_k + d_v), d_model))
        self.bias = nn.Parameter(torch.zeros(n_heads * (2 * d_k + d_v)))
        self.output = nn.Linear(n_heads * d_v, d_model)
        self.recorded: list[Tensor] | None = None  # weights of each head are appended while this is a list
        self.mixing = mix(n_heads=n_heads, d_k=d_k, d_v=d_v)
        self.dropout = Dropout(dropout) if dropout else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Glorot uniform; keys and values are initialised as one matrix, as in the first public code."""
        nn.init.xavier_uniform_(self.weight[: self.d_queries])
        nn.init.xavier_uniform_(self.weight[self.d_queries :])
        nn.init.xavier_uniform_(self.output.weight)
        nn.init.zeros_(self.output.bias)

    def queries(self, x: Tensor) -> Tensor:
        """[B, Q, d_model] -> [B, H, Q, d_k]."""
        return self._split(self.product(self.of_queries, x), self.d_k)

    def keys_values(self, memory: Tensor) -> tuple[Tensor, Tensor]:
        """[B, K, d_model] -> [B, H, K, d_k] and [B, H, K, d_v]."""
        kv = self.product(self.of_memory, memory)
        k, v = kv.split([self.n_heads * self.d_k, self.n_heads * self.d_v], dim=-1)
        return self._split(k, self.d_k), self._split(v, self.d_v)

    def attend(self, q_BHQE: Tensor, k_BHKE: Tensor, v_BHKE: Tensor, bias: Sees) -> Tensor:
        """Attention of separate heads, joined by W^O: [B, Q, d_model]."""
        if self.recorded is not None:
            assert bias is None or isinstance(bias, Tensor), "weights are recorded of padded sentences"
            self.recorded.append(self.mixing.weights(q_BHQE, k_BHKE, bias).detach())
        dropout = self.dropout if self.training else None
        if isinstance(bias, RaggedMask):
            heads_BHQE = ragged_attention(self.mixing, q_BHQE, k_BHKE, v_BHKE, bias, dropout)
        else:
            heads_BHQE = self.mixing(q_BHQE, k_BHKE, v_BHKE, bias, dropout)
        made: Tensor = self.output(heads_BHQE.transpose(-3, -2).flatten(-2))
        return made

    def forward(self, x: Tensor, memory: Tensor, bias: Sees = None) -> Tensor:
        """Queries from x [B, Q, d_model], keys and values from memory [B, K, d_model]: [B, Q, d_model]."""
        return self.attend(self.queries(x), *self.keys_values(memory), bias)

    def product(self, rows: slice, x: Tensor) -> Tensor:
        """x W + b with these rows of W: `of_queries`, `of_memory` (keys and values) or `ALL`."""
        return F.linear(x, self.weight[rows], self.bias[rows])

    def _split(self, x: Tensor, width: int) -> Tensor:
        return x.unflatten(-1, (self.n_heads, width)).transpose(-3, -2)


class SelfAttention(MultiHeadAttention):
    """Multi-head attention whose queries, keys and values come from one sequence. Paper: section 3.2.3."""

    def reset_parameters(self) -> None:
        """Glorot uniform, queries, keys and values as one matrix: bound sqrt(6 / 4 d) instead of sqrt(6 / 2 d)."""
        nn.init.xavier_uniform_(self.weight)
        nn.init.xavier_uniform_(self.output.weight)
        nn.init.zeros_(self.output.bias)

    def project(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """[B, Q, d_model] -> q, k, v split into heads, by one matrix product."""
        widths = [self.n_heads * self.d_k, self.n_heads * self.d_k, self.n_heads * self.d_v]
        q, k, v = self.product(ALL, x).split(widths, dim=-1)
        return self._split(q, self.d_k), self._split(k, self.d_k), self._split(v, self.d_v)

    def forward(self, x: Tensor, bias: Sees = None) -> Tensor:  # type: ignore[override]
        """Queries, keys and values from x [B, Q, d_model]: [B, Q, d_model]."""
        return self.attend(*self.project(x), bias)
