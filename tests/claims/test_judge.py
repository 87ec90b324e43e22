"""Verdicts are what the records say: suites of which the truth is known, and records with one fault each."""

import hashlib
import math
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from paper_runs import told_apart
from printed_rows import PRINTED

from repro.claims import judge as judging
from repro.claims import lists as lists_of_claims
from repro.claims.catalogue import CLAIMS
from repro.claims.claim import (
    B0,
    BLEU,
    BOTH,
    D256,
    DROP_0,
    H1,
    H32,
    K16,
    LOG_PPL,
    N2,
    N4,
    N8,
    TABLE3,
    TEST_BLEU,
    Claim,
)  # fmt: skip
from repro.claims.decisions import BASE_SEEDS, FIRST_SEED, LOOKS, Look
from repro.claims.evidence import needed
from repro.claims.judge import Judged, Suite, evidence_of, judge_suite, may_judge
from repro.claims.lists import catalogue_digest, claim_digest
from repro.claims.statistics import Sample, t_value
from repro.model.config import BASE
from repro.results.record import PaperNumbers, Record

ROOT = Path(__file__).parents[2]


def claim(id: str) -> Claim:
    return next(one for one in CLAIMS if one.id == id)


def of(results: Sequence[Judged], id: str) -> Judged:
    return next(one for one in results if one.claim.id == id)


# What the paper's own numbers say


@pytest.mark.parametrize(
    ("id", "verdict", "words"),
    [
        ("C01a", "consistent", "28.4 - 26.36 (ConvS2S Ensemble) = 2.04"),
        ("C02a", "consistent", "41.8 and 41.0"),
        ("C02b", "not consistent", "+0.51 or -0.29 against the 41.29 of ConvS2S Ensemble"),
        ("C03b", "consistent", "3.3e18 / 9.6e18 (ConvS2S) = 0.34"),
        ("C03e", "consistent", "0.432 s, printed 0.4 s"),
        ("C04", "consistent", "= 0.19"),
        ("C17b", "not consistent", "9,647 x 2 pi"),
        ("C28a", "consistent", "25.8 (base) - 24.9 = 0.9"),
        ("C30d", "not consistent", "N=8 has 25.5 and base 25.8"),
        ("C32a", "consistent", "91.3 against 90.4"),
        ("C32b", "not consistent", "Luong et al. (2015), multi-task: 93.0"),
    ],
)
def test_what_the_papers_own_numbers_say(id: str, verdict: str, words: str) -> None:
    result = of(
        judge_suite(Suite(scale="smoke", runs={one.name: {} for one in (*BOTH, *ENDPOINTS)}, printed=PRINTED)), id
    )
    assert result.verdict == verdict
    assert words in result.reason


# not a set: its order would be another in every process, and with it the numbers drawn
ENDPOINTS = dict.fromkeys(endpoint for one in CLAIMS for endpoint in one.endpoints)


# Suites whose truth is known

Truth = Mapping[str, float]


def made(
    better: Truth,
    *,
    scale: str = "paper",
    n: int = 5,
    s: float = 0.15,
    seed: int = 1,
    printed: Mapping[str, Any] = PRINTED,
) -> Suite:
    """Runs with these true scores, more is better: BLEU as given, log PPL a thirtieth of it. Base has its eight."""
    random = np.random.default_rng(seed)
    runs: dict[str, dict[str, Sample]] = {}
    for endpoint in sorted(ENDPOINTS, key=lambda one: one.name):  # the same numbers in every process
        unit = 1 / 30 if endpoint.score == "nll" else 1.0
        runs[endpoint.name] = {
            row: Sample(values=tuple(unit * (score + s * random.standard_normal(BASE_SEEDS if row == B0 else n))))
            for row, score in better.items()
        }
    return Suite(scale=scale, runs=runs, printed=printed)


FLAT: Truth = dict.fromkeys(PRINTED, 25.0)
AS_PRINTED: Truth = {row: paper["bleu"] for row, paper in PRINTED.items() if paper["bleu"] is not None}


