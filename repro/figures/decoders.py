"""Three decoders side by side: where the source enters each. Cho, Sutskever (2014), Bahdanau et al. (2015).

Small instances of the modules are differentiated to find what the first state depends on, and what a step depends on
while the state before it is held fixed. So another decoder gives another picture.

    S source words    T steps
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from repro.figures import style
from repro.figures.style import Figure, save_numbers
from repro.model.config import Hyper

if TYPE_CHECKING:
    from repro.model.rivals.recurrent import Simple

Array = NDArray[np.float64]
NAME = "where_the_source_enters"
SOURCE, WRITTEN = ("the", "old", "law", "."), ("das", "alte", "Gesetz")
NARROW = Hyper(n_layers=1, d_model=16, d_ff=32, n_heads=1, d_k=16, d_v=16, dropout=0.0)
PLACES = ("first state", *(f"step {t + 1}" for t in range(len(WRITTEN))))
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
    rows = [
        (name, place, word, float(share))
        for name, seen in found.items()
        for place, shares in zip(PLACES, (seen.first, *seen.steps), strict=True)
        for word, share in zip(SOURCE, shares, strict=True)
    ]
    return [
        style.save_figure(to, NAME, (style.WIDTH, 2.6), partial(paint_decoders, found=found)),
        save_numbers(to, NAME, ("decoder", "where", "source word", "share"), rows),
    ]


def paint_decoders(figure: Figure, found: Mapping[str, Entrances]) -> None:
    """Paint, for each decoder, the share of each source word in the first state and in each step; 0 is blank."""
    for axes, (name, seen) in zip(figure.subplots(1, len(found), sharey=True), found.items(), strict=True):
        shares = np.vstack([seen.first, seen.steps])
        axes.imshow(np.where(shares > 0, shares, np.nan), cmap="Blues", vmin=0, vmax=1)
        for (row, column), share in np.ndenumerate(shares):
            if share > 0:
                colour = "white" if share > 0.6 else style.INK
                axes.text(column, row, f"{share:.2f}", ha="center", va="center", fontsize=8, color=colour)
        axes.set_title(f"{name}: {_said(seen)}", fontsize=9.5)
        axes.set_xticks(range(len(SOURCE)), SOURCE)
        axes.set_yticks(range(len(PLACES)), PLACES)
        axes.tick_params(length=0)
        axes.spines[:].set(visible=True, color=style.PALE)
    style.note(figure, "The share of each source word in what a decoder’s first state and each of its steps see of it.")
    figure.tight_layout(rect=(0, 0.06, 1, 1))


def _said(seen: Entrances) -> str:
    if not seen.steps.any():
        return "at the start"
    return "each step the same" if seen.is_same else "each step another"
