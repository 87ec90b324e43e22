"""The numbers of a picture beside it, for whoever wants to draw it otherwise."""

import csv
import io
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from repro.storage.atomic import write_text


def save_numbers(folder: Path, name: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> Path:
    """The numbers of a picture as `name`.csv: floats to six digits, so that processors agree."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([f"{value:.6g}" if isinstance(value, float) else value for value in row] for row in rows)
    write_text(folder / f"{name}.csv", text.getvalue())
    return folder / f"{name}.csv"
