"""Judge each claim of the paper by the records of one scale. Paper: all of it.

A claim about trained rows is judged once, as declared before the runs, on the evidence (`evidence.py`). The model is
rows + seeds (`blocks.py`), on log PPL first and BLEU second, at the smallest scale that may judge the claim or a larger
one. An arithmetic claim is judged by the paper's printed numbers, a structural one by named tests. The claims of a page
share one error rate. Without fresh seeds an earlier published verdict stands, and the analysis of the same runs beside
it is exploration. The rules in words: docs/claims.md.
"""

import itertools
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from repro.claims import decisions
from repro.claims.arithmetic import CHECKS
from repro.claims.blocks import Blocks, slope_weights
from repro.claims.catalogue import (
    B0,
    CLAIMS,
    ENDPOINTS,
    SCALE_ORDER,
    STATEMENTS,
    Claim,
    Endpoint,
    held,
    row_of,
    rows_scored,
)
from repro.claims.decisions import MAX_DIVERGED, MIN_RUNS, OF_PRINT, OF_SIGN, OF_SIZE, OUTCOMES, SEEDS, Outcome, Verdict
from repro.claims.evidence import Evidence, Published, unlike
from repro.claims.tested import NOT_RUN
from repro.results.frame import whole
from repro.results.record import PaperNumbers, Record

LayerOutcomes = Mapping[str, tuple[Outcome, str]]  # claim -> its verdict and the evidence
NOTHING_MEASURED: LayerOutcomes = MappingProxyType({})
TOO_FEW = "too few runs that count"
SETTLES_NOTHING: frozenset[Outcome] = frozenset({"not judged", "not testable here", "unstable"})


@dataclass(frozen=True, kw_only=True)
class Found:
    """The numbers of one claim on one endpoint; a positive difference agrees with the paper."""

    endpoint: Endpoint
    runs: tuple[int, ...]  # number of finished runs of each row
    verdict: Verdict
    value: float | None = None  # difference, or slope per doubling
    interval: tuple[float, float] | None = None  # at 95 %
    printed: float | None = None  # the paper's number for `value`
    level: float | None = None  # significance level from Holm's procedure; None if it took no part
    means: tuple[float, ...] = ()  # mean of each row's runs
    diverged: str = ""  # which runs, in words


@dataclass(frozen=True)
class Judged:
    """A claim, its verdict and the reason."""

    claim: Claim
    verdict: Outcome
    reason: str
    found: tuple[Found, ...] = ()
    explored: Outcome | None = None  # outcome of today's analysis on runs already known when it was chosen
    sentence_here: str = ""  # the claim's sentence with the sizes of this scale

    @property
    def is_judged(self) -> bool:
        """Whether there is a verdict, of whatever kind."""
        return self.verdict != "not judged"

    @property
    def sentence(self) -> str:
        """The claim's sentence as a page prints it."""
        return self.sentence_here or self.claim.sentence


@dataclass(frozen=True, kw_only=True)
class Suite:
    """Runs of one scale, by "table/row", and what the paper prints for the rows."""

    scale: str
    runs: Mapping[str, Mapping[str, Mapping[int, float]]]  # endpoint -> "table/row" -> seed -> its number
    printed: Mapping[str, PaperNumbers]
    records: Mapping[str, Sequence[Record]] = field(default_factory=dict)  # the records behind the numbers
    waiting: Mapping[str, int] = field(default_factory=dict)  # rows with too few fresh seeds: how many they have

    def diverged(self, row: str) -> list[int]:
        """The seeds of the row's runs that diverged."""
        return [record.seed for record in self.records.get(row, ()) if record.status == "diverged"]


# From records to verdicts


