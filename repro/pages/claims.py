"""The pages of verdicts, on the claims of the paper and on statements of teaching texts. Paper: all of it.

Claims that a scale can answer come first, then those that it cannot. Each page has an error rate of its own.
"""

import itertools
import statistics
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from repro.claims.blocks import ALPHA
from repro.claims.catalogue import B0, BLEU, LOG_PPL, SCALE_ORDER, TABLE3, Claim, Endpoint, catalogue_digest, row_of
from repro.claims.decisions import EXCLUDED, FIRST_SEED, OF_HOUSE, OF_PRINT, OF_SIGN, OF_SIZE, OUTCOMES, SEEDS, Outcome
from repro.claims.evidence import Evidence, why_apart
from repro.claims.judge import TOO_FEW, Found, Judged, may_judge, may_judge_sizes, to_base
from repro.pages.columns import comma_separated, marked, numbers, rules_between, tabled, to_project, with_minus
from repro.pages.scale_data import ScaleData
from repro.render.page import Block, Column, Heading, Link, Listing, Page, Strong, Table, Text, Words, blocks, made_from
from repro.render.text import several
from repro.results.comparable import computed_on
from repro.results.details import RATIO, length_decides
from repro.results.frame import whole
from repro.results.labels import label

NAME = "claims"
ABOUT = {  # the title of each group of the page, in the page's order, and of the page of a table
    "table2": "Table 2: the big models",
    "table3_A": "Table 3 (A): heads",
    "table3_B": "Table 3 (B): width of the keys",
    "table3_C": "Table 3 (C): depth and width",
    "table3_D": "Table 3 (D): dropout and label smoothing",
    "table3_E": "Table 3 (E): learned positions",
    "table3_big": "Table 3: big",
    "base": "Table 3: base",
    "table4": "Table 4: parsing",
    "table4_grid": "Table 4: rates and dropout tried",
    "ladder": "The ladder: the systems before it",
    "lab_scores": "The lab: scores, and what heads share",
    "lab_selection": "The lab: selection",
    "lab_positions": "The lab: positions",
    "lab_parts": "The lab: norms, residuals and other parts",
    "lab_text": "The lab: little text or much",
    "ladder_long": "The ladder: three times the updates",
    "ladder_rates": "The ladder: learning rates",
    "anchor": "The anchor: a published recipe on Multi30k",
    "arithmetic": "Arithmetic of the paper's own numbers",
    "structural": "Settled by tests",
    "measured": "Measured on layers, or not settled yet",
    "qualitative": "Shown, not judged",
    "point value": "Printed scores, which take the paper's own scale",
}


class Subject(NamedTuple):
    """The subject of a page of verdicts, with the words for it."""

    title: str
    name: str  # of its sentences, and of the page
    said: str


OF_PAPER = Subject("The claims of the paper", NAME, "what the paper says")
OF_TEXTS = Subject("Statements of teaching texts, and ours", "statements", "what is said")
MARKS: dict[Outcome, str] = {
    **{words.yes: "✓" for words in (OF_SIZE, OF_SIGN, OF_PRINT, OF_HOUSE)},
    **{words.no: "✗" for words in (OF_SIZE, OF_SIGN, OF_PRINT, OF_HOUSE)},
    EXCLUDED: "↓",
    **{words.neither: "?" for words in (OF_SIZE, OF_SIGN)},
    "not testable here": "–",
    "unstable": "!",
}
RULES = "docs/claims.md"  # of the project: the procedure in full
ABOUT_NUMBERS = marked(
    "A difference is above zero where it agrees with the claim: by rows + seeds, [95 % interval]. **paper** is the "
    "same as printed, **ratio** ours over it. Where nothing was found, **found from** is the size that would have "
    "been, with a chance of 80 %."
)
PROMISE = (
    f"Verdicts by rows + seeds on seeds {FIRST_SEED} to {FIRST_SEED + SEEDS - 1} of every row, as declared before the "
    f"runs: {{}}; the chance of any wrong one among them is meant to be {100 * ALPHA:g} %. "
)
AS_PUBLISHED = (
    f"Verdicts published before {FIRST_SEED} was the first seed, by the rules of their time: {{}}. The numbers beside "
    "them are of the same runs by rows + seeds, an analysis that was chosen when they were known, so what it makes of "
    f"them is exploration; seeds {FIRST_SEED} to {FIRST_SEED + SEEDS - 1} will confirm it or not. "
)
CHOSEN = "†: looked at when this scale's text was chosen, so fresh seeds say whether its sign lasts on it, and no more."
BELOW = "At this scale a verdict speaks of the sign of a difference: model and text are not the paper's."


