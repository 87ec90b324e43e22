"""What a reader shall know in the first minute: how much was run, what came of the claims, where to go on."""

from collections import Counter
from collections.abc import Iterable

from markupsafe import Markup

from repro.claims.judge import OUTCOMES, Judged
from repro.pages.claims import by_subject, exploration, promise, sizes_here
from repro.pages.scale_data import ScaleData
from repro.render.html import html
from repro.web.grid import outcome_html
from repro.web.section import Section


def overview_section(data: ScaleData) -> Section:
    """The numbers of the scale, and the verdicts counted."""
    runs = data.runs
    facts = [
        (f"{runs.n:,}", "runs"),
        (f"{runs.n_rows:,}", "rows"),
        (f"{runs.hours:,.1f}", "hours of training and decoding"),
        (f"{len(data.evidence.records):,}", "runs count as evidence"),
    ]
    figures = Markup().join(Markup("<div><dt>{}</dt><dd>{}</dd></div>").format(what, n) for n, what in facts)
    body = Markup('<dl class="figures">{}</dl>').format(figures)
    for subject, claims in by_subject(data.judged).items():
        said = Markup('<p class="tally"><strong>{} claims {}:</strong> {}</p>')
        body += said.format(len(claims), subject, outcome_counts(claims))
    body += Markup("<p>{}</p>").format(promise(data.judged, data.evidence, runs.scale))
    if here := sizes_here(runs):
        body += Markup("<p>{}</p>").format(here)
    if apart := exploration(data.evidence):
        body += Markup('<details class="many"><summary>Runs that settle nothing, and why</summary>{}</details>').format(
            Markup(html(apart))
        )
    return Section(key="overview", title="At a glance", body=body)


def outcome_counts(judged: Iterable[Judged]) -> Markup:
    """✓ same sign 12, ? open 3."""
    counts = Counter(one.verdict for one in judged)
    return Markup(" ").join(outcome_html(outcome, f"{counts[outcome]}") for outcome in OUTCOMES if counts[outcome])
