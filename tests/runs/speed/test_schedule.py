"""Which run begins when, against every order there is."""

import itertools
import random

import pytest

from repro.model.config import BASE
from repro.runs.speed.schedule import makespan, ordered
from repro.runs.table import BASE_ROW, Cell
from repro.runs.task import Translation


def cell(position: int, seed: int) -> Cell:
    return Cell(table="t", position=position, row=BASE_ROW, hyper=BASE, seed=seed, task=Translation("en-de"))


def test_runs_go_to_whoever_is_free_first() -> None:
    assert makespan([3, 2, 2, 5], 1) == 12
    assert makespan([3, 2, 2, 5], 2) == 8  # 3 5 and 2 2
    assert makespan([2, 2, 3, 5], 2) == 7  # 2 3 and 2 5
    assert makespan([3, 2], 7) == 3
    assert makespan([], 2) == 0
    with pytest.raises(ValueError, match="at least 1, got 0"):
        makespan([1], 0)


def test_the_longest_come_first_where_that_ends_sooner() -> None:
    cells = [cell(place, 1) for place in range(3)]
    assert [one.position for one in ordered(cells, [1, 1, 2], 2)] == [2, 0, 1]  # 2, not 3
    assert ordered(cells, [1, 1, 2], 1) == cells  # one after the other is as long in any order
    assert ordered(cells, [2, 1, 1], 2) == cells
    assert ordered([], [], 2) == []
    five = [cell(place, 1) for place in range(5)]
    assert ordered(five, [0.1, 0.2, 0.3, 0.3, 0.1], 1) == five  # sums differ in their last digit, and no end does


def test_no_order_is_much_better_and_the_order_of_rows_never() -> None:
    random_ = random.Random(7)
    for _ in range(150):
        n_rows, n_seeds, jobs = random_.randint(1, 4), random_.randint(1, 2), random_.randint(1, 3)
        cells = [cell(place, seed) for seed in range(1, n_seeds + 1) for place in range(n_rows)]
        seconds = [float(random_.randint(1, 9)) for _ in cells]
        of = {(one.position, one.seed): time for one, time in zip(cells, seconds, strict=True)}

        def whole(order: list[Cell], jobs: int = jobs, of: dict[tuple[int, int], float] = of) -> float:
            return makespan([of[one.position, one.seed] for one in order], jobs)

        found = ordered(cells, seconds, jobs)
        assert [one.seed for one in found] == [one.seed for one in cells]  # a stopped sweep has whole seeds
        assert sorted(found, key=lambda one: (one.seed, one.position)) == cells
        assert whole(found) <= whole(cells)
        seeds = [[one for one in cells if one.seed == seed] for seed in range(1, n_seeds + 1)]
        orders = itertools.product(*(itertools.permutations(of_seed) for of_seed in seeds))
        best = min(whole([one for part in order for one in part]) for order in orders)
        # whatever the order, whoever is free takes the next: no end is later than this (Graham, 1966)
        assert whole(found) <= (2 - 1 / jobs) * best
        if n_seeds == 1:
            assert whole(found) <= (4 / 3 - 1 / (3 * jobs)) * best  # longest first (Graham, 1969)
