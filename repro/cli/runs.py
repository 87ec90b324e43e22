"""Your runs, the newest first: row, seed, score, size, when.

python -m repro runs
"""

import itertools
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from repro.render.grid import aligned
from repro.results.latest import Ended, advice, ended_runs, run_names
from repro.runs.command import Parser, ours
from repro.runs.options import add_options

HEAD = ("run", "table", "row", "seed", "dev", "size", "ended")
TO_THE_LEFT = (True, True, True, False, False, False, True)


def main(argv: Sequence[str] | None = None) -> int:
    """List the runs that ended, the newest first, by the text that they were trained on."""
    parser = Parser(prog=ours("runs"), description=main.__doc__)
    add_options(parser, "runs_dir", runs_dir="where runs are kept")
    runs: Path = parser.parse_args(argv).runs_dir
    there = list(ended_runs(runs))
    begun = len(list(runs.glob("*/run.json"))) - len(there)
    if not there:
        raise ValueError(f"{runs}: expected runs that ended, found none. {advice()}")
    for world, of in itertools.groupby(sorted(there, key=_world), key=_world):
        lines = aligned(list(zip(HEAD, *map(_line, of), strict=True)), TO_THE_LEFT)
        print(f"{world}:", *("  " + "  ".join(line).rstrip() for line in lines), "", sep="\n")
    if begun > 0:
        print(f"{begun} more have not ended. Type the command that started them again to resume them.")
    print(
        f"{ours('translate', 'RUN')}\ntakes {run_names()} or the beginning of an id as RUN. So do the commands "
        "compare, export and score."
    )
    return 0


def _world(one: Ended) -> str:
    run = one.record
    score = run.about["scores"][0].upper()
    return f"{run.scale}: {run.corpus['name']} {run.pair}, {run.corpus['n_train']:,} pairs, {score} of dev"


def _line(one: Ended) -> tuple[str, ...]:
    run = one.record
    score = "diverged" if one.score is None else f"{one.score:.1f}"
    size = f"{run.params['here'] / 1e6:.2f} M"
    when = f"{datetime.fromtimestamp(one.ended):%Y-%m-%d %H:%M}"
    return run.run[:8], run.table, run.row, str(run.seed), score, size, when
