"""How long until the first run of an executor begins, beside one process that makes it itself?

A sweep of two runs of one step at `smoke`, as a user types it, from the command to the file that says that a run has
begun (`run.json`). Imports, the forecast and a look at the text, which was prepared before, are in each, so what an
executor costs is the difference to `--jobs 1`. The ways take turns; each sweep has folders of its own.

Run:  python benchmarks/start.py          (a minute and a half a turn, two cores; Ray has to be installed)
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from repro.storage import atomic

ROOT = Path(__file__).parent.parent
ALONE = "--jobs 1"
WAYS = (ALONE, "--jobs 2", "--on ray")
LOOK = 0.005  # seconds


def begins(way: str, folder: Path, cache: Path) -> float:
    """Seconds from the command to its first run."""
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
        seconds = time.monotonic() - started
        process.wait()
    return seconds


def main() -> None:
    """Print a line for each way: median and range."""
    parser = argparse.ArgumentParser(allow_abbrev=False, description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--json", type=Path, help="write the record there")
    options = parser.parse_args()
    found: dict[str, list[float]] = {way: [] for way in WAYS}
    with tempfile.TemporaryDirectory() as name:
        begins(ALONE, Path(name) / "first", Path(name) / "cache")
        for turn in range(options.turns):
            for number, way in enumerate(WAYS):
                found[way].append(begins(way, Path(name) / f"{turn} {number}", Path(name) / "cache"))
    alone = statistics.median(found[ALONE])
    for way, seconds in found.items():
        median = statistics.median(seconds)
        print(
            f"{way:<10}{median:>7.2f} s ({min(seconds):.2f} to {max(seconds):.2f}), {median - alone:+.2f} s beside "
            f"{ALONE}; load {os.getloadavg()[0]:.1f} at the end"
        )
    if options.json:
        atomic.write_json(options.json, found)


if __name__ == "__main__":
    main()
