"""Where the heads of a trained model look, and how its search found a translation, from files that runs have left.

The files are beside the records (`repro/results/artifacts.py`). As many sentences of each as there is room for stand in
the page, and `assets/inside.js` draws the one that is looked at. Paper: figures 3 to 5, section 6.1.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

from markupsafe import Markup

from repro.pages.scale_data import ScaleData
from repro.render.text import several
from repro.results.artifacts import LARGEST, first_sentences, has_glimpse, inside_file, read_inside
from repro.results.labels import label
from repro.results.record import Record, path
from repro.results.sentences import has_sentences
from repro.web.charts import full_name
from repro.web.report import Section
from repro.web.tables import runs_of_rows

KEY, SCRIPT = "inside", "inside.js"
ROOM = 1_200_000  # bytes of packed files in a page, at most
SAID = Markup(
    "<p>Each head of each layer, on sentences that the model translated itself: rows are queries, columns are "
    "keys, a strong colour is a large weight. The weights are of our own models, not of the paper’s. Below "
    "them is how the search found the translation. Both are in float32, also of a run whose scores were made in "
    "bfloat16 or by CTranslate2.</p>"
)
PLACE = Markup('<div id="inside-view"></div>')


def inside_section(data: ScaleData, room: int = ROOM) -> Section | None:
    """The viewer, with at most `room` bytes of files. None if no run translates.

    If no run left a file, the section says how to make one.
    """
    results = data.result_set.folder.parent
    chosen = [*_chosen_of_rows(data)]
    packed = fitting({key: path(results, record) for key, record, is_there in chosen if is_there}, room)
    shown: list[dict[str, str | int]] = []
    left: list[Markup] = []
    for key, record, is_there in chosen:
        name = full_name(record.table, label(record.row, record.hyper))
        file = f"{record.table}/{inside_file(path(results, record)).name}"
        if key in packed:
            seed = f"{name}, seed {record.seed}"
            found = {"name": seed, "about": f"{seed}, scale {record.scale}, run {record.run}", "run": key}
            shown.append({**found, "file": f"{KEY}-{key}", "n_more": packed[key][1], "whole": file})
        else:
            left.append(Markup("<li>{}: {}</li>").format(name, file if is_there else "no file"))
    if not chosen:
        return None
    return Section(
        key=KEY,
        title="Attention and search",
        body=SAID * bool(shown) + _left(left) + PLACE * bool(shown),
        data={"models": shown, "most": LARGEST} if shown else None,
        packed={f"{KEY}-{key}": content for key, (content, _) in packed.items()},
        script=SCRIPT if shown else "",
    )


def fitting(files: Mapping[str, Path], room: int) -> dict[str, tuple[bytes, int]]:
    """What fits into the page: run -> the first sentences of its file, packed, and how many more the file has.

    The first sentence of every file comes before the second of any, and so on until there is no room.
    """
    whole = {key: len(read_inside(file)[0]["sentences"]) for key, file in files.items()}
    found: dict[str, tuple[bytes, int]] = {}
    for n in range(1, max(whole.values(), default=0) + 1):
        for key, file in files.items():
            if n <= whole[key]:
                packed = first_sentences(file, n)
                room -= len(packed) - len(found.get(key, (b"", 0))[0])
                if room < 0:
                    return found
                found[key] = packed, whole[key] - n
    return found


def _chosen_of_rows(data: ScaleData) -> Iterator[tuple[str, Record, bool]]:
    """The run to show of each row that translates, and whether it left a file: the first with a sentence, or the first.

    A file must be read to know whether it has a sentence, so files after the first that has one are not read.
    """
    results = data.result_set.folder.parent
    for all_runs in runs_of_rows(data.result_set).values():
        if runs := [(key, one) for key, one in all_runs if has_sentences(one)]:
            seen = ((key, one, True) for key, one in runs if has_glimpse(path(results, one), one.run))
            yield next(seen, (*runs[0], False))


def _left(rows: list[Markup]) -> Markup:
    """A note on the rows that are not in the page, and where to find or how to make what they lack."""
    if not rows:
        return Markup()
    return Markup(
        '<details class="small"><summary>{} not in this page</summary><p>A file .inside.gz beside the records can be '
        "chosen with <em>Open a file</em> below: it is read here and sent nowhere. Where there is none, or none with a "
        "sentence, type the command of a run again where its checkpoints still are: a click on the row shows the "
        'command.</p><ul class="rows-left">{}</ul></details>'
    ).format(several(len(rows), "row"), Markup().join(rows))