def test_a_suite_as_the_paper_prints_it_reproduces_what_can_be_seen() -> None:
    results = judge_suite(made(AS_PRINTED, s=0.05))
    for id in ("C28b", "C29a", "C29c", "C30a", "C30i", "C30n", "C31a"):
        assert of(results, id).verdict == "reproduced", of(results, id).reason


def test_families_point_values_and_magnitudes_are_judged_by_what_the_paper_prints() -> None:
    results = judge_suite(made(AS_PRINTED, s=0.05))
    assert [of(results, id).verdict for id in ("C28e", "C01b", "C03c")] == ["reproduced", "consistent", "consistent"]
    assert "may be best: base/base, table3_A/h=16" in of(results, "C28e").reason
    assert of(results, "C01b").found[0].value == pytest.approx(28.4, abs=0.1)  # as it is printed, not a difference
    assert of(results, "C28f").found[1].verdict.outcome == "consistent"  # 0.9 BLEU of a single head
    otherwise = made({**AS_PRINTED, H1: 27.0}, s=0.05)
    assert [of(judge_suite(otherwise), id).verdict for id in ("C28e", "C28f")] == ["contradicted", "not consistent"]
    assert of(judge_suite(replace(otherwise, scale="captions")), "C28e").verdict == "opposite sign"


def test_a_suite_in_which_nothing_matters_finds_nothing() -> None:
    results = judge_suite(made(FLAT, n=20))
    assert {one.verdict for one in results if one.claim.kind in ("direction", "trend")} == {"inconclusive"}
    assert of(results, "C19").verdict == "reproduced"


@pytest.mark.parametrize("size", [0.25, 0.5])
def test_true_effects_of_the_right_sign_are_never_contradicted_for_being_small(size: float) -> None:
    # the paper is right about each sign, and prints twice or four times too much; measured very well
    truth = {row: AS_PRINTED[B0] + size * (bleu - AS_PRINTED[B0]) for row, bleu in AS_PRINTED.items()}
    for scale, no in (("laptop", "opposite sign"), ("captions", "opposite sign"), ("paper", "contradicted")):
        results = judge_suite(made(truth, scale=scale, s=0.02))
        signs = [one for one in results if one.claim.kind in ("direction", "trend")]
        assert not [one.claim.id for one in signs if one.verdict == no and one.claim.id not in WRONG_WAY_ROUND]
        assert sum(one.verdict in ("reproduced", "same sign") for one in signs) > 5


# log PPL here is a thirtieth of BLEU, and of these the paper prints the opposite sign
WRONG_WAY_ROUND = {"C27a", "C27b", "C30c"}


def test_effects_the_other_way_round_are_found() -> None:
    reversed_ = {row: 2 * AS_PRINTED[B0] - bleu for row, bleu in AS_PRINTED.items()}
    results = judge_suite(made(reversed_, scale="captions", s=0.1))
    for id in ("C28b", "C29a", "C29c", "C30a", "C30e", "C30j", "C30n"):
        assert of(results, id).verdict == "opposite sign", of(results, id).reason


@pytest.mark.parametrize("scale", ["smoke", "laptop", "captions", "single_gpu"])
def test_below_the_papers_scale_no_trained_row_reproduces_or_contradicts_anything(scale: str) -> None:
    for truth in (AS_PRINTED, FLAT):
        trained = [one for one in judge_suite(made(truth, scale=scale, s=0.02)) if one.claim.is_trained]
        assert {one.verdict for one in trained} <= {"same sign", "opposite sign", "open", "not judged"}


