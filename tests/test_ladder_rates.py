"""The rate of each system of the ladder is the one that was best on dev, as the published runs have it."""

import math
import runpy
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from paper_runs import changed, paper_run, perplexity

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


def rates_run(row: str, factor: float, ppl: float, seed: int = FIRST) -> Record:
    run = paper_run(row, "ladder_rates", seed=seed, hyper=changed(lr_factor=factor))
    return replace(run, scores={**run.scores, "dev": {**run.scores["dev"], **perplexity(math.log(ppl))}})


def test_the_lowest_perplexity_of_the_first_seed_decides() -> None:
    of_simple = [rates_run(f"simple, rate x {of:g}", of, ppl) for of, ppl in ((0.5, 9.0), (1, 7.0), (2, 8.0))]
    others = [rates_run("base", 1, 3.0), rates_run("base, rate x 2", 2, 2.0), rates_run("simple, rate x 2", 2, 1.0, 4)]
    assert best_factors([*of_simple, *others]) == {"simple": 1}
    assert best_factors([*of_simple, *others, rates_run("base, rate x 0.5", 0.5, 4.0)]) == {"simple": 1, "base": 2}


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
