"""How numbers are written wherever they stand, and into comma-separated values."""

MINUS = "\N{MINUS SIGN}"
SHEET_DIGITS = 9  # another processor makes sums in another order, which shows in the last of 17


def sheet_number(value: float) -> str:
    """A number as it is written into comma-separated values; full precision stays in records and journals."""
    return f"{value:.{SHEET_DIGITS}g}"
