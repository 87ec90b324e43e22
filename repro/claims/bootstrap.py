"""How much a difference in BLEU depends on which sentences were translated: sacreBLEU's paired bootstrap.

An interval over seeds asks what other runs of the same two rows would have shown on these sentences. This interval asks
what the same runs would have shown on other sentences of the kind. Neither includes the other; the wider one says
whether seeds or sentences are too few. The draws are those of `repro/results/resampled.py`.
"""

import functools
from collections.abc import Iterable, Mapping
from pathlib import Path

from repro.claims.claim import Kind
from repro.claims.evidence import Evidence
from repro.claims.judge import Judged
from repro.results.resampled import Floats, Interval, over_draws, resampled
from repro.results.sentences import SMOOTHED, RunKey, Scorers, bleu, counts_of_runs, run_key

Place = tuple[str, str]  # the id of a claim, the name of an endpoint
DIFFERENCES: tuple[Kind, ...] = ("direction", "equivalence")  # claims about two rows, the better first


class OverSentences:
    """The runs of one scale under the same draws of sentences; each run is scored once for all comparisons."""

    def __init__(self, runs: Mapping[RunKey, Mapping[str, Scorers]]) -> None:
        """`runs` are the counts of runs by split and scorer (`repro.results.sentences.counts_of_runs`)."""
        self._runs = runs
        self._scored: dict[tuple[RunKey, str, str], Floats] = {}

    def __call__(
        self, better: Iterable[RunKey], worse: Iterable[RunKey], split: str = "dev", score: str = "bleu"
    ) -> Interval | None:
        """Mean over the runs of one row minus that of another, under resampling of the sentences that all share.

        All runs of both rows see the same draws, so with the same seeds in both this is the mean of the seeds' paired
        differences. None where a run has no counts by this scorer. Raises ValueError for runs with different numbers of
        sentences, which are not of one text, and for a row without a run.
        """
        sides = [*better], [*worse]
        if not all(sides):
            raise ValueError(
                "Over sentences: expected runs of two rows, got no run of one row. Give at least one of each."
            )
        if any(score not in self._runs.get(run, {}).get(split, {}) for side in sides for run in side):
            return None
        sizes = {len(self._runs[run][split][score].hypothesis) for side in sides for run in side}
        if len(sizes) > 1:
            raise ValueError(f"Over sentences: expected runs of one text, got {sizes} sentences of {split}.")
        row, other = ([self._bleu(run, split, score) for run in side] for side in sides)
        [n_sentences] = sizes
        return over_draws(row, n_sentences, other)

    def _bleu(self, run: RunKey, split: str, score: str) -> Floats:
        """BLEU of a run on all sentences, then on each resample of them, [1 + R]."""
        key = (run, split, score)
        if key not in self._scored:
            summands = self._runs[run][split][score].summands
            self._scored[key] = resampled(summands, functools.partial(bleu, smoothed=SMOOTHED[score]))
        return self._scored[key]


def over_sentences(judged: Iterable[Judged], evidence: Evidence, results: Path) -> dict[Place, Interval]:
    """The intervals of the differences between two rows, by claim and endpoint, from the same runs as its numbers.

    `results` is the folder of the records, with their counts beside them. Differences not in BLEU, and those for which
    a run lacks counts, are left out.
    """
    over = OverSentences(counts_of_runs(results, evidence.records))
    found = {}
    for one in judged:
        if one.claim.kind not in DIFFERENCES or not all(seen := _runs(evidence, one)):
            continue
        for endpoint in one.claim.endpoints:
            if endpoint.score in SMOOTHED and (interval := over(*seen, endpoint.split, endpoint.score)):
                found[one.claim.id, endpoint.name] = interval
    return found


def _runs(evidence: Evidence, one: Judged) -> tuple[list[RunKey], list[RunKey]]:
    """The finished runs of the better and of the worse row behind its numbers."""
    fresh = evidence.taken()
    taken = fresh if {*one.claim.rows} <= fresh.keys() else evidence.explored()
    better, worse = (taken.get(row, []) for row in one.claim.rows)
    finished = ([run_key(record) for record in of if record.status == "finished"] for of in (better, worse))
    return next(finished), next(finished)
