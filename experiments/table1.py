"""Table 1: what four types of layer cost, how many steps must wait, how far a signal travels.

Paper: self-attention connects all positions in one step, and is cheaper than recurrence while n < d.
Run:   python experiments/table1.py                        (about five minutes, one core)
       python experiments/table1.py --quick                (seconds, too few repeats for a verdict on time)
"""

import sys
from collections.abc import Sequence

from repro.pages.build import build_measured, write
from repro.results.measured import LAYER_COSTS_FOLDER, Grid, Measured, save
from repro.runs.command import Parser, code_of, ended
from repro.runs.options import add_options, check_threads, refuse_published
from repro.storage import atomic

GRID = Grid(
    n=(32, 64, 128, 256, 512),
    n_odd=(33, 65, 129),
    d=(64, 128, 256),
    windows=(5, 9, 17),
    n_paths=(8, 16, 32, 64, 128),
    n_timed=(32, 48, 60, 64, 96, 120, 128, 192, 240, 256, 384, 480, 512),  # for each d: 1/2, 3/4, 15/16 of it, and d
    d_timed=(64, 128, 256, 512),
    n_scored=(32, 64, 128),
    d_k=(16, 32, 64, 128),
    rounds=15,  # enough for one size among a hundred to be decided against
)
QUICK = Grid(
    n=(8, 16, 32),
    n_odd=(9, 17),
    d=(16, 32),
    windows=(3, 5),
    n_paths=(8, 16, 32),
    n_timed=(12, 24),
    d_timed=(16, 32),
    n_scored=(16, 32),
    d_k=(16, 32),
    rounds=2,
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Build the layers, measure them, and write table1/ with its page, by default in results/own/."""
    parser = Parser(description=main.__doc__)
    add_options(parser, "results_dir", "threads", results_dir="where table1/ is made", threads="that PyTorch may use")
    parser.add_argument("--quick", action="store_true", help="a few small sizes, to see that it runs")
    options = parser.parse_args(arguments)
    try:  # before minutes of measuring
        check_threads(options.threads)
        refuse_published(options.results_dir)
        atomic.check_folder(options.results_dir)
    except (ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return code_of(error)

    print(f"Table 1: layers are built, counted and timed for {options.results_dir / LAYER_COSTS_FOLDER}", flush=True)
    from repro.complexity.measure import measure_layers  # PyTorch, which --help does without

    measured = measure_layers(QUICK if options.quick else GRID, threads=options.threads)
    save(options.results_dir, measured)
    print(*write(build_measured(options.results_dir, Measured)), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(ended(main))
