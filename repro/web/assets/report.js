/* The frame of every report: what all sections share. A section's own script comes after it and uses `report`.

   What sections hold stands in the page packed, as gzip in base64. The browser unpacks all of it as the page opens, and
   then `report.ready` is kept; each value is read (JSON) when it is first asked for.

   No script reads text as HTML: `report.element` makes elements and sets text. Only what is folded is HTML as it comes,
   written and escaped like the rest of the page (`assets/grid.js` unfolds it). */
"use strict";

const report = (() => {
  const packed = new Map(); // id -> the bytes that stood packed there
  const kept = new Map(); // id -> what was read there
  const routes = new Map(); // name -> what is done at #name=value
  const unseen = new Map(); // element -> what is done when it comes into sight

  /** The values of a section, as its maker gave them in Python; null where it gave none. */
  function data(key) {
    return values(`data-${key}`);
  }

  /** What stands packed in the element of this id; null where there is none. The same value each time. */
  function values(id) {
    if (!kept.has(id)) kept.set(id, packed.has(id) ? JSON.parse(new TextDecoder().decode(packed.get(id))) : null);
    return kept.get(id);
  }

  /** The bytes that were packed as gzip. Rejects what is no such thing, or damaged. */
  async function unpacked(bytes) {
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Uint8Array(await new Response(stream).arrayBuffer());
  }

  const ready = Promise.all([...document.querySelectorAll("[data-packed]")].map(async (place) => {
    packed.set(place.id, await unpacked(Uint8Array.from(atob(place.textContent), (letter) => letter.charCodeAt(0))));
  }));

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

  /** A colour of report.css by its name, such as "--ink", as the page has it now: "rgb(26, 26, 26)". */
  function colour(name) {
    const probe = element("i", { style: `color: var(${name})`, hidden: true });
    document.body.append(probe);
    const value = getComputedStyle(probe).color;
    probe.remove();
    return value;
  }

  /** Do something when the system turns dark or light: a chart is drawn in the page's colours. */
  function onColours(act) {
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", act);
  }

  /** Do something once, when an element comes near to what is in sight: a page opens without it. */
  function whenSeen(at, act) {
    unseen.set(at, act);
    ready.then(() => sight.observe(at));
  }

  const sight = new IntersectionObserver((found) => {
    for (const one of found) if (one.isIntersecting) see(one.target);
  }, { rootMargin: "300px" });

  /** The same, or else when the browser has nothing to do: then a reader's search through the page finds it too. */
  function whenSeenOrIdle(at, act) {
    whenSeen(at, act);
    ready.then(() => (window.requestIdleCallback ?? setTimeout)(() => see(at))); // Safari has none
  }

  function see(at) {
    sight.unobserve(at);
    const act = unseen.get(at);
    unseen.delete(at);
    act?.();
  }

  /** What is done when the address ends in #name=value: act(value), and act(null) when it no longer does. */
  function route(name, act) {
    routes.set(name, act);
    ready.then(follow);
  }

  /** Lead to #name=value, where the value has letters, digits and - alone; with null back to where the page was. */
  function go(name, value) {
    if (value === null) history.replaceState(null, "", location.pathname + location.search);
    else location.hash = `${name}=${value}`;
    if (value === null) follow();
  }

  function follow() {
    const [name, value] = /^#([a-z]+)=(.*)$/.exec(location.hash)?.slice(1) ?? [];
    for (const [of, act] of routes) act(of === name ? value : null);
  }

  /** Hand a text to the reader as a file. */
  function download(name, text) {
    const address = URL.createObjectURL(new Blob([text], { type: "text/csv;charset=utf-8" }));
    element("a", { href: address, download: name }).click();
    setTimeout(() => URL.revokeObjectURL(address), 10_000);
  }

  for (const button of document.querySelectorAll("button[data-csv]")) {
    button.addEventListener("click", () => {
      const [key, name] = [button.closest("section").id, button.dataset.csv];
      download(name, values(`csv-${key}`)[name]);
    });
  }
  addEventListener("hashchange", follow);
  return { ready, data, values, unpacked, bytes: (id) => packed.get(id), element, colour, onColours, whenSeen, whenSeenOrIdle, route, go, download };
})();
