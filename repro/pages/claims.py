"""The verdicts on a page: the counts, then the claims table by table, then how they were judged. Paper: all of it."""

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from repro.claims.bootstrap import Place
from repro.claims.claim import Claim, Endpoint
from repro.claims.decisions import BASE_SEEDS, FIRST_SEED, LOOKS, OF_HOUSE, OF_PRINT, OF_SIGN, OF_SIZE, Outcome
from repro.claims.evidence import Evidence, needed, why_apart
from repro.claims.judge import OUTCOMES, Found, Judged, may_judge, may_judge_sizes
from repro.claims.lists import catalogue_digest
from repro.claims.simulated import worst
from repro.claims.statistics import ALPHA
from repro.pages.cells import MINUS, with_minus
from repro.pages.sheet import comma_separated
from repro.pages.words import MADE_AGAIN
from repro.render.origin import made_from
from repro.render.page import (
    Block,
    Code,
    Column,
    Heading,
    Link,
    Listing,
    Page,
    Strong,
    Table,
    Text,
    Words,
    blocks,
    joined,
    plain,
)
from repro.results.repeatable import repeatable
from repro.results.resampled import RESAMPLES, Interval
from repro.results.summary import Summary

NAME = "claims"
ABOUT = {  # what each group of the page begins with, in the page's order
    "table2": "Table 2: the big models",
    "table3_A": "Table 3 (A): heads",
    "table3_B": "Table 3 (B): width of the keys",
    "table3_C": "Table 3 (C): depth and width",
    "table3_D": "Table 3 (D): dropout and label smoothing",
    "table3_E": "Table 3 (E): learned positions",
    "table3_big": "Table 3: big",
    "base": "Table 3: base",
    "table4": "Table 4: parsing",
    "ladder": "The ladder: the systems before it",
    "lab_scores": "The lab: scores, and what heads share",
    "lab_selection": "The lab: selection",
    "lab_positions": "The lab: positions",
    "lab_parts": "The lab: norms, residuals and other parts",
    "arithmetic": "Arithmetic of the paper's own numbers",
    "structural": "Settled by tests",
    "measured": "Measured on layers, or not settled yet",
    "qualitative": "Shown, not judged",
}


class Subject(NamedTuple):
    """What a page of verdicts is about."""

    title: str
    name: str  # of its sentences
    said: str


OF_PAPER = Subject("The claims of the paper", "claims", "what the paper says")
MARKS: dict[Outcome, str] = {
    **{words.yes: "✓" for words in (OF_SIZE, OF_SIGN, OF_PRINT, OF_HOUSE)},
    **{words.no: "✗" for words in (OF_SIZE, OF_SIGN, OF_PRINT, OF_HOUSE)},
    **{words.neither: "?" for words in (OF_SIZE, OF_SIGN)},
    "not testable here": "–",
    "unstable": "!",
}
EXPLORED = "°"
RULES = "docs/claims.md"  # of the project: the procedure in full
ABOUT_NUMBERS: Words = (
    "A difference is above zero where it agrees with the claim: mean over seeds, [95 % t-interval]. ",
    Strong("paper"),
    " is the same from the numbers that the paper prints. A trend is the least-squares slope per doubling. ",
    Strong("detectable"),
    " is the size of a difference that this many runs find with a chance of 80 %",
)
ABOUT_BOUNDS = (
    "With a verdict stand the bounds that it was decided by. They allow for all that is judged on this page, so "
    "they are wider than the intervals: an interval may leave out 0 where the verdict is still open."
)
OVER_SENTENCES, NO_SENTENCES = "over sentences", MappingProxyType[Place, Interval]({})
ABOUT_SENTENCES: Words = (
    Strong(OVER_SENTENCES),
    " is the 95 % interval of the same difference by sacreBLEU's paired bootstrap: the same runs on sentences that are "
    f"drawn {RESAMPLES:,} times, the same sentences for every run. Where it is ",
    Strong("wider"),
    " than the interval over seeds, more sentences would tell more than more seeds. Verdicts rest on the seeds.",
)
OF_POWER = ', and in brackets the chance of "reproduced" if the truth is what the paper prints'
ABOUT_PROCEDURE = (
    f"Seeds count from {FIRST_SEED} on, and only in runs that began when the claim was listed as it stands: "
    f"{BASE_SEEDS} of the base, and "
    + " or ".join(f"{look.seeds} of every other row (at {100 * look.alpha:g} %)" for look in LOOKS)
    + ", as was declared before the runs; more seeds than a look takes change no verdict. The spread between seeds "
    "is pooled over the rows; the base keeps its own, and so does a row whose spread is larger. While rows are "
    "missing it is pooled over fewer, so a verdict may change as they come. All directions, trends and equivalences "
    "that this scale may judge, on all scores, share the level of a look by Holm's procedure; claims that are not run"
    " yet keep their place among them. Magnitudes and point values are consistent by a 95 % prediction interval, and "
    "not consistent only by an interval at the level of the page; the best of a family is found by Hsu's comparison "
    "with the best. A verdict on trained rows holds for the text and the model of this scale. In full: "
)
PROMISE = (
    f"The rules are meant to keep the chance of any wrong verdict about trained rows on this page to "
    f"{100 * ALPHA:g} %, over both looks together."
)
BELOW = (
    " At this scale a verdict speaks of the sign of a difference, never of its size: the model and the text are not "
    "the paper's."
)


