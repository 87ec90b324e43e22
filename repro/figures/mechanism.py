"""Why the model is built as it is: positions, learning rate, saturation. Paper: sections 3.5, 5.3 and 3.2.1.

The numbers are computed first, by arithmetic or from seeded draws; each function `draw_...` draws one set of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from repro.figures import style
from repro.figures.style import Figure
from repro.model.config import BASE, Hyper
from repro.training.schedule import rate

Array = NDArray[np.float64]


# ---- positions: section 3.5


def encodings(length: int, d_model: int) -> Array:
    """sin and cos of pos / 10000^(2i / d_model), interleaved; [length, d_model]. `model.embedding` without torch."""
    angle = np.arange(length)[:, None] / 10_000 ** (np.arange(0, d_model, 2) / d_model)
    return np.stack([np.sin(angle), np.cos(angle)], axis=-1).reshape(length, -1)


def wavelengths(d_model: int) -> Array:
    """The wavelength in positions of each pair of dimensions: 2 pi 10000^(2i / d_model); [d_model / 2]."""
    return np.asarray(2 * np.pi * 10_000 ** (np.arange(0, d_model, 2) / d_model))


def draw_positions(folder: Path) -> list[Path]:
    """Draw sines and cosines separately, since interleaved they flicker, and their wavelengths."""

    def paint(figure: Figure) -> None:
        sines, cosines, waves = figure.subplots(1, 3, gridspec_kw={"width_ratios": [1, 1.25, 1]})
        values = encodings(100, BASE.d_model)
        for axes, first, name in ((sines, 0, "sin"), (cosines, 1, "cos")):
            picture = axes.imshow(values[:, first::2], cmap="RdBu_r", vmin=-1, vmax=1, aspect="auto")
            axes.set(xlabel="pair of dimensions $i$", title=f"{name}, dimensions $2i{' + 1' * first}$")
            axes.spines[["top", "right"]].set_visible(True)
        sines.set_ylabel("position (tokens)")
        bar = figure.colorbar(picture, ax=cosines, pad=0.03, ticks=[-1, 0, 1])
        bar.outline.set_linewidth(0.5)
        waves.semilogy(wavelengths(BASE.d_model), color=style.COLOURS[1])
        for level, text, edge in ((2 * np.pi, r"$2\pi$", "right"), (20_000 * np.pi, r"$10000 \cdot 2\pi$", "left")):
            waves.axhline(level, color=style.SOFT, lw=0.7, ls=style.DASHES[2])
            at = (0.98 if edge == "right" else 0.02, level)
            waves.annotate(text, at, xycoords=("axes fraction", "data"), va="bottom", ha=edge, color=style.SOFT)
        waves.set(xlabel="pair of dimensions $i$", ylabel="wavelength (tokens)", title="wavelength", ylim=(4, 2e5))
        waves.minorticks_off()
        figure.tight_layout(w_pad=1.2)

    return [style.save_figure(folder, "positional_encoding", (style.WIDTH, 2.7), paint)]


# ---- learning rate: section 5.3


@dataclass(frozen=True)
class Schedule:
    """One curve of the learning rate."""

    label: str
    d_model: int
    warmup: int
    steps: int

    def rates(self, at: Sequence[int]) -> list[float]:
        return [rate(step, self.d_model, self.warmup) for step in at]

    @property
    def peak(self) -> float:
        """The highest rate, at step `warmup`."""
        return rate(self.warmup, self.d_model, self.warmup)


def schedules(scale: str, own: Hyper) -> list[Schedule]:
    """The schedules of the paper's two models, one with half the warm-up, and, first, this scale's own base."""
    big = 2 * BASE.d_model
    return [
        Schedule(f"scale {scale}", own.d_model, own.warmup, own.steps),
        Schedule("base", BASE.d_model, BASE.warmup, BASE.steps),
        Schedule("big", big, BASE.warmup, 3 * BASE.steps),
        Schedule("base, half the warm-up", BASE.d_model, BASE.warmup // 2, BASE.steps),
        Schedule("base, twice the warm-up", BASE.d_model, 2 * BASE.warmup, BASE.steps),
    ]


def draw_schedule(folder: Path, scale: str, own: Hyper) -> list[Path]:
    """Draw the printed schedule for several widths and warm-ups, each up to its number of training steps."""

    def paint(figure: Figure) -> None:
        axes = figure.subplots()
        for i, one in enumerate(schedules(scale, own)):
            steps = sorted({int(step) for step in np.geomspace(1, one.steps, 400)} | {min(one.warmup, one.steps)})
            label = f"{one.label}: $d_{{\\mathrm{{model}}}}$ {one.d_model}, warm-up {one.warmup:,}"
            how = {"color": style.COLOURS[(i + 2) % 6 if i else 2], "ls": style.DASHES[i], "lw": 2.4 if i == 0 else 1.4}
            axes.loglog(steps, one.rates(steps), label=label, **how)
            if one.warmup <= one.steps:
                axes.plot([one.warmup], [one.peak], style.MARKERS[i], color=how["color"], ms=4.5)
        axes.set(xlabel="update", ylabel="learning rate", xlim=(10, 4e5))
        axes.set_ylim(bottom=1e-6)
        axes.minorticks_off()
        axes.grid(True)
        figure.legend(loc="lower center", ncols=2, handlelength=3.6)
        figure.tight_layout(rect=(0, 0.18, 1, 1))

    return [style.save_figure(folder, "learning_rate", (style.WIDTH, 3.9), paint)]


# ---- saturation: section 3.2.1


@dataclass(frozen=True)
class Saturation:
    """What happens to scores and softmax as d_k grows, for q and k with independent N(0, 1) entries."""

    d_k: tuple[int, ...]
    variance: tuple[float, ...]  # of q . k
    plain: tuple[float, ...]  # mean Frobenius norm of the softmax's Jacobian at scores q . k
    scaled: tuple[float, ...]  # and at q . k / sqrt(d_k)


N_KEYS, N_DRAWS = 32, 4_000
WIDTHS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)


def jacobian_norm(scores: Array) -> Array:
    """The Frobenius norm |diag(p) - p p^T| of p = softmax(scores); [..., K] -> [...].

    The entries are p_i (1 - p_i) and -p_i p_j, so no K x K matrix is built. For the largest weight, 1 - p is the sum of
    the other weights; subtracting from 1 would lose all digits where that weight is almost 1.
    """
    exponents = np.sort(np.exp(scores - scores.max(-1, keepdims=True)), axis=-1)
    p = exponents / exponents.sum(-1, keepdims=True)
    most, rest = p[..., -1], p[..., :-1]
    squares = (rest**2).sum(-1)
    diagonal = (most * rest.sum(-1)) ** 2 + ((rest * (1 - rest)) ** 2).sum(-1)
    return np.sqrt(diagonal + 2 * most**2 * squares + squares**2 - (rest**4).sum(-1))


def saturation(widths: Sequence[int] = WIDTHS) -> Saturation:
    """Measure it on `N_DRAWS` queries with `N_KEYS` keys each."""
    rows: list[list[float]] = []
    for d_k in widths:
        generator = np.random.default_rng([17, d_k])
        # given q, the scores of its keys are independent N(0, |q|^2), so no key needs to be drawn
        lengths = np.sqrt(generator.chisquare(d_k, N_DRAWS))
        scores = lengths[:, None] * generator.standard_normal((N_DRAWS, N_KEYS))
        plain, scaled = jacobian_norm(scores), jacobian_norm(scores / d_k**0.5)
        # rounded to six digits: processors differ in the last digit of an exponential, which would change the file
        rows.append([float(f"{of:.6g}") for of in (scores.var(), plain.mean(), scaled.mean())])
    variance, plain_mean, scaled_mean = zip(*rows, strict=True)
    return Saturation(tuple(widths), variance, plain_mean, scaled_mean)


def draw_saturation(folder: Path) -> list[Path]:
    """Draw how scores spread and the softmax's gradient vanishes as d_k grows, unless scores are scaled."""
    found = saturation()

    def paint(figure: Figure) -> None:
        left, right = figure.subplots(1, 2)
        left.loglog(found.d_k, found.d_k, color=style.SOFT, lw=1, label=r"$d_k$")
        left.loglog(found.d_k, found.variance, "o", color=style.COLOURS[1], label=f"{N_DRAWS:,} queries")
        left.set(xlabel="$d_k$", ylabel=r"variance of $q \cdot k$", title="Scores")
        right.semilogx(
            found.d_k, found.scaled, "o-", color=style.COLOURS[1], label=r"softmax$(q \cdot k\,/\sqrt{d_k})$"
        )
        right.semilogx(
            found.d_k, found.plain, "s", ls=style.DASHES[1], color=style.COLOURS[2], label=r"softmax$(q \cdot k)$"
        )
        right.set(xlabel="$d_k$", ylabel="norm of its Jacobian (Frobenius)", title=f"Softmax over {N_KEYS} keys")
        right.set_ylim(bottom=0)
        for axes in (left, right):
            axes.set_xticks([1, 4, 16, 64, 256, 1024], ["1", "4", "16", "64", "256", "1024"])
            axes.minorticks_off()
            axes.grid(True)
            axes.legend(loc="upper left" if axes is left else "lower left")
        figure.tight_layout(w_pad=2)
        for axes in (left, right):  # their places come from logarithms, whose last digit differs between processors
            axes.set_position([round(part, 6) for part in axes.get_position().bounds])

    return [style.save_figure(folder, "softmax_saturation", (style.WIDTH, 2.8), paint)]
