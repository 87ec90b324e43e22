"""The verdicts on a page: the counts, then the claims table by table, then how they were judged. Paper: all of it."""

import csv
import io
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from repro.claims.catalogue import catalogue_digest
from repro.claims.claim import Claim
from repro.claims.decisions import Outcome
from repro.claims.judge import OUTCOMES, Found, Judged
from repro.claims.statistics import ALPHA
from repro.pages.cells import MINUS, sheet_number
from repro.render.escape import sheet_text
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
    "arithmetic": "Arithmetic of the paper's own numbers",
    "structural": "Settled by tests",
    "measured": "Measured on layers, or not settled yet",
    "qualitative": "Shown, not judged",
}
MARKS: dict[Outcome, str] = {
    "reproduced": "✓",
    "contradicted": "✗",
    "inconclusive": "?",
    "unstable": "!",
    "not judged": "",
}
ABOUT_NUMBERS: Words = (
    "Differences are turned so that a positive one is what the paper says: mean over seeds, [95 % t-interval]. ",
    Strong("paper"),
    " is the same from its print. A trend is the slope per doubling. ",
    Strong("detectable"),
    ' is what this many runs find with a chance of 80 %, and in brackets the chance of "reproduced" if the truth is '
    "what the paper prints.",
)
ABOUT_PROCEDURE = (
    "Nothing is judged below three seeds of a row, nor at a scale too small for the claim. The spread between seeds is "
    "pooled over all rows. The directions, trends and equivalences of one table, on both endpoints, share by Holm's "
    f"procedure a chance of {100 * ALPHA:g} % that one of them is reproduced wrongly, and about as much that one is "
    "contradicted wrongly; what is not run yet keeps its place among them. Magnitudes and point values use 95 % "
    f"prediction intervals; the best of a family is found by Hsu's comparison with the best, at {100 * ALPHA:g} %. A "
    "direction is contradicted where the difference is smaller than the paper's single runs could have seen. The "
    "claims, their margins and levels were listed before the runs. A verdict on trained rows holds for the text and "
    "the model of this scale. In full: "
)
RULES = "docs/claims.md"  # of the project: the procedure in full


def page(judged: Sequence[Judged], runs: Summary, *, to_project: str = "../..") -> Page:
    """The verdicts of one scale; `to_project` leads from the page to the project's folder."""
    groups: dict[str, list[Judged]] = {key: [] for key in ABOUT}
    for one in judged:
        groups[_group(one.claim)].append(one)
    groups = {key: members for key, members in groups.items() if members}
    left_out = f" {runs.n_dirty} more are of uncommitted code and left out." if runs.n_dirty else ""
    return Page(
        made_from("the records in this folder"),
        blocks(
            Heading(f"The claims of the paper at scale {runs.scale}", 1),
            Text(f"{len(judged)} claims, {runs.n - runs.n_dirty} runs.{left_out} {_in_words(judged)}"),
            _counts(groups),
            Text(sizes_here(runs)),
            Text(ABOUT_NUMBERS),
            (part for key, members in groups.items() for part in (Heading(ABOUT[key]), *_section(members))),
            Heading("How it was judged"),
            Text((ABOUT_PROCEDURE, Link("how verdicts are made", f"{to_project}/{RULES}"), ".")),
            Text(f"List of claims: {catalogue_digest()}."),
        ),
    )


def sizes_here(runs: Summary) -> str:
    """What the paper's sizes, of which claims speak, are at this scale; nothing where they are the same."""
    others = ", ".join(runs.rows_here)
    return f"Claims speak of the paper's sizes. At this scale its rows are {others}." if others else ""


def _group(claim: Claim) -> str:
    return claim.table if claim.is_trained else claim.kind


def _in_words(judged: Iterable[Judged]) -> str:
    """12 reproduced, 3 contradicted."""
    counts = Counter(one.verdict for one in judged)
    return ", ".join(f"{counts[outcome]} {outcome}" for outcome in OUTCOMES if counts[outcome]) + "."


def _counts(groups: Mapping[str, Sequence[Judged]]) -> Table:
    """How many claims of each group came out how, and of all."""
    counts = {ABOUT[key]: Counter(one.verdict for one in members) for key, members in groups.items()}
    total = sum(counts.values(), Counter())
    return Table(
        (
            Column("", "claims", [*counts, (Strong("all"),)]),
            *(
                Column("", outcome, [*(f"{of[outcome] or ''}" for of in counts.values()), (Strong(total[outcome]),)])
                for outcome in OUTCOMES
            ),
        ),
        frozenset({len(counts)}),
    )


