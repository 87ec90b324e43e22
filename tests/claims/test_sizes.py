"""Claims that name sizes: the paper's by themselves, those of a scale where its rows are known."""

import dataclasses
import re
import sys
from pathlib import Path

import pytest
from paper_runs import direction

from repro.claims.catalogue import CLAIMS
from repro.claims.claim import B0, K16, Claim, filled, printed_sizes
from repro.claims.judge import evidence_of, judge
from repro.model.config import BASE, Hyper
from repro.results.frame import Listed
from repro.results.record import PaperNumbers
from repro.runs.scales import SCALES

ROOT = Path(__file__).parents[2]
SIZED = [claim for claim in CLAIMS if "{" in claim.says]


@pytest.fixture(scope="module")
def changes() -> dict[str, object]:
    """ "table/row" -> its function of the base, from the experiment files."""
    import runpy

    sys.path.insert(0, str(ROOT / "experiments"))
    try:
        files = [runpy.run_path(str(file)) for file in sorted((ROOT / "experiments").glob("table3_*.py"))]
    finally:
        sys.path.remove(str(ROOT / "experiments"))
    return {B0: lambda base: base} | {
        f"{file['TABLE']}/{row.name}": row.change for file in files for row in file["ROWS"]
    }


def hypers(changes: dict[str, object], base: Hyper) -> dict[str, dict[str, object]]:
    return {row: dataclasses.asdict(change(base)) for row, change in changes.items()}  # type: ignore[operator]


def claim(id: str) -> Claim:
    return next(one for one in CLAIMS if one.id == id)


@pytest.mark.parametrize(
    ("row", "field", "value"),
    [
        ("table3_B/d_k=16", "d_k", 16),
        ("table3_C/N=8", "n_layers", 8),
        ("table3_D/eps_ls=0.2", "label_smoothing", 0.2),
        ("table3_A/h=32", "n_heads", 32),
        ("base/base", "d_model", 512),
        ("table3_big/big", "d_model", 512),  # its name says no size
    ],
)
def test_a_rows_name_says_its_size(row: str, field: str, value: float) -> None:
    assert printed_sizes(row)[field] == value


def test_a_sentence_is_filled() -> None:
    made = filled("{worse.d_k} of {better.d_model:,}", {"d_model": 1024}, {"d_k": 16})
    assert made == "16 of 1,024"


def test_by_itself_a_claim_names_the_papers_sizes(changes: dict[str, object]) -> None:
    assert len(SIZED) >= 15
    at_paper = hypers(changes, BASE)
    for one in CLAIMS:
        assert not re.search("[{}]", one.sentence), one.id
        assert one.sentence_here(at_paper) == one.sentence_here({}) == one.sentence, one.id


def test_at_a_scale_it_names_those_of_the_scale(changes: dict[str, object]) -> None:
    here = hypers(changes, SCALES["laptop"].base)
    base = SCALES["laptop"].base
    assert claim("C29a").sentence == "Keys of size 16 are worse than of size 64"
    assert claim("C29a").sentence_here(here) == f"Keys of size {base.d_k // 4} are worse than of size {base.d_k}"
    assert claim("C30f").sentence_here(here) == f"A width of {2 * base.d_model} is better than {base.d_model}"
    assert claim("C28a").sentence_here(here) == claim("C28a").sentence
    assert claim("C29a").sentence_here({B0: here[B0]}) == claim("C29a").sentence  # the other row is not known


def test_a_row_that_was_not_run_is_named_by_the_size_that_it_would_have() -> None:
    paper = PaperNumbers(ppl=None, bleu=None, params=None)
    base, narrow = (Listed(0, paper, None, {"d_k": d_k}) for d_k in (8, 4))
    rows = {("base", "base"): base, ("table3_B", "d_k=32"): narrow}
    told = {one.claim.id: one.sentence for one in judge(evidence_of([]), rows)}
    assert told["C29b"] == "Keys of size 4 are worse than of size 8"
    assert told["C29a"] == claim("C29a").sentence, "the other row is not listed"


@pytest.mark.parametrize("scale", SCALES)
def test_every_scale_can_be_told(scale: str, changes: dict[str, object]) -> None:
    here = hypers(changes, SCALES[scale].base)
    for one in SIZED:
        assert "{" not in one.sentence_here(here)
        assert len(one.sentence_here(here)) <= len(one.sentence) + 8, "no noise of floating point"


def test_which_row_is_which() -> None:
    made = direction("C99", "1", "{worse.d_k} against {better.d_k}", B0, K16, scale="laptop")
    assert made.sentence == "16 against 64"
    assert made.sentence_here({B0: {"d_k": 8}, K16: {"d_k": 2}}) == "2 against 8"
