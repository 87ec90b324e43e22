"""How many runs this machine bears: processors or GPUs, memory, and what was asked for; which of them begins when."""

import itertools
import random
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from repro.model.config import BASE
from repro.runs import parallelism
from repro.runs.options import Options
from repro.runs.parallelism import makespan, ordered
from repro.runs.rates import row_of
from repro.runs.scales import SCALES
from repro.runs.table import BASE_ROW, Cell
from repro.runs.task import Translation

GB = 10**9
SMOKE = SCALES["smoke"]


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """Eight processors, no cards, and memory for a hundred runs; what a test changes of it."""
    of = SimpleNamespace(cards=0, free_there=None, peaks={}, free=100 * GB)
    monkeypatch.setattr(parallelism, "processors", lambda: 8)
    monkeypatch.setattr(parallelism, "visible", lambda environment: {str(i): "A card" for i in range(of.cards)})
    monkeypatch.setattr(parallelism, "free_on_cards", lambda environment: of.free_there)
    monkeypatch.setattr(parallelism, "cell_memory", lambda *_: GB)
    monkeypatch.setattr(parallelism, "free_memory", lambda: of.free)
    monkeypatch.setattr(parallelism, "card_peaks", lambda options: of.peaks)
    return of


def some(n_runs: int, width: int) -> list[Any]:
    """Cells of different rows of this width."""
    task, row = SimpleNamespace(at=lambda scale: scale), SimpleNamespace(system=None)
    hypers = [replace(SMOKE.base, d_model=width, dropout=i / 10) for i in range(n_runs)]
    return [SimpleNamespace(hyper=hyper, row=row, task=task) for hyper in hypers]


def asked(n_runs: int, width: int = 64, **options: Any) -> tuple[int, str]:
    return parallelism.parallelism(some(n_runs, width), SMOKE, Options(**options))


@pytest.mark.parametrize(
    ("n_runs", "threads", "free", "expected"),
    [
        (9, 1, 100 * GB, 8),
        (3, 1, 100 * GB, 3),  # no more than there are
        (9, 1, 5 * GB, 4),  # a tenth is left alone
        (9, 1, GB // 2, 1),  # one is tried anyhow
        (9, 3, 100 * GB, 2),
    ],
)
def test_as_many_as_processors_and_memory_bear(
    machine: SimpleNamespace, n_runs: int, threads: int, free: int, expected: int
) -> None:
    machine.free = free
    n, why = asked(n_runs, threads=threads)
    assert n == expected
    assert why.startswith(f"8 processors, {threads} a run; ")
    assert " of memory free, about 1.0 GB a run" in why


@pytest.mark.parametrize(
    ("n_cards", "free", "peaks", "width", "expected"),
    [
        (1, 40 * GB, [4 * GB] * 9, 128, 6),  # 4 * 1.25 + 1 GB each
        (1, 40 * GB, [GB] * 8 + [12 * GB], 128, 2),  # the largest counts
        (2, 40 * GB, [4 * GB] * 9, 128, 8),  # four processors for each card
        (1, 40 * GB, [4 * GB] * 8, 128, 1),  # one was never measured
        (1, 40 * GB, [4 * GB] * 9, 512, 1),  # such a row fills the card
        (1, None, [4 * GB] * 9, 128, 1),
    ],
)
def test_small_rows_share_a_card_by_measured_memory(
    machine: SimpleNamespace, n_cards: int, free: int | None, peaks: list[int], width: int, expected: int
) -> None:
    rows = [row_of(vars(cell.hyper), None) for cell in some(9, width)]
    machine.cards, machine.free_there = n_cards, free
    machine.peaks = {(row, SMOKE.batch_tokens): of for row, of in zip(rows, peaks, strict=False)}
    n, why = asked(9, width)
    assert n == expected
    assert why.startswith(f"{n_cards} GPU")
    assert ("on each" in why) == (expected > n_cards)
    machine.peaks = {(row, SMOKE.batch_tokens // 2): GB for row in rows}
    assert asked(9, width)[0] == n_cards, "a peak of smaller updates says nothing"


def test_more_than_memory_bears_is_refused(machine: SimpleNamespace) -> None:
    machine.free = 3 * GB
    assert asked(9, jobs=3) == (3, "--jobs")
    assert asked(2, jobs=50) == (2, "--jobs")
    with pytest.raises(ValueError, match=r"--jobs 4: 4 runs at a time need about 4.0 GB .* 3.0 GB is free"):
        asked(9, jobs=4)


def test_runs_of_several_processes_are_made_one_at_a_time() -> None:
    assert asked(9, devices=2) == (1, "2 processes share each")
    assert asked(9, devices=2, jobs=1)[0] == 1
    with pytest.raises(ValueError, match="--jobs 3 and 2 processes a run: such runs go one at a time"):
        asked(9, devices=2, jobs=3)


def cell(position: int, seed: int) -> Cell:
    return Cell(table="t", position=position, row=BASE_ROW, hyper=BASE, seed=seed, task=Translation("en-de"))


def test_runs_go_to_whoever_is_free_first() -> None:
    assert makespan([3, 2, 2, 5], 1) == 12
    assert makespan([3, 2, 2, 5], 2) == 8  # 3 5 and 2 2
    assert makespan([3, 2], 7) == 3
    assert makespan([], 2) == 0


def test_of_each_seed_the_longest_come_first() -> None:
    cells = [cell(place, seed) for seed in (7, 3) for place in range(3)]
    seconds = [1, 1, 2, 4, 5, 4]
    found = ordered(cells, seconds, 2)
    assert [(one.seed, one.position) for one in found] == [(7, 2), (7, 0), (7, 1), (3, 1), (3, 0), (3, 2)]
    assert ordered(cells, seconds, 1) == cells  # one after the other is as long in any order
    assert ordered([], [], 2) == []


def test_no_order_of_the_rows_is_much_better() -> None:
    random_ = random.Random(7)
    for _ in range(150):
        n_rows, jobs = random_.randint(1, 5), random_.randint(1, 3)
        times = {cell(place, 1): float(random_.randint(1, 9)) for place in range(n_rows)}
        found = makespan([times[one] for one in ordered([*times], [*times.values()], jobs)], jobs)
        best = min(makespan(order, jobs) for order in itertools.permutations(times.values()))
        assert found <= (4 / 3 - 1 / (3 * jobs)) * best  # longest first (Graham, 1969)