def test_wrong_verdicts_are_as_rare_as_promised() -> None:
    # all rows are equal and the base, in most comparisons, is three times as noisy; benchmarks/verdicts.py has more
    trained = [one for one in CLAIMS if one.is_trained and one.scale in ("laptop", "smoke")]
    n_pages, wrong = 60, 0
    for seed in range(n_pages):
        page = made(FLAT, scale="laptop", seed=seed)
        random = np.random.default_rng(1_000 + seed)
        for name, rows in page.runs.items():
            unit = 1 / 30 if "PPL" in name else 1.0
            rows[B0] = Sample(values=tuple(unit * (25 + 0.45 * random.standard_normal(8))))  # type: ignore[index]
        looks = [judge_suite(at(page, look), trained) for look in LOOKS]
        wrong += any(one.verdict in ("same sign", "opposite sign") for results in looks for one in results)
    assert wrong / n_pages <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / n_pages)


def at(page: Suite, look: Look) -> Suite:
    """The runs that a look takes."""
    taken = {
        name: {row: Sample(values=runs.values[: needed(row, look)]) for row, runs in rows.items()}
        for name, rows in page.runs.items()
    }
    return replace(page, runs=taken, look=look)


def test_the_levels_of_a_page_do_not_depend_on_what_has_been_run() -> None:
    whole = made(AS_PRINTED, scale="laptop", s=0.3)
    runs = {name: {row: runs for row, runs in rows.items() if row in (B0, H1)} for name, rows in whole.runs.items()}
    m = sum(len(one.endpoints) for one in CLAIMS if one.is_trained and may_judge("laptop", one))
    levels = {one.level for one in of(judge_suite(replace(whole, runs=runs)), "C28b").found}
    assert levels <= {LOOKS[-1].alpha / m, LOOKS[-1].alpha / (m - 1)}


@pytest.mark.parametrize(
    ("scale", "id", "may"),
    [
        ("smoke", "C28b", False),
        ("laptop", "C28b", True),
        ("laptop-en-fr", "C28b", True),
        ("laptop", "C28d", False),
        ("captions", "C28d", True),
        ("single_gpu", "C28f", False),
        ("paper", "C28f", True),
        ("somewhere", "C28b", False),
        ("somewhere", "C01a", True),
    ],
)
def test_a_scale_judges_what_it_can_bear(scale: str, id: str, may: bool) -> None:
    assert may_judge(scale, claim(id)) is may


def test_below_its_scale_a_claim_shows_its_numbers_without_a_verdict() -> None:
    result = of(judge_suite(made(AS_PRINTED, scale="laptop", s=0.05)), "C28f")
    assert (result.verdict, result.reason) == ("not judged", "needs scale paper")
    found = result.found[1]
    assert found.value == pytest.approx(0.9, abs=0.1)
    assert found.printed == pytest.approx(0.9)
    assert found.low is not None


def test_the_scale_that_a_claim_needs_is_named() -> None:
    result = of(judge_suite(made(AS_PRINTED, scale="laptop", s=0.05)), "C28d")
    assert (result.verdict, result.reason) == ("not judged", "needs scale captions or a larger one")


def test_a_claim_on_one_score_names_it() -> None:
    result = of(judge_suite(made(AS_PRINTED, s=0.05)), "C27c")
    assert result.verdict == "reproduced"
    assert result.reason.startswith("BLEU ")


def test_the_base_keeps_its_own_spread() -> None:
    # half as noisy again as the others: not enough to be found wider, and in nearly every comparison
    suite = made(FLAT, scale="laptop", s=0.2, seed=3)
    own = Sample(values=tuple(25 + 0.3 * z for z in (-1.5, -1.0, -0.5, 0.0, 0.0, 0.5, 1.0, 1.5)))
    runs = {**suite.runs, "BLEU": {**suite.runs["BLEU"], B0: own}}
    found = of(judge_suite(replace(suite, runs=runs)), "C28b").found[1]
    spreads = {row: np.var(of_row.values, ddof=1) for row, of_row in runs["BLEU"].items() if row in TABLE3}
    others = [spread for row, spread in spreads.items() if row != B0]
    shared = float(np.mean(others))
    assert float(spreads[H1]) < shared, "else h=1 would keep its own"
    parts = float(spreads[B0]) / 8, shared / 5
    df = sum(parts) ** 2 / (parts[0] ** 2 / 7 + parts[1] ** 2 / (4 * len(others)))
    assert found.low is not None
    assert found.high is not None
    assert found.high - found.low == pytest.approx(2 * t_value(0.025, df) * math.sqrt(sum(parts)), rel=1e-9)


