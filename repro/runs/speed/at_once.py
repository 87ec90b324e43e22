"""How many runs of a sweep are made at the same time on this machine."""

import os
from collections.abc import Sequence

from repro.runs.cards import visible
from repro.runs.forecast import cell_memory, size
from repro.runs.options import Options
from repro.runs.processors import processors
from repro.runs.scales import Scale
from repro.runs.speed.memory import free_memory
from repro.runs.table import Cell

SPARE_MEMORY = 0.1  # of what is free is left alone: a forecast is none to the byte


def runs_at_once(cells: Sequence[Cell], scale: Scale, options: Options) -> tuple[int, str]:
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
    n_gpus, free = len(visible(os.environ)), free_memory()
    fit, why = fitting(len(cells), threads=options.threads, memory=memory, on_gpus=n_gpus, free=free)
    if options.jobs is None:
        return fit, why
    n_jobs = min(options.jobs, len(cells))
    if free is not None and n_jobs > 1 and n_jobs * memory > free:
        raise ValueError(
            f"--jobs {options.jobs}: {n_jobs} runs at a time need about {size(n_jobs * memory)} of memory, "
            f"{size(memory)} each, and {size(free)} is free. Leave it out, and as many run as fit."
        )
    return n_jobs, "--jobs"


def fitting(n_runs: int, *, threads: int, memory: int, on_gpus: int, free: int | None) -> tuple[int, str]:
    """How many runs at a time this machine bears, and why: processors, or GPUs, and free memory of `memory` a run."""
    n_processors = processors()
    at_a_time = on_gpus or max(1, n_processors // threads)
    why = f"{on_gpus} GPUs" if on_gpus else f"{n_processors} processors, {threads} a run"
    if free is not None:
        fit = max(1, int(free * (1 - SPARE_MEMORY)) // memory)
        why += f"; {size(free)} of memory free, about {size(memory)} a run"
        at_a_time = min(at_a_time, fit)
    return max(1, min(at_a_time, n_runs)), why
