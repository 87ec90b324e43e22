/* The frame of every report: what all sections share. A section's own script comes after it and uses `report`.

   What sections hold stands in the page packed, as gzip in base64. Each value is unpacked when it is asked for, or when
   the browser has nothing else to do: a print, which waits for nothing, then finds all of it. It is read when it is used.

   Nothing here, and nothing in a section's script, reads text as HTML: `report.element` makes elements and sets text. */
"use strict";

const report = (() => {
  const page = document.documentElement;
  const canUnpack = "DecompressionStream" in window;
  const texts = new Map(); // id -> promise of the JSON that was packed there
  const kept = new Map(); // id -> promise of what was read from it
  const routes = new Map(); // name -> what is done at #name=value
  const themed = []; // what is drawn again in other colours
  const unseen = new Map(); // element -> what is done when it comes into sight

  /** The values of a section, as its maker gave them in Python; null where it gave none. A promise. */
  function data(key) {
    return values(`data-${key}`);
  }

  /** What stands packed in the element of this id; null where there is none. A promise, and the same one each time. */
  function values(id) {
    if (!kept.has(id)) kept.set(id, document.getElementById(id) ? text(id).then((json) => JSON.parse(json)) : Promise.resolve(null));
    return kept.get(id);
  }

  function text(id) {
    if (!texts.has(id)) {
      const place = document.getElementById(id);
      texts.set(id, unpacked(place.textContent).then((bytes) => new TextDecoder().decode(bytes)));
    }
    return texts.get(id);
  }

  /** The bytes that were packed as gzip in base64. A promise, which a browser that cannot unpack never keeps. */
  async function unpacked(packed) {
    if (!canUnpack) return new Promise(() => {});
    const letters = atob(packed);
    const bytes = new Uint8Array(letters.length);
    for (let i = 0; i < bytes.length; i++) bytes[i] = letters.charCodeAt(i);
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Uint8Array(await new Response(stream).arrayBuffer());
  }

  /** Unpack one value after the other, each in a moment of rest. */
  async function unpackAll() {
    for (const { id } of document.querySelectorAll("script[data-packed]")) {
      await new Promise((rested) => (window.requestIdleCallback ?? setTimeout)(rested));
      await text(id);
    }
    performance.mark("unpacked");
  }

  /** A browser of before 2020, or some of before 2023, cannot unpack: say what is missing, instead of a page that does nothing. */
  function refuse() {
    document.querySelector("h1").after(element("p", { class: "notice", role: "alert" },
      "This browser cannot unpack the data of this page: expected one with DecompressionStream (Chrome 80, Safari 16.4, Firefox 113 or newer). "
      + "Tables and text are shown; charts, single runs and downloads are missing."));
  }

  /** An element with attributes and children: elements, or text that is shown as it is. `on` holds listeners. */
  function element(tag, { on = {}, ...attributes } = {}, ...children) {
    const made = tag.startsWith("svg:")
      ? document.createElementNS("http://www.w3.org/2000/svg", tag.slice(4))
      : document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (value !== null && value !== undefined && value !== false) made.setAttribute(name, value === true ? "" : value);
    }
    for (const [event, act] of Object.entries(on)) made.addEventListener(event, act);
    made.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== ""));
    return made;
  }

  /** A colour of report.css by its name, such as "--ink", as the present theme has it: "rgb(26, 26, 26)". */
  function colour(name) {
    const probe = element("i", { style: `color: var(${name})`, hidden: true });
    document.body.append(probe);
    const value = getComputedStyle(probe).color;
    probe.remove();
    return value;
  }

  /** Do something now and after every change of the theme: a chart is drawn in the theme's colours. */
  function onTheme(act) {
    themed.push(act);
    act();
  }

  /** Do something once, when an element comes near to what is in sight, or is printed: a page opens without it. */
  function whenSeen(at, act) {
    unseen.set(at, act);
    sight.observe(at);
  }

  const sight = new IntersectionObserver((found) => {
    for (const one of found) if (one.isIntersecting) see(one.target);
  }, { rootMargin: "300px" });

  function see(at) {
    sight.unobserve(at);
    const act = unseen.get(at);
    unseen.delete(at);
    act?.();
  }

  /** What is done when the address ends in #name=value: act(value), and act(null) when it no longer does. */
  function route(name, act) {
    routes.set(name, act);
    follow();
  }

  /** Lead to #name=value; with null back to where the page was. */
  function go(name, value) {
    if (value === null) history.replaceState(null, "", location.pathname + location.search);
    else location.hash = `${name}=${encodeURIComponent(value)}`;
    if (value === null) follow();
  }

  function follow() {
    const [name, value] = /^#([a-z]+)=(.*)$/.exec(location.hash)?.slice(1) ?? [];
    for (const [of, act] of routes) act(of === name ? decoded(value) : null);
  }

  function decoded(value) {
    return /^(?:[^%]|%[0-9a-fA-F]{2})*$/.test(value) ? new TextDecoder().decode(bytes(value)) : value;
  }

  function bytes(value) {
    const plain = value.replace(/%([0-9a-fA-F]{2})/g, (_, digits) => String.fromCharCode(parseInt(digits, 16)));
    return /[^\x00-\xff]/.test(plain) ? new TextEncoder().encode(value) : Uint8Array.from(plain, (c) => c.charCodeAt(0));
  }

  /** Hand a text to the reader as a file. */
  function download(name, text, type = "text/csv") {
    const address = URL.createObjectURL(new Blob([text], { type: `${type};charset=utf-8` }));
    element("a", { href: address, download: name }).click();
    setTimeout(() => URL.revokeObjectURL(address), 10_000);
  }

  // The theme: the system's, until the switch says otherwise

  const THEME = "report-theme";
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (page.dataset.theme ? page.dataset.theme === "dark" : dark.matches);

  /** A browser may keep nothing for a file; then the switch lasts as long as the page. */
  function memory() {
    try {
      return window.localStorage;
    } catch (refused) {
      return null;
    }
  }

  function showTheme() {
    for (const button of document.querySelectorAll("button[data-theme-switch]")) {
      button.setAttribute("aria-pressed", String(isDark()));
    }
    for (const act of themed) act();
  }

  /** Have the theme "light" or "dark"; without a name the system's. */
  function wear(theme) {
    if (theme) page.dataset.theme = theme;
    else delete page.dataset.theme;
    showTheme();
  }

  /** Paper is white, and a chart keeps the colours it was drawn in: what is dark is light for as long as it is printed. */
  function print() {
    const theme = page.dataset.theme;
    if (isDark()) {
      wear("light");
      addEventListener("afterprint", () => wear(theme), { once: true });
    }
    [...unseen.keys()].forEach(see);
  }

  function start() {
    const chosen = memory()?.getItem(THEME);
    if (chosen === "dark" || chosen === "light") page.dataset.theme = chosen;
    for (const button of document.querySelectorAll("button[data-theme-switch]")) {
      button.addEventListener("click", () => {
        page.dataset.theme = isDark() ? "light" : "dark";
        memory()?.setItem(THEME, page.dataset.theme);
        showTheme();
      });
    }
    for (const button of document.querySelectorAll("button[data-csv]")) {
      button.addEventListener("click", async () => {
        const [key, name] = [button.closest("section").id, button.dataset.csv];
        download(name, (await values(`csv-${key}`))[name]);
      });
    }
    dark.addEventListener("change", showTheme);
    addEventListener("hashchange", follow);
    addEventListener("beforeprint", print);
    showTheme();
    if (canUnpack) addEventListener("load", unpackAll);
    else if (document.querySelector("script[data-packed]")) refuse();
  }

  start();
  return { data, values, unpacked, element, colour, onTheme, whenSeen, route, go, download, isDark };
})();
