"""Is a forecast near what comes? Measures the rows of tables as `--dry-run --measure` does, then makes their runs.

One thread, one run after the other. `ratio` is what was forecast over what came: training, translating with scoring, by
the runs' records, which hold neither validation nor start-up. On a machine that others use too, `--processor` counts
the processor's time on both sides. Rows whose steps are cut short translate longer: look at their training.

Run:  python benchmarks/forecast.py table3_A table3_C --json benchmarks/records/forecast.json    (35 minutes, one core)
"""

import argparse
import os
import runpy
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

from repro.experiment import main as experiment
from repro.results import record
from repro.results.provenance import provenance
from repro.results.record import BASE
from repro.runs.forecast import Estimate, estimates
from repro.runs.options import Options, chosen_scale
from repro.runs.scales import Scale
from repro.runs.speed.measure import measure_rows
from repro.runs.speed.rates import Speeds
from repro.runs.table import Cell, Table, cells
from repro.runs.task import Translation
from repro.storage import atomic

EXPERIMENTS = Path(__file__).parent.parent / "experiments"
FOLDERS = ("cache", "runs", "results")
PARTS = ("training", "translating")
# where a run takes the times of its record
CLOCKED = ("repro.training.journal_callback.time", "repro.runs.execution.time")


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


def made(runs: Path) -> dict[str, record.Cost]:
    """The cost of each finished run, by row."""
    found = [record.load(path) for path in runs.glob("*/record.json")]
    return {one.row: one.cost for one in found}


def line_of(cell: Cell, expected: Estimate, cost: record.Cost) -> dict[str, Any]:
    """What was forecast of a row and what came, in seconds."""
    return {
        "table": cell.table,
        "row": cell.row.name,
        "steps": cell.hyper.steps,
        "forecast": {"training": expected.train_seconds, "translating": expected.decode_seconds},
        "came": {"training": cost["train_seconds"], "translating": cost["decode_seconds"]},
    }


def shown(line: Mapping[str, Any]) -> str:
    """One row as a person reads it."""
    said, came = line["forecast"], line["came"]
    parts = [(said[part], came[part]) for part in PARTS] + [(sum(said.values()), sum(came.values()))]
    return f"{line['row']:<20}" + "".join(f"{one:>9.1f} s{two:>9.1f} s{one / two:>7.2f}" for one, two in parts)


def main() -> None:
    """Forecast, run, compare."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("tables", nargs="+", help="experiment files without their ending, such as table3_A")
    parser.add_argument("--scale", default="laptop")
    parser.add_argument("--rows", nargs="+", default=[])
    parser.add_argument("--steps", type=int)
    parser.add_argument("--processor", action="store_true", help="count processor time")
    parser.add_argument("--json", type=Path, help="where to write what came out")
    arguments = parser.parse_args()
    found = [runpy.run_path(str(EXPERIMENTS / f"{name}.py"), run_name=name) for name in arguments.tables]
    tables = [Table(name=one["TABLE"], rows=one["ROWS"], title=one["TABLE"]) for one in found]
    with tempfile.TemporaryDirectory(prefix="forecast-") as folder:
        argv = [f"--scale={arguments.scale}", f"--tracking-uri=sqlite:///{folder}/mlflow.db"]
        argv += [f"--{name}-dir={folder}/{name}" for name in FOLDERS]
        argv += [f"--steps={arguments.steps}"] if arguments.steps else []
        options = Options.read("forecast", argv)
        scale = chosen_scale(options)
        asked = cells(tables, scale.base, seeds=[1], chosen=arguments.rows, task=Translation(options.pair))
        expected = forecast(asked, scale, options)
        clock = SimpleNamespace(monotonic=time.thread_time if arguments.processor else time.monotonic, sleep=time.sleep)
        with mock.patch(CLOCKED[0], clock), mock.patch(CLOCKED[1], clock):
            for table in tables:
                rows = [cell.row.name for cell in asked if cell.table in (table.name, BASE)]
                experiment(table.name, table.rows, [*argv, "--rows", *rows])
        costs = made(options.runs_dir)
    lines = [line_of(cell, one, costs[cell.row.name]) for cell, one in zip(asked, expected, strict=True)]
    print(f"\n{'row':<20}{'training':>22}{'ratio':>7}{'translating':>22}{'ratio':>7}{'both':>22}{'ratio':>7}")
    print(*map(shown, lines), sep="\n")
    what = "processor time" if arguments.processor else "time"
    load = os.getloadavg()[0]
    print(f"\nSeconds of {what}: forecast, what came. Load average at the end {load:.1f}.")
    if arguments.json:
        told = {"kind": "forecast", "scale": scale.name, "clock": what, "load": round(load, 1), "threads": 1}
        atomic.write_json(arguments.json, {**told, "stamp": provenance(), "lines": lines})


if __name__ == "__main__":
    main()
