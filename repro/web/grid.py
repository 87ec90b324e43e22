"""A table in the report: `assets/grid.js` sorts and filters it, rows link to their runs, intervals are pictures."""

import math
from collections.abc import Mapping, Sequence

from markupsafe import Markup

from repro.claims.decisions import OF_HOUSE, OF_PRINT, OF_SIGN, OF_SIZE
from repro.pages.claims import MARKS
from repro.pages.columns import VERDICT
from repro.render.html import line_html
from repro.render.page import Column, Table, Words, plain, spans
from repro.results.frame import DataFrame, ends_of
from repro.results.record import BASE

SCRIPT = "grid.js"
MARKS_BY_NAME: Mapping[str, str] = {str(outcome): mark for outcome, mark in MARKS.items()}
WIDTH, HEIGHT, ROOM = 72, 12, 4  # of a bar, in pixels; ROOM is left free at its ends


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
