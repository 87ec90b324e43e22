"""The simulated pages of verdicts: how noisy their rows are, and what the section that is made of them says of it."""

import json
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from benchmark_files import opened

from repro.claims.claim import B0
from repro.claims.judge import Suite
from repro.claims.statistics import Sample

ROOT = Path(__file__).parent.parent
BIG, DROP_0, DROP_2 = "table3_big/big", "table3_D/P_drop=0.0", "table3_D/P_drop=0.2"
STEPS = (-2.0, -1.0, 0.0, 1.0, 2.0)
SD = 2.5**0.5  # of the steps
OF_ROWS = {"log PPL": 0.01, "BLEU": 0.3}  # a step


@pytest.fixture(scope="module")
def verdicts() -> ModuleType:
    return opened("verdicts")


def measured(verdicts: ModuleType, monkeypatch: pytest.MonkeyPatch, wider: Mapping[tuple[str, str], float]) -> Any:
    """The spreads of a scale whose rows have the same, but for those that are so many times `wider`."""
    rows = {row for claim in verdicts.TRAINED for row in claim.rows if not row.startswith(("table2", "table4"))}
    runs = {
        name: {
            row: Sample(values=tuple(unit * wider.get((name, row), 1.0) * step for step in STEPS))
            for row in sorted(rows)
        }
        for name, unit in (OF_ROWS | dict.fromkeys(verdicts.ENDPOINTS.keys() - OF_ROWS.keys(), 0.01)).items()
    }
    monkeypatch.setattr(verdicts, "suite", lambda _, look: Suite(scale="laptop", runs=runs, printed={}, look=look))
    monkeypatch.setattr(verdicts, "published_seeds", lambda _: {})
    return verdicts.measured_spreads("laptop")


def shares(verdicts: ModuleType, spreads: Any) -> Mapping[str, float]:
    """How often each claim is found where seeds differ like that."""
    of = verdicts.of_published({"laptop": spreads})[0]
    assert of.world.name == verdicts.AS_MEASURED
    found: Mapping[str, float] = verdicts.count(of.world, of.scale, 20, of.seed)["found"]
    return found


def test_a_claim_on_a_row_that_is_not_pooled_is_found_as_seldom_as_its_seeds_differ(
    verdicts: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    even = shares(verdicts, measured(verdicts, monkeypatch, {}))
    assert (even["C30n"], even["C31b"]) == (1.0, 1.0)
    big = shares(verdicts, measured(verdicts, monkeypatch, {(name, BIG): 10.0 for name in OF_ROWS}))
    assert (big["C30n"] < 0.3, big["C31b"]) == (True, 1.0), "big against the base, and two other rows"


def test_only_rows_that_are_not_pooled_are_drawn_with_their_own_spread(
    verdicts: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    # P_drop=0.2 is found on BLEU alone, P_drop=0.0 is wider than the others by no more than chance may make it
    wider = {("BLEU", DROP_2): 10.0, ("log PPL", DROP_2): 1.5, ("BLEU", DROP_0): 1.5, ("BLEU", B0): 0.5}
    spreads = measured(verdicts, monkeypatch, wider)
    assert spreads.own["BLEU"] == pytest.approx({B0: 0.15 * SD, DROP_2: 3.0 * SD})
    assert spreads.own["log PPL"] == pytest.approx({B0: 0.01 * SD, DROP_2: 0.015 * SD})
    world = verdicts.of_published({"laptop": spreads})[0].world
    for row, times in ((B0, 0.5), (DROP_2, 10.0), (DROP_0, None), (BIG, None)):
        expected = spreads.pooled["BLEU"] if times is None else times * 0.3 * SD
        assert world.unit(verdicts.ENDPOINTS["BLEU"], row) == pytest.approx(expected)
    assert 0.3 * SD < spreads.pooled["BLEU"] < 0.33 * SD, "of P_drop=0.0 too"


def test_the_page_says_what_the_record_says(verdicts: ModuleType) -> None:
    record, text = json.loads(verdicts.RECORD.read_bytes()), verdicts.PAGE.read_bytes().decode()
    assert verdicts.rendered(text, record) == text, "run python benchmarks/verdicts.py --render"
    for scale, own in record["own_spreads"].items():
        assert f"`{scale}`: base {own['BLEU'][B0]:.2f} and {own['log PPL'][B0]:.4f}" in text
    assert f", big {record['own_spreads']['laptop']['BLEU'][BIG]:.2f} and " in text
