"""Sub-words at the paper's size: how long learning and encoding take, and whether it pays to remember words.

The text is generated: words spelled from syllables and drawn by Zipf's law, so that new ones keep coming, as in real
text. `Tokenizer.encode` and the bare library, whose results are thrown away, take turns on the same lines; every turn
brings new lines. It prints lines per second (medians over the turns except the first, in which every word is new),
their ratio, the seconds and memory of learning, and the time that follows for the paper's 4.5 and 36 million pairs.

Run:  python benchmarks/pieces.py                  (about five minutes, one core)
      python benchmarks/pieces.py --threads 2
"""

import argparse
import multiprocessing
import os
import resource
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

import numpy as np
import tokenizers

from repro.data.tokenizer import Tokenizer, train_tokenizer
from repro.data.vocabulary import Subwords

WANTED = (Subwords("bpe", 37_000), Subwords("wordpiece", 32_000))  # the paper's
PAIRS = (4_500_000, 36_000_000)
WORDS_A_LINE = 25
LINES_AT_ONCE = 10_000
HEADS = ("", *"bdfghklmnprstvwz", "sch", "st", "tr")
HEARTS = (*"aeiou", "ei", "ie", "ä", "é")
TAILS = (*[""] * 8, *"nrstlmd", "ng")


def spellings(n_types: int) -> np.ndarray:
    """Words by rank, of one to five syllables; rarer ones are longer, and some are names."""
    random = np.random.default_rng(0)
    syllables = np.array([head + heart + tail for head in HEADS for heart in HEARTS for tail in TAILS], dtype=object)
    counts = 1 + random.binomial(4, np.minimum(0.6, np.log10(np.arange(n_types) + 1) / 9))
    parts = syllables[random.integers(len(syllables), size=(n_types, 5))]
    parts[np.arange(5) >= counts[:, None]] = ""
    words = parts.sum(axis=1)
    names = random.random(n_types) < 0.3
    words[names] = [word.capitalize() for word in words[names]]
    return words


def text(n_lines: int, n_types: int, seed: int) -> Iterator[str]:
    """Lines of about 25 words with some punctuation."""
    words = spellings(n_types)
    shares = 1 / (np.arange(n_types) + 2.7) ** 1.1
    ends = (shares / shares.sum()).cumsum()
    random = np.random.default_rng(seed)
    for start in range(0, n_lines, LINES_AT_ONCE):
        lengths = 1 + random.poisson(WORDS_A_LINE - 1, min(LINES_AT_ONCE, n_lines - start))
        drawn = words[np.searchsorted(ends, random.random(lengths.sum())).clip(max=n_types - 1)]
        drawn[random.random(len(drawn)) < 0.06] += ","
        for line in np.split(drawn, lengths.cumsum()[:-1]):
            yield " ".join(line) + "."


def peak() -> float:
    """The peak memory of this process, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def clock(threads: int) -> Callable[[], float]:
    """Seconds now; with one thread processor time, which other work on the machine affects little."""
    return time.process_time if threads == 1 else time.perf_counter


def learn(subwords: Subwords, options: argparse.Namespace) -> Tokenizer:
    """Print the seconds of learning, without those of making the text, and the MB that it adds."""
    now = clock(options.threads)
    started = now()
    for _ in text(options.lines, options.types, seed=1):
        pass
    making, before = now() - started, peak()
    tokenizer = train_tokenizer(text(options.lines, options.types, seed=1), subwords)
    seconds = now() - started - 2 * making
    print(f"  learned {tokenizer.size:,} tokens from {options.lines:,} lines in {seconds:.0f} s", end=", ")
    print(f"{options.lines / seconds:,.0f} lines/s; {peak() - before:.0f} MB", flush=True)
    return tokenizer


def encode(tokenizer: Tokenizer, options: argparse.Namespace) -> None:
    """Print the rates of both sides, and check that their ids are the same."""
    with tempfile.TemporaryDirectory() as folder:
        tokenizer.save(path := Path(folder) / "tokenizer.json")
        engine = tokenizers.Tokenizer.from_file(str(path))
    now = clock(options.threads)
    lines = text((options.turns + 1) * options.lines_a_turn, options.types, seed=2)
    rates: dict[str, list[float]] = {"library": [], "ours": []}
    for turn in range(options.turns + 1):
        chunk = list(islice(lines, options.lines_a_turn))
        for name in rates if turn % 2 else reversed(rates):
            started = now()
            if name == "ours":
                ids, _ = tokenizer.encode(chunk)
            else:
                for start in range(0, len(chunk), LINES_AT_ONCE):
                    engine.encode_batch_fast(chunk[start : start + LINES_AT_ONCE])
            rates[name].append(len(chunk) / (now() - started))
        expected = [id for encoding in engine.encode_batch_fast(chunk[:1_000]) for id in (*encoding.ids, 1)]
        if ids[: len(expected)].tolist() != expected:
            raise ValueError("The ids are not the library's.")
    first = {name: rate.pop(0) for name, rate in rates.items()}
    ratios = [ours / library for ours, library in zip(rates["ours"], rates["library"], strict=True)]
    library, ours = (statistics.median(rate) for rate in rates.values())
    print(f"  library {library:,.0f} lines/s, ours {ours:,.0f}; {statistics.median(ratios):.1f} times as fast", end=" ")
    print(f"({min(ratios):.1f} to {max(ratios):.1f}; the first turn {first['ours'] / first['library']:.1f})")
    for pairs in PAIRS:
        minutes = [2 * pairs / rate / 60 for rate in (ours, library)]
        print("  {:,} pairs: {:.0f} minutes; the library alone {:.0f}".format(pairs, *minutes))


def measure(subwords: Subwords, options: argparse.Namespace) -> None:
    """One kind, in a process of its own, so that its memory is its own."""
    print(f"{subwords.kind}, {options.threads} threads", flush=True)
    encode(learn(subwords, options), options)


def main() -> None:
    """Measure both kinds."""
    parser = argparse.ArgumentParser(
        allow_abbrev=False, description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--lines", type=int, default=1_000_000, help="to learn from")
    parser.add_argument("--types", type=int, default=250_000, help="distinct words")
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("--lines-a-turn", type=int, default=50_000)
    parser.add_argument("--threads", type=int, default=1, help="of the library")
    options = parser.parse_args()
    os.environ["RAYON_NUM_THREADS"] = str(options.threads)
    os.environ["TOKENIZERS_PARALLELISM"] = str(options.threads > 1).lower()
    for subwords in WANTED:
        process = multiprocessing.get_context("spawn").Process(target=measure, args=(subwords, options))
        process.start()
        process.join()


if __name__ == "__main__":
    main()
