"""How far each row is from the base, in the numbers of the verdicts: where a claim compares the two, in its own.

A row that no claim compares with the base has a difference of the same kind: between the runs that a look takes, with
the spread that is pooled over the rows of the claims, or its own where that is larger.
"""

import functools
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from repro.claims.bootstrap import DIFFERENCES
from repro.claims.catalogue import CLAIMS
from repro.claims.claim import B0, Endpoint
from repro.claims.decisions import LOOKS, Look, unfit
from repro.claims.evidence import Evidence, unlike
from repro.claims.judge import Found, Judged, noise_of, suite
from repro.claims.statistics import difference, noise_of_row
from repro.results.record import Record

Runs = Mapping[str, Sequence[Record]]  # by "table/row"
Interval = tuple[float, float]
JUDGED_CLAIMS = tuple(claim for claim in CLAIMS if claim.is_trained)


@dataclass(frozen=True, kw_only=True)
class ToBase:
    """A row less the base by one score: above zero where the row is better."""

    value: float
    over_seeds: Interval | None  # 95 %; None where the runs do not count, or cannot be compared
    runs: tuple[Sequence[Record], Sequence[Record]]  # of the row and of the base, that the value is the difference of
    counts: bool  # whether these may settle a claim; if not they are all that there are
    claim: str = ""  # whose numbers these are


class Distances:
    """The rows of one scale against its base."""

    def __init__(self, evidence: Evidence, judged: Iterable[Judged]) -> None:
        """`judged` are the claims of all pages, each with its numbers: of two that compare the same, the first."""
        self._judged = [one for one in judged if one.claim.kind in DIFFERENCES and B0 in one.claim.rows]
        self._suite = functools.cache(lambda look: suite(evidence, look))
        self._noise = functools.cache(lambda look, one: noise_of(self._suite(look), one, JUDGED_CLAIMS))
        self._looks = [(look, evidence.at(look)) for look in reversed(LOOKS)]
        everything = [*evidence.records, *(record for record, _ in evidence.apart)]
        self._everything: dict[str, list[Record]] = {}
        for record in sorted(everything, key=lambda one: one.seed):
            if not record.stamp["dirty"]:
                self._everything.setdefault(f"{record.table}/{record.row}", []).append(record)

    def __call__(self, row: str, endpoint: Endpoint) -> ToBase | None:
        """Of "table/row"; None where it or the base has no finished run with this score."""
        look, taken = next(((look, of) for look, of in self._looks if {row, B0} <= of.keys()), (None, {}))
        runs = _with_score(taken, row, endpoint)
        if not (counts := look is not None and all(runs)):
            runs = _with_score(self._everything, row, endpoint)
        if not all(runs):
            return None
        if claimed := next(self._claimed(row, endpoint), None):
            return replace(claimed, runs=runs)
        ours, base = ([score for run in of if (score := endpoint.of(run)) is not None] for of in runs)
        value = statistics.fmean(ours) - statistics.fmean(base)
        over_seeds = self._interval(row, endpoint, look, taken) if look and counts else None
        return ToBase(value=value, over_seeds=over_seeds, runs=runs, counts=counts)

    def _claimed(self, row: str, endpoint: Endpoint) -> Iterator[ToBase]:
        """What claims say that compare the row with the base, first those with an interval."""
        said = [
            (one, found)
            for one in self._judged
            for found in one.found
            if {*one.claim.rows} == {row, B0} and found.endpoint == endpoint and found.value is not None
        ]
        for one, found in sorted(said, key=lambda pair: pair[1].low is None):
            yield _turned(found, one.claim.id, is_better=one.claim.rows[0] == row)

    def _interval(self, row: str, endpoint: Endpoint, look: Look, taken: Runs) -> Interval | None:
        """By the rules of a claim: none of rows that are unfit, that differ in more than they say, or do not vary."""
        at, noise = self._suite(look), self._noise(look, endpoint)
        pair = {one: at.runs[endpoint.name][one] for one in (row, B0)}
        if unfit(pair) or unlike({one: taken[one] for one in pair}):
            return None
        values = {one: of.values for one, of in pair.items()}
        own = noise_of_row(values[row], replace(noise, wide=(row,)), row)
        if row not in noise.by_itself and own.variance > noise.variance:
            noise = replace(noise, wide=(*noise.wide, row))
        is_varied = any(noise_of_row(values[one], noise, one).variance for one in pair)
        return difference(values, row, B0, noise).interval() if is_varied else None


def _with_score(runs: Runs, row: str, endpoint: Endpoint) -> tuple[list[Record], list[Record]]:
    """The runs of a row and of the base that have the score."""
    ours, base = ([run for run in runs.get(one, ()) if endpoint.of(run) is not None] for one in (row, B0))
    return ours, base


def _turned(found: Found, claim: str, *, is_better: bool) -> ToBase:
    """The numbers of a claim, of which the difference is positive where the paper is right, as row less base."""
    value, low, high = found.value, found.low, found.high
    assert value is not None  # `_claimed` takes no other
    over_seeds = None if low is None or high is None else (low, high) if is_better else (-high, -low)
    return ToBase(
        value=value if is_better else -value,
        over_seeds=over_seeds,
        runs=((), ()),
        counts=not found.explored,
        claim=claim,
    )