def judge(
    evidence: Evidence, measured: LayerOutcomes = NOTHING_MEASURED, claims: Sequence[Claim] = CLAIMS
) -> list[Judged]:
    """Every claim with its verdict, in the paper's order.

    The `claims` share one error rate, that of their page. `measured` are the verdicts that need no run: from the
    measured layers of Table 1, from tests and from printed numbers.
    """
    known = {f"{table}/{row}": listed.here for (table, row), listed in evidence.rows.items() if listed.here}
    known |= {f"{run.table}/{run.row}": run.hyper for run in evidence.everything}
    trained = [claim for claim in claims if claim.is_trained]
    fresh = judge_suite(suite(evidence, evidence.taken), trained)
    explored = judge_suite(suite(evidence, evidence.explored), trained, is_listed=False)
    found = {
        one.claim.id: replace(_latest(one, other, evidence.before), sentence_here=one.claim.sentence_here(known))
        for one, other in zip(fresh, explored, strict=True)
    }
    return [found.get(claim.id) or Judged(claim, *measured.get(claim.id, _unsettled(claim))) for claim in claims]


def _latest(fresh: Judged, explored: Judged, published: Published) -> Judged:
    """The verdict by fresh seeds, else the published one, else "not judged"; these two with the explored numbers."""
    if all(all(found.runs) or found.diverged for found in fresh.found):
        return fresh
    verdict, reason = published.verdicts.get(fresh.claim.id, ("not judged", published.void or fresh.reason))
    return replace(explored, verdict=verdict, reason=reason, explored=explored.verdict)


def _unsettled(claim: Claim) -> tuple[Outcome, str]:
    """Why a claim that needs no training has no verdict."""
    without = "no record has the printed numbers of its rows"
    return "not judged", without if claim.compute else NOT_RUN if claim.tests else claim.missing


def suite(evidence: Evidence, taken: Mapping[str, Sequence[Record]]) -> Suite:
    """The numbers of the `taken` runs on every endpoint that claims use."""
    fresh = Counter(f"{run.table}/{run.row}" for run in evidence.fresh)
    return Suite(
        scale=next((record.scale for record in evidence.everything), SCALE_ORDER[0]),
        runs={one.name: {row: one.by_seed(runs) for row, runs in taken.items()} for one in ENDPOINTS.values()},
        printed=evidence.printed,
        records=taken,
        waiting={row: n for row, n in fresh.items() if row not in taken},
    )


def judge_suite(suite: Suite, claims: Sequence[Claim], *, is_listed: bool = True) -> list[Judged]:
    """Claims about trained rows, each with its verdict; `is_listed` requires that runs began after it was listed."""
    blocks = {}
    for one in dict.fromkeys(endpoint for claim in claims for endpoint in claim.endpoints):
        rows = rows_scored(claims, one.split)  # all rows that some claim uses with a score of the same split
        blocks[one.name] = Blocks({row: of for row, of in suite.runs[one.name].items() if row in rows})
    asked = [(claim, one) for claim in claims for one in claim.endpoints]
    looks = [_look(suite, claim, one, blocks[one.name], is_listed=is_listed) for claim, one in asked]
    family = [i for i, (claim, _) in enumerate(asked) if may_judge(suite.scale, claim)]
    results = dict(zip(family, decisions.judged([looks[i][1] for i in family]), strict=True))
    found: dict[str, list[Found]] = {claim.id: [] for claim in claims}
    for i, (claim, _) in enumerate(asked):
        result, look = results.get(i), looks[i][0]
        found[claim.id].append(replace(look, verdict=result[0], level=result[1]) if result else look)
    return [_combined(claim, found[claim.id], suite) for claim in claims]


def may_judge(scale: str, claim: Claim) -> bool:
    """Whether a scale is large enough to judge the claim."""
    return place_of_scale(scale) >= SCALE_ORDER.index(claim.scale)


def place_of_scale(scale: str) -> int:
    """The index of a scale in `SCALE_ORDER`, by the first part of "laptop-en-fr"; an unknown one counts as `smoke`."""
    first = scale.split("-")[0]
    return SCALE_ORDER.index(first if first in SCALE_ORDER else SCALE_ORDER[0])


def may_judge_sizes(scale: str) -> bool:
    """Whether the paper's sizes of differences apply at a scale: only with the paper's model and text."""
    return scale.split("-")[0] == SCALE_ORDER[-1]


