"""What the records of one scale say to each claim of the paper. Paper: all of it.

A claim about trained rows is judged on the evidence (`evidence.py`) at the looks declared before the runs, on log PPL
first and BLEU second, at the smallest scale that may judge it or a larger one; an arithmetic claim by the paper's own
print; a structural one by named tests. The claims of a page share one error rate. The rules in words: docs/claims.md.
"""

import itertools
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from repro.claims.catalogue import CLAIMS, SCALE_ORDER
from repro.claims.claim import B0, Claim, Endpoint
from repro.claims.decisions import (
    LOOKS,
    OF_HOUSE,
    OF_PRINT,
    OF_SIGN,
    OF_SIZE,
    Best,
    Equivalence,
    Look,
    Magnitude,
    Outcome,
    PointValue,
    Sign,
    Tested,
    Verdict,
    judged,
    unfit,
)
from repro.claims.evidence import Evidence, gather, needed, unlike
from repro.claims.lists import held, lists
from repro.claims.statistics import (
    Contrast,
    Noise,
    Sample,
    contrast,
    noise_of_row,
    pool,
    sample,
    slope_weights,
)
from repro.claims.tested import NOT_RUN
from repro.results.frame import NO_ROWS, Rows
from repro.results.record import PaperNumbers, Record

LayerOutcomes = Mapping[str, tuple[Outcome, str]]  # claim -> its verdict and the evidence
NOTHING_MEASURED: LayerOutcomes = MappingProxyType({})
BY_P_VALUE = ("direction", "equivalence", "trend")
SETTLES_NOTHING: frozenset[Outcome] = frozenset({"not judged", "not testable here", "unstable"})
# in the order of a page; of two endpoints the first is what a claim's verdict is
OUTCOMES: tuple[Outcome, ...] = (
    *("unstable", *OF_SIZE, *OF_SIGN, *OF_PRINT[:2], *OF_HOUSE[:2]),
    *("not testable here", "not judged"),
)


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
    df: float | None = None  # degrees of freedom that the interval rests on
    wider: tuple[str, ...] = ()  # rows but the base whose seeds differ more than others do: their own spread counts
    steps: tuple[float, ...] = ()  # of a trend, from each row to the next
    diverged: str = ""  # which runs, in words
    explored: bool = False  # `value` is of runs that do not count, for want of others


@dataclass(frozen=True, kw_only=True)
class Judged:
    """A claim, what came out, and why."""

    claim: Claim
    verdict: Outcome
    reason: str
    found: tuple[Found, ...] = ()
    look: Look | None = None  # at which it was judged; None: it was not, or needs no runs
    sentence_here: str = ""  # the claim's sentence with the sizes of this scale

    @property
    def sentence(self) -> str:
        """What a page says of it."""
        return self.sentence_here or self.claim.sentence


@dataclass(frozen=True, kw_only=True)
class Suite:
    """The runs of one scale that a look takes, by "table/row", and what the paper prints for the rows."""

    scale: str
    runs: Mapping[str, Mapping[str, Sample]]  # name of an endpoint -> "table/row" -> its runs
    printed: Mapping[str, PaperNumbers]
    look: Look = LOOKS[-1]
    records: Mapping[str, Sequence[Record]] = field(default_factory=dict)  # those behind the numbers
    waiting: Mapping[str, int] = field(default_factory=dict)  # rows with too few seeds for the look: how many
    explored: Mapping[str, Mapping[str, float]] = field(default_factory=dict)  # as `runs`: means of all runs there are

    @property
    def sized(self) -> bool:
        """Whether the paper's sizes mean something here."""
        return may_judge_sizes(self.scale)

    def samples(self, claim: Claim, endpoint: Endpoint) -> dict[str, Sample]:
        """The rows of a claim; an absent one has no runs."""
        return {row: self.runs[endpoint.name].get(row, Sample(values=())) for row in claim.rows}


# From records to verdicts


def evidence_of(records: Iterable[Record], rows: Rows = NO_ROWS) -> Evidence:
    """The runs that count, each for the claims of its list; `rows` are those of the experiments."""
    return gather(records, lists(), rows)


