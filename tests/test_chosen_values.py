"""The rates of the ladder and of Table 4, and its dropout, are those that were best on dev in the published runs."""

import runpy
from pathlib import Path
from typing import Any

import pytest

from repro.model.config import BASE
from repro.results.frame import ResultSet
from repro.results.record import Record

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
