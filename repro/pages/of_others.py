"""Scores that others published, beside ours: of the anchor's recipe, and of translations of newstest2017. Paper: none.

The anchor's scores are compared with those of the authors of its recipe, on the same text. The translations are by the
ladder's systems at full size; they are scored here.
"""

import math
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from repro.pages.columns import comma_separated, numbers, rules_between, spreads
from repro.render.page import Block, Code, Column, Heading, Listing, Page, Strong, Table, Text, blocks, made_from
from repro.results.frame import DataFrame, runs_in, spread_each, whole, widened
from repro.results.measured import KINDS, QUARTERS, SCORES_2017, Outputs2017, ScoredOutput
from repro.results.record import Record
from repro.results.sentences import read_counts

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

TABLE, ROW, CORPUS = "anchor", "tiny", "multi30k_tok"
PUBLISHED = {  # the prefix of our columns -> the test set, and BLEU of one model on it
    "test": ("test_2016_flickr", 41.02),
    "further/test_2017_flickr": ("test_2017_flickr", 33.36),
}
OF_TEST = "test/n-grams"  # the prefix of the columns below; no score of a task has this name
# the components of BLEU in per cent, with those of the published model on test
NGRAMS = {"1-grams": 71.0, "2-grams": 47.5, "3-grams": 34.3, "4-grams": 24.5, "brevity": 99.9}
PARTS = "test_2016_flickr, % (published)"
ABOUT = (
    "Published is the text-only Transformer-tiny of Wu et al. (2021) on the same lower-cased text, in BLEU of tokens; "
    "ours is sacreBLEU, of tokens of its own. docs/deviations.md says what their recipe does and ours does not. "
    "Theirs is one model, so the outcome is whether it lies where one more run of ours would: at 95 % the mean ± t s "
    "√(1 + 1/n), over three runs or more. So it is asked since 28 November 2026, when most of the runs were known; "
    "before, whether it lies in the interval of the mean. BLEU is the precision of n-grams times brevity, the penalty "
    "for short translations. Their search divides log p by length and the paper's pays less for length; theirs is "
    "python -m repro translate RUN TEXT --search fairseq."
)
FEWEST = 3  # runs needed for a useful interval
OUTPUTS = "outputs"  # the page of translations of newstest2017
ABOUT_OUTPUTS = (
    "Systems of several layers, trained on WMT 2017 by the authors of a toolkit or by Hieber et al. (2017): their "
    "translations are scored here, their training was not repeated. So they are not rows of the ladder; they show "
    "where its upper rungs are at full size."
)


def anchor_section(frame: DataFrame) -> tuple[Block, ...]:
    """The published scores beside ours, and whether one more run might reach them; empty for other tables and texts."""
    rows = _rows(frame)
    if rows.empty:
        return ()
    columns: list[Column] = [Column("", "row", [ROW])]
    sides: list[tuple[bool, bool]] = []  # for each set, whether all runs lie below the published score, or all above
    for place, published in PUBLISHED.items():
        if beside := _beside(rows, place):
            lowest, highest = (rows[f"{place}/bleu{end}"].iloc[0] for end in ("_min", "_max"))
            sides.append((highest < published[1], lowest > published[1]))
            columns += [
                Column(published[0], heading, [text], is_words=heading == "outcome") for heading, text in beside.items()
            ]
    below, above = map(all, zip(*sides, strict=True)) if sides else (False, False)
    side = f"All scores of ours lie {'below' if below else 'above'} the published ones. " * (below or above)
    return Text(side + ABOUT), Table((*columns, *_ngrams(rows)))


def anchor_found(frame: DataFrame) -> Listing:
    """Where the published scores lie relative to ours, one line per test set; empty for other tables and texts."""
    said = "{ours} BLEU, published {published}: {outcome}."
    told = ((name, _beside(_rows(frame), place)) for place, (name, _) in PUBLISHED.items())
    return Listing(tuple((Strong(name), ": " + said.format_map(of)) for name, of in told if of))


def _rows(frame: DataFrame) -> DataFrame:
    """The row of the recipe, where it was run on its text."""
    is_there = (frame["table"] == TABLE) & (frame["row"] == ROW) & (frame["n"] > 0)
    return frame[is_there & (CORPUS in frame.attrs["corpora"])]


def _beside(rows: DataFrame, place: str) -> dict[str, str]:
    """Our score on a test set and the published one, by the headings of the columns; empty where not all runs have it.

    One more run lies in the 95 % interval with which the published score is compared.
    """
    score, (_, published) = f"{place}/bleu", PUBLISHED[place]
    if rows.empty or score not in rows or rows[score].isna().any():
        return {}
    scored = rows.assign(n=rows.get(f"{place}/n", rows["n"]))
    row = scored.iloc[0]
    if row["n"] < FEWEST:
        more, outcome = "", f"not judged: {row['n']:.0f} of {FEWEST} runs"
    else:
        reach = row[f"{score}_half_width"] * math.sqrt(1 + row["n"])
        low, high = row[score] - reach, row[score] + reach
        more = f"{low:.1f} to {high:.1f}"
        outcome = "below it" if high < published else "above it" if low > published else "as one more run"
    return {
        "ours": spreads(scored, score, 1)[0],
        "one more run": more,
        "published": f"{published:.1f}",
        "difference": numbers([row[score] - published], "+.1f")[0],
        "outcome": outcome,
    }


