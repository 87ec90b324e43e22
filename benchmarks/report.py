"""Tables, verdicts, figures and the report for the browser from 500 records or more: how long, and where it goes.

The records are those of a real scale, each copied to more seeds with a slightly changed perplexity: all of its rows, as
many files as a suite of 25 seeds would have, with translations and heads beside them like the real ones. It prints
medians over fresh processes, in seconds on the clock and of processor time; `figures` redraws figures 3 to 5 from their
measurement if there is one.

Run:  python benchmarks/report.py --scale laptop
      python benchmarks/report.py --scale laptop --records 1000
"""

import math
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from command import new_parser, save

from repro.results import artifacts
from repro.results.frame import FIGURES, record_folders
from repro.results.provenance import provenance
from repro.results.record import load, path, places

PARTS = {
    "tables, verdicts, page": (
        "from repro.pages.build import write_scale; from repro.results.frame import ResultSet; "
        "write_scale(ResultSet.read(results / scale))"
    ),
    "report for the browser": "from repro.web.files import write_reports; write_reports(results)",
    "figures": (
        "from repro.figures.draw import draw_figures; nowhere = Path('none'); "
        "made, skipped = draw_figures(results, scale, nowhere, nowhere); assert len(made) >= 20, skipped"
    ),
}
LARGEST_PAGE = 5_000_000  # bytes: what a browser opens without delay
BOUNDS = {"tables, verdicts, page": 15, "report for the browser": 20}  # seconds on the clock, for 1,000 records


def fill(source: Path, results: Path, wanted: int) -> int:
    """Write as many records as `wanted`, like those of `source`, under `results`; returns how many."""
    records = [load(file) for folder in record_folders(source) for file in places(folder)]
    n = 0
    for copy in range(-(-wanted // len(records))):
        for record in records[: wanted - n]:
            score = {name: dict(values) for name, values in record.scores.items()}  # type: ignore[call-overload]
            score["dev"]["nll"] += 0.001 * copy  # not BLEU, which must fit the translations beside it
            score["dev"]["ppl"] *= math.exp(0.001 * copy)
            made = replace(record, seed=record.seed + 100 * copy, scores=score)  # type: ignore[arg-type]
            beside, place = path(source.parent, record), path(results, made)
            made.save(place)
            artifacts.copy(beside, place, record.run)
            n += 1
    if (measured := source / FIGURES / "attention.json").exists():
        (results / source.name / FIGURES).mkdir()
        shutil.copy(measured, results / source.name / FIGURES)
    if (source / "rows.json").exists():
        shutil.copy(source / "rows.json", results / source.name)
    return n


def main() -> None:
    """Print a line for each part."""
    parser = new_parser(__doc__)
    parser.add_argument("--scale", default="laptop")
    parser.add_argument("--results", type=Path, default=Path("results"))
    parser.add_argument("--records", type=int, default=500)
    parser.add_argument("--turns", type=int, default=3)
    options = parser.parse_args()
    stamp = provenance()
    asked = {"scale": options.scale, "records": options.records, "turns": options.turns}
    found: dict[str, object] = {"kind": "report", "bounds": BOUNDS, **asked}
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder)
        print(f"{fill(options.results / options.scale, results, options.records)} records of scale {options.scale}")
        print(f"{'part':<26}{'wall s':>8}{'cpu s':>8}")
        for part, code in PARTS.items():
            program = f"from pathlib import Path; results, scale = Path({folder!r}), {options.scale!r}; {code}"
            wall, cpu = [], []
            for _ in range(options.turns):
                before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
                subprocess.run([sys.executable, "-c", program], check=True)
                after = resource.getrusage(resource.RUSAGE_CHILDREN)
                wall.append(time.monotonic() - started)
                cpu.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
            found[part] = {"wall_seconds": wall, "cpu_seconds": cpu}
            print(f"{part:<26}{statistics.median(wall):>8.1f}{statistics.median(cpu):>8.1f}", flush=True)
        found["megabytes"] = (results / options.scale / "report.html").stat().st_size / 1e6
        print(f"{found['megabytes']:.1f} MB of report.html, which has room for {LARGEST_PAGE / 1e6:.0f}")
    save(options.json, {**found, "load": os.getloadavg()[0], "cores": os.cpu_count()}, stamp)


if __name__ == "__main__":
    main()
