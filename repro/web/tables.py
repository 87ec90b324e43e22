"""The tables of a scale for a reader to sort and filter, with pictures of intervals and links to runs.

Columns and words are those of the pages (`repro/pages/`); the additions are inside the cells.
"""

from dataclasses import replace

from markupsafe import Markup

from repro.pages import table3
from repro.pages.columns import TEST, sheet
from repro.pages.scale_data import ScaleData
from repro.pages.tables import page_of_table
from repro.render.html import html
from repro.render.page import Block, Heading, Page, Table
from repro.results.frame import DataFrame
from repro.web.grid import SCRIPT, bars_of, table_html
from repro.web.keys import first_runs
from repro.web.section import Section, fold

OURS = ("ours", "yours")
BARS = {  # (group, heading) of a column -> the score whose interval its cells show
    **{(f"{name} (dev)", who): f"dev/{name.lower()}" for name in ("PPL", "BLEU") for who in OURS},
    (TEST, "sacreBLEU"): "test/bleu",
    (TEST, "multi-bleu"): "test/bleu_published",
}


def table3_section(data: ScaleData) -> Section | None:
    """The whole Table 3, like the paper's; None if the scale has no row of it."""
    if (frame := data.frames.get(table3.NAME)) is None:
        return None
    return Section(
        key=table3.NAME,
        title="Table 3",
        body=page_html(page_of_table(frame, data.runs.scale, table3.NAME, data.judged), frame, data),
        script=SCRIPT,
        csv={f"{table3.NAME}.csv": sheet(frame)},
    )


def tables_section(data: ScaleData) -> Section | None:
    """Every other table of the scale, folded."""
    body, folded, sheets = Markup(), {}, {}
    for name, frame in data.frames.items():
        if name != table3.NAME:
            page = page_of_table(frame, data.runs.scale, name, data.judged, data.stated)
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
