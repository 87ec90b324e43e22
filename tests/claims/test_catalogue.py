"""The list of claims holds together, and with it what the experiments print."""

import ast
import re
from dataclasses import replace
from pathlib import Path

import pytest
from printed_rows import PRINTED

from repro.claims.catalogue import CLAIMS, LISTED, SCALE_ORDER, STATEMENTS
from repro.claims.claim import ACCURACY, BLEU, F1, LOG_PPL, TABLE3, Claim
from repro.claims.lists import catalogue_digest
from repro.runs.scales import SCALES

ROOT = Path(__file__).parents[2]


def test_every_claim_of_the_paper_is_there_once() -> None:
    ids = [one.id for one in CLAIMS]
    every = [one.id for one in LISTED]
    assert len(every) == len({*every})
    assert {int(re.fullmatch(r"S(\d\d)[a-z]?", one.id)[1]) for one in STATEMENTS} == {*range(1, 37)}  # type: ignore[index]
    assert {int(re.fullmatch(r"C(\d\d)[a-z]?", id)[1]) for id in ids} >= set(range(1, 37))  # type: ignore[index]
    assert ids == sorted(ids), "in the paper's order"


def test_every_row_of_the_experiments_is_looked_at() -> None:
    of_table2 = {row for row in PRINTED if row.startswith("table2/") and row.endswith("en-fr")}  # printed scores alone
    assert {row for one in LISTED for row in one.rows if row in PRINTED} == {*PRINTED} - of_table2
    assert {*TABLE3} == {row for row in PRINTED if not row.startswith(("table2/", "table4/"))}


@pytest.mark.parametrize("one", [one for one in LISTED if one.tests], ids=lambda one: one.id)
def test_the_tests_that_settle_a_claim_exist(one: Claim) -> None:
    for test in one.tests:
        file, name = test.split("::")
        names = {
            node.name for node in ast.walk(ast.parse((ROOT / file).read_bytes())) if isinstance(node, ast.FunctionDef)
        }
        assert name in names, f"{one.id}: {test} is not there"


def test_every_claim_can_be_settled_or_says_what_is_missing() -> None:
    for one in LISTED:
        ways = [one.is_trained, one.compute is not None, bool(one.tests), bool(one.missing)]
        assert sum(ways) == 1, one.id
        assert one.where, one.id
        assert one.scale in SCALE_ORDER, one.id


def test_the_scales_are_those_of_the_suite() -> None:
    assert tuple(SCALES) == SCALE_ORDER


def is_printed(one: Claim) -> bool:
    """Whether the paper prints a number for it.

    Of the accuracy it only says that it improves.
    """
    return one.kind == "direction" and one.endpoints != (ACCURACY,)


def test_a_direction_is_what_the_paper_prints() -> None:
    assert [one.id for one in CLAIMS if one.kind == "direction" and not is_printed(one)] == ["C27f"]
    for one in CLAIMS:
        if is_printed(one):
            better, worse = (PRINTED[row] for row in one.rows)
            for endpoint in one.endpoints:
                assert endpoint.printed(better) > endpoint.printed(worse), one.id  # type: ignore[operator]


def test_a_laptop_judges_large_effects_only() -> None:
    for one in CLAIMS:
        if is_printed(one) and one.scale == "laptop":
            better, worse = (PRINTED[row] for row in one.rows)
            large = [
                endpoint.printed(better) - endpoint.printed(worse) >= {LOG_PPL: 0.045, BLEU: 0.4999, F1: 0.5}[endpoint]  # type: ignore[operator]
                for endpoint in one.endpoints
            ]
            assert all(large), one.id
        if one.kind == "equivalence":
            assert one.scale == "paper", one.id


def test_the_hash_is_that_of_what_decides() -> None:
    assert re.fullmatch("[0-9a-f]{16}", catalogue_digest())
    reworded = (replace(CLAIMS[0], says="another"), *CLAIMS[1:])
    assert catalogue_digest(reworded) == catalogue_digest(CLAIMS)
    wider = tuple(replace(one, endpoints=(replace(BLEU, margin=0.5),)) if one.id == "C19" else one for one in CLAIMS)
    assert catalogue_digest(wider) != catalogue_digest(CLAIMS)
    assert catalogue_digest(CLAIMS[1:]) != catalogue_digest(CLAIMS)
