"""The encoder-decoder, drawn from the operations of the model itself. Paper: figure 1.

`stacks` finds what the picture shows, `paint_architecture` draws it. Adding, removing or renaming a sub-layer of
`repro.model` changes the picture.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle, FancyBboxPatch

from repro.figures import style
from repro.figures.trace import Call, Trace, trace, words
from repro.model.transformer import Transformer

BELOW, MEMORY = -1, -2  # what a block reads from outside its layer: the layer's input, the encoder's output
N_TOKENS = (5, 7)  # lengths of the source and target that the model is run on; they differ, to tell masks apart
ATTENTIONS = ("SelfAttention", "MultiHeadAttention")
FILL = {  # by the class of the module
    **dict.fromkeys(ATTENTIONS, "#fbdcb6"),
    "FeedForward": "#c5e3f3",
    "LayerNorm": "#f1f3b9",
    "add": "#f1f3b9",
    "embedding": "#fbe0e1",
    "linear": "#dddff1",
    "softmax": "#cbe7cf",
}
OTHER = "#eeeeee"
HEADINGS = {"encoder": ("Inputs", "Input"), "decoder": ("Outputs\n(shifted right)", "Output")}  # as in the paper


@dataclass(frozen=True)
class Block:
    """One box: a sub-layer, a norm or a sum."""

    label: str
    kind: str  # its class, or the name of its operation
    reads: tuple[int, ...]  # earlier blocks of its layer, BELOW or MEMORY


@dataclass(frozen=True)
class Stack:
    """One stack, bottom first."""

    name: str  # "encoder"
    entry: tuple[str, ...]  # what makes the stack's input: labels of modules, in order
    n_layers: int
    layer: tuple[Block, ...]  # one of its layers, which are alike
    head: tuple[str, ...] = ()  # what makes the model's output of it


def stacks(model: Transformer) -> tuple[Stack, Stack]:
    """Encoder and decoder as they run on a source of five tokens and a target of seven."""
    source, target = (torch.arange(2, 2 + n).unsqueeze(0) for n in N_TOKENS)
    done = trace(model, source, target)
    maps = model.attention_maps(source, target)
    masked = {name for name, weights in maps.items() if not weights.triu(1).any()}  # nobody looks ahead
    before = [_entry(call) for call in done.calls[1:] if "." not in call.path and call.path != "dropout"]
    half = len(before) // 2
    encoder, decoder = (_blocks(done, f"{name}.0", masked) for name in ("encoder", "decoder"))
    return (
        Stack("encoder", tuple(before[:half]), len(model.encoder), encoder),
        Stack("decoder", tuple(before[half:]), len(model.decoder), decoder, _head(model, source)),
    )


def _blocks(done: Trace, path: str, masked: set[str]) -> tuple[Block, ...]:
    """The blocks of one layer: one for each module that it calls and for each operation of its own."""
    layer = next(i for i, call in enumerate(done.calls) if call.path == path)
    inputs = done.calls[layer].reads
    blocks: list[Block] = []
    block_of: dict[int | tuple[int, int], int] = {}  # step, or call -> its block
    for place, step in enumerate(done.steps):
        if layer not in step.calls:
            continue
        inner = step.calls[step.calls.index(layer) + 1 :]
        key: int | tuple[int, int] = (inner[0], 0) if inner else place
        if key not in block_of:
            block_of[key] = len(blocks)
            kind = done.calls[inner[0]].kind if inner else step.name
            blocks.append(Block(_label(kind, done.calls[inner[0]].path in masked if inner else False), kind, ()))
        block_of[place] = own = block_of[key]
        sources = (_source(done, read, block_of, inputs, path) for read in step.reads)
        reads = [*blocks[own].reads, *(s for s in sources if s is not None and s != own)]
        blocks[own] = Block(blocks[own].label, blocks[own].kind, tuple(dict.fromkeys(reads)))
    return tuple(blocks)


def _source(
    done: Trace, read: int, block_of: dict[int | tuple[int, int], int], inputs: tuple[int, ...], path: str
) -> int | None:
    """Where a value comes from; None for a mask, which the paper does not draw."""
    if read in block_of:
        return block_of[read]
    if inputs and read == inputs[0]:
        return BELOW
    from_encoder = read >= 0 and any(done.calls[call].path.startswith("encoder.") for call in done.steps[read].calls)
    return MEMORY if from_encoder and not path.startswith("encoder.") else None


def _label(kind: str, masked: bool) -> str:
    if kind in ATTENTIONS:
        return f"{'Masked ' * masked}Multi-Head\nAttention"
    known = {"FeedForward": "Feed\nForward", "LayerNorm": "Norm", "add": "Add", "log_softmax": "Softmax"}
    return known.get(kind, words(kind))


def _entry(call: Call) -> str:
    """The label of a module before the first layer of a stack."""
    kind = "Learned" if call.kind.startswith("Learned") else "Positional"
    return f"{kind}\nEncoding" if "positions" in call.path else words(call.path)


def _head(model: Transformer, source: torch.Tensor) -> tuple[str, ...]:
    """The operations after the last decoder layer when the model writes its next token."""
    with torch.no_grad():
        cache = model.start(source)
    done = trace(lambda ids: model.step(ids, cache), torch.tensor([2]), model=model)
    last = max(i for i, step in enumerate(done.steps) if any("decoder." in done.calls[c].path for c in step.calls))
    return tuple(_label(step.name, False) for step in done.steps[last + 1 :])


# ---- on paper, in points of 1/72 inch

WIDE, GAP, FORK, AROUND = 94, 14, 13, 14  # a box; space under it; more of it under an attention; a residual's detour
APART = 206  # between the middles of the columns
MARGIN = 11  # of the frame around a layer
ARROW = "-|>,head_length=0.3,head_width=0.14"


def boxes(blocks: Sequence[Block]) -> list[tuple[Block, int]]:
    """The boxes of one layer, bottom first, each with the number of its last block.

    A sum and the norm that is its only reader are drawn as one.
    """
    found: list[tuple[Block, int]] = []
    for i, block in enumerate(blocks):
        before, _ = found[-1] if found else (block, i)
        readers = [j for j, other in enumerate(blocks) if i - 1 in other.reads]
        if (before.kind, block.kind, block.reads, readers) == ("add", "LayerNorm", (i - 1,), [i]):
            found[-1] = Block(f"{before.label} & {block.label}", before.kind, before.reads), i
        else:
            found.append((block, i))
    return found


def paint_architecture(figure: Figure, drawn: tuple[Stack, Stack]) -> None:
    """Paint figure 1: the stacks side by side, and the encoder's output going to the decoder."""
    pen = Pen(style.canvas(figure))
    left = 126.0
    memory = _column(pen, left, -1, drawn[0], None)
    _column(pen, left + APART, 1, drawn[1], memory)


