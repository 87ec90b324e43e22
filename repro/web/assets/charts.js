/* Charts of Vega-Lite, drawn when they come into sight, in the page's colours, as wide as there is room.

   The library that draws them stands in the page packed, and becomes a script with the first chart that is looked at.
   `<div class="chart" data-chart="KEY/NAME">` shows the chart NAME of section KEY, and counts in data-drawn how often it was
   drawn. Where its data is a name, the rows are made from the columns of that name in report.data(KEY).columns. */
"use strict";

{
  const places = new Map([...document.querySelectorAll(".chart[data-chart]")].map((at) => [at.dataset.chart, at]));
  const drawn = new Map();
  const BESIDE = 66; // pixels: the axis and its labels, beside a chart that stands among others
  const LEGEND = { symbol: 28, letter: 6.8 }; // pixels of an entry: its symbol with the gaps, and a letter of its name

  /** Makes `vegaEmbed` of what the page holds packed; once. */
  function start() {
    const library = document.getElementById("library");
    library?.replaceWith(report.element("script", {}, report.values("library")));
  }

  /** {a: [1, 2], b: [3, 4]} -> [{a: 1, b: 3}, {a: 2, b: 4}] */
  function rows(columns) {
    const names = Object.keys(columns);
    return columns[names[0]].map((_, i) => Object.fromEntries(names.map((name) => [name, columns[name][i]])));
  }

  /** The colours and the letters of the page; names of rows get up to three fifths of a wide chart, and small letters on a narrow one. */
  function config(width) {
    const [ink, soft, line] = ["--ink", "--soft", "--line"].map(report.colour);
    const font = getComputedStyle(document.querySelector("button")).fontFamily;
    const words = { labelColor: soft, titleColor: ink, labelFont: font, titleFont: font, labelFontSize: 12, titleFontSize: 12, titleFontWeight: 500 };
    return {
      background: "transparent",
      font,
      axis: { ...words, domainColor: soft, tickColor: soft, gridColor: line, gridOpacity: 0.6 },
      axisY: width < 480 ? { labelLimit: 252, labelFontSize: 10 } : { labelLimit: Math.min(380, 0.6 * width) },
      legend: { ...words, labelLimit: 260 },
      header: words,
      title: { color: ink, font, fontSize: 13, fontWeight: 600, anchor: "start" },
      text: { color: ink, font },
      rule: { color: soft },
      view: { stroke: null },
      range: { category: [0, 1, 2, 3, 4, 5, 6, 7].map((i) => report.colour(`--c${i}`)) },
    };
  }

  /** As wide as the place: one chart with its axes, of several each without them. */
  function fit(spec, width, axes) {
    if (spec.width === "container") spec.width = Math.max(120, width - axes);
    if (!axes) spec.autosize = { type: "fit-x", contains: "padding" };
    for (const part of spec.vconcat ?? []) fit(part, width, axes);
  }

  /** No more columns of a legend than there is room for with the longest of its names. */
  function fitLegend(part, width) {
    if (!part?.legend?.columns || !part.scale?.domain) return;
    const longest = Math.max(...part.scale.domain.map((name) => name.length));
    const room = Math.floor((width - BESIDE) / (LEGEND.symbol + LEGEND.letter * longest));
    part.legend.columns = Math.max(1, Math.min(part.legend.columns, room));
  }

  async function draw(key) {
    start();
    const columns = report.data(key.split("/")[0])?.columns ?? {};
    const datasets = Object.fromEntries(Object.entries(columns).map(([name, of]) => [name, rows(of)]));
    const place = places.get(key);
    const spec = JSON.parse(JSON.stringify(report.values("charts")[key]), (_, value) => {
      fitLegend(value, place.clientWidth);
      return typeof value === "string" && /^--[a-z0-9]+$/.test(value) ? report.colour(value) : value;
    });
    fit(spec, place.clientWidth, spec.vconcat ? BESIDE : 0);
    drawn.get(key)?.finalize();
    const { view } = await vegaEmbed(place, { ...spec, datasets: { ...spec.datasets, ...datasets } }, {
      actions: false, renderer: "svg", ast: true, config: config(place.clientWidth), mode: "vega-lite",
    });
    drawn.set(key, view);
    place.prepend(...place.querySelectorAll(".vega-bindings")); // Vega has them behind what they change
    view.addEventListener("click", (_, item) => item?.datum?.run && report.go("run", item.datum.run));
    for (const { name, select } of (spec.params ?? []).filter(({ bind }) => bind === "legend")) {
      // in Vega-Lite a name is given up by a click beside all names alone
      view.addEventListener("dblclick", () => view.signal(`${name}_${select.fields[0]}_legend`, null).data(`${name}_store`, []).runAsync());
    }
    leadNames(place, Object.values(datasets).flat());
    place.dataset.drawn = Number(place.dataset.drawn ?? 0) + 1;
  }

  /** The name of a row beside a chart opens it, as in a table: Vega lets no click through to it. */
  function leadNames(place, lines) {
    const runs = new Map(lines.map(({ row, run }) => [row, run]));
    for (const label of place.querySelectorAll(".role-axis-label text")) {
      const run = runs.get(label.__data__?.datum?.value); // Vega leaves what it drew in the element
      if (!run) continue;
      label.classList.add("leads");
      label.addEventListener("click", () => report.go("run", run));
    }
  }

  for (const [key, place] of places) {
    report.whenSeen(place, () => draw(key));
    place.addEventListener("keydown", (event) => event.key === "Escape" && draw(key));
  }
  let width = innerWidth;
  addEventListener("resize", () => {
    if (innerWidth !== width) [...drawn.keys()].forEach((key) => draw(key));
    width = innerWidth;
  });
  report.onColours(() => [...drawn.keys()].forEach((key) => draw(key)));
}
