"""Pictures of single mechanisms: mask, norms, softmax and its saturation, positional encodings, and three decoders.

The numbers come from the model's own modules. Paper: sections 3.1, 3.2, 3.5; for decoders Cho, Sutskever (2014),
Bahdanau et al. (2015).

    Q queries    K keys    S source words    T steps
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from matplotlib.patches import Rectangle
from numpy.typing import NDArray
from torch import Tensor

from repro.figures import style
from repro.figures.style import Drawn
from repro.model.ablations.batch_norm import TokenBatchNorm
from repro.model.ablations.codes import FastSinusoids, OneHotPositions, ScalarPositions, SlowSinusoids
from repro.model.attention import scaled_scores, softmax_of_seen
from repro.model.config import Hyper
from repro.model.embedding import SinusoidalPositions
from repro.model.layers import PostNorm
from repro.model.masks import Padded
from repro.model.rivals.attention_rnn import SoftAlignment
from repro.model.rivals.recurrent import Simple, StaticMean

Array = NDArray[np.float64]


# ---- the mask: section 3.2.3

WORDS = ("The", "Law", "will", "never", "be", "perfect")


def masked() -> tuple[Array, NDArray[np.bool_], Array]:
    """Scores of a decoder's self-attention [Q, K], which of them the mask hides, and the resulting weights.

    They are made from seeded queries and keys by the model's own functions.
    """
    generator, n = torch.Generator().manual_seed(3), len(WORDS)
    q, k = (torch.randn(1, 1, n, 16, dtype=torch.float64, generator=generator) for _ in range(2))
    scores, bias = scaled_scores(q, k), Padded(torch.ones(1, n, dtype=torch.int64)).causal(torch.float64)
    weights = softmax_of_seen(scores, bias)
    return scores[0, 0].numpy(), (bias < 0).numpy(), weights[0, 0].numpy()


def draw_mask() -> Drawn:
    """Three squares: scores; scores with later words masked; weights, each row with sum one."""
    figure = style.figure("mask", 2.75)
    scores, hidden, weights = masked()
    largest = float(np.abs(scores).max())
    panels = (
        (scores, r"$q \cdot k\,/\sqrt{d_k}$", "RdBu_r", -largest, largest),
        (np.where(hidden, np.nan, scores), "with the mask", "RdBu_r", -largest, largest),
        (weights, "softmax of each row", "Blues", 0, 1),
    )
    for axes, (values, title, colours, low, high) in zip(figure.subplots(1, 3), panels, strict=True):
        axes.imshow(values, cmap=colours, vmin=low, vmax=high)
        for (q, k), value in np.ndenumerate(values):
            text, colour = _number(value, bool(hidden[q, k]), is_weight=values is weights)
            axes.text(k, q, text, ha="center", va="center", fontsize=7.5, color=colour)
        axes.set_xticks(range(len(WORDS)), WORDS, rotation=45, ha="right", rotation_mode="anchor")
        axes.set_yticks(range(len(WORDS)), WORDS)
        axes.tick_params(length=0)
        axes.set_title(title)
        axes.spines[:].set_visible(False)
    figure.tight_layout(w_pad=1.0)
    return [figure]


def _number(value: float, hidden: bool, *, is_weight: bool) -> tuple[str, str]:
    """The text of a cell and its colour, which is to be seen on the cell's own."""
    if np.isnan(value):
        return r"$-\infty$", style.SOFT
    if is_weight:
        text = "0" if hidden else f"{value:.2f}".replace("0.", ".", 1)
        return text, style.SOFT if hidden else "white" if value > 0.6 else style.INK
    return f"{round(value, 1) + 0.0:.1f}".replace("-", "−"), "white" if abs(value) > 1.3 else style.INK


# ---- norms: section 3.1

REAL = 4, 3, 4  # tokens of each sentence; the rest of a sentence is padding


