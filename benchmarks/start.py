"""How long until the first run of an executor begins, compared with one process that makes it itself?

A sweep of two runs of one step at `smoke`, as a user types it, from the command to the file that says that a run has
begun (`run.json`). All include imports, the forecast and a look at the text, which was prepared before, so the cost of
an executor is the difference from `--jobs 1`. The ways take turns; each sweep has folders of its own, and is ended when
its run has begun. Beside the time on the clock it prints the processor time that the sweep's own process, and that of
a run, have used by then: on a busy machine the clock says little.

Run:  python benchmarks/start.py          (half a minute a turn, two cores; Ray has to be installed)
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

from repro.storage import atomic

ROOT = Path(__file__).parent.parent
ALONE = "--jobs 1"
WAYS = (ALONE, "--jobs 2", "--on ray")
LOOK = 0.005  # seconds between two looks


def begins(way: str, folder: Path, cache: Path) -> tuple[float, float, float]:
    """Seconds from the command to its first run: on the clock, and of processor time for the sweep and for the run."""
    words = ["--scale", "smoke", "--rows", "base", "--steps", "1", "--seeds", "2", "--cache-dir", str(cache)]
    places = ["--runs-dir", str(folder / "runs"), "--results-dir", str(folder / "own")]
    store = ["--tracking-uri", f"sqlite:///{folder / 'mlflow.db'}"]
    folder.mkdir()
    with open(folder / "said", "wb") as said:
        started = time.monotonic()
        process = subprocess.Popen(
            [sys.executable, str(ROOT / "experiments" / "table3_A.py"), *words, *places, *store, *way.split()],
            cwd=folder,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            stdout=said,
            stderr=said,
        )
        while not any(folder.glob("runs/*/run.json")):
            if process.poll() is not None:
                raise RuntimeError(f"{way} ended with {process.returncode}:\n{(folder / 'said').read_text()}")
            time.sleep(LOOK)
        seconds, sweep = time.monotonic() - started, psutil.Process(process.pid)
        apart = [used(one) for one in sweep.children(recursive=True) if "table3_A.py" in " ".join(one.cmdline())]
        found = seconds, used(sweep), max(apart, default=0.0)
        while process.poll() is None:
            process.terminate()
            time.sleep(1.0)  # a second signal ends it at once
    return found


def used(process: psutil.Process) -> float:
    """Processor seconds of one process."""
    times = process.cpu_times()
    return float(times.user + times.system)


def main() -> None:
    """Print a line for each way: median and range."""
    parser = argparse.ArgumentParser(allow_abbrev=False, description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--json", type=Path, help="write the record there")
    options = parser.parse_args()
    found: dict[str, list[tuple[float, float, float]]] = {way: [] for way in WAYS}
    with tempfile.TemporaryDirectory() as name:
        begins(ALONE, Path(name) / "first", Path(name) / "cache")
        for turn in range(options.turns):
            for number, way in enumerate(WAYS):
                found[way].append(begins(way, Path(name) / f"{turn} {number}", Path(name) / "cache"))
    load = os.getloadavg()[0]
    print(f"{'':<10}{'clock':>8}{'sweep':>8}{'run':>8}   medians of {options.turns}, load {load:.1f} at the end")
    for way, each in found.items():
        print(f"{way:<10}" + "".join(f"{statistics.median(one):>6.2f} s" for one in zip(*each, strict=True)))
    if options.json:
        atomic.write_json(options.json, found)


if __name__ == "__main__":
    main()
