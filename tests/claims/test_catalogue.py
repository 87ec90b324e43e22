"""The list of claims holds together, and with it what the experiments print."""

import ast
import dataclasses
import json
import re
import runpy
from dataclasses import replace
from pathlib import Path

import pytest
from claims.test_judge import some
from printed_rows import PRINTED

from repro.claims import catalogue
from repro.claims.catalogue import B0, BLEU, CLAIMS, LISTED, STATEMENTS, Claim, catalogue_digest, held
from repro.claims.evidence import evidence_of
from repro.claims.judge import judge
from repro.model.config import BASE, Hyper
from repro.results.record import PaperNumbers
from repro.runs.scales import SCALES

ROOT = Path(__file__).parents[2]


def test_every_claim_of_the_paper_is_there_once() -> None:
    ids = [one.id for one in CLAIMS]
    every = [one.id for one in LISTED]
    assert len(every) == len({*every})
    assert {int(re.fullmatch(r"S(\d\d)[a-z]?", one.id)[1]) for one in STATEMENTS} == {*range(1, 42)}  # type: ignore[index]
    assert {int(re.fullmatch(r"C(\d\d)[a-z]?", id)[1]) for id in ids} >= set(range(1, 37))  # type: ignore[index]
    assert ids == sorted(ids), "in the paper's order"


def test_every_row_of_the_experiments_is_looked_at() -> None:
    of_table2 = {row for row in PRINTED if row.startswith("table2/") and row.endswith("en-fr")}  # printed scores alone
    assert {row for one in LISTED for row in one.rows if row in PRINTED} == {*PRINTED} - of_table2
    assert {*catalogue.TABLE3} == {row for row in PRINTED if not row.startswith(("table2/", "table4/"))}


def test_the_tests_that_settle_a_claim_exist() -> None:
    named = {tuple(test.split("::")) for one in LISTED for test in one.tests}
    trees = {file: ast.parse((ROOT / file).read_bytes()) for file in sorted({file for file, _ in named})}
    there = {
        (file, node.name) for file, tree in trees.items() for node in tree.body if isinstance(node, ast.FunctionDef)
    }
    assert named - there == set()


def test_every_claim_can_be_settled_or_says_what_is_missing() -> None:
    for one in LISTED:
        ways = [one.is_trained, one.compute is not None, bool(one.tests), bool(one.missing)]
        assert sum(ways) == 1, one.id
        assert one.where, one.id
        assert one.scale in catalogue.SCALE_ORDER, one.id
    assert tuple(SCALES) == catalogue.SCALE_ORDER
    assert {one.id for one in LISTED if one.chose == "laptop"} == {"C27a", "C30a", "C30e", "C31a", "C31b"}


def test_a_direction_is_what_the_paper_prints_and_a_laptop_judges_large_effects_only() -> None:
    large = {catalogue.LOG_PPL: 0.045, BLEU: 0.4999, catalogue.F1: 0.5}
    for one in CLAIMS:
        in_words = one.endpoints == (catalogue.ACCURACY,) or one.id in ("C12", "C44a", "C44b")  # no number to compare
        if one.kind == "direction" and not in_words:
            better, worse = (PRINTED[row] for row in one.rows)
            for endpoint in one.endpoints:
                difference = endpoint.printed(better) - endpoint.printed(worse)  # type: ignore[operator]
                assert difference > 0, one.id
                assert one.scale != "laptop" or difference >= large[endpoint], one.id
        if one.kind == "equivalence":
            assert one.scale == "paper", one.id


def test_the_hash_is_that_of_what_decides() -> None:
    assert re.fullmatch("[0-9a-f]{16}", catalogue_digest())
    reworded = (replace(CLAIMS[0], says="another"), *CLAIMS[1:])
    assert catalogue_digest(reworded) == catalogue_digest(CLAIMS)
    wider = tuple(replace(one, endpoints=(replace(BLEU, margin=0.5),)) if one.id == "C19" else one for one in CLAIMS)
    assert catalogue_digest(wider) != catalogue_digest(CLAIMS)
    assert catalogue_digest(CLAIMS[1:]) != catalogue_digest(CLAIMS)


# Sizes in the sentences of claims


