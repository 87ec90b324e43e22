"""The tables of a scale for a reader to sort and filter, with pictures of intervals and links to runs.

Columns and words are those of the pages (`repro/pages/`); `assets/grid.js` sorts and filters. A row links to its first
run by the key of that: report.html#run=KEY.
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from markupsafe import Markup

from repro.claims.decisions import OF_HOUSE, OF_PRINT, OF_SIGN, OF_SIZE
from repro.pages.claims import MARKS
from repro.pages.columns import TABLE_3, TEST, VERDICT, sheet
from repro.pages.scale_data import ScaleData
from repro.pages.tables import page_of_table
from repro.render.html import html, line_html
from repro.render.page import Block, Column, Heading, Page, Table, Words, plain, spans
from repro.results.frame import DataFrame, ResultSet, ends_of
from repro.results.record import BASE, Record
from repro.web.report import Section, fold

SCRIPT = "grid.js"
MARKS_BY_NAME: Mapping[str, str] = {str(outcome): mark for outcome, mark in MARKS.items()}
WIDTH, HEIGHT, ROOM = 72, 12, 4  # of a bar, in pixels; ROOM is left free at its ends
OURS = ("ours", "yours")
BARS = {  # (group, heading) of a column -> the score whose interval its cells show
    **{(f"{name} (dev)", who): f"dev/{name.lower()}" for name in ("PPL", "BLEU") for who in OURS},
    (TEST, "sacreBLEU"): "test/bleu",
    (TEST, "multi-bleu"): "test/bleu_published",
}
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


def first_runs(result_set: ResultSet) -> FirstRuns:
    """The run to which each row of tables, charts and verdicts links: its first."""
    found: FirstRuns = {}
    for key, record in run_keys(result_set).items():
        found.setdefault((record.table, record.row), key)
    return found


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
        return table_html(table, links=links, facets=next(filters, None), bars=interval_bars(table, frame))

    return Markup(html([lower(block) for block in page.blocks[1:]], written))


def lower(block: Block) -> Block:
    """A heading one level lower, since a page is a part of the report; other blocks unchanged."""
    return replace(block, level=block.level + 1) if isinstance(block, Heading) else block


def interval_bars(table: Table, frame: DataFrame) -> dict[int, list[Markup]]:
    """Column number -> a small picture for each cell: mean and interval, and the base as a line."""
    wanted = {i: BARS[column[:2]] for i, column in enumerate(table.columns) if column[:2] in BARS}
    return {i: bars_of(frame, score) for i, score in wanted.items()}


def bars_of(frame: DataFrame, score: str) -> list[Markup]:
    """A picture for each row, all on one scale; empty if the row has no number."""
    means = [float(value) for value in frame[score]]
    halves = [float(value) for value in frame[f"{score}_half_width"]]
    ends = zip(means, halves, frame[f"{score}_min"], frame[f"{score}_max"], strict=True)
    both = [ends_of(*one) for one in ends]  # as in the cell
    lows, highs = [low for low, _ in both], [high for _, high in both]
    known = [value for value in (*lows, *highs) if not math.isnan(value)]
    if not known:
        return [Markup()] * len(means)
    least, most = min(known), max(known)
    scale = (WIDTH - 2 * ROOM) / ((most - least) or 1.0)
    at = [[f"{ROOM + (value - least) * scale:.1f}" for value in values] for values in (lows, means, highs)]
    base = at[1][0] if frame["table"].iloc[0] == BASE and not math.isnan(means[0]) else ""
    return [
        Markup() if math.isnan(mean) else _bar(low, middle, high, base)
        for mean, low, middle, high in zip(means, *at, strict=True)
    ]


def _bar(low: str, mean: str, high: str, base: str) -> Markup:
    line = f'<path class="of-base" d="M{base} 0V{HEIGHT}"/>' if base else ""
    span = f'<path class="span" d="M{low} {HEIGHT // 2}H{high}"/>' if low != high else ""
    dot = f'<circle cx="{mean}" cy="{HEIGHT // 2}" r="2.6"/>'
    return Markup(
        f'<svg class="bar" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" aria-hidden="true">'
        f"{line}{span}{dot}</svg>"
    )


def verdict_html(words: Words) -> Markup:
    """Verdicts with their marks, and the names of their claims if given: C27a: ✓ sign as printed."""
    parts = [text.rpartition(": ") for text in plain(words).split(", ") if text]
    return Markup(", ").join(Markup("{}{}{}").format(name, colon, outcome_html(word)) for name, colon, word in parts)


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


def table_html(
    table: Table,
    *,
    links: Sequence[str] = (),
    facets: Mapping[str, Sequence[str]] | None = None,
    bars: Mapping[int, Sequence[Markup]] | None = None,
    caption: str = "",
) -> Markup:
    """A table that `assets/grid.js` sorts and filters.

    `links` has the key of a run for each row, "" for none; `facets` the values by which rows can be filtered; `bars`
    pictures for the cells of some columns, by column number.
    """
    rows = list(zip(*(column.texts for column in table.columns), strict=True))
    lines = []
    for n, cells in enumerate(rows):
        key = links[n] if links else ""
        marks = {"data-run": key} if key else {}
        marks |= {f"data-{name}": of[n] for name, of in (facets or {}).items()}
        ruled = ' class="ruled"' if n + 1 in table.ruled and n + 1 < len(rows) else ""
        attributes = Markup().join(Markup(' {}="{}"').format(name, value) for name, value in marks.items())
        pictures = [bars[i][n] if bars and i in bars else Markup() for i in range(len(cells))]
        parts = zip(range(len(cells)), cells, table.columns, pictures, strict=True)
        written = [_cell(i, cell, column, key, picture) for i, cell, column, picture in parts]
        lines.append(Markup(f"<tr{ruled}") + attributes + Markup(">") + Markup().join(written) + Markup("</tr>"))
    titled = Markup('<caption class="unseen">{}</caption>').format(caption) if caption else Markup()
    names = " ".join(facets or {})
    return (
        Markup('<div class="grid" data-facets="{}"><div class="scroll" tabindex="0"><table>').format(names)
        + titled
        + _head(table.columns)
        + Markup("<tbody>")
        + Markup("\n").join(lines)
        + Markup("</tbody></table></div></div>")
    )


def _head(columns: Sequence[Column]) -> Markup:
    groups = Markup()
    if any(column.group for column in columns):
        cells = [
            Markup('<th colspan="{}" scope="colgroup">{}</th>').format(span, group)
            if group
            else Markup("<td></td>") * span
            for group, span in spans(columns)
        ]
        groups = Markup("<tr>") + Markup().join(cells) + Markup("</tr>")
    names = [
        Markup('<th scope="col" data-sort{}>{}</th>').format(_side(i, column), Markup(line_html(column.heading)))
        for i, column in enumerate(columns)
    ]
    return Markup("<thead>") + groups + Markup("<tr>") + Markup().join(names) + Markup("</tr></thead>")


def _side(i: int, column: Column) -> Markup:
    return Markup(' class="words"') if column.is_words or not i else Markup()


def _cell(i: int, words: Words, column: Column, key: str, bar: Markup) -> Markup:
    text = verdict_html(words) if column.heading == VERDICT else Markup(line_html(words))
    if i == 0:
        named = Markup('<a href="#run={}">{}</a>').format(key, text) if key else text
        return Markup('<th scope="row" class="words">') + named + Markup("</th>")
    inside = Markup('<div class="with-bar">{}<span>{}</span></div>').format(bar, text) if bar else text
    return Markup("<td{}>{}</td>").format(_side(i, column), inside)
