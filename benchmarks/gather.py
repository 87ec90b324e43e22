"""What does a batch cost, depending on the number of shards of its text?

Shards hold generated ids, and are small if there are many: what counts is how many of them a batch touches. Batches are
of random sentences from all shards, and of random sentences from as many shards as a group has, as a plan in groups
asks for them. `four files` is the layout of shards before layout 3, and how it was gathered: for each side a file of
ids and one of offsets, all open, lengths of all sentences in memory, numbers ordered shard by shard. Both layouts take
turns and give the same ids. Seconds are of the first batch, with opening; milliseconds are medians of a batch.

Run:  python benchmarks/gather.py          (about two minutes, one core)
"""

import argparse
import resource
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from repro.data.shards import SIDES, Shards, Store, mapped, shard_folder, write_shard
from repro.storage import atomic

BATCH = 900  # pairs: 25,000 tokens a side
OFFSETS, IDS = np.dtype("<u4"), np.dtype("<u2")


class FourFiles:
    """One side, as it was read before layout 3."""

    def __init__(self, folder: Path, side: str, n_shards: int) -> None:
        places = [shard_folder(folder, shard) for shard in range(n_shards)]
        self.ids = [mapped(place / f"{side}.ids", IDS) for place in places]
        self.offsets = [mapped(place / f"{side}.offsets", OFFSETS) for place in places]
        self.lengths = np.concatenate([np.diff(offsets).astype(np.uint16) for offsets in self.offsets])
        self.starts = np.cumsum([0, *(len(offsets) - 1 for offsets in self.offsets)])

    def gather(self, wanted: Any) -> tuple[Any, Any]:
        """The ids of many sentences, one after the other, and the length of each."""
        lengths = self.lengths[wanted].astype(np.int64)
        places = lengths.cumsum() - lengths
        gathered = np.empty(lengths.sum(), IDS)
        shard = np.searchsorted(self.starts, wanted, "right") - 1
        by_shard = np.argsort(shard, kind="stable")
        for members in np.split(by_shard, np.flatnonzero(np.diff(shard[by_shard])) + 1):
            here = int(shard[members[0]])
            begin = self.offsets[here][wanted[members] - self.starts[here]].astype(np.int64)
            length = lengths[members]
            within = np.arange(length.sum()) - (length.cumsum() - length).repeat(length)
            gathered[places[members].repeat(length) + within] = self.ids[here][begin.repeat(length) + within]
        return gathered, lengths


def write(folder: Path, n_shards: int, pairs: int) -> None:
    """The same shards in both layouts, `pairs` pairs each."""
    random = np.random.default_rng(1)
    for shard in range(n_shards):
        lengths = np.clip(random.lognormal(np.log(28) - 0.125, 0.5, (2, pairs)), 2, 256).astype(np.int64)
        ids = [random.integers(2, 37_000, side.sum(), dtype=np.uint16) for side in lengths]
        place = shard_folder(folder, shard)
        place.mkdir(parents=True)
        write_shard(place, (ids[0], ids[1]), (lengths[0], lengths[1]))
        for name, own, side in zip(SIDES, ids, lengths, strict=True):
            own.tofile(place / f"{name}.ids")
            np.concatenate([[0], side.cumsum()]).astype(OFFSETS).tofile(place / f"{name}.offsets")


def wanted(n_shards: int, of_group: int, pairs: int, n: int) -> list[Any]:
    """Batches of random sentences from `of_group` random shards, in random order."""
    random = np.random.default_rng(2)
    group = random.permutation(n_shards)[:of_group]
    return [group[random.integers(0, of_group, BATCH)] * pairs + random.integers(0, pairs, BATCH) for _ in range(n)]


def measured(folder: Path, n_shards: int, of_group: int, pairs: int, n: int, turns: int) -> dict[str, Any]:
    """Both layouts on the same batches, in turns."""
    batches = wanted(n_shards, of_group, pairs, n)

    def new() -> tuple[Any, Any]:
        shards = Shards(folder, n_shards=n_shards, dtype=IDS)
        return Store(shards, "source"), Store(shards, "target")

    def old() -> tuple[Any, Any]:
        return FourFiles(folder, "source", n_shards), FourFiles(folder, "target", n_shards)

    ways: dict[str, Callable[[], tuple[Any, Any]]] = {"four files": old, "one file": new}
    first: dict[str, list[float]] = {way: [] for way in ways}
    each: dict[str, list[float]] = {way: [] for way in ways}
    ids: dict[str, Any] = {}
    for _ in range(turns):
        for way, make in ways.items():
            started = time.perf_counter()
            sides = make()
            ids[way] = [side.gather(batches[0])[0] for side in sides]
            first[way].append(time.perf_counter() - started)
            for batch in batches[1:]:
                started = time.perf_counter()
                for side in sides:
                    side.gather(batch)
                each[way].append(time.perf_counter() - started)
            del sides
    for one, other in zip(*ids.values(), strict=True):
        np.testing.assert_array_equal(one, other)
    return {
        "shards": n_shards,
        "of_group": of_group,
        **{f"first_s {way}": statistics.median(found) for way, found in first.items()},
        **{f"ms {way}": 1e3 * statistics.median(found) for way, found in each.items()},
    }


def main() -> None:
    """Print a line for each number of shards."""
    parser = argparse.ArgumentParser(allow_abbrev=False, description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--shards", type=int, nargs="+", default=[17, 190, 2_100])
    parser.add_argument("--group", type=int, default=122, help="shards of a group")
    parser.add_argument("--pairs", type=int, default=2_000, help="of a shard")
    parser.add_argument("--batches", type=int, default=30)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--json", type=Path, help="write the record there")
    options = parser.parse_args()
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 16_384), hard))  # for the four files of 2,100 shards
    lines = []
    both = "four files  one file"
    print(f"{'shards':>7}{'of these':>9}{'first batch, s':>22}{'a batch, ms':>22}\n{'':16}{both:>22}{both:>22}")
    for n_shards in options.shards:
        with tempfile.TemporaryDirectory() as name:
            write(Path(name), n_shards, options.pairs)
            for of_group in sorted({n_shards, min(n_shards, options.group)}, reverse=True):
                line = measured(Path(name), n_shards, of_group, options.pairs, options.batches, options.turns)
                lines.append(line)
                print(
                    f"{n_shards:>7,}{of_group:>9,}{line['first_s four files']:>12.3f}{line['first_s one file']:>10.3f}"
                    f"{line['ms four files']:>12.2f}{line['ms one file']:>10.2f}",
                    flush=True,
                )
    if options.json:
        atomic.write_json(options.json, lines)


if __name__ == "__main__":
    main()
