"""Is a forecast near what comes? Measures the rows of a table as `--dry-run --measure` does, then makes their runs.

One thread, one run after the other. `ratio` is what was forecast over what came: training and translating with scoring,
by the runs' records, which hold neither validation nor start-up. On a machine that others use too, `--processor` counts
the processor's time on both sides. Rows whose steps are cut short translate to the limit: look at their training.

Run:  python benchmarks/forecast.py table3_A          (about ten minutes, one core)
"""

import argparse
import os
import runpy
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

from repro.experiment import main as experiment
from repro.results import record
from repro.runs.forecast import Estimate, estimates
from repro.runs.options import Options, chosen_scale
from repro.runs.scales import Scale
from repro.runs.speed.measure import measure_rows
from repro.runs.speed.rates import Speeds
from repro.runs.table import Cell, Table, cells
from repro.runs.task import Translation

EXPERIMENTS = Path(__file__).parent.parent / "experiments"
FOLDERS = ("cache", "runs", "results")
CLOCKED = ("repro.training.loop.time", "repro.runs.run.time")  # where a run takes the times of its record


def forecast(asked: list[Cell], scale: Scale, options: Options) -> list[Estimate]:
    """Of each row, measured on its prepared text, as a sweep does that begins."""
    for task in dict.fromkeys(cell.task for cell in asked):
        corpus = task.open_corpus(
            scale.corpus, data_dir=options.data_dir, cache=options.cache_dir, sizes=scale.grammar, tell=print
        )
        task.prepare(
            corpus,
            subwords=scale.subwords(task.name),
            cache=options.cache_dir,
            max_length=scale.max_length,
            rules=scale.rules,
            tell=print,
        )
    measure_rows(asked, scale, options, print)
    return estimates(asked, scale, Speeds.load(options.cache_dir, options.runs_dir, options))


def came(runs: Path) -> dict[str, record.Cost]:
    """The cost of each finished run, by row."""
    found = [record.load(path) for path in runs.glob("*/record.json")]
    return {one.row: one.cost for one in found}


def print_beside(asked: list[Cell], expected: list[Estimate], costs: dict[str, record.Cost]) -> None:
    """A line for each row."""
    print(f"\n{'row':<20}{'training':>22}{'ratio':>7}{'translating':>20}{'ratio':>7}{'both':>20}{'ratio':>7}")
    for cell, one in zip(asked, expected, strict=True):
        cost = costs[cell.row.name]
        parts = [
            (one.train_seconds, cost["train_seconds"]),
            (one.decode_seconds, cost["decode_seconds"]),
        ]
        parts.append((sum(said for said, _ in parts), sum(took for _, took in parts)))
        line = "".join(f"{said:>9.1f} s{took:>9.1f} s{said / took:>7.2f}" for said, took in parts)
        print(f"{cell.row.name:<20}{line}")


def main() -> None:
    """Forecast, run, compare."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("table", help="an experiment file without its ending, such as table3_A")
    parser.add_argument("--scale", default="laptop")
    parser.add_argument("--rows", nargs="+", default=[])
    parser.add_argument("--steps", type=int)
    parser.add_argument("--processor", action="store_true", help="count processor time")
    arguments = parser.parse_args()
    found = runpy.run_path(str(EXPERIMENTS / f"{arguments.table}.py"), run_name=arguments.table)
    with tempfile.TemporaryDirectory(prefix="forecast-") as folder:
        argv = [f"--scale={arguments.scale}", f"--tracking-uri=sqlite:///{folder}/mlflow.db"]
        argv += [f"--{name}-dir={folder}/{name}" for name in FOLDERS]
        argv += [f"--steps={arguments.steps}"] if arguments.steps else []
        argv += ["--rows", *arguments.rows] if arguments.rows else []
        options = Options.read(arguments.table, argv)
        scale = chosen_scale(options)
        table = Table(name=found["TABLE"], rows=found["ROWS"], title=found["TABLE"])
        asked = cells([table], scale.base, seeds=1, chosen=options.rows, task=Translation(options.pair))
        expected = forecast(asked, scale, options)
        clock = SimpleNamespace(monotonic=time.thread_time if arguments.processor else time.monotonic, sleep=time.sleep)
        with mock.patch(CLOCKED[0], clock), mock.patch(CLOCKED[1], clock):
            experiment(found["TABLE"], found["ROWS"], argv)
        print_beside(asked, expected, came(options.runs_dir))
    what = "processor time" if arguments.processor else "time"
    print(f"\nSeconds of {what}: forecast, what came. Load average at the end {os.getloadavg()[0]:.1f}.")


if __name__ == "__main__":
    main()
