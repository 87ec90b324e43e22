/* Heads and search of a trained model, from the file that its run left: unpacked when it is looked at.

   A browser draws what was measured: weights in a byte each, entropies as they were taken before that. */
"use strict";

report.inside = {
  FORMAT: 1, // of repro/results/artifacts.py

  /** A text with what a browser would obey written as it is called, as `shown` of repro/render/text.py does. */
  named(text) {
    const called = (n) => (n < 256 ? `\\x${n.toString(16).padStart(2, "0")}` : `\\u${n.toString(16)}`);
    return text.replace(/[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]/g, (one) => called(one.charCodeAt(0)));
  },

  /** The content of a file, and its weights: an Uint8Array for each sentence and kind. Raises an Error for any other file. */
  read(data) {
    const end = data.indexOf(10);
    const head = new TextDecoder().decode(data.subarray(0, Math.max(0, end)));
    const content = /^\{.*\}$/.test(head) ? JSON.parse(head, (_, value) => (typeof value === "string" ? this.named(value) : value)) : {};
    if (!Array.isArray(content.sentences)) throw new Error("Expected a file .inside.gz, as it stands beside a record, got another.");
    if (content.format !== this.FORMAT) throw new Error(`Expected a file of format ${this.FORMAT}, got ${content.format}: it was written by another version.`);
    if (!content.sentences.length) throw new Error("Expected a sentence, got none: the text of that run may not be redistributed.");
    let at = end + 1;
    for (const one of content.sentences.flatMap(({ attention }) => attention)) {
      const size = one.shape.reduce((a, b) => a * b, 1);
      one.weights = data.subarray(at, at + size);
      at += size;
    }
    if (at !== data.length) throw new Error(`Expected ${at} bytes, got ${data.length}.`);
    return content;
  },

  FATES: ["dropped: no place in the beam", "lived on", "ended", "cut at the limit"],

  /** Queries and keys of one kind by name, and of each token the number of its word: [labels, words, of]. */
  sides(sentence, kind) {
    const side = ({ tokens, words, of }) => ({ tokens, words, of });
    const { source, target, begin } = sentence;
    const read = { tokens: [begin, ...target.tokens.slice(0, -1)], of: [0, ...target.of.slice(0, -1).map((n) => n + 1)] };
    read.words = [begin, ...target.words.slice(0, Math.max(0, ...read.of))];
    if (!target.tokens.length) target.tokens.push(""), target.of.push(0), target.words.push("");
    return kind === "encoder" ? [side(source), side(source)] : [side(target), kind === "cross" ? side(source) : read];
  },

  /** Weights of one head, [queries][keys]; by word the keys of a word are summed, its queries averaged. */
  weights({ shape, weights }, layer, head, [queries, keys], byWord) {
    const [, heads, n, m] = shape;
    const at = (layer * heads + head) * n * m;
    const plain = Array.from({ length: n }, (_, q) => Array.from(weights.subarray(at + q * m, at + (q + 1) * m), (one) => one / 255));
    if (!byWord) return plain;
    const merged = queries.words.map(() => keys.words.map(() => 0));
    const count = queries.words.map((_, word) => queries.of.filter((one) => one === word).length);
    plain.forEach((row, q) => row.forEach((one, k) => { merged[queries.of[q]][keys.of[k]] += one / count[queries.of[q]]; }));
    return merged;
  },
};