def shared_cells() -> Array:
    """Which cells of a batch the normalised cell (1, 1, 2) depends on: [2, sentence, token, dimension], 0 or 1.

    First by layer normalisation, then by batch normalisation in training mode, which leaves padding out; found by
    differentiating the modules.
    """
    generator, length, width = torch.Generator().manual_seed(5), max(REAL), 6
    x = torch.randn(len(REAL), length, width, dtype=torch.float64, generator=generator).requires_grad_()
    over_tokens = TokenBatchNorm(width).double()
    over_tokens.real = (torch.arange(length) < torch.tensor(REAL)[:, None]).unsqueeze(-1)
    found = []
    for norm in (PostNorm.norm(width).double(), over_tokens):
        [gradient] = torch.autograd.grad(norm.train()(x)[1, 1, 2], x)
        found.append((gradient != 0).double().numpy())
    return np.stack(found)


def draw_norms() -> Drawn:
    """A batch of three sentences twice, with the cells that share a mean with one cell."""
    figure = style.figure("norms", 4.9, 5.6)
    found = shared_cells()
    _, n_sentences, length, width = found.shape
    apart = length + 0.7  # from one sentence to the next
    titles = "layer normalisation", "batch normalisation, in training"
    for axes, cells, title in zip(figure.subplots(1, 2), found, titles, strict=True):
        for b, t, d in np.ndindex(n_sentences, length, width):
            x, y, is_pad = d, -(b * apart + t), t >= REAL[b]
            face = style.COLOURS[1] if cells[b, t, d] else "#f4f4f4" if is_pad else style.PALE
            cell = Rectangle((x - 0.45, y - 0.45), 0.9, 0.9, facecolor=face, edgecolor="white", linewidth=0.4)
            if is_pad:
                cell.set_hatch("/////")
            axes.add_patch(cell)
            if (b, t, d) == (1, 1, 2):
                axes.plot(x, y, "o", color="white", ms=4)
        for b in range(n_sentences):
            axes.text(-0.9, -(b * apart + 1.5), f"sentence {b + 1}", rotation=90, ha="center", va="center")
        axes.set(xlim=(-1.4, width - 0.4), ylim=(0.4 - n_sentences * apart, 0.7), title=title, aspect="equal")
        axes.set_xlabel("dimension of the model", labelpad=2)
        axes.set(xticks=[], yticks=[])
        axes.spines[:].set_visible(False)
    style.note(
        figure,
        "Blue: the cells that the marked one depends on. A line is a token; hatched is padding.\n"
        "Over the batch a token meets those of other sentences, and in a decoder those that come later.",
    )
    figure.tight_layout(rect=(0, 0.1, 1, 1))
    return [figure]


# ---- saturation: section 3.2.1

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


def saturation(widths: Sequence[int] = WIDTHS) -> Array:
    """What happens to scores and softmax as d_k grows, for q and k with independent N(0, 1) entries: [3, widths].

    The variance of q . k, and the mean norm of the softmax's Jacobian at scores q . k and at q . k / sqrt(d_k), on
    `N_DRAWS` queries with `N_KEYS` keys each.
    """
    rows: list[list[float]] = []
    for d_k in widths:
        generator = np.random.default_rng([17, d_k])
        # given q, the scores of its keys are independent N(0, |q|^2), so no key needs to be drawn
        lengths = np.sqrt(generator.chisquare(d_k, N_DRAWS))
        scores = lengths[:, None] * generator.standard_normal((N_DRAWS, N_KEYS))
        plain, scaled = jacobian_norm(scores), jacobian_norm(scores / d_k**0.5)
        # rounded to six digits: processors differ in the last digit of an exponential, which would change the file
        rows.append([float(f"{of:.6g}") for of in (scores.var(), plain.mean(), scaled.mean())])
    return np.array(rows).T


