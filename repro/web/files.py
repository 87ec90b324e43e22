"""The files of the report: one for each scale, beside its pages, and an index of them."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path

from markupsafe import Markup

from repro.claims.judge import may_judge_sizes
from repro.pages.build import read_results
from repro.pages.claims import OF_TEXTS, settles, told_counts
from repro.pages.scale_data import ScaleData, scale_data
from repro.render.markup import html
from repro.render.page import COMMAND, Link, Listing, Words
from repro.render.text import several
from repro.storage.atomic import write_text
from repro.web.charts import curves_section, differences_section, explorables_section
from repro.web.report import Section, report_html
from repro.web.runs import runs_section
from repro.web.sentences import inside_section, sentences_section
from repro.web.tables import table3_section, tables_section
from repro.web.verdicts import claims_section, overview_section

Maker = Callable[[ScaleData], Section | None]
SECTIONS: tuple[Maker, ...] = (  # in order; each returns None if the scale has nothing for it to show
    overview_section,
    table3_section,
    differences_section,
    curves_section,
    claims_section,
    partial(claims_section, of=OF_TEXTS),
    tables_section,
    sentences_section,
    inside_section,
    explorables_section,
    runs_section,
)


def sections_of(data: ScaleData, makers: tuple[Maker, ...] = SECTIONS) -> list[Section]:
    """The sections that have something to show at this scale."""
    return [section for make in makers if (section := make(data)) is not None]


NAME = "report.html"
EXPLORATION = "Exploration: no run counts as evidence"


def write_reports(results: Path, *, own: bool = False, cache: Path | None = None) -> list[Path]:
    """Write the report of each scale under `results`, and the index last; returns their paths.

    Generated text is made again in `cache`; without it, no source and no reference is shown.
    Raises ValueError if a record cannot be trusted, or if there is none.
    """
    written, shown = [], []
    for result_set in read_results(results, own=own):
        if (data := scale_data(result_set)) is not None:
            shown.append(data)
            written.append(result_set.folder / NAME)
            write_text(written[-1], scale_report(replace(data, cache=cache)))
    if not shown:
        raise ValueError(f"{results}: expected records of finished runs, found none. Run an experiment first.")
    write_text(results / NAME, index_report(sorted(shown, key=by_evidence)))
    return [*written, results / NAME]


def by_evidence(data: ScaleData) -> tuple[int, int, str]:
    """Sort key: scales with the most evidence first, those with exploration only last."""
    return -len(data.evidence.records), -data.runs.n, data.runs.scale


def scale_report(data: ScaleData) -> str:
    """The report of one scale."""
    return report_html(
        sections_of(data),
        title=f"Attention Is All You Need at scale {data.runs.scale}",
        lead=lead(data),
        home=f"../{NAME}",
        origin=f"Made by {COMMAND} --html from the records beside it.",
    )


def lead(data: ScaleData) -> str:
    """The text below the title: what results of this size can show, or that exploration settles nothing."""
    if not data.evidence.records:
        return f"{EXPLORATION}, so nothing is settled by what is shown here."
    if not settles((*data.judged, *data.stated)):
        return (
            "No claim about trained rows has all the runs that it needs, so nothing is settled by what is shown here."
        )
    only = "" if may_judge_sizes(data.runs.scale) else "only "
    return f"At this size, results can show {only}{data.runs.claim}. Where the paper claims more, this report says so."


def index_report(shown: Iterable[ScaleData]) -> str:
    """The index over scales, with the counts of claims about trained rows: the others are alike at every scale."""
    items: list[Words] = []
    for data in shown:
        counts = f"{several(data.runs.n, 'run')} of {several(data.runs.n_rows, 'row')}, {' '.join(data.runs.took)}"
        settled = [one for one in data.judged if one.claim.is_trained]
        said = f": {counts}. {_standing(data)}. Text: {_texts(data)}. Claims about trained rows: {told_counts(settled)}"
        items.append((Link(data.runs.scale, f"{data.runs.scale}/{NAME}"), said))
    return report_html(
        [Section(key="scales", title="Scales", body=Markup(html([Listing(tuple(items))])))],
        title="Attention Is All You Need, reproduced",
        lead="A scale fixes the size of the model, the text and the budget, and with them what its results can show.",
        origin=f"Made by {COMMAND} --html from the records under results/.",
    )


def _standing(data: ScaleData) -> str:
    """How many runs of a scale are evidence, and what they may show; or that all are exploration."""
    if not (n := len(data.evidence.records)):
        return EXPLORATION
    may = f"may show {data.runs.claim}" if settles((*data.judged, *data.stated)) else "settles no claim yet"
    return f"{n:,} {'run counts' if n == 1 else 'runs count'} as evidence, which {may}"


def _texts(data: ScaleData) -> str:
    """What the runs of a scale were trained on: grammar en-de, 3,000 pairs; grammar_trees en-tree, 2,000 pairs."""
    told = {(one.corpus["name"], one.pair, one.corpus["n_train"]): None for one in data.result_set.everything}
    return "; ".join(f"{name} {pair}, {n:,} pairs" for name, pair, n in told)
