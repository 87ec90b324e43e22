"""The rate and the dropout of Table 4's parsers are those of the best dev F1, as the published runs have it."""

import runpy
from pathlib import Path

import pytest

from repro.model.config import BASE
from repro.results.frame import ResultSet
from repro.runs.table import Row

ROOT = Path(__file__).parents[1]
FIRST = 1  # the seed that chooses


def test_table_4_has_the_values_that_were_best(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "experiments"))
    rows: dict[str, Row] = {row.name: row for row in runpy.run_path(str(ROOT / "experiments/table4_grid.py"))["ROWS"]}
    assert len({row.change(BASE) for row in rows.values()}) == len(rows) == 6
    published = ResultSet.read(ROOT / "results" / "laptop").everything
    of_grid = [run for run in published if run.table == "table4_grid" and run.seed == FIRST]
    assert {run.row for run in of_grid} == rows.keys()
    best = max(of_grid, key=lambda run: run.score("dev", "f1") or 0.0)
    parser = next(row for row in runpy.run_path(str(ROOT / "experiments/table4.py"))["ROWS"] if row.name == "WSJ only")
    assert parser.change(BASE) == rows[best.row].change(BASE)