@pytest.fixture(scope="module")
def changes() -> dict[str, object]:
    """ "table/row" -> its function of the base, from the experiment files."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "experiments")
        files = [runpy.run_path(str(file)) for file in sorted((ROOT / "experiments").glob("table3_*.py"))]
    rows = {f"{file['TABLE']}/{row.name}": row.change for file in files for row in file["ROWS"]}
    return {B0: lambda base: base} | rows


def hypers(changes: dict[str, object], base: Hyper) -> dict[str, dict[str, object]]:
    return {row: dataclasses.asdict(change(base)) for row, change in changes.items()}  # type: ignore[operator]


def claim(id: str) -> Claim:
    return next(one for one in CLAIMS if one.id == id)


def test_a_claim_names_the_papers_sizes_or_those_of_a_scale(changes: dict[str, object]) -> None:
    at_paper, base = hypers(changes, BASE), SCALES["laptop"].base
    for one in CLAIMS:
        assert not re.search("[{}]", one.sentence), one.id
        assert one.sentence_here(at_paper) == one.sentence_here({}) == one.sentence, one.id
    here = hypers(changes, base)
    assert claim("C29a").sentence == "Keys of size 16 are worse than of size 64"
    assert claim("C29a").sentence_here(here) == f"Keys of size {base.d_k // 4} are worse than of size {base.d_k}"
    assert claim("C30f").sentence_here(here) == f"A width of {2 * base.d_model} is better than {base.d_model}"
    assert claim("C29a").sentence_here({B0: here[B0]}) == claim("C29a").sentence  # the other row is not known
    every_scale = [hypers(changes, scale.base) for scale in SCALES.values()]
    sentences = [(one.sentence_here(here), one.sentence) for here in every_scale for one in CLAIMS]
    assert [one for one in sentences if len(one[0]) > len(one[1]) + 8] == [], "no noise of floating point"


# Statements of teaching texts


def test_their_rows_are_rows_of_experiments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "experiments")
    rows = {B0}
    for table in {row.split("/")[0] for one in LISTED for row in one.rows} - {"base"}:
        rows |= {f"{table}/{row.name}" for row in runpy.run_path(str(ROOT / f"experiments/{table}.py"))["ROWS"]}
    assert {row for one in LISTED for row in (*one.rows, *one.named)} <= rows


def test_they_take_no_level_from_a_claim_and_claims_none_from_them() -> None:
    base, of_the_paper = some(B0, bleu=25.0), some("table3_C/N=2", bleu=20.0)
    nothing = PaperNumbers(ppl=None, bleu=None, params=None)
    of_the_lab = [replace(one, paper=nothing) for one in some("lab_scores/dot", bleu=22.0)]
    together = evidence_of([*base, *of_the_paper, *of_the_lab])
    assert judge(together) == judge(evidence_of([*base, *of_the_paper]))
    assert judge(together, claims=STATEMENTS) == judge(evidence_of([*base, *of_the_lab]), claims=STATEMENTS)
    dot = next(one for one in judge(together, claims=STATEMENTS) if one.claim.id == "S13a")
    assert dot.verdict == "reproduced"


# All lists so far: a claim that comes later voids no run, and no list can be made up


def test_the_list_of_today_is_noted_and_a_list_holds_its_claims_as_they_were() -> None:
    assert catalogue_digest() in json.loads(catalogue.FILE.read_bytes()), "type python -m repro.claims.catalogue"
    first = CLAIMS[0]
    assert all(held(catalogue_digest(), one) for one in LISTED)
    assert held(catalogue_digest(), replace(first, says="in other words", chose="laptop"))
    assert not held(catalogue_digest(), replace(first, endpoints=(replace(BLEU, margin=7.0),)))
    assert not held("0" * 16, first)
    assert not held(None, first)


def test_an_older_list_stays_beside_that_of_today_and_an_edited_one_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "lists.json"
    file.write_text("{}")
    monkeypatch.setattr("repro.claims.catalogue.FILE", file)
    monkeypatch.setattr("repro.claims.catalogue.lists", catalogue.lists.__wrapped__)  # read anew
    older = catalogue.note(CLAIMS[1:])
    assert {*catalogue.lists()} == {older, catalogue_digest()}
    assert not held(older, CLAIMS[0])
    assert held(older, CLAIMS[1])
    assert catalogue.note() == catalogue_digest()
    assert {*json.loads(file.read_bytes())} == {older, catalogue_digest()}
    file.write_text(json.dumps({"a" * 16: [catalogue.claim_digest(claim) for claim in CLAIMS]}))
    with pytest.raises(ValueError, match="does not hold the claims it should"):
        catalogue.lists()