def page(
    judged: Sequence[Judged],
    evidence: Evidence,
    runs: Summary,
    sentences: Mapping[Place, Interval] = NO_SENTENCES,
    *,
    to_project: str = "../..",
    of: Subject = OF_PAPER,
    answers: Sequence[Block] = (),
) -> Page:
    """The verdicts of one scale; `to_project` leads from the page to the project's folder.

    `sentences` are the differences in BLEU with their intervals over sentences. `of` is what is judged, and `answers`
    are what it comes to, before the tables.
    """
    groups: dict[str, list[Judged]] = {key: [] for key in ABOUT}
    for one in judged:
        groups[group_of(one.claim)].append(one)
    groups = {key: members for key, members in groups.items() if members}
    is_sized = may_judge_sizes(runs.scale)
    return Page(
        made_from("the records in this folder"),
        blocks(
            Heading(f"{of.title} at scale {runs.scale}", 1),
            Text(f"{len(judged)} {of.name}: {told_counts(judged)} {len(evidence.records)} of {runs.n} runs count."),
            Text(promise(judged, evidence, runs.scale, of)),
            exploration(evidence),
            _counts(groups, of),
            answers,
            Text(sizes_here(runs)),
            Text((*ABOUT_NUMBERS, f"{OF_POWER * is_sized}. ", ABOUT_BOUNDS)),
            Text(ABOUT_SENTENCES if sentences else ""),
            (
                part
                for key, members in groups.items()
                for part in (Heading(ABOUT[key]), *_section(members, sentences, of))
            ),
            Heading("How it was judged"),
            Text((ABOUT_PROCEDURE, Link("how verdicts are made", f"{to_project}/{RULES}"), ".")),
            Text(f"List of claims: {catalogue_digest()}."),
            (Heading(MADE_AGAIN), Listing(tuple(repeatable(evidence.records)))) if evidence.records else (),
        ),
    )


def promise(judged: Sequence[Judged], evidence: Evidence, scale: str, of: Subject = OF_PAPER) -> str:
    """What the verdicts about trained rows may be trusted with; of a page that has none only that."""
    if not settles(judged):
        return "Nothing about trained rows is judged here: no claim has all the runs that it needs."
    below = BELOW * (not may_judge_sizes(scale))
    trained = [one for one in judged if one.claim.is_trained]
    return PROMISE + _simulated(scale, of) + below + _incomplete(trained, evidence, scale)


def settles(judged: Iterable[Judged]) -> bool:
    """Whether any claim about trained rows was judged."""
    return any(one.claim.is_trained and one.verdict != "not judged" for one in judged)


def settled_claims(judged: Sequence[Judged]) -> Listing:
    """The claims about trained rows that were judged, each on a line."""
    return Listing(
        tuple(
            (Strong(one.verdict), f": {one.sentence} ({one.claim.id}; {with_minus(one.reason)})")
            for verdict in OUTCOMES
            if verdict != "not judged"
            for one in judged
            if one.claim.is_trained and one.verdict == verdict
        )
    )


def _simulated(scale: str, of: Subject) -> str:
    """What became of the promise in simulations; of statements, which were not simulated, that."""
    if of is not OF_PAPER:
        return f" The same rules were simulated on the claims of the paper ({RULES}), not on these {of.name}."
    if (found := worst(scale)) is None:
        return f" {RULES} has what simulations of them show; none is of this scale and this list of claims."
    return (
        f" Pages were simulated under several known truths: of the worst ({found.truth}), drawn anew, "
        f"{100 * found.share:.1f} % of {found.pages:,} held one ({RULES})."
    )


def _incomplete(trained: Iterable[Judged], evidence: Evidence, scale: str) -> str:
    """How many rows have how many seeds, and what that means for verdicts; nothing where all have theirs."""
    rows = dict.fromkeys(row for one in trained if may_judge(scale, one.claim) for row in one.claim.rows)
    first, last = ([row for row in rows if evidence.count(row) >= needed(row, look)] for look in LOOKS)
    if len(last) == len(rows):
        return ""
    counts = {
        f"have all their seeds ({LOOKS[-1].seeds}; the base {BASE_SEEDS})": len(last),
        f"those of the first look ({LOOKS[0].seeds})": len(first) - len(last),
        "too few or none": len(rows) - len(first),
    }
    told = ", ".join(f"{n} {which}" for which, n in counts.items() if n)
    return (
        f" The page is incomplete: of the {len(rows)} rows that this scale may judge {told}. Verdicts may change as "
        "rows come, since the spread between seeds is pooled over those that are there."
    )


