"""Tables, verdicts, figures and the report for the browser from 500 records or more: how long, and where it goes.

The records are those of a real scale, each copied under more seeds with its scores moved a little: as many rows as
there are, as many files as a suite of 25 seeds would have. Printed are medians over fresh processes, in seconds of wall
and of processor time; `figures` redraws figures 3 to 5 from their measurement where there is one.

Run:  python benchmarks/report.py --scale laptop
      python benchmarks/report.py --scale laptop --records 1000
"""

import argparse
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from repro.results.frame import FIGURES, record_folders
from repro.results.record import load, path

PARTS = {
    "tables, verdicts, page": (
        "from repro.pages.build import write_scale; from repro.results.frame import ResultSet; "
        "write_scale(ResultSet.read(results / scale))"
    ),
    "report for the browser": "from repro.web.files import write_reports; write_reports(results)",
    "figures": (
        "from repro.figures.draw import draw_figures; "
        "made, skipped = draw_figures(results, scale, Path('none'), Path('none')); "
        "assert len(made) >= 20, skipped"
    ),
}


def fill(source: Path, results: Path, wanted: int) -> int:
    """Write as many records as `wanted`, like those of `source`, under `results`; returns how many."""
    records = [load(file) for folder in record_folders(source) for file in sorted(folder.glob("*.json"))]
    n = 0
    for copy in range(-(-wanted // len(records))):
        for record in records[: wanted - n]:
            score = {name: dict(values) for name, values in record.scores.items()}  # type: ignore[call-overload]
            score["dev"]["bleu"] += 0.01 * copy
            seed = record.seed + 100 * copy
            replace(record, seed=seed, scores=score).save(path(results, replace(record, seed=seed)))  # type: ignore[arg-type]
            n += 1
    if (measured := source / FIGURES / "attention.json").exists():
        (results / source.name / FIGURES).mkdir()
        shutil.copy(measured, results / source.name / FIGURES)
    if (source / "rows.json").exists():
        shutil.copy(source / "rows.json", results / source.name)
    return n


def main() -> None:
    """Print a line for each part."""
    parser = argparse.ArgumentParser(allow_abbrev=False, description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--scale", default="laptop")
    parser.add_argument("--results", type=Path, default=Path("results"))
    parser.add_argument("--records", type=int, default=500)
    parser.add_argument("--turns", type=int, default=3)
    options = parser.parse_args()
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
            print(f"{part:<26}{statistics.median(wall):>8.1f}{statistics.median(cpu):>8.1f}")
        print(f"{(results / options.scale / 'report.html').stat().st_size / 1e6:.1f} MB of report.html")


if __name__ == "__main__":
    main()
