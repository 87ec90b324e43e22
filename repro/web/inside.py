"""Where the heads of a trained model look, and how its search found a translation, from files that runs have left.

The files are beside the records (`repro/results/inside.py`). They are packed into the page, as many sentences of each
as there is room for; the browser unpacks the one that is looked at, and `assets/inside.js` draws it. Paper: figures 3
to 5, section 6.1.
"""

import base64
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from urllib.parse import quote

from markupsafe import Markup

from repro.pages.scale_data import ScaleData
from repro.pages.table3 import has_part
from repro.render.several import several
from repro.results.inside import LARGEST, first_sentences, has_glimpse, inside_file, read_inside
from repro.results.labels import label
from repro.results.record import BASE, Record, path
from repro.results.sentences import has_sentences
from repro.web.charts import full_name
from repro.web.keys import run_keys
from repro.web.section import Section

KEY, SCRIPT = "inside", "inside.js"
ROOM = 1_200_000  # bytes of packed files in a page, at most
EARLY = 2  # sentences of each row that come before a third one; the base follows then
SAID = Markup(
    "<p>Each head of each layer, on sentences that the model translated itself: rows are queries, columns are "
    "keys, a strong colour is a large weight. The weights are of our own models, not of the paper’s. Below "
    "them is how the search found the translation. Both are in float32, also of a run whose scores were made in "
    "bfloat16 or by CTranslate2.</p>"
)
PLACE = Markup('<div id="inside-view"></div>')


def inside_section(data: ScaleData, room: int | None = None) -> Section | None:
    """The viewer, with at most `room` bytes of files (None: `ROOM`). None if no run translates.

    If no run left a file, the section says how to make one.
    """
    results = data.result_set.folder.parent
    chosen = [*_chosen_of_rows(data)]
    packed = fitting(
        {key: (record, path(results, record)) for key, record, is_there in chosen if is_there},
        ROOM if room is None else room,
    )
    shown: list[dict[str, str | int]] = []
    missing: list[Markup] = []
    no_room: list[Markup] = []
    for key, record, is_there in chosen:
        name = full_name(record.table, label(record.row, record.hyper))
        file = inside_file(path(results, record)).name
        if not is_there:
            missing.append(Markup("<li>{}</li>").format(name))
        elif key not in packed:
            of = Markup('<li>{}: <a href="{}/{}">{}</a></li>')
            no_room.append(of.format(name, quote(record.table), quote(file), f"{record.table}/{file}"))
        else:
            name = f"{name}, seed {record.seed}"
            about = f"{name}, scale {record.scale}, run {record.run}"
            content, n_more = packed[key]
            shown.append(
                {
                    "name": name,
                    "about": about,
                    "run": key,
                    "n_more": n_more,  # sentences of the file for which the page has no room
                    "whole": f"{record.table}/{file}",
                    "file": base64.b64encode(content).decode(),
                }
            )
    if not (shown or missing or no_room):
        return None
    return Section(
        key=KEY,
        title="Attention and search",
        body=(SAID if shown else Markup()) + _without(missing, bool(shown)) + _no_room(no_room) + PLACE * bool(shown),
        data={"models": shown, "most": LARGEST} if shown else None,
        script=SCRIPT if shown else "",
    )


def with_viewer(sections: Iterable[Section], viewer: Section | None) -> list[Section]:
    """The sections of a report with their viewer replaced by this one."""
    replaced = (viewer if section.key == KEY else section for section in sections)
    return [section for section in replaced if section is not None]


def fitting(files: Mapping[str, tuple[Record, Path]], room: int) -> dict[str, tuple[bytes, int]]:
    """What fits into the page: run -> the first sentences of its file, packed, and how many more the file has.

    Sentences are added in this order until there is no room: the first of every row of Table 3, the second of each,
    all of the base; then the first of all other rows, the second, and so on for all that is left.
    """
    wishes = []
    for place, (key, (record, file)) in enumerate(files.items()):
        whole = len(read_inside(file)[0]["sentences"])
        is_printed = has_part(record.table)
        for n in range(1, whole + 1):
            later = EARLY + 1 if record.table == BASE else EARLY + 1 + n
            wishes.append((n if is_printed and n <= EARLY else later, place, n, key, file, whole))
    found: dict[str, tuple[bytes, int]] = {}
    for _, _, n, key, file, whole in sorted(wishes, key=lambda wish: wish[:3]):
        packed = first_sentences(file, n)
        room -= len(packed) - len(found.get(key, (b"", 0))[0])
        if room < 0:
            break
        found[key] = packed, whole - n
    return found


def _chosen_of_rows(data: ScaleData) -> Iterator[tuple[str, Record, bool]]:
    """The run to show of each row that translates, and whether it left a file: the first with a sentence, or the first.

    A file must be read to know whether it has a sentence, so files after the first that has one are not read.
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
    """A note on the rows that have nothing to show, and how to make it."""
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
    """A note on the rows whose files the reader has to open."""
    if not rows:
        return Markup()
    said = Markup(
        '<p class="small">{}; {} beside the records. Choose one with <em>Open a file</em> below: it is read here and '
        "sent nowhere.</p>"
    ).format(
        f"{len(rows)} more {'row does' if len(rows) == 1 else 'rows do'} not fit in this page",
        "its file is" if len(rows) == 1 else "their files are",
    )
    return said + _listed(rows, "with a file to open")


def _listed(rows: Sequence[Markup], what: str) -> Markup:
    about = Markup("<summary>{} {}</summary>").format(several(len(rows), "row"), what)
    items = Markup().join(rows)
    return Markup('<details class="small">{}<ul class="rows-left">{}</ul></details>').format(about, items)
