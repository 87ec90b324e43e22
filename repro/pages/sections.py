"""The sections below a table on its page: operations, scores by length, how rows learned, translations, test sets."""

from collections.abc import Iterable
from typing import Any

from repro.pages.columns import DELTA, numbers, row_column, spreads, tabled
from repro.render.page import Block, Column, Heading, Text
from repro.results.curves import OVERS
from repro.results.frame import DataFrame, Series
from repro.results.notes import SCORERS
from repro.results.parts import DECIDES, EMPTY, KEPT, LENGTHS, PLACES, RATIO, RATIO_TO_BASE, THIRDS
from repro.results.record import BASE

MUCH = 0.1  # relative difference in operations of training from which on a row is named
ABOUT_PARTS = (
    "Thirds of the sentences of dev by source length, and of each translation; kept is BLEU of the last third in per "
    "cent of that of the first."
)


def operations_column(frame: DataFrame) -> Column:
    """The operations that the training of a row took, shown beside its size."""
    return Column("training", "FLOPs", numbers(frame["cost/flops"], ".2e"))


def unequal(frame: DataFrame) -> Text:
    """Names the rows whose training took more or fewer operations than the base's by a tenth; empty without any."""
    of_base = frame.loc[frame["table"] == BASE, "cost/flops"]
    if not len(of_base) or not of_base.iloc[0] > 0:
        return Text("")
    ratio = frame["cost/flops"] / of_base.iloc[0] - 1
    told = [f"{row} ({100 * of:+.1f} %)" for row, of in zip(frame["row"], ratio, strict=True) if abs(of) > MUCH]
    return Text(f"More than {100 * MUCH:.0f} % from the base's operations: {', '.join(told)}." if told else "")


def by_length(frame: DataFrame, ruled: frozenset[int]) -> tuple[Block, ...]:
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
    return Heading("By length"), tabled([row_column(frame), *shown], ruled), Text(ABOUT_PARTS)


# How the rows learned

ABOUT_CURVES = (
    "Where a row's mean dev loss crosses that of a Transformer trained for as many updates, or of the base, and by how "
    "much it is higher (+) or lower (−) where the shorter curve ends, in nats per word-piece."
)


def along_training(frame: DataFrame) -> tuple[Block, ...]:
    """Where the rows' curves of dev loss cross, under a heading; empty where none can be compared."""
    if "along/beside" not in frame.columns:
        return ()
    shown = [row_column(frame), Column("", "beside", _texts(frame["along/beside"]))]
    for over in OVERS:
        shown.append(Column(f"over {over}", "cross at", _texts(frame[f"along/{over}/crossings"])))
        shown.append(Column(f"over {over}", "at the end", numbers(frame[f"along/{over}/gap"], "+.3f")))
    return Heading("Dev loss along the training"), tabled(shown), Text(ABOUT_CURVES)


def _texts(values: "Series[Any]") -> list[str]:
    return [value if isinstance(value, str) else "" for value in values]


# Other test sets

ABOUT_FURTHER = (
    "Test sets that lay beside the text of a run; no verdict is read from them. n is the number of seeds scored on one."
)


def further_section(frame: DataFrame, ruled: Iterable[int]) -> tuple[Block, ...]:
    """Scores on other test sets of the rows that have any, under a heading; empty where no run has."""
    counts = [name for name in frame.columns if name.startswith("further/") and name.endswith("/n")]
    if not counts:
        return ()
    shown = [row_column(frame)]
    for count in counts:
        of = count.removesuffix("/n")
        group, scored = of.removeprefix("further/"), frame.assign(n=frame[count].fillna(0).astype(int))
        shown.append(Column(group, "n", numbers(frame[count], ".0f")))
        for score, scorer in SCORERS.items():
            shown.append(Column(group, scorer, spreads(scored, f"{of}/{score}", 1, none="")))
    return Heading("Other test sets"), tabled(shown, ruled), Text(ABOUT_FURTHER)


# How long translations are

OF_TRANSLATIONS = "translations (dev)"


def length_columns(frame: DataFrame) -> list[Column]:
    """Share of empty translations, length, and its difference to the base if any; none where no row has counts."""
    if RATIO not in frame:
        return []
    shown = [
        Column(OF_TRANSLATIONS, "empty (%)", spreads(frame, EMPTY, 1)),
        Column(OF_TRANSLATIONS, "length", spreads(frame, RATIO, 3)),
    ]
    if RATIO_TO_BASE in frame and frame[RATIO_TO_BASE].notna().any():
        texts = numbers(frame[RATIO_TO_BASE], "+z.3f")
        told = [f"{text}, decides" if is_so == 1 else text for text, is_so in zip(texts, frame[DECIDES], strict=True)]
        shown.append(Column(OF_TRANSLATIONS, DELTA, told))
    return shown


def lengths_section(frame: DataFrame, ruled: Iterable[int]) -> tuple[Block, ...]:
    """The columns of lengths as a table under a heading."""
    shown = length_columns(frame)
    return (Heading("How long translations are"), tabled([row_column(frame), *shown], ruled)) if shown else ()
