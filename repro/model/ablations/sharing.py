"""Weights shared between projections, or equal between heads. Paper: section 3.2.2, where each has its own."""

import torch
from torch import Tensor, nn

from repro.model.attention import ALL, MultiHeadAttention, SelfAttention
from repro.model.config import Hyper
from repro.model.transformer import Transformer


class QueriesAreKeys(SelfAttention):
    """W^Q := W^K: scores are symmetric, weights are not, as those of each query sum to one."""

    def __init__(self, **sizes: object) -> None:
        super().__init__(**sizes)  # type: ignore[arg-type]
        self.weight = nn.Parameter(self.weight[self.d_queries :].detach().clone())
        self.bias = nn.Parameter(self.bias[self.d_queries :].detach().clone())

    def project(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """[B, Q, d_model] -> k, k, v split into heads, by one matrix product."""
        k, v = self.product(ALL, x).split([self.n_heads * self.d_k, self.n_heads * self.d_v], dim=-1)
        keys = self._split(k, self.d_k)
        return keys, keys, self._split(v, self.d_v)


class IdenticalHeads(Transformer):
    """All heads of a layer start with equal W^Q, W^K, W^V and slices of W^O, so training never makes them differ."""

    def __init__(self, hyper: Hyper, vocab_size: int) -> None:
        super().__init__(hyper, vocab_size)
        for part in self.modules():
            if isinstance(part, MultiHeadAttention):
                start_alike(part)


@torch.no_grad()
def start_alike(attention: MultiHeadAttention, *, output: bool = True) -> None:
    """Give every head the weights of the first; its slice of W^O as well only if `output`."""
    h, d_k, d_v = attention.n_heads, attention.d_k, attention.d_v
    for rows in attention.weight.split([h * d_k, h * d_k, h * d_v]):
        rows.unflatten(0, (h, -1))[1:] = rows.unflatten(0, (h, -1))[0]
    if output:
        columns = attention.output.weight.unflatten(1, (h, d_v))
        columns[:, 1:] = columns[:, :1]
