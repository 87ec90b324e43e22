"""Table 4: parsers as printed, and our own runs on the text of a scale. Paper: section 6.3."""

from collections.abc import Sequence

from repro.claims.judge import Judged
from repro.corpora.treebanks import TREEBANKS
from repro.pages import columns
from repro.pages.claims import ABOUT, settled_claims
from repro.pages.claims import NAME as CLAIMS
from repro.pages.words import ABOUT_SETTINGS, ending, explained, explained_table, facts, opening, told_at_the_end
from repro.paper import TABLE_4
from repro.render.origin import made_from
from repro.render.page import Block, Column, Heading, Link, Page, Table, Text, Words, blocks, plain
from repro.results.frame import DataFrame
from repro.results.parts import F1_OVER, F1_THIRDS, F1_TO_FIRST, LENGTHS, MENDED
from repro.results.resampled import RESAMPLES

NAME = "table4"
TEST_SCORES = {  # of test, as the columns are headed
    "f1": "all",
    "f1_short": "≤ 40 words",
    "precision": "precision",
    "recall": "recall",
    "exact": "exact",
    "mended": "mended",
}
ABOUT_SCORES = columns.marked(
    "F1 of labelled brackets by the rules of EVALB with COLLINS.prm, in per cent, of all sentences: EVALB itself "
    "leaves out those in which a parser took other words for punctuation. **exact** is the share of sentences with "
    "every bracket right, **mended** that of outputs that were not trees and were made into one."
)
ABOUT_PAPER = columns.marked("**paper**: as printed, for section 23 of the Wall Street Journal.")
ABOUT_ROWS = columns.marked(
    "**WSJ only** is trained on the gold text of this scale, **semi-supervised** on that and its silver text, which a "
    "parser wrote or which was generated as if by one. Trees are cleaned as is usual for parsers: no empty elements, "
    "no outer bracket, labels without functions."
)
ABOUT_CLAIMS: Words = (
    "The claims about this table that were judged. The brackets have a claim's number and why it came out so; a "
    "difference is above zero where it agrees with the claim. Every claim with its numbers is in ",
    Link(f"{CLAIMS}.md", CLAIMS, to_page=True),
    ".",
)
ABOUT_LENGTHS = "The sentences of dev, sorted by their number of words, in three equal parts."
ABOUT_SENTENCES = (
    f"The same runs on sentences of dev drawn {RESAMPLES:,} times, with the 95 % interval in brackets. F1 comes from "
    "the sums over each draw. "
)
ABOUT_PAIRS = "Differences are paired, since both rows see the same draws. "
ABOUT_CHANCE = "This shows what depends on the sentences, not what depends on the seed"
ABOUT_MENDINGS = (
    "Per cent of the sentences of dev whose output had this fault, which kept it from being a tree; over all runs of a "
    "row. One output may have several."
)


def is_of_the_papers_text(frame: DataFrame) -> bool:
    """Whether our numbers are comparable with the printed ones."""
    return _corpora(frame) == ["wsj"]


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
        if is_of_the_papers_text(frame)
        else "It is not the paper's: F1 on one text says nothing about F1 on another, so no number here can be "
        "compared with a printed one."
    )


def printed_parsers() -> list[Column]:
    """The parsers of the paper's Table 4."""
    return [
        Column("", "parser", [line.name for line in TABLE_4]),
        Column("", "training", [line.training for line in TABLE_4]),
        Column("", "F1", [f"{line.f1:.1f}" for line in TABLE_4]),
    ]


def own_scores(frame: DataFrame) -> list[Column]:
    """Our runs: perplexity and F1 on dev, all scores on test."""
    return [
        columns.row_column(frame),
        columns.runs_column(frame),
        Column("dev", "PPL", columns.spreads(frame, "dev/ppl", 3)),
        Column("dev", "F1", columns.spreads(frame, "dev/f1", 1)),
        *(Column("F1 (test)", head, columns.spreads(frame, f"test/{name}", 1)) for name, head in TEST_SCORES.items()),
    ]


def printed_scores(frame: DataFrame) -> list[Column]:
    """The paper's numbers for the rows; no column where it prints none, or only for another text than ours."""
    if "paper/f1" not in frame.columns or not is_of_the_papers_text(frame):
        return []
    return [Column("F1 (test)", "paper", columns.numbers(frame["paper/f1"], ".1f"))]