def draw_saturation() -> Drawn:
    """How scores spread and the softmax's gradient vanishes as d_k grows, unless scores are scaled."""
    figure = style.figure("softmax_saturation", 2.8)
    variance, plain, scaled = saturation()
    left, right = figure.subplots(1, 2)
    first, second = style.COLOURS[1:3]
    left.loglog(WIDTHS, WIDTHS, color=style.SOFT, lw=1, label=r"$d_k$")
    left.loglog(WIDTHS, variance, "o", color=first, label=f"{N_DRAWS:,} queries")
    left.set(xlabel="$d_k$", ylabel=r"variance of $q \cdot k$", title="Scores")
    right.semilogx(WIDTHS, scaled, "o-", color=first, label=r"softmax$(q \cdot k\,/\sqrt{d_k})$")
    right.semilogx(WIDTHS, plain, "s", ls=style.DASHES[1], color=second, label=r"softmax$(q \cdot k)$")
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
    return [figure]


# ---- the softmax of two equal scores and one twice as large: section 3.2.1


def draw_sharpness() -> Drawn:
    """Weights and gradient while all scores grow by one factor: gaps between scores saturate a softmax."""
    figure = style.figure("softmax_of_unequal", 2.7)
    a = np.linspace(0, 10, 201)
    scores = np.stack([a, a, 2 * a], axis=-1)
    exponents = np.exp(scores - scores.max(-1, keepdims=True))
    one, _, twice = (exponents / exponents.sum(-1, keepdims=True)).T
    jacobian, alike = jacobian_norm(scores), jacobian_norm(np.stack([a, a, a], axis=-1))
    left, right = figure.subplots(1, 2)
    left.plot(a, twice, color=style.COLOURS[1], label="of $2a$")
    left.plot(a, one, color=style.COLOURS[2], ls=style.DASHES[1], label="of each $a$")
    left.set(xlabel="$a$", ylabel="weight", title=r"softmax$([a, a, 2a])$", ylim=(0, 1.02))
    left.legend(loc="center right")
    right.plot(a, jacobian, color=style.COLOURS[1], label="$[a, a, 2a]$")
    right.plot(a, alike, color=style.COLOURS[2], ls=style.DASHES[1], label="$[a, a, a]$")
    right.set(xlabel="$a$", ylabel="norm (Frobenius)", title="Its Jacobian")
    right.set_ylim(bottom=0)
    right.legend(loc="center right")
    for axes in (left, right):
        axes.grid(True)
    figure.tight_layout(w_pad=2)
    return [figure]


# ---- codes of positions: section 3.5

LENGTH, CODE_WIDTH, FROM = 64, 64, 24


def codes() -> dict[str, Array]:
    """Each kind of encoding without parameters, named as in `experiments/lab_positions.py`: [LENGTH, CODE_WIDTH]."""
    kinds: dict[str, Any] = {
        "sinusoids": SinusoidalPositions,
        "fast sinusoids": FastSinusoids,
        "slow sinusoids": SlowSinusoids,
        "one-hot": OneHotPositions,
        "scalar": ScalarPositions,
    }
    return {name: kind(CODE_WIDTH)(0, LENGTH).double().numpy() for name, kind in kinds.items()}


def draw_codes() -> Drawn:
    """Heat maps of the encodings, and how similar that of one position is to those around it."""
    figure = style.figure("position_codes", 4.0)
    found = codes()
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
    for i, (name, code) in enumerate(found.items()):
        products = code @ code[FROM]
        similar = products / np.abs(products).max()
        axes.plot(np.arange(LENGTH) - FROM, similar, color=style.COLOURS[i + 1], ls=style.DASHES[i], label=name)
    axes.set(xlabel="$p - p'$ (tokens)", ylabel="$p \\cdot p'$ / largest", xlim=(-FROM, LENGTH - FROM - 1))
    axes.grid(True)
    figure.legend(loc="lower center", ncols=len(found), handlelength=3)
    figure.subplots_adjust(left=0.08, right=0.98, top=0.93, bottom=0.2)
    return [figure]


