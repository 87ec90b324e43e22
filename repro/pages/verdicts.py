"""The verdicts on the rows of a table as a column of it: each on the row's difference to the base. Paper: Table 3."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from repro.claims.claim import B0, BASE_DE, BASE_FR
from repro.claims.judge import Judged
from repro.render.page import Column

if TYPE_CHECKING:
    from pandas import DataFrame

HEADING = "verdict"
BASES = {B0, BASE_DE, BASE_FR}  # what other rows are compared with, each in its own language pair


def verdict_columns(frame: "DataFrame", judged: Sequence[Judged]) -> list[Column]:
    """What the claims say that compare a row with the base, in their words; no column where none does."""
    said: dict[str, dict[str, None]] = {}
    for one in judged:
        others = [row for row in one.claim.rows if row not in BASES]
        if one.claim.kind == "direction" and len(others) == 1:
            said.setdefault(others[0], {})[one.verdict] = None
    rows = zip(frame["table"], frame["row"], strict=True)
    texts = [", ".join(said.get(f"{table}/{row}", ())) for table, row in rows]
    return [Column("", HEADING, texts, is_words=True)] if any(texts) else []
