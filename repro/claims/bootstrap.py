"""How much a difference in BLEU depends on which sentences were translated: sacreBLEU's paired bootstrap.

An interval over seeds asks what other runs of the same two rows would have shown on these sentences. This interval asks
what the same runs would have shown on other sentences of the kind. Neither includes the other; the wider one says
whether seeds or sentences are too few. The draws are those of `repro/results/resampled.py`.
"""

import functools
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from repro.claims.claim import Kind
from repro.claims.evidence import Evidence
from repro.claims.judge import Judged
from repro.results.parts import Floats, Interval, over_draws, resampled
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
        self, better: Sequence[RunKey], worse: Sequence[RunKey], split: str = "dev", score: str = "bleu"
    ) -> Interval | None:
        """Mean over the runs of one row minus that of another, under resampling of the sentences that all share.

        All runs of both rows see the same draws, so with the same seeds in both this is the mean of the seeds' paired
        differences. None where a run has no counts by this scorer. Raises ValueError for runs of several texts.
        """
        if any(score not in self._runs.get(run, {}).get(split, {}) for run in (*better, *worse)):
            return None
        sizes = {len(self._runs[run][split][score].hypothesis) for run in (*better, *worse)}
        if len(sizes) > 1:
            raise ValueError(f"Over sentences: expected runs of one text, got {sizes} sentences of {split}.")
        row, other = ([self._bleu(run, split, score) for run in side] for side in (better, worse))
        return over_draws(row, max(sizes), other)

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
    fresh, explored = evidence.taken(), evidence.explored()
    found = {}
    for one in judged:
        taken = fresh if {*one.claim.rows} <= fresh.keys() else explored
        runs = [[run_key(run) for run in taken.get(row, []) if run.status == "finished"] for row in one.claim.rows]
        if one.claim.kind not in DIFFERENCES or not all(runs):
            continue
        for endpoint in one.claim.endpoints:
            interval = endpoint.score in SMOOTHED and over(runs[0], runs[1], endpoint.split, endpoint.score)
            if interval:
                found[one.claim.id, endpoint.name] = interval
    return found
