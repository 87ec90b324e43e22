"""What a page begins with: what was found, in sentences made from its records. Paper: none; its text says it."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from repro.pages.columns import MISSING, labels, numbers, spreads
from repro.render.page import Listing, Strong, Words
from repro.results.labels import listed_rows

if TYPE_CHECKING:
    from pandas import DataFrame

NAMED = 6  # rows, with their numbers; of more only how many
EXPLAINED = "Better and worse than the base"
ABOUT_FOUND: Words = (
    Strong(EXPLAINED),
    ": the difference of a row to the base, of BLEU on dev over the seeds that both have, with its 95 % interval. Each "
    "is of one row by itself; a verdict, of many at once, asks for more.",
)


def found(frame: "DataFrame") -> Listing:
    """Which rows are better than the base, which worse, and of which nothing can be said; nothing without a base."""
    groups: dict[str, list[tuple[float, str]]] = {"Better": [], "Worse": [], "Not told apart from the base": []}
    few: list[tuple[float, str]] = []
    names, printed = labels(frame), numbers(frame["paper/bleu_to_base"], "+z.1f")
    for name, difference, paper in zip(names, frame.attrs["bleu_to_base"], printed, strict=True):
        if difference is None:
            continue
        mean, half = difference
        told = numbers([mean], "+z.1f")[0] + (f" ± {half:.1f}" if half is not None else "")
        said = f"{listed_rows([name])} {told}" + (f" (paper {paper})" if paper else "")
        if half is None:
            few.append((mean, said))
        else:
            side = "Not told apart from the base" if abs(mean) <= half else "Better" if mean > 0 else "Worse"
            groups[side].append((mean, said))
    return Listing(tuple(_lines(groups | {"Too few seeds to tell": few})))


def _lines(groups: "dict[str, list[tuple[float, str]]]") -> Iterator[Words]:
    """**Better than the base** in BLEU on dev: soft alignment +16.6 ± 2.0, ConvS2S +6.8 ± 1.4, and 3 more."""
    for what, rows in groups.items():
        if rows:
            ordered = [said for _, said in sorted(rows, key=lambda row: abs(row[0]), reverse=True)]
            than = " than the base" if what in ("Better", "Worse") else ""
            yield Strong(f"{what}{than}"), f", in BLEU on dev: {counted(ordered)}."


def counted(said: Sequence[str]) -> str:
    """The first of them, and of the others how many."""
    more = f", and {len(said) - NAMED} more" if len(said) > NAMED else ""
    return f"{', '.join(said[:NAMED])}{more}"


def scored(frame: "DataFrame", score: str, name: str) -> Listing:
    """What the rows scored, in their order: of a table whose rows are not compared with its base."""
    texts = zip(labels(frame), spreads(frame, score, 1), strict=True)
    told = [f"{listed_rows([row])} {text}" for row, text in texts if text not in ("", MISSING)]
    return Listing(((Strong(name), f": {counted(told)}."),) if told else ())
