"""The rate of each system of the ladder is the one that was best on dev, as the published runs have it."""

import runpy
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest

from repro.results.frame import ResultSet
from repro.results.record import Record

ROOT = Path(__file__).parents[1]
FIRST = 1  # the seed that chooses


def best_factors(runs: Iterable[Record]) -> dict[str, float]:
    """Of each system that was trained at all its rates with the first seed: the factor of the lowest dev perplexity."""
    found: dict[str, dict[float, float]] = {}
    for run in runs:
        if run.seed == FIRST:
            name = run.row.partition(", rate x")[0]
            found.setdefault(name, {})[run.hyper["lr_factor"]] = run.score("dev", "ppl")
    return {name: min(of, key=of.__getitem__) for name, of in found.items() if len(of) == 3}


def test_the_ladder_has_the_factors_that_were_best(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "experiments"))
    rates = runpy.run_path(str(ROOT / "experiments" / "ladder_rates.py"))["ROWS"]
    ladder = runpy.run_path(str(ROOT / "experiments" / "ladder.py"))
    names = {row.name.partition(", rate x")[0] for row in rates}
    assert names == {"base", *ladder["SYSTEMS"]}
    assert len(rates) == 3 * len(names) - 1, "the base at its own rate is the base row"
    factors: Mapping[str, float] = ladder["FACTORS"]
    published = ResultSet.read(ROOT / "results" / "laptop").everything
    best = best_factors(run for run in published if run.table in ("base", "ladder_rates"))
    assert {name: factor for name, factor in best.items() if factor != 1} == factors
