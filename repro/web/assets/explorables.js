/* The paper's formulas, each with its slider: `report.formulas` computes, the rest shows. See repro/web/charts.py. */
"use strict";

report.formulas = {
  /** The rate of optimizer step `step`, from 1. Paper: section 5.3. */
  rate: (step, width, warmup) => width ** -0.5 * Math.min(step ** -0.5, step * warmup ** -1.5),

  /** [sine, cosine] of pair i at a position. Paper: section 3.5. */
  code: (position, i, width) => {
    const angle = position / 10000 ** ((2 * i) / width);
    return [Math.sin(angle), Math.cos(angle)];
  },

  /** Positions from crest to crest. */
  wavelength: (i, width) => 2 * Math.PI * 10000 ** ((2 * i) / width),

  /** Weights of scores. */
  softmax: (scores) => {
    const most = Math.max(...scores);
    const powers = scores.map((score) => Math.exp(score - most));
    const sum = powers.reduce((a, b) => a + b, 0);
    return powers.map((power) => power / sum);
  },

  /** How much the weights p move when scores do: the Frobenius norm of diag(p) - p p'.

      1 - p is added up from the other weights: taken from 1, nothing is left of it where one weight is almost 1. */
  jacobian: (p) => {
    const rest = (i) => p.reduce((total, one, j) => total + (i === j ? 0 : one), 0);
    return Math.hypot(...p.flatMap((one, i) => p.map((other, j) => one * (i === j ? rest(i) : other))));
  },

  /** Operations of the mixing of a layer of Table 1. A neighbourhood r holds no more than the n positions there are. */
  operations: (law, sizes) => {
    const here = law.window === "r" ? { ...sizes, window: Math.min(sizes.window, sizes.n) } : sizes;
    return Object.entries(law.powers).reduce((product, [name, power]) => product * here[name] ** power, law.factor);
  },
};

