"""Pictures of single mechanisms: mask, norms, softmax and its saturation, positional encodings.

The numbers come from the model's own modules and are written beside each picture as CSV. Paper: sections 3.1, 3.2, 3.5.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from repro.figures import style
from repro.figures.style import Axes, Figure, save_numbers

Array = NDArray[np.float64]


# ---- the mask: section 3.2.3

WORDS = ("The", "Law", "will", "never", "be", "perfect")


@dataclass(frozen=True)
class Masked:
    """Scores of a decoder's self-attention [Q, K], what the mask adds to them, and the resulting weights."""

    scores: Array
    hidden: NDArray[np.bool_]
    weights: Array


def masked() -> Masked:
    """Compute them from seeded queries and keys by the model's own functions."""
    import torch

    from repro.model.attention import scaled_scores, softmax_of_seen
    from repro.model.masks import Padded

    generator, n = torch.Generator().manual_seed(3), len(WORDS)
    q, k = (torch.randn(1, 1, n, 16, dtype=torch.float64, generator=generator) for _ in range(2))
    scores, bias = scaled_scores(q, k), Padded(torch.ones(1, n, dtype=torch.int64)).causal(torch.float64)
    weights = softmax_of_seen(scores, bias)
    return Masked(scores[0, 0].numpy(), (bias < 0).numpy(), weights[0, 0].numpy())


def draw_mask(folder: Path) -> list[Path]:
    """Draw three squares: scores; scores with later words masked; weights, each row with sum one."""
    found = masked()

    def paint(figure: Figure) -> None:
        panels = figure.subplots(1, 3)
        largest = float(np.abs(found.scores).max())
        blank = np.where(found.hidden, np.nan, found.scores)
        titles = (r"$q \cdot k\,/\sqrt{d_k}$", "with the mask", "softmax of each row")
        for axes, values, title in zip(panels, (found.scores, blank, found.weights), titles, strict=True):
            is_weight = values is found.weights
            of_colours: dict[str, Any] = (
                {"cmap": "Blues", "vmin": 0, "vmax": 1}
                if is_weight
                else {"cmap": "RdBu_r", "vmin": -largest, "vmax": largest}
            )
            axes.imshow(values, **of_colours)
            _numbers(axes, values, found.hidden, is_weight=is_weight)
            _square(axes, title)
        figure.tight_layout(w_pad=1.0)

    cells = [
        (WORDS[q], WORDS[k], float(found.scores[q, k]), int(found.hidden[q, k]), float(found.weights[q, k]))
        for q in range(len(WORDS))
        for k in range(len(WORDS))
    ]
    numbers = save_numbers(folder, "mask", ("query", "key", "score", "hidden", "weight"), cells)
    return [style.save_figure(folder, "mask", (style.WIDTH, 2.75), paint), numbers]


def _numbers(axes: Axes, values: Array, hidden: NDArray[np.bool_], *, is_weight: bool) -> None:
    for (q, k), value in np.ndenumerate(values):
        if np.isnan(value):
            text, colour = r"$-\infty$", style.SOFT
        elif is_weight and hidden[q, k]:
            text, colour = "0", style.SOFT
        else:
            text = (
                f"{value:.2f}".replace("0.", ".", 1) if is_weight else f"{round(value, 1) + 0.0:.1f}".replace("-", "−")
            )
            colour = "white" if (value > 0.6 if is_weight else abs(value) > 1.3) else style.INK
        axes.text(k, q, text, ha="center", va="center", fontsize=7.5, color=colour)


def _square(axes: Axes, title: str) -> None:
    places = range(len(WORDS))
    axes.set_xticks(places, WORDS, rotation=45, ha="right", rotation_mode="anchor")
    axes.set_yticks(places, WORDS)
    axes.tick_params(length=0)
    axes.set_title(title)
    axes.spines[:].set_visible(False)


# ---- norms: section 3.1


REAL = 4, 3, 4  # tokens of each sentence; the rest of a sentence is padding


