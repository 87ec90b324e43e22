"""A frame as comma-separated values, every column that a row sets, that a spreadsheet takes for values."""

from typing import TYPE_CHECKING, Any

from repro.pages.cells import SHEET_DIGITS
from repro.pages.columns import has_systems, unused
from repro.render.escape import sheet_text
from repro.results.labels import AT_PAPER_SIZE

if TYPE_CHECKING:
    from pandas import DataFrame


def sheet(frame: "DataFrame") -> str:
    """Numbers have 9 digits of 17: processors differ in the last."""
    frame = frame.drop(columns=[name + size for name in unused(frame) for size in ("", AT_PAPER_SIZE)])
    frame = frame if has_systems(frame) else frame.drop(columns="system")
    texts = [name for name in frame if frame[name].map(lambda value: isinstance(value, str)).any()]
    safe = frame.assign(**{str(name): frame[name].map(_sheet_cell) for name in texts})
    return str(safe.to_csv(index=False, float_format=f"%.{SHEET_DIGITS}g", lineterminator="\n"))


def _sheet_cell(value: Any) -> Any:
    return sheet_text(value) if isinstance(value, str) else value
