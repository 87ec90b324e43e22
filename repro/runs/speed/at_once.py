"""How many runs of a sweep a command would make at the same time on this machine."""

import os
from collections.abc import Sequence

from repro.runs.executors.workers import fitting, gpus
from repro.runs.forecast import run_memory
from repro.runs.options import Options
from repro.runs.scales import Scale
from repro.runs.speed.memory import free_memory
from repro.runs.table import Cell


def runs_at_once(cells: Sequence[Cell], scale: Scale, options: Options) -> tuple[int, str]:
    """How many, as asked for or as processors and memory allow, and why."""
    if options.processes > 1:
        return 1, f"{options.processes} processes share each"
    memory = max(run_memory(cell.hyper, scale, cell.task.name, cell.row.system) for cell in cells)
    n_gpus = len(gpus(dict(os.environ)))
    fit, why = fitting(len(cells), threads=options.threads, memory=memory, on_gpus=n_gpus, free=free_memory())
    return (min(options.jobs, len(cells)), "--jobs") if options.jobs else (fit, why)
