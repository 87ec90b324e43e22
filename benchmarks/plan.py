"""How long and how much memory does the plan of an epoch take, and how full are its updates?

The pairs are generated: log-normal source lengths (mean 28, spread 0.5 of the logarithm, at most 255 and the end), and
targets that differ from them by a log-normal factor (spread 0.2), in 16 bits a length. Everything runs in fresh
processes that import only what a plan needs. `seconds` is for one epoch's plan, `late start` for the first update when
training resumes at the last step of epoch 7: medians over the turns. `peak` is the highest resident memory of the whole
process, with interpreter, numpy and lengths. `tokens` is the mean share of the budget that real tokens fill, for each
side; `widest` is the most slots of an update, both sides, divided by twice the budget.

Run:  python benchmarks/plan.py          (about two minutes, one core)
"""

import argparse
import multiprocessing
import resource
import statistics
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import ParamSpec, TypeVar

import numpy as np

from repro.data.batching import BATCH_BY, BatchBy, plan_epoch, updates, updates_per_epoch

EPOCH = 7
AT_ONCE = 2**18

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Planned:
    """What one process measured of one epoch."""

    seconds: float
    peak_bytes: int
    n_updates: int
    padding: float
    source: float  # mean share of the budget
    target: float
    widest: float  # slots divided by twice the budget


def write_lengths(path: Path, n: int) -> None:
    """Write the lengths of both sides, uint16 [2, n]."""
    random = np.random.default_rng(1)
    lengths = np.lib.format.open_memmap(path, mode="w+", dtype=np.uint16, shape=(2, n))
    for begin in range(0, n, AT_ONCE):
        part = lengths[:, begin : begin + AT_ONCE]
        source = 28 * random.lognormal(-(0.5**2) / 2, 0.5, part.shape[1])
        target = source * random.lognormal(0, 0.2, part.shape[1])
        part[:] = np.clip([source, target], 1, 255) + 1
    lengths.flush()


def plan(path: Path, budget: int, batch_by: BatchBy) -> Planned:
    """Plan an epoch."""
    source, target = np.load(path)
    started = time.perf_counter()
    made = plan_epoch(source, target, budget=budget, batch_by=batch_by, data_hash="data", seed=1, epoch=EPOCH)
    return Planned(
        seconds=time.perf_counter() - started,
        peak_bytes=peak_bytes(),
        n_updates=len(made),
        padding=made.padding,
        source=made.source_tokens.mean() / budget,
        target=made.target_tokens.mean() / budget,
        widest=made.slots.max() / (2 * budget),
    )


def start(path: Path, budget: int, batch_by: BatchBy) -> tuple[float, int]:
    """Seconds from nothing to the last update of an epoch, and the peak of memory when the next epoch has begun."""
    source, target = np.load(path)
    step = (EPOCH + 1) * updates_per_epoch(source, target, budget=budget, batch_by=batch_by) - 1
    started = time.perf_counter()
    stream = updates(source, target, budget=budget, batch_by=batch_by, data_hash="data", seed=1, start=step)
    assert next(stream).epoch == EPOCH
    seconds = time.perf_counter() - started
    assert next(stream).epoch == EPOCH + 1
    return seconds, peak_bytes()


def peak_bytes() -> int:
    """The highest resident memory of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def alone(work: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
    """The result of `work` in a fresh process. This one stays small: a child's peak starts at its parent's memory."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as process:
        return process.submit(work, *arguments, **named).result()


def main() -> None:
    """Print a line for each corpus and way of counting."""
    parser = argparse.ArgumentParser(allow_abbrev=False, description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--pairs", type=int, nargs="+", default=[4_500_000, 36_000_000])
    parser.add_argument("--budget", type=int, default=25_000)
    parser.add_argument("--turns", type=int, default=3)
    options = parser.parse_args()
    print(f"budget {options.budget} a side, medians of {options.turns}")
    print(
        f"{'pairs':>10}  {'counted':<9}{'updates':>9}{'padding':>9}{'tokens':>13}{'widest':>8}"
        f"{'lengths MB':>12}{'seconds':>9}{'peak MB':>9}{'late start s':>14}{'peak MB':>9}"
    )
    with tempfile.TemporaryDirectory() as folder:
        for n in options.pairs:
            path = Path(folder) / f"{n}.npy"
            alone(write_lengths, path, n)
            for name, batch_by in BATCH_BY.items():
                plans = [alone(plan, path, options.budget, batch_by) for _ in range(options.turns)]
                starts = [alone(start, path, options.budget, batch_by) for _ in range(options.turns)]
                one = plans[0]
                print(
                    f"{n:>10}  {name:<9}{one.n_updates:>9}{one.padding:>9.2%}"
                    f"{one.source:>7.1%}{one.target:>6.1%}{one.widest:>8.2f}{4 * n / 1e6:>12.0f}"
                    f"{statistics.median(made.seconds for made in plans):>9.2f}"
                    f"{max(made.peak_bytes for made in plans) / 1e6:>9.0f}"
                    f"{statistics.median(seconds for seconds, _ in starts):>14.2f}"
                    f"{max(peak for _, peak in starts) / 1e6:>9.0f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
