"""The page of one experiment's table: dev scores, what the rows are, test scores, and how all of it was made."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from repro.claims.judge import Judged
from repro.pages.along_training import along_training
from repro.pages.anchor import anchor_section
from repro.pages.by_length import operations_column, section, unequal
from repro.pages.columns import (
    closing,
    columns_of_dev,
    columns_of_last_mean,
    columns_of_test,
    cost_columns,
    has_systems,
    row_column,
    setting_columns,
    size_columns,
)
from repro.pages.further_tests import further_section
from repro.pages.lengths import lengths_section
from repro.pages.verdicts import statement_columns, verdict_columns
from repro.pages.words import (
    about_settings,
    by_chance,
    claim,
    ending,
    explained,
    explained_table,
    facts,
)
from repro.render.origin import COMMAND, made_from
from repro.render.page import Code, Heading, Listing, Page, Table, Text, blocks
from repro.results.labels import command_of
from repro.results.places import RETIRED
from repro.results.record import BASE

if TYPE_CHECKING:
    from pandas import DataFrame

OF = "at scale"  # what stands between the name of a table and that of its scale


def page(
    frame: "DataFrame", scale: str, name: str, judged: Sequence[Judged] = (), stated: Sequence[Judged] = ()
) -> Page:
    """Three parts, each led by the names of the rows; a rule stands below the base."""
    row, dev, test, took = row_column(frame), columns_of_dev(frame), columns_of_test(frame), cost_columns(frame)
    settings, sizes, dev = setting_columns(frame), size_columns(frame), [*dev, *columns_of_last_mean(frame)]
    if systems := has_systems(frame):
        sizes = [*sizes, operations_column(frame)]
    size, ruled = [row, *settings, *sizes], frozenset({int((frame["table"] == BASE).sum())})
    again = Code(command_of(name, scale)), " leaves a record of each run; "
    before = ("These runs were made by an earlier version, and no command of today makes them again; ",)
    made = (
        *(before if scale in RETIRED else again),
        Code(COMMAND),
        f" made this page from {frame['n'].sum()} of them.",
    )
    return Page(
        made_from(f"the records in {name}/ and {BASE}/"),
        blocks(
            Heading(f"{name} {OF} {scale}", 1),
            Text(claim(frame)),
            explained_table([row, *dev, *verdict_columns(frame, judged), *statement_columns(frame, stated)], ruled),
            anchor_section(frame),
            Heading("What the rows are"),
            Table(tuple(size), ruled),
            about_settings(frame),
            explained(size),
            unequal(frame) if systems else (),
            section(frame, ruled) if systems else (),
            along_training(frame) if systems else (),
            Heading("Test set and time"),
            explained_table([row, *test, *took], ruled),
            lengths_section(frame, ruled),
            further_section(frame, ruled),
            ending(frame, Text(made), facts(frame), whole="table3" if name.startswith("table3_") else ""),
        ),
    )


def at_the_end(frame: "DataFrame") -> Page:
    """What an experiment shows of its table at its end: for a terminal, so as wide as it is."""
    return Page("", blocks(Table(tuple(closing(frame))), by_chance(frame), Listing(tuple(frame.attrs["notes"]))))
