"""A part of the browser's report: what a reader sees, the values behind it, and the script that makes it interactive.

A section is a value that depends neither on its page nor on other sections. `report.py` joins sections to one HTML
file. `body` is HTML, so its maker must escape names and sentences (`render/html.py` does it, and so does
`markupsafe.escape`). `data` is text and numbers, and a script shows it as text (`report.element` in `assets/report.js`
never reads HTML). Control characters, also those for right-to-left text, are written as escapes, in the page and in the
values.
"""

import base64
import gzip
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from markupsafe import Markup

from repro.render.escape import shown


@dataclass(frozen=True, kw_only=True)
class Section:
    """One section of a report. Raises ValueError if its key or its body cannot be put into a page."""

    key: str  # its id in the page, and the end of its address: report.html#KEY
    title: str  # its heading, and its name in the navigation
    body: Markup  # HTML in which all foreign text is escaped
    data: Any = None  # values of JSON, read by report.data(KEY). None: nothing is embedded
    script: str = ""  # a file of repro/web/assets/, embedded once however many sections name it
    # charts of Vega-Lite by name: <div class="chart" data-chart="KEY/NAME"> shows one, see assets/charts.js
    charts: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    csv: Mapping[str, str] = field(default_factory=dict)  # file name -> comma-separated values, offered as downloads
    # id of a <details data-folded> in the body -> the HTML after its summary, escaped like the body. `assets/grid.js`
    # adds it once the rest of the page is shown
    folded: Mapping[str, Markup] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.key.isidentifier() or not self.key.isascii():
            raise ValueError(f"Section: expected a key of ASCII letters, digits and _, got {self.key!r}.")
        if not isinstance(self.body, Markup):
            raise ValueError(f"Section {self.key}: expected a body that was escaped (Markup), got plain text.")

    @cached_property
    def embedded(self) -> tuple[tuple[str, Markup], ...]:
        """The values and files of the section, packed, each with its id in the page."""
        values = {"data": self.data, "csv": dict(self.csv) or None, "folded": dict(self.folded) or None}
        there = {name: named(one) for name, one in values.items() if one is not None}
        return tuple((f"{name}-{self.key}", packed_in_html(one)) for name, one in there.items())


def named(value: Any) -> Any:
    """A value whose texts have control characters as escapes (`escape.shown`), keys included."""
    if isinstance(value, str):
        return shown(value)
    if isinstance(value, Mapping):
        return {named(key): named(one) for key, one in value.items()}
    return [named(one) for one in value] if isinstance(value, list | tuple) else value


def fold(id: str, summary: Markup) -> Markup:
    """The visible part of a folded one: a summary that opens what the section has in `folded` under this id."""
    return Markup('<details class="many" id="{}" data-folded><summary>{}</summary></details>').format(id, summary)


def packed_in_html(value: Any) -> Markup:
    """A value as JSON, gzip and base64: a fifth of the JSON's size, and no character that could end a script.

    Raises ValueError for NaN and infinities, TypeError for what is no value of JSON.
    """
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    return Markup(base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode())