def page(data: ScaleData, of: Subject = OF_PAPER) -> Page:
    """The verdicts of one scale on the paper's claims, and which runs settle nothing; or on other texts' statements."""
    is_of_paper, scale = of is OF_PAPER, data.runs.scale
    judged, order = data.judged if is_of_paper else data.stated, [*ABOUT].index
    answered = sorted((one for one in judged if is_answered(one, scale)), key=lambda one: order(group_of(one.claim)))
    rules = Link("How verdicts are made", f"{to_project(own=data.result_set.own)}/{RULES}")
    return Page(
        made_from("the records in this folder"),
        blocks(
            Heading(f"{of.title} at scale {scale}", 1),
            Text(agreement(data) if is_of_paper else ""),
            Text(f"{several(len(answered), of.name[:-1])} can be answered here: {told_counts(answered)}"),
            () if is_of_paper else outcomes(answered, of),
            Text(ABOUT_NUMBERS if answered else ""),
            _tables(answered, data, of) if answered else (),
            _other_rows(answered, data) if is_of_paper else (),
            Heading("How it was judged"),
            Text(_not_answered(judged, data.evidence, scale)),
            Text(promise(judged, scale, data.evidence)),
            Text(_processors(answered, data.evidence)),
            exploration(data.evidence) if is_of_paper else (),
            Text((rules, f". List of claims: {catalogue_digest()}.")),
        ),
    )


def _lengths(data: ScaleData) -> dict[str, float]:
    """The length of translations of dev over that of their references, by "table/row", where known."""
    known = [frame[["table", "row", RATIO]].dropna() for frame in data.frames.values() if RATIO in frame]
    return {f"{table}/{row}": float(of) for frame in known for table, row, of in frame.to_numpy()}


def is_answered(one: Judged, scale: str) -> bool:
    """Whether the page has an answer to a claim about trained rows: it was judged, or has numbers to explore."""
    may_be = one.claim.is_trained and may_judge(scale, one.claim)
    return may_be and (one.is_judged or one.explored not in (None, "not judged"))


def agreement(data: ScaleData) -> str:
    """The first sentence: how our differences to the base agree with the printed ones, where any run is evidence."""
    known = {one.name: of for one in (LOG_PPL, BLEU) if len(of := list(_beside_print(data.evidence, one))) > 2}
    if data.evidence.is_exploration or not known:
        return ""
    import pandas as pd

    ranks = {name: pd.DataFrame(of).round(9).corr("spearman").to_numpy()[0, 1] for name, of in known.items()}
    said = " and ".join(f"{with_minus(f'{rank:.2f}')} in {name}" for name, rank in ranks.items())
    return (
        f"Over {max(map(len, known.values()))} rows of Table 3, our differences to the base and those that the paper "
        f"prints have a rank correlation of {said}."
    )


def _beside_print(evidence: Evidence, of: Endpoint) -> Iterator[tuple[float, float]]:
    """The rows of Table 3 less the base, ours and as printed, where there are both."""
    for row in TABLE3:
        less = _printed_to_base(evidence, row, of)
        if row != B0 and less is not None and (found := to_base(evidence, row, of)):
            yield found.value, less


def _printed_to_base(evidence: Evidence, row: str, of: Endpoint) -> float | None:
    """What the paper prints for a row less what it prints for the base."""
    found = whole([of.printed(evidence.printed[name]) for name in (row, B0) if name in evidence.printed])
    return found[0] - found[1] if len(found) == 2 else None


def outcomes(judged: Sequence[Judged], of: Subject = OF_PAPER) -> Listing:
    """The judged claims or statements about trained rows in their own words, by outcome."""
    said = [(name, [one.sentence for one in judged if settles([one]) and one.verdict == name]) for name in OUTCOMES]
    told = [(Strong(name), f", {several(len(all_), of.name[:-1])}: {'; '.join(all_)}.") for name, all_ in said if all_]
    return Listing(tuple(told))


def promise(judged: Iterable[Judged], scale: str, evidence: Evidence) -> str:
    """How far the verdicts about trained rows may be trusted; if a page has none, only that it has none."""
    told = [one for one in judged if settles([one])]
    if not told:
        return f"{evidence.before.void}. " * bool(evidence.before.void) + (
            "Nothing about trained rows is judged here: no claim has all the runs that it needs."
        )
    old = [one.claim.id for one in told if one.explored]
    n = len(told) - len(old)
    fresh = PROMISE.format(n) * bool(n)
    published = AS_PUBLISHED.format(f"{len(old)}, {', '.join(old)}" if n else len(old)) * bool(old)
    return (fresh + published + BELOW * (not may_judge_sizes(scale))).strip()