def claims_about(name: str, judged: Sequence[Judged]) -> tuple[Block, ...]:
    """The verdicts on the claims about a table; empty where none was judged."""
    settled = settled_claims([one for one in judged if one.claim.table == name])
    return (Heading("Verdicts on the paper's claims"), Text(ABOUT_CLAIMS), settled) if settled.items else ()


def of_sentences(frame: DataFrame) -> tuple[Block, ...]:
    """F1 by third of sentence length, and what was mended; empty where no run has kept its brackets."""
    if not {*F1_THIRDS} <= {*frame.columns} or frame[F1_THIRDS[0]].isna().all():
        return ()
    lengths = [
        Column("F1 (dev) by third of sentence length", part, columns.spreads(frame, name, 1))
        for part, name in zip(LENGTHS, F1_THIRDS, strict=True)
    ]
    kinds = [name.removeprefix(MENDED) for name in frame.columns if name.startswith(MENDED)]
    mendings = [Column("", kind, columns.numbers(frame[f"{MENDED}{kind}"], ".1f")) for kind in kinds]
    return (
        Heading("By length"),
        *explained_table([columns.row_column(frame), *lengths]),
        Text(ABOUT_LENGTHS),
        *over_sentences_of(frame),
        *(
            (Heading("What was mended"), Table((columns.row_column(frame), *mendings)), Text(ABOUT_MENDINGS))
            if kinds
            else ()
        ),
    )


def over_sentences_of(frame: DataFrame) -> tuple[Block, ...]:
    """F1 of each row and its difference to the first row, with their intervals over sentences."""
    first = columns.row_column(frame).texts[0]
    shown = [("F1 (dev)", F1_OVER, ".1f"), (f"more than {first}", F1_TO_FIRST, "+.1f")]
    over = [Column("", head, _with_ends(frame, name, form)) for head, name, form in shown if name in frame.columns]
    of_seeds = any("±" in text for text in columns.spreads(frame, "dev/f1", 1))
    said = (
        ABOUT_SENTENCES,
        ABOUT_PAIRS * (F1_TO_FIRST in frame.columns),
        ABOUT_CHANCE,
        ", which is in the intervals above" * of_seeds,
        ".",
    )
    return Heading("Over sentences"), Table((columns.row_column(frame), *over)), Text("".join(said))


def _with_ends(frame: DataFrame, name: str, form: str) -> list[str]:
    """Each number with its interval; empty for None."""
    parts = (columns.numbers(frame[f"{name}{end}"], form) for end in ("", "_low", "_high"))
    return [f"{value} [{low}, {high}]" if value else "" for value, low, high in zip(*parts, strict=True)]


def page(frame: DataFrame, scale: str, judged: Sequence[Judged] = (), *, name: str = NAME) -> Page:
    """The page: the text, our runs on it, their rows; for Table 4 also the printed parsers, ruled by training."""
    own, printed = own_scores(frame), printed_scores(frame)
    # not the size with 40,960 word-pieces, as translation has: for trees the paper uses 16,384 and 32,768
    settings, sizes = columns.setting_columns(frame), columns.size_columns(frame)[:1]
    size = [columns.row_column(frame), *settings, *sizes, *columns.cost_columns(frame)]
    as_printed = explained_table(printed_parsers(), columns.rules_between([line.training for line in TABLE_4]))
    return Page(
        made_from(f"the records in {name}/"),
        told_at_the_end(
            blocks(
                Heading(f"{ABOUT.get(name, name)} at scale {scale}", 1),
                Text(which_text(frame)),
                opening(frame, columns.scored(frame, "test/f1", "F1 on test")),
                Heading("Our runs"),
                Table((*own, *printed)),
                Text(ABOUT_SCORES),
                Text(ABOUT_PAPER if printed else ""),
                Text(ABOUT_ROWS if name == NAME else ""),
                explained(own),
                [Text(TREEBANKS[of].attribution) for of in _corpora(frame) if of in TREEBANKS],  # as licences ask
                claims_about(name, judged),
                of_sentences(frame),
                Heading("What our rows are"),
                explained_table(size),
                Text(_about(settings)),
                (Heading("As printed"), *as_printed) if name == NAME else (),
                ending(frame, facts(frame)),
            )
        ),
    )


def _about(settings: Sequence[Column]) -> Words:
    """What the cells mean, and the brackets if there are any; systems need no explanation."""
    texts = [plain(text) for column in settings if column.heading != "system" for text in column.texts]
    whole = any("(" in text for text in texts)
    return ABOUT_SETTINGS if whole else ABOUT_SETTINGS[:1] if texts else ""
