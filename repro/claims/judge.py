"""What the records of one scale say to each claim of the paper. Paper: all of it.

A claim about trained rows is judged once three seeds of each are there, on log PPL first and BLEU second, at the
smallest scale that may judge it or a larger one; an arithmetic claim by the paper's own print; a structural one by
named tests. The claims of a table share one error rate. The rules in words: docs/claims.md.
"""

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from repro.claims.catalogue import CLAIMS, SCALE_ORDER
from repro.claims.claim import Claim, Endpoint
from repro.claims.decisions import (
    Best,
    Direction,
    Equivalence,
    Magnitude,
    Outcome,
    PointValue,
    Tested,
    Trend,
    Verdict,
    judged,
    unfit,
)
from repro.claims.statistics import (
    ALPHA,
    Contrast,
    Noise,
    Sample,
    contrast,
    pool,
    sample,
    slope_weights,
)
from repro.results.frame import Rows
from repro.results.record import PaperNumbers, Record

OUTCOMES: tuple[Outcome, ...] = ("reproduced", "contradicted", "inconclusive", "unstable", "not judged")
NO_ROWS: Rows = MappingProxyType({})
LayerOutcomes = Mapping[str, tuple[Outcome, str]]  # claim -> its verdict and the evidence
NOTHING_MEASURED: LayerOutcomes = MappingProxyType({})


@dataclass(frozen=True, kw_only=True)
class Found:
    """The numbers of one claim on one endpoint. A positive difference is what the paper says."""

    endpoint: Endpoint
    runs: tuple[int, ...]  # finished ones of each row
    verdict: Verdict
    value: float | None = None  # difference, slope per doubling, or mean
    low: float | None = None  # 95 % t-interval over seeds
    high: float | None = None
    printed: float | None = None  # the paper's number for `value`
    level: float | None = None  # that Holm's procedure gave; None outside it
    diverged: str = ""  # which runs, in words


