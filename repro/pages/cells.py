"""How numbers are written wherever they stand, and into comma-separated values."""

import re

MINUS = "\N{MINUS SIGN}"
SHEET_DIGITS = 9  # another processor makes sums in another order, which shows in the last of 17


def sheet_number(value: float) -> str:
    """A number as it is written into comma-separated values; full precision stays in records and journals."""
    return f"{value:.{SHEET_DIGITS}g}"


def with_minus(sentence: str) -> str:
    """The numbers of a sentence as tables have them: "between −1.84 and 0.2"; a hyphen within a word or range stays."""
    return re.sub(r"(?<![\w.-])-(?=\d)", MINUS, sentence)
