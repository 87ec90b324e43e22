"""Which page a table has: Table 2 and tables of parsers have columns of their own, all others Table 3's."""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from repro.claims.judge import Judged
from repro.pages import table2, table4, tables
from repro.render.page import Page

if TYPE_CHECKING:
    from pandas import DataFrame


def is_like_others(name: str, frame: "DataFrame") -> bool:
    """Whether its rows stand under the columns that most tables have, so that it can be shown together with those."""
    return name != table2.NAME and not table4.has_parsers(frame)


def page_of_table(
    frame: "DataFrame", scale: str, name: str, judged: Sequence[Judged] = (), stated: Sequence[Judged] = ()
) -> Page:
    """The page of one table, Table 3 whole apart; `judged` are claims of the paper, `stated` those of other texts."""
    if is_like_others(name, frame):
        return tables.page(frame, scale, name, judged, stated)
    of = table2.page if name == table2.NAME else partial(table4.page, name=name)
    return of(frame, scale, judged)


def shown_at_the_end(frame: "DataFrame", name: str) -> Page:
    """What an experiment shows of a table with columns of its own, for a terminal."""
    return table2.systems_at_the_end(frame) if name == table2.NAME else table4.parsers_at_the_end(frame)
