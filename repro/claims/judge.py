"""What the records of one scale say to each claim of the paper, and the page that shows it. Paper: all of it.

A claim about trained rows is judged once three seeds of each are there, on log PPL first and BLEU second, at the
smallest scale that may judge it or a larger one; an arithmetic claim by the paper's own print; a structural one by
named tests. The claims of a table share one error rate. The rules in words: docs/claims.md.
"""

import csv
import io
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

from repro.claims.catalogue import CLAIMS, SCALE_ORDER, catalogue_digest
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
from repro.render.escape import markdown_text, sheet_text
from repro.render.grid import MINUS, sheet_number
from repro.render.origin import made_from
from repro.results.frame import ResultSet, Rows
from repro.results.labels import label
from repro.results.record import PaperNumbers, Record

NAME = "claims"
OUTCOMES: tuple[Outcome, ...] = ("reproduced", "contradicted", "inconclusive", "unstable", "not judged")
NO_ROWS: Rows = MappingProxyType({})
Measured = Mapping[str, tuple[Outcome, str]]  # claim -> its verdict and the evidence
NOTHING_MEASURED: Measured = MappingProxyType({})
ABOUT = {  # what each group of the page begins with, in the page's order
    "table2": "Table 2: the big models",
    "table3_A": "Table 3 (A): heads",
    "table3_B": "Table 3 (B): width of the keys",
    "table3_C": "Table 3 (C): depth and width",
    "table3_D": "Table 3 (D): dropout and label smoothing",
    "table3_E": "Table 3 (E): learned positions",
    "table3_big": "Table 3: big",
    "base": "Table 3: base",
    "arithmetic": "Arithmetic of the paper's own numbers",
    "structural": "Settled by tests",
    "measured": "Measured on layers, or not settled yet",
    "qualitative": "Shown, not judged",
}


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


def judge(records: Iterable[Record], rows: Rows = NO_ROWS, measured: Measured = NOTHING_MEASURED) -> list[Judged]:
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


# From verdicts to the page


def build(result_set: ResultSet, judged: Sequence[Judged]) -> dict[Path, str]:
    """claims.md and claims.csv of one scale; nothing where it has no record."""
    records = result_set.everything
    if not records:
        return {}
    n_dirty = sum(record.stamp["dirty"] for record in records)
    return {
        result_set.folder / f"{NAME}.md": markdown(
            judged, result_set.scale, n_runs=len(records) - n_dirty, n_dirty=n_dirty, here=sizes_here(records)
        ),
        result_set.folder / f"{NAME}.csv": table(judged),
    }


MARKS: dict[Outcome, str] = {
    "reproduced": "✓",
    "contradicted": "✗",
    "inconclusive": "?",
    "unstable": "!",
    "not judged": "",
}
ABOUT_NUMBERS = """\
Differences are turned so that a positive one is what the paper says: mean over seeds, [95 % t-interval]. **paper** is
the same from its print. A trend is the slope per doubling. **detectable** is what this many runs find with a chance
of 80 %, and in brackets the chance of "reproduced" if the truth is what the paper prints. ✓ reproduced,
✗ contradicted, ? inconclusive, ! unstable."""
ABOUT_PROCEDURE = f"""\
Nothing is judged below three seeds of a row, nor at a scale too small for the claim. The spread between seeds is
pooled over all rows. The directions, trends and equivalences of one table, on both endpoints, share by Holm's
procedure a chance of {100 * ALPHA:g} % that one of them is reproduced wrongly, and about as much that one is
contradicted wrongly; what is not run yet keeps its place among them. Magnitudes and point values use 95 % prediction
intervals; the best of a family is found by Hsu's comparison with the best, at {100 * ALPHA:g} %. A direction is
contradicted where the difference is smaller than the paper's single runs could have seen. The claims, their margins
and levels were listed before the runs. A verdict on trained rows holds for the text and the model of this scale. In
full: [how verdicts are made](../../docs/claims.md)."""


def sizes_here(records: Iterable[Record]) -> str:
    """What the paper's sizes, of which claims speak, are at this scale; nothing where they are the same."""
    in_order = sorted(records, key=lambda record: (record.table, record.position))
    named = {record.row: label(record.row, record.hyper) for record in in_order}
    others = ", ".join(text for row, text in named.items() if text != row)
    return f"Claims speak of the paper's sizes. At this scale its rows are {markdown_text(others)}." if others else ""


def markdown(results: Sequence[Judged], scale: str, *, n_runs: int, n_dirty: int = 0, here: str = "") -> str:
    """The page for a code host: the counts, then the claims table by table, then the procedure."""
    groups: dict[str, list[Judged]] = {key: [] for key in ABOUT}
    for result in results:
        groups[_group(result.claim)].append(result)
    groups = {key: members for key, members in groups.items() if members}
    left_out = f" {n_dirty} more are of uncommitted code and left out." if n_dirty else ""
    parts = [
        f"<!-- {made_from('the records in this folder')} -->",
        f"# The claims of the paper at scale {markdown_text(scale)}",
        f"{len(results)} claims, {n_runs} runs.{left_out} {_in_words(results)}",
        _summary(groups),
        *([here] if here else []),
        ABOUT_NUMBERS,
        *(part for key, members in groups.items() for part in (f"## {ABOUT[key]}", *_section(members))),
        "## How it was judged",
        ABOUT_PROCEDURE,
        f"List of claims: {catalogue_digest()}.",
    ]
    return "\n\n".join(parts) + "\n"


