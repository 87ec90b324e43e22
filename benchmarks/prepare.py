"""From text to batches at the paper's size: how long, how much memory, how much disk?

Two parts, each in fresh processes:

- `text`: generated text of real length (log-normal, mean 24 words a side; 200,000 word types a language by Zipf's law,
  and one word in a hundred that occurs only once), prepared from files to shards: seconds and rate of each step, peak
  of anonymous memory summed over all processes (without the page cache, and so without memory-mapped files), disk, and
  a second `prepare`.
- `ids`: shards of generated ids, for everything after the tokenizer: verify and open them, plan an epoch, start at a
  late step, and deliver batches with no worker, one and four.

Run:  python benchmarks/prepare.py text --pairs 2000000       (about ten minutes on two cores)
      python benchmarks/prepare.py ids --pairs 36000000       (about ten minutes, 5 GB of disk)
"""

import argparse
import multiprocessing
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import numpy as np
import psutil
from torch.utils.data import DataLoader

from repro.corpora.catalogue import open_corpus
from repro.corpora.parallel_text import CHUNK
from repro.corpora.prepare import prepare, whole
from repro.data.batching import Plan, by_tokens
from repro.data.datasets import TrainingBatches
from repro.data.shards import SIDES, Shards, Store, pair_lengths, shard_folder, write_shard
from repro.data.vocabulary import Subwords
from repro.model.special_tokens import EOS
from repro.storage.folder_cache import made_once

TYPES = 200_000
MEAN_WORDS = 24
NEW_WORDS = 0.01  # share of words that occur only once: names, numbers, mistakes
AT_ONCE = 50_000
VOCABULARY, BUDGET, MAX_LENGTH = 37_000, 25_000, 256
LETTERS = np.array(list("etaoinshrdlucmfwypvbgkjqxz"))

P = ParamSpec("P")
T = TypeVar("T")


class Peak:
    """The peak of anonymous memory of this process and its descendants, sampled ten times a second."""

    def __init__(self) -> None:
        self.bytes, self._over = 0, threading.Event()
        self._watch = threading.Thread(target=self._look, daemon=True)
        self._watch.start()

    def _look(self) -> None:
        this = psutil.Process()
        while not self._over.wait(0.1):
            total = 0
            for process in [this, *this.children(recursive=True)]:
                try:
                    memory = process.memory_info()
                    total += memory.rss - memory.shared
                except psutil.NoSuchProcess:
                    continue
            self.bytes = max(self.bytes, total)

    def end(self) -> float:
        """Stop sampling; returns the peak in GB."""
        self._over.set()
        self._watch.join()
        return self.bytes / 1e9


@contextmanager
def measured(what: str) -> Iterator[None]:
    """Print the seconds and the peak memory of a step."""
    peak, started = Peak(), time.perf_counter()
    yield
    seconds = time.perf_counter() - started
    print(f"{what:<44}{seconds:>9.2f} s{peak.end():>8.2f} GB", flush=True)


# Text ------------------------------------------------------------------------------------------------------


def write_text(folder: Path, n_pairs: int) -> None:
    """train, dev and test of two made-up languages that share no words but are of like length."""
    random = np.random.default_rng(1)
    shares = 1 / np.arange(1, TYPES + 1)
    cumulated = np.cumsum(shares / shares.sum())
    words = {language: spelled(random, np.arange(1, TYPES + 1)) for language in ("en", "de")}
    for split, n in (("train", n_pairs), ("dev", 3_000), ("test", 3_000)):
        with ExitStack() as opened:
            files = [(words[one], opened.enter_context(open(folder / f"{split}.{one}", "wb"))) for one in words]
            for begin in range(0, n, AT_ONCE):
                n_words = random.lognormal(np.log(MEAN_WORDS) - 0.125, 0.5, min(AT_ONCE, n - begin))
                for known, file in files:
                    lengths = np.maximum(1, n_words * random.lognormal(0, 0.15, len(n_words))).astype(int)
                    drawn = known[np.searchsorted(cumulated, random.random(lengths.sum()))]
                    is_new = random.random(len(drawn)) < NEW_WORDS
                    drawn[is_new] = spelled(random, np.full(is_new.sum(), TYPES))
                    ends = lengths.cumsum().tolist()
                    lines = (" ".join(drawn[a:b]) for a, b in zip([0, *ends], ends, strict=False))
                    file.write("".join(f"{line} .\n" for line in lines).encode())


def spelled(random: np.random.Generator, ranks: Any) -> Any:
    """The words of these ranks; frequent ones are short."""
    lengths = np.clip(random.poisson(1 + 0.75 * np.log(ranks)), 1, 20)
    letters = random.choice(LETTERS, lengths.sum(), p=(weights := 1 / np.arange(2, 28)) / weights.sum())
    ends = lengths.cumsum().tolist()
    return np.array(["".join(letters[a:b]) for a, b in zip([0, *ends], ends, strict=False)], dtype=object)


