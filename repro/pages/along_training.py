"""What a table of systems shows of the way to its scores: which of two learned faster, and where that turns."""

from typing import TYPE_CHECKING, Any

from repro.pages.columns import numbers, row_column
from repro.pages.words import explained_table
from repro.render.page import Block, Column, Heading, Text
from repro.results.curves import OVERS

if TYPE_CHECKING:
    from pandas import DataFrame, Series

ABOUT = (
    "The dev loss of a row, the mean over its seeds, compared with that of a Transformer trained for as many "
    "updates, or with the base where there is none, named beside it: where the two curves cross, and by how much the "
    "row's is higher (+) or lower (−) where the shorter of them ends, in nats per word-piece. Over FLOPs, a row whose "
    "updates cost more has made fewer of them at the same place; nothing stands where the two have no stretch in "
    "common. Between two measurements curves are straight lines."
)


def along_training(frame: "DataFrame") -> tuple[Block, ...]:
    """Where the rows' curves of dev loss cross, under a heading; nothing where none can be compared."""
    if "along/beside" not in frame.columns:
        return ()
    shown = [row_column(frame), Column("", "beside", list(frame["along/beside"]))]
    for over in OVERS:
        shown.append(Column(f"over {over}", "cross at", _texts(frame[f"along/{over}/crossings"])))
        shown.append(Column(f"over {over}", "at the end", numbers(frame[f"along/{over}/gap"], "+.3f")))
    kept = [i for i, there in enumerate(frame["along/beside"].notna()) if there]
    columns = [column._replace(texts=[column.texts[i] for i in kept]) for column in shown]
    return Heading("Dev loss along the training"), *explained_table(columns), Text(ABOUT)


def _texts(values: "Series[Any]") -> list[str]:
    return [value if isinstance(value, str) else "" for value in values]
