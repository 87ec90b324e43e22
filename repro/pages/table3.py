"""Table 3 whole, like the paper's: base, the groups (A) to (E), big. Paper: section 6.2.

It is made from the records of all its experiment files. A row without a run is shown as missing.
"""

from repro.pages import columns
from repro.render.page import Column, plain
from repro.results.frame import DataFrame
from repro.results.record import BASE

NAME = "table3"
PARTS = "table3_"  # the prefix of its experiment files


def has_part(table: str) -> bool:
    """Whether an experiment's rows belong to Table 3: those of the base and of its parts do."""
    return table == BASE or table.startswith(PARTS)


def row_names(frame: DataFrame) -> Column:
    """The names of the rows under the letters of the paper's table: (A) h=1."""
    row = columns.row_column(frame)
    letters = [of.removeprefix(PARTS) for of in frame["table"]]
    under = [f"({letter}) " if len(letter) == 1 else "" for letter in letters]
    return row._replace(texts=[letter + plain(name) for letter, name in zip(under, row.texts, strict=True)])