def height(drawn: tuple[Stack, Stack]) -> float:
    """The height of the taller stack, in points."""
    pen = Pen(style.canvas(Figure()))  # it is drawn to be measured
    return max(_column(pen, 0, 1, column, (0, 0))[1] for column in drawn) + 24


@dataclass
class Pen:
    """Draws boxes and arrows of one style."""

    axes: Axes

    def box(self, x: float, y: float, label: str, kind: str) -> float:
        """Draw a rounded box whose lower edge is at y; returns its upper edge."""
        tall = 17.0 + 11 * label.count("\n")
        self.rounded(x - WIDE / 2, y, WIDE, tall, 3.5, FILL.get(kind, OTHER), zorder=3)
        self.text(x, y + tall / 2 - 0.5, label, zorder=4)
        return y + tall

    def text(self, x: float, y: float, text: str, **how: Any) -> None:
        usual: dict[str, Any] = {"ha": "center", "va": "center", "linespacing": 1.0, "fontsize": 9.5}
        self.axes.text(x, y, text, **usual | how)

    def line(self, *points: tuple[float, float], head: bool = True) -> None:
        """Draw a line through the points, with an arrow head at its end."""
        xs, ys = zip(*points, strict=True)
        self.axes.plot(xs, ys, color=style.INK, lw=0.8, solid_joinstyle="round", zorder=2)
        if head:
            how = {"arrowstyle": ARROW, "color": style.INK, "lw": 0.8, "shrinkA": 0, "shrinkB": 0}
            self.axes.annotate("", points[-1], points[-2], arrowprops=how, zorder=2)

    def circle(self, x: float, y: float, radius: float, sign: str) -> None:
        """Draw a circle with a plus, or with a wave for the positional encoding."""
        self.axes.add_patch(Circle((x, y), radius, facecolor="white", edgecolor=style.INK, lw=0.8, zorder=3))
        if sign == "+":
            for dx, dy in ((radius, 0), (0, radius)):
                self.axes.plot([x - dx, x + dx], [y - dy, y + dy], color=style.INK, lw=0.8, zorder=4)
        else:
            steps = [i / 20 for i in range(-20, 21)]
            wave = [y + 0.55 * radius * math.sin(math.pi * t) for t in steps]
            self.axes.plot([x + 0.97 * radius * t for t in steps], wave, color=style.INK, lw=0.8, zorder=4)

    def rounded(self, x: float, y: float, wide: float, tall: float, radius: float, face: str, *, zorder: float) -> None:
        """Draw a rounded shape from its lower left corner."""
        shape = FancyBboxPatch((x, y), wide, tall, boxstyle=f"round,pad=0,rounding_size={radius:g}", zorder=zorder)
        shape.set(facecolor=face, edgecolor=style.INK, linewidth=0.8)
        self.axes.add_patch(shape)


