"""Two rows are compared over the seeds that both have: a seed decides order, dropout and first weights of every row.

Over different seeds a difference shows the seeds as well as the rows. Paper: none; it has one run of each row.
"""

import statistics
from collections.abc import Mapping
from typing import TypeVar

T = TypeVar("T")


def common(ours: Mapping[int, T], theirs: Mapping[int, T]) -> list[tuple[T, T]]:
    """What two rows have of each seed that both have, in the order of the seeds."""
    return [(ours[seed], theirs[seed]) for seed in sorted(ours.keys() & theirs.keys())]


def difference_over_common(ours: Mapping[int, float], theirs: Mapping[int, float]) -> float | None:
    """The mean of a row less that of another, over the seeds that both have; None where they share none."""
    if not (pairs := common(ours, theirs)):
        return None
    of_ours, of_theirs = zip(*pairs, strict=True)
    return statistics.fmean(of_ours) - statistics.fmean(of_theirs)