def exploration(evidence: Evidence) -> Sequence[Block]:
    """Which runs settle nothing, and why; nothing where all count."""
    if not evidence.apart:
        return ()
    lines = tuple(f"{line}." for line in why_apart(evidence.apart))
    return Text("Exploratory runs, which settle nothing:"), Listing(lines)


def sizes_here(runs: Summary) -> str:
    """What the rows, which keep the paper's names, are at this scale; nothing where they are the same."""
    others = ", ".join(runs.rows_here)
    return f"Rows keep the paper's names. At this scale they are {others}." if others else ""


def group_of(claim: Claim) -> str:
    """Under which heading of the page a claim stands: a key of `ABOUT`."""
    return claim.table if claim.is_trained else claim.kind


def by_subject(judged: Sequence[Judged]) -> dict[str, list[Judged]]:
    """Claims that runs of this scale are asked for, and those that are alike at every scale."""
    return {
        "about trained rows": [one for one in judged if one.claim.is_trained],
        "about arithmetic, code and layers": [one for one in judged if not one.claim.is_trained],
    }


def told_counts(judged: Iterable[Judged]) -> str:
    """reproduced 12, contradicted 3."""
    counts = Counter(one.verdict for one in judged)
    return ", ".join(f"{outcome} {counts[outcome]}" for outcome in OUTCOMES if counts[outcome]) + "."


def _counts(groups: Mapping[str, Sequence[Judged]], of_page: Subject) -> Table:
    """How many claims of each group came out how, and of all."""
    counts = {ABOUT[key]: Counter(one.verdict for one in members) for key, members in groups.items()}
    total = sum(counts.values(), Counter())
    return Table(
        (
            Column("", of_page.name, [*counts, (Strong("all"),)]),
            *(
                Column("", outcome, [*(f"{of[outcome] or ''}" for of in counts.values()), (Strong(total[outcome]),)])
                for outcome in OUTCOMES
                if total[outcome]
            ),
        ),
        frozenset({len(counts)}),
    )


def _section(members: Sequence[Judged], sentences: Mapping[Place, Interval], of: Subject) -> Iterator[Block]:
    """The claims of one group; of trained rows their numbers too, and why those that are judged came out so."""
    claims = [one.claim for one in members]
    what = Column("", of.said, [one.sentence for one in members], is_words=True)
    names = Column("", "claim", [claim.id for claim in claims])
    verdict = Column("", "verdict", [_verdict(one) for one in members], is_words=True)
    if not claims[0].is_trained:
        where = Column("", "section", [claim.where for claim in claims], is_words=True)
        yield Table((names, where, what, verdict, Column("", "by", [_by(one) for one in members], is_words=True)))
        return
    kind = Column("", "kind", [claim.kind for claim in claims], is_words=True)
    yield Table((names, what, kind, Column("", "n", [_seeds(one) for one in members]), verdict))
    if numbers := tuple(claim_numbers(members, sentences)):
        yield Table((names, *numbers))
        yield Text(about_marks(numbers, {found.verdict.outcome for member in members for found in member.found}))
    yield Listing(tuple(f"{one.claim.id}: {with_minus(one.reason)}." for one in members if _is_judged(one)))


def _is_judged(one: Judged) -> bool:
    return one.verdict != "not judged"


def _verdict(one: Judged) -> Words:
    """The verdict; of trained rows that are not judged the reason as well, which else stands below or beside it."""
    if _is_judged(one):  # of which the reason stands below
        return (Strong(one.verdict),)
    return f"{one.verdict}: {with_minus(one.reason)}" if one.claim.is_trained else one.verdict


def _by(one: Judged) -> Words:
    """What settles it, what that says, and what a reader must know of it."""
    tests = joined([(Code(test),) for test in one.claim.tests], ", ")
    return (*tests, ": " * bool(tests), with_minus(one.reason), f". {one.claim.note}" * bool(one.claim.note))


def _seeds(one: Judged) -> str:
    """How many runs a row of the claim has."""
    counts = one.found[0].runs
    return str(counts[0]) if len({*counts}) == 1 else f"{min(counts)} to {max(counts)}"