def _column(pen: Pen, x: float, side: int, column: Stack, memory: tuple[float, float] | None) -> tuple[float, float]:
    """Draw one stack centred at x, residuals at `side`; returns x and y of its output, above the last frame.

    `memory` is the place of the encoder's output.
    """
    heading, read = HEADINGS[column.name]
    pen.text(x, 33, heading, va="top")
    y = pen.box(x, 50, f"{read}\n{column.entry[0]}", "embedding")
    pen.line((x, 35), (x, 50))
    for positions in column.entry[1:]:
        far, middle = x + side * 47, y + 17
        pen.line((x, y), (x, middle - 6.5), head=False)
        pen.line((far - side * 11, middle), (x + side * 6.5, middle), head=False)
        pen.circle(x, middle, 6.5, "+")
        pen.circle(far, middle, 11, "wave")
        pen.text(far + side * 17, middle, positions, ha="left" if side > 0 else "right")
        y = middle + 6.5
    low = y + 9
    y = _layer(pen, x, y, side, column.layer, memory)
    inner, outer = WIDE / 2 + MARGIN, WIDE / 2 + AROUND + MARGIN  # the frame is wider on the side of residuals
    start = x - (outer if side < 0 else inner)
    pen.rounded(start, low, inner + outer, y + MARGIN - low, 6, "#f6f6f6", zorder=0)
    times, ha = f"$N\\times$\n($N = {column.n_layers}$)", "left" if side > 0 else "right"
    pen.text(x + side * (outer + 7), (low + y) / 2, times, ha=ha, fontsize=11, ma="center", linespacing=1.2)
    y += MARGIN
    for operation in column.head:
        pen.line((x, y - MARGIN if operation is column.head[0] else y), (x, y + GAP))
        y = pen.box(x, y + GAP, operation, operation.lower())
    if column.head:
        pen.line((x, y), (x, y + GAP))
        pen.text(x, y + GAP + 13, "Output\nProbabilities")
        y += GAP + 24
    return x, y


def _layer(
    pen: Pen, x: float, y: float, side: int, blocks: Sequence[Block], memory: tuple[float, float] | None
) -> float:
    """Draw one layer whose input arrives at (x, y); returns the upper edge of its last box."""
    tops = {BELOW: y}
    top = y
    for box, number in boxes(blocks):
        own = [read for read in box.reads if read != MEMORY]
        straight = max(own, default=BELOW)  # the newest value goes straight on, older ones around the box
        start, attends = tops[straight], box.kind in ATTENTIONS
        first = GAP + 10 if straight == BELOW else GAP
        low = start + first + FORK * attends
        if MEMORY in box.reads and memory:
            _bring(pen, memory, x, low)
            pen.line((x, start), (x, start + 9), (x + side * 0.3 * WIDE, start + 9), (x + side * 0.3 * WIDE, low))
        else:
            pen.line((x, start), (x, low))
            for end in (x - 0.3 * WIDE, x + 0.3 * WIDE) if attends else ():
                pen.line((x, low - FORK), (end, low - FORK), (end, low))
        top = pen.box(x, low, box.label, box.kind)
        for read in own:
            if read != straight:
                edge, out, begin = x + side * WIDE / 2, x + side * (WIDE / 2 + AROUND), tops[read] + 4
                begin += 10 if read == BELOW else 0
                pen.line((x, begin), (out, begin), (out, (low + top) / 2), (edge, (low + top) / 2))
        tops |= {number: top}
    return top


def _bring(pen: Pen, memory: tuple[float, float], x: float, low: float) -> None:
    """Draw the encoder's output, from above its stack to the keys and values of an attention at x."""
    from_x, top = memory
    gutter, level = (from_x + x) / 2 - 6, low - FORK
    pen.line((from_x, top - MARGIN), (from_x, top + GAP), (gutter, top + GAP), (gutter, level), head=False)
    for end in (x - 0.3 * WIDE, x):
        pen.line((gutter, level), (end, level), (end, low))
