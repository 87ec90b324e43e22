"""How many runs this machine bears: processors or GPUs, memory, and what was asked for."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from repro.runs.options import Options
from repro.runs.scales import SCALES
from repro.runs.speed import parallelism
from repro.runs.speed.parallelism import fitting
from repro.runs.speed.rates import row_of

GB = 10**9
SMOKE = SCALES["smoke"]


@pytest.mark.parametrize(
    ("n_runs", "at_a_time", "free", "expected"),
    [
        (9, 8, 100 * GB, 8),
        (3, 8, 100 * GB, 3),  # no more than there are
        (9, 8, 5 * GB, 4),  # a tenth is left alone
        (9, 8, GB // 2, 1),  # one is tried anyhow
        (9, 8, None, 8),  # nobody says what is free
    ],
)
def test_as_many_as_fit(n_runs: int, at_a_time: int, free: int | None, expected: int) -> None:
    n, why = fitting(n_runs, at_a_time, "8 processors", memory=GB, free=free)
    assert n == expected
    assert why.startswith("8 processors")
    assert (free is not None) == ("of memory free, about 1.0 GB a run" in why)


@pytest.mark.parametrize(("threads", "expected"), [(1, 8), (3, 2), (8, 1), (16, 1)])
def test_a_run_has_its_processors(threads: int, expected: int, monkeypatch: pytest.MonkeyPatch) -> None:
    on_machine(monkeypatch, 0, None, {})
    assert asked(9, threads=threads)[0] == expected


def on_machine(monkeypatch: pytest.MonkeyPatch, n_cards: int, free: int | None, peaks: dict[Any, int]) -> None:
    """Eight processors, so many cards with so much free, and what is known of rows there."""
    monkeypatch.setattr(parallelism, "processors", lambda: 8)
    monkeypatch.setattr(parallelism, "visible", lambda environment: {str(i): "A card" for i in range(n_cards)})
    monkeypatch.setattr(parallelism, "free_on_cards", lambda environment: free)
    monkeypatch.setattr(parallelism, "cell_memory", lambda *_: GB)
    monkeypatch.setattr(parallelism, "free_memory", lambda: 100 * GB)
    monkeypatch.setattr(parallelism, "card_peaks", lambda *_: peaks)


@pytest.mark.parametrize(
    ("n_cards", "free", "peaks", "width", "expected"),
    [
        (1, 40 * GB, [4 * GB] * 9, 128, 6),  # 4 * 1.25 + 1 GB each
        (1, 40 * GB, [4 * GB] * 9, 256, 6),
        (1, 40 * GB, [GB] * 8 + [12 * GB], 128, 2),  # the largest counts
        (2, 40 * GB, [4 * GB] * 9, 128, 8),  # four processors for each card
        (1, 40 * GB, [4 * GB] * 8, 128, 1),  # one was never measured
        (1, 40 * GB, [4 * GB] * 9, 512, 1),  # such a row fills the card
        (1, None, [4 * GB] * 9, 128, 1),
        (3, 4 * GB, [4 * GB] * 9, 128, 3),
    ],
)
def test_small_rows_share_a_card_by_measured_memory(
    monkeypatch: pytest.MonkeyPatch, n_cards: int, free: int | None, peaks: list[int], width: int, expected: int
) -> None:
    rows = [row_of(vars(cell.hyper), None) for cell in some(9, width)]
    on_machine(
        monkeypatch, n_cards, free, {(row, SMOKE.batch_tokens): of for row, of in zip(rows, peaks, strict=False)}
    )
    n, why = asked(9, width)
    assert n == expected
    assert why.startswith(f"{n_cards} GPU")
    assert ("on each" in why) == (expected > n_cards or free == 4 * GB)


def test_a_peak_of_smaller_updates_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [row_of(vars(cell.hyper), None) for cell in some(9, 128)]
    on_machine(monkeypatch, 1, 40 * GB, {(row, SMOKE.batch_tokens // 2): GB for row in rows})
    assert asked(9, 128)[0] == 1


def some(n_runs: int, width: int) -> list[Any]:
    """Cells of different rows of this width."""
    task, row = SimpleNamespace(at=lambda scale: scale), SimpleNamespace(system=None)
    hypers = [replace(SMOKE.base, d_model=width, dropout=i / 10) for i in range(n_runs)]
    return [SimpleNamespace(hyper=hyper, row=row, task=task) for hyper in hypers]


def asked(n_runs: int, width: int = 64, **options: Any) -> tuple[int, str]:
    return parallelism.parallelism(some(n_runs, width), SMOKE, Options(**options))


def test_more_than_memory_bears_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallelism, "cell_memory", lambda *_: GB)
    monkeypatch.setattr(parallelism, "free_memory", lambda: 3 * GB)
    assert asked(9, jobs=3) == (3, "--jobs")
    assert asked(2, jobs=50) == (2, "--jobs")
    with pytest.raises(ValueError, match=r"--jobs 4: 4 runs at a time need about 4.0 GB .* 3.0 GB is free"):
        asked(9, jobs=4)


def test_runs_of_several_processes_are_made_one_at_a_time() -> None:
    assert asked(9, devices=2) == (1, "2 processes share each")
    assert asked(9, devices=2, jobs=1)[0] == 1
    with pytest.raises(ValueError, match="--jobs 3 and 2 processes a run: such runs go one at a time"):
        asked(9, devices=2, jobs=3)
