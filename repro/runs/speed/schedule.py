"""What order the runs of a sweep are begun in, and when the last of them ends: numbers alone."""

import heapq
from collections.abc import Sequence
from itertools import groupby

from repro.runs.table import Cell


def makespan(seconds: Sequence[float], jobs: int) -> float:
    """Until the last run ends, where `jobs` workers take the runs in this order, each the next as it becomes free.

    Raises ValueError below one worker.
    """
    if jobs < 1:
        raise ValueError(f"jobs must be at least 1, got {jobs}.")
    free = [0.0] * min(jobs, max(1, len(seconds)))  # when each worker is; ends of runs, as a heap
    for one in seconds:
        heapq.heapreplace(free, free[0] + one)
    return max(free)


def ordered(cells: Sequence[Cell], seconds: Sequence[float], jobs: int) -> list[Cell]:
    """Seeds as they come, and within each the rows as they come, or longest first where the whole ends sooner so.

    `seconds` are those of the cells, one for one. A sweep that is stopped half way has whole seeds either way.
    """
    timed = list(zip(cells, seconds, strict=True))
    seeds = [list(of) for _, of in groupby(timed, lambda one: one[0].seed)]
    for i, rows in enumerate(seeds):
        longest_first = sorted(rows, key=lambda one: -one[1])
        otherwise = [*seeds[:i], longest_first, *seeds[i + 1 :]]
        if _whole(otherwise, jobs) < _whole(seeds, jobs) * (1 - 1e-9):  # by more than the rounding of a sum
            seeds = otherwise
    return [cell for rows in seeds for cell, _ in rows]


def _whole(seeds: Sequence[Sequence[tuple[Cell, float]]], jobs: int) -> float:
    return makespan([seconds for rows in seeds for _, seconds in rows], jobs)
