"""How much faster two processes train than one: whole training steps, gradients averaged over gloo.

One process has one thread, so two have twice the processors. Strong scaling divides the same updates, weak scaling
doubles them. All three take turns, each in fresh processes; the first window of steps of each warms up. Rates are real
source + target tokens per second on the clock.

Run:  python benchmarks/scaling.py --json scaling.json        (about half an hour; wants two idle processors)
      python benchmarks/scaling.py --sizes small               (about four minutes)
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from command import new_parser, save, show
from train import PLAN, SIZES, SLOTS, Work, text

from repro.data.datamodule import TranslationData
from repro.data.shards import Encoded
from repro.runs.run import Silence
from repro.training import cpu_tuning
from repro.training.loop import Every, fit
from repro.training.module import TranslationModule

WINDOW = {"small": 8, "base": 4}  # steps: for one process all of the text once, so that every window reads the same
WAYS = {"one process": (1, 1), "two, strong": (2, 1), "two, weak": (2, 2)}  # processes, size of the update in times


def twice(side: Encoded) -> Encoded:
    """Each sentence two times."""
    return Encoded(np.tile(side.ids, 2), np.append(side.offsets, side.offsets[1:] + side.offsets[-1]))


def take_part(size: str, processes: int, times: int) -> None:
    """Train; the first process prints its rates, window by window."""
    work = Work(size=size, precision="fp32", threads=1, passes=0)
    hyper = replace(work.hyper, steps=4 * WINDOW[size])
    cpu_tuning.tune(times * SLOTS * hyper.d_model**2 // processes)
    # twice, so that a doubled update finds twice as many sentences of a length, and pads no more
    sides, plan = tuple(map(twice, text(work))), {**PLAN, "budget": times * SLOTS}
    rates: list[float] = []

    def watch(kind: str, step: int, numbers: dict[str, float]) -> None:
        rates.append(numbers["tokens_per_second"])

    with tempfile.TemporaryDirectory() as folder:
        fit(
            TranslationModule(hyper, work.vocab_size, seed=1), TranslationData(sides, sides, **plan),
            folder=Path(folder), run="benchmark", log=Silence(),
            every=Every(log=WINDOW[size], validate=10**9, checkpoint=10**9), watch=watch, should_stop=lambda: False,
            devices=processes,
        )  # fmt: skip
    if int(os.environ.get("RANK", "0")) == 0:
        print(json.dumps(rates[1:]))


def rates(size: str, way: str) -> list[float]:
    """The rates of one turn."""
    processes, times = WAYS[way]
    command = [sys.executable]
    if processes > 1:
        command += ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={processes}"]
    command += [str(Path(__file__)), "--take-part", size, str(processes), str(times)]
    done = subprocess.run(command, check=True, capture_output=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    found: list[float] = json.loads(done.stdout.rstrip(b"\n").rpartition(b"\n")[2])
    return found


def measured(sizes: list[str], turns: int) -> Iterator[dict[str, Any]]:
    """One line for each size and way."""
    for size in sizes:
        speeds: dict[str, list[float]] = {way: [] for way in WAYS}
        for _ in range(turns):
            for way in WAYS:
                speeds[way].append(statistics.median(rates(size, way)))
        for way, found in speeds.items():
            ratios = [two / one for two, one in zip(found, speeds["one process"], strict=True)]
            yield {
                "size": size,
                "way": way,
                "processes": WAYS[way][0],
                "slots_of_an_update": WAYS[way][1] * SLOTS,
                "pieces_per_second": statistics.median(found),
                "times_one_process": statistics.median(ratios),
                "lowest": min(ratios),
                "highest": max(ratios),
            }


def main() -> None:
    """Measure, print and write down."""
    parser = new_parser(__doc__)
    parser.add_argument("--sizes", nargs="+", choices=WINDOW, default=list(WINDOW))
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--take-part", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.take_part:
        take_part(options.take_part[0], *map(int, options.take_part[1:]))
        return
    lines = list(measured(options.sizes, options.turns))
    show(lines)
    sizes = {size: SIZES[size][1] for size in options.sizes}
    save(options.json, {"kind": "scaling", "threads_a_process": 1, "sizes": sizes, "lines": lines})


if __name__ == "__main__":
    main()