@dataclass(frozen=True, kw_only=True)
class Judged:
    """A claim, what came out, and why."""

    claim: Claim
    verdict: Outcome
    reason: str
    found: tuple[Found, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Suite:
    """The runs of one scale, "table/row" by endpoint, and what the paper prints for the rows."""

    scale: str
    runs: Mapping[str, Mapping[str, Sample]]  # name of an endpoint -> "table/row" -> its runs
    printed: Mapping[str, PaperNumbers]

    def samples(self, claim: Claim, endpoint: Endpoint) -> dict[str, Sample]:
        """The rows of a claim; an absent one has no runs."""
        return {row: self.runs[endpoint.name].get(row, Sample(values=())) for row in claim.rows}


# From records to verdicts


def judge(records: Iterable[Record], rows: Rows = NO_ROWS, measured: LayerOutcomes = NOTHING_MEASURED) -> list[Judged]:
    """Every claim with its verdict, in the paper's order. Runs of uncommitted code are left out.

    `rows` are those whose printed numbers are known without a run; `measured` are the verdicts on layers, from
    Table 1. Raises ValueError where the records are of several scales, or hold a seed twice.
    """
    found = judge_suite(suite([record for record in records if not record.stamp["dirty"]], rows))
    return [
        Judged(claim=one.claim, verdict=measured[one.claim.id][0], reason=measured[one.claim.id][1])
        if one.claim.id in measured
        else one
        for one in found
    ]


def suite(records: Sequence[Record], rows: Rows = NO_ROWS) -> Suite:
    """The numbers of these records on every endpoint that a claim looks at."""
    scales = sorted({record.scale for record in records})
    if len(scales) > 1:
        raise ValueError(f"Claims: expected records of one scale, got {', '.join(scales)}. Judge each by itself.")
    by_row: dict[str, list[Record]] = {}
    for record in records:
        by_row.setdefault(f"{record.table}/{record.row}", []).append(record)
    endpoints = {endpoint.name: endpoint for claim in CLAIMS for endpoint in claim.endpoints}
    return Suite(
        scale=scales[0] if scales else SCALE_ORDER[0],
        runs={
            name: {row: sample(row, [(run.seed, one.of(run)) for run in runs]) for row, runs in by_row.items()}
            for name, one in endpoints.items()
        },
        printed={f"{table}/{row}": listed.paper for (table, row), listed in rows.items()}
        | {row: runs[0].paper for row, runs in by_row.items()},
    )


def judge_suite(suite: Suite, claims: Sequence[Claim] = CLAIMS) -> list[Judged]:
    """Every claim with its verdict."""
    trained = [claim for claim in claims if claim.is_trained]
    noise = {one.name: _noise(suite, one, trained) for claim in trained for one in claim.endpoints}
    cells = {
        (claim.id, one.name): _look(suite, claim, one, noise[one.name]) for claim in trained for one in claim.endpoints
    }
    for table in {claim.table for claim in trained}:
        _judge_family(cells, suite, [claim for claim in trained if claim.table == table])
    return [
        _combined(claim, [cells[claim.id, one.name].found for one in claim.endpoints])
        if claim.is_trained
        else _untrained(claim, suite)
        for claim in claims
    ]


def may_judge(scale: str, claim: Claim) -> bool:
    """Whether a scale is large enough; of "laptop-en-fr" the first part counts. An unknown one judges as `smoke`."""
    first = scale.split("-")[0]
    return SCALE_ORDER.index(first if first in SCALE_ORDER else SCALE_ORDER[0]) >= SCALE_ORDER.index(claim.scale)


@dataclass
class _Cell:
    """One claim on one endpoint on its way: what was found, and the test that is still to be given a level."""

    found: Found
    test: Tested | None = None


def _noise(suite: Suite, endpoint: Endpoint, claims: Iterable[Claim]) -> Noise:
    """The spread of this endpoint, pooled over all rows that a claim looks at by it."""
    rows = {row for claim in claims if endpoint in claim.endpoints for row in claim.rows}
    return pool({row: runs.values for row, runs in sorted(suite.runs[endpoint.name].items()) if row in rows})


def _look(suite: Suite, claim: Claim, endpoint: Endpoint, noise: Noise) -> _Cell:
    """The numbers; the verdict too, where it needs no family."""
    samples = suite.samples(claim, endpoint)
    counts = tuple(len(runs.values) for runs in samples.values())
    weights = _weights(claim, endpoint)
    paper = [endpoint.printed(suite.printed[row]) if row in suite.printed else None for row in claim.rows]
    printed = _sum(weights, paper)
    means = [statistics.fmean(runs.values) if runs.values else None for runs in samples.values()]

    def cell(verdict: Verdict, total: Contrast | None = None, test: Tested | None = None) -> _Cell:
        low, high = total.interval() if total else (None, None)
        found = Found(
            endpoint=endpoint,
            runs=counts,
            verdict=verdict,
            value=_sum(weights, means),
            low=low,
            high=high,
            printed=printed,
            diverged=_diverged(samples),
        )
        return _Cell(found, test)

    refused = _refusal(samples, noise)
    values = {row: runs.values for row, runs in samples.items()}
    total = contrast(values, claim.rows, weights, noise) if weights and not refused else None
    if not may_judge(suite.scale, claim):
        or_larger = " or a larger one" * (claim.scale != SCALE_ORDER[-1])
        return cell(_not_judged(f"needs scale {claim.scale}{or_larger}"), total)
    if refused:
        return cell(refused)
    if claim.kind == "best of family":
        return cell(Best(rows=values, named=claim.named, noise=noise).verdict(ALPHA / len(claim.endpoints)))
    if total is None or printed is None:
        return cell(_not_judged("the paper prints no number for it"), total)
    if claim.kind == "magnitude":
        return cell(Magnitude(contrast=total, reported=printed).verdict(), total)
    if claim.kind == "point value":
        return cell(PointValue(contrast=total, reported=printed, widest=endpoint.widest).verdict(), total)
    return cell(_not_judged("not tested"), total, _test(claim, endpoint, suite.scale, total, printed))


def _diverged(samples: Mapping[str, Sample]) -> str:
    """seed 3 of h=1"""
    named = [(_row(row), runs.diverged) for row, runs in samples.items() if runs.diverged]
    return ", ".join(f"seed {', '.join(map(str, seeds))} of {row}" for row, seeds in named)


def _weights(claim: Claim, endpoint: Endpoint) -> tuple[float, ...]:
    """What makes one number of the means of its rows; none for a family, which is looked at pair by pair."""
    if claim.kind == "trend":
        return tuple(slope_weights(claim.sizes))
    if claim.kind == "point value":
        return (float(endpoint.sign),)  # as it is printed
    return () if claim.kind == "best of family" else (1.0, -1.0)


def _sum(weights: Sequence[float], values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    if not weights or len(known) < len(values):
        return None
    return sum(weight * value for weight, value in zip(weights, known, strict=True))


def _refusal(samples: Mapping[str, Sample], noise: Noise) -> Verdict | None:
    """Why these rows cannot be judged, if they cannot."""
    if missing := [_row(row) for row, runs in samples.items() if not runs.values and not runs.diverged]:
        return _not_judged(f"no run of {', '.join(missing)}")
    if verdict := unfit({_row(row): runs for row, runs in samples.items()}):
        return verdict
    return None if noise.variance else _not_judged("every seed gave the same number")


def _test(claim: Claim, endpoint: Endpoint, scale: str, total: Contrast, printed: float) -> Tested:
    if claim.kind == "equivalence":
        return Equivalence(contrast=total, margin=endpoint.margin, reported=printed)
    if claim.kind == "trend":
        return Trend(contrast=total, reported=printed)
    return Direction(contrast=total, reported=printed, sized=scale.split("-")[0] == SCALE_ORDER[-1])


def _judge_family(cells: Mapping[tuple[str, str], _Cell], suite: Suite, claims: Iterable[Claim]) -> None:
    """Give the claims of one table their levels, both endpoints together, and with them their verdicts.

    The family is what this scale may judge, run or not: a claim whose rows are missing keeps its place.
    """
    tested = ("direction", "equivalence", "trend")
    family = [
        cells[claim.id, one.name]
        for claim in claims
        if claim.kind in tested and may_judge(suite.scale, claim)
        for one in claim.endpoints
    ]
    for cell, result in zip(family, judged([cell.test for cell in family]), strict=True):
        if result:
            verdict, level = result
            cell.found = replace(cell.found, verdict=verdict, level=level)


def _combined(claim: Claim, found: Sequence[Found]) -> Judged:
    """One verdict of two endpoints: what either shows, unless they show opposite things."""
    outcomes = {one.verdict.outcome for one in found}
    reasons = {one.endpoint.name: one.verdict.reason for one in found}
    if outcomes <= {"not judged", "unstable"} and len({*reasons.values()}) == 1:
        reason = found[0].verdict.reason
    else:
        reason = "; ".join(f"{name} {text}" for name, text in reasons.items())
    if found[0].diverged and "unstable" not in outcomes:
        reason += f" (diverged, so in no mean: {found[0].diverged})"
    order: tuple[Outcome, ...] = ("unstable", "reproduced", "contradicted", "inconclusive", "not judged")
    verdict = next(outcome for outcome in order if outcome in outcomes)
    if {"reproduced", "contradicted"} <= outcomes:
        verdict, reason = "inconclusive", f"the endpoints disagree: {reason}"
    return Judged(claim=claim, verdict=verdict, reason=reason, found=tuple(found))


def _untrained(claim: Claim, suite: Suite) -> Judged:
    """Claims that need no training: by arithmetic, by tests, or not here."""
    if claim.compute:
        if absent := [_row(row) for row in claim.rows if row not in suite.printed]:
            reason = f"no run of {', '.join(absent)}, which brings what is printed"
            return Judged(claim=claim, verdict="not judged", reason=reason)
        holds, text = claim.compute(suite.printed)
        return Judged(claim=claim, verdict=_holds(holds), reason=text)
    if claim.tests:
        return Judged(claim=claim, verdict=_holds(claim.holds), reason=", ".join(claim.tests))
    return Judged(claim=claim, verdict="not judged", reason=claim.missing)


def _holds(statement: bool) -> Outcome:
    return "reproduced" if statement else "contradicted"


def _not_judged(reason: str) -> Verdict:
    return Verdict(outcome="not judged", reason=reason)


def _row(row: str) -> str:
    return row.split("/", 1)[1]
