"""Tables as comma-separated values that a spreadsheet takes for values, never for formulas.

Full precision stays in records and journals.
"""

import csv
import io
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from repro.pages.columns import has_systems, unused
from repro.render.escape import sheet_text
from repro.results.labels import AT_PAPER_SIZE

if TYPE_CHECKING:
    from pandas import DataFrame


SHEET_DIGITS = 9  # another processor makes sums in another order, which shows in the last of 17


def sheet(frame: "DataFrame") -> str:
    """A frame, with every column that a row sets."""
    frame = frame.drop(columns=[name + size for name in unused(frame) for size in ("", AT_PAPER_SIZE)])
    frame = frame if has_systems(frame) else frame.drop(columns="system")
    texts = [name for name in frame if frame[name].map(lambda value: isinstance(value, str)).any()]
    safe = frame.assign(**{str(name): frame[name].map(_sheet_cell) for name in texts})
    return str(safe.to_csv(index=False, float_format=f"%.{SHEET_DIGITS}g", lineterminator="\n"))


def _sheet_cell(value: Any) -> Any:
    return sheet_text(value) if isinstance(value, str) else value


def comma_separated(lines: Iterable[Mapping[str, Any]]) -> str:
    """A line for each, under the names of all of them in the order in which they are met; nothing for None."""
    rows = [*lines]
    names = list(dict.fromkeys(name for row in rows for name in row))
    text = io.StringIO()
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: _value(value) for name, value in row.items()} for row in rows)
    return text.getvalue()


def _value(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.{SHEET_DIGITS}g}" if isinstance(value, float) else sheet_text(str(value))
