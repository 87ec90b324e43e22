"""The tables of a scale for a reader to sort and filter, with links to runs.

Columns and words are those of the pages (`repro/pages/`); `assets/grid.js` sorts and filters. A row links to its first
run by the key of that: report.html#run=KEY.
"""

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from markupsafe import Markup, escape

from repro.claims.decisions import OF_HOUSE, OF_PRINT, OF_SIGN, OF_SIZE, OUTCOMES
from repro.pages.claims import MARKS
from repro.pages.columns import TABLE_3, VERDICT, sheet
from repro.pages.scale_data import ScaleData
from repro.pages.tables import page_of_table
from repro.render.markup import html, line_html, whole_table
from repro.render.page import Heading, Page, Table, Words, plain
from repro.results.frame import DataFrame, ResultSet
from repro.results.record import BASE, Record
from repro.web.report import Section, fold

SCRIPT = "grid.js"
MARKS_BY_NAME: Mapping[str, str] = {str(outcome): mark for outcome, mark in MARKS.items()}
FirstRuns = dict[tuple[str, str], str]  # (table, row) -> the key of the first run of it


def run_keys(result_set: ResultSet) -> dict[str, Record]:
    """Every record by its key: the name of its run, with "-2" if it is a second one; the paper's tables first."""
    found: dict[str, Record] = {}
    ordered = sorted(
        result_set.everything,
        key=lambda one: (one.table != BASE, not one.table.startswith("table"), one.table, one.position, one.seed),
    )
    for record in ordered:
        names = itertools.chain([record.run], (f"{record.run}-{n}" for n in itertools.count(2)))
        found[next(name for name in names if name not in found)] = record
    return found


def runs_of_rows(result_set: ResultSet) -> dict[tuple[str, str], list[tuple[str, Record]]]:
    """The runs of each row, by (table, row), with their keys."""
    found: dict[tuple[str, str], list[tuple[str, Record]]] = {}
    for key, record in run_keys(result_set).items():
        found.setdefault((record.table, record.row), []).append((key, record))
    return found


def first_runs(result_set: ResultSet) -> FirstRuns:
    """The run to which each row of tables, charts and verdicts links: its first."""
    return {row: runs[0][0] for row, runs in runs_of_rows(result_set).items()}


def table3_section(data: ScaleData) -> Section | None:
    """The whole Table 3, like the paper's; None if the scale has no row of it."""
    if (frame := data.frames.get(TABLE_3)) is None:
        return None
    return Section(
        key=TABLE_3,
        title="Table 3",
        body=page_html(page_of_table(frame, data.runs.scale, TABLE_3, data.judged), frame, data),
        script=SCRIPT,
        csv={f"{TABLE_3}.csv": sheet(frame)},
    )


def tables_section(data: ScaleData) -> Section | None:
    """Every other table of the scale, folded."""
    body, folded, sheets = Markup(), {}, {}
    for name, frame in data.frames.items():
        if name != TABLE_3:
            page = page_of_table(frame, data.runs.scale, name, (*data.judged, *data.stated))
            own = frame["table"] == name
            n, n_run = int(own.sum()), int((own & (frame["n"] > 0)).sum())
            run = f", {n_run} run" * (n_run < n)
            body += fold(name, Markup("{} <small>{} row{}{}</small>").format(name, n, "s" * (n != 1), run))
            folded[name] = page_html(page, frame, data)
            sheets[f"{name}.csv"] = sheet(frame)
    if not sheets:
        return None
    return Section(key="tables", title="Tables", body=body, folded=folded, script=SCRIPT, csv=sheets)


def page_html(page: Page, frame: DataFrame, data: ScaleData) -> Markup:
    """The blocks of a table's page without its title; tables of rows become grids."""
    firsts = first_runs(data.result_set)
    rows = [*zip(frame["table"], frame["row"], strict=True)]
    links = [firsts.get(row, "") for row in rows]

    filters = iter([{"table": [of for of, _ in rows]}])  # for the first table only: one filter is enough

    def written(table: Table) -> str:
        if table.columns[0].heading != "row" or len(table.columns[0].texts) != len(rows):
            return table_html(table)
        return table_html(table, links=links, facets=next(filters, None))

    # headings are one level lower, since a page is a part of the report
    lower = (replace(one, level=one.level + 1) if isinstance(one, Heading) else one for one in page.blocks[1:])
    return Markup(html(lower, written))


def verdict_html(words: Words) -> Markup:
    """Verdicts with their marks: ✗ opposite sign (log PPL), ? undetermined (BLEU, accuracy)."""
    return Markup(re.sub("|".join(OUTCOMES), lambda found: outcome_html(found[0]), escape(plain(words))))


def outcome_html(outcome: str, more: str = "") -> Markup:
    """One verdict with its mark, coloured by its class."""
    text = f"{MARKS_BY_NAME.get(outcome, '')} {outcome} {more}".strip()
    return Markup('<span class="verdict {}">{}</span>').format(verdict_class(outcome), text)


def verdict_class(outcome: str) -> str:
    """The class of a verdict, by which it is coloured: yes, no or open."""
    answers = (OF_SIZE, OF_SIGN, OF_PRINT, OF_HOUSE)
    if outcome in [words.yes for words in answers]:
        return "yes"
    return "no" if outcome in [words.no for words in answers] else "open"


def table_html(table: Table, *, links: Sequence[str] = (), facets: Mapping[str, Sequence[str]] | None = None) -> Markup:
    """A table that `assets/grid.js` sorts and filters.

    `links` has the key of a run for each row, "" for none; `facets` the values by which rows can be filtered.
    """

    def cell(row: int, place: int, words: Words) -> Markup:
        text = verdict_html(words) if table.columns[place].heading == VERDICT else Markup(line_html(words))
        key = links[row] if links and not place else ""
        return Markup('<a href="#run={}">{}</a>').format(key, text) if key else text

    marks = [
        ({"data-run": links[n]} if links and links[n] else {})
        | {f"data-{name}": of[n] for name, of in (facets or {}).items()}
        for n in range(len(table.columns[0].texts))
    ]
    return Markup('<div class="grid" data-facets="{}"><div class="scroll" tabindex="0">{}</div></div>').format(
        " ".join(facets or {}), Markup(whole_table(table, cell=cell, marks=marks))
    )
