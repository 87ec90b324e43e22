"""How rows compare with the base on little text and on much: each with the base that was trained on the same text."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from repro.results.frame import common, interval, whole
from repro.results.record import BASE, Record
from repro.results.task import LAST_MEAN, TRANSLATION

SCORES = ("nll", "bleu")  # of dev; the first is log PPL
Worth = Mapping[str, tuple[float, float | None]]  # by score: the mean, and half the width of its 95 % interval


class OnText(NamedTuple):
    """A row minus the base, after the same number of updates on the same text."""

    pairs: int
    n: int  # seeds that both have
    found: Worth  # by the paper's weights
    of_mean: Worth | None  # by the mean of the last checkpoints; None where a run was not scored by it


def on_texts(records: Iterable[Record]) -> dict[str, list[OnText]]:
    """Each row that translates, on each text, smallest text first; rows are named as on the smallest text.

    A row is recognised by its hyper-parameters and system. All texts are of the base's corpus and language pair. Empty
    where there is no base; a text is left out for a row that shares no seed with the base there.
    """
    finished = [one for one in records if one.status == "finished" and one.about == TRANSLATION]
    base = next((one for one in finished if one.table == BASE), None)
    if base is None:
        return {}
    runs: dict[str, dict[int, dict[int, Record]]] = {}
    names: dict[str, str] = {}
    for one in sorted(finished, key=lambda one: (one.corpus["n_train"], one.table, one.position, one.seed)):
        if (one.corpus["name"], one.pair) == (base.corpus["name"], base.pair):
            names.setdefault(_what(one), one.row)
            runs.setdefault(_what(one), {}).setdefault(one.corpus["n_train"], {})[one.seed] = one
    of_base = runs.pop(_what(base))
    found = {
        names[what]: [
            OnText(pairs, len(both), _differences(both, "dev") or {}, _differences(both, next(iter(LAST_MEAN))))
            for pairs, of in by_text.items()
            if (both := common(of, of_base.get(pairs, {})))
        ]
        for what, by_text in runs.items()
    }
    return {name: of for name, of in found.items() if of}


def _what(record: Record) -> str:
    return json.dumps([record.hyper, record.system], sort_keys=True)


def _differences(both: Sequence[tuple[Record, Record]], split: str) -> Worth | None:
    """Each score's mean difference and its interval; None where a run lacks one of the scores."""
    found = {}
    for score in SCORES:
        ours, base = (whole(run.score(split, score) for run in runs) for runs in zip(*both, strict=True))
        if not (ours and base):
            return None
        found[score] = interval([one - other for one, other in zip(ours, base, strict=True)])
    return found