def _processors(answered: Iterable[Judged], evidence: Evidence) -> str:
    """The claims whose rows had runs of one seed on several processors, whose difference may look like that of rows."""
    named = []
    for one in answered:
        runs = evidence.explored if one.explored else evidence.taken
        places = {(run.seed, computed_on(run.stamp)) for row in one.claim.rows for run in runs.get(row, ())}
        named += [one.claim.id] * (len(places) > len({seed for seed, _ in places}))
    return f"Rows of one seed ran on different processors, which may differ, too: {', '.join(named)}." * bool(named)


def settles(judged: Iterable[Judged]) -> bool:
    """Whether any claim about trained rows was judged."""
    return any(one.claim.is_trained and one.is_judged for one in judged)


def exploration(evidence: Evidence) -> Sequence[Block]:
    """Which runs settle nothing, and why; empty where all count."""
    lines = Listing(tuple(f"{line}." for line in why_apart(evidence.apart)))
    return (Text("Exploratory runs, which settle nothing:"), lines) if evidence.apart else ()


def group_of(claim: Claim) -> str:
    """The heading of the page under which a claim stands, a key of `ABOUT`."""
    return claim.table if claim.is_trained else claim.kind


def told_counts(judged: Iterable[Judged]) -> str:
    """The outcomes counted in words: reproduced 12, contradicted 3."""
    counts = Counter(one.verdict for one in judged)
    return ", ".join(f"{outcome} {counts[outcome]}" for outcome in OUTCOMES if counts[outcome]) + "."


def _tables(members: Sequence[Judged], data: ScaleData, of: Subject) -> Iterator[Block]:
    """The verdicts, ruled between tables, then the numbers of each score; notes for the reader."""
    tables, names = [one.claim.table for one in members], Column("", "claim", [one.claim.id for one in members])
    chosen = [" †" * (one.claim.chose == data.runs.scale) for one in members]
    what = (
        names,
        Column("", "table", tables, is_words=True),
        Column("", of.said, [one.sentence + mark for one, mark in zip(members, chosen, strict=True)], is_words=True),
        Column("", "n", [_seeds(one) for one in members]),
        Column("", "verdict", [_verdict(one) for one in members], is_words=True),
    )
    yield Table(what, rules_between(tables))
    for _, shown in itertools.groupby(claim_numbers(members, _lengths(data)), key=lambda column: column.group):
        yield tabled([names, *shown])
    notes = [f"{one.claim.id}: {one.claim.note}" for one in members if one.claim.note]
    yield Listing((*notes, *[CHOSEN] * any(chosen)))


def _verdict(one: Judged) -> Words:
    """The verdict; for a claim that is not judged yet, the outcome of exploration."""
    if one.verdict == "not judged":
        return f"not judged; explored: {one.explored}"
    return Strong(one.verdict), f"; explored: {one.explored}" * (one.explored not in (None, one.verdict))


def _seeds(one: Judged) -> str:
    """How many runs the rows of the claim have."""
    counts = one.found[0].runs
    return str(counts[0]) if len({*counts}) == 1 else f"{min(counts)} to {max(counts)}"


def claim_numbers(members: Sequence[Judged], lengths: Mapping[str, float]) -> Iterator[Column]:
    """For each endpoint with a number: ours with interval and mark, the paper's, and the detectable size.

    `lengths` are those of the rows' translations.
    """
    for endpoint in dict.fromkeys(one.endpoint for member in members for one in member.found):
        found = [{one.endpoint: one for one in member.found}.get(endpoint) for member in members]
        if any(one and (one.value is not None or one.printed is not None) for one in found):
            cells = [_cells(of.claim, one, lengths) if one else {} for of, one in zip(members, found, strict=True)]
            yield from _columns(endpoint, cells)


def _columns(endpoint: Endpoint, cells: Sequence[Mapping[str, str]]) -> Iterator[Column]:
    for heading in ("ours", "length", "paper", "ratio", "found from"):
        texts = [of.get(heading, "") for of in cells]
        if heading == "ours" or any(texts):
            yield Column(endpoint.name, heading, texts)


def _cells(claim: Claim, found: Found, lengths: Mapping[str, float]) -> dict[str, str]:
    """The cells of a claim by their headings; what would have been found is shown where nothing was."""
    outcome, size = found.verdict.outcome, found.verdict.detectable
    shown = _beside(found.value, found.interval, found.printed, found.endpoint)
    shown["ours"] = f"{shown['ours']} {MARKS.get(outcome, '')}".strip()
    if size is not None and outcome in (OF_SIGN.neither, OF_SIZE.neither, EXCLUDED):
        shown["found from"] = f"{size:.{found.endpoint.decimals}f}"
    ratios = [lengths[row] for row in claim.rows if row in lengths]
    if found.endpoint.score == BLEU.score and len(ratios) == len(claim.rows) == 2:
        shown["length"] = numbers([ratios[0] - ratios[1]], "+.3f")[0]
        if found.value and len(found.means) == 2 and length_decides(found.value, found.means, (ratios[0], ratios[1])):
            shown["length"] += ", decides"
    return shown


