"""How numbers are written: into the cells of a table, and into comma-separated values."""

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pandas import DataFrame, Series

MINUS = "\N{MINUS SIGN}"
MISSING = "missing"
SHEET_DIGITS = 9  # another processor makes sums in another order, which shows in the last of 17


def numbers(values: "Series[float]", form: str) -> list[str]:
    """Numbers as they are written, nothing for none."""
    return ["" if math.isnan(x) else format(x, form).replace("-", MINUS) for x in values]


def spreads(frame: "DataFrame", score: str, decimals: int) -> tuple[list[str], int]:
    """Mean ± half-width; of two runs mean [lowest, highest]; of one its number. And the decimals it took.

    As many decimals as the paper prints, more (up to 4) while an interval would read 0. Nothing where no run has
    the score.
    """
    narrowest = frame[f"{score}_half_width"].where(lambda width: width > 0).min()
    while decimals < 4 and round(narrowest, decimals) == 0:
        decimals += 1
    ends = ("", "_half_width", "_min", "_max")
    parts = [numbers(frame[score + end], f".{decimals}f") for end in ends]
    texts = []
    for n, mean, half_width, low, high in zip(frame["n"], *parts, strict=True):
        spread = f" ± {half_width}" if half_width else f" [{low}, {high}]" if n == 2 and mean else ""
        texts.append(mean + spread if n else MISSING)
    return texts, decimals


def sheet_number(value: float) -> str:
    """A number as it is written into comma-separated values; full precision stays in records and journals."""
    return f"{value:.{SHEET_DIGITS}g}"
