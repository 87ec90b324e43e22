"""How many runs this machine bears: processors or GPUs, memory, and what was asked for."""

from typing import Any

import pytest

from repro.runs.options import Options
from repro.runs.scales import SCALES
from repro.runs.speed import at_once
from repro.runs.speed.at_once import fitting, runs_at_once

GB = 10**9


@pytest.mark.parametrize(
    ("n_runs", "threads", "n_gpus", "free", "expected"),
    [
        (9, 1, 0, 100 * GB, 8),  # processors
        (9, 3, 0, 100 * GB, 2),
        (9, 16, 0, 100 * GB, 1),
        (3, 1, 0, 100 * GB, 3),  # no more than there are
        (9, 1, 0, 5 * GB, 4),  # a tenth is left alone
        (9, 1, 0, GB // 2, 1),  # one is tried anyhow
        (9, 1, 2, 100 * GB, 2),  # a GPU each
        (9, 1, 0, None, 8),  # nobody says what is free
    ],
)
def test_as_many_as_fit(
    n_runs: int, threads: int, n_gpus: int, free: int | None, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(at_once, "processors", lambda: 8)
    n, why = fitting(n_runs, threads=threads, memory=GB, on_gpus=n_gpus, free=free)
    assert n == expected
    assert ("2 GPUs" if n_gpus else "8 processors") in why
    assert (free is not None) == ("of memory free, about 1.0 GB a run" in why)


def asked(n_runs: int, **options: Any) -> tuple[int, str]:
    cells: Any = [None] * n_runs
    return runs_at_once(cells, SCALES["smoke"], Options(**options))


def test_more_than_memory_bears_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(at_once, "cell_memory", lambda *_: GB)
    monkeypatch.setattr(at_once, "free_memory", lambda: 3 * GB)
    assert asked(9, jobs=3) == (3, "--jobs")
    assert asked(2, jobs=50) == (2, "--jobs")
    with pytest.raises(ValueError, match=r"--jobs 4: 4 runs at a time need about 4.0 GB .* 3.0 GB is free"):
        asked(9, jobs=4)


def test_runs_of_several_processes_are_made_one_at_a_time() -> None:
    assert asked(9, devices=2) == (1, "2 processes share each")
    assert asked(9, devices=2, jobs=1)[0] == 1
    with pytest.raises(ValueError, match="--jobs 3 and 2 processes a run: such runs go one at a time"):
        asked(9, devices=2, jobs=3)