def test_endpoints_that_disagree_settle_nothing() -> None:
    suite = made(FLAT, s=0.05)
    flipped = {**suite.runs, "BLEU": {**suite.runs["BLEU"], H1: Sample(values=(27.0, 27.1, 27.05, 26.9, 27.0))}}
    flipped["log PPL"] = {**suite.runs["log PPL"], H1: Sample(values=(0.7, 0.7, 0.71, 0.7, 0.7))}
    result = of(judge_suite(replace(suite, runs=flipped)), "C28b")
    assert result.verdict == "inconclusive"
    assert result.reason.startswith("the endpoints disagree: log PPL above")


# From records

LIST = catalogue_digest()


def run(row: str, seed: int, *, bleu: float = 25.0, scale: str = "paper", dirty: bool = False, **other: Any) -> Record:
    """A record of a row by "table/row"."""
    table, name = row.split("/", 1)
    score = {"nll": 2 - bleu / 100, "ppl": math.exp(2 - bleu / 100), "bleu": bleu, "bleu_published": bleu + 0.5}
    score |= dict.fromkeys(("bleu_signature", "bleu_published_signature"), "tok:13a")  # type: ignore[arg-type]
    fields: dict[str, Any] = {
        "run": hashlib.sha256(f"{row} {seed}".encode()).hexdigest()[:16], "table": table, "row": name,
        "position": -1 if table == "base" else 0, "scale": scale,
        "seed": seed, "pair": "en-de",
        "corpus": {"name": "wmt14", "sha256": "ab", "n_train": 9, "n_dev": 5, "n_test": 7, "dropped": {}},
        "tokenizer": {"sha256": "cd", "size": 37_000}, "hyper": asdict(BASE), "settings": {},
        "paper": PRINTED.get(row, PaperNumbers(ppl=4.0, bleu=20.0, params=None)),
        "params": {"here": 1, "paper_size": 1}, "scores": {"dev": score, "test": score},
        "curves": {"train": {"step": [], "nll": []}, "dev": {"step": [], "nll": []}},
        "cost": {
            "steps": BASE.steps, "source_tokens": 1, "target_tokens": 1, "train_seconds": 1.0, "decode_seconds": 1.0,
            "tokens_per_second": 1.0, "padding": 0.0, "flops": 1.0, "peak_memory_bytes": None, "gpu_hours": 0.0,
        },
        "stamp": {
            "fingerprint": "ef", "commit": None, "dirty": dirty, "why_dirty": "x" if dirty else None, "python": "3.11",
            "platform": "x", "cpu": "x", "device": "x", "n_threads": 1, "versions": {}, "started": "now",
            "mlflow_run": None,
        },
        "determinism": {
            "badge": "L2", "against": [], "order": "ab", "plan": "ab", "weights": f"{table}/{name} {seed}",
            "replayed": 0, "repeated_lines": 0,
        },
        "status": "finished", "claims": LIST,
    }  # fmt: skip
    return Record(**{**fields, **other})


def diverged(row: str, seed: int) -> Record:
    nothing: Any = dict.fromkeys(run(row, seed).scores["dev"])
    return run(row, seed, scores={"dev": nothing, "test": nothing}, status="diverged")


def some(row: str, bleu: float, n: int | None = None) -> list[Record]:
    """As many seeds as the last look takes, from the first that counts."""
    seeds = range(FIRST_SEED, FIRST_SEED + (n or needed(row, LOOKS[-1])))
    return [run(row, seed, bleu=bleu + 0.1 * (seed % 3 - 1)) for seed in seeds]


def judge(records: Sequence[Record], **other: Any) -> list[Judged]:
    return judging.judge(evidence_of(records), **other)


