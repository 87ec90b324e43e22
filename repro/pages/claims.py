"""The page of verdicts: the claims that a scale can answer, one by one, then those that it cannot. Paper: all of it."""

import itertools
import statistics
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from repro.claims.blocks import ALPHA
from repro.claims.bootstrap import Place
from repro.claims.catalogue import SCALE_ORDER, catalogue_digest
from repro.claims.claim import B0, BLEU, LOG_PPL, TABLE3, Claim, Endpoint
from repro.claims.decisions import EXCLUDED, FIRST_SEED, OF_HOUSE, OF_PRINT, OF_SIGN, OF_SIZE, SEEDS, Outcome
from repro.claims.evidence import NOTHING_PUBLISHED, Evidence, Published, why_apart
from repro.claims.judge import OUTCOMES, TOO_FEW, Found, Judged, may_judge, may_judge_sizes
from repro.claims.to_base import Distances
from repro.pages.columns import MINUS, comma_separated, marked, rules_between, tabled, with_minus
from repro.pages.scale_data import Summary
from repro.render.page import Block, Column, Heading, Link, Listing, Page, Strong, Table, Text, Words, blocks, made_from
from repro.render.several import several
from repro.results.parts import length_decides
from repro.results.record import PaperNumbers
from repro.results.parts import Interval

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
    name: str  # of its sentences
    said: str


OF_PAPER = Subject("The claims of the paper", "claims", "what the paper says")
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
    "same as printed, **ratio** ours over it, **found from** the size that would have been found with a chance of 80 % "
    "where nothing was."
)
OVER_SENTENCES, NO_SENTENCES = "over sentences", MappingProxyType[Place, Interval]({})
NO_LENGTHS = MappingProxyType[str, float]({})
PROMISE = (
    f"Judged by rows + seeds on seeds {FIRST_SEED} to {FIRST_SEED + SEEDS - 1} of every row, as declared before the "
    f"runs; the chance of any wrong verdict about trained rows on this page is meant to be {100 * ALPHA:g} %."
)
AS_PUBLISHED = (
    f"The verdicts are those published before {FIRST_SEED} was the first seed, by the rules of their time. The numbers "
    "are of the same runs by rows + seeds, an analysis that was chosen when they were known, so what it makes of them "
    f"is exploration; seeds {FIRST_SEED} to {FIRST_SEED + SEEDS - 1} will confirm it or not."
)
BELOW = " At this scale a verdict speaks of the sign of a difference: model and text are not the paper's."


def page(
    judged: Sequence[Judged],
    evidence: Evidence,
    runs: Summary,
    sentences: Mapping[Place, Interval] = NO_SENTENCES,
    *,
    to_project: str = "../..",
    of: Subject = OF_PAPER,
    answers: Sequence[Block] = (),
    published: Published = NOTHING_PUBLISHED,
    printed: Mapping[str, PaperNumbers] = MappingProxyType({}),
    lengths: Mapping[str, float] = NO_LENGTHS,
) -> Page:
    """The verdicts of one scale; `to_project` leads from the page to the project's folder.

    `sentences` are the differences in BLEU with their intervals over sentences. `of` is the subject, and `answers` are
    shown before the tables. `printed` are the paper's numbers for rows, and `lengths` those of the rows' translations.
    Which runs settle nothing, and why, stands on the page of claims alone.
    """
    order = [*ABOUT].index
    answered = sorted(
        (one for one in judged if is_answered(one, runs.scale)), key=lambda one: order(group_of(one.claim))
    )
    is_of_paper = of is OF_PAPER
    return Page(
        made_from("the records in this folder"),
        blocks(
            Heading(f"{of.title} at scale {runs.scale}", 1),
            Text(agreement(evidence, printed) if is_of_paper else ""),
            Text(f"{several(len(answered), of.name[:-1])} can be answered here: {told_counts(answered)}"),
            answers,
            Text(ABOUT_NUMBERS if answered else ""),
            _tables(answered, sentences, lengths, of) if answered else (),
            _other_rows(answered, evidence, printed) if is_of_paper else (),
            Heading("How it was judged"),
            Text(_not_answered(judged, evidence, runs.scale)),
            Text(promise(judged, runs.scale, published)),
            (*exploration(evidence), Text(sizes_here(runs))) if is_of_paper else (),
            Text((Link("How verdicts are made", f"{to_project}/{RULES}"), f". List of claims: {catalogue_digest()}.")),
        ),
    )