def with_ngrams(frame: DataFrame, records: Iterable[Record], results: Path) -> DataFrame:
    """The frame with the components of BLEU on test; empty where a run has no counts; other tables get no columns."""
    if TABLE not in {*frame["table"]}:
        return frame
    lines = []
    for runs in runs_in(frame, records):
        kept = whole(read_counts(results, run, "test") if run.table == TABLE else None for run in runs)
        parts = [_parts(of.summands.sum(axis=0)) for of in kept]
        lines.append(spread_each({f"{OF_TEST}/{name}": [of[i] for of in parts] for i, name in enumerate(NGRAMS)}))
    is_there = any(line[f"{OF_TEST}/brevity"] is not None for line in lines)
    return widened(frame, lines, dtype=float) if is_there else frame


def _parts(summands: "NDArray[np.float64]") -> list[float]:
    """Precisions and brevity of one run, in per cent, from its sums over sentences."""
    hypothesis, reference, *grams = map(float, summands)
    precisions = [100 * right / of for right, of in zip(grams[:4], grams[4:], strict=True)]
    return [*precisions, 100 * math.exp(min(0.0, 1 - reference / hypothesis))]


def _ngrams(rows: DataFrame) -> list[Column]:
    """Our components of BLEU on test, each with theirs in brackets; nothing where no counts are kept."""
    if f"{OF_TEST}/brevity" not in rows or rows[f"{OF_TEST}/brevity"].isna().any():
        return []
    return [
        Column(PARTS, name, [f"{ours} ({published:.1f})" for ours in spreads(rows, f"{OF_TEST}/{name}", 1)])
        for name, published in NGRAMS.items()
    ]


# Translations of newstest2017


def outputs_page(scored: Outputs2017) -> Page:
    """The page: one line per system, by kind, the best of each kind first."""
    systems = _ordered(scored)
    shown = [
        Column("", "system", [KINDS[one.kind] for one in systems]),
        Column("", "toolkit", [one.toolkit for one in systems], is_words=True),
        Column("BLEU", "all", [f"{one.bleu:.1f}" for one in systems]),
        *(
            Column("BLEU by quarter of source length", name, [f"{one.quarters[i]:.1f}" for one in systems])
            for i, name in enumerate(("shortest", "second", "third", "longest"))
        ),
    ]
    return Page(
        made_from(SCORES_2017),
        blocks(
            Heading("Published translations of newstest2017, English-German", 1),
            Listing(tuple(_said(systems))),
            Table(tuple(shown), rules_between([one.kind for one in systems])),
            Text(
                f"{scored.sentences:,} sentences, sorted by the words of their source, in {QUARTERS} equal parts; "
                "BLEU is sacreBLEU's, and differences are of scores that are not rounded."
            ),
            Heading("How it was made"),
            Text(ABOUT_OUTPUTS),
            Text((Code("python experiments/outputs_2017.py"), f" scored them with {scored.signature}.")),
        ),
    )


def outputs_sheet(scored: Outputs2017) -> str:
    """The same as comma-separated values."""
    return comma_separated(
        {"kind": one.kind, "toolkit": one.toolkit, "bleu": one.bleu}
        | {f"quarter {i + 1}": one.quarters[i] for i in range(QUARTERS)}
        for one in _ordered(scored)
    )


def _ordered(scored: Outputs2017) -> list[ScoredOutput]:
    kinds = [*KINDS]
    return sorted(scored.systems, key=lambda one: (kinds.index(one.kind), -one.bleu))


def _said(systems: list[ScoredOutput]) -> list[str]:
    """The findings in sentences, from the numbers."""
    of = {kind: [one.bleu for one in systems if one.kind == kind] for kind in KINDS}
    others = [score for kind in ("rnn", "cnn") for score in of[kind]]
    lines = []
    if of["transformer"] and others:
        least, most = min(of["transformer"]) - max(others), max(of["transformer"]) - max(others)
        lines.append(
            f"Against the best of the others the weakest Transformer has {least:+.1f} BLEU, the strongest {most:+.1f}."
        )
    fall = [one.quarters[0] - one.quarters[-1] for one in systems]
    lines.append(
        f"From the shortest to the longest quarter of sentences they lose {min(fall):.1f} to {max(fall):.1f} BLEU."
    )
    return lines
