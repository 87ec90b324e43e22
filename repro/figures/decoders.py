"""Three decoders unrolled side by side: where the source enters each. Cho, Sutskever (2014), Bahdanau et al. (2015).

Small instances of the modules are differentiated to find what the first state depends on, and what a step depends on
while the state before it is held fixed. These dependencies are drawn, so another decoder gives another picture.

    S source words    T steps
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from repro.figures import style
from repro.figures.style import Axes, Figure, save_numbers
from repro.model.config import Hyper

if TYPE_CHECKING:
    from repro.model.rivals.recurrent import Simple

Array = NDArray[np.float64]
NAME = "where_the_source_enters"
SOURCE, WRITTEN = ("the", "old", "law", "."), ("das", "alte", "Gesetz")
NARROW = Hyper(n_layers=1, d_model=16, d_ff=32, n_heads=1, d_k=16, d_v=16, dropout=0.0)
APART = 40.0  # points, between words
FLOORS = {"source": 18.0, "h": 46.0, "c": 104.0, "s": 156.0, "y": 192.0}  # points, from below
ROUND, SIDE = 9.5, 17.0  # points: radius of a state, side of a word's vector
SAME = 1e-5  # tolerance for shares of two steps that are the same


@dataclass(frozen=True)
class Entrances:
    """The share of each source word in what the decoder sees of the source; 0 where it sees nothing."""

    first: Array  # [S] shares in the first state
    steps: Array  # [T, S] shares in each step, with the state before it held fixed
    both_ways: bool  # whether the encoder's output for the first word depends on the last word

    @property
    def is_same(self) -> bool:
        """Whether all steps see the source in the same way."""
        return bool(np.abs(self.steps - self.steps[0]).max() < SAME)


def entrances(model: "Simple", source: Sequence[int], written: Sequence[int]) -> Entrances:
    """Find the shares by the gradients of the first state and of each step's output with respect to the memory."""
    import torch

    ids = torch.tensor([source])
    memory = model.eval().encode(ids).detach().requires_grad_()
    with_another_end = model.encode(torch.tensor([[*source[:-1], source[0]]])).detach()
    model.encode = lambda source: memory  # type: ignore[method-assign]  # this model is thrown away
    state = model.start(ids)

    def share_of(found: "torch.Tensor") -> Array:
        if not found.requires_grad:
            return np.zeros(len(source))
        probe = torch.linspace(1, 2, found.numel(), dtype=found.dtype).view_as(found)
        [gradient] = torch.autograd.grad((found * probe).sum(), memory, allow_unused=True, retain_graph=True)
        if gradient is None:
            return np.zeros(len(source))
        norms = gradient[0].norm(dim=-1).double().numpy()
        return np.asarray(norms / max(norms.sum(), 1e-30))

    first, steps = share_of(torch.cat(state.own, dim=-1)), []
    for id in written:
        held = replace(state, own=tuple(part.detach() for part in state.own))
        seen, _ = model.advance(torch.tensor([id]), held)
        steps.append(share_of(seen))
        with torch.no_grad():
            _, state = model.advance(torch.tensor([id]), state)
    return Entrances(first, np.stack(steps), not torch.equal(with_another_end[0, 0], memory[0, 0]))


def three_decoders() -> dict[str, Entrances]:
    """The decoders of three systems of the ladder, with seeded, untrained weights."""
    import torch

    from repro.model.rivals.attention_rnn import SoftAlignment
    from repro.model.rivals.recurrent import Simple, StaticMean

    found = {}
    for name, kind in (("simple", Simple), ("static, mean", StaticMean), ("soft alignment", SoftAlignment)):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(8)
            model = kind(NARROW, 23).double()
        found[name] = entrances(model, range(3, 3 + len(SOURCE)), range(10, 10 + len(WRITTEN)))
    return found


def draw_decoders(to: Path) -> list[Path]:
    """Write the picture, and the shares as CSV."""
    found = three_decoders()

    def paint(figure: Figure) -> None:
        for number, (name, seen) in enumerate(found.items()):
            axes = style.canvas(figure, (number / len(found), 0, 1 / len(found), 1))
            paint_decoder(axes, seen, f"{name}: {_said(seen)}")

    steps = [(f"step {t + 1}", t) for t in range(len(WRITTEN))]
    rows = [
        (name, place, word, float(shares[j]))
        for name, seen in found.items()
        for place, shares in (("first state", seen.first), *((place, seen.steps[t]) for place, t in steps))
        for j, word in enumerate(SOURCE)
    ]
    return [
        style.save_figure(to, NAME, (style.WIDTH, 3.15), paint),
        save_numbers(to, NAME, ("decoder", "where", "source word", "share"), rows),
    ]