# ---- where the source enters a decoder
#
# Small instances of the modules are differentiated to find what the first state depends on, and what a step depends on
# while the state before it is held fixed. So another decoder gives another picture.

SOURCE, WRITTEN = ("the", "old", "law", "."), ("das", "alte", "Gesetz")
NARROW = Hyper(n_layers=1, d_model=16, d_ff=32, n_heads=1, d_k=16, d_v=16, dropout=0.0)
PLACES = ("first state", *(f"step {t + 1}" for t in range(len(WRITTEN))))
SAME = 1e-5  # tolerance for shares of two steps that are the same


def entrances(model: Simple, source: Sequence[int], written: Sequence[int]) -> Array:
    """The share of each source word in what a decoder sees of the source, 0 where it sees nothing: [1 + T, S].

    First in the first state, then in each step, with the state before it held fixed. Found by the gradients of the
    first state and of each step's output with respect to the memory.
    """
    ids = torch.tensor([source])
    memory = model.eval().encode(ids).detach().requires_grad_()
    model.encode = lambda source: memory  # type: ignore[method-assign]  # this model is thrown away
    state = model.start(ids)

    def share_of(found: Tensor) -> Array:
        if not found.requires_grad:
            return np.zeros(len(source))
        probe = torch.linspace(1, 2, found.numel(), dtype=found.dtype).view_as(found)
        [gradient] = torch.autograd.grad((found * probe).sum(), memory, retain_graph=True, materialize_grads=True)
        norms = gradient[0].norm(dim=-1).double().numpy()
        return np.asarray(norms / max(norms.sum(), 1e-30))

    shares = [share_of(torch.cat(state.own, dim=-1))]
    for id in written:
        held = replace(state, own=tuple(part.detach() for part in state.own))
        seen, _ = model.advance(torch.tensor([id]), held)
        shares.append(share_of(seen))
        with torch.no_grad():
            _, state = model.advance(torch.tensor([id]), state)
    return np.stack(shares)


def draw_decoders() -> Drawn:
    """The shares in the decoders of three systems of the ladder, with seeded, untrained weights; 0 is blank."""
    figure = style.figure("where_the_source_enters", 2.6)
    kinds = {"simple": Simple, "static, mean": StaticMean, "soft alignment": SoftAlignment}
    for axes, (name, kind) in zip(figure.subplots(1, len(kinds), sharey=True), kinds.items(), strict=True):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(8)
            model = kind(NARROW, 23).double()
        shares = entrances(model, range(3, 3 + len(SOURCE)), range(10, 10 + len(WRITTEN)))
        axes.imshow(np.where(shares > 0, shares, np.nan), cmap="Blues", vmin=0, vmax=1)
        for (row, column), share in np.ndenumerate(shares):
            if share > 0:
                colour = "white" if share > 0.6 else style.INK
                axes.text(column, row, f"{share:.2f}", ha="center", va="center", fontsize=8, color=colour)
        is_same = np.abs(shares[2:] - shares[1]).max() < SAME
        when = f"each step {'the same' if is_same else 'another'}" if shares[1:].any() else "at the start"
        axes.set_title(f"{name}: {when}", fontsize=9.5)
        axes.set_xticks(range(len(SOURCE)), SOURCE)
        axes.set_yticks(range(len(PLACES)), PLACES)
        axes.tick_params(length=0)
        axes.spines[:].set(visible=True, color=style.PALE)
    style.note(figure, "The share of each source word in what a decoder’s first state and each of its steps see of it.")
    figure.tight_layout(rect=(0, 0.06, 1, 1))
    return [figure]


PICTURES = {
    "softmax saturation": draw_saturation,
    "mask": draw_mask,
    "norms": draw_norms,
    "softmax of unequal scores": draw_sharpness,
    "position codes": draw_codes,
    "where the source enters": draw_decoders,
}