def _group(claim: Claim) -> str:
    return claim.table if claim.is_trained else claim.kind


def _in_words(results: Iterable[Judged]) -> str:
    """12 reproduced, 3 contradicted."""
    counts = Counter(result.verdict for result in results)
    return ", ".join(f"{counts[outcome]} {outcome}" for outcome in OUTCOMES if counts[outcome]) + "."


def _summary(groups: Mapping[str, Sequence[Judged]]) -> str:
    lines = []
    for key, members in groups.items():
        counts = Counter(result.verdict for result in members)
        lines.append([ABOUT[key], *(str(counts[outcome] or "") for outcome in OUTCOMES)])
    total = Counter(result.verdict for members in groups.values() for result in members)
    lines.append(["**all**", *(f"**{total[outcome]}**" for outcome in OUTCOMES)])
    return _grid(["", *OUTCOMES], lines, "l" + "r" * len(OUTCOMES))


def _section(members: Sequence[Judged]) -> Iterable[str]:
    """The claims of one group as a table, and why those that are judged came out so."""
    if not members[0].claim.is_trained:
        head = ["claim", "section", "what the paper says", "verdict", "by"]
        yield _grid(head, [_line_without_runs(result) for result in members], "lllll")
        return
    endpoints = list(dict.fromkeys(one.endpoint for result in members for one in result.found))
    head = ["claim", "what the paper says", "kind", "n"]
    head += [text for one in endpoints for text in (one.name, "paper", "detectable")]
    align = "llll" + "rrr" * len(endpoints) + "l"
    yield _grid([*head, "verdict"], [_line_of_runs(result, endpoints) for result in members], align)
    if why := [f"- {result.claim.id}: {markdown_text(result.reason)}." for result in members if _is_judged(result)]:
        yield "\n".join(why)


def _is_judged(result: Judged) -> bool:
    return result.verdict != "not judged"


def _line_without_runs(result: Judged) -> list[str]:
    claim, verdict = result.claim, f"**{result.verdict}**" if _is_judged(result) else result.verdict
    by = "<br>".join(f"`{test}`" for test in claim.tests) or markdown_text(result.reason)
    return [claim.id, claim.where, markdown_text(claim.sentence), verdict, by]


def _line_of_runs(result: Judged, endpoints: Iterable[Endpoint]) -> list[str]:
    claim, found = result.claim, {one.endpoint: one for one in result.found}
    counts = next(iter(found.values())).runs
    n = str(counts[0]) if len({*counts}) == 1 else f"{min(counts)} to {max(counts)}"
    numbers = [text for endpoint in endpoints for text in _numbers(found.get(endpoint), claim.kind == "point value")]
    verdict = f"**{result.verdict}**" if _is_judged(result) else f"{result.verdict}: {markdown_text(result.reason)}"
    return [claim.id, markdown_text(claim.sentence), claim.kind, n, *numbers, verdict]


def _numbers(found: Found | None, is_score: bool) -> tuple[str, str, str]:
    """Ours with its interval and mark, the paper's, and what could have been detected."""
    if found is None:
        return "", "", ""
    form = f"{'' if is_score else '+'}z.{found.endpoint.decimals}f"

    def text(number: float | None) -> str:
        return "" if number is None else format(number, form).replace("-", MINUS)

    interval = f" [{text(found.low)}, {text(found.high)}]" if found.low is not None else ""
    ours = f"{text(found.value)}{interval} {MARKS[found.verdict.outcome]}".strip()
    smallest, power = found.verdict.detectable, found.verdict.power
    detectable = "" if smallest is None else f"{smallest:.{found.endpoint.decimals}f}"
    return ours, text(found.printed), f"{detectable} ({100 * power:.0f} %)".strip() if power is not None else detectable


def _grid(head: Sequence[str], lines: Iterable[Sequence[str]], align: str) -> str:
    """A table of ready Markdown; `align` has l or r for each column."""
    rule = [":--" if side == "l" else "--:" for side in align]
    return "\n".join(f"| {' | '.join(line)} |" for line in (head, rule, *lines))


def table(results: Iterable[Judged]) -> str:
    """One line for each claim and endpoint, in full precision, as comma-separated values."""
    lines = io.StringIO()
    columns = (
        "claim where kind sentence rows endpoint n value low high paper level detectable power outcome verdict reason"
    )
    writer = csv.DictWriter(lines, columns.split(), lineterminator="\n")
    writer.writeheader()
    for result in results:
        claim = result.claim
        shared = {
            "claim": claim.id,
            "where": claim.where,
            "kind": claim.kind,
            "sentence": claim.sentence,
            "rows": sheet_text(" ".join(claim.rows)),
            "verdict": result.verdict,
        }
        writer.writerows(shared | _cells(one) for one in result.found)
        if not result.found:
            writer.writerow(shared | {"reason": sheet_text(result.reason)})
    return lines.getvalue()


def _cells(found: Found) -> dict[str, str]:
    def text(number: float | None) -> str:
        return "" if number is None else sheet_number(number)

    verdict = found.verdict
    return {
        "endpoint": found.endpoint.name,
        "n": " ".join(map(str, found.runs)),
        "value": text(found.value),
        "low": text(found.low),
        "high": text(found.high),
        "paper": text(found.printed),
        "level": text(found.level),
        "detectable": text(verdict.detectable),
        "power": text(verdict.power),
        "outcome": verdict.outcome,
        "reason": sheet_text(verdict.reason),
    }