def test_records_are_judged() -> None:
    result = of(judge([*some(B0, 25.8), *some(H1, 24.9)]), "C28b")
    assert (result.verdict, result.look) == ("reproduced", LOOKS[1])
    log_ppl, bleu = result.found
    assert bleu.value == pytest.approx(0.9, abs=0.05)
    assert log_ppl.value == pytest.approx(0.009, abs=5e-4)  # a better one is less, and still counts as plus
    assert log_ppl.printed == pytest.approx(math.log(5.29 / 4.92))
    assert bleu.runs == (8, 5)


def test_the_first_look_takes_three_seeds_and_has_its_own_level() -> None:
    for n in (3, 4):
        result = of(judge([*some(B0, 25.8), *some(H1, 14.9, n)]), "C28b")
        assert (result.verdict, result.look, result.found[1].runs) == ("reproduced", LOOKS[0], (8, 3))
        assert {one.level for one in result.found} <= {LOOKS[0].alpha / m for m in range(1, 400)}


def test_what_is_not_judged_here_shows_all_seeds_of_the_last_look() -> None:
    result = of(judge([*some(B0, 25.8), *some(H32, 24.9)]), "C28f")  # of h=1, which has no runs
    assert (result.verdict, result.found[1].runs) == ("not judged", (8, 0))
    smaller = [replace(record, scale="laptop") for record in (*some(B0, 25.8), *some(H1, 24.9))]
    result = of(judge(smaller), "C28f")  # needs scale paper
    assert (result.verdict, result.found[1].runs) == ("not judged", (8, 5))


def test_seeds_beyond_those_declared_change_nothing() -> None:
    # the sixth seed of h=1 would turn it round
    declared = [*some(B0, 25.8), *some(H1, 24.9)]
    more = [*declared, run(H1, FIRST_SEED + 5, bleu=60.0), run(B0, FIRST_SEED + 8, bleu=0.0)]
    assert of(judge(more), "C28b") == of(judge(declared), "C28b")


def test_runs_that_do_not_count_show_their_mean_and_no_interval() -> None:
    explored = [replace(record, claims=None) for record in some(H1, 24.9)]
    result = of(judge([*some(B0, 25.8), *explored]), "C28b")
    bleu = result.found[1]
    assert (result.verdict, bleu.explored, bleu.low, bleu.verdict.outcome) == ("not judged", True, None, "not judged")
    assert bleu.value == pytest.approx(0.9, abs=0.05)
    assert not of(judge([*some(B0, 25.8), *some(H1, 24.9)]), "C28b").found[1].explored
    dirty = [replace(record, stamp={**record.stamp, "dirty": True}) for record in explored]
    assert of(judge([*some(B0, 25.8), *dirty]), "C28b").found[1].value is None


def test_a_claim_names_the_sizes_of_its_scale() -> None:
    def small(records: Sequence[Record], d_k: int) -> list[Record]:
        return [replace(record, hyper={**record.hyper, "d_k": d_k}) for record in records]

    here = judge([*small(some(B0, 25.8), 8), *small(some(K16, 24.9), 2)])
    assert of(here, "C29a").sentence == "Keys of size 2 are worse than of size 8"
    assert of(judge(some(B0, 25.8)), "C29a").sentence == claim("C29a").sentence


def test_a_missing_row_is_named() -> None:
    results = judge(some(B0, 25.8))
    assert of(results, "C28b").reason == "too few runs that count: h=1 0 of 3"
    assert of(results, "C28a").reason == "no run of h=1, h=4, h=16, h=32, whose record has the printed numbers"


def test_too_few_seeds_are_not_judged() -> None:
    result = of(judge([*some(B0, 25.8, 7), *some(H1, 24.9, 2)]), "C28b")
    assert (result.verdict, result.look) == ("not judged", None)
    assert result.reason == "too few runs that count: base 7 of 8, h=1 2 of 3"


