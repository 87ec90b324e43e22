"""Table 3 on one page, like the paper's: base, the groups (A) to (E), big. Paper: section 6.2.

Made from the records of all its experiment files. A row that has no run stands there as missing.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from repro.render.escape import flat, markdown_text
from repro.render.grid import BOOKTABS, Column, markdown_grid, tabular
from repro.render.origin import made_from
from repro.results.frame import (
    ABOUT_SPREADS,
    ResultSet,
    about_labels,
    about_own,
    base_in_full,
    columns,
    departures_list,
    files,
)
from repro.results.labels import ABOUT_SETTINGS, ABOUT_SIZE, SIZE, SYMBOLS
from repro.results.record import BASE

if TYPE_CHECKING:
    from pandas import DataFrame

NAME = "table3"
PARTS = "table3_"  # what the names of its experiment files begin with


def frame_of(result_set: ResultSet) -> "DataFrame | None":
    """All rows of Table 3 at one scale, or None where there is nothing of it."""
    names = {name for name in (*result_set.tables, *(of for of, _ in result_set.rows)) if name.startswith(PARTS)}
    return result_set.frame({BASE, *names})


def page_columns(frame: "DataFrame") -> tuple[list[Column], list[Column]]:
    """The columns of the paper's table in two grids: the scores beside the paper's and the size; what varies."""
    row, *others = columns(frame)
    letters = [of.removeprefix(PARTS) for of in frame["table"]]
    under = [f"({letter}) " if len(letter) == 1 else "" for letter in letters]
    row = row._replace(texts=[letter + name for letter, name in zip(under, row.texts, strict=True)])
    varies = [column for column in others if column.heading in SYMBOLS.values()]
    scores = [
        column
        for column in others
        if column.heading == "n" or column.group == SIZE or (column.group.endswith("(dev)") and column.heading != "Δ")
    ]
    return [row, *scores], [row, *varies] if varies else []


def build(result_set: ResultSet) -> dict[Path, str]:
    """table3.md, .tex and .csv of one scale; nothing where it has no record of Table 3."""
    frame = frame_of(result_set)
    if frame is None:
        return {}
    return files(result_set, NAME, frame, markdown(frame, result_set.scale), latex(frame, result_set.scale))


def markdown(frame: "DataFrame", scale: str) -> str:
    """The page for a code host."""
    claim = frame.attrs["shared"].get(("settings", "claim"))
    scores, varies = page_columns(frame)
    parts = [
        f"<!-- {made_from('the records beside it')} -->",
        f"# Table 3 at scale {markdown_text(scale)}",
        f"A table of this scale may claim {markdown_text(claim)}." if claim else "",
        markdown_grid(scores),
        about_labels(frame),
        about_own(frame),
        ABOUT_SPREADS,
        ABOUT_SIZE,
        *(["## What the rows change", markdown_grid(varies)] if varies else []),
        f"{ABOUT_SETTINGS} {base_in_full(frame)}".strip(),
        "## Departures from the paper's recipe",
        departures_list(frame),
        "## Notes" if frame.attrs["notes"] else "",
        "\n".join(f"- {markdown_text(note)}" for note in frame.attrs["notes"]),
    ]
    return "\n\n".join(filter(None, parts)) + "\n"


def latex(frame: "DataFrame", scale: str) -> str:
    r"""Two tabulars to \input, ruled between the groups as in the paper."""
    scores, varies = page_columns(frame)
    tables = list(frame["table"])
    ruled = {i for i in range(1, len(tables)) if tables[i] != tables[i - 1]}
    return "\n".join(
        [
            *(f"% {flat(note)}" for note in (f"Table 3 at scale {scale}; do not edit.", *frame.attrs["notes"])),
            *BOOKTABS,
            *tabular(scores, ruled),
            *([r"\par\medskip", *tabular(varies, ruled)] if varies else []),
            "",
        ]
    )
