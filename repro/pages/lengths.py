"""How long the translations of the rows of a table are: what may move BLEU without a word being better or worse."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from repro.pages.columns import DELTA, numbers, row_column, spreads
from repro.pages.words import explained_table
from repro.render.page import Block, Column, Heading, Text
from repro.results.lengths import DECIDES, EMPTY, RATIO, RATIO_TO_BASE

if TYPE_CHECKING:
    from pandas import DataFrame

GROUP = "translations (dev)"
ABOUT = (
    "Empty are translations without a token, whose search ended at once, in per cent of dev; length is the tokens of "
    "all translations over those of their references, as sacreBLEU counts them. BLEU multiplies by exp(1 - 1 / length) "
    "where that is below 1, so rows may differ in BLEU by how early they end and not by what they say."
)
ABOUT_DECIDES = " A difference of lengths decides where BLEU without that factor has the other sign."


def lengths_section(frame: "DataFrame", ruled: Iterable[int]) -> tuple[Block, ...]:
    """Both under a heading; nothing where no row has its counts."""
    if RATIO not in frame:
        return ()
    shown = [
        row_column(frame),
        Column(GROUP, "empty (%)", spreads(frame, EMPTY, 1)),
        Column(GROUP, "length", spreads(frame, RATIO, 3)),
    ]
    about = ABOUT
    if RATIO_TO_BASE in frame and frame[RATIO_TO_BASE].notna().any():
        texts = numbers(frame[RATIO_TO_BASE], "+z.3f")
        told = [f"{text}, decides" if is_so == 1 else text for text, is_so in zip(texts, frame[DECIDES], strict=True)]
        shown.append(Column(GROUP, DELTA, told))
        about += ABOUT_DECIDES
    return Heading("How long translations are"), *explained_table(shown, ruled), Text(about)
