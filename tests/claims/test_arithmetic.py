"""What the paper's own numbers come to, each held against a sum that a reader can do."""

import re
from dataclasses import replace

import pytest
from printed_rows import PRINTED

from repro.claims import arithmetic
from repro.claims.arithmetic import BASE_MODEL, BIG_MODEL, CHECKS, LADDERS, Checked, PrintedRows
from repro.claims.catalogue import B0, CLAIMS, LISTED
from repro.paper import Hardware
from repro.results.record import PaperNumbers

SIZES = {B0, *(row for row in PRINTED if row.startswith("table3_C/"))}


def computed(id: str, printed: PrintedRows = PRINTED) -> Checked:
    """What a claim's numbers come to."""
    return CHECKS[next(one.compute for one in LISTED if one.id == id) or ""](printed)


@pytest.mark.parametrize(
    ("id", "holds", "words"),
    [
        ("C01a", True, "28.4 - 26.36 (ConvS2S Ensemble) = 2.04"),
        ("C02a", True, "41.8 and 41.0"),
        ("C03b", True, "3.3e18 / 9.6e18 (ConvS2S) = 0.34"),
        ("C04", True, "= 0.19"),
        ("C17b", False, "9,647 x 2 pi"),
        ("C28a", True, "25.8 (base) - 24.9 = 0.9"),
        ("C32a", True, "91.3 against 90.4"),
        ("C32b", False, "stand Dyer et al. (2016), generative: 93.3; Luong et al. (2015), multi-task: 93.0"),
        # 12 x 3,600 / 100,000 = 0.432, printed as 0.4; 3.5 x 86,400 / 300,000 = 1.008, printed as 1.0
        ("C03e", True, "12 hours / 100,000 steps = 0.432 s, printed 0.4 s"),
        ("C03e", True, "100,000 x 0.4 s = 11.1 hours = 0.46 days"),
        ("C03f", True, "84 hours / 300,000 steps = 1.008 s, printed 1.0 s"),
        ("C03f", True, "300,000 x 1.0 s = 83.3 hours = 3.47 days"),
        ("S35", False, "two editions print two numbers: 41.8 in the abstract and Table 2 of one, 41.0 in the other"),
        ("C30d", True, "d_ff=4096 has 26.2 and d_ff=1024 25.4; though N=8 has 25.5 and base 25.8"),
        ("C30p", True, "PPL: N=8 has 4.88 and N=2 6.11; d_model=1024 has 4.66"),
        ("S36", False, "3 are announced; described are residual dropout and label smoothing"),
        # 8 x 0.5 x 86,400 x 9.5e12 = 3.28e18 and 8 x 3.5 x 86,400 x 9.5e12 = 2.30e19
        ("C43a", True, "Transformer (base model) en-de 3.3e18, printed 3.3e18"),
        ("C43a", True, "Transformer (big) en-fr 2.3e19, printed 2.3e19"),
        ("C43b", True, "GNMT + RL en-de 2.3e19, printed 2.3e19; GNMT + RL en-fr 1.4e20, printed 1.4e20; MoE en-de"),
        ("C43c", True, "ConvS2S Ensemble en-de 7.7e19, printed 7.7e19"),
        ("C43c", True, "Deep-Att + PosUnk Ensemble en-fr 8.0e20, printed 8.0e20"),
    ],
)
def test_what_the_papers_numbers_come_to(id: str, holds: bool, words: str) -> None:
    found, text = computed(id)
    assert found is holds
    assert words in text


def test_every_check_settles_a_claim_and_what_was_fitted_or_is_not_known_confirms_nothing() -> None:
    assert {one.compute for one in LISTED if one.compute} == {*CHECKS}
    assert not re.search("ConvS2S|Deep-Att", computed("C43b")[1])
    [apart] = [one for one in CLAIMS if one.id == "C43d"]
    assert "fitted" in apart.missing


@pytest.mark.parametrize(("days", "holds"), [(0.45, True), (0.52, True), (0.53, False), (0.40, False)])
def test_a_step_time_is_compared_to_its_digit(days: float, holds: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    # 0.4 s of 100,000 steps are anything from 0.35 s (0.405 days) to 0.45 s (0.52 days)
    hardware = {"en-de": Hardware(n_gpus=8, gpu="P100", days=days)}
    monkeypatch.setattr(arithmetic, "BASE_MODEL", replace(BASE_MODEL, hardware=hardware))
    assert computed("C03e")[0] is holds


def test_one_cost_beside_its_print_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arithmetic, "BIG_MODEL", replace(BIG_MODEL, flops={"en-de": 2.2e19, "en-fr": 2.3e19}))
    assert not computed("C43a")[0]


def test_every_step_in_size_is_looked_at() -> None:
    assert sum(len(ladder) - 1 for ladder in LADDERS) == 7
    assert {row for ladder in LADDERS for row in ladder} == SIZES
    same: PrintedRows = {row: PaperNumbers(ppl=5.0, bleu=25.0, params=None) for row in SIZES}
    holds, text = computed("C30p", same)
    assert (holds, text.count("though")) == (False, 7)
