"""Gradients of the first output word with respect to each source position. Cho et al. (2014), section 1.

The loss of the first target token is differentiated with respect to the embedding of each source token. If only the
last state of a recurrent encoder reaches the decoder, early words reach it through all steps after them.

    B sentences    S source tokens    D d_model
"""

import textwrap
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from repro.figures import style
from repro.figures.checkpoints import Wanted, dev_pairs, sides_of, told_runs, whose
from repro.figures.style import Axes, Figure, save_numbers
from repro.results.record import BASE, Record

if TYPE_CHECKING:
    from torch import Tensor

    from repro.model.protocol import TranslationSystem

Array = NDArray[np.float64]
NAME, MEASURED = "source_gradients", "source_gradients.json"
ROWS = (Wanted("ladder", "simple"), Wanted("ladder", "soft alignment"), Wanted(BASE, BASE))
COMMAND = 'python experiments/ladder.py --rows base simple "soft alignment"'
FEWEST, MOST = 32, 256  # sentences of one length
QUARTILES = 25, 50, 75


# ---- measuring


def gradient_norms(model: "TranslationSystem", source: "Tensor", first: "Tensor") -> "Tensor":
    """int64 source [B, S] without padding and the first target token [B] -> float [B, S].

    The gradient of the loss -log p(first | source) with respect to the embedding of each source token, as its norm over
    D. The loss is not smoothed, dropout is off.
    """
    import torch

    from repro.model.special_tokens import PAD

    model.eval()
    read: list[Tensor] = []
    handle = model.embedding.register_forward_hook(lambda module, inputs, made: read.append(made))
    try:
        memory = model.encode(source)
    finally:
        handle.remove()
    [embedded] = read  # the source is embedded once
    hidden = model.decode(source.new_full((len(source), 1), PAD), memory, source)[:, 0]
    log_p = model.embedding.logits(hidden).log_softmax(-1)
    # no sentence's loss depends on another sentence, so the gradient of their sum is each one's own
    [gradient] = torch.autograd.grad(-log_p.gather(1, first[:, None]).sum(), embedded)
    return gradient.norm(dim=-1)


def length_shown(lengths: Iterable[int]) -> int:
    """The greatest length that at least `FEWEST` sentences have; else the most frequent one, the longer if tied."""
    counts = Counter(lengths)
    many = [length for length, n in counts.items() if n >= FEWEST]
    return max(many) if many else max(counts, key=lambda length: (counts[length], length))


def measure(records: Sequence[Record], runs: Path, cache: Path) -> dict[str, Any]:
    """The norms of each run on the same sentences of dev, all of one length, in float64: [runs, B, S]."""
    import torch

    from repro.runs.load import open_run

    pairs, norms = dev_pairs(records[0], cache), []
    for record in records:
        trained = open_run(runs / record.run, cache)
        source, target = sides_of(pairs, trained.tokenizer)
        length = length_shown(source.lengths.tolist())
        chosen = np.flatnonzero(source.lengths == length)[:MOST].tolist()
        ids = torch.tensor([[int(id) for id in source.sentence(i)] for i in chosen])
        first = torch.tensor([int(target.sentence(i)[0]) for i in chosen])
        assert isinstance(trained.model, torch.nn.Module)
        trained.model.double()
        norms.append(gradient_norms(trained.model, ids, first).tolist())
    return {"runs": [*map(whose, records)], "norms": norms}


# ---- on paper


def shares_of(norms: Array) -> Array:
    """[B, S] -> [B, S]: each norm as a share of its sentence's sum."""
    return np.asarray(norms / norms.sum(1, keepdims=True))


def draw_gradients(to: Path, measured: dict[str, Any]) -> list[Path]:
    """Draw the norms and their shares by position, and write the numbers."""
    norms = np.array(measured["norms"])  # [runs, B, S]
    rows = [
        (run["row"], run["seed"], place + 1, what, *np.percentile(values[:, place], QUARTILES).tolist(),
         float(values[:, place].mean()), len(values))
        for run, of in zip(measured["runs"], norms, strict=True)
        for what, values in (("norm", of), ("share", shares_of(of)))
        for place in range(values.shape[1])
    ]  # fmt: skip
    columns = ("row", "seed", "position", "of", "lower quartile", "median", "upper quartile", "mean", "sentences")
    return [
        style.save_figure(to, NAME, (style.WIDTH, 3.75), partial(paint_gradients, measured=measured, norms=norms)),
        save_numbers(to, NAME, columns, rows),
    ]


def paint_gradients(figure: Figure, measured: dict[str, Any], norms: Array) -> None:
    """Paint one line per system: norms left, shares right."""
    left, right = figure.subplots(1, 2)
    for i, (run, of) in enumerate(zip(measured["runs"], norms, strict=True)):
        for axes, values in ((left, of), (right, shares_of(of))):
            _paint_quartiles(axes, values, i, run["row"])
    n, length = norms.shape[1:]
    right.axhline(1 / length, color=style.SOFT, lw=0.8, ls=style.DASHES[2], zorder=1)
    for axes, title in ((left, "norm of the gradient"), (right, "share of the sentence’s sum")):
        axes.set(title=title, xlabel="position in the source (tokens)", yscale="log", xlim=(0.5, length + 0.5))
        axes.set_xticks(range(1, length + 1, 1 + length // 16))
        axes.grid(True, axis="y")
    handles, labels = left.get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncols=3, handlelength=3, bbox_to_anchor=(0.5, 0.165))
    text = (
        "Of the loss of the first target token with regard to the embedding of each source token, the last of which is "
        f"the end symbol: {n} sentence{'s' * (n != 1)} of dev with {length} tokens each. Lines: medians over "
        f"sentences; bands: quartiles; dotted: an even share. No label smoothing, no dropout. {told_runs(measured)}"
    )
    style.note(figure, "\n".join(textwrap.wrap(text, 132, break_on_hyphens=False)))
    figure.tight_layout(rect=(0, 0.235, 1, 1), w_pad=2)


def _paint_quartiles(axes: Axes, values: Array, i: int, row: str) -> None:
    low, median, high = np.percentile(values, QUARTILES, axis=0)
    places = np.arange(1, values.shape[1] + 1)
    colour = style.COLOURS[i + 1]
    axes.fill_between(places, low, high, color=colour, alpha=0.16, lw=0)
    axes.plot(places, median, color=colour, ls=style.DASHES[i], marker=style.MARKERS[i], ms=3.6, label=row)