def claim_numbers(members: Sequence[Judged], sentences: Mapping[Place, Interval]) -> Iterator[Column]:
    """On each endpoint ours with its intervals and mark, the paper's, and what could have been detected.

    Nothing where no claim has a number, as one that names the best of several rows.
    """
    if not _has_numbers(members):
        return
    for endpoint in dict.fromkeys(one.endpoint for member in members for one in member.found):
        cells = []
        for member in members:
            found = {one.endpoint: one for one in member.found}.get(endpoint)
            cells.append(_cells_of(found, is_score=member.claim.kind == "point value") if found else ("", "", ""))
        ours, *others = zip(*cells, strict=True)
        yield Column(endpoint.name, "ours", ours)
        over = [_over_sentences(member, endpoint, sentences) for member in members]
        if any(over):
            yield Column(endpoint.name, OVER_SENTENCES, over)
        for heading, texts in zip(("paper", "detectable"), others, strict=True):
            yield Column(endpoint.name, heading, texts)


def _has_numbers(members: Iterable[Judged]) -> bool:
    """Whether there is a difference or a mean to show, ours or the paper's."""
    return any(one.value is not None or one.printed is not None for member in members for one in member.found)


def _over_sentences(one: Judged, endpoint: Endpoint, sentences: Mapping[Place, Interval]) -> str:
    """[-0.3, +1.2], narrower: than that over seeds; nothing where the translations are not kept."""
    if (interval := sentences.get((one.claim.id, endpoint.name))) is None:
        return ""
    low, high = (format(end, f"+z.{endpoint.decimals}f").replace("-", MINUS) for end in (interval.low, interval.high))
    found = next(found for found in one.found if found.endpoint == endpoint)
    if found.low is None or found.high is None:
        return f"[{low}, {high}]"
    is_wider = interval.high - interval.low > found.high - found.low
    return f"[{low}, {high}], {'wider' if is_wider else 'narrower'}"


def _cells_of(found: Found, *, is_score: bool) -> tuple[str, str, str]:
    form = f"{'' if is_score else '+'}z.{found.endpoint.decimals}f"

    def text(number: float | None) -> str:
        return "" if number is None else format(number, form).replace("-", MINUS)

    interval = f" [{text(found.low)}, {text(found.high)}]" if found.low is not None else EXPLORED * found.explored
    ours = f"{text(found.value)}{interval} {MARKS.get(found.verdict.outcome, '')}".strip()
    smallest, power = found.verdict.detectable, found.verdict.power
    detectable = "" if smallest is None else f"{smallest:.{found.endpoint.decimals}f}"
    return ours, text(found.printed), f"{detectable} ({100 * power:.0f} %)".strip() if power is not None else detectable


def about_marks(numbers: Iterable[Column], outcomes: Container[Outcome]) -> str:
    """✓ same sign, ✗ opposite sign: the marks that occur, in the words that occur."""
    shown = {plain(text)[-1:] for column in numbers for text in column.texts}
    said: dict[str, list[str]] = {}
    for outcome, mark in MARKS.items():
        if mark in shown and outcome in outcomes:
            said.setdefault(mark, []).append(outcome)
    texts = [f"{mark} {' or '.join(of)}" for mark, of in said.items()]
    texts += [f"{EXPLORED} mean of runs that do not count"] if EXPLORED in shown else []
    return f"{', '.join(texts)}." if texts else ""


def sheet(judged: Iterable[Judged], sentences: Mapping[Place, Interval] = NO_SENTENCES) -> str:
    """One line for each claim and endpoint, in full precision, as comma-separated values.

    `sentences` are the differences in BLEU with their intervals over sentences.
    """
    columns = (
        "claim where kind sentence rows endpoint n value low high sentences_low sentences_high paper level detectable "
        "power outcome verdict reason"
    )
    nothing, lines = dict.fromkeys(columns.split()), list[dict[str, Any]]()
    for one in judged:
        claim = one.claim
        shared = nothing | {
            "claim": claim.id,
            "where": claim.where,
            "kind": claim.kind,
            "sentence": one.sentence,
            "rows": " ".join(claim.rows),
            "verdict": one.verdict,
        }
        for found in one.found:
            over = sentences.get((claim.id, found.endpoint.name))
            ends = {"sentences_low": over.low, "sentences_high": over.high} if over else {}
            lines.append(shared | _sheet_cells(found) | ends)
        if not one.found:
            lines.append(shared | {"reason": ": ".join([*filter(None, [" ".join(claim.tests)]), one.reason])})
    return comma_separated(lines)


def _sheet_cells(found: Found) -> dict[str, Any]:
    return {
        "endpoint": found.endpoint.name,
        "n": " ".join(map(str, found.runs)),
        "value": found.value,
        "low": found.low,
        "high": found.high,
        "paper": found.printed,
        "level": found.level,
        "detectable": found.verdict.detectable,
        "power": found.verdict.power,
        "outcome": found.verdict.outcome,
        "reason": found.verdict.reason,
    }
