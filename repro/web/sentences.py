"""What runs left of sentences: translations side by side, and where heads look and how the search went.

The translations of dev on which the rows differ most are shown with source and reference, scored one by one. Their text
is shown only if this project generated it: that of most corpora may not be redistributed. BLEU of a sentence is
computed from the counts beside the records, without the text.

Of heads and search as many sentences stand in the page as there is room for. Paper: figures 3 to 5, section 6.1.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from repro.corpora.catalogue import CORPORA
from repro.corpora.parallel_text import languages
from repro.pages.columns import PARTS
from repro.pages.scale_data import ScaleData
from repro.render.text import several
from repro.results.artifacts import LARGEST, are_of, first_sentences, has_glimpse, inside_file, read_inside
from repro.results.labels import label
from repro.results.record import BASE, Record, path
from repro.results.sentences import Counts, faults, has_sentences, read_counts, read_hypotheses
from repro.runs.outputs import at_hand
from repro.web.charts import comparable, full_name
from repro.web.report import Section
from repro.web.tables import runs_of_rows

SPLIT = "dev"
MOST = 250  # sentences shown: all would make the page too large, and most are translated alike
LONGEST = 1_000  # characters shown of one
SEEDS_OF_BASE = 2  # the second shows what chance alone changes


class Side(NamedTuple):
    """A run and its translations."""

    key: str  # its address in the report
    record: Record
    lines: Sequence[str]  # [S]
    bleu: NDArray[np.float64]  # [S], of each sentence by itself

    @property
    def name(self) -> str:
        """The name of its column."""
        return f"{full_name(self.record.table, label(self.record.row, self.record.hyper))}, seed {self.record.seed}"


Pairs = Sequence[tuple[str, str]]  # source and reference


def sentences_section(data: ScaleData) -> Section | None:
    """The sentences; None if no row kept its translations."""
    sides = compared(data)
    if not sides:
        return None
    pairs, bleu = own_text(sides[0].record, data), [side.bleu for side in sides]
    spread, mean = np.std(bleu, axis=0), np.mean(bleu, axis=0)
    chosen = np.lexsort((np.arange(len(spread)), mean, -spread))[:MOST].tolist()
    scored = [_sentence(i, sides, pairs, float(spread[i])) for i in chosen]
    # the base stands beside a row of Table 3 at first: of a hundred rows at once nobody sees anything
    first = next((i for i, side in enumerate(sides) if side.record.table.startswith(PARTS)), None)
    said = Markup(
        "<p>The {} of {} sentences of dev on which the rows differ most, by the standard deviation of their sentence "
        "BLEU. Equal translations share a line. Choose a row, and one to compare it with: words that only the row has "
        "are marked, those that only the other has are struck out.</p>"
    ).format(f"{len(chosen):,}", f"{len(spread):,}")
    return Section(
        key="sentences",
        title="Sentences",
        body=said + _about_text(sides[0].record, pairs) + Markup('<div id="side-by-side"></div>'),
        data={
            "rows": [{"name": side.name, "run": side.key} for side in sides],
            "first": first if sides[0].record.table == BASE else None,
            "has_text": pairs is not None,
            "sentences": scored,
        },
        script="sentences.js",
    )


def compared(data: ScaleData) -> list[Side]:
    """A run of each row that learned from the base's text and kept its translations, the base first.

    It is the first run of the row that counts as evidence or, if none does, the first.
    """
    alike, counting = ({*map(id, records)} for records in (comparable(data), data.evidence.records))
    found, results = list[Side](), data.result_set.folder.parent
    for (table, _), runs in runs_of_rows(data.result_set).items():
        kept = (
            (key, record, place)
            for key, record in sorted(runs, key=lambda one: id(one[1]) not in counting)
            if id(record) in alike
            and has_sentences(record)
            and are_of(place := path(results, record), record.run, [SPLIT])
        )
        for key, record, place in islice(kept, SEEDS_OF_BASE if table == BASE else 1):
            if fault := next(faults(results, record, [SPLIT]), None):
                raise ValueError(f"{place}: {fault}. Restore the file from git, or run the row again.")
            counts = read_counts(results, record)
            assert counts is not None  # are_of has seen them
            found.append(Side(key, record, read_hypotheses(place, SPLIT), sentence_bleu(counts)))
    return found


def is_of_generated(record: Record) -> bool:
    """Whether its text was generated, so that it may be shown."""
    known = CORPORA.get(record.corpus["name"])
    return known is not None and known.is_generated


def own_text(record: Record, data: ScaleData) -> Pairs | None:
    """Sources and references of dev if they are generated and can be made again; None for other text."""
    if data.cache is None or not is_of_generated(record):
        return None
    corpus = at_hand(record, data.cache)
    return [*corpus.dev.pairs()] if corpus else None


def sentence_bleu(counts: Counts) -> NDArray[np.float64]:
    """[S] sacreBLEU of each sentence by itself: smoothed, without the orders that it is too short for."""
    from sacrebleu.metrics.bleu import BLEU

    how: dict[str, Any] = {"smooth_method": "exp", "effective_order": True}
    lines = counts.tolist()
    return np.array([BLEU.compute_bleu(of[2:6], of[6:], of[0], of[1], **how).score for of in lines])


def _sentence(i: int, sides: Sequence[Side], pairs: Pairs | None, spread: float) -> dict[str, Any]:
    """One sentence: each distinct translation once, and for each row the number of its translation."""
    texts = list(dict.fromkeys(side.lines[i] for side in sides))
    source, reference = pairs[i] if pairs else (None, None)
    return {
        "line": i + 1,
        "spread": round(spread, 2),
        "source": source,
        "reference": reference,
        "texts": [text if len(text) <= LONGEST else f"{text[:LONGEST]} …" for text in texts],
        "of": [texts.index(side.lines[i]) for side in sides],
        "bleu": [round(float(side.bleu[i]), 1) for side in sides],
    }


def _about_text(record: Record, pairs: Pairs | None) -> Markup:
    """A note on which text is shown, and on the scorer."""
    from sacrebleu import __version__

    from repro.decoding.bleu import sacrebleu_tokeniser

    name = record.corpus["name"]
    if pairs is not None:
        said = f"Sources and references are those of the corpus {name}, generated again."
    elif is_of_generated(record):
        said = f"Sources and references are not here: this version does not generate that text of the corpus {name}."
    else:
        said = f"Sources and references are not shown: the text of {name} is not kept beside records. Its counts are."
    *_, target = languages(record.pair)
    by = f"sacreBLEU {__version__}, sentence BLEU (eff:yes, tok:{sacrebleu_tokeniser(target)}, smooth:exp)"
    return Markup('<p class="small">{} Scored by {}.</p>').format(said, by)


# ---- heads and search: `assets/inside.js` draws the sentence that is looked at

ROOM = 1_200_000  # bytes of packed files in a page, at most
SAID = Markup(
    "<p>Each head of each layer, on sentences that the model translated itself: rows are queries, columns are "
    "keys, a strong colour is a large weight. The weights are of our own models, not of the paper’s. Below "
    "them is how the search found the translation. Both are in float32, also of a run whose scores were made in "
    "bfloat16 or by CTranslate2.</p>"
)


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
            shown.append({**found, "file": f"inside-{key}", "n_more": packed[key][1], "whole": file})
        else:
            left.append(Markup("<li>{}: {}</li>").format(name, file if is_there else "no file"))
    if not chosen:
        return None
    return Section(
        key="inside",
        title="Attention and search",
        body=SAID * bool(shown) + _left(left) + Markup('<div id="inside-view"></div>') * bool(shown),
        data={"models": shown, "most": LARGEST} if shown else None,
        packed={f"inside-{key}": content for key, (content, _) in packed.items()},
        script="inside.js" if shown else "",
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
