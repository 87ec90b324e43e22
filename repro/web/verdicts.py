"""Every claim and statement with its verdict and its numbers, to be filtered by word, table and kind."""

from collections.abc import Mapping, Sequence

from markupsafe import Markup

from repro.claims.bootstrap import Place, over_sentences
from repro.claims.judge import Judged
from repro.pages import claims, statements
from repro.pages.columns import with_minus
from repro.pages.scale_data import ScaleData
from repro.render.html import html
from repro.render.page import Block, Column, Table, Text
from repro.results.resampled import Interval
from repro.web.grid import SCRIPT, outcome_html
from repro.web.keys import FirstRuns, first_runs
from repro.web.section import Section
from repro.web.tables import lower


def claims_section(data: ScaleData) -> Section:
    """The section of the paper's claims."""
    over = over_sentences(data.judged, data.evidence, data.result_set.folder.parent)
    return _section(data, claims.NAME, "Claims", data.judged, claims.OF_PAPER, over)


def statements_section(data: ScaleData) -> Section:
    """The section of statements from teaching texts."""
    over = over_sentences(data.stated, data.evidence, data.result_set.folder.parent)
    answered = statements.answers(data.stated)
    return _section(data, statements.NAME, "Statements", data.stated, statements.OF_TEXTS, over, answered)


def _section(
    data: ScaleData,
    key: str,
    title: str,
    judged: Sequence[Judged],
    of: claims.Subject,
    over: Mapping[Place, Interval],
    answered: Sequence[Block] = (),
) -> Section:
    firsts = first_runs(data.result_set)
    groups: dict[str, list[Judged]] = {name: [] for name in claims.ABOUT}
    for one in judged:
        groups[claims.group_of(one.claim)].append(one)
    body = Markup("<p>{} {}: {} Click one to see the numbers behind it.</p>").format(
        len(judged), of.name, claims.told_counts(judged)
    )
    body += Markup(html(map(lower, answered)))
    if any(one.found for one in judged):
        body += Markup(html([Text(claims.ABOUT_NUMBERS)]))
    body += Markup('<div class="grid" data-facets="verdict table kind" data-items=".item">')
    for name, members in groups.items():
        if members:
            items = Markup().join(_item(one, name, firsts, over) for one in members)
            body += Markup("<div data-group><h3>{}</h3>{}</div>").format(claims.ABOUT[name], items)
    body += Markup("</div>")
    return Section(key=key, title=title, body=body, script=SCRIPT, csv={f"{key}.csv": claims.sheet(judged, over)})


def _item(one: Judged, group: str, firsts: FirstRuns, over: Mapping[Place, Interval]) -> Markup:
    claim = one.claim
    head = Markup('<summary><span class="id">{}</span> {} {}</summary>').format(
        claim.id, one.sentence, outcome_html(one.verdict)
    )
    texts = [text for text in (with_minus(one.reason), claim.note) if text]
    told = ". ".join(text.removesuffix(".") for text in texts)  # some end with a full stop
    inside = Markup("<p>{}.</p>").format(told[:1].upper() + told[1:]) if told else Markup()
    if one.found:
        runs = Column("", "runs of each row", [", ".join(map(str, one.found[0].runs))])
        numbers = tuple(claims.claim_numbers([one], over))
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