def _beside(
    value: float | None, interval: tuple[float, float] | None, printed: float | None, of: Endpoint
) -> dict[str, str]:
    """A difference as +1.2 [+0.3, +2.1], the printed one, and their ratio; empty where a number is missing."""
    ours, theirs, *ends = numbers([value, printed, *(interval or ())], f"+z.{of.decimals}f")
    ratio = numbers([value / printed], ".1f")[0] if value is not None and printed else ""
    return {"ours": f"{ours} [{', '.join(ends)}]" if ends else ours, "paper": theirs, "ratio": ratio}


# Rows that no claim compares, and claims that cannot be answered


def _other_rows(answered: Iterable[Judged], data: ScaleData) -> Iterator[Block]:
    """The rows of Table 3 that have runs but that no claim here compares with the base, compared with it."""
    told = {row for one in answered if len(one.claim.rows) == 2 and B0 in one.claim.rows for row in one.claim.rows}
    found = {(row, of): to_base(data.evidence, row, of) for row in TABLE3 if row != B0 for of in (LOG_PPL, BLEU)}
    rows = [row for row in TABLE3 if row not in {B0, *told} and any(found[row, of] for of in (LOG_PPL, BLEU))]
    if not rows or B0 not in data.evidence.printed:
        return
    columns = [Column("", "row", [label(row_of(row), data.evidence.explored[row][0].hyper) for row in rows])]
    for of in (LOG_PPL, BLEU):
        cells = []
        for row in rows:
            one, less = found[row, of], _printed_to_base(data.evidence, row, of)
            cells.append(_beside(one.value if one else None, one.over_seeds if one else None, less, of))
        columns += _columns(of, cells)
    yield Heading("Rows that no claim here compares")
    yield Text("Each less the base, above zero where the row is better; printed differences this small ask more runs.")
    yield Table(tuple(columns))


def _not_answered(judged: Iterable[Judged], evidence: Evidence, scale: str) -> str:
    """The claims about trained rows that are not answered, by what they lack, and what missing rows would cost."""
    lacking: dict[str, list[str]] = {}
    wanted: dict[str, None] = {}
    for one in judged:
        if one.claim.is_trained and not is_answered(one, scale):
            larger = " or a larger scale" * (one.claim.scale != SCALE_ORDER[-1])
            why = TOO_FEW if one.reason.startswith(TOO_FEW) else with_minus(one.reason)
            if is_here := may_judge(scale, one.claim):
                wanted |= dict.fromkeys(one.claim.rows)
            lacking.setdefault(why if is_here else f"needs {one.claim.scale}{larger}", []).append(one.claim.id)
    told = "; ".join(f"{why}: {', '.join(ids)}" for why, ids in lacking.items())
    there = {f"{run.table}/{run.row}" for run in evidence.everything}
    rows = [row_of(row) for row in wanted if row not in there]
    missing = SEEDS * len(rows)
    base = [run for run in evidence.records if f"{run.table}/{run.row}" == B0]
    hours = [(run.cost["train_seconds"] + run.cost["decode_seconds"]) * run.stamp["n_threads"] / 3600 for run in base]
    cost = f", about {missing * statistics.fmean(hours):.1f} core-hours" if hours else ""
    not_run = f" Not run: {', '.join(rows)}; {missing} runs{cost}." * bool(rows)
    return f"Not answered here: {told}.{not_run}" * bool(lacking)


def sheet(judged: Iterable[Judged]) -> str:
    """One line for each claim and endpoint, in full precision, as comma-separated values."""
    names = ("endpoint", "n", "value", "low", "high", "paper", "level", "detectable", "outcome")
    lines = list[dict[str, Any]]()
    for one in judged:
        claim = one.claim
        about = {"claim": claim.id, "where": claim.where, "kind": claim.kind, "sentence": one.sentence}
        about["rows"] = " ".join(claim.rows)
        verdict = {"verdict": one.verdict, "explored": one.explored}
        for found in one.found:
            runs, of = " ".join(map(str, found.runs)), found.verdict
            ours = (found.endpoint.name, runs, found.value, *(found.interval or (None, None)))
            values = (*ours, found.printed, found.level, of.detectable, of.outcome)
            lines.append(about | dict(zip(names, values, strict=True)) | verdict | {"reason": of.reason})
        if not one.found:
            reason = ": ".join(filter(None, [" ".join(claim.tests), one.reason]))
            lines.append(about | dict.fromkeys(names) | verdict | {"reason": reason})
    return comma_separated(lines)
