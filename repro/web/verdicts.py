"""Verdicts: what a reader should learn in the first minute, then every claim and statement with its numbers."""

from collections import Counter
from collections.abc import Iterable

from markupsafe import Markup

from repro.claims.decisions import OUTCOMES
from repro.claims.judge import Judged, steps_against
from repro.pages import claims
from repro.pages.claims import exploration, promise
from repro.pages.columns import with_minus
from repro.pages.scale_data import ScaleData
from repro.render.markup import html
from repro.render.page import Column, Table, Text
from repro.web.report import Section
from repro.web.tables import SCRIPT, FirstRuns, first_runs, outcome_html, verdict_class

MEANT = {"yes": "as the paper says", "no": "the other way round"}


def overview_section(data: ScaleData) -> Section:
    """The decided claims of the paper, the numbers of the scale, and the counts of all verdicts."""
    runs = data.runs
    facts = [
        (f"{runs.n:,}", "runs"),
        (f"{runs.n_rows:,}", "rows"),
        (runs.took[0], f"{runs.took[1]} of training and decoding"),
        (f"{len(data.evidence.records):,}", "runs count as evidence"),
    ]
    figures = Markup().join(Markup("<div><dt>{}</dt><dd>{}</dd></div>").format(what, n) for n, what in facts)
    body = _decided(data.judged) + Markup('<dl class="figures">{}</dl>').format(figures)
    for is_trained, subject in ((True, "about trained rows"), (False, "about arithmetic, code and layers")):
        of = [one for one in data.judged if one.claim.is_trained == is_trained]
        said = Markup('<p class="tally"><strong>{} claims {}:</strong> {}</p>')
        counts = Counter(one.verdict for one in of)
        told = (outcome_html(outcome, f"{counts[outcome]}") for outcome in OUTCOMES if counts[outcome])
        body += said.format(len(of), subject, Markup(" ").join(told))
    body += Markup("<p>{}</p>").format(promise(data.judged, runs.scale, data.evidence))
    if apart := exploration(data.evidence):
        body += Markup('<details class="many"><summary>Runs that settle nothing, and why</summary>{}</details>').format(
            Markup(html(apart))
        )
    return Section(key="overview", title="At a glance", body=body)


def _decided(judged: Iterable[Judged]) -> Markup:
    """Claims about trained rows that were decided either way, in their own words, with links to their numbers."""
    groups: dict[str, list[Judged]] = {outcome: [] for outcome in OUTCOMES if verdict_class(outcome) != "open"}
    for one in judged:
        if one.claim.is_trained and one.verdict in groups:
            groups[one.verdict].append(one)
    lists = Markup().join(
        Markup("<div><h3>{} <span>{}</span></h3><ul>{}</ul></div>").format(
            outcome_html(outcome), MEANT[verdict_class(outcome)], Markup().join(map(_finding, of))
        )
        for outcome, of in groups.items()
        if of
    )
    return Markup('<div class="beside findings">{}</div>').format(lists) if lists else lists


def _finding(one: Judged) -> Markup:
    said = Markup('<li><a href="#claim-{}">{}</a>{}</li>')
    return said.format(one.claim.id, one.sentence, f" ({grounds})" if (grounds := _grounds(one)) else "")


def _grounds(one: Judged) -> str:
    """The scores that decided a claim, and those that say otherwise: log PPL, though ...; BLEU undetermined."""
    by = [f.endpoint.name + steps_against(one.claim, f) for f in one.found if f.verdict.outcome == one.verdict]
    others = [f"{f.endpoint.name} {f.verdict.outcome}" for f in one.found if f.verdict.outcome != one.verdict]
    return with_minus("; ".join([" and ".join(by), *others] if by else others))


def claims_section(data: ScaleData, of: claims.Subject = claims.OF_PAPER) -> Section:
    """The section of the paper's claims, or of statements from teaching texts, as `of` says."""
    judged = data.judged if of is claims.OF_PAPER else data.stated
    firsts = first_runs(data.result_set)
    groups: dict[str, list[Judged]] = {name: [] for name in claims.ABOUT}
    for one in judged:
        groups[claims.group_of(one.claim)].append(one)
    body = Markup("<p>{} {}: {} Click one to see the numbers behind it.</p>").format(
        len(judged), of.name, claims.told_counts(judged)
    )
    if any(one.found for one in judged):
        body += Markup(html([Text(claims.ABOUT_NUMBERS)]))
    body += Markup('<div class="grid" data-facets="verdict table kind" data-items=".item">')
    for name, members in groups.items():
        if members:
            items = Markup().join(_item(one, name, firsts) for one in members)
            body += Markup("<div data-group><h3>{}</h3>{}</div>").format(claims.ABOUT[name], items)
    body += Markup("</div>")
    sheets = {f"{of.name}.csv": claims.sheet(judged)}
    return Section(key=of.name, title=of.name.capitalize(), body=body, script=SCRIPT, csv=sheets)


def _item(one: Judged, group: str, firsts: FirstRuns) -> Markup:
    claim = one.claim
    head = Markup('<summary><span class="id">{}</span> {} {}</summary>').format(
        claim.id, one.sentence, outcome_html(one.verdict)
    )
    texts = [text for text in (with_minus(one.reason), claim.note) if text]
    told = ". ".join(text.removesuffix(".") for text in texts)  # some end with a full stop
    inside = Markup("<p>{}.</p>").format(told[:1].upper() + told[1:]) if told else Markup()
    if one.found:
        runs = Column("", "runs of each row", [", ".join(map(str, one.found[0].runs))])
        numbers = tuple(claims.claim_numbers([one], {}))
        inside += Markup('<div class="scroll">{}</div>').format(Markup(html([Table((runs, *numbers))])))
    if claim.rows:
        inside += Markup('<p class="small">Rows: {}</p>').format(
            Markup(", ").join(_row(row, firsts) for row in claim.rows)
        )
    tests = [f"tests: {', '.join(claim.tests)}"] if claim.tests else []
    facts = [f"kind: {claim.kind}", f"in the paper: {claim.where}", *tests]
    inside += Markup('<p class="small">{}</p>').format("; ".join(facts))
    return Markup(
        '<details class="item" id="{}" data-verdict="{}" data-table="{}" data-kind="{}">{}{}</details>'
    ).format(f"claim-{claim.id}", one.verdict, group, claim.kind, head, inside)


def _row(name: str, firsts: FirstRuns) -> Markup:
    table, _, row = name.partition("/")
    key = firsts.get((table, row))
    return Markup('<a href="#run={}">{}</a>').format(key, name) if key else Markup("{}").format(name)
