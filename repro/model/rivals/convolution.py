"""Convolution of a sequence: the tokens in reach, concatenated, times a matrix: y_i = W [x_{i-r} ; .. ; x_i ; ..] + b.

Gehring et al. (2017), section 3.2, write it so. In an encoder a token is at the centre of what it sees, in a decoder
at the end. Shapes: B sentences, L tokens, R hypotheses in a search, k kernel.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class SequenceConvolution(nn.Module):
    """A convolution over `kernel` tokens, `dilation` places apart, with zeros beyond the ends of a sentence."""

    def __init__(self, d_in: int, d_out: int, *, kernel: int, dilation: int = 1, causal: bool) -> None:
        super().__init__()
        if not causal and kernel % 2 == 0:
            raise ValueError(
                f"A kernel of {kernel} has no centre: expected an odd one where a token sees both sides, as in an "
                f"encoder. Choose {kernel - 1} or {kernel + 1}."
            )
        self.kernel, self.dilation = kernel, dilation
        self.reach = (kernel - 1) * dilation  # from the first token seen to the last
        self.before = self.reach if causal else self.reach // 2  # the part of it before the token itself
        self.linear = nn.Linear(kernel * d_in, d_out)

    def forward(self, x: Tensor) -> Tensor:
        """[B, L, d_in] -> [B, L, d_out]; values at padding are not masked here, so the caller should make them zero."""
        length = x.shape[1]
        around = F.pad(x, (0, 0, self.before, self.reach - self.before))
        seen = [around[:, start : start + length] for start in range(0, self.reach + 1, self.dilation)]
        made: Tensor = self.linear(torch.cat(seen, dim=-1))
        return made

    def begun(self, like: Tensor) -> Tensor:
        """The past of a decoder before the first token of sentences [B, ...]: [B, reach, d_in] zeros."""
        return like.new_zeros(len(like), self.reach, self.linear.in_features // self.kernel)

    def step(self, x: Tensor, past: Tensor) -> tuple[Tensor, Tensor]:
        """The next token x [R, d_in] after the past [R, reach, d_in]: y [R, d_out], and the past of the token after."""
        seen = torch.cat([past, x.unsqueeze(1)], dim=1)
        return self.linear(seen[:, :: self.dilation].flatten(1)), seen[:, 1:]
