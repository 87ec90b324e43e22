"""Table 2: other systems as printed, their training cost worked out again, and our own runs. Paper: section 6.1."""

from pathlib import Path
from typing import TYPE_CHECKING

from repro.paper import TABLE_2, Pair, System, computed_flops
from repro.render.escape import flat, markdown_text
from repro.render.grid import BOOKTABS, Column, markdown_grid, numbers, tabular, terminal_grid
from repro.render.origin import made_from
from repro.results.frame import (
    ABOUT_MULTI_BLEU,
    MISSING,
    ResultSet,
    about_own,
    departures_list,
    files,
    published_column,
    row_column,
    spreads,
)
from repro.results.labels import ABOUT_SETTINGS, ABOUT_SIZE, labels, setting_columns, size_columns
from repro.results.record import BASE

if TYPE_CHECKING:
    from pandas import DataFrame

NAME = "table2"
PAIRS: tuple[Pair, Pair] = ("en-de", "en-fr")

ABOUT_PRINTED = """\
Newstest2014, as printed. **FLOPs** are those printed, and again **worked out** as GPUs x days x the sustained rate
that section 6.1 grants each kind of GPU; an ensemble costs its 8 members. What Deep-Att ran on is not known. For
English-French, section 6.1 and the NeurIPS version print 41.0 for the big model where this table has 41.8."""
ABOUT_OURS = """\
BLEU on the test set of this scale, read once: mean and half-width of the 95 % t-interval over n seeds. **FLOPs** are
counted from the matrix products of the real tokens trained on, not from time and a rate. The first line is the base
model of Table 3, whose checkpoints are not averaged."""

ABOUT_AVERAGED = "**averaged** is the number of checkpoints whose mean is scored, **apart** the updates between them."


def printed_columns() -> list[Column]:
    """The systems of the paper's Table 2."""

    def score(line: System, pair: Pair) -> str:
        return f"{line.bleu[pair]:g}" if pair in line.bleu else ""

    def cost(flops: float | None) -> str:
        return "" if flops is None else f"{flops:.1e}".replace("e+", "e")

    shown = [Column("", "system", [line.name for line in TABLE_2])]
    shown += [Column("BLEU", pair, [score(line, pair) for line in TABLE_2]) for pair in PAIRS]
    for pair in PAIRS:
        shown += [
            Column(f"FLOPs {pair}", "printed", [cost(line.flops.get(pair)) for line in TABLE_2]),
            Column(f"FLOPs {pair}", "worked out", [cost(computed_flops(line, pair)) for line in TABLE_2]),
        ]
    return shown


def own_columns(frame: "DataFrame") -> list[Column]:
    """Our runs: test scores by both scorers beside the print, what they computed and how long they took."""
    is_base = frame["table"] == BASE
    subset = []
    if "test_subset/bleu" in frame:
        subset = [
            Column("BLEU (test subset)", "sacreBLEU", spreads(frame, "test_subset/bleu", 1)[0]),
            Column("BLEU (test subset)", "multi-bleu", spreads(frame, "test_subset/bleu_published", 1)[0]),
        ]
    return [
        row_column(frame),
        Column("", "averaged", ["" if n is None else f"{n}" for n in frame["average"]]),
        Column("", "n", [f"{n}" if n else MISSING for n in frame["n"]]),
        Column("BLEU (test)", "sacreBLEU", spreads(frame, "test/bleu", 1)[0]),
        *published_column(frame, "BLEU (test)", "test/bleu", 1),
        Column("BLEU (test)", "multi-bleu", spreads(frame, "test/bleu_published", 1)[0]),
        Column("BLEU (test)", "paper", numbers(frame["paper/bleu"].mask(is_base), ".1f")),
        *subset,
        Column("training", "FLOPs", [text.replace("e+", "e") for text in numbers(frame["cost/flops"], ".1e")]),
        Column("training", "seconds", numbers(frame["cost/train_seconds"], ",.0f")),
        Column("training", "GPU hours", numbers(frame["cost/gpu_hours"], ",.1f")),
    ]


def size_of_rows(frame: "DataFrame") -> list[Column]:
    """What our rows set, and how large they are; of that the paper's Table 2 prints nothing."""
    return [Column("", "row", labels(frame)), *setting_columns(frame), *size_columns(frame)[:2]]


def _about_subset(frame: "DataFrame") -> str:
    """Which lines of the test set are scored on their own too; nothing where none are."""
    if (which := frame.attrs["shared"].get(("test subset", ""))) is None:
        return ""
    return (
        f"The **test subset** is {markdown_text(which)}: the same translations, scored on those lines alone. The paper "
        "does not say which of the two sets it scored."
    )


def render(frame: "DataFrame") -> str:
    """For a terminal: our runs."""
    return terminal_grid(own_columns(frame), frame.attrs["notes"])


def build(result_set: ResultSet) -> dict[Path, str]:
    """table2.md, .tex and .csv of one scale; nothing where it has no record of Table 2."""
    frame = result_set.frame([NAME])
    if frame is None:
        return {}
    return files(result_set, NAME, frame, markdown(frame, result_set.scale), latex(frame, result_set.scale))


def markdown(frame: "DataFrame", scale: str) -> str:
    """The page for a code host."""
    claim = frame.attrs["shared"].get(("settings", "claim"))
    notes = frame.attrs["notes"]
    parts = [
        f"<!-- {made_from(f'the records in {NAME}/ and {BASE}/')} -->",
        f"# Table 2 at scale {markdown_text(scale)}",
        f"A table of this scale may claim {markdown_text(claim)}." if claim else "",
        "## Our runs",
        markdown_grid(own_columns(frame)),
        about_own(frame),
        ABOUT_OURS,
        _about_subset(frame),
        ABOUT_MULTI_BLEU,
        "## What our rows are",
        markdown_grid(size_of_rows(frame)),
        ABOUT_AVERAGED,
        ABOUT_SETTINGS,
        ABOUT_SIZE,
        "## As printed, and the cost column worked out again",
        markdown_grid(printed_columns()),
        ABOUT_PRINTED,
        "## Departures from the paper's recipe",
        departures_list(frame),
        "## Notes" if notes else "",
        "\n".join(f"- {markdown_text(note)}" for note in notes),
    ]
    return "\n\n".join(filter(None, parts)) + "\n"


def latex(frame: "DataFrame", scale: str) -> str:
    r"""Three tabulars to \input: the printed systems, ruled as in the paper, our runs, and what their rows are."""
    kinds = [line.kind for line in TABLE_2]
    ruled = {i for i in range(1, len(kinds)) if kinds[i] != kinds[i - 1]}
    own = {int((frame["table"] == BASE).sum())}
    return "\n".join(
        [
            *(f"% {flat(note)}" for note in (f"Table 2 at scale {scale}; do not edit.", *frame.attrs["notes"])),
            *BOOKTABS,
            *tabular(printed_columns(), ruled),
            r"\par\medskip",
            *tabular(own_columns(frame), own),
            r"\par\medskip",
            *tabular(size_of_rows(frame), own),
            "",
        ]
    )