report.whenSeen(document.getElementById("inside-view"), () => {
  const el = report.element;
  const { inside } = report;
  const { models: given, most } = report.data("inside");
  const models = [...given]; // a reader's own files come behind them
  const KINDS = { encoder: "encoder, self-attention", decoder: "decoder, self-attention", cross: "decoder, attention to the source" };
  const opened = new Map();
  const at = { model: 0, sentence: 0, kind: null, layer: 0, head: 0, byWord: true, query: null, node: null };
  let content = null;

  const select = (label, act) => {
    const made = el("select", { on: { change: () => act(made.value) } });
    return [el("label", {}, label, made), made];
  };
  const [modelLabel, model] = select("Model", (value) => { at.model = Number(value); at.node = null; open(); });
  const [sentenceLabel, sentence] = select("Sentence", (value) => { at.sentence = Number(value); at.query = at.node = null; show(); });
  const [kindLabel, kind] = select("Attention", (value) => { at.kind = value; at.query = null; show(); });
  const [levelLabel, level] = select("By", (value) => { at.byWord = value === "words"; at.query = null; show(); });
  level.append(el("option", {}, "words"), el("option", {}, "tokens"));
  model.append(...models.map(({ name }, i) => el("option", { value: i }, name)));
  const about = el("p", { class: "small", "aria-live": "polite" });
  const overview = el("div", { class: "heads", role: "group", "aria-label": "Layers and heads", on: { keydown: move } });
  const lines = el("div", { class: "scroll" });
  const matrix = el("div", { class: "scroll" });
  const tree = el("div", { class: "scroll", tabindex: "0" });
  const told = el("p", { class: "small", "aria-live": "polite" });
  const title = el("h3");
  const file = el("input", { type: "file", accept: ".gz", on: { change: openFile } });
  const refused = el("p", { class: "notice", role: "alert", hidden: true });
  document.getElementById("inside-view").append(
    el("div", { class: "controls" }, modelLabel, sentenceLabel, kindLabel, levelLabel, el("label", {}, "Open a file .inside.gz", file)), refused,
    about, overview, title, el("div", { class: "beside" }, el("figure", {}, lines), el("figure", {}, matrix)),
    el("h3", {}, "The search"), told, tree);

  function open() {
    if (!opened.has(at.model)) opened.set(at.model, inside.read(report.bytes(models[at.model].file)));
    content = opened.get(at.model);
    sharpest();
    at.sentence = Math.min(at.sentence, content.sentences.length - 1);
    sentence.replaceChildren(...content.sentences.map((one, i) => el("option", { value: i }, `${one.about}: ${text(one.source)}`)));
    show();
  }

  /** A file of the reader's own: of a row for which the page has no room, or of a run that was made since. Nothing is sent. */
  async function openFile() {
    const [chosen] = file.files;
    if (!chosen) return;
    try {
      const read = inside.read(await report.unpacked(await chosen.arrayBuffer()));
      const name = chosen.name.replace(/\.inside\.gz$/, "");
      opened.set(models.length, read);
      at.model = models.push({ name, about: `${name}, run ${read.run}`, run: read.run }) - 1;
      model.append(el("option", { value: at.model }, name));
      model.value = at.model;
      at.node = null;
      refused.hidden = true;
      open();
    } catch (error) {
      refused.textContent = `${chosen.name}: ${error.message}`;
      refused.hidden = false;
    }
  }

  /** Begin with the head of the last kind that is surest where to look. */
  function sharpest() {
    const of = at.kind === null ? content.sentences[0]?.attention.at(-1) : null;
    if (!of) return;
    const least = Math.min(...of.entropies.flat());
    at.layer = of.entropies.findIndex((heads) => heads.includes(least));
    at.head = of.entropies[at.layer].indexOf(least);
  }

  const text = ({ tokens }) => tokens.filter((one) => one !== "</s>").join("").trim();
  const chosen = () => content.sentences[at.sentence];

  function show() {
    const one = chosen();
    sentence.value = at.sentence;
    at.kind = one.attention.some((of) => of.kind === at.kind) ? at.kind : one.attention.at(-1)?.kind ?? null;
    kind.replaceChildren(...one.attention.map((of) => el("option", { value: of.kind }, KINDS[of.kind])));
    if (at.kind) kind.value = at.kind;
    const left = content.left_out.map((of) => `${of.about} (${of.tokens} tokens)`).join(", ");
    about.replaceChildren("Model: ", el("a", { href: `#run=${models[at.model].run}` }, models[at.model].about),
      ...(text(one.target) ? [". It wrote: “", el("bdi", {}, text(one.target)), "” "] : [". It wrote nothing. "]), "Below, layer 1 is at the top, head 1 on the left; a number is the mean entropy of a head, in nats.", left ? ` Not included, to keep the file under ${most / 1000} kB: ${left}.` : "",
      ...more(models[at.model]),
      at.kind ? "" : " This system has no heads to look at.");
    showHeads();
    showTree();
  }

  /** What the file has beyond the page; nothing of a file that a reader opened. */
  const more = ({ n_more: n, whole }) => (n ? [` ${n} more sentence${n === 1 ? " is" : "s are"} in `, el("a", { href: whole.split("/").map(encodeURIComponent).join("/") }, whole), "."] : []);

  const measured = () => chosen().attention.find((of) => of.kind === at.kind);

  function showHeads() {
    overview.hidden = title.hidden = lines.hidden = matrix.hidden = !at.kind;
    if (!at.kind) return;
    const [layers, heads] = measured().shape;
    at.layer = Math.min(at.layer, layers - 1);
    at.head = Math.min(at.head, heads - 1);
    const sides = inside.sides(chosen(), at.kind);
    overview.style.gridTemplateColumns = `repeat(${heads}, minmax(2.25rem, 5rem))`;
    overview.replaceChildren(...Array.from({ length: layers }, (_, layer) => Array.from({ length: heads }, (_, head) => {
      const here = layer === at.layer && head === at.head;
      const named = `layer ${layer + 1}, head ${head + 1}: ${measured().entropies[layer][head].toFixed(2)} nats`;
      return el("button", {
        type: "button", "aria-label": named, title: named, "aria-pressed": String(here), tabindex: here ? "0" : "-1",
        "data-at": `${layer} ${head}`, on: { click: () => choose(layer, head) },
      }, thumbnail(inside.weights(measured(), layer, head, sides, at.byWord)), el("span", {}, measured().entropies[layer][head].toFixed(2)));
    })).flat());
    showHead(sides);
  }

  function thumbnail(weights) {
    const canvas = el("canvas", { width: weights[0].length, height: weights.length, "aria-hidden": "true" });
    const [r, g, b] = report.colour("--c1").match(/\d+/g).map(Number);
    const image = new ImageData(canvas.width, canvas.height);
    weights.flat().forEach((one, i) => image.data.set([r, g, b, Math.round(255 * Math.min(1, one))], 4 * i));
    canvas.getContext("2d").putImageData(image, 0, 0);
    return canvas;
  }

  function choose(layer, head) {
    [at.layer, at.head] = [layer, head];
    showHeads();
    overview.querySelector('[aria-pressed="true"]').focus({ preventScroll: true });
  }

  /** Arrows go from head to head. */
  function move(event) {
    const step = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
    if (!step) return;
    event.preventDefault();
    const [layers, heads] = measured().shape;
    choose(Math.max(0, Math.min(layers - 1, at.layer + step[0])), Math.max(0, Math.min(heads - 1, at.head + step[1])));
  }

  function showHead(sides = inside.sides(chosen(), at.kind)) {
    const weights = inside.weights(measured(), at.layer, at.head, sides, at.byWord);
    const [queries, keys] = sides.map(({ words, tokens }) => (at.byWord ? words : tokens));
    title.textContent = `${KINDS[at.kind]}, layer ${at.layer + 1}, head ${at.head + 1}: mean entropy ${measured().entropies[at.layer][at.head].toFixed(2)} nats over its tokens`;
    const high = Math.max(queries.length, keys.length);
    const wide = Math.max(240, Math.min(420, lines.clientWidth || 420));
    const [step, room] = [22, Math.round(0.31 * wide)];
    const y = (i, n) => (i + 0.5) * step + ((high - n) * step) / 2;
    const ask = (q) => ({ mouseenter: () => only(q), mouseleave: () => only(null), focus: () => only(q), blur: () => only(null) });
    lines.replaceChildren(el("svg:svg", { width: wide, height: high * step, viewBox: `0 0 ${wide} ${high * step}`, role: "group", "aria-label": "Which word looks at which" },
      weights.map((row, q) => el("svg:g", { class: "from", "data-query": q }, row.map((one, k) => one < 0.02 ? null : el("svg:line", {
        x1: room, x2: wide - room, y1: y(q, queries.length), y2: y(k, keys.length), "stroke-opacity": one.toFixed(3) })))),
      queries.map((word, q) => el("svg:text", { x: room - 6, y: y(q, queries.length) + 4, "text-anchor": "end", tabindex: 0, class: "asks", on: ask(q) }, shown(word))),
      keys.map((word, k) => el("svg:text", { x: wide - room + 6, y: y(k, keys.length) + 4 }, shown(word)))));
    const cell = Math.max(12, Math.min(24, 380 / high));
    const [left, top] = [110, 96];
    const [across, down] = [left + keys.length * cell + 40, top + queries.length * cell + 4];
    matrix.replaceChildren(el("svg:svg", { width: across, height: down, viewBox: `0 0 ${across} ${down}`, role: "img", "aria-label": title.textContent },
      keys.map((word, k) => el("svg:text", { transform: `translate(${left + (k + 0.5) * cell + 4} ${top - 6}) rotate(-55)` }, shown(word))),
      weights.map((row, q) => [
        el("svg:text", { x: left - 6, y: top + (q + 0.5) * cell + 4, "text-anchor": "end" }, shown(queries[q] ?? "")),
        row.map((one, k) => el("svg:rect", { x: left + k * cell, y: top + q * cell, width: cell - 1, height: cell - 1, "fill-opacity": one.toFixed(3) },
          el("svg:title", {}, `${queries[q]} → ${keys[k]}: ${one.toFixed(2)}`)))])));
  }

  const shown = (word) => (word.trim().length > 13 ? `${word.trim().slice(0, 12)}…` : word.trim() || "␣");

  /** The lines of one query alone; null: of all. */
  function only(query) {
    for (const from of lines.querySelectorAll(".from")) from.classList.toggle("pale", query !== null && from.dataset.query !== String(query));
  }

  // The tree of hypotheses: a column for each length, likeliest above

  function showTree() {
    const { pieces, nodes, steps, best, limit } = chosen().tree;
    const { beam, alpha } = content.search;
    const lengths = [];
    nodes.forEach(([parent], i) => lengths.push(parent < 0 ? 0 : lengths[parent] + 1));
    const columns = steps.map((_, n) => nodes.map((_, i) => i).filter((i) => lengths[i] === n));
    const way = new Set();
    for (let i = best; i !== null && i >= 0; i = nodes[i][0]) way.add(i);
    const [wide, high, top] = [96, 26, 26];
    const place = (i) => [lengths[i] * wide + 46, top + columns[lengths[i]].indexOf(i) * high + 12];
    const rows = Math.max(1, ...columns.map((of) => of.length));
    at.node = at.node ?? best ?? 0;
    const go = (i) => { if (i !== undefined) { at.node = i; showTree(); tree.querySelector('[aria-current="true"]')?.focus({ preventScroll: false }); } };
    const keys = (event) => {
      const column = columns[lengths[at.node]];
      const next = { ArrowUp: column[column.indexOf(at.node) - 1], ArrowDown: column[column.indexOf(at.node) + 1],
        ArrowLeft: nodes[at.node][0] < 0 ? undefined : nodes[at.node][0], ArrowRight: nodes.findIndex(([parent]) => parent === at.node) }[event.key];
      if (!event.key.startsWith("Arrow")) return;
      event.preventDefault();
      if (next !== undefined && next >= 0) go(next);
    };
    const scrolled = tree.scrollLeft;
    const [across, down] = [columns.length * wide + 50, top + rows * high + 6];
    tree.replaceChildren(el("svg:svg", { class: "tree", width: across, height: down, viewBox: `0 0 ${across} ${down}`, role: "group", "aria-label": "The tree of hypotheses" },
      columns.map((_, n) => el("svg:text", { class: "length", x: n * wide + 46, y: 14, "text-anchor": "middle" }, String(n + 1))),
      nodes.map(([parent, , , , fate], i) => {
        if (parent < 0) return null;
        const [[x1, y1], [x2, y2]] = [place(parent), place(i)];
        return el("svg:path", { class: `branch fate${fate}${way.has(i) ? " best" : ""}`, d: `M${x1 + 40} ${y1}C${x1 + 52} ${y1} ${x2 - 52} ${y2} ${x2 - 40} ${y2}` });
      }),
      nodes.map(([, piece, , , fate], i) => {
        const [x, y] = place(i);
        return el("svg:g", { class: `node fate${fate}${way.has(i) ? " best" : ""}`, tabindex: i === at.node ? 0 : -1, "aria-current": String(i === at.node), role: "button",
          "aria-label": said(i), on: { click: () => go(i), keydown: keys } },
        el("svg:rect", { x: x - 40, y: y - 10, width: 80, height: 20, rx: 3 }),
        el("svg:text", { x, y: y + 4, "text-anchor": "middle" }, pieces[piece].length > 11 ? `${pieces[piece].slice(0, 10)}…` : pieces[piece].trim() || "␣"));
      })));
    tree.scrollLeft = scrolled;
    told.replaceChildren(`Beam ${beam}, α = ${alpha}, at most ${limit} tokens; the search took ${steps.length} steps. `, nodes.length ? said(at.node) : "Nothing was possible.");

    /** With a minus, and not a hyphen: it is read aloud, too. */
    function written(number) {
      return number.toFixed(3).replace("-", "−");
    }

    function said(i) {
      const ids = [];
      for (let j = i; j >= 0; j = nodes[j][0]) ids.unshift(pieces[nodes[j][1]]);
      const [, , logProb, score, fate] = nodes[i];
      const [penalty, hope, top_] = steps[lengths[i]];
      const worth = score === null ? `divided by its penalty it would score ${written(logProb / penalty)}` : `score ${written(score)}`;
      return `“${ids.join("").trim()}”: log-probability ${written(logProb)}, penalty ${written(penalty)} at length ${lengths[i] + 1}, ${worth}; ${inside.FATES[fate]}${i === best ? ", the answer" : ""}. `
        + `After this token: ${top_ === null ? "nothing finished yet" : `best finished score ${written(top_)}`}; ${hope === null ? "no hypothesis is unfinished" : `unfinished hypotheses could still reach ${written(hope)}`}.`;
    }
  }

  open();
  report.onColours(showHeads);
});
