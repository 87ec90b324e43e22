"""The data behind the pages and the report of one scale: records as frames, and verdicts, computed once."""

import functools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from repro.claims import tested
from repro.claims.catalogue import CLAIMS, LISTED, STATEMENTS
from repro.claims.evidence import NOTHING_PUBLISHED, Evidence, evidence_of, read_published
from repro.claims.judge import Judged, LayerOutcomes, judge, verdicts_of_print
from repro.claims.layers import verdicts
from repro.pages.columns import ANCHOR, EXPLORED, NGRAMS, OF_TEST, PARTS, TABLE_3, has_systems, tell_exploration
from repro.results.artifacts import read_further
from repro.results.details import SPLIT, with_brackets, with_comparisons, with_further, with_lengths, with_parts
from repro.results.frame import DataFrame, ResultSet, noted_rows, record_folders, runs_in, spread_each, whole, widened
from repro.results.measured import Measured, load
from repro.results.places import OWN, PUBLISHED
from repro.results.record import BASE, Record, path
from repro.results.sentences import read_brackets, read_counts, read_places


class Summary(NamedTuple):
    """A summary of the runs of one scale."""

    scale: str
    claim: str  # what a page of this scale may show
    n: int
    n_rows: int
    took: tuple[str, str]  # the time of training and decoding, as a number and a convenient unit


@dataclass(frozen=True, kw_only=True)
class ScaleData:
    """The records of one scale, and all that is computed from them."""

    result_set: ResultSet  # its folder also has translations and their counts, beside the records
    frames: "Mapping[str, DataFrame]"  # by table; the whole Table 3 is the last
    evidence: Evidence
    judged: Sequence[Judged]  # the claims of the paper
    stated: Sequence[Judged]  # what teaching texts say
    cache: Path | None = None  # the folder in which text is generated again to be shown; None: no text is shown

    @functools.cached_property
    def runs(self) -> Summary:
        """The summary of the runs."""
        records = sorted(self.result_set.everything, key=lambda record: (record.table, record.position))
        hours = sum(record.cost["train_seconds"] + record.cost["decode_seconds"] for record in records) / 3600
        minutes = max(round(hours * 60), 1)
        return Summary(
            scale=self.result_set.scale,
            claim=str(records[0].settings["claim"]),
            n=len(records),
            n_rows=len({(record.table, record.row) for record in records}),
            took=(f"{hours:,.1f}", "hours") if minutes >= 60 else (f"{minutes}", f"minute{'s' * (minutes != 1)}"),
        )


def scales(results: Path) -> list[Path]:
    """The folders of scales that have records."""
    return sorted(folder for folder in results.glob("*/") if folder.name != OWN.name and record_folders(folder))


def judged_without_runs(result_set: ResultSet) -> LayerOutcomes:
    """The verdicts on claims that need no run: by named tests, by measured layers, by what the paper prints.

    The printed numbers of a row are noted only at scales that ran it. They are the same at all, so all scales are read.
    """
    results = result_set.folder.parent
    layers, tests = load(results, Measured), tested.read_outcomes(results)
    noted = [noted_rows(folder) for folder in scales(results)]
    if result_set.own:  # one's own results may lack both, then the published ones are used
        layers = layers or load(PUBLISHED, Measured)
        tests = tests if tests.ran else tested.read_outcomes(PUBLISHED)
        noted = [*map(noted_rows, scales(PUBLISHED)), *noted]
    printed = {f"{table}/{row}": one.paper for rows in (*noted, result_set.rows) for (table, row), one in rows.items()}
    of_print = verdicts_of_print(printed, (*CLAIMS, *STATEMENTS))
    return {**of_print, **tested.verdicts_of_tests(LISTED, tests), **(verdicts(layers) if layers else {})}


def judged_of(result_set: ResultSet) -> tuple[Evidence, Sequence[Judged], Sequence[Judged]]:
    """What counts at a scale, and what came of the claims of the paper and of what teaching texts say."""
    published = NOTHING_PUBLISHED if result_set.own else read_published(result_set.folder, result_set.everything)
    evidence, known = evidence_of(result_set.everything, result_set.rows, published), judged_without_runs(result_set)
    return evidence, judge(evidence, known, CLAIMS), judge(evidence, known, STATEMENTS)


def scale_data(result_set: ResultSet) -> ScaleData | None:
    """Frames and verdicts of one scale; None where there is no record."""
    if not result_set.everything:
        return None
    names = [name for name, records in result_set.tables.items() if records and name != BASE]
    third = {BASE, *result_set.named(PARTS)}
    whole, *single = map(result_set.frame, [third, *({name} for name in names)])
    frames = {
        name: _with_details(frame, result_set.everything, result_set.folder.parent)
        for name, frame in zip((*names, TABLE_3), (*single, whole), strict=True)
        if frame is not None
    }
    evidence, judged, stated = judged_of(result_set)
    for frame in frames.values():
        frame.attrs[EXPLORED] = evidence.is_exploration
        if not result_set.own:
            tell_exploration(frame, evidence)
    return ScaleData(result_set=result_set, frames=frames, evidence=evidence, judged=judged, stated=stated)


def check_beside(records: Iterable[Record], results: Path) -> None:
    """Raise ValueError for a file beside these records that pages need but cannot read."""
    records = list(records)
    shows_places = any(record.system for record in records)
    for record in records:
        read_further(path(results, record), record.run)
        read_brackets(results, record)
        read_counts(results, record)
        if shows_places:
            read_places(results, record, SPLIT)


def _with_details(frame: DataFrame, records: Sequence[Record], results: Path) -> DataFrame:
    """The frame with what its page shows besides scores: details from single sentences and curves."""
    if "dev/f1" in frame.columns:
        return with_brackets(frame, records, results)
    frame = with_lengths(with_further(frame, records, results), records, results)
    frame = _with_ngrams(frame, records, results)
    return with_comparisons(with_parts(frame, records, results), records) if has_systems(frame) else frame


def _with_ngrams(frame: DataFrame, records: Iterable[Record], results: Path) -> DataFrame:
    """The frame with the components of BLEU on test; empty where a run has no counts; other tables get no columns."""
    if ANCHOR not in {*frame["table"]}:
        return frame
    lines = []
    for runs in runs_in(frame, records):
        kept = whole(read_counts(results, run, "test") if run.table == ANCHOR else None for run in runs)
        parts = [bleu_parts(*map(float, of.sum(axis=0))) for of in kept]
        lines.append(spread_each({f"{OF_TEST}/{name}": [of[i] for of in parts] for i, name in enumerate(NGRAMS)}))
    return widened(frame, lines, dtype=float) if any(line[f"{OF_TEST}/length"] for line in lines) else frame


def bleu_parts(hypothesis: float, reference: float, *grams: float) -> list[float]:
    """Precisions, brevity and length of one run in per cent, from its lengths and its n-grams, the right ones first."""
    precisions = [100 * right / of for right, of in zip(grams[:4], grams[4:], strict=True)]
    return [*precisions, 100 * math.exp(min(0.0, 1 - reference / hypothesis)), 100 * hypothesis / reference]
