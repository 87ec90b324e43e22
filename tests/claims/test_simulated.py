"""What docs/claims.md says of error rates is what the simulation recorded, of the list of today."""

import json
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from benchmark_files import opened

from repro.claims.catalogue import B0, BLEU, catalogue_digest
from repro.claims.decisions import FIRST_SEED, SEEDS

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def verdicts() -> ModuleType:
    return opened("verdicts")


def test_the_page_is_that_of_the_record_and_of_this_list(verdicts: ModuleType) -> None:
    record = json.loads(verdicts.RECORD.read_bytes())
    page = (ROOT / "docs" / "claims.md").read_text("utf-8")
    assert verdicts.rendered(page, record) == page, "python benchmarks/verdicts.py --render"
    assert record["claims"] == catalogue_digest(), "python benchmarks/verdicts.py measures again"
    promised = {world.name for world in verdicts.WORLDS}
    wrong = {(one["world"], one["shared"]): one["wrong"] for one in record["lines"] if one["world"] in promised}
    assert len(wrong) == 2 * len(promised)
    assert max(wrong.values()) <= 0.05


def test_pages_are_drawn_as_their_world_says(verdicts: ModuleType) -> None:
    world, random = verdicts.World(name="x", size=-2.0), np.random.default_rng(1)
    assert verdicts.truth(world, BLEU, B0) == 25.8
    assert verdicts.truth(world, BLEU, "table3_A/h=1") == pytest.approx(25.8 + 1.8)
    runs = verdicts.drawn(world, random, shared=True)["BLEU"]
    full = {row: of for row, of in runs.items() if len(of) == SEEDS}
    assert len(runs) - len(full) == verdicts.LOST
    assert {*runs[B0]} <= {*range(FIRST_SEED, FIRST_SEED + SEEDS)}


def test_a_wrong_page_and_a_right_one_are_told_apart(verdicts: ModuleType) -> None:
    found = verdicts.count(verdicts.World(name="shifted", shift=20.0), 2, 1, shared=True)
    assert found["wrong"] == 1.0
    found = verdicts.count(verdicts.World(name="as printed, and clear", size=60.0), 2, 1, shared=True)
    assert (found["wrong"], found["found"]["C30a"]) == (0.0, 1.0)