def judge(
    evidence: Evidence,
    rows: Rows = NO_ROWS,
    measured: LayerOutcomes = NOTHING_MEASURED,
    claims: Sequence[Claim] = CLAIMS,
) -> list[Judged]:
    """Every claim with its verdict, in the paper's order: at the last look that its rows have the seeds for.

    The `claims` share one error rate, that of their page.
    `rows` are those of which the printed numbers and the sizes are known without a run; `measured` are the verdicts
    that no run settles: on layers, from Table 1, by tests that were run, by printed numbers. Raises ValueError where
    the records are of several scales.
    """
    looks = [judge_suite(suite(evidence, look, rows), claims) for look in LOOKS]
    latest = [next((one for one in reversed(of) if _has_runs(one)), of[0]) for of in zip(*looks, strict=True)]
    known = {f"{table}/{row}": listed.here for (table, row), listed in rows.items() if listed.here}  # though not run
    known |= {f"{run.table}/{run.row}": run.hyper for run in (*(run for run, _ in evidence.apart), *evidence.records)}
    return [
        Judged(claim=one.claim, verdict=measured[one.claim.id][0], reason=measured[one.claim.id][1])
        if one.claim.id in measured
        else replace(one, sentence_here=one.claim.sentence_here(known))
        for one in latest
    ]


def _has_runs(one: Judged) -> bool:
    """Whether the look had runs of every row of a claim."""
    return bool(one.found) and all(all(found.runs) or found.diverged for found in one.found)


def suite(evidence: Evidence, look: Look = LOOKS[-1], rows: Rows = NO_ROWS) -> Suite:
    """The numbers of the runs that a look takes, on every endpoint that a claim looks at."""
    everything = [*evidence.records, *(record for record, _ in evidence.apart)]
    scales = sorted({record.scale for record in everything})
    if len(scales) > 1:
        raise ValueError(f"Claims: expected records of one scale, got {', '.join(scales)}. Judge each by itself.")
    taken = evidence.at(look)
    named = {f"{record.table}/{record.row}": record.paper for record in everything}
    endpoints = {endpoint.name: endpoint for claim in CLAIMS for endpoint in claim.endpoints}
    return Suite(
        scale=scales[0] if scales else SCALE_ORDER[0],
        runs={
            name: {
                row: sample(row, [(run.seed, one.of(run)) for run in runs if one.is_told(run)])
                for row, runs in taken.items()
            }
            for name, one in endpoints.items()
        },
        printed={f"{table}/{row}": listed.paper for (table, row), listed in rows.items()} | named,
        look=look,
        records=taken,
        waiting={row: evidence.count(row) for row in named if row not in taken},
        explored={name: _means(everything, one) for name, one in endpoints.items()},
    )


def _means(records: Iterable[Record], endpoint: Endpoint) -> dict[str, float]:
    """By "table/row" over all runs that have the score, of committed code, whether they count or not."""
    found: dict[str, list[float]] = {}
    for record in records:
        if (value := endpoint.of(record)) is not None and not record.stamp["dirty"]:
            found.setdefault(f"{record.table}/{record.row}", []).append(value)
    return {row: statistics.fmean(values) for row, values in found.items()}


def judge_suite(suite: Suite, claims: Sequence[Claim] = CLAIMS) -> list[Judged]:
    """Every claim with its verdict at one look."""
    trained = [claim for claim in claims if claim.is_trained]
    endpoints = {one.name: one for claim in trained for one in claim.endpoints}
    noise = {name: noise_of(suite, one, trained) for name, one in endpoints.items()}
    family = [(claim, one) for claim in trained if may_judge(suite.scale, claim) for one in claim.endpoints]
    level = suite.look.alpha / max(1, len(family))
    cells = {
        (claim.id, one.name): _look(suite, claim, one, noise[one.name], level)
        for claim in trained
        for one in claim.endpoints
    }
    _judge_family([cells[claim.id, one.name] for claim, one in family if claim.kind in BY_P_VALUE], suite, len(family))
    return [
        _combined(claim, [cells[claim.id, one.name].found for one in claim.endpoints], suite)
        if claim.is_trained
        else _untrained(claim, suite)
        for claim in claims
    ]


def noise_of(suite: Suite, endpoint: Endpoint, claims: Iterable[Claim]) -> Noise:
    """The spread of this endpoint, pooled over all rows that a claim looks at by it; the base keeps its own."""
    rows = {row for claim in claims if endpoint in claim.endpoints for row in claim.rows}
    found = {row: runs.values for row, runs in sorted(suite.runs[endpoint.name].items()) if row in rows}
    return pool(found, reference=B0)


def may_judge(scale: str, claim: Claim) -> bool:
    """Whether a scale is large enough."""
    return place_of_scale(scale) >= SCALE_ORDER.index(claim.scale)


def place_of_scale(scale: str) -> int:
    """In `SCALE_ORDER`; of "laptop-en-fr" the first part counts. An unknown one judges as `smoke`."""
    first = scale.split("-")[0]
    return SCALE_ORDER.index(first if first in SCALE_ORDER else SCALE_ORDER[0])


