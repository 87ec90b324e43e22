"""The list of statements holds together, and takes no level from a claim of the paper."""

import runpy
from dataclasses import replace
from pathlib import Path

import pytest
from claims.test_judge import some

from repro.claims.catalogue import LISTED, STATEMENTS
from repro.claims.claim import B0
from repro.claims.judge import evidence_of, judge
from repro.claims.lists import catalogue_digest, held
from repro.results.record import PaperNumbers

ROOT = Path(__file__).parents[2]


def test_their_rows_are_rows_of_experiments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "experiments")
    rows = {B0}
    for table in {row.split("/")[0] for one in STATEMENTS for row in one.rows} - {"base"}:
        rows |= {f"{table}/{row.name}" for row in runpy.run_path(str(ROOT / f"experiments/{table}.py"))["ROWS"]}
    assert {row for one in STATEMENTS for row in (*one.rows, *one.named)} <= rows


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
