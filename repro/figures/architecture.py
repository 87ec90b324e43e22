"""Figures 1 and 2 of the paper, drawn from the operations that our model executes.

A model runs once, and each operation is written down with the module that asked for it and what it read. Of these,
`stacks` finds what figure 1 shows: adding, removing or renaming a sub-layer of `repro.model` changes the picture.
`scaled_dot_product` and `multi_head` find the boxes of figure 2. Their order is that of our code: it scales q before
the product, which gives the same numbers as scaling the scores, on a smaller tensor.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from matplotlib.axes import Axes
from matplotlib.patches import Circle, FancyArrowPatch, FancyBboxPatch
from matplotlib.path import Path
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves

from repro.figures import style
from repro.figures.style import Drawn
from repro.model.attention import MultiHeadAttention, attention
from repro.model.transformer import Transformer

# ---- what a model does when it runs


class Call(NamedTuple):
    """One call of a module."""

    path: str  # its name in the model, "encoder.0.feed_forward"
    kind: str  # its class
    reads: tuple[int, ...]  # the steps that made its tensors, in the order of its arguments


class TracedStep(NamedTuple):
    """One operation on tensors that depends on the model's inputs."""

    name: str  # "linear", "matmul", "softmax"
    calls: tuple[int, ...]  # the module calls it happened in, outermost first: places in `Trace.calls`
    reads: tuple[int, ...]  # earlier steps; -1 is the first input, -2 the second


class Trace(NamedTuple):
    """All calls and operations, in order."""

    calls: list[Call]
    steps: list[TracedStep]


# names of operators -> the functions that are the same operation
_SAME = {"__matmul__": "matmul", "__add__": "add", "__radd__": "add", "__mul__": "mul", "__rmul__": "mul"}
# functions that only inspect a tensor, or return a view of it, and so compute nothing
_SILENT = {"transpose", "__getitem__", "squeeze", "unsqueeze", "detach", "to", "view", "contiguous", "dim", "size"}


class _Recorder(TorchFunctionMode):
    """Records each operation; PyTorch calls `__torch_function__` for every one of them."""

    def __init__(self, inputs: Sequence[Tensor]) -> None:
        super().__init__()
        self.trace = Trace([], [])
        self.stack: list[int] = []
        self.kept: list[Any] = list(inputs)  # kept alive, since an id is unique only while its tensor lives
        self.made_by = {id(tensor): -1 - i for i, tensor in enumerate(inputs)}

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        name = getattr(func, "__name__", "")
        reads = self.sources((*args, *(kwargs or {}).values()))
        if not reads or name == "__get__":
            return result
        name = _SAME.get(name, name)
        made = [item for item in _tensors(result) if self.made_by.get(id(item)) is None or name.endswith("_")]
        if not made:
            return result
        place = reads[0] if name in _SILENT else len(self.trace.steps)
        if name not in _SILENT:
            self.trace.steps.append(TracedStep(name=name, calls=tuple(self.stack), reads=reads))
        self.kept += made
        self.made_by |= dict.fromkeys(map(id, made), place)
        return result

    def sources(self, values: Iterable[Any]) -> tuple[int, ...]:
        """The steps that made these tensors; parameters and masks made from nothing have none."""
        return tuple(self.made_by[id(item)] for item in _tensors(values) if id(item) in self.made_by)

    def enter(self, path: str, module: nn.Module, args: tuple[Any, ...]) -> None:
        self.stack.append(len(self.trace.calls))
        self.trace.calls.append(Call(path=path, kind=type(module).__name__, reads=self.sources(args)))

    def leave(self, module: nn.Module, args: tuple[Any, ...], result: Any) -> None:
        self.stack.pop()


def _tensors(values: Any) -> list[Tensor]:
    return [value for value in tree_leaves(values) if isinstance(value, Tensor)]


