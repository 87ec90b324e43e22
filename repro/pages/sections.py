"""The sections below a table on its page: operations, scores by length, how rows learned, translations, test sets."""

from collections.abc import Iterable
from typing import Any

from repro.pages.columns import DELTA, numbers, row_column, spreads
from repro.pages.words import explained_table
from repro.render.page import Block, Column, Heading, Text
from repro.results.curves import OVERS
from repro.results.frame import DataFrame, Series
from repro.results.notes import SCORERS
from repro.results.parts import DECIDES, EMPTY, KEPT, LENGTHS, PLACES, RATIO, RATIO_TO_BASE, THIRDS
from repro.results.record import BASE

MUCH = 0.1  # relative difference in operations of training from which on a row is named
ABOUT_OPERATIONS = (
    "A row's own system is counted on one sentence of average length, in whole tokens, the base by the average itself: "
    "a few per cent may be that rounding."
)
ABOUT_PARTS = (
    "Thirds of the sentences of dev, by the tokens of their source, and of each translation, each compared with the "
    "same third of its reference; kept is BLEU of the last third in per cent of that of the first."
)


def operations_column(frame: DataFrame) -> Column:
    """The operations that the training of a row took, shown beside its size."""
    return Column("training", "FLOPs", numbers(frame["cost/flops"], ".2e"))


def unequal(frame: DataFrame) -> Text:
    """Names the rows whose training took more or fewer operations than the base's; empty where all took as many."""
    of_base = frame.loc[frame["table"] == BASE, "cost/flops"]
    if not len(of_base) or not of_base.iloc[0] > 0:
        return Text("")
    ratio = frame["cost/flops"] / of_base.iloc[0] - 1
    told = [f"{row} ({100 * of:+.1f} %)" for row, of in zip(frame["row"], ratio, strict=True) if abs(of) > MUCH]
    kept = f"differ from the base's by more than {100 * MUCH:.0f} %"
    named = f"in: {', '.join(told)}" if told else "in no row"
    return Text(f"Operations of training {kept} {named}. {ABOUT_OPERATIONS}")


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
    return Heading("By length"), *explained_table([row_column(frame), *shown], ruled), Text(ABOUT_PARTS)


# How the rows learned

ABOUT_CURVES = (
    "The mean dev loss of a row beside that of a Transformer trained for as many updates, or of the base: where the "
    "two curves cross, straight between measurements, and by how much the row's is higher (+) or lower (−) where the "
    "shorter ends, in nats per word-piece. Nothing stands where they have no stretch in common."
)


def along_training(frame: DataFrame) -> tuple[Block, ...]:
    """Where the rows' curves of dev loss cross, under a heading; empty where none can be compared."""
    if "along/beside" not in frame.columns:
        return ()
    shown = [row_column(frame), Column("", "beside", list(frame["along/beside"]))]
    for over in OVERS:
        shown.append(Column(f"over {over}", "cross at", _texts(frame[f"along/{over}/crossings"])))
        shown.append(Column(f"over {over}", "at the end", numbers(frame[f"along/{over}/gap"], "+.3f")))
    kept = [i for i, there in enumerate(frame["along/beside"].notna()) if there]
    columns = [column._replace(texts=[column.texts[i] for i in kept]) for column in shown]
    return Heading("Dev loss along the training"), *explained_table(columns), Text(ABOUT_CURVES)


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
    kept = [i for i, scored in enumerate(frame[counts].notna().any(axis="columns")) if scored]
    columns = [column._replace(texts=[column.texts[i] for i in kept]) for column in shown]
    rules = {sum(i < rule for i in kept) for rule in ruled} - {0, len(kept)}
    return Heading("Other test sets"), *explained_table(columns, rules), Text(ABOUT_FURTHER)


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
    table = explained_table([row_column(frame), *shown], ruled)
    return (Heading("How long translations are"), *table) if shown else ()
