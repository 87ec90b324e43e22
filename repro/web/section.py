"""A part of the browser's report: what a reader sees, the values behind it, and the script that moves it.

A section is a value; it knows neither the page that it stands on nor the sections beside it. `report.py` joins sections
to one file of HTML. What its maker puts into `body` is HTML already, so all that a name or a sentence could hold is
escaped there (`render/html.py` does it, and so does `markupsafe.escape`); what is put into `data` is text and numbers,
and a script shows it as text (`report.element` in `assets/report.js` never reads HTML). What would turn the order of
letters, and other control characters, are written as they are called, in the page and in the values.
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
    """One section of a report. Raises ValueError where its key or its files could not stand in a page."""

    key: str  # its id in the page, and the end of its address: report.html#KEY
    title: str  # its heading, and its name in the navigation
    body: Markup  # HTML, with all escaped that is not its maker's own
    data: Any = None  # what JSON can hold; a script asks report.data(KEY). None: nothing is embedded
    script: str = ""  # a file of repro/web/assets/, embedded once however many sections name it
    # charts of Vega-Lite by name: <div class="chart" data-chart="KEY/NAME"> shows one, see assets/charts.js
    charts: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    csv: Mapping[str, str] = field(default_factory=dict)  # file name -> comma-separated values, offered as downloads
    # by the id of a <details data-folded> of the body what follows its summary, escaped like the body: a browser makes
    # it when it has shown what is not folded. `assets/grid.js` does
    folded: Mapping[str, Markup] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.key.isidentifier() or not self.key.isascii():
            raise ValueError(f"Section: expected a key of ASCII letters, digits and _, got {self.key!r}.")
        if not isinstance(self.body, Markup):
            raise ValueError(f"Section {self.key}: expected a body that was escaped (Markup), got plain text.")

    @cached_property
    def embedded(self) -> tuple[tuple[str, Markup], ...]:
        """Its values and its files, packed, each with its id in the page."""
        values = {"data": self.data, "csv": dict(self.csv) or None, "folded": dict(self.folded) or None}
        there = {name: named(one) for name, one in values.items() if one is not None}
        return tuple((f"{name}-{self.key}", packed_in_html(one)) for name, one in there.items())


def named(value: Any) -> Any:
    """A value with what a browser would obey in its texts written as it is called: what turns the order of letters."""
    if isinstance(value, str):
        return shown(value)
    if isinstance(value, Mapping):
        return {named(key): named(one) for key, one in value.items()}
    return [named(one) for one in value] if isinstance(value, list | tuple) else value


def fold(id: str, summary: Markup) -> Markup:
    """What is seen of a folded part: its summary, which unfolds what its section has in `folded` under this id."""
    return Markup('<details class="many" id="{}" data-folded><summary>{}</summary></details>').format(id, summary)


def packed_in_html(value: Any) -> Markup:
    """A value as JSON, gzip and base64: a fifth of the JSON, and not a letter in it that could end a script.

    Raises ValueError for a number that JSON has not (NaN, infinite), TypeError for what is no value of JSON.
    """
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    return Markup(base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode())
