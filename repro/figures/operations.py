"""Scaled dot-product attention and multi-head attention, drawn from what they execute. Paper: figure 2.

`scaled_dot_product` and `multi_head` turn traces into boxes; `paint_operations` draws both. The order is that of our
code: it scales q before the product, which gives the same numbers as scaling the scores, on a smaller tensor.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from matplotlib.patches import FancyArrowPatch
from matplotlib.path import Path

from repro.figures import style
from repro.figures.architecture import OTHER, Pen
from repro.figures.style import Axes, Figure
from repro.figures.trace import TracedStep, trace
from repro.model.attention import MultiHeadAttention, attention

LABELS = {  # operations as the paper's figure calls them
    "matmul": "MatMul",
    "mul": "Scale",
    "softmax": "SoftMax",
    "linear": "Linear",
    "split": "Split",
    "unflatten": "Heads apart",
    "flatten": "Concat",
    "add": "Add",
}
ATTENTION = "Scaled Dot-Product\nAttention"
FILL = {
    "MatMul": "#e3d4ee",
    "Scale": "#f6ebb0",
    "Mask (opt.)": "#fbe0e1",
    "SoftMax": "#cbe7cf",
    "Linear": "#dddff1",
    "Concat": "#f6ebb0",
    ATTENTION: "#e3d4ee",
}


@dataclass(frozen=True)
class Operation:
    """One box."""

    label: str
    reads: tuple[int, ...]  # earlier boxes; -1 is the first input, -2 the second


@dataclass(frozen=True)
class Diagram:
    """One half of the figure."""

    title: str
    inputs: tuple[str, ...]
    operations: tuple[Operation, ...]


def scaled_dot_product() -> Diagram:
    """The left half: the operations of `attention` with a mask; those that it skips without one are optional."""
    q, k, v = (torch.ones(1, 1, n, 2) for n in (3, 5, 5))
    with_mask = trace(attention, q, k, v, torch.zeros(3, 5)).steps
    without = trace(attention, q, k, v).steps
    optional = [step.name for step in with_mask]
    for step in without:
        optional.remove(step.name)
    operations = []
    for step in with_mask:
        masks = -4 in step.reads
        label = "Mask" if masks else LABELS.get(step.name, step.name)
        reads = tuple(read for read in step.reads if read != -4)
        operations.append(Operation(f"{label} (opt.)" if masks and step.name in optional else label, reads))
    return Diagram("Scaled Dot-Product Attention", ("Q", "K", "V"), tuple(operations))


def multi_head() -> Diagram:
    """The right half: the operations of `MultiHeadAttention`, with those of `attention` in one box."""
    layer = MultiHeadAttention(d_model=6, n_heads=2, d_k=3, d_v=4)
    steps = trace(layer, torch.ones(1, 3, 6), torch.ones(1, 5, 6)).steps
    q, k, v = (torch.ones(1, 1, n, 2) for n in (3, 5, 5))
    return Diagram("Multi-Head Attention", ("Q", "K, V"), _folded(steps, trace(attention, q, k, v).steps))


def _folded(steps: Sequence[TracedStep], inner: Sequence[TracedStep]) -> tuple[Operation, ...]:
    """The operations, with the first occurrence of the sequence `inner` folded into one."""
    names, wanted = [step.name for step in steps], [step.name for step in inner]
    begin = next((i for i in range(len(names)) if names[i : i + len(wanted)] == wanted), len(names))
    inside = range(begin, begin + len(wanted))
    place: dict[int, int] = {}
    operations: list[Operation] = []
    for i, step in enumerate(steps):
        reads = tuple(read if read < 0 else place[read] for read in step.reads)
        if i in inside and i > begin:
            before = operations[-1].reads
            new = tuple(read for read in reads if read not in before and read != len(operations) - 1)
            operations[-1] = Operation(ATTENTION, before + new)
        else:
            operations.append(Operation(ATTENTION if i == begin else LABELS.get(step.name, step.name), reads))
        place[i] = len(operations) - 1
    return tuple(operations)


# ---- on paper, in points of 1/72 inch

RISE, TALL, WIDE, FOOT = 33.0, 17.0, 66.0, 20.0  # from a box to the next, a box, the inputs
BEHIND = 20.0  # additional space under a box that stands on h boxes
APART = 76.0  # between boxes side by side


def levels(diagram: Diagram) -> list[int]:
    """The level of each operation: one above the highest that it reads."""
    found: list[int] = []
    for operation in diagram.operations:
        found.append(1 + max((found[read] if read >= 0 else 0 for read in operation.reads), default=0))
    return found


def places(diagram: Diagram, inputs: Sequence[float], apart: float) -> list[float]:
    """The centre of each box: above what it reads, and side by side where several would share a place."""
    heights, found = levels(diagram), [0.0] * len(diagram.operations)
    for level in range(1, max(heights, default=0) + 1):
        here = [i for i, height in enumerate(heights) if height == level]
        for i in here:
            sources = [found[read] if read >= 0 else inputs[-1 - read] for read in diagram.operations[i].reads]
            found[i] = sum(sources) / len(sources)
        for i in here:
            same = [j for j in here if abs(found[j] - found[i]) < 1]
            if len(same) > 1:
                for n, j in enumerate(same):
                    found[j] += apart * (n - (len(same) - 1) / 2)
    return found


def paint_operations(figure: Figure, left: Diagram, right: Diagram) -> None:
    """Paint figure 2: both halves, inputs at the bottom."""
    pen = Pen(style.canvas(figure))
    width, height = (72 * side for side in figure.get_size_inches())
    _half(pen, left, [0.17 * width, 0.26 * width, 0.35 * width], height)
    _half(pen, right, [0.6 * width, 0.81 * width], height)


def paper_size(*diagrams: Diagram) -> tuple[float, float]:
    """The size in inches, high enough for the taller half."""
    tallest = max(max(_heights(diagram), default=0.0) for diagram in diagrams)
    return style.WIDTH, (tallest + TALL + 54) / 72


def _half(pen: Pen, diagram: Diagram, inputs: Sequence[float], height: float) -> None:
    """Draw one half above the centres of its inputs."""
    xs, ys = places(diagram, inputs, APART), _heights(diagram)
    pen.text(sum(inputs) / len(inputs), height - 16, diagram.title, fontsize=11.5, linespacing=None)
    for x, name in zip(inputs, diagram.inputs, strict=True):
        pen.text(x, FOOT, name, fontsize=11, style="italic", linespacing=None)
    for x, y, operation in zip(xs, ys, diagram.operations, strict=True):
        stacked = operation.label == ATTENTION
        wide, tall = 104 if stacked else WIDE, _tall(operation)
        for shift in (9, 4.5, 0) if stacked else (0,):  # h boxes behind each other
            face = FILL.get(operation.label, OTHER)
            pen.rounded(x - wide / 2 + shift, y + shift, wide, tall, 3, face, zorder=3)
        pen.text(x, y + tall / 2 - 0.5, operation.label, zorder=4)
        if stacked:
            pen.text(x + wide / 2 + 16, y + tall / 2 + 4, "h", ha="left", fontsize=11, style="italic", linespacing=None)
        begins = [
            (xs[read], ys[read] + _tall(diagram.operations[read])) if read >= 0 else (inputs[-1 - read], FOOT + 8)
            for read in operation.reads
        ]
        for begin, end in zip(begins, _ports(x, wide, [begin[0] for begin in begins]), strict=True):
            _arrow(pen.axes, begin, (end, y))
    high = ys[-1] + _tall(diagram.operations[-1])
    _arrow(pen.axes, (xs[-1], high), (xs[-1], high + 17))


def _tall(operation: Operation) -> float:
    """The height of a box in points."""
    return TALL + 11 * operation.label.count("\n")


def _heights(diagram: Diagram) -> list[float]:
    """The lower edge of each box: what stands on h boxes behind each other stands higher."""
    rows = levels(diagram)
    stacked = [row for row, operation in zip(rows, diagram.operations, strict=True) if operation.label == ATTENTION]
    return [FOOT + RISE * row - TALL / 2 + BEHIND * sum(row > other for other in stacked) for row in rows]


def _ports(x: float, wide: float, sources: Sequence[float]) -> list[float]:
    """Where arrows from `sources` meet the lower edge of a box, left to right in their order."""
    order = sorted(range(len(sources)), key=lambda i: sources[i])
    ends = [x] * len(sources)
    for n, i in enumerate(order):
        share = (n - (len(order) - 1) / 2) / len(order)
        ends[i] = sources[i] if abs(sources[i] - x) < 0.45 * wide else x + 0.8 * wide * share
    return ends


def _arrow(axes: Axes, begin: tuple[float, float], end: tuple[float, float]) -> None:
    """Draw an arrow straight up, or with one bend to the side just under its end where needed."""
    bend = end[1] - 8
    points = [begin, (begin[0], bend), (end[0], bend), end] if abs(begin[0] - end[0]) > 1 else [begin, end]
    how = "-|>,head_length=3,head_width=1.5"
    path = FancyArrowPatch(path=Path(points), arrowstyle=how, color=style.INK, lw=0.8, zorder=2, joinstyle="miter")
    axes.add_patch(path)
