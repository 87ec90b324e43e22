"""The page of one experiment's table: dev scores, what the rows are, test scores, and how all of it was made."""

from typing import TYPE_CHECKING

from repro.pages.columns import (
    closing,
    columns_of_dev,
    columns_of_test,
    cost_columns,
    row_column,
    setting_columns,
    size_columns,
)
from repro.pages.words import about_settings, claim, departure_notes, explained, facts, notes
from repro.render.origin import COMMAND, made_from
from repro.render.page import Block, Code, Column, Heading, Listing, Page, Table, Text, blocks, tables
from repro.results.record import BASE

if TYPE_CHECKING:
    from pandas import DataFrame

OF = "at scale"  # what stands between the name of a table and that of its scale


def page(frame: "DataFrame", scale: str, name: str) -> Page:
    """Three parts, each led by the names of the rows; a rule stands below the base."""
    row, ruled = row_column(frame), (int((frame["table"] == BASE).sum()),)
    scores, size = columns_of_dev(frame), [*setting_columns(frame), *size_columns(frame)]
    return Page(
        made_from(f"the records in {name}/ and {BASE}/"),
        blocks(
            Heading(f"{name} {OF} {scale}", 1),
            Text(claim(frame)),
            explained_tables([row, *scores], ruled),
            Heading("What the rows are"),
            tables([row, *size], ruled),
            about_settings(frame),
            explained([row, *size]),
            Heading("Test set and time"),
            explained_tables([row, *columns_of_test(frame), *cost_columns(frame)], ruled),
            Heading("Departures from the paper's recipe"),
            departure_notes(frame),
            notes(frame, Heading("Notes")),
            Heading("How it was made"),
            Text(
                (
                    Code(f"python experiments/{name}.py --scale {scale}"),
                    " leaves a record of each run; ",
                    Code(COMMAND),
                    f" made this page from {frame['n'].sum()} of them.",
                )
            ),
            facts(frame),
        ),
    )


def explained_tables(columns: list[Column], ruled: tuple[int, ...] = ()) -> tuple[Block, ...]:
    """As few tables as hold these columns, and a sentence for each sign in them."""
    return (*tables(columns, ruled), *explained(columns))


def at_the_end(frame: "DataFrame") -> Page:
    """What an experiment shows of its table at its end: for a terminal, so as wide as it is."""
    return Page("", blocks(Table(tuple(closing(frame))), Listing(tuple(frame.attrs["notes"]))))