def trace(function: Callable[..., Any], *inputs: Tensor, model: nn.Module | None = None) -> Trace:
    """Run `function` on `inputs`, without gradients, and return the trace. The model is left in evaluation mode.

    `model` is the module whose parts are named; by default it is `function`, if that is a module.
    """
    root = model or (function if isinstance(function, nn.Module) else nn.Module())
    recorder = _Recorder(inputs)
    hooks = []
    for path, part in root.named_modules():
        hooks.append(part.register_forward_pre_hook(lambda part, args, path=path: recorder.enter(path, part, args)))
        hooks.append(part.register_forward_hook(recorder.leave))
    root.eval()
    with torch.no_grad(), recorder:
        function(*inputs)
    for hook in hooks:
        hook.remove()
    return recorder.trace


def words(name: str) -> str:
    """The name of a class or attribute in words: "FeedForward" and "feed_forward" become "Feed Forward"."""
    spaced = "".join(f" {letter}" if letter.isupper() else letter for letter in name.replace("_", " "))
    return " ".join(word.capitalize() for word in spaced.split())


# ---- figure 1

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


class Block(NamedTuple):
    """One box: a sub-layer, a norm or a sum."""

    label: str
    kind: str  # its class, or the name of its operation
    reads: tuple[int, ...]  # earlier blocks of its layer, BELOW or MEMORY


class Stack(NamedTuple):
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
            kind, path_of = (done.calls[inner[0]].kind, done.calls[inner[0]].path) if inner else (step.name, "")
            blocks.append(Block(_label(kind, path_of in masked), kind, ()))
        block_of[place] = own = block_of[key]
        sources = (_source(done, read, block_of, inputs, path) for read in step.reads)
        reads = [*blocks[own].reads, *(s for s in sources if s is not None and s != own)]
        blocks[own] = blocks[own]._replace(reads=tuple(dict.fromkeys(reads)))
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


def _head(model: Transformer, source: Tensor) -> tuple[str, ...]:
    """The operations after the last decoder layer when the model writes its next token."""
    with torch.no_grad():
        cache = model.start(source)
    done = trace(lambda ids: model.step(ids, cache), torch.tensor([2]), model=model)
    last = max(i for i, step in enumerate(done.steps) if any("decoder." in done.calls[c].path for c in step.calls))
    return tuple(_label(step.name, False) for step in done.steps[last + 1 :])


# figure 1 on paper, in points of 1/72 inch
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


def draw_architecture(model: Transformer) -> Drawn:
    """Figure 1: the stacks side by side, as high as the taller one, and the encoder's output going to the decoder."""
    encoder, decoder = stacks(model)
    trial = Pen(style.canvas(style.figure("", 1)))  # they are drawn to be measured
    height = max(_column(trial, 0, 1, column, (0, 0))[1] for column in (encoder, decoder)) + 24
    figure, left = style.figure("figure1_architecture", height / 72, 6.4), 126.0
    pen = Pen(style.canvas(figure))
    _column(pen, left + APART, 1, decoder, _column(pen, left, -1, encoder, None))
    return [figure]


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


# ---- figure 2

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
COLOUR = {
    "MatMul": "#e3d4ee",
    "Scale": "#f6ebb0",
    "Mask (opt.)": "#fbe0e1",
    "SoftMax": "#cbe7cf",
    "Linear": "#dddff1",
    "Concat": "#f6ebb0",
    ATTENTION: "#e3d4ee",
}


class Operation(NamedTuple):
    """One box."""

    label: str
    reads: tuple[int, ...]  # earlier boxes; -1 is the first input, -2 the second


def scaled_dot_product() -> list[Operation]:
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
    return operations


def multi_head() -> list[Operation]:
    """The right half: the operations of `MultiHeadAttention`, with those of `attention` in one box."""
    layer = MultiHeadAttention(d_model=6, n_heads=2, d_k=3, d_v=4)
    steps = trace(layer, torch.ones(1, 3, 6), torch.ones(1, 5, 6)).steps
    q, k, v = (torch.ones(1, 1, n, 2) for n in (3, 5, 5))
    return _folded(steps, trace(attention, q, k, v).steps)


def _folded(steps: Sequence[TracedStep], inner: Sequence[TracedStep]) -> list[Operation]:
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
    return operations


