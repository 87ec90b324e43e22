"""Parsing: what a beam of 21 with alpha 0.3 gains over one of 4 with alpha 0.6, and costs. Paper: section 6.3.

One trained parser, the first sentences of dev, four searches: both beams with both alphas, all with as much room beyond
the input as the run's own search has. They take turns on one thread, so other work on the machine slows all alike;
`times` is processor time relative to the first search, turn by turn, medians. Every turn must find the same trees.
`at the limit`: no hypothesis had ended, so the output was cut. Differences in F1 are over resampled sentences.

Run:  python benchmarks/parse_search.py runs/<id> --json benchmarks/records/parse_search.json    (10 minutes, one core)
"""

import functools
import itertools
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from command import new_parser, save, show

from repro.corpora.parallel_text import Parallel
from repro.data.shards import Encoded
from repro.data.tokenizer import Tokenizer
from repro.decoding.search import PAPER_SEARCH, Search
from repro.decoding.translate import translate
from repro.model.protocol import TranslationSystem
from repro.results.details import Floats, over_sentences
from repro.results.provenance import provenance
from repro.results.record import Record
from repro.results.sentences import Brackets
from repro.runs.load import Trained, check_parses, open_run
from repro.runs.outputs import brackets_of
from repro.runs.scales import SCALES
from repro.runs.table import PARSING_SEARCH, Parsing
from repro.training import cpu_tuning

BOUND = 6  # most processor time of the last search, in times that of the first
TURNS, WARM_UP = 3, 10  # turns; sentences that are searched before the first
Lines = Sequence[str]


def searches(extra: int) -> list[Search]:
    """The searches: translation's first, parsing's last, between them each beam with the other's alpha."""
    beams, alphas = ((PAPER_SEARCH.beam, PARSING_SEARCH.beam), (PAPER_SEARCH.alpha, PARSING_SEARCH.alpha))
    return [Search(beam, alpha, extra) for beam, alpha in itertools.product(beams, alphas)]


def dev_lines(run: Record, cache: Path, data_dir: Path | None, n: int) -> tuple[Lines, Lines]:
    """The first n sentences of the run's dev text, and their trees as lines of tokens.

    Raises ValueError if the text at hand is not that of the run.
    """
    name = run.corpus["name"]
    task, scale = Parsing(silver=name.endswith("_silver")), SCALES[run.scale.partition("-")[0]]  # less departures
    corpus = task.open_corpus(
        name.removesuffix("_silver"), data_dir=data_dir, cache=cache, sizes=scale.trees.sizes, tell=print
    )
    if corpus.sha256 != run.corpus["sha256"]:
        raise ValueError(
            f"Run {run.run} read the text {run.corpus['sha256'][:12]}, here is {corpus.sha256[:12]}. Give --data-dir."
        )
    return first_lines(corpus.dev, n)


def first_lines(text: Parallel, n: int) -> tuple[Lines, Lines]:
    """Both sides of the first n pairs."""
    pairs = list(itertools.islice((pair for chunk in text.chunks() for pair in chunk.pairs()), n))
    return [source for source, _ in pairs], [target for _, target in pairs]


def parsed(model: TranslationSystem, tokenizer: Tokenizer, source: Encoded, search: Search) -> tuple[Lines, int]:
    """What the parser writes for each sentence, and how many outputs were cut at the limit."""
    found = translate(model, source, search)
    limits = [len(source.sentence(i)) + search.extra for i in range(len(found))]
    n_cut = sum(len(ids) == limit for ids, limit in zip(found, limits, strict=True))  # one that ended is shorter
    return [tokenizer.decode(ids) for ids in found], n_cut


def clocked(parse: Callable[[], tuple[Lines, int]]) -> tuple[float, tuple[Lines, int]]:
    """Processor seconds of this process for `work`, and its result."""
    started = time.process_time()
    made = parse()
    return time.process_time() - started, made