def is_answered(one: Judged, scale: str) -> bool:
    """Whether the page has an answer to a claim about trained rows: it was judged, or has numbers to explore."""
    if not one.claim.is_trained or not may_judge(scale, one.claim):
        return False
    return one.verdict != "not judged" or one.explored not in (None, "not judged")


def agreement(evidence: Evidence, printed: Mapping[str, PaperNumbers]) -> str:
    """The first sentence: how our differences to the base agree with the printed ones; empty without such numbers."""
    found = {one.name: Distances(evidence).agreement(printed, one) for one in (LOG_PPL, BLEU)}
    known = {name: of for name, of in found.items() if of}
    if not known:
        return ""
    said = " and ".join(f"{with_minus(f'{of.rank_correlation:.2f}')} in {name}" for name, of in known.items())
    rows = max(of.rows for of in known.values())
    return (
        f"Over {rows} rows of Table 3, our differences to the base and those that the paper prints have a rank "
        f"correlation of {said}."
    )


def promise(judged: Iterable[Judged], scale: str, published: Published = NOTHING_PUBLISHED) -> str:
    """How far the verdicts about trained rows may be trusted; if a page has none, only that it has none."""
    judged = list(judged)
    if not settles(judged):
        return f"{published.void}. " * bool(published.void) + (
            "Nothing about trained rows is judged here: no claim has all the runs that it needs."
        )
    is_published = any(one.verdict != "not judged" and one.explored for one in judged)
    return (AS_PUBLISHED if is_published else PROMISE) + BELOW * (not may_judge_sizes(scale))


def settles(judged: Iterable[Judged]) -> bool:
    """Whether any claim about trained rows was judged."""
    return any(one.claim.is_trained and one.verdict != "not judged" for one in judged)


def exploration(evidence: Evidence) -> Sequence[Block]:
    """Which runs settle nothing, and why; empty where all count."""
    if not evidence.apart:
        return ()
    lines = tuple(f"{line}." for line in why_apart(evidence.apart))
    return Text("Exploratory runs, which settle nothing:"), Listing(lines)


def sizes_here(runs: Summary) -> str:
    """The sizes at this scale of rows that are named after the paper's sizes; empty where they are the same."""
    others = ", ".join(runs.rows_here)
    return f"Rows keep the paper's names. At this scale they are {others}." if others else ""


def group_of(claim: Claim) -> str:
    """The heading of the page under which a claim stands, a key of `ABOUT`."""
    return claim.table if claim.is_trained else claim.kind


def by_subject(judged: Sequence[Judged]) -> dict[str, list[Judged]]:
    """Claims grouped into those that runs of this scale settle, and those that are the same at every scale."""
    return {
        "about trained rows": [one for one in judged if one.claim.is_trained],
        "about arithmetic, code and layers": [one for one in judged if not one.claim.is_trained],
    }


def told_counts(judged: Iterable[Judged]) -> str:
    """The outcomes counted in words: reproduced 12, contradicted 3."""
    counts = Counter(one.verdict for one in judged)
    return ", ".join(f"{outcome} {counts[outcome]}" for outcome in OUTCOMES if counts[outcome]) + "."


def _tables(
    members: Sequence[Judged],
    sentences: Mapping[Place, Interval],
    lengths: Mapping[str, float],
    of: Subject,
) -> Iterator[Block]:
    """The verdicts, ruled between tables, then the numbers of each score; notes for the reader."""
    tables, names = [one.claim.table for one in members], Column("", "claim", [one.claim.id for one in members])
    what = (
        names,
        Column("", "table", tables, is_words=True),
        Column("", of.said, [one.sentence for one in members], is_words=True),
        Column("", "n", [_seeds(one) for one in members]),
        Column("", "verdict", [_verdict(one) for one in members], is_words=True),
    )
    yield Table(what, rules_between(tables))
    for _, numbers in itertools.groupby(claim_numbers(members, sentences, lengths), key=lambda column: column.group):
        yield tabled([names, *numbers])
    yield Listing(tuple(f"{one.claim.id}: {one.claim.note}" for one in members if one.claim.note))


