"""What a table shows of test sets beside that of its corpus."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from repro.pages.columns import MISSING, numbers, row_column, spreads
from repro.pages.words import explained_table
from repro.render.page import Block, Column, Heading, Text
from repro.results.notes import SCORERS

if TYPE_CHECKING:
    from pandas import DataFrame

ABOUT = (
    "Test sets that lay beside the text of a run, translated and scored as its own. No verdict on the paper is "
    "read from them; n is the number of seeds that were scored on one, which can be fewer than the row has."
)


def further_section(frame: "DataFrame", ruled: Iterable[int]) -> tuple[Block, ...]:
    """Scores of the rows that have any on other test sets, under a heading; nothing where no run has."""
    counts = [name for name in frame.columns if name.startswith("further/") and name.endswith("/n")]
    if not counts:
        return ()
    shown = [row_column(frame)]
    for count in counts:
        of = count.removesuffix("/n")
        group, scored = of.removeprefix("further/"), frame.assign(n=frame[count].fillna(0).astype(int))
        shown.append(Column(group, "n", numbers(frame[count], ".0f")))
        for score, scorer in SCORERS.items():
            texts = spreads(scored, f"{of}/{score}", 1)
            shown.append(Column(group, scorer, ["" if text == MISSING else text for text in texts]))
    kept = [i for i, scored in enumerate(frame[counts].notna().any(axis="columns")) if scored]
    columns = [column._replace(texts=[column.texts[i] for i in kept]) for column in shown]
    rules = {sum(i < rule for i in kept) for rule in ruled} - {0, len(kept)}
    return Heading("Other test sets"), *explained_table(columns, rules), Text(ABOUT)