def _section(members: Sequence[Judged]) -> Iterator[Block]:
    """The claims of one group; of trained rows their numbers too, and why those that are judged came out so."""
    claims = [one.claim for one in members]
    what = Column("", "what the paper says", [claim.sentence for claim in claims], is_words=True)
    names = Column("", "claim", [claim.id for claim in claims])
    verdict = Column("", "verdict", [_verdict(one) for one in members], is_words=True)
    if not claims[0].is_trained:
        where = Column("", "section", [claim.where for claim in claims], is_words=True)
        yield Table((names, where, what, verdict, Column("", "by", [_by(one) for one in members], is_words=True)))
        return
    kind = Column("", "kind", [claim.kind for claim in claims], is_words=True)
    yield Table((names, what, kind, Column("", "n", [_seeds(one) for one in members]), verdict))
    if any(one.value is not None or one.printed is not None for member in members for one in member.found):
        numbers = tuple(_numbers(members))
        yield Table((names, *numbers))
        yield Text(_about_marks(numbers))
    yield Listing(tuple(f"{one.claim.id}: {one.reason}." for one in members if _is_judged(one)))


def _is_judged(one: Judged) -> bool:
    return one.verdict != "not judged"


def _verdict(one: Judged) -> Words:
    """The verdict; of trained rows that are not judged the reason as well, which else stands below or beside it."""
    if _is_judged(one):
        return (Strong(one.verdict),)
    return f"{one.verdict}: {one.reason}" if one.claim.is_trained else one.verdict


def _by(one: Judged) -> Words:
    return joined([(Code(test),) for test in one.claim.tests], ", ") if one.claim.tests else one.reason


def _seeds(one: Judged) -> str:
    """How many runs a row of the claim has."""
    counts = one.found[0].runs
    return str(counts[0]) if len({*counts}) == 1 else f"{min(counts)} to {max(counts)}"


def _numbers(members: Sequence[Judged]) -> Iterator[Column]:
    """On each endpoint ours with its interval and mark, the paper's, and what could have been detected."""
    for endpoint in dict.fromkeys(one.endpoint for member in members for one in member.found):
        cells = []
        for member in members:
            found = {one.endpoint: one for one in member.found}.get(endpoint)
            cells.append(_cells_of(found, is_score=member.claim.kind == "point value") if found else ("", "", ""))
        for heading, texts in zip(("ours", "paper", "detectable"), zip(*cells, strict=True), strict=True):
            yield Column(endpoint.name, heading, texts)


def _cells_of(found: Found, *, is_score: bool) -> tuple[str, str, str]:
    form = f"{'' if is_score else '+'}z.{found.endpoint.decimals}f"

    def text(number: float | None) -> str:
        return "" if number is None else format(number, form).replace("-", MINUS)

    interval = f" [{text(found.low)}, {text(found.high)}]" if found.low is not None else ""
    ours = f"{text(found.value)}{interval} {MARKS[found.verdict.outcome]}".strip()
    smallest, power = found.verdict.detectable, found.verdict.power
    detectable = "" if smallest is None else f"{smallest:.{found.endpoint.decimals}f}"
    return ours, text(found.printed), f"{detectable} ({100 * power:.0f} %)".strip() if power is not None else detectable


def _about_marks(numbers: Iterable[Column]) -> str:
    """✓ reproduced, ✗ contradicted: the marks that occur."""
    shown = {plain(text)[-1:] for column in numbers for text in column.texts}
    said = [f"{mark} {outcome}" for outcome, mark in MARKS.items() if mark and mark in shown]
    return f"{', '.join(said)}." if said else ""


def sheet(judged: Iterable[Judged]) -> str:
    """One line for each claim and endpoint, in full precision, as comma-separated values."""
    lines = io.StringIO()
    columns = (
        "claim where kind sentence rows endpoint n value low high paper level detectable power outcome verdict reason"
    )
    writer = csv.DictWriter(lines, columns.split(), lineterminator="\n")
    writer.writeheader()
    for one in judged:
        claim = one.claim
        shared = {
            "claim": claim.id,
            "where": claim.where,
            "kind": claim.kind,
            "sentence": claim.sentence,
            "rows": sheet_text(" ".join(claim.rows)),
            "verdict": one.verdict,
        }
        writer.writerows(shared | _sheet_cells(found) for found in one.found)
        if not one.found:
            writer.writerow(shared | {"reason": sheet_text(one.reason)})
    return lines.getvalue()


def _sheet_cells(found: Found) -> dict[str, str]:
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
