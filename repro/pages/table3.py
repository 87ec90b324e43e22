"""Table 3 on one page, like the paper's: base, the groups (A) to (E), big. Paper: section 6.2.

It is made from the records of all its experiment files. A row without a run is shown as missing.
"""

from collections.abc import Sequence

from repro.claims.judge import Judged
from repro.pages import columns
from repro.pages.sections import further_section, lengths_section
from repro.pages.words import about_settings, ending, explained_table, opening, told_at_the_end
from repro.render.origin import made_from
from repro.render.page import Column, Heading, Page, Text, blocks, plain
from repro.results.frame import DataFrame
from repro.results.record import BASE

NAME = "table3"
PARTS = "table3_"  # the prefix of its experiment files


def has_part(table: str) -> bool:
    """Whether an experiment's rows belong to Table 3: those of the base and of its parts do."""
    return table == BASE or table.startswith(PARTS)


def page_columns(frame: DataFrame, judged: Sequence[Judged] = ()) -> tuple[list[Column], list[Column]]:
    """The columns of the paper's table: first our scores, the paper's and verdicts; then what varies, and sizes."""
    row = columns.row_column(frame)
    letters = [of.removeprefix(PARTS) for of in frame["table"]]
    under = [f"({letter}) " if len(letter) == 1 else "" for letter in letters]
    row = row._replace(texts=[letter + plain(name) for letter, name in zip(under, row.texts, strict=True)])
    both = [*columns.columns_of_dev(frame), *columns.columns_of_last_mean(frame)]
    scores = [column for column in both if column.heading != columns.DELTA]
    varies = columns.setting_columns(frame)
    return [row, *scores, *columns.verdict_columns(frame, judged)], [row, *varies, *columns.size_columns(frame)]


def page(frame: DataFrame, scale: str, judged: Sequence[Judged] = ()) -> Page:
    """The page of Table 3, ruled between the groups as in the paper."""
    scores, varies = page_columns(frame, judged)
    ruled = columns.rules_between(list(frame["table"]))
    return Page(
        made_from("the records beside it"),
        told_at_the_end(
            blocks(
                Heading(f"Table 3 at scale {scale}", 1),
                opening(frame, columns.found(frame)),
                explained_table(scores, ruled),
                Text(columns.ABOUT_FOUND if columns.found(frame).items else ""),
                Heading("What the rows change"),
                explained_table(varies, ruled),
                about_settings(frame),
                lengths_section(frame, ruled),
                further_section(frame, ruled),
                ending(frame),
            )
        ),
    )
