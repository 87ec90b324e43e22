"""The layers of Table 1, and their cost measured on the layers themselves. Paper: sections 3.2.1 and 4.

A layer exchanges information between the positions of a sequence: it maps [B, n, d] to [B, n, d] in three parts,
output(mix(*project(x))). `project` and `output` treat every position by itself. Only `mix` combines positions, and its
work is what the paper's formulas count.

Operations and memory are counted on tensors without data, so they are exact and the same on every machine. Steps and
paths are read from the graph of autograd. Only time depends on the machine.

Shapes: B batch, n positions, d width, H heads, E width of one head, R neighbourhood r; windows are odd and centred.
"""

import gc
import math
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from time import perf_counter, process_time
from typing import Any, TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.graph import saved_tensors_hooks
from torch.utils.flop_counter import FlopCounterMode

from repro.model.attention import SelfAttention, attention
from repro.model.layers import FeedForward
from repro.model.masks import hidden_bias
from repro.results import provenance
from repro.results.measured import Count, Grid, Measured, Path, ScoringCount, ScoringTime, Steps, Time
from repro.training import cpu_tuning

# The layers


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
        n, width = q_BHnE.shape[2], 2 * self.side + 1
        ends = (0, 0, self.side, self.side)  # zeros beyond the ends, which the bias hides
        k_BHnRE, v_BHnRE = (F.pad(t, ends).unfold(2, width, 1).transpose(-2, -1) for t in (k_BHnE, v_BHnE))
        seen_nR = torch.arange(n, device=q_BHnE.device).unsqueeze(1) + torch.arange(width, device=q_BHnE.device)
        bias_nR = hidden_bias((seen_nR >= self.side) & (seen_nR < n + self.side), q_BHnE.dtype)
        heads_BHn1E = attention(q_BHnE.unsqueeze(3), k_BHnRE, v_BHnRE, bias_nR.unsqueeze(1))
        return heads_BHn1E.squeeze(3).transpose(1, 2).flatten(-2)

    def forward(self, x: Tensor) -> Tensor:  # type: ignore[override]
        """Each position of x [B, n, d] attends to its neighbourhood; there is no other mask."""
        return self.output(self.mix(*self.project(x)))


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
        states = [projected.new_zeros(projected.shape[0], self.cell.state.in_features)]
        for position in projected.unbind(1):
            states.append(self.cell(position, states[-1]))
        return torch.stack(states[1:], dim=1)

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
        return self.kernel(x.transpose(1, 2)).transpose(1, 2)

    def forward(self, x: Tensor) -> Tensor:
        """All positions at once."""
        return self.output(self.mix(x))


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
        return self.kernels(wide).transpose(1, 2)


def additive_attention(q_BQE: Tensor, k_BKE: Tensor, v_BKE: Tensor, w_E: Tensor) -> Tensor:
    """softmax(w . tanh(q_i + k_j)) v, [B, Q, E]: scores from a network with one hidden layer. Paper: section 3.2.1.

    Its two matrices treat positions one by one, like those of dot-product attention; q and k are already multiplied.
    """
    scores_BQK = F.linear(torch.tanh(q_BQE.unsqueeze(2) + k_BKE.unsqueeze(1)), w_E.unsqueeze(0)).squeeze(-1)
    return scores_BQK.softmax(dim=-1) @ v_BKE


# What is measured

N_HEADS = 8
PRODUCTS = {"MmBackward0", "AddmmBackward0", "BmmBackward0", "ConvolutionBackward0"}  # as autograd names them
PROBE_WIDTH = 2  # d of the layers whose gradients are followed; paths do not depend on it
ROWS_AT_ONCE = 16  # outputs whose gradients are followed together

STACKS: dict[str, Callable[[int, int], nn.Module]] = {  # (window, depth) -> stacked layers
    "convolution": lambda k, depth: stacked(lambda: Convolution(d=PROBE_WIDTH, k=k), depth),
    "dilated": lambda k, depth: Dilated(d=PROBE_WIDTH, k=k, depth=depth),
    "restricted": lambda r, depth: stacked(lambda: RestrictedAttention(d=PROBE_WIDTH, n_heads=1, r=r), depth),
}

T = TypeVar("T")
Clock = Callable[[], float]


def measure_layers(grid: Grid, *, threads: int = 1) -> Measured:
    """Measure all of Table 1 at the sizes of this grid, with PyTorch on this many threads."""
    torch.set_num_threads(threads)
    made = cpu_tuning.tune(product=0)
    # on one thread processor time leaves out other work on the machine; several threads need wall-clock time
    clock = process_time if threads == 1 else perf_counter
    settings = {"n_heads": N_HEADS, "batch": 1, "dtype": "float32", "clock": clock.__name__, "machine": list(made)}
    return Measured(
        grid=asdict(grid),
        settings=settings,
        counts=list(counts(grid)),
        steps=list(steps(grid)),
        paths=list(paths(grid)),
        times=times(grid, clock),
        scoring_counts=list(scoring_counts(grid)),
        scoring_times=scoring_times(grid, clock),
        stamp=provenance.provenance("cpu"),
    )


