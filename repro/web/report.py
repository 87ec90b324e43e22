"""Joins sections to one HTML file that needs nothing else: no server, no request, no other file.

The page's own policy allows no request, and only the scripts in the page, each by its hash: a script smuggled in by a
name or a sentence would not run.
"""

import base64
import functools
import hashlib
from collections.abc import Sequence
from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from repro.render.escape import shown
from repro.web.section import Section, named, packed_in_html

INFLATE, FRAME, CHARTS = "inflate.js", "report.js", "charts.js"  # in repro/web/assets/, in the order in which they run
STYLE, TEMPLATE = "report.css", "report.html.j2"


def report_html(sections: Sequence[Section], *, title: str, lead: str = "", home: str = "", origin: str) -> str:
    """The whole file. `home` is the address of the index of scales, "" in the index itself.

    Raises ValueError if two sections have the same key, FileNotFoundError if a script is not among the assets.
    """
    keys = [section.key for section in sections]
    if twice := sorted({key for key in keys if keys.count(key) > 1}):
        raise ValueError(f"A report: expected sections of different keys, got {', '.join(twice)} twice.")
    charts = {f"{section.key}/{name}": chart for section in sections for name, chart in section.charts.items()}
    scripts = [
        asset(INFLATE),
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
