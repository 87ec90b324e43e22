"""Numbers of a section as comma-separated values, as the pages write theirs."""

import csv
import io
from collections.abc import Iterable, Mapping
from typing import Any

from repro.pages.cells import sheet_number
from repro.render.escape import sheet_text


def comma_separated(lines: Iterable[Mapping[str, Any]]) -> str:
    """A line for each, under the names of all of them in the order in which they are met; nothing for None."""
    rows = [*lines]
    names = list(dict.fromkeys(name for row in rows for name in row))
    text = io.StringIO()
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: _cell(value) for name, value in row.items()} for row in rows)
    return text.getvalue()


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return sheet_number(value) if isinstance(value, float) else sheet_text(str(value))
