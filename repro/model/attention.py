"""Scaled dot-product attention and multi-head attention. Paper: section 3.2, figure 2.

Shapes: B batch, Q queries, K keys, H heads, E width of one head (d_k for q and k, d_v for v). Where sentences stand one
after the other without padding (`repro/model/ragged.py`) there is no B, and Q and K count the tokens of all of them.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.attention.varlen import varlen_attn

from repro.model.prepacked import PackedLinear


def hidden_bias(may_see: Tensor, dtype: torch.dtype) -> Tensor:
    """Turn a mask (True = may be attended to) into a bias on the scores: 0 or very negative.

    Half of the smallest finite number, not -infinity: a query that may see nothing then gets uniform
    weights instead of NaN, forward and backward, and adding a score cannot overflow.
    """
    zero = torch.zeros((), dtype=dtype, device=may_see.device)
    return torch.where(may_see, zero, torch.finfo(dtype).min / 2)


@dataclass(frozen=True)
class RaggedMask:
    """Who may see whom among sentences in a row: each query the keys of its own sentence."""

    queries: Tensor  # int32 [B + 1]: 0, then where the queries of each sentence end
    keys: Tensor  # int32 [B + 1]
    longest_query: int
    longest_key: int
    causal: bool = False  # and of them only those up to its own position


Sees = Tensor | RaggedMask | None  # a bias on the scores that broadcasts to [B, H, Q, K], or spans; None: everything


def attention_weights(q_BHQE: Tensor, k_BHKE: Tensor, bias: Tensor | None) -> Tensor:
    """softmax(q k^T / sqrt(d_k) + bias), [B, H, Q, K]; each row sums to one. Paper: section 3.2.1."""
    scores_BHQK = (q_BHQE * q_BHQE.shape[-1] ** -0.5) @ k_BHKE.transpose(-2, -1)
    if bias is not None:
        scores_BHQK = scores_BHQK + bias
    return scores_BHQK.softmax(dim=-1)


def attention(q_BHQE: Tensor, k_BHKE: Tensor, v_BHKE: Tensor, bias: Sees = None) -> Tensor:
    """softmax(q k^T / sqrt(d_k)) v, [B, H, Q, E]. Paper: section 3.2.1, equation (1).

    On a GPU a fused kernel; on a CPU the two plain products, which are faster than the fused kernel at
    sentence lengths (`benchmarks/attention.py`).
    """
    if isinstance(bias, RaggedMask):
        return ragged_attention(q_BHQE, k_BHKE, v_BHKE, bias)
    if q_BHQE.is_cuda:
        if bias is not None:
            bias = bias.to(q_BHQE.dtype)
        return F.scaled_dot_product_attention(q_BHQE, k_BHKE, v_BHKE, attn_mask=bias)
    return attention_weights(q_BHQE, k_BHKE, bias) @ v_BHKE


def has_kernel(q: Tensor) -> bool:
    """Whether the kernel for unequal lengths takes such queries."""
    return q.is_cuda and q.dtype in (torch.bfloat16, torch.float16)


def ragged_attention(q_HQE: Tensor, k_HKE: Tensor, v_HKE: Tensor, spans: RaggedMask) -> Tensor:
    """The same for sentences in a row, [H, Q, E]: a kernel for unequal lengths where there is one, else padded."""
    if not has_kernel(q_HQE):
        return _padded_attention(q_HQE, k_HKE, v_HKE, spans)
    d_k, d_v = q_HQE.shape[-1], v_HKE.shape[-1]
    width = -(-max(d_k, d_v) // 8) * 8  # the kernel's heads are equally wide, by eights
    q, k, v = (F.pad(x, (0, width - x.shape[-1])).transpose(0, 1) for x in (q_HQE, k_HKE, v_HKE))
    heads = varlen_attn(
        q, k, v, spans.queries, spans.keys, spans.longest_query, spans.longest_key,
        scale=d_k**-0.5, window_size=(-1, 0 if spans.causal else -1),
    )  # fmt: skip
    assert isinstance(heads, Tensor)  # a tuple only where more is asked for
    return heads.transpose(0, 1)[..., :d_v]


def _padded_attention(q_HQE: Tensor, k_HKE: Tensor, v_HKE: Tensor, spans: RaggedMask) -> Tensor:
    """Each sentence in a row of its own, as long as the longest."""
    queries = _grid(spans.queries, spans.longest_query, q_HQE.shape[1])
    keys = _grid(spans.keys, spans.longest_key, k_HKE.shape[1])
    places = torch.arange(spans.longest_query, device=q_HQE.device)
    before = places[:, None] >= torch.arange(spans.longest_key, device=q_HQE.device)
    may_see = keys.real[:, None, :] & (before if spans.causal else True)  # [B, Q, K]
    bias = hidden_bias(may_see, q_HQE.dtype)[:, None]
    q, k, v = (
        x[:, grid.place].transpose(0, 1) for x, grid in ((q_HQE, queries), (k_HKE, keys), (v_HKE, keys))
    )  # [B, H, longest, E]
    heads_BHQE = attention(q, k, v, bias)
    return heads_BHQE.transpose(0, 1)[:, queries.real]


@dataclass(frozen=True)
class _Grid:
    place: Tensor  # int64 [B, longest] of each token in the row of all; where there is none, of some other
    real: Tensor  # bool [B, longest]


def _grid(ends: Tensor, longest: int, n_tokens: int) -> _Grid:
    begin, end = ends[:-1, None].long(), ends[1:, None].long()
    place = begin + torch.arange(longest, device=ends.device)
    return _Grid(place.clamp(max=n_tokens - 1), place < end)


class MultiHeadAttention(nn.Module):
    """Concat(head_1 .. head_h) W^O, head_i = Attention(Q W_i^Q, K W_i^K, V W_i^V). Paper: section 3.2.2.

    The general form: queries come from one sequence, keys and values from another (encoder-decoder
    attention, section 3.2.3). W^Q, W^K and W^V of all heads are the rows of one matrix, heads side by
    side. d_k and d_v are free: W^O is (h d_v) x d_model. Biases as in the first public code.
    """

    SEARCHED: tuple[str, ...] = ("queries",)  # what a search projects token by token

    def __init__(self, *, d_model: int, n_heads: int, d_k: int, d_v: int) -> None:
        super().__init__()
        self.n_heads, self.d_k, self.d_v = n_heads, d_k, d_v
        self.d_queries = n_heads * d_k
        self.weight = nn.Parameter(torch.empty(n_heads * (2 * d_k + d_v), d_model))
        self.bias = nn.Parameter(torch.zeros(n_heads * (2 * d_k + d_v)))
        self.output = nn.Linear(n_heads * d_v, d_model)
        self.recorded: list[Tensor] | None = None  # per-head weights, kept while this is a list
        self.prepacked: dict[str, PackedLinear] = {}  # by what they project, while the weights stay as they are
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Glorot uniform; keys and values are one matrix here, as they were in the first public code."""
        nn.init.xavier_uniform_(self.weight[: self.d_queries])
        nn.init.xavier_uniform_(self.weight[self.d_queries :])
        nn.init.xavier_uniform_(self.output.weight)
        nn.init.zeros_(self.output.bias)

    def queries(self, x: Tensor) -> Tensor:
        """[B, Q, d_model] -> [B, H, Q, d_k]."""
        return self._split(self._project(x, "queries"), self.d_k)

    def keys_values(self, memory: Tensor) -> tuple[Tensor, Tensor]:
        """[B, K, d_model] -> [B, H, K, d_k] and [B, H, K, d_v]."""
        kv = self._project(memory, "keys_values")
        k, v = kv.split([self.n_heads * self.d_k, self.n_heads * self.d_v], dim=-1)
        return self._split(k, self.d_k), self._split(v, self.d_v)

    def attend(self, q_BHQE: Tensor, k_BHKE: Tensor, v_BHKE: Tensor, bias: Sees) -> Tensor:
        """Heads apart in, [B, Q, d_model] out."""
        if self.recorded is not None:
            assert not isinstance(bias, RaggedMask), "weights are recorded of padded sentences"
            self.recorded.append(attention_weights(q_BHQE, k_BHKE, bias).detach())
        heads_BHQE = attention(q_BHQE, k_BHKE, v_BHKE, bias)
        joined = heads_BHQE.transpose(-3, -2).flatten(-2)
        made: Tensor = self.prepacked["output"](joined) if self.prepacked else self.output(joined)
        return made

    def forward(self, x: Tensor, memory: Tensor, bias: Sees = None) -> Tensor:
        """x [B, Q, d_model] asks memory [B, K, d_model]."""
        return self.attend(self.queries(x), *self.keys_values(memory), bias)

    def prepack(self, dtype: torch.dtype) -> None:
        """Have the products of a search prepared, until `prepacked` is cleared: for weights that stay as they are."""
        for what in self.SEARCHED:
            self.prepacked[what] = PackedLinear(self.weight[self._rows(what)], self.bias[self._rows(what)], dtype)
        self.prepacked["output"] = PackedLinear(self.output.weight, self.output.bias, dtype)

    def _rows(self, what: str) -> slice:
        return {"queries": slice(self.d_queries), "keys_values": slice(self.d_queries, None), "all": slice(None)}[what]

    def _project(self, x: Tensor, what: str) -> Tensor:
        if what in self.prepacked:
            return self.prepacked[what](x)
        return F.linear(x, self.weight[self._rows(what)], self.bias[self._rows(what)])

    def _split(self, x: Tensor, width: int) -> Tensor:
        return x.unflatten(-1, (self.n_heads, width)).transpose(-3, -2)


class SelfAttention(MultiHeadAttention):
    """Multi-head attention whose queries, keys and values come from one sequence. Paper: section 3.2.3."""

    SEARCHED = ("all",)

    def reset_parameters(self) -> None:
        """Glorot uniform over queries, keys and values as one matrix: bound sqrt(6 / 4 d), not sqrt(6 / 2 d)."""
        nn.init.xavier_uniform_(self.weight)
        nn.init.xavier_uniform_(self.output.weight)
        nn.init.zeros_(self.output.bias)

    def project(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """[B, Q, d_model] -> q, k, v with heads apart, by one product."""
        widths = [self.n_heads * self.d_k, self.n_heads * self.d_k, self.n_heads * self.d_v]
        q, k, v = self._project(x, "all").split(widths, dim=-1)
        return self._split(q, self.d_k), self._split(k, self.d_k), self._split(v, self.d_v)

    def forward(self, x: Tensor, bias: Sees = None) -> Tensor:  # type: ignore[override]
        """x [B, Q, d_model] asks itself."""
        return self.attend(*self.project(x), bias)
