"""What a table shows of systems: operations beside the base's, and scores by length of source and place in target."""

from typing import TYPE_CHECKING

from repro.pages.columns import numbers, row_column, spreads
from repro.pages.words import explained_table
from repro.render.page import Block, Column, Heading, Text
from repro.results.parts import KEPT, LENGTHS, PLACES, THIRDS
from repro.results.record import BASE

if TYPE_CHECKING:
    from pandas import DataFrame

MUCH = 0.1  # by which operations of training may differ before a row is named
ABOUT_OPERATIONS = (
    "Operations of a row's own system are counted on one sentence of average length, in whole tokens; the base's "
    "follow from the average itself. A few per cent between them may be that rounding."
)
ABOUT_PARTS = (
    "By source length: the sentences of dev, sorted by the tokens of their source, in three equal parts. "
    "By target position: the words of each translation in three parts, each compared with the same third of its "
    "reference. BLEU is sacreBLEU's; kept is that of the last third in per cent of that of the first."
)


def operations_column(frame: "DataFrame") -> Column:
    """What the training of a row took, beside its size."""
    return Column("training", "FLOPs", numbers(frame["cost/flops"], ".2e"))


def unequal(frame: "DataFrame") -> Text:
    """The rows whose training took other operations than the base's, by name; nothing where all took as many."""
    of_base = frame.loc[frame["table"] == BASE, "cost/flops"]
    if not len(of_base) or not of_base.iloc[0] > 0:
        return Text("")
    ratio = frame["cost/flops"] / of_base.iloc[0] - 1
    told = [f"{row} ({100 * of:+.1f} %)" for row, of in zip(frame["row"], ratio, strict=True) if abs(of) > MUCH]
    kept = f"differ from the base's by more than {100 * MUCH:.0f} %"
    named = f"in: {', '.join(told)}" if told else "in no row"
    return Text(f"Operations of training {kept} {named}. {ABOUT_OPERATIONS}")


def section(frame: "DataFrame", ruled: frozenset[int]) -> tuple[Block, ...]:
    """Scores by third of source length and of target position, under a heading; nothing where no run has them."""
    if not {*THIRDS} <= {*frame.columns} or frame[THIRDS[0]].isna().all():
        return ()
    groups = {"by third of source length": LENGTHS, "by third of target position": (*PLACES, "kept (%)")}
    names = dict(zip((*LENGTHS, *PLACES, "kept (%)"), (*THIRDS, KEPT), strict=True))
    shown = [
        Column(f"BLEU (dev) {group}", part, spreads(frame, names[part], 1))
        for group, parts in groups.items()
        for part in parts
    ]
    return Heading("By length"), *explained_table([row_column(frame), *shown], ruled), Text(ABOUT_PARTS)
