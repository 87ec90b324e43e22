"""How many runs this machine bears: processors or GPUs, memory, and what was asked for; which of them begins when."""

from types import SimpleNamespace
from typing import Any

import pytest

from repro.runs import parallelism
from repro.runs.options import Options
from repro.runs.parallelism import makespan, ordered

GB = 10**9


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """Eight processors, no cards, and memory for a hundred runs; what a test changes of it."""
    of = SimpleNamespace(cards=0, free=100 * GB)
    monkeypatch.setattr(parallelism, "processors", lambda: 8)
    monkeypatch.setattr(parallelism, "visible", lambda environment: {str(i): "A card" for i in range(of.cards)})
    monkeypatch.setattr(parallelism, "memory_of", lambda *_: GB)
    monkeypatch.setattr(parallelism, "free_memory", lambda: of.free)
    return of


def run(seed: int = 1, n_heads: int = 8) -> Any:
    """As much of a run as is asked for."""
    return SimpleNamespace(spec=SimpleNamespace(seed=seed, hyper=SimpleNamespace(n_heads=n_heads)))


def asked(n_runs: int, **options: Any) -> tuple[int, str]:
    return parallelism.parallelism([run()] * n_runs, Options(**options))


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


def test_each_card_takes_one_run(machine: SimpleNamespace) -> None:
    machine.cards = 2
    assert asked(9)[0] == 2
    assert asked(9)[1].startswith("2 GPUs; ")
    assert asked(9, jobs=6) == (6, "--jobs")


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


def test_runs_go_to_whoever_is_free_first() -> None:
    assert makespan([3, 2, 2, 5], 1) == 12
    assert makespan([3, 2, 2, 5], 2) == 8  # 3 5 and 2 2
    assert makespan([3, 2], 7) == 3
    assert makespan([], 2) == 0


def test_of_each_seed_the_longest_come_first() -> None:
    runs = [run(seed) for seed in (7, 7, 7, 3, 3, 3)]
    seconds = [1, 1, 2, 4, 5, 4]
    assert ordered(runs, seconds, 2) == [2, 0, 1, 4, 3, 5]
    assert ordered(runs, seconds, 1) == [*range(6)]  # one after the other is as long in any order
    assert ordered([], [], 2) == []
    assert ordered([run(n_heads=1), run(n_heads=32)], [2, 2], 2) == [1, 0]
