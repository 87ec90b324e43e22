"""The list of statements holds together, and takes no level from a claim of the paper."""

import ast
import re
import runpy
from dataclasses import replace
from pathlib import Path

import pytest
from claims.test_judge import some

from repro.claims.catalogue import LISTED, SCALE_ORDER, STATEMENTS
from repro.claims.claim import B0, Claim
from repro.claims.judge import evidence_of, judge
from repro.claims.lists import catalogue_digest, held
from repro.results.record import PaperNumbers

ROOT = Path(__file__).parents[2]


def test_every_statement_is_there_once_under_its_number() -> None:
    ids = [one.id for one in LISTED]
    assert len(ids) == len({*ids})
    assert {int(re.fullmatch(r"S(\d\d)[a-z]?", one.id)[1]) for one in STATEMENTS} == {*range(1, 37)}  # type: ignore[index]


def test_their_rows_are_rows_of_experiments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "experiments")
    rows = {B0}
    for table in {row.split("/")[0] for one in STATEMENTS for row in one.rows} - {"base"}:
        rows |= {f"{table}/{row.name}" for row in runpy.run_path(str(ROOT / f"experiments/{table}.py"))["ROWS"]}
    assert {row for one in STATEMENTS for row in (*one.rows, *one.named)} <= rows


@pytest.mark.parametrize("one", STATEMENTS, ids=lambda one: one.id)
def test_each_can_be_settled_or_says_what_is_missing(one: Claim) -> None:
    assert sum([one.is_trained, one.compute is not None, bool(one.tests), bool(one.missing)]) == 1
    assert one.scale in SCALE_ORDER
    for test in one.tests:
        file, name = test.split("::")
        tree = ast.parse((ROOT / file).read_bytes())
        assert name in {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def test_they_are_listed_with_the_claims() -> None:
    assert all(held(catalogue_digest(), one) for one in LISTED)


def test_they_take_no_level_from_a_claim_and_claims_none_from_them() -> None:
    base, of_the_paper = some(B0, bleu=25.0), some("table3_C/N=2", bleu=20.0)
    nothing = PaperNumbers(ppl=None, bleu=None, params=None)
    of_the_lab = [replace(one, paper=nothing) for one in some("lab_scores/dot", bleu=22.0)]
    together = evidence_of([*base, *of_the_paper, *of_the_lab])
    assert judge(together) == judge(evidence_of([*base, *of_the_paper]))
    assert judge(together, claims=STATEMENTS) == judge(evidence_of([*base, *of_the_lab]), claims=STATEMENTS)
    dot = next(one for one in judge(together, claims=STATEMENTS) if one.claim.id == "S13a")
    assert dot.verdict == "reproduced"
