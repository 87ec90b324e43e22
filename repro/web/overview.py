"""What a reader should learn in the first minute: the verdicts, how much was run, where to go on."""

from collections import Counter
from collections.abc import Iterable

from markupsafe import Markup

from repro.claims.judge import OUTCOMES, Judged, steps_against
from repro.pages.claims import by_subject, exploration, promise, sizes_here
from repro.pages.columns import with_minus
from repro.pages.scale_data import ScaleData
from repro.render.html import html
from repro.web.grid import outcome_html, verdict_class
from repro.web.section import Section

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
    for subject, claims in by_subject(data.judged).items():
        said = Markup('<p class="tally"><strong>{} claims {}:</strong> {}</p>')
        body += said.format(len(claims), subject, outcome_counts(claims))
    body += Markup("<p>{}</p>").format(promise(data.judged, runs.scale, data.published))
    if here := sizes_here(runs):
        body += Markup("<p>{}</p>").format(here)
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
            outcome_html(outcome), MEANT[verdict_class(outcome)], Markup().join(map(_finding, claims))
        )
        for outcome, claims in groups.items()
        if claims
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


def outcome_counts(judged: Iterable[Judged]) -> Markup:
    """The number of claims by verdict: ✓ sign as printed 12, ? undetermined 3."""
    counts = Counter(one.verdict for one in judged)
    return Markup(" ").join(outcome_html(outcome, f"{counts[outcome]}") for outcome in OUTCOMES if counts[outcome])