def measured(trained: Trained, source: Encoded, references: Lines, turns: int) -> Iterator[list[dict[str, Any]]]:
    """A line for each search, yielded after each turn for all turns so far."""
    asked = searches(trained.record.settings["extra_length"])
    warm_up = Encoded(source.ids, source.offsets[: WARM_UP + 1])
    for search in asked:
        parsed(trained.model, trained.tokenizer, warm_up, search)
    seconds: list[list[float]] = [[] for _ in asked]
    made: list[tuple[Lines, int]] = []
    counts: list[Brackets] = []
    for turn in range(turns):
        for i, search in enumerate(asked):
            took, found = clocked(functools.partial(parsed, trained.model, trained.tokenizer, source, search))
            seconds[i].append(took)
            print(f"turn {turn + 1}, {search}: {took:.1f} s of processor", flush=True)
            if turn == 0:
                made.append(found)
            elif found != made[i]:
                sys.exit(f"{search}: expected the trees of the first turn, got others. A search must not draw.")
        counts = counts or [brackets_of(lines, references) for lines, _ in made]
        yield [
            line_of(search, of, counts[0], n_cut, seconds[i], seconds[0])
            for i, (search, of, (_, n_cut)) in enumerate(zip(asked, counts, made, strict=True))
        ]


def line_of(
    search: Search, of: Brackets, first: Brackets, n_cut: int, seconds: Sequence[float], of_first: Sequence[float]
) -> dict[str, Any]:
    """The results and time of one search, compared with the first."""
    times = [mine / its for mine, its in zip(seconds, of_first, strict=True)]
    ours, theirs = (np.stack([one.found, one.gold, one.right], axis=1) for one in (of, first))
    over = over_sentences([ours], [theirs], f1_of_sums)
    return {
        **search.settings,
        **of.scores(),
        "f1_more_than_first": {"value": over.value, "low": over.low, "high": over.high},
        "at_limit": 100 * n_cut / len(of.words),
        "cpu_seconds": list(seconds),
        "times_first": {"median": statistics.median(times), "lowest": min(times), "highest": max(times)},
    }


def f1_of_sums(sums: Floats) -> Floats:
    """[...] F1 in per cent of sums [..., 3]: brackets found, gold, right."""
    found, gold, right = np.moveaxis(sums, -1, 0)
    return 200 * right / np.maximum(found + gold, 1)


def whose(run: Record) -> dict[str, Any]:
    """Which run a record of a benchmark is about."""
    return {"run": run.run, "table": run.table, "row": run.row, "seed": run.seed, "scale": run.scale}


def main() -> None:
    """Measure, print and write down."""
    parser = new_parser(__doc__)
    parser.add_argument("run", type=Path, help="folder of a finished run of Table 4: runs/<id>")
    parser.add_argument("--sentences", type=int, default=500)
    parser.add_argument("--turns", type=int, default=TURNS)
    parser.add_argument("--cache-dir", type=Path, default=Path("cache"))
    parser.add_argument("--data-dir", type=Path, help="where the run's treebank is, if it is not generated")
    options = parser.parse_args()
    trained = open_run(options.run)
    run = trained.record
    check_parses(run)
    words, references = dev_lines(run, options.cache_dir, options.data_dir, options.sentences)
    source = Encoded(*trained.tokenizer.encode(words))
    torch.set_num_threads(1)
    cpu_tuning.tune(PARSING_SEARCH.beam * len(words) * run.hyper["d_model"] ** 2)
    told = {"kind": "parse_search", **whose(run), "sentences": len(words), "threads": 1, "bound": BOUND}
    stamp, lines = provenance("cpu"), list[dict[str, Any]]()
    for lines in measured(trained, source, references, options.turns):
        save(options.json, {**told, "lines": lines}, stamp)  # earlier turns are kept if it is stopped
    print(f"\n{run.row}, seed {run.seed}, {run.scale}: {len(words)} sentences of dev, {options.turns} turns")
    show(lines, "beam", "alpha", "f1", "precision", "recall", "exact", "mended", "at_limit", "times_first")


if __name__ == "__main__":
    main()
