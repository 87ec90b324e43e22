"""Charts of a scale: differences to the base beside the paper's, how the rows learned, and their quality by cost.

The numbers are those of the figures (`repro/figures/`). altair describes a chart, and `assets/charts.js` draws it in
the reader's browser. Colours have the names of `assets/report.css`, so that each theme has its own. The values of the
charts are columns of the section's data, each stored once.

Also four formulas with a slider each, which `assets/explorables.js` computes: learning rate, position codes, scaled
scores, Table 1. Paper: sections 3.2.1, 3.5, 4 and 5.3.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import altair as alt
import numpy as np
from markupsafe import Markup

from repro.claims.catalogue import BLEU, LOG_PPL, Endpoint
from repro.claims.layers import ROWS, WINDOWS
from repro.figures.scores import AXES, ComparedRow, differences_to_base, points
from repro.model.config import BASE as PAPER
from repro.pages.columns import PARTS, comma_separated, has_part
from repro.pages.scale_data import ScaleData
from repro.results.details import bands
from repro.results.measured import Measured, load
from repro.results.record import BASE, TRANSLATION, Record
from repro.web.report import Section
from repro.web.tables import first_runs

Columns = dict[str, list[Any]]
Lines = list[dict[str, Any]]
LETTERS = {LOG_PPL: "log_ppl", BLEU: "bleu"}  # the names of the charts
STEP = 19  # pixels from row to row of a forest plot
DETAIL, STRIP, SCATTER, AXIS = 300, 44, 300, 45  # heights in pixels
FIRST_OF_TABLE_3 = " The rows of Table 3 are coloured at first: double-click to colour all, Escape begins again."
OF_TEXT = "datum.text == text"  # of the training text or of dev, as the reader chooses
LOSS: dict[str, Any] = {"type": "log", "nice": False}
TICKS, UNIT = [0.05, 0.1, 0.2, 0.5, 1, 1.5, 2, 3, 5, 7, 10], "loss (nats per word-piece)"
N_COLOURS = 8  # of report.css; a ninth row has the first again, with other dashes and another shape
MOST_ROWS = 16  # up to so many rows of your own have a colour each; of more, each table has one
DASHES = ([1, 0], [7, 3], [2, 3], [9, 3, 2, 3])
SHAPES = ("circle", "square", "cross", "diamond", "triangle-up", "triangle-down", "triangle-right", "triangle-left")
UPDATES: dict[str, Any] = {"tickCount": 6, "grid": False}


def differences_section(data: ScaleData) -> Section | None:
    """The forest plot; None if no row can be compared with the base."""
    lines = differences_to_base(comparable(data), data.evidence, data.result_set.folder.parent)
    if not lines:
        return None
    firsts = first_runs(data.result_set)
    values = [_difference(line, firsts[line.table, line.row]) for line in lines]
    # removing a part of the model may cost fifty times what the paper's rows differ by: so each group has its own axes
    groups: dict[str, Lines] = {}
    for line, value in zip(lines, values, strict=True):  # those that are printed come first
        groups.setdefault("rows" if line.is_printed else "ours", []).append(value)
    charts = {
        name if group == "rows" else f"{name}_{group}": _forest(endpoint, name, group, of)
        for group, of in groups.items()
        for endpoint, name in LETTERS.items()
    }
    said = Markup(
        '<p>Each row against the base; further right is better. <span class="key this">ours, with the '
        "95 % interval over seeds</span>, of the runs that count; where too few do there is "
        'none, and the point is of all runs; <span class="key over">95 % interval over sentences</span> where '
        'translations were kept; <span class="key of-paper">what the paper prints</span>. '
        "The intervals are wide or narrow for different reasons: too few seeds, too few sentences. Verdicts rest on "
        "wider bounds, which allow for all that is judged: a bar that leaves out 0 may be undetermined. Click a "
        "row to open it, or its name.</p>"
    )
    places = [_place(f"differences/{name}", chart["height"] + AXIS) for name, chart in charts.items()]
    if len(groups) > 1:
        said += Markup("<p>Rows that the paper prints come first, then those of our own, on axes of their own.</p>")
    return Section(
        key="differences",
        title="Differences",
        body=said + Markup('<div class="beside">') + Markup().join(places) + Markup("</div>"),
        data={"columns": {group: columns_of(of) for group, of in groups.items()}},
        charts=charts,
        csv={"differences.csv": comma_separated(values)},
    )


def _place(chart: str, height: int) -> Markup:
    """The place of a chart, with its final height, so that nothing moves when it is drawn."""
    return Markup('<div class="chart" data-chart="{}" style="min-height: {}px"></div>').format(chart, height)


def comparable(data: ScaleData) -> list[Record]:
    """The records of translation that learned from the same text as the base, with those of the base."""
    base = data.result_set.tables.get(BASE, ())
    texts = {(record.corpus["sha256"], record.pair) for record in base}
    translating = [record for record in data.result_set.everything if record.about == TRANSLATION]
    return [record for record in translating if (record.corpus["sha256"], record.pair) in texts]


def columns_of(lines: Sequence[Mapping[str, Any]]) -> Columns:
    """{"a": [1, 2], "b": [3, 4]} of [{"a": 1, "b": 3}, {"a": 2, "b": 4}]."""
    return {name: [line[name] for line in lines] for name in (lines[0] if lines else ())}


def full_name(table: str, row: str) -> str:
    """The name of a row among those of all tables: (A) h=1."""
    group = short_name(table)
    return row if row == group else f"{group} {row}"


def short_name(table: str) -> str:
    """The paper's name for a group of rows, (A) for table3_A; other tables keep their names."""
    letter = table.removeprefix(PARTS)
    return f"({letter})" if table.startswith(PARTS) and len(letter) == 1 else letter