def shared_cells() -> Array:
    """Which cells of a batch the normalised cell (1, 1, 2) depends on: [2, sentence, token, dimension], 0 or 1.

    First by layer normalisation, then by batch normalisation in training mode, which leaves padding out; found by
    differentiating the modules.
    """
    import torch

    from repro.model.ablations.batch_norm import TokenBatchNorm
    from repro.model.layers import PostNorm

    generator, length, width = torch.Generator().manual_seed(5), max(REAL), 6
    x = torch.randn(len(REAL), length, width, dtype=torch.float64, generator=generator).requires_grad_()
    over_tokens = TokenBatchNorm(width).double()
    over_tokens.real = (torch.arange(length) < torch.tensor(REAL)[:, None]).unsqueeze(-1)
    found = []
    for norm in (PostNorm.norm(width).double(), over_tokens):
        [gradient] = torch.autograd.grad(norm.train()(x)[1, 1, 2], x)
        found.append((gradient != 0).double().numpy())
    return np.stack(found)


def draw_norms(folder: Path) -> list[Path]:
    """Draw a batch of three sentences twice, with the cells that share a mean with one cell."""
    found = shared_cells()
    _, n_sentences, length, width = found.shape

    def paint(figure: Figure) -> None:
        from matplotlib.patches import Rectangle

        for side, (axes, title) in enumerate(
            zip(figure.subplots(1, 2), ("layer normalisation", "batch normalisation, in training"), strict=True)
        ):
            for b, t, d in np.ndindex(n_sentences, length, width):
                x, y = d, -(b * (length + 0.7) + t)
                is_pad, is_it = t >= REAL[b], (b, t, d) == (1, 1, 2)
                face = style.COLOURS[1] if found[side, b, t, d] else "#f4f4f4" if is_pad else style.PALE
                how: dict[str, Any] = {"edgecolor": "white", "hatch": "/////" if is_pad else None, "linewidth": 0.4}
                axes.add_patch(Rectangle((x - 0.45, y - 0.45), 0.9, 0.9, facecolor=face, **how))
                if is_it:
                    axes.plot(x, y, "o", color="white", ms=4)
            for b in range(n_sentences):
                axes.text(-0.9, -(b * (length + 0.7) + 1.5), f"sentence {b + 1}", rotation=90, ha="center", va="center")
            axes.set(
                xlim=(-1.4, width - 0.4), ylim=(0.4 - n_sentences * (length + 0.7), 0.7), title=title, aspect="equal"
            )
            axes.set_xlabel("dimension of the model", labelpad=2)
            axes.set_xticks([])
            axes.set_yticks([])
            axes.spines[:].set_visible(False)
        style.note(
            figure,
            "Blue: the cells that the marked one depends on. A line is a token; hatched is padding.\nOver the "
            "batch a token meets those of other sentences, and in a decoder those that come later.",
        )
        figure.tight_layout(rect=(0, 0.1, 1, 1))

    cells = [
        (b + 1, t + 1, d + 1, int(t >= REAL[b]), int(found[0, b, t, d]), int(found[1, b, t, d]))
        for b, t, d in np.ndindex(n_sentences, length, width)
    ]
    columns = ("sentence", "token", "dimension", "padding", "layer", "batch")
    return [
        style.save_figure(folder, "norms", (5.6, 4.9), paint),
        save_numbers(folder, "norms", columns, cells),
    ]


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


# ---- the softmax of two equal scores and one twice as large: section 3.2.1


def two_and_twice(a: Array) -> tuple[Array, Array, Array]:
    """For softmax([a, a, 2a]): the weight of one of the equal two, that of the third, and the norm of the Jacobian."""
    scores = np.stack([a, a, 2 * a], axis=-1)
    exponents = np.exp(scores - scores.max(-1, keepdims=True))
    p = exponents / exponents.sum(-1, keepdims=True)
    return p[..., 0], p[..., 2], jacobian_norm(scores)


