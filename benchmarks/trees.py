"""Trees: seconds to read, clean and linearise 30,000 of them, and to score 2,400 sentences. Paper: section 6.3.

Generated trees, and with --data-dir those of CRAFT as well: of a text that may not be redistributed, only counts and
times are printed and kept. For scoring, each tree is compared with one in which a tenth of the brackets is wrong, as in
silver trees. Every part is measured in turns; seconds are processor time of one process, the median and the most.

Run:  python benchmarks/trees.py --data-dir FOLDER --json benchmarks/records/trees.json        (a minute, one core)
"""

import argparse
import itertools
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from repro.corpora.grammar.generate import gold_trees, silver_tree
from repro.corpora.treebanks import SPLITS, TREEBANKS, find_trees
from repro.data.treebank import Tree, bracketed, cleaned, linearised, trees_of
from repro.decoding.evalb import score_trees
from repro.results.provenance import provenance
from repro.storage import atomic

BOUNDS = {"reading": 10.0, "scoring": 1.0}  # seconds
N_READ, N_SCORED = 30_000, 2_400
SEED = 1  # of the generated trees, and of the errors in those that are scored


def lines_of(files: Sequence[Path], n: int) -> tuple[list[str], list[Tree]]:
    """The first n trees of these files, read and cleaned as for a corpus: as lines of tokens, and as trees."""
    lines, trees = [], []
    for raw in itertools.islice((tree for file in files for tree in trees_of(file)), n):
        if (tree := cleaned(raw)) is not None:
            lines.append(linearised(tree))
            trees.append(tree)
    return lines, trees


def seconds(work: Callable[[], object], turns: int) -> dict[str, float]:
    """Processor seconds of a turn."""
    took = []
    for _ in range(turns):
        started = time.process_time()
        work()
        took.append(time.process_time() - started)
    return {"median": statistics.median(took), "most": max(took)}


def measured(name: str, files: Sequence[Path], turns: int) -> dict[str, Any]:
    """The measurements of one text, read and scored."""
    lines, gold = lines_of(files, N_READ)
    reading = seconds(lambda: lines_of(files, N_READ), turns)
    chance, asked = random.Random(SEED), gold[:N_SCORED]
    found = [silver_tree(tree, chance) for tree in asked]
    scoring = seconds(lambda: score_trees(asked, found), turns)
    return {
        "text": name,
        "trees": len(lines),
        "words": sum(len(tree.leaves) for tree in gold),
        "tokens": sum(line.count(" ") + 1 for line in lines),
        "reading": reading,
        "scored": len(asked),
        "scored_brackets": score_trees(asked, found).counts.gold,
        "scoring": scoring,
    }


def main() -> None:
    """Measure, print and write down."""
    parser = argparse.ArgumentParser(
        allow_abbrev=False, description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--data-dir", type=Path, help="folder with CRAFT")
    parser.add_argument("--json", type=Path, help="write the record there")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        generated = Path(folder) / "generated.mrg"
        trees = itertools.islice(gold_trees(SEED), N_READ)
        atomic.write_text(generated, "".join(f"{bracketed(tree, 'TOP')}\n" for tree in trees))
        texts: dict[str, Sequence[Path]] = {"generated": [generated]}
        if options.data_dir:
            place = find_trees("craft", options.data_dir)
            assert place is not None, "CRAFT lies in a folder"
            splits = TREEBANKS["craft"].splits(place)
            texts["craft"] = [file for split in SPLITS for file in splits[split]]
        lines = [measured(name, files, options.turns) for name, files in texts.items()]
    for line in lines:
        print(
            f"{line['text']:<12}{line['trees']:>7,} trees of {line['words']:,} words read in "
            f"{line['reading']['median']:.2f} s; {line['scored']:,} sentences scored in "
            f"{line['scoring']['median']:.2f} s"
        )
    if options.json:
        told = {"kind": "trees", "bounds": BOUNDS, "turns": options.turns, "threads": 1}
        atomic.write_json(options.json, {**told, "lines": lines, "stamp": provenance("cpu")})


if __name__ == "__main__":
    main()