def _difference(line: ComparedRow, run: str) -> dict[str, Any]:
    """The values of a row for the sheet and the chart, with the run that a click opens."""
    found: dict[str, Any] = {"table": short_name(line.table), "row": full_name(line.table, line.name), "n": line.n}
    for endpoint, name in LETTERS.items():
        one, nothing = line.found[endpoint], (None, None)
        values = one.value, *(one.over_seeds or nothing), *(one.over_sentences or nothing), one.paper
        for end, value in zip(("", "_low", "_high", "_over_low", "_over_high", "_paper"), values, strict=True):
            found[f"{name}{end}"] = None if value is None else round(value, 5)
    return found | {"run": run}


def _forest(endpoint: Endpoint, name: str, group: str, values: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Rows of a group below each other: ours on the line, the interval over sentences below it, the paper's above."""
    order = [value["row"] for value in values]
    rows = alt.Y("row:N", sort=order, title=None, axis=alt.Axis(grid=True, ticks=False, domain=False))
    # at the top: below a hundred rows nobody finds it; and narrow charts have labels on the left to spare
    # few ticks, so that none is dropped for lack of room: with more, every other one was, also that of 0
    axis = alt.Axis(title=AXES[endpoint], titleAnchor="end", orient="top", tickCount=alt.ExprRef("ceil(width / 80)"))
    form = "+.3f"
    told: list[Any] = [
        *("row:N", alt.Tooltip("n:Q", title="runs"), alt.Tooltip(f"{name}:Q", title="ours", format=form)),
        *(alt.Tooltip("interval:N", title="95 % over seeds"), alt.Tooltip("printed:N", title="paper")),
    ]
    ends = " + ' to ' + ".join(f"format(datum.{name}_{end}, '{form}')" for end in ("low", "high"))
    base = (
        alt.Chart(alt.NamedData(group))
        .transform_calculate(
            interval=f"isValid(datum.{name}_low) ? {ends} : 'too few runs that count'",
            printed=f"isValid(datum.{name}_paper) ? format(datum.{name}_paper, '{form}') : 'not printed'",
        )
        .encode(y=rows, tooltip=told)
    )

    def span(ends: str, colour: str, width: float, offset: float) -> alt.Chart:
        known = base.transform_filter(f"isValid(datum.{name}{ends}_low)")
        return known.mark_rule(color=colour, strokeWidth=width, yOffset=offset).encode(
            x=alt.X(f"{name}{ends}_low:Q", axis=axis), x2=f"{name}{ends}_high:Q"
        )

    zero = alt.Chart(alt.InlineData([{}])).mark_rule(color="--soft").encode(x=alt.XDatum(0, type="quantitative"))
    ours = base.mark_point(filled=True, size=46, opacity=1, color="--c1", cursor="pointer").encode(
        x=alt.X(f"{name}:Q", axis=axis)
    )
    paper = (
        base.transform_filter(f"isValid(datum.{name}_paper)")
        .mark_point(shape="diamond", size=42, color="--c2", strokeWidth=1.4, yOffset=-5, cursor="pointer", opacity=1)
        .encode(x=f"{name}_paper:Q")
    )
    spans = {"_over": ("--c3", 1.6, 4), "": ("--c1", 2.6, 0)}

    def has(field: str) -> bool:
        return any(value[f"{name}{field}"] is not None for value in values)

    known = [ends for ends in spans if has(f"{ends}_low")]
    layers = alt.layer(zero, *(span(ends, *spans[ends]) for ends in known), ours, *([paper] if has("_paper") else []))
    return layers.properties(width="container", height=STEP * len(values)).to_dict()


def curves_section(data: ScaleData) -> Section | None:
    """The loss of all rows during training, and quality against cost; None if no row is finished."""
    curves, costs = _curves(data), _costs(data)
    if not curves:
        return None
    printed = {short_name(table) for table in data.result_set.tables if has_part(table)}
    rows = list(dict.fromkeys(line["row"] for line in curves))
    by = "row" if data.result_set.own and len(rows) <= MOST_ROWS else "table"
    names = (
        rows if by == "row" else sorted({line["table"]: None for line in curves}, key=lambda one: one not in printed)
    )
    first = [name for name in names if by == "table" and name in printed]
    first *= len(first) < len(names)  # not all: a hundred lines cannot be read
    said = Markup(
        "<p>The loss of every row that translates, in nats per word-piece and not smoothed: the mean over its seeds, "
        "and a band from the lowest to the highest. Drag over the strip below to zoom in. Click a name in the legend "
        "to highlight a {}, with Shift one more.{} Click a point of the lower chart to open its row.</p>"
    ).format(by, FIRST_OF_TABLE_3 if first else " Double-click or press Escape to begin again.")
    return Section(
        key="curves",
        title="Curves and cost",
        body=said + _place("curves/all", DETAIL + STRIP + SCATTER + 4 * AXIS),
        data={"columns": {"curves": columns_of(curves), "costs": columns_of(costs)}},
        charts={"all": _curves_chart(by, names, first, _loss_axis(curves))},
        csv={"curves.csv": comma_separated(curves), "cost.csv": comma_separated(costs)},
    )


def _curves(data: ScaleData) -> Lines:
    """A line for each row, kind of text and step."""
    found: Lines = []
    for table, records in data.result_set.tables.items():
        for kind in ("train", "dev"):
            for band in bands([record for record in records if record.about == TRANSLATION], kind):
                row = {"table": short_name(table), "row": full_name(table, band.row), "text": kind}
                for step, *losses in zip(band.step, band.mean, band.low, band.high, strict=True):
                    mean, low, high = (round(loss, 3) for loss in losses)
                    found.append(row | {"step": step, "mean": mean, "low": low, "high": high})
    return sorted(found, key=lambda line: line["table"] != BASE)


def _costs(data: ScaleData) -> Lines:
    """A line for each row: FLOPs of a training, BLEU with its interval."""
    keys = first_runs(data.result_set)
    translating = [record for record in data.result_set.everything if record.about == TRANSLATION]
    return [
        {
            "table": short_name(point.table),
            "row": full_name(point.table, point.label or point.row),
            "n": point.n,
            "flops": float(f"{point.flops:.5g}"),
            "bleu": round(point.mean, 3),
            "low": round(point.low, 3),
            "high": round(point.high, 3),
            "run": keys[point.table, point.row],
        }
        for point in points(translating)
    ]


def _loss_axis(curves: Lines) -> dict[str, Any]:
    """Ticks at round numbers; if fewer than two lie within the losses of a text, the chart chooses its own."""
    spans: dict[str, list[float]] = {}
    for line in curves:
        spans.setdefault(line["text"], []).extend((line["low"], line["high"]))
    told = all(sum(min(of) <= tick <= max(of) for tick in TICKS) > 1 for of in spans.values())
    return {"values": TICKS} if told else {"tickCount": 6}


def _curves_chart(by: str, names: Sequence[str], first: Sequence[str], loss_axis: Mapping[str, Any]) -> dict[str, Any]:
    """Curves, the strip in which a part of them is chosen, and quality over cost.

    Each of the `names`, of tables or of rows as `by` says, has a colour. At first those in `first` are chosen, or all
    if it is empty.
    """
    shown = alt.selection_interval(encodings=["x"], name="shown")
    value: dict[str, Any] = {"value": [{by: name} for name in first]} if first else {}
    chosen = alt.selection_point(fields=[by], bind="legend", name="chosen", **value)
    text = alt.param(name="text", value="train", bind=alt.binding_radio(options=["train", "dev"], name="loss on "))
    colour, dash, shape = _looks(by, names)
    curves = _bands(chosen, shown, dash, loss_axis).encode(color=colour).add_params(chosen)
    strip = _strip(chosen).encode(color=colour).add_params(shown)
    cost = _quality_and_cost(chosen, shape).encode(color=colour)
    return alt.vconcat(curves, strip, cost, spacing=18).add_params(text).to_dict()


def _opacity(chosen: Any, strong: float, pale: float) -> dict[str, Any]:
    return {"condition": {"param": chosen.name, "value": strong}, "value": pale}


def _looks(by: str, names: Sequence[str]) -> tuple[Any, Any, Any]:
    """Colour, dashes of a line and shape of a point of each table or row: no two look the same."""
    laps = [divmod(i, N_COLOURS) for i in range(len(names))]
    colours = alt.Scale(domain=[*names], range=[f"--c{i}" for _, i in laps])
    dashes = alt.Scale(domain=[*names], range=[DASHES[lap % len(DASHES)] for lap, _ in laps])
    shapes = alt.Scale(domain=[*names], range=[SHAPES[(lap + i) % len(SHAPES)] for lap, i in laps])
    legend = alt.Legend(orient="top", title=None, columns=4, symbolStrokeWidth=1.5, symbolOpacity=1)
    return (
        alt.Color(f"{by}:N", scale=colours, sort=None, legend=legend),
        alt.StrokeDash(f"{by}:N", scale=dashes, sort=None, legend=legend),
        alt.Shape(f"{by}:N", scale=shapes, sort=None, legend=legend),
    )


def _bands(chosen: Any, shown: Any, dash: Any, loss_axis: Mapping[str, Any]) -> Any:
    """A line and a band for each row, pale if not `chosen`. The selection `shown` decides which steps are seen."""
    rows = (
        alt.Chart(alt.NamedData("curves"))
        .transform_filter(OF_TEXT)
        .encode(
            x=alt.X("step:Q", title="updates", scale=alt.Scale(domain=shown, nice=False), axis=alt.Axis(**UPDATES)),
            detail="row:N",
        )
    )
    y: dict[str, Any] = {"scale": alt.Scale(**LOSS), "axis": alt.Axis(format="~g", **loss_axis), "title": UNIT}
    band = rows.mark_area(clip=True).encode(y=alt.Y("low:Q", **y), y2="high:Q", opacity=_opacity(chosen, 0.16, 0.01))
    line = rows.mark_line(clip=True, strokeWidth=1.4).encode(
        y=alt.Y("mean:Q", **y),
        strokeDash=dash,
        opacity=_opacity(chosen, 0.95, 0.08),
        tooltip=["row:N", "step:Q", "mean:Q", "low:Q", "high:Q"],
    )
    return alt.layer(band, line).properties(width="container", height=DETAIL)


def _strip(chosen: Any) -> Any:
    lines = alt.Chart(alt.NamedData("curves")).transform_filter(OF_TEXT).mark_line(strokeWidth=0.7)
    return lines.encode(
        opacity=_opacity(chosen, 0.5, 0.05),
        x=alt.X("step:Q", title=None, scale=alt.Scale(nice=False), axis=alt.Axis(**UPDATES)),
        y=alt.Y("mean:Q", scale=alt.Scale(**LOSS), axis=None),
        detail="row:N",
    ).properties(width="container", height=STRIP)


def _quality_and_cost(chosen: Any, shape: Any) -> Any:
    """A point for each row with its interval."""
    x = alt.X(
        "flops:Q",
        scale=alt.Scale(type="log", nice=False, padding=20),
        title="FLOPs of training (G 10⁹, T 10¹², P 10¹⁵, E 10¹⁸)",
        axis=alt.Axis(format="~s", tickCount=5, grid=False, labelSeparation=8),
    )
    y: dict[str, Any] = {"scale": alt.Scale(zero=False, nice=False, padding=14), "title": "BLEU (dev)"}
    rows = alt.Chart(alt.NamedData("costs")).encode(x=x, opacity=_opacity(chosen, 1, 0.15))
    span = rows.mark_rule(strokeWidth=1.2).encode(y=alt.Y("low:Q", **y), y2="high:Q")
    point = rows.mark_point(filled=True, size=70, cursor="pointer").encode(
        y=alt.Y("bleu:Q", **y),
        shape=shape,
        tooltip=["row:N", alt.Tooltip("n:Q", title="runs"), "bleu:Q", "low:Q", "high:Q", "flops:Q"],
    )
    return alt.layer(span, point).properties(width="container", height=SCATTER)


# ---- the formulas

N_KEYS, LENGTH = 16, 100  # keys of one query; positions
EXPLAINED = (  # name, title, section of the paper, formula in HTML
    (
        *("rate", "The learning rate", "5.3"),
        "rate = d<sub>model</sub><sup>−0.5</sup> · min(step<sup>−0.5</sup>, step · warmup<sup>−1.5</sup>)",
    ),
    (
        *("codes", "Position codes", "3.5"),
        "PE(pos, 2i) = sin(pos / 10000<sup>2i / d</sup>)<br>PE(pos, 2i + 1) = cos(pos / 10000<sup>2i / d</sup>)",
    ),
    ("softmax", "Scaled scores", "3.2.1", "softmax(q · k / √d<sub>k</sub>)"),
    (
        *("layers", "Table 1: operations of a layer", "4"),
        "O(n<sup>2</sup> d), O(n d<sup>2</sup>), O(k n d<sup>2</sup>), O(r n d)",
    ),
)


def explorables_section(data: ScaleData) -> Section:
    """The formulas at the paper's sizes; the rate of this scale too. Table 1 only if its layers were measured."""
    measured = load(data.result_set.folder.parent, Measured)
    own = next((one.hyper for one in data.result_set.everything if one.table == BASE), None)
    figures = [
        Markup(
            '<figure class="explorable" id="explore-{}"><h3>{} <span class="small">Section {}</span></h3>'
            '<p class="formula">{}</p></figure>'
        ).format(name, title, section, Markup(formula))
        for name, title, section, formula in EXPLAINED
        if measured or name != "layers"
    ]
    body = Markup("<p>Move a slider: your browser computes what the formula gives, at the paper's sizes.</p>")
    body += Markup('<div class="beside">{}</div>').format(Markup().join(figures))
    counts = measured.counts if measured else []
    values = {
        "paper": {"d_model": PAPER.d_model, "warmup": PAPER.warmup, "d_k": PAPER.d_k},
        "own": {"scale": data.runs.scale, "d_model": own["d_model"], "warmup": own["warmup"]} if own else None,
        # q . k of one query and its keys at d_k = 1: independent N(0, 1), the same in each report
        "scores": np.random.default_rng(17).standard_normal(N_KEYS).round(6).tolist(),
        "length": LENGTH,
        "laws": [*laws(measured)] if measured else [],
        "counted": [[one.layer, one.n, one.d, one.window, one.mixing_flops] for one in counts],
    }
    return Section(key="explorables", title="The formulas", body=body, data=values, script="explorables.js")


def laws(measured: Measured) -> Iterator[dict[str, Any]]:
    """Each layer of Table 1 with the powers that the paper prints and the factor that we counted."""
    for row in ROWS:
        counted = next(count for count in measured.counts if count.layer == row.layer)
        sizes = {"n": counted.n, "d": counted.d, "window": counted.window or 1}
        whole = float(np.prod([sizes[name] ** power for name, power in row.exponents.items()]))
        yield {
            "layer": row.layer,
            "label": row.label,
            "window": WINDOWS.get(row.layer),
            "powers": row.exponents,
            "factor": counted.mixing_flops / whole,
        }