def _verdict(one: Judged) -> Words:
    """The verdict; for a claim that is not judged yet, the outcome of exploration."""
    if one.verdict == "not judged":
        return f"not judged; explored: {one.explored}"
    return Strong(one.verdict), f"; explored: {one.explored}" * (one.explored not in (None, one.verdict))


def _seeds(one: Judged) -> str:
    """How many runs the rows of the claim have."""
    counts = one.found[0].runs
    return str(counts[0]) if len({*counts}) == 1 else f"{min(counts)} to {max(counts)}"


def claim_numbers(
    members: Sequence[Judged],
    sentences: Mapping[Place, Interval],
    lengths: Mapping[str, float] = NO_LENGTHS,
) -> Iterator[Column]:
    """For each endpoint: our number with interval and mark, the paper's, and the detectable size.

    No columns where no claim has a number; a claim that names the best of several rows has none.
    """
    for endpoint in dict.fromkeys(one.endpoint for member in members for one in member.found):
        found = [{one.endpoint: one for one in member.found}.get(endpoint) for member in members]
        if not any(one and (one.value is not None or one.printed is not None) for one in found):
            continue
        yield Column(endpoint.name, "ours", [_ours(one) for one in found])
        columns = {
            OVER_SENTENCES: [_over_sentences(member, endpoint, sentences) for member in members],
            "length": [_length(member.claim, one, lengths) for member, one in zip(members, found, strict=True)],
            "paper": [_number(one.printed, endpoint) if one else "" for one in found],
            "ratio": [_ratio(one.value, one.printed) if one else "" for one in found],
            "found from": [_detectable(one) for one in found],
        }
        for heading, texts in columns.items():
            if any(texts):
                yield Column(endpoint.name, heading, texts)


def _number(value: float | None, endpoint: Endpoint) -> str:
    return "" if value is None else format(value, f"+z.{endpoint.decimals}f").replace("-", MINUS)


def _ours(found: Found | None) -> str:
    if found is None:
        return ""
    text = _number(found.value, found.endpoint) + _interval((found.low, found.high), found.endpoint)
    return f"{text} {MARKS.get(found.verdict.outcome, '')}".strip()


def _interval(ends: tuple[float | None, float | None], endpoint: Endpoint) -> str:
    """The interval as text with a leading space, to follow a number; empty where there is none."""
    low, high = (_number(end, endpoint) for end in ends)
    return f" [{low}, {high}]" if low else ""


def _ratio(ours: float | None, printed: float | None) -> str:
    return "" if ours is None or not printed else f"{ours / printed:.1f}".replace("-", MINUS)


def _detectable(found: Found | None) -> str:
    """The detectable size, where no effect was found."""
    if found is None or found.verdict.outcome not in (OF_SIGN.neither, OF_SIZE.neither, EXCLUDED):
        return ""
    size = found.verdict.detectable
    return "" if size is None else f"{size:.{found.endpoint.decimals}f}"


def _length(claim: Claim, found: Found | None, lengths: Mapping[str, float]) -> str:
    """The difference of lengths, shown beside a difference in BLEU on dev, and whether it decides."""
    if found is None or found.endpoint.score != BLEU.score or len(claim.rows) != 2:
        return ""
    better, worse = map(lengths.get, claim.rows)
    if better is None or worse is None:
        return ""
    text = f"{better - worse:+.3f}".replace("-", MINUS)
    if not found.value or len(found.means) != 2:
        return text
    bleus = found.means[0], found.means[1]
    return f"{text}, decides" if length_decides(found.value, bleus, (better, worse)) else text


def _over_sentences(one: Judged, endpoint: Endpoint, sentences: Mapping[Place, Interval]) -> str:
    """The interval over sentences, [-0.3, +1.2]; empty without it."""
    interval = sentences.get((one.claim.id, endpoint.name))
    return _interval((interval.low, interval.high), endpoint).lstrip() if interval else ""


