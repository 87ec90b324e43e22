/* Sentences side by side: each different translation once, with the rows that wrote it and what differs, word by word. */
"use strict";

report.words = {
  /** Words that two texts share in the same order, as [i, j]: a longest common subsequence. */
  shared(one, other) {
    const best = Array.from({ length: one.length + 1 }, () => new Uint16Array(other.length + 1));
    for (let i = one.length - 1; i >= 0; i--) {
      for (let j = other.length - 1; j >= 0; j--) {
        best[i][j] = one[i] === other[j] ? best[i + 1][j + 1] + 1 : Math.max(best[i + 1][j], best[i][j + 1]);
      }
    }
    const found = [];
    for (let i = 0, j = 0; i < one.length && j < other.length;) {
      if (one[i] === other[j]) found.push([i++, j++]);
      else if (best[i + 1][j] >= best[i][j + 1]) i++;
      else j++;
    }
    return found;
  },

  /** [["", "words of both"], ["ins", "only of text"], ["del", "only of other"], ...] in the order of text. */
  differences(text, other) {
    const [one, two] = [text, other].map((words) => words.split(/\s+/).filter(Boolean));
    const parts = [];
    const add = (kind, words) => {
      if (!words.length) return;
      if (parts.at(-1)?.[0] === kind) parts.at(-1)[1] += ` ${words.join(" ")}`;
      else parts.push([kind, words.join(" ")]);
    };
    let [i, j] = [0, 0];
    for (const [m, n] of [...this.shared(one, two), [one.length, two.length]]) {
      add("del", two.slice(j, n));
      add("ins", one.slice(i, m));
      if (m < one.length) add("", [one[m]]);
      [i, j] = [m + 1, n + 1];
    }
    return parts;
  },
};

report.whenSeen(document.getElementById("side-by-side"), () => {
  const el = report.element;
  const { rows, first, sentences, has_text: hasText } = report.data("sentences");
  const EACH = 20; // sentences at a time
  const REFERENCE = "reference";
  let shown = EACH;

  const option = (value, text) => el("option", { value }, text);
  const names = rows.map(({ name }, i) => option(i, name));
  const row = el("select", { on: { change: again } }, option("", "all rows"), names.map((one) => one.cloneNode(true)));
  const against = el("select", { on: { change: again } }, hasText ? option(REFERENCE, REFERENCE) : option("", "nothing"), names);
  const order = el("select", { on: { change: again } },
    option("", "most different first"), option("worst", "lowest BLEU first"), option("line", "in the order of dev"));
  const find = el("input", { type: "search", placeholder: "any words", on: { input: again } });
  const count = el("output", { class: "small", "aria-live": "polite" });
  const list = el("div", { class: "sentences" });
  const more = el("button", { type: "button", on: { click: () => { shown += EACH; show(); } } }, "More sentences");
  if (first !== null) [row.value, against.value] = [first, 0];
  document.getElementById("side-by-side").append(
    el("div", { class: "controls" }, el("label", {}, "Row", row), el("label", {}, "Differences from", against),
      el("label", {}, "Order", order), el("label", {}, "Find", find), count), list, more);

  const chosen = (select) => (/^\d+$/.test(select.value) ? Number(select.value) : null);

  function again() {
    shown = EACH;
    show();
  }

  /** By how much a sentence differs: of all rows, of one from another, or of one from the reference. */
  function difference(one) {
    const [here, there] = [chosen(row), chosen(against)];
    if (here === null) return one.spread;
    return there === null ? 100 - one.bleu[here] : Math.abs(one.bleu[here] - one.bleu[there]);
  }

  function lowest(one) {
    return chosen(row) === null ? Math.min(...one.bleu) : one.bleu[chosen(row)];
  }

  function holds(one, words) {
    const text = [one.source, one.reference, ...one.texts].join(" ").toLowerCase();
    return words.every((word) => text.includes(word));
  }

  function show() {
    const words = find.value.trim().toLowerCase().split(/\s+/).filter(Boolean);
    const sorted = {
      "": (a, b) => difference(b) - difference(a), worst: (a, b) => lowest(a) - lowest(b), line: (a, b) => a.line - b.line,
    }[order.value];
    const found = sentences.filter((one) => holds(one, words)).sort(sorted);
    list.replaceChildren(...found.slice(0, shown).map(sentence));
    count.textContent = found.length ? `${Math.min(shown, found.length)} of ${found.length} shown` : "no sentence has all these words";
    more.hidden = shown >= found.length;
  }

  /** What two texts do not share: <ins> of the first alone, <del> of the other alone. */
  function marked(text, other) {
    if (!text) return el("span", { class: "small" }, "(empty)");
    if (other === null) return el("bdi", {}, text);
    return el("bdi", {}, report.words.differences(text, other).flatMap(([kind, words], i) =>
      [i ? " " : null, kind ? el(kind, {}, words) : el("span", {}, words)]));
  }

  function sentence(one) {
    const there = chosen(against);
    const two = there !== null && chosen(row) !== null && there !== chosen(row);
    const other = there === null ? one.reference : one.texts[one.of[there]];
    const wanted = chosen(row) === null ? rows.map((_, i) => i) : [...new Set([there, chosen(row)])].filter((i) => i !== null);
    const groups = new Map();
    for (const i of wanted) groups.set(one.of[i], [...(groups.get(one.of[i]) ?? []), i]);
    const lines = [...groups].sort(([, a], [, b]) => one.bleu[b[0]] - one.bleu[a[0]]);
    const whole = (name, text) => (text === null ? null : el("tr", { class: "given" },
      el("th", { scope: "row" }, name), el("td", { class: "words" }, el("bdi", {}, text))));
    return el("figure", {},
      el("figcaption", {}, `line ${one.line}: ${two ? `the two differ by ${difference(one).toFixed(1)} BLEU; ` : ""}`
        + `over all rows, sentence BLEU has a standard deviation of ${one.spread.toFixed(1)}`),
      el("div", { class: "scroll" }, el("table", {},
        el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "BLEU"), el("th", { scope: "col", class: "words" }, "translation, and its rows"))),
        el("tbody", {}, whole("source", one.source), whole("reference", one.reference), lines.map(([text, of]) => el("tr", {},
          el("td", { title: "sentence BLEU" }, one.bleu[of[0]].toFixed(1)),
          el("td", { class: "words" }, marked(one.texts[text], text === (there === null ? -1 : one.of[there]) ? null : other),
            el("div", { class: "rows" }, of.map((i, n) => [n ? " · " : null, el("a", { href: `#run=${rows[i].run}` }, rows[i].name)])))))))));
  }

  show();
});
