"""Table 4: parsers as printed, and our own runs on the text that a scale has. Paper: section 6.3."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from repro.claims.judge import Judged
from repro.data.treebanks import TREEBANKS
from repro.pages.columns import (
    cost_columns,
    numbers,
    row_column,
    rules_between,
    runs_column,
    setting_columns,
    size_columns,
    spreads,
)
from repro.pages.verdicts import verdict_columns
from repro.pages.words import (
    ABOUT_SETTINGS,
    claim,
    ending,
    explained,
    explained_table,
    facts,
)
from repro.paper import TABLE_4
from repro.render.origin import made_from
from repro.render.page import Block, Column, Heading, Listing, Page, Strong, Table, Text, Words, blocks
from repro.results.parts import F1_OVER, F1_THIRDS, F1_TO_FIRST, LENGTHS, MENDED
from repro.results.resampled import RESAMPLES

if TYPE_CHECKING:
    from pandas import DataFrame

NAME = "table4"
TEST_SCORES = {  # of test, as the columns are headed
    "f1": "all",
    "f1_short": "≤ 40 words",
    "precision": "precision",
    "recall": "recall",
    "exact": "exact",
    "mended": "mended",
}
ABOUT_SCORES: Words = (
    "F1 of labelled brackets as EVALB computes it with COLLINS.prm, in per cent. ",
    Strong("exact"),
    " is the share of sentences with every bracket right, ",
    Strong("mended"),
    " that of outputs that were not trees and were made into one. ",
    Strong("paper"),
    ": as printed, for section 23 of the Wall Street Journal.",
)
ABOUT_ROWS: Words = (
    Strong("WSJ only"),
    " is trained on the gold text of this scale, ",
    Strong("semi-supervised"),
    " on that and its silver text, which a parser wrote or which was generated as if by one. Trees are cleaned as "
    "is usual for parsers: no empty elements, no outer bracket, labels without functions.",
)


ABOUT_LENGTHS = "The sentences of dev, sorted by their number of words, in three equal parts."
ABOUT_SENTENCES = (
    f"The same runs on sentences of dev drawn {RESAMPLES:,} times, with the 95 % interval in brackets. F1 comes from "
    "the sums over each draw; differences are paired, since both rows see the same draws. This shows what depends on "
    "the sentences; what depends on the seed is in the intervals above."
)
ABOUT_MENDINGS = (
    "Per cent of the sentences of dev whose output had this fault, which kept it from being a tree; over all runs of a "
    "row. One output may have several."
)


def has_parsers(frame: "DataFrame") -> bool:
    """Whether the rows of a table are parsers, which F1 tells of."""
    return "dev/f1" in frame.columns


def which_text(frame: "DataFrame") -> str:
    """Which text the numbers are of, and what they are not."""
    names = [name.removesuffix("_silver") for name in frame.attrs["corpora"]]
    texts = "; ".join(TREEBANKS[name].about for name in dict.fromkeys(names) if name in TREEBANKS)
    if not texts:
        return ""
    is_papers = {*names} == {"wsj"}
    return f"The text is {texts}. " + (
        "It is the paper's own."
        if is_papers
        else "It is not the paper's: F1 on one text says nothing about F1 on another, so no number here can be "
        "compared with a printed one."
    )


def attributions(frame: "DataFrame") -> list[Text]:
    """What licences ask to be said."""
    names = dict.fromkeys(name.removesuffix("_silver") for name in frame.attrs["corpora"])
    return [Text(TREEBANKS[name].attribution) for name in names if name in TREEBANKS and TREEBANKS[name].attribution]


def printed_parsers() -> list[Column]:
    """The parsers of the paper's Table 4."""
    return [
        Column("", "parser", [line.name for line in TABLE_4]),
        Column("", "training", [line.training for line in TABLE_4]),
        Column("", "F1", [f"{line.f1:.1f}" for line in TABLE_4]),
    ]