# Rows that no claim compares, and claims that cannot be answered


def _other_rows(answered: Iterable[Judged], evidence: Evidence, printed: Mapping[str, PaperNumbers]) -> Iterator[Block]:
    """The rows of Table 3 that have runs but that no claim here compares with the base, compared with it."""
    told = {row for one in answered if len(one.claim.rows) == 2 for row in one.claim.rows if B0 in one.claim.rows}
    distances = Distances(evidence)
    found = {row: [distances(row, of) for of in (LOG_PPL, BLEU)] for row in TABLE3 if row not in told and row != B0}
    found = {row: of for row, of in found.items() if any(of)}
    if not found or B0 not in printed:
        return
    columns = [Column("", "row", [row.split("/", 1)[1] for row in found])]
    for i, of in enumerate((LOG_PPL, BLEU)):
        here = [one[i] for one in found.values()]
        ours = [None if one is None else one.value for one in here]
        ends = [(one and one.over_seeds) or (None, None) for one in here]
        theirs = [_less(printed.get(row), printed[B0], of) for row in found]
        columns += [
            Column(of.name, "ours", [_number(one, of) + _interval(at, of) for one, at in zip(ours, ends, strict=True)]),
            Column(of.name, "paper", [_number(one, of) for one in theirs]),
            Column(of.name, "ratio", [_ratio(one, other) for one, other in zip(ours, theirs, strict=True)]),
        ]
    yield Heading("Rows that no claim here compares")
    yield Text("Each less the base, above zero where the row is better; printed differences this small ask more runs.")
    yield Table(tuple(columns))


def _less(row: PaperNumbers | None, base: PaperNumbers, endpoint: Endpoint) -> float | None:
    """The printed difference of a row to the base; None where the paper does not print both."""
    ours, theirs = (one and endpoint.printed(one) for one in (row, base))
    return None if ours is None or theirs is None else ours - theirs


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
    if not lacking:
        return ""
    told = "; ".join(f"{why}: {', '.join(ids)}" for why, ids in lacking.items())
    there = {f"{run.table}/{run.row}" for run in evidence.everything}
    rows = [row.split("/", 1)[1] for row in wanted if row not in there]
    missing = SEEDS * len(rows)
    hours = [
        (run.cost["train_seconds"] + run.cost["decode_seconds"]) * run.stamp["n_threads"] / 3600
        for run in evidence.records
        if f"{run.table}/{run.row}" == B0
    ]
    cost = f", about {missing * statistics.fmean(hours):.1f} core-hours" if hours else ""
    return f"Not answered here: {told}." + f" Not run: {', '.join(rows)}; {missing} runs{cost}." * bool(rows)


def sheet(judged: Iterable[Judged], sentences: Mapping[Place, Interval] = NO_SENTENCES) -> str:
    """One line for each claim and endpoint, in full precision, as comma-separated values.

    `sentences` are the differences in BLEU with their intervals over sentences.
    """
    lines = list[dict[str, Any]]()
    for one in judged:
        for found in one.found or (None,):
            over = sentences.get((one.claim.id, found.endpoint.name)) if found else None
            lines.append(
                {
                    "claim": one.claim.id,
                    "where": one.claim.where,
                    "kind": one.claim.kind,
                    "sentence": one.sentence,
                    "rows": " ".join(one.claim.rows),
                    "endpoint": found and found.endpoint.name,
                    "n": found and " ".join(map(str, found.runs)),
                    "value": found and found.value,
                    "low": found and found.low,
                    "high": found and found.high,
                    "sentences_low": over and over.low,
                    "sentences_high": over and over.high,
                    "paper": found and found.printed,
                    "level": found and found.level,
                    "detectable": found and found.verdict.detectable,
                    "outcome": found and found.verdict.outcome,
                    "verdict": one.verdict,
                    "explored": one.explored,
                    "reason": found.verdict.reason
                    if found
                    else ": ".join(filter(None, [" ".join(one.claim.tests), one.reason])),
                }
            )
    return comma_separated(lines)
