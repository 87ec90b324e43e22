"""Where the heads of a trained model look, and how its search found a translation: what finished runs left of both.

The files stand beside the records (`repro/results/inside.py`) and go into the page as they are, packed; a browser
unpacks the one that is looked at. `assets/inside.js` draws. Paper: figures 3 to 5, section 6.1.
"""

import base64
from collections.abc import Iterator, Sequence
from urllib.parse import quote

from markupsafe import Markup

from repro.pages.scale_data import ScaleData
from repro.render.several import several
from repro.results.inside import LARGEST, has_glimpse, inside_file
from repro.results.labels import label
from repro.results.record import Record, path
from repro.results.sentences import has_sentences
from repro.web.charts import full_name
from repro.web.keys import run_keys
from repro.web.section import Section

KEY, SCRIPT = "inside", "inside.js"
ROOM = 1_200_000  # bytes of packed files in a page: it must stay below 5 MB with all else
SAID = Markup(
    "<p>Each head of each layer, on sentences that the model translated itself: rows are queries, columns are "
    "keys, a strong colour is a large weight. The weights are of our own models, not of the paper’s. Below "
    "them is how the search found the translation.</p>"
)
PLACE = Markup('<div id="inside-view"></div>')


def inside_section(data: ScaleData) -> Section | None:
    """The viewer; where no run left a file it says how one is made. None where no run translates."""
    results, room = data.result_set.folder.parent, ROOM
    shown: list[dict[str, str]] = []
    missing: list[Markup] = []
    no_room: list[Markup] = []
    for key, record, is_there in _chosen_of_rows(data):
        place = path(results, record)
        name = full_name(record.table, label(record.row, record.hyper))
        if not is_there:
            missing.append(Markup("<li>{}</li>").format(name))
        elif (file := inside_file(place)).stat().st_size > room:
            of = Markup('<li>{}: <a href="{}/{}">{}</a></li>')
            no_room.append(of.format(name, quote(record.table), quote(file.name), f"{record.table}/{file.name}"))
        else:
            room -= file.stat().st_size
            name = f"{name}, seed {record.seed}"
            about = f"{name}, scale {record.scale}, run {record.run}"
            packed = base64.b64encode(file.read_bytes()).decode()
            shown.append({"name": name, "about": about, "run": key, "file": packed})
    if not (shown or missing or no_room):
        return None
    return Section(
        key=KEY,
        title="Attention and search",
        body=(SAID if shown else Markup()) + _without(missing, bool(shown)) + _no_room(no_room) + PLACE * bool(shown),
        data={"models": shown, "most": LARGEST} if shown else None,
        script=SCRIPT if shown else "",
    )


def _chosen_of_rows(data: ScaleData) -> Iterator[tuple[str, Record, bool]]:
    """Of each row that translates the run to show, and whether it left a file: the first with a sentence, or the first.

    A file is read to know whether it has one, so those behind the first such file of a row are left alone.
    """
    results = data.result_set.folder.parent
    of_rows: dict[tuple[str, str], list[tuple[str, Record]]] = {}
    for key, record in run_keys(data.result_set).items():
        if has_sentences(record):
            of_rows.setdefault((record.table, record.row), []).append((key, record))
    for runs in of_rows.values():
        seen = ((key, one, True) for key, one in runs if has_glimpse(path(results, one), one.run))
        yield next(seen, (*runs[0], False))


def _without(rows: Sequence[Markup], others: bool) -> Markup:
    """The rows that have nothing to look at, and how they get it."""
    if not rows:
        return Markup()
    of = f"{several(len(rows), 'row')}, named below" if others else "the runs of this scale"
    said = Markup(
        '<p class="small">There is nothing to show for {}: no file <code>.inside.gz</code> with a sentence is beside '
        "their records, or it is damaged. To write it, type the command of a run again where its checkpoints still "
        "are: a click on the row shows the command.</p>"
    ).format(of)
    return said + _listed(rows, "without a file") * others


def _no_room(rows: Sequence[Markup]) -> Markup:
    """The rows whose files a reader has to open."""
    if not rows:
        return Markup()
    said = Markup(
        '<p class="small">This page has no room for the files of {}. They stand beside the records: choose one with '
        "<em>Open a file</em> below. It is read here and sent nowhere.</p>"
    ).format(f"{len(rows)} more row{'s' * (len(rows) != 1)}")
    return said + _listed(rows, "with a file to open")


def _listed(rows: Sequence[Markup], what: str) -> Markup:
    about = Markup("<summary>{} {}</summary>").format(several(len(rows), "row"), what)
    items = Markup().join(rows)
    return Markup('<details class="small">{}<ul class="rows-left">{}</ul></details>').format(about, items)