def text(turn: str, workers: int | None, place: Path) -> None:
    """Prepare generated text."""
    steps: list[tuple[str, float]] = [("the beginning", time.perf_counter())]
    with measured(f"{turn} time, all of it"):
        corpus = open_corpus("folder", "en-de", data_dir=place, cache=place / "cache")
        made = prepare(
            corpus,
            subwords=Subwords("bpe", VOCABULARY),
            cache=place / "cache",
            max_length=MAX_LENGTH,
            workers=workers,
            tell=lambda said: steps.append((said, time.perf_counter())),
        )
    ends = [*(begun for _, begun in steps[1:]), time.perf_counter()]
    for (said, begun), ended in zip(steps, ends, strict=True):
        print(f"    {ended - begun:>8.1f} s after: {said}")
    tokens = made.train.source.n_tokens + made.train.target.n_tokens
    disk = sum(path.stat().st_size for path in (place / "cache").rglob("*") if path.is_file())
    print(f"{tokens / 2 / len(made.train):.1f} tokens a side; cache {disk / 1e6:,.0f} MB; {made.manifest_hash[:12]}")


# Ids -------------------------------------------------------------------------------------------------------


def write_ids(place: Path, n_pairs: int) -> None:
    """Shards like those that `prepare` writes, of random ids."""
    random = np.random.default_rng(1)
    for shard, begin in enumerate(range(0, n_pairs, CHUNK)):

        def fill(folder: Path, n: int = min(CHUNK, n_pairs - begin)) -> dict[str, Any]:
            source = random.lognormal(np.log(28) - 0.125, 0.5, n)
            sides = []
            for factor in (1, random.lognormal(0, 0.2, n)):
                lengths = np.clip(source * factor, 1, MAX_LENGTH - 1).astype(int) + 1
                ids = random.integers(2, VOCABULARY, lengths.sum(), dtype=np.uint16)
                ids[lengths.cumsum() - 1] = EOS
                sides.append((ids, lengths))
            write_shard(folder, *zip(*sides, strict=True))
            return {"pairs": n}

        made_once(shard_folder(place, shard), fill)


def ids(n_pairs: int, n_batches: int, place: Path) -> None:
    """Measure everything after the tokenizer."""
    n_shards = -(-n_pairs // CHUNK)
    disk = sum(path.stat().st_size for path in place.rglob("*") if path.is_file())
    print(f"{n_pairs:,} pairs in {n_shards} shards, {disk / 1e6:,.0f} MB")
    with measured("verify every shard"):
        assert len(whole(shard_folder(place, i) for i in range(n_shards))) == n_shards
    with measured("open, count lengths, cut into updates"):
        shards = Shards(place, n_shards=n_shards, dtype=np.dtype("<u2"))
        source, target = (Store(shards, side) for side in SIDES)
        plan = Plan(lengths=pair_lengths(source, target), budget=BUDGET, batch_by=by_tokens, data_hash="x", seed=1)
        n = plan.updates_per_epoch
    with measured("plan what is read first, first update"):
        next(plan.updates())
    for workers in (0, 1, 4):
        batches = TrainingBatches(
            source,
            target,
            plan,
            accumulate=1,
            start=8 * n - n // 2,
            rank=0,
            world=1,
        )
        with measured(f"{workers} workers: the first batch at a late step"):
            stream = iter(DataLoader(batches, batch_size=None, num_workers=workers))
            next(stream)
        for _ in islice(stream, 2 * workers):  # batches made in advance while the other workers started
            pass
        started = time.perf_counter()
        n_tokens = sum(batch.n_source + batch.n_target for batch in islice(stream, n_batches))
        seconds = time.perf_counter() - started
        print(
            f"    {n_tokens / seconds / 1e6:>8.2f} M tokens/s delivered, {seconds / n_batches * 1e3:.1f} ms a batch",
            flush=True,
        )
        del stream


def alone(work: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
    """The result of `work` in a fresh process. This one stays small: a child's peak starts at its parent's memory."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as process:
        return process.submit(work, *arguments, **named).result()


def main() -> int:
    """Measure one part."""
    parser = argparse.ArgumentParser(allow_abbrev=False, description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("part", choices=["text", "ids"])
    parser.add_argument("--pairs", type=int, default=2_000_000)
    parser.add_argument("--workers", type=int, help="processes that encode; default: one a core")
    parser.add_argument("--batches", type=int, default=200)
    parser.add_argument("--folder", type=Path, help="keep what is generated here, for another turn")
    options = parser.parse_args()
    place = options.folder or Path(tempfile.mkdtemp())
    place.mkdir(parents=True, exist_ok=True)
    try:
        if options.part == "text":
            if not (place / "train.en").exists():
                alone(write_text, place, options.pairs)
            n_bytes = sum(path.stat().st_size for path in place.glob("train.*"))
            print(f"{n_bytes / 1e6:,.0f} MB of text, {options.workers or multiprocessing.cpu_count()} processes")
            for turn in ("first", "second"):
                alone(text, turn, options.workers, place)
        else:
            alone(write_ids, place, options.pairs)
            alone(ids, options.pairs, options.batches, place)
    finally:
        if not options.folder:
            shutil.rmtree(place)
    return 0


if __name__ == "__main__":
    sys.exit(main())
