"""How long a report takes to open on a slow processor: from the navigation until its first view is drawn.

Headless Chromium opens the file as often as asked, each time in a new context, its processor throttled four times.
`wall s` is time on the clock. On a busy machine most of it is waiting, and the throttle, which halts the page for
spells of the clock, adds to that. There use `--throttle 1` and read `thread s`, the processor time of the page's main
thread as Linux counts it: four times that is what a slow processor needs. `scripts`, `styles` and `layout` are parts of
the time on the clock. It prints medians; `--json` keeps all turns.

Run:  python benchmarks/opening.py results/laptop/report.html
      python benchmarks/opening.py results/laptop/report.html --throttle 1    (where other work runs)
"""

import argparse
import os
import shutil
import statistics
import sys
from pathlib import Path
from typing import Any

from repro.results.provenance import provenance
from repro.storage import atomic

BOUND = 1  # seconds, with a processor throttled four times
CHROMIUM = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
# The first view is there when all scripts of the page have run and the next frame is drawn.
MARK = """addEventListener("DOMContentLoaded", () => requestAnimationFrame(
  () => setTimeout(() => performance.mark("stands"))))"""
STANDS = """() => new Promise((done) => {
  const look = () => {
    const [at] = performance.getEntriesByName("stands");
    at ? done(at.startTime) : setTimeout(look, 20);
  };
  look();
})"""
PARTS = {"scripts": "ScriptDuration", "styles": "RecalcStyleDuration", "layout": "LayoutDuration"}


def thread_seconds(browser: Any) -> float:
    """Processor time of the main thread of the process that has used most: the page itself, not a spare one."""
    of = browser.new_browser_cdp_session().send("SystemInfo.getProcessInfo")["processInfo"]
    pages = [one["id"] for one in of if one["type"] == "renderer"]
    return max(int(Path(f"/proc/{id}/task/{id}/schedstat").read_text().split()[0]) for id in pages) / 1e9


def opened(browser: Any, file: Path, throttle: float) -> dict[str, float]:
    """Seconds until the first view is drawn, and what the page had used by then."""
    context = browser.new_context(viewport={"width": 1280, "height": 900}, offline=True)
    page = context.new_page()
    page.add_init_script(MARK)
    tools = context.new_cdp_session(page)
    tools.send("Emulation.setCPUThrottlingRate", {"rate": throttle})
    tools.send("Performance.enable")
    page.goto(file.resolve().as_uri(), wait_until="commit", timeout=180_000)
    wall = page.evaluate(STANDS) / 1000
    thread = thread_seconds(browser)
    metrics = {one["name"]: one["value"] for one in tools.send("Performance.getMetrics")["metrics"]}
    context.close()
    return {"wall": wall, "thread": thread} | {name: metrics[of] for name, of in PARTS.items()}


def main() -> None:
    """Print a line for each file."""
    parser = argparse.ArgumentParser(allow_abbrev=False, description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("files", type=Path, nargs="+")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--throttle", type=float, default=4, help="times slower (default: 4)")
    parser.add_argument("--json", type=Path, help="write the record there")
    options = parser.parse_args()
    if missing := [str(file) for file in options.files if not file.is_file()]:
        parser.error(f"{', '.join(missing)}: expected a report, found none. Write it: python -m repro report --html")
    found = next(filter(None, map(shutil.which, CHROMIUM)), None)
    if found is None:
        sys.exit(f"expected a browser on the path ({', '.join(CHROMIUM)}), found none. Install Debian's chromium.")
    from playwright.sync_api import sync_playwright

    stamp, lines = provenance(), []
    with sync_playwright() as playwright:
        as_root = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = playwright.chromium.launch(executable_path=found, args=[*as_root, "--disable-dev-shm-usage"])
        print(
            "".join(f"{name:>10}" for name in ("MB", "wall s", "thread s", *(f"{name} s" for name in PARTS))), " file"
        )
        for file in options.files:
            turns = [opened(browser, file, options.throttle) for _ in range(options.turns)]
            line = {name: round(statistics.median(turn[name] for turn in turns), 3) for name in turns[0]}
            size = file.stat().st_size / 1e6
            print(f"{size:>10.1f}" + "".join(f"{value:>10.2f}" for value in line.values()), f" {file}", flush=True)
            lines.append({"file": file.name, "MB": round(size, 2), "turns": turns} | line)
        about = {"kind": "opening", "bound": BOUND, "chromium": browser.version, "throttle": options.throttle}
    machine = {"load": os.getloadavg()[0], "cores": os.cpu_count()}
    if options.json:
        atomic.write_json(options.json, {**about, **machine, "files": lines, "stamp": stamp})


if __name__ == "__main__":
    main()
