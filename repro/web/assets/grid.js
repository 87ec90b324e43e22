/* Tables and lists that a reader sorts and filters: every `.grid` of the page, folded or not.

   Its items are the rows of its table, or its elements `.item`. `data-facets="table kind"` names the attributes
   (data-table, data-kind) by which they can be chosen; a heading sorts. A row with data-run leads to #run=. */
"use strict";

{
  const NUMBER = /^\s*[−+-]?[\d.,]*\d(?:e[−+-]?\d+)?/;

  /** The number that a text begins with; null where it begins with none. */
  function number(text) {
    const found = NUMBER.exec(text);
    return found ? Number(found[0].replace(/−/g, "-").replace(/,/g, "")) : null;
  }

  /** Numbers in their order, words in theirs, and what is empty last whichever way it is sorted. */
  function order(a, b, sign) {
    const [one, other] = [number(a), number(b)];
    if (one !== null && other !== null) return sign * (one - other);
    if ((one === null) !== (other === null)) return one === null ? 1 : -1;
    if (!a || !b) return a ? -1 : b ? 1 : 0;
    return sign * a.localeCompare(b, "en", { numeric: true });
  }

  function makeFilters(grid, items) {
    const chosen = new Map();
    const count = report.element("output", { class: "small", "aria-live": "polite" });
    function show() {
      let shown = 0;
      for (const item of items) {
        const words = chosen.get("") ?? "";
        const fits = (!words || words.split(/\s+/).every((word) => item.textContent.toLowerCase().includes(word)))
          && [...chosen].every(([facet, value]) => !facet || !value || item.dataset[facet] === value);
        item.hidden = !fits;
        shown += fits;
      }
      count.textContent = shown === items.length ? `${items.length} shown` : `${shown} of ${items.length} shown`;
      for (const group of grid.querySelectorAll("[data-group]")) {
        group.hidden = !group.querySelector(".item:not([hidden])");
      }
    }
    const find = report.element("input", {
      type: "search", placeholder: "any words", on: { input: () => { chosen.set("", find.value.trim().toLowerCase()); show(); } },
    });
    const choices = (grid.dataset.facets ?? "").split(" ").filter(Boolean).map((facet) => {
      const values = [...new Set(items.map((item) => item.dataset[facet]))].filter(Boolean);
      if (values.length < 2) return null;
      const select = report.element("select", { "data-facet": facet, on: { change: () => { chosen.set(facet, select.value); show(); } } },
        report.element("option", { value: "" }, "all"), values.map((value) => report.element("option", { value }, value)));
      return report.element("label", {}, facet, select);
    });
    grid.prepend(report.element("div", { class: "controls" }, report.element("label", {}, "Find", find), choices, count));
    show();
  }

  function makeSortable(table, items) {
    const body = table.tBodies[0];
    const given = [...items];
    for (const heading of table.tHead.rows[table.tHead.rows.length - 1].cells) {
      const button = report.element("button", { type: "button", class: "sort" });
      button.append(...heading.childNodes);
      heading.append(button);
      button.addEventListener("click", () => {
        const next = { none: "descending", descending: "ascending", ascending: "none" }[heading.ariaSort ?? "none"];
        for (const other of table.tHead.rows[table.tHead.rows.length - 1].cells) other.removeAttribute("aria-sort");
        if (next !== "none") heading.setAttribute("aria-sort", next);
        const place = heading.cellIndex;
        const sign = next === "ascending" ? 1 : -1;
        const text = (row) => row.cells[place].textContent.trim();
        body.append(...(next === "none" ? given : [...given].sort((a, b) => order(text(a), text(b), sign))));
        table.classList.toggle("sorted", next !== "none");
      });
    }
  }

  /** A click anywhere in a row, and up and down between the names of rows. */
  function makeRows(table) {
    table.addEventListener("click", (event) => {
      const row = event.target.closest("tr[data-run]");
      if (row && !event.target.closest("a, button") && !String(getSelection())) report.go("run", row.dataset.run);
    });
    table.addEventListener("keydown", (event) => {
      const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (!step || !event.target.matches("tbody a")) return;
      const links = [...table.querySelectorAll("tbody tr:not([hidden]) th a")];
      links[links.indexOf(event.target) + step]?.focus();
      event.preventDefault();
    });
  }

  /** What a reader sorts and filters by; made when the grid comes into sight. */
  function makeGrid(grid) {
    const table = grid.querySelector("table");
    const items = [...grid.querySelectorAll(grid.dataset.items ?? "tbody tr")];
    if (grid.dataset.facets && items.length > 3) makeFilters(grid, items);
    if (table && !grid.dataset.items && items.length > 1) makeSortable(table, items);
    if (table) makeRows(table);
  }

  function gridsIn(place) {
    for (const grid of place.querySelectorAll(".grid")) report.whenSeen(grid, () => makeGrid(grid));
  }

  gridsIn(document);

  /** Tens of tables are most of a page, and few are looked at: they are made after what is seen at once. */
  for (const folded of document.querySelectorAll("details[data-folded]")) {
    report.whenSeenOrIdle(folded, () => {
      folded.insertAdjacentHTML("beforeend", report.values(`folded-${folded.closest("section").id}`)[folded.id]);
      gridsIn(folded);
    });
  }

  /** What is folded opens when an address leads into it. */
  function unfold() {
    const name = location.hash.slice(1);
    const target = /^[A-Za-z0-9_.-]+$/.test(name) && document.getElementById(name);
    for (let at = target; at; at = at.parentElement) if (at.tagName === "DETAILS") at.open = true;
    if (target && target.tagName === "DETAILS") target.scrollIntoView();
  }
  addEventListener("hashchange", unfold);
  unfold();
}