def test_diverged_runs_count() -> None:
    one = [*some(B0, 25.8), *some(H1, 24.9, 4), diverged(H1, FIRST_SEED + 4)]
    assert of(judge(one), "C28b").verdict == "reproduced"
    assert of(judge(one), "C28b").found[1].runs == (8, 4)
    assert "diverged, so in no mean: seed 8 of h=1" in of(judge(one), "C28b").reason
    two = of(judge([*one[:-2], diverged(H1, FIRST_SEED + 3), one[-1]]), "C28b")
    assert (two.verdict, two.reason) == ("unstable", "2 of 5 runs of h=1 diverged")


def test_rows_of_two_worlds_are_not_compared() -> None:
    other = [replace(record, settings={"precision": "bf16"}) for record in some(H1, 24.9)]
    result = of(judge([*some(B0, 25.8), *other]), "C28b")
    assert (result.verdict, result.reason) == ("not judged", "its rows differ in precision")


def test_a_claim_that_came_later_is_not_judged_by_the_runs_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    # the list that was there held all claims but this one
    before = "a" * 16
    others = frozenset(claim_digest(one) for one in CLAIMS if one.id != "C28b")
    monkeypatch.setattr(lists_of_claims, "lists", lambda: {LIST: {claim_digest(one) for one in CLAIMS}, before: others})
    monkeypatch.setattr(judging, "lists", lists_of_claims.lists)
    base = some(B0, 25.8)
    older = [replace(record, claims=before) for record in (*some(H1, 14.9), *some(H32, 14.9))]
    results = judge([*base, *older])
    assert of(results, "C28b").reason == "5 of its runs began before the claim was listed as it stands"
    assert of(results, "C28c").verdict == "reproduced"  # of h=32, which that list had


def test_dropout_is_judged_only_where_a_text_is_learned_by_heart() -> None:
    def curves(train: float, dev: float) -> Any:
        steps = [*range(1, 21)]
        early = {"step": steps, "nll": [9.0] * 18 + [train - 0.1, train + 0.1]}
        return {"train": early, "dev": {"step": [10, 20], "nll": [0.0, dev]}}

    for train, verdict in ((0.95, "not testable here"), (0.8, "reproduced"), (1.2, "not testable here")):
        rows = [replace(record, curves=curves(train, dev=1.0)) for record in some(DROP_0, 24.6)]
        assert of(judge([*some(B0, 25.8), *rows]), "C31a").verdict == verdict
    without = of(judge([*some(B0, 25.8), *some(DROP_0, 24.6)]), "C31a")
    assert (without.verdict, without.reason[:12]) == ("not testable here", "no curves of")


def test_a_claim_that_needs_a_row_to_over_fit_shows_by_how_much_it_does() -> None:
    def curves(train: float, dev: float) -> Any:
        return {"train": {"step": [1], "nll": [train]}, "dev": {"step": [1], "nll": [dev]}}

    for dev, words in (
        (2.25, "; P_drop=0.0 over-fits: its training loss ends below dev's by 1.25 nats per token"),
        (
            1.03,
            "P_drop=0.0 does not over-fit, its training loss ends below dev's by 0.03 nats per token, less than 0.1",
        ),
    ):
        rows = [replace(record, curves=curves(1.0, dev)) for record in some(DROP_0, 24.6)]
        found = judge([*some(B0, 25.8), *rows])
        assert of(found, "C31a").reason.endswith(words)
        assert "over-fit" not in of(found, "C30a").reason
    assert "over-fit" not in of(judge(some(B0, 25.8)), "C31a").reason, "of a row that has no runs"


def test_a_trend_names_its_slope_and_the_steps_against_it() -> None:
    depths = {**AS_PRINTED, N2: 20.0, N4: 24.0, B0: 26.0, N8: 25.5}
    deeper = of(judge_suite(made(depths, s=0.02)), "C30i")
    assert deeper.verdict == "reproduced"
    log_ppl, bleu = deeper.reason.split("; ")
    assert log_ppl.startswith("log PPL least-squares slope per doubling above ")
    assert re.search(r", though -0\.0\d\d from base to N=8$", log_ppl)
    assert re.search(r", though -0\.\d\d from base to N=8$", bleu)
    assert "though" not in of(judge_suite(made({**depths, N8: 27.0}, s=0.02)), "C30i").reason
    nothing = of(judge_suite(made(FLAT)), "C30i")
    assert (nothing.verdict, "though" in nothing.reason) == ("inconclusive", False), "steps of a slope that may be none"