def draw_sharpness(folder: Path) -> list[Path]:
    """Draw weights and gradient while all scores grow by one factor: gaps between scores saturate a softmax."""
    a = np.linspace(0, 10, 201)
    one, twice, jacobian = two_and_twice(a)

    def paint(figure: Figure) -> None:
        left, right = figure.subplots(1, 2)
        left.plot(a, twice, color=style.COLOURS[1], label="of $2a$")
        left.plot(a, one, color=style.COLOURS[2], ls=style.DASHES[1], label="of each $a$")
        left.set(xlabel="$a$", ylabel="weight", title=r"softmax$([a, a, 2a])$", ylim=(0, 1.02))
        left.legend(loc="center right")
        right.plot(a, jacobian, color=style.COLOURS[1], label="$[a, a, 2a]$")
        right.plot(
            a,
            jacobian_norm(np.stack([a, a, a], axis=-1)),
            color=style.COLOURS[2],
            ls=style.DASHES[1],
            label="$[a, a, a]$",
        )
        right.set(xlabel="$a$", ylabel="norm (Frobenius)", title="Its Jacobian")
        right.set_ylim(bottom=0)
        right.legend(loc="center right")
        for axes in (left, right):
            axes.grid(True)
        figure.tight_layout(w_pad=2)

    columns = ("a", "weight of each a", "weight of 2a", "norm of the Jacobian")
    rows = [tuple(map(float, row)) for row in zip(a, one, twice, jacobian, strict=True)]
    return [
        style.save_figure(folder, "softmax_of_unequal", (style.WIDTH, 2.7), paint),
        save_numbers(folder, "softmax_of_unequal", columns, rows),
    ]


# ---- codes of positions: section 3.5

LENGTH, CODE_WIDTH, FROM = 64, 64, 24


def codes() -> dict[str, Array]:
    """Each kind of encoding without parameters, named as in `experiments/lab_positions.py`: [LENGTH, CODE_WIDTH]."""
    from repro.model.ablations.codes import FastSinusoids, OneHotPositions, ScalarPositions, SlowSinusoids
    from repro.model.embedding import SinusoidalPositions

    kinds: dict[str, Any] = {
        "sinusoids": SinusoidalPositions,
        "fast sinusoids": FastSinusoids,
        "slow sinusoids": SlowSinusoids,
        "one-hot": OneHotPositions,
        "scalar": ScalarPositions,
    }
    return {name: kind(CODE_WIDTH)(0, LENGTH).double().numpy() for name, kind in kinds.items()}


def draw_codes(folder: Path) -> list[Path]:
    """Draw heat maps of the encodings, and how similar that of one position is to those around it."""
    found = codes()
    alike = {name: code @ code[FROM] for name, code in found.items()}

    def paint(figure: Figure) -> None:
        grid = figure.add_gridspec(2, len(found), height_ratios=(1, 1.05), hspace=0.62, wspace=0.22)
        for i, (name, code) in enumerate(found.items()):
            axes = figure.add_subplot(grid[0, i])
            axes.imshow(code, cmap="RdBu_r", vmin=-1, vmax=1, aspect="auto")
            axes.set_title(name)
            axes.set(xlabel="dimension", xticks=[0, 32], yticks=[0, 32] if i == 0 else [])
            axes.spines[["top", "right"]].set_visible(True)
            if i == 0:
                axes.set_ylabel("position")
        axes = figure.add_subplot(grid[1, :])
        for i, (name, products) in enumerate(alike.items()):
            largest = np.abs(products).max()
            axes.plot(
                np.arange(LENGTH) - FROM,
                products / largest,
                color=style.COLOURS[i + 1],
                ls=style.DASHES[i],
                label=name,
            )
        axes.set(xlabel="$p - p'$ (tokens)", ylabel="$p \\cdot p'$ / largest", xlim=(-FROM, LENGTH - FROM - 1))
        axes.grid(True)
        figure.legend(loc="lower center", ncols=len(found), handlelength=3)
        figure.subplots_adjust(left=0.08, right=0.98, top=0.93, bottom=0.2)

    rows = [(name, p - FROM, float(products[p])) for name, products in alike.items() for p in range(LENGTH)]
    return [
        style.save_figure(folder, "position_codes", (style.WIDTH, 4.0), paint),
        save_numbers(folder, "position_codes", ("code", "p - p'", "p . p'"), rows),
    ]
