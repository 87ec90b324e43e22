"""The anchor's scores compared with those published by the authors of its recipe, on the same text. Paper: none."""

import math

from repro.pages.columns import numbers, spreads
from repro.render.page import Block, Column, Listing, Strong, Table, Text, Words
from repro.results.frame import DataFrame, Series

TABLE, ROW, CORPUS = "anchor", "tiny", "multi30k_tok"
PUBLISHED = {"test": 41.02, "further/test_2017_flickr": 33.36}  # BLEU of one model, by the prefix of our column
SETS = {"test": "test_2016_flickr", "further/test_2017_flickr": "test_2017_flickr"}
ABOUT = (
    "Published is the text-only Transformer-tiny of Wu et al. (2021) on the same lower-cased text, in BLEU of tokens; "
    "ours is sacreBLEU, of tokens of its own. docs/deviations.md says what their recipe does and ours does not. "
    "Theirs is one model, so the outcome is whether it lies where one more run of ours would: at 95 % the mean ± t s "
    "√(1 + 1/n), over three runs or more. So it is asked since 28 November 2026, when most of the runs were known."
)
FEWEST = 3  # runs needed for a useful interval


def anchor_section(frame: DataFrame) -> tuple[Block, ...]:
    """The published scores beside ours, and whether one more run might reach them; empty for other tables and texts."""
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
    return Text(ABOUT), Table(tuple(columns))


def anchor_found(frame: DataFrame) -> Listing:
    """Where the published scores lie relative to ours, one line per test set; empty for other tables and texts."""
    table = next((block for block in anchor_section(frame) if isinstance(block, Table)), None)
    cells: dict[str, dict[str, Words]] = {}
    for column in table.columns[1:] if table else ():
        cells.setdefault(column.group, {})[column.heading] = column.texts[0]
    told = [(name, of) for name, of in cells.items() if "outcome" in of]
    said = "{ours} BLEU, published {published}: {outcome}."
    return Listing(tuple((Strong(name), ": " + said.format_map(of)) for name, of in told))


def _one_more(row: Series, place: str) -> tuple[float, float]:
    """The 95 % interval for one more run; with too few runs for an interval, the mean twice."""
    mean, n = row[f"{place}/bleu"], row["n"]
    reach = row[f"{place}/bleu_half_width"] * math.sqrt(1 + n) if n >= FEWEST else 0.0
    return mean - reach, mean + reach


def _outcome(row: Series, place: str, published: float) -> str:
    low, high = _one_more(row, place)
    if row["n"] < FEWEST:
        return f"not judged: {row['n']:.0f} of {FEWEST} runs"
    if low <= published <= high:
        return "as one more run"
    return "below it" if high < published else "above it"