def may_judge_sizes(scale: str) -> bool:
    """Whether the paper's sizes mean something there: only where its model and its text are."""
    return scale.split("-")[0] == SCALE_ORDER[-1]


@dataclass
class _Cell:
    """One claim on one endpoint on its way: what was found, and the test that is still to be given a level."""

    found: Found
    test: Tested | None = None


def _look(suite: Suite, claim: Claim, endpoint: Endpoint, noise: Noise, level: float) -> _Cell:
    """The numbers; the verdict too, where it needs no p-value."""
    samples = suite.samples(claim, endpoint)
    values = {row: runs.values for row, runs in samples.items()}
    weights = _weights(claim, endpoint)
    refused = _refusal(suite, claim, samples, noise)
    total = contrast(values, claim.rows, weights, noise) if weights and not refused else None
    found = _found(suite, claim, endpoint, noise, total)
    if not may_judge(suite.scale, claim):
        or_larger = " or a larger one" * (claim.scale != SCALE_ORDER[-1])
        outcome: Verdict | Tested = _not_judged(f"needs scale {claim.scale}{or_larger}")
    elif refused:
        outcome = refused
    elif claim.kind == "best of family":
        outcome = Best(rows=values, named=claim.named, noise=noise, sized=suite.sized).verdict(level)
    else:
        outcome = _outcome(claim, endpoint, suite, total, found.printed, level)
    if isinstance(outcome, Verdict):
        return _Cell(replace(found, verdict=outcome))
    return _Cell(found, outcome)


def _found(suite: Suite, claim: Claim, endpoint: Endpoint, noise: Noise, total: Contrast | None) -> Found:
    """What the runs of its rows came to; where a row has none that counts, what those of exploration came to."""
    samples, weights = suite.samples(claim, endpoint), _weights(claim, endpoint)
    paper = [endpoint.printed(suite.printed[row]) if row in suite.printed else None for row in claim.rows]
    means = [statistics.fmean(runs.values) if runs.values else None for runs in samples.values()]
    if is_explored := None in means:
        explored = suite.explored.get(endpoint.name, {})
        means = [explored.get(row) for row in claim.rows]
    low, high = total.interval() if total else (None, None)
    return Found(
        endpoint=endpoint,
        runs=tuple(len(runs.values) for runs in samples.values()),
        verdict=_not_judged("not tested"),
        value=_sum(weights, means),
        low=low,
        high=high,
        printed=_sum(weights, paper),
        df=total.df if total else None,
        wider=tuple(row for row in claim.rows if row in noise.by_itself and row != noise.reference),
        steps=_steps(means) if claim.kind == "trend" else (),
        diverged=_diverged(samples),
        explored=is_explored and None not in means,
    )


def _outcome(
    claim: Claim, endpoint: Endpoint, suite: Suite, total: Contrast | None, printed: float | None, level: float
) -> Verdict | Tested:
    """The verdict on one number of several rows, or the test that waits for a level."""
    if total and claim.kind == "direction":  # of which the paper need not print a size
        return Sign(contrast=total, reported=printed, sized=suite.sized)
    if total is None or printed is None:
        return _not_judged("the paper prints no number for it")
    if claim.kind == "magnitude":
        return Magnitude(contrast=total, reported=printed).verdict(level)
    if claim.kind == "point value":
        return PointValue(contrast=total, reported=printed, widest=endpoint.widest).verdict(level)
    if claim.kind == "equivalence":
        return Equivalence(contrast=total, margin=endpoint.margin, reported=printed)
    return Sign(contrast=total, reported=printed, sized=suite.sized, of="least-squares slope per doubling")


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


def _steps(means: Sequence[float | None]) -> tuple[float, ...]:
    """From each row to the next; none where a row has no mean."""
    known = [mean for mean in means if mean is not None]
    return tuple(after - before for before, after in itertools.pairwise(known)) if len(known) == len(means) else ()