report.whenSeen(document.getElementById("explorables"), () => {
  const { element, formulas } = report;
  const values = report.data("explorables");
  const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
  const tenths = new Intl.NumberFormat("en", { minimumFractionDigits: 1, maximumFractionDigits: 1 });
  const minus = (text) => text.replace("-", "−");
  /** 31.1 %; a part that rounds to all of it is not all. */
  const share = (part) => (part < 1 && part >= 0.9995 ? "more than 99.9 %" : `${tenths.format(100 * part)} %`);

  /** 0.002, 10,000, 1e6, 2.1e6: as a tick has room for. */
  function short(value) {
    const power = Math.floor(Math.log10(Math.abs(value)) + 1e-9);
    if (value === 0 || (power >= -3 && power < 5)) return value >= 1000 ? whole.format(value) : minus(String(Number(value.toPrecision(3))));
    return minus(`${Number((value / 10 ** power).toPrecision(2))}e${power}`);
  }

  /** Places of ticks: powers of ten, or about five round steps. */
  function ticks([low, high], isLog) {
    if (isLog) {
      const [first, last] = [Math.ceil(Math.log10(low) - 1e-9), Math.floor(Math.log10(high) + 1e-9)];
      const each = Math.max(1, Math.ceil((last - first) / 5));
      return Array.from({ length: Math.floor((last - first) / each) + 1 }, (_, i) => 10 ** (first + i * each));
    }
    const rough = (high - low) / 4;
    const base = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((one) => one * base).find((one) => one >= rough);
    const first = Math.ceil(low / step - 1e-9);
    return Array.from({ length: Math.floor(high / step + 1e-9) - first + 1 }, (_, i) => Number(((first + i) * step).toPrecision(6)));
  }

  /** Lines, dots and one upright mark in a frame as wide as there is room. */
  function plot(room, { x, y, lines = [], dots = [], bars = [], at = null, name }) {
    const [width, height, left, bottom, right, top] = [Math.max(240, room.clientWidth), 246, 48, 40, 18, 26];
    const along = ({ range, log }, from, to) => (value) => {
      const [low, high, here] = log ? [...range, value].map(Math.log10) : [...range, value];
      return from + ((here - low) / (high - low)) * (to - from);
    };
    const [px, py] = [along(x, left, width - right), along(y, height - bottom, top)];
    const svg = element("svg:svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": name },
      ticks(y.range, y.log).map((value) => [
        element("svg:line", { class: "grid-line", x1: left, x2: width - right, y1: py(value), y2: py(value) }),
        element("svg:text", { x: left - 6, y: py(value) + 4, "text-anchor": "end" }, short(value))]),
      ticks(x.range, x.log).map((value) => element("svg:text", { x: px(value), y: height - bottom + 16, "text-anchor": "middle" }, short(value))),
      element("svg:text", { x: width - right, y: height - 6, "text-anchor": "end" }, x.label),
      element("svg:text", { x: 0, y: 12 }, y.label),
      bars.map(([from, to, value, colour]) => element("svg:rect", {
        x: px(from), width: Math.max(1, px(to) - px(from)), y: py(value), height: py(y.range[0]) - py(value), style: `fill: var(${colour})` })),
      lines.map(({ points, colour, dash }) => element("svg:polyline", {
        points: points.map(([a, b]) => `${px(a).toFixed(1)},${py(b).toFixed(1)}`).join(" "),
        class: "line", style: `stroke: var(${colour}); stroke-width: 2`, "stroke-dasharray": dash })),
      dots.map(([a, b, colour]) => element("svg:circle", { cx: px(a), cy: py(b), r: 3.5, style: `fill: var(--ground); stroke: var(${colour}); stroke-width: 1.5` })),
      at === null ? null : element("svg:line", { x1: px(at), x2: px(at), y1: top, y2: height - bottom, class: "now" }));
    room.replaceChildren(svg);
  }

  /** A slider that says what it stands at. */
  function slider(label, { min, max, value, step = 1, shown = short }, act) {
    const said = element("output", {}, shown(value));
    const input = element("input", { type: "range", min, max, step, value, "aria-valuetext": shown(value), on: { input: () => {
      said.textContent = shown(Number(input.value));
      input.setAttribute("aria-valuetext", said.textContent);
      act(Number(input.value));
    } } });
    return element("label", {}, element("span", {}, `${label} `, said), input);
  }

  function key(label, colour, dash = "") {
    return element("span", { class: "legend" }, element("i", { style: `border-color: var(${colour}); border-top-style: ${dash || "solid"}` }), label);
  }

  /** Controls, picture, key and a sentence; `draw(state)` says what is in them. */
  function explore(name, controls, state, legend, draw) {
    const figure = document.getElementById(`explore-${name}`);
    if (!figure) return;
    const [room, said] = [element("div", { class: "plot" }), element("figcaption", { "aria-live": "polite" })];
    const show = () => {
      const { sentence, ...picture } = draw(state);
      plot(room, { ...picture, name: sentence });
      said.textContent = sentence;
      for (const one of figure.querySelectorAll(".of-dots")) one.hidden = !picture.dots.length;
    };
    figure.append(
      element("div", { class: "controls" }, controls.map(([field, label, how]) => slider(label, { ...how, value: how.from ?? state[field] },
        (value) => { state[field] = how.to ? how.to(value) : value; show(); }))),
      room, element("p", { class: "legends" }, legend), said);
    new ResizeObserver(() => { if (room.clientWidth !== room.firstChild?.width.baseVal.value) show(); }).observe(room);
    show();
  }

  const { paper, own } = values;
  const power = (from, min, max) => ({ min, max, from: Math.log2(from), to: (value) => 2 ** value, shown: (value) => whole.format(2 ** value) });

  explore("rate", [["warmup", "steps of warm-up", { min: 100, max: 16000, step: 100, shown: whole.format }]], { warmup: paper.warmup },
    [key("this slider, the paper's width", "--c1"), key(`the paper's ${whole.format(paper.warmup)} steps`, "--c0", "dotted"),
      ...(own ? [key(`the base here (${own.scale}): d_model ${own.d_model}, ${whole.format(own.warmup)} steps`, "--c2", "dashed")] : [])],
    ({ warmup }) => {
      const steps = Array.from({ length: 161 }, (_, i) => Math.round(10 ** ((i / 160) * 5)));
      const line = (d, w, colour, dash) => ({ points: steps.map((step) => [step, formulas.rate(step, d, w)]), colour, dash });
      const peak = formulas.rate(warmup, paper.d_model, warmup);
      const lines = [line(paper.d_model, paper.warmup, "--c0", "2 4"), ...(own ? [line(own.d_model, own.warmup, "--c2", "7 4")] : []),
        line(paper.d_model, warmup, "--c1")];
      const most = Math.max(...lines.flatMap(({ points }) => points.map(([, b]) => b)));
      return { x: { range: [1, 1e5], log: true, label: "optimizer step" }, y: { range: [0, most * 1.05], label: "rate" }, lines, at: warmup,
        sentence: `With ${whole.format(warmup)} steps of warm-up the rate rises to ${minus(peak.toExponential(2))} at step ${whole.format(warmup)}, and is ${minus(formulas.rate(1e5, paper.d_model, warmup).toExponential(2))} at step 100,000.` };
    });

  explore("codes", [["i", "pair of dimensions i", { min: 0, max: paper.d_model / 2 - 1 }]], { i: 16 },
    [key("sine, dimension 2i", "--c1"), key("cosine, dimension 2i + 1", "--c2", "dashed")],
    ({ i }) => {
      const at = Array.from({ length: 4 * values.length + 1 }, (_, position) => position / 4);
      const line = (which, colour, dash) => ({ points: at.map((position) => [position, formulas.code(position, i, paper.d_model)[which]]), colour, dash });
      return { x: { range: [0, values.length], label: "position" }, y: { range: [-1, 1], label: "value of the dimension" }, lines: [line(1, "--c2", "7 4"), line(0, "--c1")],
        sentence: `Pair ${i} of ${paper.d_model / 2}: from crest to crest ${tenths.format(formulas.wavelength(i, paper.d_model))} positions.` };
    });

  const norm = (weights) => minus(String(Number(formulas.jacobian(weights).toPrecision(3))));
  explore("softmax", [["width", "d_k", power(paper.d_k, 0, 10)]], { width: paper.d_k },
    [key("q · k / √d_k", "--c1"), key("q · k", "--c2")],
    ({ width }) => {
      const [scaled, plain] = [1, Math.sqrt(width)].map((by) => formulas.softmax(values.scores.map((score) => score * by)));
      const bars = scaled.flatMap((weight, i) => [[i + 0.6, i + 1, weight, "--c1"], [i + 1, i + 1.4, plain[i], "--c2"]]);
      return { x: { range: [0.5, scaled.length + 0.5], label: "key" }, y: { range: [0, 1], label: "weight" }, bars,
        sentence: `At d_k = ${whole.format(width)} the heaviest of ${plain.length} keys has ${share(Math.max(...plain))} without the scale and `
          + `${share(Math.max(...scaled))} with it. The Jacobian of the softmax, by which gradients are multiplied, has a Frobenius norm of `
          + `${norm(plain)} without and ${norm(scaled)} with it.` };
    });

  const colours = ["--c1", "--c2", "--c3", "--c6", "--c4"];
  const layers = values.laws.filter((law, i, all) => all.findIndex((other) => other.layer === law.layer) === i);
  explore("layers", [["n", "n, length", power(64, 3, 13)], ["d", "d, width", power(128, 5, 11)], ["window", "k and r", { min: 3, max: 65, step: 2 }]],
    { n: 64, d: 128, window: 5 },
    [...layers.map((law, i) => key(law.label.replace(" (dilated)", ""), colours[i])), element("span", { class: "legend of-dots" }, "○ counted at this d, k and r")],
    ({ n, d, window }) => {
      const lengths = Array.from({ length: 11 }, (_, i) => 2 ** (i + 3));
      const lines = layers.map((law, i) => ({ colour: colours[i], points: lengths.map((length) => [length, formulas.operations(law, { n: length, d, window })]) }));
      const dots = values.counted.filter(([layer, , width, reach]) => width === d && (reach === null || reach === window) && layers.some((law) => law.layer === layer))
        .map(([layer, length, , , count]) => [length, count, colours[layers.findIndex((law) => law.layer === layer)]]);
      const here = layers.map((law) => [law.label.replace(" (dilated)", ""), formulas.operations(law, { n, d, window })]).sort((a, b) => a[1] - b[1]);
      const all = lines.flatMap(({ points }) => points.map(([, b]) => b));
      return { x: { range: [8, 8192], log: true, label: "length n" }, y: { range: [Math.min(...all), Math.max(...all)], log: true, label: "operations" }, lines, dots, at: n,
        sentence: `At n = ${whole.format(n)}, d = ${whole.format(d)}, k = r = ${window}${window > n ? " (but r at most n)" : ""}: ${here.map(([label, count]) => `${label} ${whole.format(count)}`).join(", ")} operations of the mixing.` };
    });
});