def _look(
    suite: Suite, claim: Claim, endpoint: Endpoint, blocks: Blocks, *, is_listed: bool
) -> tuple[Found, decisions.Trial | None]:
    """The numbers of one claim on one endpoint, and its test, which needs a level; no test where nothing may be said.

    It may not where its rows cannot be judged, or nothing varies.
    """
    runs = {row: suite.runs[endpoint.name].get(row, {}) for row in claim.rows}
    weights = _weights(claim)
    estimate = blocks.estimate(dict(zip(claim.rows, weights, strict=True))) if weights else None
    means = [statistics.fmean(of.values()) if of else None for of in runs.values()]
    printed = _sum(weights, [endpoint.printed(suite.printed[row]) if row in suite.printed else None for row in runs])
    refused = _refusal(suite, claim, runs, is_listed=is_listed)
    diverged = [f"seed {', '.join(map(str, of))} of {row_of(row)}" for row in runs if (of := suite.diverged(row))]
    found = Found(
        endpoint=endpoint,
        runs=tuple(map(len, runs.values())),
        verdict=refused or Verdict("not judged", "every seed gave the same number"),
        value=estimate.value if estimate else _sum(weights, means),
        interval=estimate.interval() if estimate else None,
        printed=printed,
        means=tuple(whole(means)),
        diverged=", ".join(diverged),
    )
    if refused:
        return found, None
    words = OF_SIZE if may_judge_sizes(suite.scale) else OF_SIGN
    if claim.kind == "best of family":
        others = [row for row in claim.rows if row not in claim.named]
        leads = {row: [blocks.difference(named, row) for named in claim.named] for row in others}
        known = {row: [one for one in of if one] for row, of in leads.items()}
        return found, decisions.best(known, words) if known == leads else None
    if estimate is None:
        return found, None
    if claim.kind == "equivalence":
        return found, decisions.equivalence(estimate, endpoint.margin, words)
    slope = "least-squares slope per doubling" * (claim.kind == "trend")
    return found, decisions.sign(estimate, printed, words, slope)


def _weights(claim: Claim) -> tuple[float, ...]:
    """The weights that combine its rows into one number; none for a family, which is compared pair by pair."""
    if claim.kind == "trend":
        return tuple(slope_weights(claim.sizes))
    return () if claim.kind == "best of family" else (1.0, -1.0)


def _sum(weights: Sequence[float], values: Sequence[float | None]) -> float | None:
    """The weighted sum; None for a family, which has no weights, and where a value is missing."""
    known = whole(values)
    return sum(weight * value for weight, value in zip(weights, known, strict=True)) if weights and known else None


def _refusal(suite: Suite, claim: Claim, runs: Mapping[str, Mapping[int, float]], *, is_listed: bool) -> Verdict | None:
    """Why these rows cannot be judged; None if they can."""
    if not may_judge(suite.scale, claim):
        return Verdict(
            "not judged", f"needs scale {claim.scale}{' or a larger one' * (claim.scale != SCALE_ORDER[-1])}"
        )
    if missing := [row for row, of in runs.items() if not of and not suite.diverged(row)]:
        waiting = {row: f"{suite.waiting.get(row, 0)} of {SEEDS}" for row in missing}
        waiting |= {row: "without this score" for row in missing if row in suite.records}
        return Verdict("not judged", f"{TOO_FEW}: {', '.join(f'{row_of(row)} {why}' for row, why in waiting.items())}")
    for row, of in runs.items():
        if (broken := len(suite.diverged(row))) > MAX_DIVERGED:
            return Verdict("unstable", f"{broken} of {broken + len(of)} runs of {row_of(row)} diverged")
    if len(runs[fewest := min(runs, key=lambda row: len(runs[row]))]) < MIN_RUNS:
        return Verdict("not judged", f"n = {len(runs[fewest])} ({row_of(fewest)}), {MIN_RUNS} are needed")
    records = {row: suite.records[row] for row in claim.rows if row in suite.records}
    if is_listed and (late := sum(not held(run.claims, claim) for of in records.values() for run in of)):
        return Verdict("not judged", f"{late} of its runs began before the claim was listed as it stands")
    if records and (different := unlike(records)):
        return Verdict("not judged", f"its rows differ in {', '.join(different)}")
    is_met, why = claim.needs.met(records[claim.needs.row]) if claim.needs and records else (True, "")
    return None if is_met else Verdict("not testable here", why)