def layers(d: int, windows: Iterable[int]) -> Iterator[tuple[str, int | None, Layer]]:
    """Every layer of width d: its name, its window if it has one, and itself."""
    yield "self_attention", None, FullAttention(d=d, n_heads=N_HEADS)
    yield "recurrent", None, Recurrent(ElmanCell(d))
    yield "gated", None, Recurrent(GatedCell(d))
    for window in windows:
        yield "convolution", window, Convolution(d=d, k=window)
        yield "separable", window, SeparableConvolution(d=d, k=window)
        yield "restricted", window, RestrictedAttention(d=d, n_heads=N_HEADS, r=window)


# Operations and memory


def counts(grid: Grid) -> Iterator[Count]:
    """The counts of each layer, and of the feed-forward network beside it, at every n, d and window."""
    with torch.device("meta"):
        for d in grid.d:
            for name, window, layer in layers(d, grid.windows):
                yield from (count(name, layer, n=n, d=d, window=window) for n in grid.n)
            feed_forward = FeedForward(d_model=d, d_ff=4 * d)  # as in the base model
            for n in grid.n:
                yield Count("feed_forward", n, d, None, flops(partial(feed_forward, torch.empty(1, n, d))), 0, 0)
            for n in grid.n_odd:
                yield count("separable", SeparableConvolution(d=d, k=n), n=n, d=d, window=n)
                yield count("self_attention", FullAttention(d=d, n_heads=N_HEADS), n=n, d=d, window=None)


def count(name: str, layer: Layer, *, n: int, d: int, window: int | None) -> Count:
    """Operations of the whole layer and of its mixing alone, and the bytes saved for the backward pass."""
    x = torch.empty(1, n, d, requires_grad=True, device=next(layer.parameters()).device)
    kept, mixing = saved_bytes(partial(layer, x), without=layer.parameters()), partial(layer.mix, *layer.project(x))
    return Count(name, n, d, window, flops=flops(partial(layer, x)), mixing_flops=flops(mixing), saved_bytes=kept)


def flops(work: Callable[[], object]) -> int:
    """Multiplications and additions of all matrix products and convolutions in `work`."""
    with FlopCounterMode(display=False) as counter:
        work()
    return counter.get_total_flops()


def saved_bytes(work: Callable[[], object], *, without: Iterable[Tensor] = ()) -> int:
    """Bytes that autograd saves during `work` for the backward pass, each storage once, except those of `without`.

    Parameters are left out because they do not depend on n. Temporaries of a single operation are left out because
    they would depend on the library's kernels.
    """
    kept = {}

    def keep(saved: Tensor) -> Tensor:
        storage = saved.untyped_storage()
        kept[storage._cdata] = storage  # kept alive, so that its address is not reused
        return saved

    with saved_tensors_hooks(keep, lambda saved: saved):
        result = work()
    for tensor in without:
        kept.pop(tensor.untyped_storage()._cdata, None)
    del result
    return sum(storage.nbytes() for storage in kept.values())


# Sequential steps and path lengths


def steps(grid: Grid) -> Iterator[Steps]:
    """The longest chain of products in the mixing of each layer, at every n of `n_paths`."""
    for n in grid.n_paths:
        for name, window, layer in layers(N_HEADS, grid.windows):
            projected = [part.detach().requires_grad_() for part in layer.project(torch.randn(1, n, N_HEADS))]
            yield Steps(name, n, window, chain(layer.mix(*projected)))


def chain(result: Tensor) -> int:
    """The number of matrix products on the longest path through the graph of `result`."""
    longest: dict[torch.autograd.graph.Node | None, int] = {None: 0}
    stack = [result.grad_fn]
    while stack:  # a loop, because a recurrence exceeds Python's recursion limit
        node = stack[-1]
        before = [other for other, _ in node.next_functions] if node else []
        waiting = [other for other in before if other not in longest]
        if waiting:
            stack += waiting
        else:
            longest[node] = (node is not None and node.name() in PRODUCTS) + max(
                (longest[other] for other in before), default=0
            )
            stack.pop()
    return longest[result.grad_fn]


def paths(grid: Grid) -> Iterator[Path]:
    """How many layers, or steps of a recurrence, lie between the two positions that are furthest apart."""
    torch.manual_seed(0)
    for n in grid.n_paths:
        attentions = partial(stacked, partial(FullAttention, d=PROBE_WIDTH, n_heads=1))
        yield Path("self_attention", n, None, depth(attentions, n))
        yield Path("recurrent", n, None, steps_to_first(Recurrent(ElmanCell(PROBE_WIDTH)), n))
        for name, stack in STACKS.items():
            for window in grid.windows:
                yield Path(name, n, window, depth(partial(stack, window), n))


