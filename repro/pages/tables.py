"""The page of an experiment's table: scores, what the rows are, how it was made; Tables 2 and 4 have their own."""

from collections.abc import Sequence
from functools import partial

from repro.claims.judge import Judged
from repro.pages import table2, table4
from repro.pages.anchor import anchor_found, anchor_section
from repro.pages.claims import ABOUT
from repro.pages.columns import (
    ABOUT_FOUND,
    closing,
    columns_of_dev,
    columns_of_last_mean,
    columns_of_test,
    cost_columns,
    found,
    has_systems,
    row_column,
    setting_columns,
    size_columns,
    statement_columns,
    verdict_columns,
)
from repro.pages.sections import along_training, by_length, further_section, length_columns, operations_column, unequal
from repro.pages.words import (
    about_settings,
    by_chance,
    ending,
    explained_table,
    facts,
    opening,
    told_apart,
    told_at_the_end,
)
from repro.render.origin import COMMAND, made_from
from repro.render.page import Code, Heading, Listing, Page, Table, Text, blocks
from repro.results.frame import DataFrame
from repro.results.labels import command_of
from repro.results.places import RETIRED
from repro.results.record import BASE


def page(frame: DataFrame, scale: str, name: str, judged: Sequence[Judged] = (), stated: Sequence[Judged] = ()) -> Page:
    """The page of a table in three parts, each with the names of the rows first and a rule below the base."""
    row, dev, test, took = row_column(frame), columns_of_dev(frame), columns_of_test(frame), cost_columns(frame)
    settings, sizes, dev = setting_columns(frame), size_columns(frame), [*dev, *columns_of_last_mean(frame)]
    if systems := has_systems(frame):
        sizes = [*sizes, operations_column(frame)]
    size, ruled = [row, *settings, *sizes], frozenset({int((frame["table"] == BASE).sum())})
    again = Code(command_of(name, scale)), " leaves a record of each run; "
    before = ("These runs were made by an earlier version, and no command of today makes them again; ",)
    whole = "table3" if name.startswith("table3_") else ""
    made = (
        *(before if scale in RETIRED else again),
        Code(COMMAND),
        f" made this page from {frame['n'].sum()} of them.",
    )
    return Page(
        made_from(f"the records in {name}/ and {BASE}/"),
        told_at_the_end(
            blocks(
                Heading(f"{ABOUT.get(name, name)} at scale {scale}", 1),
                opening(frame, Listing((*found(frame).items, *anchor_found(frame).items))),
                explained_table([row, *dev, *verdict_columns(frame, judged), *statement_columns(frame, stated)], ruled),
                Text(ABOUT_FOUND if found(frame).items else ""),
                anchor_section(frame),
                Heading("What the rows are"),
                explained_table(size, ruled),
                about_settings(frame, whole),
                unequal(frame) if systems else (),
                by_length(frame, ruled) if systems else (),
                along_training(frame) if systems else (),
                Heading("Test set and time"),
                explained_table([row, *test, *took, *length_columns(frame)], ruled),
                further_section(frame, ruled),
                ending(frame, Text(made), facts(frame), whole=whole),
            )
        ),
    )


def at_the_end(frame: DataFrame) -> Page:
    """What an experiment prints of its table at its end: for a terminal, so in one table, however wide."""
    table = Table(tuple(closing(frame, told_apart(frame))))
    return Page("", blocks(table, by_chance(frame), Listing(tuple(frame.attrs["notes"]))))


def is_like_others(name: str, frame: DataFrame) -> bool:
    """Whether a table has the columns that most tables have, so that it can be shown together with them."""
    return name != table2.NAME and "dev/f1" not in frame.columns


def page_of_table(
    frame: DataFrame, scale: str, name: str, judged: Sequence[Judged] = (), stated: Sequence[Judged] = ()
) -> Page:
    """The page of one table, except Table 3 whole; `judged` are the paper's claims, `stated` those of other texts."""
    if is_like_others(name, frame):
        return page(frame, scale, name, judged, stated)
    of = table2.page if name == table2.NAME else partial(table4.page, name=name)
    return of(frame, scale, judged)


def special_at_the_end(frame: DataFrame, name: str) -> Page:
    """What an experiment prints at its end of a table with columns of its own, for a terminal."""
    notes = Listing(tuple(frame.attrs["notes"]))
    if name == table2.NAME:
        return Page("", blocks(Table(tuple(table2.own_columns(frame))), notes))
    own = Table((*table4.own_scores(frame), *table4.printed_scores(frame)))
    return Page("", blocks(Text(table4.which_text(frame)), own, notes))