def _combined(claim: Claim, found: Sequence[Found], suite: Suite) -> Judged:
    """One verdict from two endpoints: what either of them shows, unless they contradict each other."""
    outcomes = {one.verdict.outcome for one in found}
    reasons = {one.endpoint.name: one.verdict.reason + steps_against(claim, one) for one in found}
    reason = "; ".join(f"{name} {text}" for name, text in reasons.items())
    if outcomes <= SETTLES_NOTHING and len({*reasons.values()}) == 1:
        reason = found[0].verdict.reason
    if found[0].diverged and "unstable" not in outcomes:
        reason += f" (diverged, so in no mean: {found[0].diverged})"
    if claim.needs and outcomes != {"not judged"}:
        is_met, how = claim.needs.met(suite.records.get(claim.needs.row, ()))
        reason += f"; {how}" * is_met
    verdict = next(outcome for outcome in OUTCOMES if outcome in outcomes)
    for words in (OF_SIZE, OF_SIGN):
        if {words.yes, words.no} <= outcomes:
            verdict, reason = words.neither, f"the endpoints disagree: {reason}"
    return Judged(claim, verdict, reason, tuple(found))


def steps_against(claim: Claim, found: Found) -> str:
    """The steps of a trend whose sign is opposite to that found for its slope, each with its number."""
    if claim.kind != "trend" or found.verdict.outcome not in (*OF_SIZE[:2], *OF_SIGN[:2]) or found.value is None:
        return ""
    against = [
        f"{larger - smaller:+.{found.endpoint.decimals}f} from {row_of(small)} to {row_of(large)}"
        for (small, smaller), (large, larger) in itertools.pairwise(zip(claim.rows, found.means, strict=False))
        if (larger - smaller) * found.value < 0
    ]
    return f", though {', '.join(against)}" if against else ""


def verdicts_of_print(printed: Mapping[str, PaperNumbers], claims: Iterable[Claim]) -> LayerOutcomes:
    """The verdict on each claim about the paper's own numbers, if `printed` has all of its rows."""
    found: dict[str, tuple[Outcome, str]] = {}
    for claim in claims:
        if claim.compute and printed.keys() >= {*claim.rows}:
            holds, text = CHECKS[claim.compute](printed)
            found[claim.id] = (OF_PRINT.yes if holds else OF_PRINT.no), text
    return found


# Distances to the base, for figures and for rows that no claim compares


@dataclass(frozen=True, kw_only=True)
class ToBase:
    """A row minus the base by one score; positive where the row is better."""

    value: float
    over_seeds: tuple[float, float] | None  # 95 %; None where the runs do not count, or cannot be compared
    runs: tuple[Sequence[Record], Sequence[Record]]  # the runs of the row and of the base behind the value


def to_base(evidence: Evidence, row: str, endpoint: Endpoint) -> ToBase | None:
    """How far "table/row" is from the base, by rows + seeds over the rows that are judged on the same page.

    Where those give no estimate, the difference of means over the seeds that both have. The runs are those of a verdict
    if it has one, so that both rows are of one analysis. None where the two have no finished runs of a common seed.
    """
    pages = [rows_scored([one for one in of if one.is_trained], endpoint.split) for of in (CLAIMS, STATEMENTS)]
    page = next((rows for rows in pages if row in rows), set[str]()) | {row, B0}
    for taken in (evidence.taken, evidence.judged_before, evidence.clean):
        ours, base = ([run for run in taken.get(one, ()) if endpoint.of(run) is not None] for one in (row, B0))
        if ours and base:
            scores = {name: endpoint.by_seed(of) for name, of in taken.items() if name in page}
            estimate = None if unlike({row: ours, B0: base}) else Blocks(scores).difference(row, B0)
            if estimate is None:
                both = scores[row].keys() & scores[B0].keys()
                ours, base = ([run for run in of if run.seed in both] for of in (ours, base))
            counts = {*map(id, (*ours, *base))} <= {*map(id, evidence.records)}
            if ours:
                means = [statistics.fmean(scores[one][run.seed] for run in of) for one, of in ((row, ours), (B0, base))]
                return ToBase(
                    value=estimate.value if estimate else means[0] - means[1],
                    over_seeds=estimate.interval() if estimate and counts else None,
                    runs=(ours, base),
                )
    return None
