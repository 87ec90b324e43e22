"""What does a process need to plan an epoch of a billion pairs?

There is no text: the lengths of a shard of 262,144 pairs are a function of its number (log-normal sources, mean 28,
spread 0.5 of the logarithm, at most 255 and the end; targets that differ by a log-normal factor, spread 0.2), made when
needed and not kept. Each size is planned in a fresh process; seconds are of processor time, which other work on the
machine does not change:

- `cut`: seconds from nothing to all groups cut into updates. Here each shard's lengths are made and counted; a shard on
  disk has these counts, and `from tables` is the time without counting, measured on one group, times their number.
- `a group`: seconds to plan one, lengths included; the median over all. `first` is a start at an update late in epoch
  7, once the groups are cut: the cost for a process that resumes in the middle.
- `peak`: highest resident memory of the whole process, interpreter included, after all groups of an epoch have been
  planned in turn.
- `padding` of the epoch. 50 million pairs are planned as one group first, and then as two.

All groups together must hold each pair once: the sums of the pairs' numbers and of their squares check it.

Run:  python benchmarks/plan_at_scale.py          (about a quarter of an hour, one core, 3 GB of memory)
"""

import argparse
import resource
import statistics
import time
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray
from prepare import alone

from repro.corpora.parallel_text import CHUNK
from repro.data import batching
from repro.data.batching import Plan, by_tokens
from repro.data.lengths import Counts, counted, merged
from repro.storage import atomic

BUDGET, EPOCH = 25_000, 7
ONE_GROUP_UP_TO = 50_000_000  # pairs: planned as one group too, for comparison
Lengths = NDArray[np.uint16]


@cache
def quantiles(mean: float, spread: float) -> NDArray[np.float32]:
    """Quantiles of a log-normal distribution, one for each 16-bit number."""
    normal = NormalDist(np.log(mean) - spread**2 / 2, spread)
    return np.exp([normal.inv_cdf((i + 0.5) / 2**16) for i in range(2**16)]).astype(np.float32)


@dataclass(frozen=True)
class Generated:
    """Lengths that are a function of the shard's number (`PairLengths`)."""

    n_pairs: int

    @property
    def sizes(self) -> list[int]:
        """The number of pairs in each shard."""
        whole, rest = divmod(self.n_pairs, CHUNK)
        return [CHUNK] * whole + [rest] * bool(rest)

    def counts(self, shard: int) -> Counts:
        """How many pairs of a shard have which lengths."""
        return counted(*self.of(shard))

    def of(self, shard: int) -> tuple[Lengths, Lengths]:
        """Source and target lengths of a shard."""
        raw = np.random.Philox(key=shard).random_raw(min(CHUNK, self.n_pairs - shard * CHUNK))
        source = quantiles(28, 0.5)[raw & 0xFFFF]
        target = source * quantiles(1, 0.2)[raw >> 16 & 0xFFFF]
        return tuple(np.clip(side, 1, 255).astype(np.uint16) + 1 for side in (source, target))  # type: ignore[return-value]


@dataclass(frozen=True, kw_only=True)
class Measured:
    """What one process found."""

    pairs: int
    shards: int
    groups: int
    updates: int
    cut_s: float
    from_tables_s: float
    group_s: float
    first_s: float
    peak_bytes: int
    padding: float


def made(n_pairs: int) -> Plan:
    """The plan, with nothing computed yet."""
    return Plan(lengths=Generated(n_pairs), budget=BUDGET, batch_by=by_tokens, data_hash="data", seed=1)


def planned(n_pairs: int) -> Measured:
    """Plan every group of an epoch in turn."""
    quantiles(28, 0.5), quantiles(1, 0.2)
    plan, started = made(n_pairs), time.process_time()
    n = plan.updates_per_epoch
    cut = time.process_time() - started

    # what a start would cost if the tables were at hand
    group = plan.groups[0]
    tables = [plan.lengths.counts(shard).astype(np.uint32) for shard in group.shards]
    started = time.process_time()
    runs = batching._runs(merged(table.astype(np.int64) for table in tables))
    batching._counts(runs, by_tokens(runs, BUDGET))
    tabled = (time.process_time() - started) * len(plan.groups)
    del tables

    started = time.process_time()
    late = next(plan.updates(EPOCH * n + n // 2 + 1))
    first = time.process_time() - started
    assert late.epoch == EPOCH

    seconds, sums = [], np.zeros(2, np.uint64)
    for epoch, number, _ in plan._groups_from(EPOCH * n):
        if epoch > EPOCH:
            break
        started = time.process_time()
        one = plan.planned(epoch, number)
        seconds.append(time.process_time() - started)
        for begin in range(0, len(one.order), CHUNK):
            numbers = one.order[begin : begin + CHUNK].astype(np.uint64)
            sums += np.array([numbers.sum(), (numbers * numbers).sum()], np.uint64)  # modulo 2^64
        del one
    expected = n_pairs * (n_pairs - 1) // 2, (n_pairs - 1) * n_pairs * (2 * n_pairs - 1) // 6
    assert sums.tolist() == [one % 2**64 for one in expected], "a pair is missing, or stands twice"
    return Measured(
        pairs=n_pairs,
        shards=len(plan.lengths.sizes),
        groups=len(plan.groups),
        updates=n,
        cut_s=cut,
        from_tables_s=tabled,
        group_s=statistics.median(seconds),
        first_s=first,
        peak_bytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        padding=plan.padding,
    )


def planned_as_one(n_pairs: int) -> Measured:
    """Plan an epoch as one group, as for a smaller text."""
    batching.GROUPS_FROM = 10**12  # type: ignore[misc]
    return planned(n_pairs)


def main() -> None:
    """Print a line for each size."""
    parser = argparse.ArgumentParser(allow_abbrev=False, description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--pairs", type=float, nargs="+", default=[1e6, 5e7, 3e8, 1e9])
    parser.add_argument("--json", type=Path, help="write the record there")
    options = parser.parse_args()
    print(
        f"{'pairs':>14}{'shards':>8}{'groups':>8}{'updates':>11}{'cut s':>9}{'from tables':>13}"
        f"{'a group s':>11}{'first s':>9}{'peak MB':>9}{'padding':>9}"
    )
    lines = []
    for n_pairs in map(int, options.pairs):
        for way in (planned_as_one, planned) if n_pairs == ONE_GROUP_UP_TO else (planned,):
            one = alone(way, n_pairs)
            lines.append(asdict(one))
            print(
                f"{one.pairs:>14,}{one.shards:>8,}{one.groups:>8,}{one.updates:>11,}{one.cut_s:>9.1f}"
                f"{one.from_tables_s:>13.2f}{one.group_s:>11.2f}{one.first_s:>9.2f}{one.peak_bytes / 1e6:>9,.0f}"
                f"{one.padding:>9.3%}",
                flush=True,
            )
    if options.json:
        atomic.write_json(options.json, lines)


if __name__ == "__main__":
    main()
