"""Does the embedded corpus need what the paper says translation needs: positions, and depth?

Trains the base row of a scale as it is, without positions, and with one layer of three, and prints the dev scores of
each. If the variants were not clearly worse, tables made on the corpus would show nothing.

Run:  python benchmarks/corpus.py --seeds 2          (about eight minutes on 2 cores)
"""

import argparse
import statistics
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from unittest import mock

import torch

from repro.model import embedding
from repro.model.config import Hyper
from repro.results.record import Record
from repro.runs.options import Options
from repro.runs.progress import Progress
from repro.runs.run import Run
from repro.runs.scales import SCALES
from repro.runs.session import Session
from repro.runs.table import BASE_ROW, Cell, Paper, Row, Table
from repro.runs.task import Translation
from repro.tracking.tracker import Tracker


@contextmanager
def no_positions() -> Iterator[None]:
    """Every position encoded as zero: the model sees a bag of source tokens."""
    with mock.patch.object(embedding, "sinusoids", lambda length, d_model: torch.zeros(length, d_model)):
        yield


@contextmanager
def as_it_is() -> Iterator[None]:
    """The model unchanged."""
    yield


VARIANTS: dict[str, tuple[Callable[[Hyper], Hyper], Callable[[], object]]] = {
    "base": (lambda base: base, as_it_is),
    "no positions": (lambda base: base, no_positions),
    "one layer": (lambda base: replace(base, n_layers=1), as_it_is),
}


def train(name: str, seed: int, scale_name: str, pair: str, cache: Path, runs: Path) -> Record:
    """One variant, one seed."""
    change, world = VARIANTS[name]
    scale = SCALES[scale_name]
    row = Row(name, change, Paper())
    cell = Cell(
        table="corpus",
        position=list(VARIANTS).index(name),
        row=row,
        hyper=row.at(scale.base),
        seed=seed,
        task=Translation(pair),
    )
    runs_dir = runs / name.replace(" ", "-")  # a patched model has the same configuration, so it needs its own folder
    table = Table(name="corpus", rows=[row], title="What the corpus needs")
    session = Session([table], scale, Options(scale=scale_name, cache_dir=cache, runs_dir=runs_dir, threads=1), [cell])
    session.open_texts([cell.task], print)
    tracker = Tracker(f"sqlite:///{runs / 'mlflow.db'}")
    with world(), Progress("corpus", 1) as progress:  # type: ignore[attr-defined]
        lane = progress.lane()
        record = Run(dir=session.run(cell), tracker=tracker, progress=lane, should_stop=lambda: False).execute()
    assert record is not None
    return record


def main() -> None:
    """Train all variants and print their scores."""
    parser = argparse.ArgumentParser(
        allow_abbrev=False, description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--scale", choices=SCALES, default="laptop")
    parser.add_argument("--pair", default="en-de")
    parser.add_argument("--cache-dir", type=Path, default=Path("cache"))
    options = parser.parse_args()
    print(f"dev scores at {options.scale}, {options.pair}; {BASE_ROW.name} and two crippled models")
    with tempfile.TemporaryDirectory() as runs:
        for name in VARIANTS:
            seeds = range(1, options.seeds + 1)
            made = [train(name, seed, options.scale, options.pair, options.cache_dir, Path(runs)) for seed in seeds]
            bleu = [record.scores["dev"]["bleu"] or 0.0 for record in made]
            ppl = [record.scores["dev"]["ppl"] or float("inf") for record in made]
            print(
                f"{name:<14} BLEU {statistics.fmean(bleu):5.1f}  ({min(bleu):.1f} to {max(bleu):.1f})"
                f"  PPL {statistics.fmean(ppl):6.2f}  n={len(made)}",
                flush=True,
            )


if __name__ == "__main__":
    main()
