"""Attention whose weights depend on positions only, not on the input (Tay et al. 2020)."""

import torch
from torch import Tensor, nn

from repro.model.attention import ALL, SelfAttention
from repro.model.config import LEARNED_POSITIONS, Hyper
from repro.model.protocol import Plain
from repro.model.transformer import Transformer


class ByPlace(SelfAttention):
    """An n x n matrix of weights for each head, softmax(P_Q P_K^T / sqrt(d_k)): a query and a key for each position.

    At the paper's size P_Q and P_K have as many numbers as W^Q and W^K; their initial scores have the same spread.
    """

    def __init__(self, **sizes: object) -> None:
        super().__init__(**sizes)  # type: ignore[arg-type]
        d_values = self.n_heads * self.d_v
        self.weight = nn.Parameter(self.weight[-d_values:].detach().clone())
        self.bias = nn.Parameter(self.bias[-d_values:].detach().clone())
        self.places = nn.Parameter(torch.empty(2, self.n_heads, LEARNED_POSITIONS, self.d_k))
        nn.init.normal_(self.places, std=0.5**0.5)

    def project(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """[B, L, d_model] -> queries and keys of positions 0 to L - 1, and values of x, split into heads."""
        if x.shape[1] > LEARNED_POSITIONS:
            raise ValueError(
                f"Static weights end at place {LEARNED_POSITIONS}, but {x.shape[1]} tokens were read. Use attention or "
                "shorter sentences."
            )
        q, k = self.places[:, None, :, : x.shape[1]].expand(-1, len(x), -1, -1, -1)
        return q, k, self._split(self.product(ALL, x), self.d_v)


class StaticMixing(Plain, Transformer):  # type: ignore[misc]
    """Static weights in self-attention; attention to the source is unchanged.

    Cached keys are not in the order of the sentence, so a search reads the prefix anew.
    """

    def __init__(self, hyper: Hyper, vocab_size: int) -> None:
        super().__init__(hyper, vocab_size, self_attention=ByPlace)
