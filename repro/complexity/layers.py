"""The layers of Table 1: four ways to exchange information between the positions of a sequence. Paper: section 4.

Each maps [B, n, d] to [B, n, d] in three parts: output(mix(*project(x))). `project` and `output` treat every position
by itself. Only `mix` combines positions, and its work is what the paper's formulas count.

Shapes: B batch, n positions, d width, H heads, E width of one head, R neighbourhood r; windows are odd and centred.
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from repro.model.attention import SelfAttention, attention
from repro.model.masks import hidden_bias


def centred(window: int) -> int:
    """How far an odd window sees to each side of its centre; an even one raises ValueError."""
    if window < 1 or window % 2 == 0:
        raise ValueError(f"A window must be odd to have a centre, got {window}. Use {max(window, 0) + 1}.")
    return window // 2


class FullAttention(SelfAttention):
    """The project's multi-head self-attention, d_k = d_v = d / h. Paper: Table 1, row 1; section 3.2.2."""

    def __init__(self, *, d: int, n_heads: int) -> None:
        super().__init__(d_model=d, n_heads=n_heads, d_k=d // n_heads, d_v=d // n_heads)

    def mix(self, q_BHnE: Tensor, k_BHnE: Tensor, v_BHnE: Tensor) -> Tensor:
        """Every position attends to every other: 2 n^2 d multiplications. [B, n, d], heads side by side."""
        return attention(q_BHnE, k_BHnE, v_BHnE).transpose(1, 2).flatten(-2)


class RestrictedAttention(FullAttention):
    """Self-attention of each position to the r positions centred on it. Paper: Table 1, row 4.

    Scores are computed only for this band, n r of them instead of n^2. At either end of the sequence the neighbourhood
    is cut off, not shifted.
    """

    def __init__(self, *, d: int, n_heads: int, r: int) -> None:
        super().__init__(d=d, n_heads=n_heads)
        self.side = centred(r)

    def mix(self, q_BHnE: Tensor, k_BHnE: Tensor, v_BHnE: Tensor) -> Tensor:
        """Every position attends to its neighbours: 2 r n d multiplications. [B, n, d], heads side by side."""
        n, q_BHn1E = q_BHnE.shape[2], q_BHnE.unsqueeze(3)
        bias_n1R = hidden_bias(self._inside(n, q_BHnE.device), q_BHnE.dtype).unsqueeze(1)
        heads_BHn1E = attention(q_BHn1E, self._neighbours(k_BHnE), self._neighbours(v_BHnE), bias_n1R)
        return heads_BHn1E.squeeze(3).transpose(1, 2).flatten(-2)

    def forward(self, x: Tensor) -> Tensor:  # type: ignore[override]
        """Each position of x [B, n, d] attends to its neighbourhood; there is no other mask."""
        joined: Tensor = self.output(self.mix(*self.project(x)))
        return joined

    def _neighbours(self, t_BHnE: Tensor) -> Tensor:
        """The neighbours of each position, [B, H, n, R, E], with zeros beyond the ends."""
        padded = F.pad(t_BHnE, (0, 0, self.side, self.side))
        return padded.unfold(2, 2 * self.side + 1, 1).transpose(-2, -1)

    def _inside(self, n: int, device: torch.device) -> Tensor:
        """Whether each neighbour is a position of the sequence, bool [n, R]."""
        offsets = torch.arange(-self.side, self.side + 1, device=device)
        seen = torch.arange(n, device=device).unsqueeze(1) + offsets
        return (seen >= 0) & (seen < n)


class ElmanCell(nn.Module):
    """One step of the plain recurrence, tanh(W x + b + U state): d^2 multiplications by U."""

    def __init__(self, d: int) -> None:
        super().__init__()
        self.input = nn.Linear(d, d)  # W: needs no state, so it is applied to all positions at once
        self.state = nn.Linear(d, d, bias=False)  # U

    def forward(self, projected: Tensor, state: Tensor) -> Tensor:
        """W x + b of one position and the state before it, [B, d] each -> the state after it."""
        return torch.tanh(projected + self.state(state))


class GatedCell(nn.Module):
    """One step of a gated recurrent unit (Cho et al. 2014): 3 d^2 multiplications by U."""

    def __init__(self, d: int) -> None:
        super().__init__()
        self.input = nn.Linear(d, 3 * d)
        self.state = nn.Linear(d, 3 * d)

    def forward(self, projected: Tensor, state: Tensor) -> Tensor:
        """W x + b of one position [B, 3 d] and the state before it [B, d] -> the state after it."""
        reset, keep, new = projected.chunk(3, dim=-1)
        state_reset, state_keep, state_new = self.state(state).chunk(3, dim=-1)
        new = torch.tanh(new + torch.sigmoid(reset + state_reset) * state_new)
        keep = torch.sigmoid(keep + state_keep)
        return keep * state + (1 - keep) * new


class Recurrent(nn.Module):
    """A cell carried along the sequence, one position after the other. Paper: Table 1, row 2.

    The output at position i depends on all positions before it and on none after it.
    """

    def __init__(self, cell: ElmanCell | GatedCell) -> None:
        super().__init__()
        self.cell = cell

    def project(self, x: Tensor) -> tuple[Tensor]:
        """The input's part of every step, for all positions at once."""
        return (self.cell.input(x),)

    def mix(self, projected: Tensor) -> Tensor:
        """n steps, each of which waits for the one before. [B, n, d]."""
        state = projected.new_zeros(projected.shape[0], self.cell.state.in_features)
        states = []
        for position in projected.unbind(1):
            state = self.cell(position, state)
            states.append(state)
        return torch.stack(states, dim=1)

    def forward(self, x: Tensor) -> Tensor:
        """The state after each position, from a state of zeros."""
        return self.mix(*self.project(x))


class Convolution(nn.Module):
    """A convolution: each position from the k around it, with zeros beyond the ends. Paper: Table 1, row 3."""

    def __init__(self, *, d: int, k: int) -> None:
        super().__init__()
        self.kernel = nn.Conv1d(d, d, k, padding=centred(k))
        self.output: nn.Module = nn.Identity()

    def project(self, x: Tensor) -> tuple[Tensor]:
        """Nothing is done to a position by itself."""
        return (x,)

    def mix(self, x: Tensor) -> Tensor:
        """k d x d products at every position: k n d^2 multiplications."""
        mixed: Tensor = self.kernel(x.transpose(1, 2)).transpose(1, 2)
        return mixed

    def forward(self, x: Tensor) -> Tensor:
        """All positions at once."""
        result: Tensor = self.output(self.mix(x))
        return result


class SeparableConvolution(Convolution):
    """One kernel for each of the d channels, then a d x d product at each position. Paper: section 4.

    k n d multiplications combine positions, n d^2 combine channels.
    """

    def __init__(self, *, d: int, k: int) -> None:
        super().__init__(d=d, k=k)
        self.kernel = nn.Conv1d(d, d, k, padding=centred(k), groups=d)
        self.output = nn.Linear(d, d)


Layer = FullAttention | Recurrent | Convolution


def stacked(make: Callable[[], nn.Module], depth: int) -> nn.Sequential:
    """`depth` layers on top of each other, each made anew. Paper: O(n/k) convolutions, O(n/r) attentions to see all."""
    return nn.Sequential(*(make() for _ in range(depth)))


class Dilated(nn.Module):
    """Stacked convolutions with dilations 1, k, k^2 .. Paper: section 4, O(log_k(n)) layers to see all.

    The ends are padded with zeros once, for all layers. Padding anew in each layer would cut every path between two
    positions that leads beyond an end, and some pairs would not be connected at any depth.
    """

    def __init__(self, *, d: int, k: int, depth: int) -> None:
        super().__init__()
        self.reach = centred(k**depth)  # (k - 1) / 2 (1 + k + k^2 ..)
        self.kernels = nn.Sequential(*(nn.Conv1d(d, d, k, dilation=k**layer) for layer in range(depth)))

    def forward(self, x: Tensor) -> Tensor:
        """Each layer drops the positions at the ends that lack a full window."""
        wide = F.pad(x.transpose(1, 2), (self.reach, self.reach))
        result: Tensor = self.kernels(wide).transpose(1, 2)
        return result


def additive_attention(q_BQE: Tensor, k_BKE: Tensor, v_BKE: Tensor, w_E: Tensor) -> Tensor:
    """softmax(w . tanh(q_i + k_j)) v, [B, Q, E]: scores from a network with one hidden layer. Paper: section 3.2.1.

    Its two matrices treat positions one by one, like those of dot-product attention; q and k are already multiplied.
    """
    scores_BQK = F.linear(torch.tanh(q_BQE.unsqueeze(2) + k_BKE.unsqueeze(1)), w_E.unsqueeze(0)).squeeze(-1)
    return scores_BQK.softmax(dim=-1) @ v_BKE


Scoring = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]  # q, k, v, w -> [B, Q, E]
