"""What dropout, smoothing and attention are worth where a text is seen once, and often. Paper: sections 5.4 and 6.2."""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from repro.claims.claim import BLEU, LOG_PPL
from repro.figures import style
from repro.figures.forest import AXES
from repro.figures.style import save_numbers
from repro.results.record import Record
from repro.results.texts import OnText, on_texts

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAME = "text_sizes"
PANELS = {"nll": (AXES[LOG_PPL], -1), "bleu": (AXES[BLEU], 1)}  # up is better in both
COLUMNS = ("row", "pairs", "n", "log PPL, row less base", "half width", "BLEU, row less base", "half width")


def draw_text_sizes(folder: Path, records: Iterable[Record], *, command: str) -> list[Path]:
    """Each row that was trained on several texts, less the base of each; a picture and its numbers.

    Raises ValueError, which names the command to run, where no row was.
    """
    found = {row: of for row, of in on_texts(records).items() if len(of) > 1}
    if not found:
        raise ValueError(f"no row that was trained on more than one text. Run `{command}`.")
    cells = [(row, one.pairs, one.n, *one.found["nll"], *one.found["bleu"]) for row, of in found.items() for one in of]
    numbers = save_numbers(folder, NAME, COLUMNS, cells)
    return [style.save_figure(folder, NAME, (style.WIDTH, 3.3), partial(_paint, found=found)), numbers]


def _paint(figure: "Figure", found: Mapping[str, Sequence[OnText]]) -> None:
    panels = figure.subplots(1, 2)
    for axes, (score, (title, sign)) in zip(panels, PANELS.items(), strict=True):
        axes.axhline(0, color=style.SOFT, lw=1)
        for i, (row, of) in enumerate(found.items()):
            x, y = [one.pairs for one in of], [sign * one.found[score][0] for one in of]
            half = [one.found[score][1] or 0.0 for one in of]
            axes.errorbar(x, y, half, **style.look(i), label=style.symbols(row), ms=4.5, lw=1.5, capsize=2.5)
        sizes = sorted({one.pairs for of in found.values() for one in of})
        axes.set_xscale("log", base=2)
        axes.set_xticks(sizes, [f"{size:,}" for size in sizes], minor=False)
        axes.set(xlabel="pairs of training text, equal updates", ylabel=title)
        axes.grid(True, axis="y")
    panels[0].legend(loc="best")
    figure.tight_layout(w_pad=1.5)
