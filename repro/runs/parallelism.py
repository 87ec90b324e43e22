"""How many runs of a sweep are made at the same time on this machine, in which order, and when the last one ends."""

import heapq
import os
from collections.abc import Sequence

from repro.render.several import several
from repro.results.systems import system_text
from repro.runs.cards import free_on_cards, visible
from repro.runs.options import Options
from repro.runs.processors import processors
from repro.runs.rates import card_peaks, row_of
from repro.runs.scales import Scale
from repro.runs.sizes import cell_memory, free_memory, size
from repro.runs.table import Cell

SMALL = 256  # d_model of models that share a card: larger ones fill it
OF_PROCESS = 1_000_000_000  # bytes of a card that CUDA takes for a process: a guess
SPARE_MEMORY = 0.1  # share of what is free that is left alone: a forecast is not exact


def parallelism(cells: Sequence[Cell], scale: Scale, options: Options) -> tuple[int, str]:
    """How many runs at a time, as asked for or as processors, GPUs and memory allow, and why.

    Raises ValueError where more were asked for than is possible.
    """
    if options.processes > 1:
        if (options.jobs or 1) > 1:
            raise ValueError(
                f"--jobs {options.jobs} and {options.processes} processes a run: such runs go one at a time. Leave "
                "--jobs out, or --devices."
            )
        return 1, f"{options.processes} processes share each"
    memory, free = max(cell_memory(cell, scale) for cell in cells), free_memory()
    if options.jobs is None:
        at_a_time, why = _on_cards(cells, scale, options) or (
            processors() // options.threads,
            f"{processors()} processors, {options.threads} a run",
        )
        fit = min(at_a_time, int(free * (1 - SPARE_MEMORY)) // memory, len(cells))
        return max(1, fit), f"{why}; {size(free)} of memory free, about {size(memory)} a run"
    n_jobs = min(options.jobs, len(cells))
    if n_jobs > 1 and n_jobs * memory > free:
        raise ValueError(
            f"--jobs {options.jobs}: {n_jobs} runs at a time need about {size(n_jobs * memory)} of memory, "
            f"{size(memory)} each, and {size(free)} is free. Leave it out, and as many run as fit."
        )
    return n_jobs, "--jobs"


def _on_cards(cells: Sequence[Cell], scale: Scale, options: Options) -> tuple[int, str] | None:
    """How many runs fit on the cards together, and why; None where there are no cards.

    Without measurements, one on each. Small models do not fill a card: where the peak memory of every row was measured
    on such a card by a run, as many runs share it as its memory and the processors allow.
    """
    if not (n := len(visible(os.environ))):
        return None
    free, known = free_on_cards(os.environ), card_peaks(options)
    peaks = [
        known.get((row_of(vars(cell.hyper), system_text(cell.row.system) or None), cell.task.at(scale).batch_tokens))
        for cell in cells
    ]
    measured = [peak for peak in peaks if peak is not None]
    if free is None or len(measured) < len(cells) or max(cell.hyper.d_model for cell in cells) > SMALL:
        return n, several(n, "GPU")
    memory = OF_PROCESS + max(measured) * 5 // 4  # PyTorch keeps some of what was freed
    each = max(1, min(free // memory, processors() // (n * options.threads)))
    runs = several(each, "run")
    return n * each, f"{several(n, 'GPU')}, {runs} on each; {size(free)} free there, about {size(memory)} a run"


def makespan(seconds: Sequence[float], jobs: int) -> float:
    """Seconds until the last run ends, if `jobs` workers take the runs in this order, each when it becomes free."""
    free = [0.0] * max(1, min(jobs, len(seconds)))  # when each worker becomes free, as a heap
    for one in seconds:
        heapq.heapreplace(free, free[0] + one)
    return max(free)


def ordered(cells: Sequence[Cell], seconds: Sequence[float], jobs: int) -> list[Cell]:
    """The cells seed by seed, so that a stopped sweep has complete seeds; within a seed, the longest runs come first.

    `seconds` has one number for each cell. Where one worker makes all runs, the order stays as it is.
    """
    if jobs == 1:
        return list(cells)
    place = {seed: i for i, seed in enumerate(dict.fromkeys(cell.seed for cell in cells))}
    timed = zip(cells, seconds, strict=True)
    return [cell for cell, _ in sorted(timed, key=lambda one: (place[one[0].seed], -one[1]))]