def test_what_is_found_says_how_many_degrees_of_freedom_it_rests_on() -> None:
    suite = made(AS_PRINTED, scale="captions", n=3, s=0.1)
    wide = {**suite.runs["BLEU"], D256: Sample(values=(20.0, 24.5, 29.0))}
    found = {one.claim.id: one for one in judge_suite(replace(suite, runs={**suite.runs, "BLEU": wide}))}
    assert found["C30e"].found[1].df == pytest.approx(2.0, abs=0.01), "its own three seeds"
    assert found["C30b"].found[1].df > 7.0, "pooled, and the base's eight"  # type: ignore[operator]
    assert found["C28d"].found[0].df is not None
    assert of(judge([]), "C28b").found[0].df is None


def test_two_scales_are_refused() -> None:
    with pytest.raises(ValueError, match="expected records of one scale, got laptop, paper"):
        judge([run(H1, 4), run(H32, 4, scale="laptop")])


def test_runs_made_before_a_score_was_taken_have_not_diverged() -> None:
    result = of(judge([*some(B0, 25.8), *some("table3_D/eps_ls=0.0", 25.3)]), "C27f")
    assert (result.verdict, result.reason) == (
        "not judged",
        "too few runs that count: base without this score, eps_ls=0.0 without this score",
    )


def test_equal_numbers_from_every_seed_are_not_judged() -> None:
    records = [replace(record, scores=run(B0, 4).scores) for row in (B0, H1) for record in some(row, 25.0)]
    assert of(judge(records), "C28b").reason == "every seed gave the same number"


def test_a_base_whose_seeds_all_gave_one_number_settles_nothing_by_itself_and_is_no_error() -> None:
    base = [replace(record, scores=run(B0, 4).scores) for record in some(B0, 25.0)]
    found = judge([*base, *some(H1, 24.0)])
    assert of(found, "C37a").reason == "every seed gave the same number"  # of the base alone
    assert of(found, "C28b").reason != "every seed gave the same number"
    alone = judge(some(B0, 25.0))
    assert "every seed gave the same number" not in of(alone, "C37a").reason


def test_without_records_the_papers_arithmetic_is_judged() -> None:
    assert of(judge([]), "C04").verdict == "consistent"
    assert of(judge([]), "C28b").verdict == "not judged"


def test_claims_about_layers_take_the_verdict_of_table_1() -> None:
    before = of(judge([]), "C05")
    assert (before.verdict, before.reason) == ("not judged", "needs the measurements of experiments/table1.py")
    after = judge([], measured={"C05": ("does not hold here", "it waits twice")})
    assert (of(after, "C05").verdict, of(after, "C05").reason) == ("does not hold here", "it waits twice")
    assert of(after, "C06").verdict == "not judged"


def test_judging_needs_no_framework() -> None:
    code = "import sys, repro.claims.judge; print(sorted({'torch', 'lightning', 'mlflow', 'pandas'} & {*sys.modules}))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert found.stdout.strip() == "[]"


def test_an_endpoint_reads_the_score_of_its_name_and_turns_it_so_that_more_is_better() -> None:
    record = told_apart("h=1", "table3_A", paper=PaperNumbers(ppl=5.29, bleu=24.9, params=None))
    assert {one.name: (one.of(record), one.printed(record.paper)) for one in (LOG_PPL, BLEU, TEST_BLEU)} == {
        "log PPL": (-1.25, pytest.approx(-1.665_818_246)),  # ln 5.29
        "BLEU": (21.1, 24.9),
        "BLEU (test)": (34.4, 24.9),
    }
