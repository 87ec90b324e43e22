/* Charts of Vega-Lite, drawn when they come into sight, in the colours of the theme, as wide as there is room.

   The library that draws them stands in the page packed, and becomes a script with the first chart that is looked at.
   `<div class="chart" data-chart="KEY/NAME">` shows the chart NAME of section KEY. Where its data is a name, the rows are
   made from the columns of that name in report.data(KEY).columns. A script that wants the view: report.onChart("KEY/NAME", act).

   Vega hears a mouse alone. What a click does to a mark or to a name of a legend, keys do here: of each kind one is
   reached with Tab, arrows go on from it, Enter clicks it, Escape takes back what was chosen. */
"use strict";

{
  const waiting = new Map(); // "KEY/NAME" -> who waits for its view
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
    for (const part of [...(spec.vconcat ?? []), ...(spec.hconcat ?? [])]) fit(part, width, axes);
  }

  /** No more columns of a legend than there is room for with the longest of its names. */
  function fitLegend(part, width) {
    if (!part?.legend?.columns || !part.scale?.domain) return;
    const longest = Math.max(...part.scale.domain.map((name) => name.length));
    const room = Math.floor((width - BESIDE) / (LEGEND.symbol + LEGEND.letter * longest));
    part.legend.columns = Math.max(1, Math.min(part.legend.columns, room));
  }

  /** What a reader chose in a chart that is drawn, as Vega-Lite has a parameter's first value; drawn over, picked or named only if `all`. */
  function choices(key, all = true) {
    const view = drawn.get(key);
    const found = {};
    for (const { name, select, value, bind } of (view && report.values("charts")[key].params) || []) {
      const chosen = select ? view.data(`${name}_store`) : null;
      const valued = (one, by) => Object.fromEntries(one.fields.map((field, i) => [field[by], one.values[i]]));
      if (!select && (all || bind.input !== "select")) found[name] = view.signal(name);
      else if (select && all && (chosen.length || value)) found[name] = select.type === "interval" ? valued(chosen[0], "channel") : chosen.map((one) => valued(one, "field"));
    }
    return found;
  }

  /** Draw a chart, with what was chosen in it before: another theme or width is no other question. */
  async function draw(key, kept = choices(key)) {
    start();
    const columns = report.data(key.split("/")[0])?.columns ?? {};
    const datasets = Object.fromEntries(Object.entries(columns).map(([name, of]) => [name, rows(of)]));
    const place = places.get(key);
    const [colours, spec] = [config(place.clientWidth), report.values("charts")[key]];
    const coloured = JSON.parse(JSON.stringify(spec), (_, value) => {
      fitLegend(value, place.clientWidth);
      return typeof value === "string" && /^--[a-z0-9]+$/.test(value) ? report.colour(value) : value;
    });
    fit(coloured, place.clientWidth, coloured.vconcat || coloured.hconcat ? BESIDE : 0);
    for (const param of coloured.params ?? []) if (param.name in kept) param.value = kept[param.name];
    const active = place.contains(document.activeElement) ? document.activeElement : {};
    const [focused, control] = [nameOf(active), active.name];
    drawn.get(key)?.finalize();
    const { view } = await vegaEmbed(place, { ...coloured, datasets: { ...coloured.datasets, ...datasets } }, {
      actions: false, renderer: "svg", ast: true, config: colours, mode: "vega-lite",
    });
    drawn.set(key, view);
    place.prepend(...place.querySelectorAll(".vega-bindings")); // Vega has them behind what they change
    view.addEventListener("click", (_, item) => item?.datum?.run && report.go("run", item.datum.run));
    const stops = [...leadPoints(place, view), ...leadLegend(place, view, coloured.params ?? [])];
    leadNames(place, Object.values(datasets).flat());
    if (control) place.querySelector(`[name="${control}"]:is(select, :checked)`)?.focus({ preventScroll: true });
    if (focused !== undefined) stops.find((node) => nameOf(node) === focused)?.focus({ preventScroll: true });
    for (const act of waiting.get(key) ?? []) act(view);
  }

  /** The run of a point, or the name in a legend: Vega leaves what it drew in the element. */
  const nameOf = ({ __data__: item }) => item?.datum?.run ?? item?.datum?.value;

  /** Points that lead to a run, each run once: right and left by what lies beside, up and down by what lies above. */
  function leadPoints(place, view) {
    const points = new Map();
    for (const node of place.querySelectorAll(".mark-symbol.role-mark path")) {
      if (node.__data__.datum?.run && !points.has(nameOf(node))) points.set(nameOf(node), node);
    }
    const at = (node) => node.getBoundingClientRect();
    const middle = (node) => [at(node).x + at(node).width / 2, at(node).y + at(node).height / 2];
    const tell = (node, value) => {
      const [clientX, clientY] = middle(node);
      view.tooltip()(null, new MouseEvent("mousemove", { clientX, clientY }), node.__data__, value);
    };
    const nodes = [...points.values()];
    for (const node of nodes) {
      node.setAttribute("role", "link");
      node.removeAttribute("aria-roledescription");
      node.addEventListener("focus", () => node.matches(":focus-visible") && tell(node, node.__data__.tooltip));
      node.addEventListener("blur", () => tell(node, null));
    }
    return lead(nodes, "Rows: arrows go from one to the next, Enter opens it", (across) => {
      const along = new Map(nodes.map((node) => [node, middle(node)[across ? 0 : 1]]));
      return [...nodes].sort((a, b) => along.get(a) - along.get(b));
    });
  }

  /** Names of a legend by which rows are chosen, each pressed or not. */
  function leadLegend(place, view, params) {
    const [bound] = params.filter(({ bind }) => bind === "legend");
    if (!bound) return [];
    const store = `${bound.name}_store`;
    const nodes = [...place.querySelectorAll(".role-legend-label text")];
    const press = () => {
      const chosen = view.data(store).flatMap(({ values }) => values);
      for (const node of nodes) node.setAttribute("aria-pressed", String(chosen.includes(nameOf(node))));
    };
    for (const node of nodes) node.setAttribute("role", "button");
    view.addDataListener(store, press);
    // in Vega-Lite a name is given up by a click beside all names alone
    view.addEventListener("dblclick", () => view.signal(`${bound.name}_${bound.select.fields[0]}_legend`, null).data(store, []).runAsync());
    press();
    return lead(nodes, "Tables: arrows go from one to the next, Enter keeps it, with Shift one more", () => nodes);
  }

  /** Keys among marks; `order(across)` is the order in which arrows go, right and left or up and down. */
  function lead(nodes, about, order) {
    const go = (to) => {
      for (const node of nodes) node.setAttribute("tabindex", node === to ? 0 : -1);
    };
    go(nodes[0]);
    const group = nodes[0]?.closest(".role-legend, .role-mark");
    group?.setAttribute("role", "group");
    group?.setAttribute("aria-label", about);
    group?.removeAttribute("aria-roledescription");
    for (const node of nodes) {
      node.addEventListener("focus", () => go(node));
      node.addEventListener("keydown", (event) => {
        const { key, shiftKey } = event;
        const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[key];
        const along = order(key === "ArrowRight" || key === "ArrowLeft");
        const to = { Home: nodes[0], End: nodes.at(-1) }[key] ?? (step && along[along.indexOf(node) + step]);
        if (key === "Enter" || key === " ") node.dispatchEvent(new MouseEvent("click", { bubbles: true, shiftKey }));
        else if (!to && !step) return;
        event.preventDefault();
        to?.focus();
      });
    }
    return nodes;
  }

  /** The name of a row beside a chart opens it, as in a table: Vega lets no click through to it. */
  function leadNames(place, lines) {
    const runs = new Map(lines.map(({ row, run }) => [row, run]));
    for (const label of place.querySelectorAll(".role-axis-label text")) {
      const run = runs.get(nameOf(label));
      if (!run) continue;
      label.classList.add("leads");
      label.addEventListener("click", () => report.go("run", run));
    }
  }

  for (const [key, place] of places) {
    report.whenSeen(place, () => draw(key));
    place.addEventListener("keydown", (event) => event.key === "Escape" && draw(key, choices(key, false)));
  }
  let width = innerWidth;
  addEventListener("resize", () => {
    if (innerWidth !== width) [...drawn.keys()].forEach((key) => draw(key));
    width = innerWidth;
  });
  report.onTheme(() => [...drawn.keys()].forEach((key) => draw(key)));

  /** act(view) now, if the chart KEY/NAME is drawn, and whenever it is drawn again. */
  report.onChart = (key, act) => {
    waiting.set(key, [...(waiting.get(key) ?? []), act]);
    if (drawn.has(key)) act(drawn.get(key));
  };
}
