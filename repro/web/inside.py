"""Where the heads of a trained model look, and how its search found a translation: what finished runs left of both.

The files stand beside the records (`repro/results/inside.py`) and go into the page as they are, packed; a browser
unpacks the one that is looked at. `assets/inside.js` draws. Paper: figures 3 to 5, section 6.1.
"""

import base64
from collections.abc import Iterator

from markupsafe import Markup

from repro.pages.scale_data import ScaleData
from repro.results.inside import inside_file, is_inside_of, read_inside
from repro.results.labels import label
from repro.results.record import Record, path
from repro.results.sentences import has_sentences
from repro.web.charts import full_name
from repro.web.keys import run_keys
from repro.web.section import Section

KEY, SCRIPT = "inside", "inside.js"
ROOM = 1_200_000  # bytes of packed files in a page: it must stay below 5 MB with all else


def inside_section(data: ScaleData) -> Section | None:
    """The viewer; where no run left a file it says how one is made. None where no run translates."""
    if not (rows := [*_chosen_of_rows(data)]):
        return None
    results, files = data.result_set.folder.parent, []
    missing, too_many, room = 0, 0, ROOM
    for key, record, is_there in rows:
        place = path(results, record)
        if not is_there:
            missing += 1
        elif (size := inside_file(place).stat().st_size) > room:
            too_many += 1
        elif not read_inside(place)[0]["sentences"]:  # none of its text may be shown, and none of the paper's was read
            missing += 1
        else:
            room -= size
            name = full_name(record.table, label(record.row, record.hyper))
            about = f"{name}, seed {record.seed}, scale {record.scale}, run {record.run}"
            packed = base64.b64encode(inside_file(place).read_bytes()).decode()
            files.append({"name": f"{name}, seed {record.seed}", "about": about, "run": key, "file": packed})
    return Section(
        key=KEY,
        title="Attention and search",
        body=_said(len(files), missing, too_many),
        data={"models": files} if files else None,
        script=SCRIPT if files else "",
    )


def _chosen_of_rows(data: ScaleData) -> Iterator[tuple[str, Record, bool]]:
    """Of each row that translates the run to show, and whether it left a whole file: the first that did, or the first.

    A file is read to know whether it is whole, so those behind the first whole one of a row are left alone.
    """
    results = data.result_set.folder.parent
    of_rows: dict[tuple[str, str], list[tuple[str, Record]]] = {}
    for key, record in run_keys(data.result_set).items():
        if has_sentences(record):
            of_rows.setdefault((record.table, record.row), []).append((key, record))
    for runs in of_rows.values():
        whole = ((key, one, True) for key, one in runs if is_inside_of(path(results, one), one.run))
        yield next(whole, (*runs[0], False))


def _said(shown: int, missing: int, too_many: int) -> Markup:
    """What can be looked at, and what is missing."""
    lacking = f"{missing} row{'s' * (missing != 1)}" if shown else "the runs of this scale"
    left = (
        Markup(
            '<p class="small">There is nothing to show for {}: no file <code>.inside.gz</code> is beside the '
            "record, or it is damaged. To write it, type the command of the run again where the run’s checkpoints "
            "still are.</p>"
        ).format(lacking)
        if missing
        else Markup()
    )
    if too_many:
        rows = f"{too_many} more row{'s' * (too_many != 1)}"
        left += Markup('<p class="small">This page has no room for the files of {}.</p>').format(rows)
    if not shown:
        return left
    return (
        Markup(
            "<p>Each head of each layer, on sentences that the model translated itself: rows are queries, columns are "
            "keys, a strong colour is a large weight. The weights are of our own models, not of the paper’s. Below "
            "them is how the search found the translation.</p>"
        )
        + left
        + Markup('<div id="inside-view"></div>')
    )