def depth(stack: Callable[[int], nn.Module], n: int) -> int:
    """The fewest layers through which every output of n positions has a gradient for every input."""
    enough = 1
    while not connects_all(stack(enough), n):
        if enough > n:
            raise ValueError(f"Expected {n} positions to be connected by at most {n} layers; {enough} are too few.")
        enough *= 2
    # half of that was too few
    return bisect_left(range(enough), True, lo=enough // 2 + 1, key=lambda layers: connects_all(stack(layers), n))


def connects_all(stack: nn.Module, n: int) -> bool:
    """Whether d output[i] / d input[j] is nonzero for all i and j of n positions."""
    stack.double()  # after a hundred layers a gradient is too small for float32
    for first in range(0, n, ROWS_AT_ONCE):
        rows = torch.arange(first, min(first + ROWS_AT_ONCE, n))
        x = torch.randn(n, PROBE_WIDTH, dtype=torch.float64).expand(len(rows), -1, -1).requires_grad_()
        asked = stack(x)[torch.arange(len(rows)), rows]  # each output is taken from its own copy of the sequence
        (gradient,) = torch.autograd.grad(asked.sum(), x)
        if not (gradient != 0).any(dim=-1).all():
            return False
    return True


def steps_to_first(layer: Recurrent, n: int) -> int:
    """The number of steps through which the gradient of the last output reaches the first input."""
    passed = 0

    def seen(_: nn.Module, __: object, gradients: tuple[Tensor, ...] | Tensor) -> None:
        nonlocal passed
        passed += bool((gradients[0] != 0).any())

    layer.double().cell.register_full_backward_hook(seen)
    x = torch.randn(1, n, PROBE_WIDTH, dtype=torch.float64, requires_grad=True)
    torch.autograd.grad(layer(x)[:, -1].sum(), x)
    return passed


# Time


def times(grid: Grid, clock: Clock) -> list[Time]:
    """Time forward and backward of each layer at every n and d, with the first window and one sequence."""
    window = grid.windows[0]
    work: dict[tuple[str, int, int, int | None], Callable[[], object]] = {}
    for d in grid.d_timed:
        timed: list[tuple[str, int | None, nn.Module]] = [*layers(d, [window])]
        timed.append(("library_recurrent", None, nn.RNN(d, d, batch_first=True)))  # the fastest that PyTorch has
        timed.append(("library_gated", None, nn.GRU(d, d, batch_first=True)))
        for n in grid.n_timed:
            x = torch.randn(1, n, d, requires_grad=True)
            for name, of, layer in timed:
                work[name, n, d, of] = partial(gradients, partial(layer, x), (x, *layer.parameters()))
    return [Time(*key, seconds) for key, seconds in interleaved(work, grid.rounds, clock).items()]


def gradients(work: Callable[[], Any], inputs: Sequence[Tensor]) -> None:
    """Do the work and compute the gradients of these inputs."""
    result = work()
    if isinstance(result, tuple):
        result, _ = result  # a recurrence of the library returns the last state as well
    torch.autograd.grad(result.sum(), inputs)


def interleaved(work: Mapping[T, Callable[[], object]], rounds: int, clock: Clock) -> dict[T, list[float]]:
    """Seconds of each piece of work in each round; a round does every piece once. A first round is not kept.

    A temporary slowdown of the machine then affects a few rounds of every piece, not all rounds of one piece.
    """
    seconds: dict[T, list[float]] = {key: [] for key in work}
    gc.collect()
    gc.disable()  # Python's garbage collector would run during whatever is being timed
    try:
        for number in range(rounds + 1):
            for key, do in work.items():
                start = clock()
                do()
                taken = clock() - start
                if number:
                    seconds[key].append(taken)
    finally:
        gc.enable()
    return seconds


# Additive against dot-product attention: section 3.2.1


def scorings(grid: Grid) -> Iterator[tuple[tuple[str, int, int], Callable[[], Tensor], Sequence[Tensor]]]:
    """Both kinds of scores at every n and d_k: name and sizes, the heads' outputs, and their queries, keys, values."""
    for d_k in grid.d_k:
        for n in grid.n_scored:
            q, k, v = (torch.randn(N_HEADS, n, d_k, requires_grad=True) for _ in range(3))
            w = torch.randn(d_k).div(math.sqrt(d_k)).requires_grad_()  # small
            yield ("dot_product", n, d_k), partial(attention, q, k, v), (q, k, v)  # Paper: equation (1)
            yield ("additive", n, d_k), partial(additive_attention, q, k, v, w), (q, k, v)


def scoring_counts(grid: Grid) -> Iterator[ScoringCount]:
    """Operations and saved bytes of both kinds of scores."""
    with torch.device("meta"):
        for key, work, _ in scorings(grid):
            yield ScoringCount(*key, flops(work), saved_bytes(work))


def scoring_times(grid: Grid, clock: Clock) -> list[ScoringTime]:
    """Time the heads' outputs and the gradients of their queries, keys and values, for both kinds of scores."""
    work = {key: partial(gradients, outputs, parts) for key, outputs, parts in scorings(grid)}
    return [ScoringTime(*key, seconds) for key, seconds in interleaved(work, grid.rounds, clock).items()]
