"""How many runs of a sweep are made at the same time on this machine."""

import os
from collections.abc import Sequence

from repro.render.several import several
from repro.results.systems import system_text
from repro.runs.cards import free_on_cards, visible
from repro.runs.forecast import cell_memory, size
from repro.runs.options import Options
from repro.runs.processors import processors
from repro.runs.scales import Scale
from repro.runs.speed.memory import free_memory
from repro.runs.speed.rates import card_peaks, row_of
from repro.runs.table import Cell

SMALL = 256  # d_model of models that share a card: larger ones fill it
OF_PROCESS = 1_000_000_000  # bytes of a card that CUDA takes for a process: a guess
SPARE_MEMORY = 0.1  # of what is free is left alone: a forecast is none to the byte


def parallelism(cells: Sequence[Cell], scale: Scale, options: Options) -> tuple[int, str]:
    """How many, as asked for or as processors, GPUs and memory allow, and why.

    Raises ValueError where more were asked for than can be.
    """
    if options.processes > 1:
        if (options.jobs or 1) > 1:
            raise ValueError(
                f"--jobs {options.jobs} and {options.processes} processes a run: such runs go one at a time. Leave "
                "--jobs out, or --devices."
            )
        return 1, f"{options.processes} processes share each"
    memory = max(cell_memory(cell, scale) for cell in cells)
    at_a_time, why = _on_cards(cells, scale, options) or (
        max(1, processors() // options.threads),
        f"{processors()} processors, {options.threads} a run",
    )
    free = free_memory()
    fit, why = fitting(len(cells), at_a_time, why, memory=memory, free=free)
    if options.jobs is None:
        return fit, why
    n_jobs = min(options.jobs, len(cells))
    if free is not None and n_jobs > 1 and n_jobs * memory > free:
        raise ValueError(
            f"--jobs {options.jobs}: {n_jobs} runs at a time need about {size(n_jobs * memory)} of memory, "
            f"{size(memory)} each, and {size(free)} is free. Leave it out, and as many run as fit."
        )
    return n_jobs, "--jobs"


def _on_cards(cells: Sequence[Cell], scale: Scale, options: Options) -> tuple[int, str] | None:
    """How many runs the cards bear together, and why; None where there are none.

    One on each, as far as anybody knows. Small models do not fill a card: where the peak of every row was measured on
    such a card, by a run or by `--measure`, as many share it as its memory and the processors bear.
    """
    if not (n := len(visible(os.environ))):
        return None
    free = free_on_cards(os.environ)
    known = card_peaks(options.cache_dir, options.runs_dir, options)
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


def fitting(n_runs: int, at_a_time: int, why: str, *, memory: int, free: int | None) -> tuple[int, str]:
    """How many of `at_a_time` runs this machine bears, and why: each takes `memory` of what is free."""
    if free is not None:
        fit = max(1, int(free * (1 - SPARE_MEMORY)) // memory)
        why += f"; {size(free)} of memory free, about {size(memory)} a run"
        at_a_time = min(at_a_time, fit)
    return max(1, min(at_a_time, n_runs)), why
