"""Measure the cost of the layers of Table 1 on the layers themselves, without formulas. Paper: sections 3.2.1 and 4.

Operations and memory are counted on tensors without data, so they are exact and the same on every machine. Steps and
paths are read from the graph of autograd. Only time depends on the machine.
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
from torch import Tensor, nn
from torch.autograd.graph import saved_tensors_hooks
from torch.utils.flop_counter import FlopCounterMode

from repro.complexity.layers import (
    Convolution,
    Dilated,
    ElmanCell,
    FullAttention,
    GatedCell,
    Layer,
    Recurrent,
    RestrictedAttention,
    Scoring,
    SeparableConvolution,
    additive_attention,
    stacked,
)
from repro.model.attention import attention
from repro.model.layers import FeedForward
from repro.results import provenance
from repro.results.measured import Count, Grid, Measured, Path, ScoringCount, ScoringTime, Steps, Time
from repro.training import cpu_tuning

N_HEADS = 8
FEED_FORWARD = 4  # d_ff / d_model of the base model
PRODUCTS = {"MmBackward0", "AddmmBackward0", "BmmBackward0", "ConvolutionBackward0"}  # as autograd names them
PROBE_WIDTH = 2  # d of the layers whose gradients are followed; paths do not depend on it
ROWS_AT_ONCE = 16  # outputs whose gradients are followed together

WITHOUT_WINDOW: dict[str, Callable[[int], Layer]] = {
    "self_attention": lambda d: FullAttention(d=d, n_heads=N_HEADS),
    "recurrent": lambda d: Recurrent(ElmanCell(d)),
    "gated": lambda d: Recurrent(GatedCell(d)),
}
WITH_WINDOW: dict[str, Callable[[int, int], Layer]] = {
    "convolution": lambda d, k: Convolution(d=d, k=k),
    "separable": lambda d, k: SeparableConvolution(d=d, k=k),
    "restricted": lambda d, r: RestrictedAttention(d=d, n_heads=N_HEADS, r=r),
}
STACKS: dict[str, Callable[[int, int], nn.Module]] = {  # (window, depth) -> stacked layers
    "convolution": lambda k, depth: stacked(lambda: Convolution(d=PROBE_WIDTH, k=k), depth),
    "dilated": lambda k, depth: Dilated(d=PROBE_WIDTH, k=k, depth=depth),
    "restricted": lambda r, depth: stacked(lambda: RestrictedAttention(d=PROBE_WIDTH, n_heads=1, r=r), depth),
}
SCORINGS: dict[str, Scoring] = {
    "dot_product": lambda q, k, v, w: attention(q, k, v),  # w is not used. Paper: equation (1)
    "additive": additive_attention,
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
    for name, plain in WITHOUT_WINDOW.items():
        yield name, None, plain(d)
    for window in windows:
        for name, windowed in WITH_WINDOW.items():
            yield name, window, windowed(d, window)


# Operations and memory


def counts(grid: Grid) -> Iterator[Count]:
    """The counts of each layer, and of the feed-forward network beside it, at every n, d and window."""
    with torch.device("meta"):
        for d in grid.d:
            for name, window, layer in layers(d, grid.windows):
                yield from (count(name, layer, n=n, d=d, window=window) for n in grid.n)
            feed_forward = FeedForward(d_model=d, d_ff=FEED_FORWARD * d)
            for n in grid.n:
                x = torch.empty(1, n, d)
                yield Count("feed_forward", n, d, None, flops(partial(feed_forward, x)), 0, 0)
            for n in grid.n_odd:
                yield count("separable", SeparableConvolution(d=d, k=n), n=n, d=d, window=n)
                yield count("self_attention", WITHOUT_WINDOW["self_attention"](d), n=n, d=d, window=None)


def count(name: str, layer: Layer, *, n: int, d: int, window: int | None) -> Count:
    """Operations of the whole layer and of its mixing alone, and the bytes saved for the backward pass."""
    x = torch.empty(1, n, d, requires_grad=True, device=next(layer.parameters()).device)
    projected = layer.project(x)
    with FlopCounterMode(display=False) as counter:
        kept = saved_bytes(partial(layer, x), without=layer.parameters())
    mixing = flops(partial(layer.mix, *projected))
    return Count(name, n, d, window, flops=counter.get_total_flops(), mixing_flops=mixing, saved_bytes=kept)


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
            raise ValueError(
                f"Expected {n} positions to be connected by at most {n} layers, but {enough} were too few."
            )
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
        ours = list(layers(d, [window]))
        # the fastest recurrences that PyTorch has
        library = {"library_recurrent": nn.RNN(d, d, batch_first=True), "library_gated": nn.GRU(d, d, batch_first=True)}
        for n in grid.n_timed:
            x = torch.randn(1, n, d, requires_grad=True)
            for name, of, layer in [*ours, *((name, None, compiled) for name, compiled in library.items())]:
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


def queries_keys_values(n: int, d_k: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Queries, keys and values of one sequence's heads, and the vector of additive attention, drawn small."""
    q, k, v = (torch.randn(N_HEADS, n, d_k, requires_grad=True) for _ in range(3))
    return q, k, v, torch.randn(d_k).div(math.sqrt(d_k)).requires_grad_()


def scoring_counts(grid: Grid) -> Iterator[ScoringCount]:
    """Operations and saved bytes of both kinds of scores, at every n and d_k."""
    with torch.device("meta"):
        for d_k in grid.d_k:
            for n in grid.n_scored:
                for name, scoring in SCORINGS.items():
                    work = partial(scoring, *queries_keys_values(n, d_k))
                    yield ScoringCount(name, n, d_k, flops(work), saved_bytes(work))


def scoring_times(grid: Grid, clock: Clock) -> list[ScoringTime]:
    """Time the heads' outputs and the gradients of their queries, keys and values, for both kinds of scores."""
    work: dict[tuple[str, int, int], Callable[[], object]] = {}
    for d_k in grid.d_k:
        for n in grid.n_scored:
            parts = queries_keys_values(n, d_k)
            for name, scoring in SCORINGS.items():
                work[name, n, d_k] = partial(gradients, partial(scoring, *parts), parts[:3])
    return [ScoringTime(*key, seconds) for key, seconds in interleaved(work, grid.rounds, clock).items()]
