"""The anchor's scores beside those that its recipe's authors published, on the same text. Not of the paper."""

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
    "ours is sacreBLEU, of tokens of its own. docs/deviations.md says what their recipe does and ours does not. The "
    "outcome is whether the published score lies within the interval of the mean of our runs, and takes three of them; "
    "one more model of ours would lie within twice that or so."
)
FEWEST = 3  # runs, for an interval that says anything


def anchor_section(frame: "DataFrame") -> tuple[Block, ...]:
    """The published scores beside ours, and whether they lie within our interval; nothing of other tables and texts."""
    rows = frame[(frame["table"] == TABLE) & (frame["row"] == ROW) & (frame["n"] > 0)]
    if rows.empty or CORPUS not in frame.attrs["corpora"]:
        return ()
    columns: list[Column] = [Column("", "row", [ROW])]
    for place, published in PUBLISHED.items():
        if f"{place}/bleu" in frame and rows[f"{place}/bleu"].notna().all():
            scored = rows.assign(n=rows.get(f"{place}/n", rows["n"]))
            columns += [
                Column(SETS[place], "ours", spreads(scored, f"{place}/bleu", 1)),
                Column(SETS[place], "published", [f"{published:.1f}"]),
                Column(SETS[place], "difference", numbers(rows[f"{place}/bleu"] - published, "+.1f")),
                Column(SETS[place], "outcome", [_verdict(scored.iloc[0], place, published)], is_words=True),
            ]
    return Heading("Beside the published scores"), *explained_table(columns), Text(ABOUT)


def _verdict(row: "Series", place: str, published: float) -> str:
    ours, half_width = row[f"{place}/bleu"], row[f"{place}/bleu_half_width"]
    if row["n"] < FEWEST:
        return f"not judged: {row['n']:.0f} of {FEWEST} runs"
    if abs(ours - published) <= half_width:
        return "the published score"
    return "below it" if ours < published else "above it"