def _said(seen: Entrances) -> str:
    if not seen.steps.any():
        return "at the start"
    return "at each step, the same" if seen.is_same else "at each step, another"


def paint_decoder(axes: Axes, seen: Entrances, title: str) -> None:
    """Paint, from below: source words, the encoder's output, what a step sees of it, states, and output words."""
    width = axes.get_xlim()[1]
    words = [width / 2 + APART * (j - (len(SOURCE) - 1) / 2) for j in range(len(SOURCE))]
    states = [width / 2 + APART * (t - len(WRITTEN) / 2) for t in range(len(WRITTEN) + 1)]
    axes.text(width / 2, axes.get_ylim()[1] - 8, title, ha="center", va="top", fontsize=10)
    for x, word in zip(words, SOURCE, strict=True):
        axes.text(x, FLOORS["source"], word, ha="center", va="center", fontsize=9)
        _box(axes, x, FLOORS["h"])
    for before, after in pairwise(words):
        left, right = (before + SIDE / 2, FLOORS["h"]), (after - SIDE / 2, FLOORS["h"])
        _line(axes, left, right, style.SOFT)
        if seen.both_ways:
            _line(axes, right, left, style.SOFT)
    for j in np.flatnonzero(seen.first).tolist():
        _line(axes, (words[j], FLOORS["h"] + SIDE / 2), (states[0], FLOORS["s"] - ROUND), style.COLOURS[2], dashed=True)
    if seen.steps.any():
        _contexts(axes, seen, words, states)
    for t, x in enumerate(states):
        _circle(axes, x, FLOORS["s"], f"$s_{t}$")
        if t:
            _line(axes, (states[t - 1] + ROUND, FLOORS["s"]), (x - ROUND, FLOORS["s"]), style.INK)
            _line(axes, (x, FLOORS["s"] + ROUND), (x, FLOORS["y"] - 6), style.INK)
            axes.text(x, FLOORS["y"], WRITTEN[t - 1], ha="center", va="center", fontsize=9)


def _contexts(axes: Axes, seen: Entrances, words: Sequence[float], states: Sequence[float]) -> None:
    """Draw one context for all steps if they see the same, else one for each; a line is as wide as its share."""
    groups = [range(len(seen.steps))] if seen.is_same else [[t] for t in range(len(seen.steps))]
    for group in groups:
        x = float(np.mean([states[t + 1] for t in group]))
        for j in np.flatnonzero(seen.steps[group[0]]).tolist():
            share = seen.steps[group[0], j] * len(words)
            _line(axes, (words[j], FLOORS["h"] + SIDE / 2), (x, FLOORS["c"] - ROUND), style.COLOURS[1], width=share)
        for t in group:
            _line(axes, (x, FLOORS["c"] + ROUND), (states[t + 1], FLOORS["s"] - ROUND), style.COLOURS[1])
        _circle(axes, x, FLOORS["c"], "$c$" if seen.is_same else f"$c_{group[0] + 1}$")


def _box(axes: Axes, x: float, y: float) -> None:
    from matplotlib.patches import Rectangle

    axes.add_patch(
        Rectangle((x - SIDE / 2, y - SIDE / 2), SIDE, SIDE, facecolor=style.PALE, edgecolor=style.INK, lw=0.6)
    )


def _circle(axes: Axes, x: float, y: float, name: str) -> None:
    from matplotlib.patches import Circle

    axes.add_patch(Circle((x, y), ROUND, facecolor="white", edgecolor=style.INK, lw=0.8, zorder=3))
    axes.text(x, y - 0.5, name, ha="center", va="center", fontsize=9, zorder=4)


def _line(
    axes: Axes,
    start: tuple[float, float],
    end: tuple[float, float],
    colour: str,
    *,
    width: float = 1.0,
    dashed: bool = False,
) -> None:
    line = {
        "arrowstyle": "-|>,head_width=0.14,head_length=0.28",
        "color": colour,
        "lw": width,
        "shrinkA": 0,
        "shrinkB": 0,
    }
    axes.annotate("", end, start, arrowprops={**line, "ls": (0, (4, 2)) if dashed else "-"})