def _refusal(suite: Suite, claim: Claim, samples: Mapping[str, Sample], noise: Noise) -> Verdict | None:
    """Why these rows cannot be judged, if they cannot."""
    if missing := [row for row, runs in samples.items() if not runs.values and not runs.diverged]:
        counts = [
            f"{_row(row)} without this score"
            if row in suite.records
            else f"{_row(row)} {suite.waiting.get(row, 0)} of {needed(row, suite.look)}"
            for row in missing
        ]
        return _not_judged(f"too few runs that count: {', '.join(counts)}")
    if verdict := unfit({_row(row): runs for row, runs in samples.items()}):
        return verdict
    records = {row: suite.records[row] for row in claim.rows if row in suite.records}
    if late := sum(not held(run.claims, claim) for of in records.values() for run in of):
        return _not_judged(f"{late} of its runs began before the claim was listed as it stands")
    if records and (different := unlike(records)):
        return _not_judged(f"its rows differ in {', '.join(different)}")
    if claim.needs and records and (unmet := claim.needs.unmet(records[claim.needs.row])):
        return Verdict(outcome="not testable here", reason=unmet)
    fixed = [row for row, runs in samples.items() if not noise_of_row(runs.values, noise, row).variance]
    no_error = len(fixed) > 1 if claim.kind == "best of family" else len(fixed) == len(samples)
    return _not_judged("every seed gave the same number") if no_error else None


def _judge_family(cells: Sequence[_Cell], suite: Suite, m: int) -> None:
    """Give the claims of a page their levels, all endpoints together, and with them their verdicts.

    The family of m is what this scale may judge, run or not: a claim whose rows are missing keeps its place.
    """
    results = judged([cell.test for cell in cells], suite.look.alpha, beside=m - len(cells))
    for cell, result in zip(cells, results, strict=True):
        if result:
            verdict, level = result
            cell.found = replace(cell.found, verdict=verdict, level=level)


def _combined(claim: Claim, found: Sequence[Found], suite: Suite) -> Judged:
    """One verdict of two endpoints: what either shows, unless they show opposite things."""
    outcomes = {one.verdict.outcome for one in found}
    reasons = {one.endpoint.name: one.verdict.reason + steps_against(claim, one) for one in found}
    if outcomes <= SETTLES_NOTHING and len({*reasons.values()}) == 1:
        reason = found[0].verdict.reason
    else:
        reason = "; ".join(f"{name} {text}" for name, text in reasons.items())
    if found[0].diverged and "unstable" not in outcomes:
        reason += f" (diverged, so in no mean: {found[0].diverged})"
    if claim.needs and outcomes != {"not judged"}:
        holds = claim.needs.note(suite.records.get(claim.needs.row, ()))
        reason += f"; {holds}" * bool(holds)
    verdict = next(outcome for outcome in OUTCOMES if outcome in outcomes)
    for words in (OF_SIZE, OF_SIGN, OF_PRINT):
        if {words.yes, words.no} <= outcomes:
            verdict, reason = words.neither, f"the endpoints disagree: {reason}"
    return Judged(
        claim=claim,
        verdict=verdict,
        reason=reason,
        found=tuple(found),
        look=None if outcomes == {"not judged"} else suite.look,
    )


def steps_against(claim: Claim, found: Found) -> str:
    """The steps of a trend against the sign that its slope was found to have, each with its number."""
    if found.verdict.outcome not in (*OF_SIZE[:2], *OF_SIGN[:2]) or found.value is None:
        return ""
    pairs = zip(itertools.pairwise(claim.rows), found.steps, strict=False)
    against = [
        f"{step:+.{found.endpoint.decimals}f} from {_row(small)} to {_row(large)}"
        for (small, large), step in pairs
        if step * found.value < 0
    ]
    return f", though {', '.join(against)}" if against else ""


def verdicts_of_print(printed: Mapping[str, PaperNumbers], claims: Iterable[Claim]) -> LayerOutcomes:
    """The verdict on each claim about the paper's own numbers that has them all; `printed` are those of rows."""
    found: dict[str, tuple[Outcome, str]] = {}
    for claim in claims:
        if claim.compute and printed.keys() >= {*claim.rows}:
            holds, text = claim.compute(printed)
            found[claim.id] = (OF_PRINT.yes if holds else OF_PRINT.no, text)
    return found


def _untrained(claim: Claim, suite: Suite) -> Judged:
    """Claims that need no training: by arithmetic, by tests, or not here."""
    if claim.compute:
        if found := verdicts_of_print(suite.printed, [claim]):
            verdict, reason = found[claim.id]
            return Judged(claim=claim, verdict=verdict, reason=reason)
        absent = ", ".join(_row(row) for row in claim.rows if row not in suite.printed)
        reason = f"no run of {absent}, whose record has the printed numbers"
        return Judged(claim=claim, verdict="not judged", reason=reason)
    if claim.tests:
        return Judged(claim=claim, verdict="not judged", reason=NOT_RUN)
    return Judged(claim=claim, verdict="not judged", reason=claim.missing)


def _not_judged(reason: str) -> Verdict:
    return Verdict(outcome="not judged", reason=reason)


def _row(row: str) -> str:
    return row.split("/", 1)[1]
