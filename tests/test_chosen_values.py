"""Rates and dropout of the ladder and of Table 4 were the best on dev; the anchor is the published recipe."""

import runpy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from repro.model.config import BASE
from repro.model.cost import n_parameters
from repro.results.frame import ResultSet
from repro.results.record import Record
from repro.runs.scales import SCALES
from repro.training.module import rate

ROOT = Path(__file__).parents[1]
FIRST = 1  # the seed that chooses


@pytest.fixture
def experiment(monkeypatch: pytest.MonkeyPatch) -> Any:
    """What the experiment file of a name defines."""
    monkeypatch.syspath_prepend(str(ROOT / "experiments"))
    return lambda name: runpy.run_path(str(ROOT / "experiments" / f"{name}.py"))


@pytest.fixture(scope="module")
def published() -> list[Record]:
    """The published runs of the first seed."""
    return [run for run in ResultSet.read(ROOT / "results" / "laptop").everything if run.seed == FIRST]


def test_the_ladder_has_the_factors_that_were_best(experiment: Any, published: list[Record]) -> None:
    rates, ladder = experiment("ladder_rates")["ROWS"], experiment("ladder")
    names = {row.name.partition(", rate x")[0] for row in rates}
    assert names == {"base", *ladder["SYSTEMS"]}
    assert len(rates) == 3 * len(names) - 1, "the base at its own rate is the base row"
    found: dict[str, dict[float, Any]] = {}
    for run in published:
        if run.table in ("base", "ladder_rates"):
            of = found.setdefault(run.row.partition(", rate x")[0], {})
            of[run.hyper["lr_factor"]] = run.score("dev", "ppl")
    best = {name: min(of, key=of.__getitem__) for name, of in found.items() if len(of) == 3}
    assert {name: factor for name, factor in best.items() if factor != 1} == ladder["FACTORS"]


def test_table_4_has_the_values_that_were_best(experiment: Any, published: list[Record]) -> None:
    rows = {row.name: row for row in experiment("table4_grid")["ROWS"]}
    assert len({row.change(BASE) for row in rows.values()}) == len(rows) == 6
    of_grid = [run for run in published if run.table == "table4_grid"]
    assert {run.row for run in of_grid} == rows.keys()
    best = max(of_grid, key=lambda run: run.score("dev", "f1") or 0.0)
    parser = next(row for row in experiment("table4")["ROWS"] if row.name == "WSJ only")
    assert parser.change(BASE) == rows[best.row].change(BASE)


# The anchor is the published recipe, in numbers


[TINY] = runpy.run_path(str(Path(__file__).parents[1] / "experiments" / "anchor.py"))["ROWS"]


def test_the_rate_rises_to_five_thousandths_in_two_thousand_updates() -> None:
    made = TINY.at(replace(SCALES["captions"].base, steps=12_000), equal_updates=True)
    rates = [rate(step, made.d_model, made.warmup, made.lr_factor) for step in (1_000, 2_000, 8_000)]
    assert [round(one, 6) for one in rates] == [0.0025, 0.005, 0.0025]


def test_ten_checkpoints_lie_over_the_last_sixth_of_the_updates() -> None:
    made = TINY.at(replace(SCALES["captions"].base, steps=12_000), equal_updates=True)
    assert [*made.averaged_steps] == [10_200, 10_400, 10_600, 10_800, 11_000, 11_200, 11_400, 11_600, 11_800, 12_000]


def test_its_size_is_its_own_at_every_scale() -> None:
    attention, norm = 4 * (128**2 + 128), 2 * 128
    encoder = attention + norm + (2 * 128 * 256 + 256 + 128) + norm
    decoder = encoder + attention + norm
    for scale in SCALES.values():
        assert n_parameters(TINY.at(scale.base), vocab_size=7) == 4 * (encoder + decoder) + 7 * 128
