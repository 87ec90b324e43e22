"""The anchor's scores beside those that its recipe's authors published, on the same text. Not of the paper."""

import math
from typing import TYPE_CHECKING

from repro.pages.columns import numbers, spreads
from repro.pages.words import explained_table
from repro.render.page import Block, Column, Heading, Text

if TYPE_CHECKING:
    from pandas import DataFrame, Series

TABLE, ROW, CORPUS = "anchor", "tiny", "multi30k_tok"
PUBLISHED = {"test": 41.02, "further/test_2017_flickr": 33.36}  # BLEU of one model, by the score's place in a frame
SETS = {"test": "test_2016_flickr", "further/test_2017_flickr": "test_2017_flickr"}
ABOUT = (
    "Published is the text-only Transformer-tiny of Wu et al. (2021) on the same lower-cased text, in BLEU of tokens; "
    "ours is sacreBLEU, of tokens of its own. docs/deviations.md says what their recipe does and ours does not. "
    "Theirs is one model, so the outcome is whether it lies where one more run of ours would: at 95 % the "
    "mean ± t s √(1 + 1/n), which is wider than the interval of the mean. It takes three runs."
)
FEWEST = 3  # runs, for an interval that says anything


def anchor_section(frame: "DataFrame") -> tuple[Block, ...]:
    """The published scores beside ours, and whether one more run might have them; nothing of other tables and texts."""
    rows = frame[(frame["table"] == TABLE) & (frame["row"] == ROW) & (frame["n"] > 0)]
    if rows.empty or CORPUS not in frame.attrs["corpora"]:
        return ()
    columns: list[Column] = [Column("", "row", [ROW])]
    for place, published in PUBLISHED.items():
        if f"{place}/bleu" in frame and rows[f"{place}/bleu"].notna().all():
            scored = rows.assign(n=rows.get(f"{place}/n", rows["n"]))
            group, (low, high) = SETS[place], _one_more(scored.iloc[0], place)
            columns += [
                Column(group, "ours", spreads(scored, f"{place}/bleu", 1)),
                Column(group, "one more run", [f"{low:.1f} to {high:.1f}" if low < high else ""]),
                Column(group, "published", [f"{published:.1f}"]),
                Column(group, "difference", numbers(rows[f"{place}/bleu"] - published, "+.1f")),
                Column(group, "outcome", [_outcome(scored.iloc[0], place, published)], is_words=True),
            ]
    return Heading("Beside the published scores"), *explained_table(columns), Text(ABOUT)


def _one_more(row: "Series", place: str) -> tuple[float, float]:
    """Where one more run would lie, at 95 %; of fewer runs than it takes nothing, the mean twice."""
    mean, n = row[f"{place}/bleu"], row["n"]
    reach = row[f"{place}/bleu_half_width"] * math.sqrt(1 + n) if n >= FEWEST else 0.0
    return mean - reach, mean + reach


def _outcome(row: "Series", place: str, published: float) -> str:
    low, high = _one_more(row, place)
    if row["n"] < FEWEST:
        return f"not judged: {row['n']:.0f} of {FEWEST} runs"
    if low <= published <= high:
        return "as one more run"
    return "below it" if high < published else "above it"
