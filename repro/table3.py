"""Table 3 on one page, like the paper's: base, the groups (A) to (E), big. Paper: section 6.2.

Made from the records of all its experiment files. A row that has no run stands there as missing.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from repro.escape import flat, markdown_text
from repro.grid import BOOKTABS, Column, markdown_grid, tabular
from repro.record import BASE
from repro.tables import ABOUT_SIZE, ABOUT_SPREADS, SYMBOLS, Shelf, columns, departures_list, files, numbers

if TYPE_CHECKING:
    from pandas import DataFrame

NAME = "table3"
PARTS = "table3_"  # what the names of its experiment files begin with


def frame_of(shelf: Shelf) -> "DataFrame | None":
    """All rows of Table 3 at one scale, or None where there is nothing of it."""
    names = {name for name in (*shelf.tables, *(of for of, _ in shelf.rows)) if name.startswith(PARTS)}
    return shelf.frame({BASE, *names})


def page_columns(frame: "DataFrame") -> list[Column]:
    """What varies, the scores beside the paper's, and the size: the columns of the paper's table."""
    settings = {*SYMBOLS.values()}
    kept = [column for column in columns(frame) if column.heading in settings or column.group.endswith("(dev)")]
    runs = next(column for column in columns(frame) if column.heading == "n")
    kept.insert(sum(column.heading in settings for column in kept), runs)
    parts = [of.removeprefix(PARTS) for of in frame["table"]]
    labels = [f"({part}) " if len(part) == 1 else "" for part in parts]
    return [
        Column("", "row", [label + row for label, row in zip(labels, frame["row"], strict=True)]),
        *(column for column in kept if column.heading != "Δ"),
        Column("parameters (M)", "ours", numbers(frame["params/paper_size"] / 1e6, ".1f")),
        Column("parameters (M)", "paper", numbers(frame["paper/params"], ".0f")),
    ]


def build(shelf: Shelf) -> dict[Path, str]:
    """table3.md, .tex and .csv of one scale; nothing where it has no record of Table 3."""
    frame = frame_of(shelf)
    if frame is None:
        return {}
    return files(shelf, NAME, frame, markdown(frame, shelf.scale), latex(frame, shelf.scale))


def markdown(frame: "DataFrame", scale: str) -> str:
    """The page for a code host."""
    claim = frame.attrs["shared"].get(("settings", "claim"))
    parts = [
        "<!-- Made by `python -m repro.report` from the records beside it; do not edit. -->",
        f"# Table 3 at scale {markdown_text(scale)}",
        f"A table of this scale may claim {markdown_text(claim)}." if claim else "",
        markdown_grid(page_columns(frame)),
        ABOUT_SPREADS,
        ABOUT_SIZE,
        "A row shows what it changes.",
        "## Departures from the paper's recipe",
        departures_list(frame.attrs["departures"]),
        "## Notes" if frame.attrs["notes"] else "",
        "\n".join(f"- {markdown_text(note)}" for note in frame.attrs["notes"]),
    ]
    return "\n\n".join(filter(None, parts)) + "\n"


def latex(frame: "DataFrame", scale: str) -> str:
    r"""A tabular to \input, ruled between the groups as in the paper."""
    tables = list(frame["table"])
    ruled = {i for i in range(1, len(tables)) if tables[i] != tables[i - 1]}
    return "\n".join(
        [
            *(f"% {flat(note)}" for note in (f"Table 3 at scale {scale}; do not edit.", *frame.attrs["notes"])),
            *BOOKTABS,
            *tabular(page_columns(frame), ruled),
            "",
        ]
    )