# figure 2 on paper, in points of 1/72 inch
RISE, TALL, BOX, FOOT = 33.0, 17.0, 66.0, 20.0  # from a box to the next, a box, the inputs
BEHIND = 20.0  # additional space under a box that stands on h boxes
ASIDE = 76.0  # between boxes side by side


def levels(operations: Sequence[Operation]) -> list[int]:
    """The level of each operation: one above the highest that it reads."""
    found: list[int] = []
    for operation in operations:
        found.append(1 + max((found[read] if read >= 0 else 0 for read in operation.reads), default=0))
    return found


def places(operations: Sequence[Operation], inputs: Sequence[float]) -> list[float]:
    """The centre of each box: above what it reads, and side by side where several would share a place."""
    heights, found = levels(operations), [0.0] * len(operations)
    for level in range(1, max(heights, default=0) + 1):
        here = [i for i, height in enumerate(heights) if height == level]
        for i in here:
            sources = [found[read] if read >= 0 else inputs[-1 - read] for read in operations[i].reads]
            found[i] = sum(sources) / len(sources)
        for i in here:
            same = [j for j in here if abs(found[j] - found[i]) < 1]
            if len(same) > 1:
                for n, j in enumerate(same):
                    found[j] += ASIDE * (n - (len(same) - 1) / 2)
    return found


def draw_operations() -> Drawn:
    """Figure 2: both halves, inputs at the bottom; high enough for the taller half."""
    left, right = scaled_dot_product(), multi_head()
    height = max(map(max, map(_heights, (left, right)))) + TALL + 54
    figure, width = style.figure("figure2_attention", height / 72), 72 * style.WIDTH
    pen = Pen(style.canvas(figure))
    _half(pen, "Scaled Dot-Product Attention", left, {"Q": 0.17 * width, "K": 0.26 * width, "V": 0.35 * width}, height)
    _half(pen, "Multi-Head Attention", right, {"Q": 0.6 * width, "K, V": 0.81 * width}, height)
    return [figure]


def _half(pen: Pen, title: str, operations: Sequence[Operation], named: dict[str, float], height: float) -> None:
    """Draw one half above the centres of its inputs, which are `named`."""
    inputs = [*named.values()]
    xs, ys = places(operations, inputs), _heights(operations)
    pen.text(sum(inputs) / len(inputs), height - 16, title, fontsize=11.5, linespacing=None)
    for name, x in named.items():
        pen.text(x, FOOT, name, fontsize=11, style="italic", linespacing=None)
    for x, y, operation in zip(xs, ys, operations, strict=True):
        stacked = operation.label == ATTENTION
        wide, tall = 104 if stacked else BOX, _tall(operation)
        for shift in (9, 4.5, 0) if stacked else (0,):  # h boxes behind each other
            face = COLOUR.get(operation.label, OTHER)
            pen.rounded(x - wide / 2 + shift, y + shift, wide, tall, 3, face, zorder=3)
        pen.text(x, y + tall / 2 - 0.5, operation.label, zorder=4)
        if stacked:
            pen.text(x + wide / 2 + 16, y + tall / 2 + 4, "h", ha="left", fontsize=11, style="italic", linespacing=None)
        begins = [
            (xs[read], ys[read] + _tall(operations[read])) if read >= 0 else (inputs[-1 - read], FOOT + 8)
            for read in operation.reads
        ]
        for begin, end in zip(begins, _ports(x, wide, [begin[0] for begin in begins]), strict=True):
            _arrow(pen.axes, begin, (end, y))
    high = ys[-1] + _tall(operations[-1])
    _arrow(pen.axes, (xs[-1], high), (xs[-1], high + 17))


def _tall(operation: Operation) -> float:
    """The height of a box in points."""
    return TALL + 11 * operation.label.count("\n")


def _heights(operations: Sequence[Operation]) -> list[float]:
    """The lower edge of each box: what stands on h boxes behind each other stands higher."""
    rows = levels(operations)
    stacked = [row for row, operation in zip(rows, operations, strict=True) if operation.label == ATTENTION]
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
