"""Table 4: parsers as printed, and our own runs on the text of a scale. Paper: section 6.3."""

from repro.corpora.treebanks import TREEBANKS
from repro.pages import columns
from repro.pages.claims import ABOUT
from repro.pages.columns import numbers, row_column, spreads, tabled
from repro.pages.words import about_settings, ending, opening, to_project
from repro.paper import TABLE_4
from repro.render.page import Block, Column, Heading, Link, Page, Text, blocks, made_from
from repro.results.frame import DataFrame
from repro.results.parts import F1_THIRDS, LENGTHS

NAME = "table4"
TEST_SCORES = {  # of test, as the columns are headed
    "f1": "all",
    "f1_short": "≤ 40 words",
    "precision": "precision",
    "recall": "recall",
    "exact": "exact",
    "mended": "mended",
}
PAPERS_TEXT = ["wsj"]  # the corpora of gold text of which the printed numbers are
ABOUT_TREES = (
    "Trees are cleaned as is usual for parsers: no empty elements, no outer bracket, labels without functions."
)


def _corpora(frame: DataFrame) -> list[str]:
    """The corpora of gold text, whether silver text was used as well or not."""
    return list(dict.fromkeys(name.removesuffix("_silver") for name in frame.attrs["corpora"]))


def which_text(frame: DataFrame) -> str:
    """On which text the numbers were measured, and what they may not be compared with."""
    texts = "; ".join(TREEBANKS[name].about for name in _corpora(frame) if name in TREEBANKS)
    if not texts:
        return ""
    return f"The text is {texts}. " + (
        "It is the paper's own."
        if _corpora(frame) == PAPERS_TEXT
        else "It is not the paper's: F1 on one text says nothing about F1 on another, so no number here can be "
        "compared with a printed one."
    )


def own_scores(frame: DataFrame) -> list[Column]:
    """Our runs: perplexity and F1 on dev, all scores on test, and what the paper prints for the same text."""
    shown = [
        row_column(frame),
        columns.runs_column(frame),
        Column("dev", "PPL", spreads(frame, "dev/ppl", 3)),
        Column("dev", "F1", spreads(frame, "dev/f1", 1)),
        *(Column("F1 (test)", head, spreads(frame, f"test/{name}", 1)) for name, head in TEST_SCORES.items()),
    ]
    if "paper/f1" in frame.columns and _corpora(frame) == PAPERS_TEXT:
        shown.append(Column("F1 (test)", "paper", numbers(frame["paper/f1"], ".1f")))
    return shown


def by_length(frame: DataFrame) -> tuple[Block, ...]:
    """F1 by third of sentence length; empty where no run kept brackets."""
    if not {*F1_THIRDS} <= {*frame.columns} or frame[F1_THIRDS[0]].isna().all():
        return ()
    group, parts = "F1 (dev) by third of sentence length", zip(LENGTHS, F1_THIRDS, strict=True)
    lengths = [Column(group, part, spreads(frame, of, 1)) for part, of in parts]
    return blocks(Heading("By length"), tabled([row_column(frame), *lengths]))


def page(frame: DataFrame, scale: str, *, name: str = NAME) -> Page:
    """The page: the text, our runs on it, their rows; for Table 4 also the printed parsers, ruled by training."""
    # not the size with 40,960 word-pieces, as translation has: for trees the paper uses 16,384 and 32,768
    sizes = columns.size_columns(frame)[:1]
    size = [row_column(frame), *columns.setting_columns(frame), *sizes, *columns.cost_columns(frame)]
    trained_on = [line.training for line in TABLE_4]
    printed = (
        Column("", "parser", [line.name for line in TABLE_4]),
        Column("", "training", trained_on),
        Column("", "F1", [f"{line.f1:.1f}" for line in TABLE_4]),
    )
    as_printed = tabled(printed, columns.rules_between(trained_on))
    explained = Link("What the numbers are", f"{to_project(own=frame.attrs['own'])}/docs/parsing.md#the-page")
    return Page(
        made_from(f"the records in {name}/"),
        blocks(
            Heading(f"{ABOUT.get(name, name)} at scale {scale}", 1),
            Text(which_text(frame)),
            opening(frame, columns.scored(frame, "test/f1", "F1 on test")),
            [Text(TREEBANKS[of].attribution) for of in _corpora(frame) if of in TREEBANKS],  # as licences ask
            Text(ABOUT_TREES),
            Heading("Our runs"),
            tabled(own_scores(frame)),
            Text((explained, ".")),
            by_length(frame),
            Heading("What our rows are"),
            tabled(size),
            about_settings(frame),
            (Heading("As printed"), as_printed) if name == NAME else (),
            ending(frame, name, scale),
        ),
    )
