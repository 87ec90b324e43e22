"""A report for the browser: sections, joined to one HTML file that needs no server, no request and no other file.

A section is a value that depends neither on its page nor on other sections. Its `body` is HTML, so its maker must
escape names and sentences (`render/markup.py` does, and so does `markupsafe.escape`). Its `data` is text and numbers,
and a script shows it as text (`report.element` in `assets/report.js` never reads HTML). Control characters, also those
for right-to-left text, are written as escapes, in the page and in the values.

The page's own policy allows no request, and only the scripts in the page, each by its hash: a script smuggled in by a
name or a sentence would not run.
"""

import base64
import functools
import gzip
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from repro.render.text import shown

FRAME, CHARTS = "report.js", "charts.js"  # in repro/web/assets/, in the order in which they run
STYLE, TEMPLATE = "report.css", "report.html.j2"


@dataclass(frozen=True, kw_only=True)
class Section:
    """One section of a report. Raises ValueError if its body is plain text, whose names nobody has escaped."""

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
    # id in the page -> a file that is packed as gzip already; a script has its bytes by report.bytes(ID)
    packed: Mapping[str, bytes] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not isinstance(self.body, Markup):
            raise ValueError(f"Section {self.key}: expected a body that was escaped (Markup), got plain text.")

    @functools.cached_property
    def embedded(self) -> tuple[tuple[str, Markup], ...]:
        """The values and files of the section, packed, each with its id in the page."""
        values = {"data": self.data, "csv": dict(self.csv) or None, "folded": dict(self.folded) or None}
        there = {f"{name}-{self.key}": named(one) for name, one in values.items() if one is not None}
        return (
            *((id, packed_in_html(one)) for id, one in there.items()),
            *((id, Markup(base64.b64encode(one).decode())) for id, one in self.packed.items()),
        )


def named(value: Any) -> Any:
    """A value whose texts have control characters as escapes (`text.shown`), keys included."""
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


def report_html(sections: Sequence[Section], *, title: str, lead: str = "", home: str = "", origin: str) -> str:
    """The whole file. `home` is the address of the index of scales, "" in the index itself.

    Sections have different keys. Raises FileNotFoundError if a script is not among the assets.
    """
    charts = {f"{section.key}/{name}": chart for section in sections for name, chart in section.charts.items()}
    scripts = [
        asset(FRAME),
        *([asset(CHARTS)] if charts else []),
        *map(asset, dict.fromkeys(section.script for section in sections if section.script)),
    ]
    library = bundle() if charts else ""
    page = Environment(loader=PackageLoader("repro.web", "assets"), autoescape=True, undefined=StrictUndefined)
    written = page.get_template(TEMPLATE).render(
        title=title,
        lead=lead,
        home=home,
        origin=origin,
        sections=sections,
        style=Markup(asset(STYLE)),
        policy=policy([library, *scripts] if library else scripts),
        scripts=[Markup(script) for script in scripts],
        embedded=[
            *(part for section in sections for part in section.embedded),
            *([("charts", packed_in_html(named(charts))), ("library", packed_in_html(library))] if charts else []),
        ],
    )
    return shown(written)


def asset(name: str) -> str:
    """The text of a file in repro/web/assets/."""
    return files("repro.web").joinpath("assets", name).read_bytes().decode("utf-8")


def policy(scripts: Sequence[str]) -> str:
    """The page's content security policy: the browser may run these scripts, and fetch nothing."""
    hashes = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts]
    allowed = " ".join(f"'sha256-{one}'" for one in hashes)
    return f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'"


@functools.cache
def bundle() -> str:
    """Vega, Vega-Lite and Vega-Embed: 0.9 MB of script that defines `vegaEmbed`; made once per process, in 3 s."""
    import altair
    import vl_convert

    version = ".".join(altair.SCHEMA_VERSION.removeprefix("v").split(".")[:2])  # the version of altair's charts
    return vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;", vl_version=version)
