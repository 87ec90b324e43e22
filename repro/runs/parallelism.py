"""How many runs of a sweep are made at the same time on this machine, in which order, and when the last one ends."""

import heapq
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from repro.render.several import several
from repro.runs.cards import visible
from repro.runs.options import Options
from repro.runs.sizes import free_memory, processors, run_memory, size

if TYPE_CHECKING:
    from repro.runs.run_dir import RunDir

SPARE_MEMORY = 0.1  # share of what is free that is left alone: a forecast is not exact


def memory_of(run: "RunDir") -> int:
    """Peak resident bytes of the process that makes a run here."""
    return run_memory(run.spec.hyper, run.entry.scale, run.task.name, run.spec.system)


def parallelism(runs: "Sequence[RunDir]", options: Options) -> tuple[int, str]:
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
    memory, free = max(map(memory_of, runs)), free_memory()
    if options.jobs is None:
        at_a_time, why = processors() // options.threads, f"{processors()} processors, {options.threads} a run"
        if n_cards := len(visible(os.environ)):
            at_a_time, why = n_cards, several(n_cards, "GPU")
        fit = min(at_a_time, int(free * (1 - SPARE_MEMORY)) // memory, len(runs))
        return max(1, fit), f"{why}; {size(free)} of memory free, about {size(memory)} a run"
    n_jobs = min(options.jobs, len(runs))
    if n_jobs > 1 and n_jobs * memory > free:
        raise ValueError(
            f"--jobs {options.jobs}: {n_jobs} runs at a time need about {size(n_jobs * memory)} of memory, "
            f"{size(memory)} each, and {size(free)} is free. Leave it out, and as many run as fit."
        )
    return n_jobs, "--jobs"


def makespan(seconds: Sequence[float], jobs: int) -> float:
    """Seconds until the last run ends, if `jobs` workers take the runs in this order, each when it becomes free."""
    free = [0.0] * max(1, min(jobs, len(seconds)))  # when each worker becomes free, as a heap
    for one in seconds:
        heapq.heapreplace(free, free[0] + one)
    return max(free)


def ordered(runs: "Sequence[RunDir]", seconds: Sequence[float], jobs: int) -> list[int]:
    """The numbers of the runs, seed by seed, so that a stopped sweep has complete seeds; the longest of a seed first.

    Of equally long ones those of more heads do: on a processor narrow products take longer than operations tell.
    `seconds` has one number for each run. Where one worker makes all runs, the order stays as it is.
    """
    numbers = range(len(runs))
    if jobs == 1:
        return list(numbers)
    place = {seed: i for i, seed in enumerate(dict.fromkeys(run.spec.seed for run in runs))}
    return sorted(numbers, key=lambda i: (place[runs[i].spec.seed], -seconds[i], -runs[i].spec.hyper.n_heads))
