"""The effect of dropout, smoothing and attention if a text is seen once, and if often. Paper: sections 5.4 and 6.2."""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path

from repro.claims.claim import BLEU, LOG_PPL
from repro.figures import style
from repro.figures.forest import AXES
from repro.figures.style import Figure, save_numbers
from repro.results.record import Record
from repro.results.texts import OnText, Worth, on_texts

NAME, TABLE = "text_sizes", "lab_text"
PANELS = {"nll": (AXES[LOG_PPL], -1), "bleu": (AXES[BLEU], 1)}  # up is better in both
COLUMNS = ("row", "weights", "pairs", "n", "log PPL, row less base", "half width", "BLEU, row less base", "half width")
WEIGHTS = {"the paper's weights": "-", "mean of the last checkpoints": "--"}


def draw_text_sizes(folder: Path, records: Iterable[Record]) -> list[Path]:
    """Draw each row that was trained on several texts, minus the base on each, and write the numbers.

    Raises ValueError where no row was.
    """
    found = {row: of for row, of in on_texts(records).items() if len(of) > 1}
    if not found:
        raise ValueError(
            "expected a row and the base, both trained on the same two texts, found none. Run "
            f"`python experiments/{TABLE}.py`."
        )
    cells = [
        (row, weights, one.pairs, one.n, *of["nll"], *of["bleu"])
        for row, ones in found.items()
        for one in ones
        for weights, of in _by_weights(one)
    ]
    numbers = save_numbers(folder, NAME, COLUMNS, cells)
    return [style.save_figure(folder, NAME, (style.WIDTH, 3.7), partial(_paint, found=found)), numbers]


def _by_weights(one: OnText) -> list[tuple[str, Worth]]:
    return [(name, of) for name, of in zip(WEIGHTS, (one.found, one.of_mean), strict=True) if of]


def _paint(figure: Figure, found: Mapping[str, Sequence[OnText]]) -> None:
    panels = figure.subplots(1, 2)
    for axes, (score, (title, sign)) in zip(panels, PANELS.items(), strict=True):
        axes.axhline(0, color=style.SOFT, lw=1)
        for i, (row, ones) in enumerate(found.items()):
            for weights, dashes in WEIGHTS.items():
                of = [
                    (one.pairs, *all_of[score]) for one in ones for name, all_of in _by_weights(one) if name == weights
                ]
                if of:
                    x, y, half = zip(*of, strict=True)
                    look = style.look(i) | {
                        "ls": dashes,
                        "label": style.symbols(f"{row}, {weights}"),
                        "ms": 4.5,
                        "lw": 1.5,
                    }
                    axes.errorbar(x, [sign * one for one in y], [one or 0.0 for one in half], **look, capsize=2.5)
        sizes = sorted({one.pairs for of in found.values() for one in of})
        axes.set_xscale("log", base=2)
        axes.set_xticks(sizes, [f"{size:,}" for size in sizes], minor=False)
        axes.set(xlabel="pairs of training text, equal updates", ylabel=title)
        axes.grid(True, axis="y")
    lines, names = panels[0].get_legend_handles_labels()
    figure.legend(lines, names, loc="upper center", ncols=2)
    figure.tight_layout(rect=(0, 0, 1, 0.86), w_pad=1.5)
