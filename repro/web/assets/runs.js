/* What a click on a row opens: its runs, seed by seed. #run=KEY is the address of one. */
"use strict";

{
  let runs, base; // once a run is asked for
  const el = report.element;
  const [WIDEST, EDGES, HEIGHT] = [640, 32, 240];

  const close = el("button", { type: "button", class: "close", "aria-label": "Close", on: { click: () => dialog.close() } }, "Close");
  const content = el("div", { class: "content" });
  const dialog = el("dialog", { class: "run", "aria-labelledby": "run-title", on: { close: leave, click: outside } }, close, content);
  document.body.append(dialog);

  function outside(event) {
    if (event.target === dialog) dialog.close();
  }

  function leave() {
    report.go("run", null); // the focus is back where it was: a dialog sees to that as it closes
  }

  const siblings = (run) => Object.keys(runs).filter((key) => runs[key].table === run.table && runs[key].row === run.row);

  function show(key) {
    if (key === null) {
      if (dialog.open) dialog.close();
      return;
    }
    ({ runs, base } = report.data("runs"));
    content.replaceChildren(...(Object.hasOwn(runs, key) ? about(key, runs[key]) : [
      el("h2", { id: "run-title" }, "No such run"),
      el("p", {}, `Expected the key of one of ${Object.keys(runs).length} runs of this scale, got `, el("code", {}, key), "."),
    ]));
    if (!dialog.open) dialog.showModal();
    dialog.scrollTop = 0;
    content.querySelector("[aria-current]")?.focus();
  }

  /** Everything about one run. */
  function about(key, run) {
    const of = siblings(run);
    return [
      el("p", { class: "small" }, run.table),
      el("h2", { id: "run-title" }, run.label),
      seeds(key, of),
      el("p", {}, el("strong", {}, `Seed ${run.seed}: ${run.status}. `), `${run.badge[0]}.`),
      run.badge.length > 1 ? el("p", { class: "small" }, `What rules out a higher badge: ${run.badge.slice(1).join(", ")}.`) : null,
      el("h3", {}, "Scores"), scores(run),
      el("h3", {}, "How it learned"), ...curves(key, of),
      el("h3", {}, "Settings"), settings(run),
      el("h3", {}, "Departures from the paper's recipe"), departures(run),
      el("h3", {}, "Cost"), facts(run.cost),
      el("h3", {}, "How to run it again"), ...command(run),
      el("h3", {}, "Where it comes from"), facts([...run.world, ...run.made, ...run.settings]),
      el("p", {}, el("a", { href: run.file.split("/").map(encodeURIComponent).join("/") }, "The record itself")),
    ].filter(Boolean);
  }

  /** One button a seed; left and right go from one to the next. */
  function seeds(key, of) {
    const buttons = of.map((one) => el("a", {
      href: `#run=${one}`, class: "seed", "aria-current": one === key ? "true" : null,
    }, `seed ${runs[one].seed}`));
    return el("nav", {
      class: "seeds", "aria-label": "Seeds of this row",
      on: { keydown: (event) => {
        const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
        const next = step && of[of.indexOf(key) + step];
        if (next) report.go("run", next);
      } },
    }, buttons);
  }

  function table(head, lines, words = []) {
    const side = (i) => (words.includes(i) ? "words" : null);
    return el("div", { class: "scroll" }, el("table", {},
      el("thead", {}, el("tr", {}, head.map((text, i) => el("th", { scope: "col", class: side(i) }, text)))),
      el("tbody", {}, lines.map((cells) => el("tr", {}, cells.map((text, i) =>
        el(i ? "td" : "th", { scope: i ? null : "row", class: side(i) }, text)))))));
  }

  function scores(run) {
    const lines = run.scores.map(([name, dev, test, by]) => [name, dev, test, el("code", {}, by)]);
    return table(["score", "dev", "test", "by"], lines, [0, 3]);
  }

  /** The row's value, the base's where it is another, the paper's where it is another. */
  function settings(run) {
    const of = base && base in runs ? runs[base].hyper : null;
    const lines = run.hyper.map(([name, here, paper], i) => {
      const differs = of && of[i][1] !== here;
      return [name, differs ? el("strong", {}, here || "none") : here, of ? of[i][1] : "", paper === here ? "" : paper];
    });
    return table(["setting", "this row", "base here", "this row at the paper's size"], lines, [0]);
  }

  function departures(run) {
    const found = run.departures;
    if (!found.length) return el("p", {}, "None: the run follows it.");
    return table(["rule", "here", "paper"], found, [0, 1, 2]);
  }

  function facts(pairs) {
    return el("dl", { class: "facts" }, pairs.map(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]));
  }

  function command(run) {
    const text = run.again.join("\n");
    const said = run.is_of_today ? "" : "Today's options cannot make the scale of this record; only the code of its commit can.";
    const copy = el("button", { type: "button", on: { click: async () => {
      await navigator.clipboard.writeText(text);
      copy.textContent = "Copied";
    } } }, "Copy");
    return [said ? el("p", { class: "small" }, said) : null, el("pre", { tabindex: 0 }, text), navigator.clipboard ? copy : null];
  }

  // Curves: this seed over the others of its row and over the base

  function curves(key, of) {
    return ["train", "dev"].map((kind) => {
      const lines = [
        ...(base && base in runs && runs[base].row !== runs[key].row ? siblings(runs[base]).map((one) => [one, "of-base"]) : []),
        ...of.filter((one) => one !== key).map((one) => [one, "other"]),
        [key, "this"],
      ].map(([one, name]) => [points(runs[one].curves[kind]), name]).filter(([at]) => at.length);
      if (!lines.some(([, name]) => name === "this")) return el("p", {}, `No curve of ${kind} was kept.`);
      return picture(kind, lines);
    });
  }

  const points = ([steps, losses]) => losses.map((loss, i) => [steps[i], loss]);

  function picture(kind, lines) {
    const all = lines.flatMap(([at]) => at);
    const [left, right, top, bottom] = [44, 8, 8, 30];
    const width = Math.min(WIDEST, document.documentElement.clientWidth - EDGES); // scaled down, its texts could not be read
    const last = Math.max(...all.map(([step]) => step));
    const [low, high] = [Math.min, Math.max].map((end) => Math.log(end(...all.map(([, loss]) => Math.max(loss, 1e-3)))));
    const x = (step) => left + (step / last) * (width - left - right);
    const y = (loss) => top + ((high - Math.log(Math.max(loss, 1e-3))) / (high - low || 1)) * (HEIGHT - top - bottom);
    const round = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 3, 5, 7, 10].filter((one) => Math.log(one) >= low && Math.log(one) <= high);
    const ticks = round.length > 1 ? round : [...new Set([low, (low + high) / 2, high].map((one) => Number(Math.exp(one).toPrecision(3))))];
    const steps = [0, 0.25, 0.5, 0.75, 1].map((part) => Math.round(part * last));
    return el("figure", {}, el("svg:svg", { class: "curves", viewBox: `0 0 ${width} ${HEIGHT}`, role: "img", "aria-label": `loss on ${kind} over the updates` },
      ticks.map((one) => [
        el("svg:path", { class: "grid-line", d: `M${left} ${y(one)}H${width - right}` }),
        el("svg:text", { x: left - 6, y: y(one) + 4, "text-anchor": "end" }, String(one)),
      ]),
      steps.map((one, i) => el("svg:text", { x: x(one), y: HEIGHT - 10, "text-anchor": i === 4 ? "end" : "middle" }, one.toLocaleString("en"))),
      lines.map(([at, name]) => el("svg:path", { class: `line ${name}`, d: `M${at.map(([step, loss]) => `${x(step).toFixed(1)} ${y(loss).toFixed(1)}`).join("L")}` })),
    ), el("figcaption", {}, kind === "train" ? "Loss on the training text" : "Loss on dev",
      ", nats per word-piece over the updates, not smoothed: ", el("span", { class: "key this" }, "this seed"),
      lines.some(([, name]) => name === "other") ? [", ", el("span", { class: "key other" }, "other seeds of the row")] : null,
      lines.some(([, name]) => name === "of-base") ? [", ", el("span", { class: "key of-base" }, "the base")] : null, "."));
  }

  report.route("run", show);
}
