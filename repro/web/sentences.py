"""Sentences of dev side by side: the source, its reference and what each row made of it, scored one by one.

Those on which the rows differ most are shown. Their text is shown only if this project generated it: that of most
corpora may not be redistributed. BLEU of a sentence is computed from the counts beside the records, without the text.
"""

from collections.abc import Sequence
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from repro.corpora.catalogue import CORPORA
from repro.corpora.parallel_text import languages
from repro.pages.columns import PARTS
from repro.pages.scale_data import ScaleData
from repro.results.artifacts import are_of
from repro.results.labels import label
from repro.results.record import BASE, Record, path
from repro.results.sentences import ORDERS, NgramCounts, faults, has_sentences, read_counts, read_hypotheses
from repro.runs.outputs import at_hand
from repro.web.charts import comparable, full_name
from repro.web.report import Section
from repro.web.tables import runs_of_rows

KEY, SCRIPT, SPLIT = "sentences", "sentences.js", "dev"
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
        key=KEY,
        title="Sentences",
        body=said + _about_text(sides[0].record, pairs) + Markup('<div id="side-by-side"></div>'),
        data={
            "rows": [{"name": side.name, "run": side.key} for side in sides],
            "first": first if sides[0].record.table == BASE else None,
            "has_text": pairs is not None,
            "sentences": scored,
        },
        script=SCRIPT,
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


def sentence_bleu(counts: NgramCounts) -> NDArray[np.float64]:
    """[S] sacreBLEU of each sentence by itself: smoothed, without the orders that it is too short for."""
    from sacrebleu.metrics.bleu import BLEU

    totals = np.maximum(counts.hypothesis[:, None] - np.arange(ORDERS), 0)
    columns = (counts.correct, totals, counts.hypothesis, counts.reference)
    lines = zip(*(column.tolist() for column in columns), strict=True)
    how: dict[str, Any] = {"smooth_method": "exp", "effective_order": True}
    return np.array([BLEU.compute_bleu(*counted, **how).score for counted in lines])


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
