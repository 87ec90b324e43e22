"""The page of an experiment's table: scores, what the rows are, how it was made; Tables 2 and 4 have their own."""

from collections.abc import Sequence

from repro.claims.judge import Judged
from repro.pages import columns, table2, table3, table4
from repro.pages.anchor import anchor_found, anchor_section
from repro.pages.claims import ABOUT
from repro.pages.columns import DELTA, row_column, tabled
from repro.pages.sections import along_training, by_length, further_section, length_columns, operations_column, unequal
from repro.pages.words import about_settings, by_chance, ending, opening, told_apart
from repro.render.page import Better, Heading, Listing, Page, Table, Text, Worse, blocks, made_from, plain
from repro.results.frame import DataFrame
from repro.results.record import BASE


def page(frame: DataFrame, scale: str, name: str, judged: Sequence[Judged] = (), stated: Sequence[Judged] = ()) -> Page:
    """The page of a table in three parts, each with the names of the rows first, and ruled between experiment files.

    Table 3 whole has the paper's columns, without differences.
    """
    whole = name == table3.NAME
    row = table3.row_names(frame) if whole else row_column(frame)
    ruled = columns.rules_between(list(frame["table"]))
    dev = [*columns.columns_of_dev(frame), *columns.columns_of_last_mean(frame)]
    verdicts = [*columns.verdict_columns(frame, judged), *columns.statement_columns(frame, stated)]
    size = [*columns.setting_columns(frame), *columns.size_columns(frame)]
    last = [*columns.columns_of_test(frame), *columns.cost_columns(frame), *length_columns(frame)]
    systems = columns.has_systems(frame)
    return Page(
        made_from("the records beside it" if whole else f"the records in {name}/ and {BASE}/"),
        blocks(
            Heading(f"{'Table 3' if whole else ABOUT.get(name, name)} at scale {scale}", 1),
            opening(frame, Listing((*columns.found(frame).items, *anchor_found(frame).items))),
            anchor_section(frame),
            tabled([row, *(one for one in dev if not whole or one.heading != DELTA), *verdicts], ruled),
            Heading("What the rows are"),
            tabled([row, *size, *([operations_column(frame)] if systems else [])], ruled),
            about_settings(frame),
            (unequal(frame), *by_length(frame, ruled), *along_training(frame)) if systems else (),
            Heading("Test set and time"),
            tabled([row, *last], ruled),
            further_section(frame, ruled),
            ending(frame, "all_tables" if whole else name, scale),
        ),
    )


def at_the_end(frame: DataFrame) -> Page:
    """What an experiment prints of its table at its end: for a terminal, so in one table, however wide."""
    kinds = {"better": Better, "worse": Worse, "": str}
    apart = told_apart(frame)
    marks = [kinds[apart.get(row, "")] for row in zip(frame["table"], frame["row"], strict=True)]
    dev = [column for column in columns.columns_of_dev(frame) if column[:2] != ("PPL (dev)", DELTA)]
    ours = next((i for i, column in enumerate(dev) if column.heading == DELTA), None)
    if ours is not None:
        texts = [mark(plain(text)) for mark, text in zip(marks, dev[ours].texts, strict=True)]
        dev[ours] = dev[ours]._replace(texts=texts)
    table = Table((row_column(frame), *dev))
    return Page("", blocks(table, by_chance(frame), Listing(tuple(frame.attrs["notes"]))))


def is_like_others(name: str, frame: DataFrame) -> bool:
    """Whether a table has the columns that most tables have, so that it can be shown together with them."""
    return name != table2.NAME and "dev/f1" not in frame.columns


def page_of_table(
    frame: DataFrame, scale: str, name: str, judged: Sequence[Judged] = (), stated: Sequence[Judged] = ()
) -> Page:
    """The page of one table; `judged` are the paper's claims, `stated` those of other texts."""
    if is_like_others(name, frame):
        return page(frame, scale, name, judged, stated)
    return table2.page(frame, scale, judged) if name == table2.NAME else table4.page(frame, scale, name=name)


def special_at_the_end(frame: DataFrame, name: str) -> Page:
    """What an experiment prints at its end of a table with columns of its own, for a terminal."""
    notes = Listing(tuple(frame.attrs["notes"]))
    if name == table2.NAME:
        return Page("", blocks(Table(tuple(table2.own_columns(frame))), notes))
    own = Table((*table4.own_scores(frame), *table4.printed_scores(frame)))
    return Page("", blocks(Text(table4.which_text(frame)), own, notes))