def own_scores(frame: "DataFrame", judged: Sequence[Judged] = ()) -> list[Column]:
    """Our runs: perplexity and F1 of dev, all scores of test, what the paper prints, the verdict."""
    return [
        row_column(frame),
        runs_column(frame),
        Column("dev", "PPL", spreads(frame, "dev/ppl", 3)),
        Column("dev", "F1", spreads(frame, "dev/f1", 1)),
        *(Column("F1 (test)", head, spreads(frame, f"test/{name}", 1)) for name, head in TEST_SCORES.items()),
        *([Column("F1 (test)", "paper", numbers(frame["paper/f1"], ".1f"))] if "paper/f1" in frame.columns else ()),
        *verdict_columns(frame, judged),
    ]


def of_sentences(frame: "DataFrame") -> tuple[Block, ...]:
    """F1 by third of sentence length, and what was mended; nothing where no run has kept its brackets."""
    if not {*F1_THIRDS} <= {*frame.columns} or frame[F1_THIRDS[0]].isna().all():
        return ()
    lengths = [
        Column("F1 (dev) by third of sentence length", part, spreads(frame, name, 1))
        for part, name in zip(LENGTHS, F1_THIRDS, strict=True)
    ]
    kinds = [name.removeprefix(MENDED) for name in frame.columns if name.startswith(MENDED)]
    mendings = [Column("", kind, numbers(frame[f"{MENDED}{kind}"], ".1f")) for kind in kinds]
    return (
        Heading("By length"),
        *explained_table([row_column(frame), *lengths]),
        Text(ABOUT_LENGTHS),
        *over_sentences_of(frame),
        *((Heading("What was mended"), Table((row_column(frame), *mendings)), Text(ABOUT_MENDINGS)) if kinds else ()),
    )


def over_sentences_of(frame: "DataFrame") -> tuple[Block, ...]:
    """F1 of each row, and what it has more than the first, with their intervals over sentences."""
    first = row_column(frame).texts[0]
    shown = [("F1 (dev)", F1_OVER, ".1f"), (f"more than {first}", F1_TO_FIRST, "+.1f")]
    over = [Column("", head, _with_ends(frame, name, form)) for head, name, form in shown if name in frame.columns]
    return Heading("Over sentences"), Table((row_column(frame), *over)), Text(ABOUT_SENTENCES)


def _with_ends(frame: "DataFrame", name: str, form: str) -> list[str]:
    """Each number with the interval of it; nothing for none."""
    parts = (numbers(frame[f"{name}{end}"], form) for end in ("", "_low", "_high"))
    return [f"{value} [{low}, {high}]" if value else "" for value, low, high in zip(*parts, strict=True)]


def page(frame: "DataFrame", scale: str, judged: Sequence[Judged] = (), *, name: str = NAME) -> Page:
    """Which text it is, our runs on it, what their rows are; of Table 4 the printed parsers, ruled by training."""
    own = own_scores(frame, judged)
    # not the size with 40,960 word-pieces, which are another task's: of trees the paper has 16,384 and 32,768
    settings, sizes = setting_columns(frame), size_columns(frame)[:1]
    size = [row_column(frame), *settings, *sizes, *cost_columns(frame)]
    return Page(
        made_from(f"the records in {name}/"),
        blocks(
            Heading(f"{'Table 4' if name == NAME else name} at scale {scale}", 1),
            Text(which_text(frame)),
            Text(claim(frame)),
            Heading("Our runs"),
            Table(tuple(own)),
            Text(ABOUT_SCORES),
            Text(ABOUT_ROWS if name == NAME else ""),
            explained(own),
            attributions(frame),
            *of_sentences(frame),
            Heading("What our rows are"),
            Table(tuple(size)),
            Text(ABOUT_SETTINGS if any(column.heading != "system" for column in settings) else ""),
            explained(size),
            _as_printed() if name == NAME else (),
            ending(frame, facts(frame)),
        ),
    )


def _as_printed() -> tuple[Block, ...]:
    ruled = rules_between([line.training for line in TABLE_4])
    return Heading("As printed"), *explained_table(printed_parsers(), ruled)


def parsers_at_the_end(frame: "DataFrame") -> Page:
    """What the experiment shows at its end: our runs, for a terminal."""
    return Page(
        "", blocks(Text(which_text(frame)), Table(tuple(own_scores(frame))), Listing(tuple(frame.attrs["notes"])))
    )
