"""Verdicts are what the records say: suites of which the truth is known, and records with one fault each."""

import hashlib
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from benchmark_files import opened
from paper_runs import paper_run, perplexity, that_counts, told_apart
from printed_rows import PRINTED

from repro.claims import catalogue
from repro.claims import judge as judging
from repro.claims.blocks import ALPHA
from repro.claims.catalogue import B0, BLEU, CLAIMS, H1, Claim, catalogue_digest
from repro.claims.decisions import FIRST_SEED, OF_SIGN, OF_SIZE, SEEDS
from repro.claims.evidence import Published, evidence_of
from repro.claims.judge import Judged, Suite, judge_suite, may_judge, may_judge_sizes, to_base, verdicts_of_print
from repro.results.record import PaperNumbers, Record


def claim(id: str) -> Claim:
    return next(one for one in CLAIMS if one.id == id)


def of(results: Sequence[Judged], id: str) -> Judged:
    return next(one for one in results if one.claim.id == id)


# Suites whose truth is known

Truth = Mapping[str, float]


def made(better: Truth, *, scale: str = "paper", n: int = 5, s: float = 0.15, seed: int = 1) -> Suite:
    """Runs with these true scores, more is better: BLEU as given, log PPL a thirtieth of it; seeds are blocks."""
    random = np.random.default_rng(seed)
    runs: dict[str, dict[str, dict[int, float]]] = {}
    for name, endpoint in catalogue.ENDPOINTS.items():
        unit, of_seed = (1 / 30 if endpoint.score == "nll" else 1.0), 10 * s * random.standard_normal(n)
        drawn = {row: unit * (score + of_seed + s * random.standard_normal(n)) for row, score in better.items()}
        runs[name] = {row: dict(enumerate(map(float, of), start=FIRST_SEED)) for row, of in drawn.items()}
    return Suite(scale=scale, runs=runs, printed=PRINTED)


def with_row(suite: Suite, row: str, **values: Sequence[float]) -> Suite:
    """A row with these scores instead, by `BLEU` and `log_ppl`."""
    changed = {name.replace("_ppl", " PPL"): dict(enumerate(of, start=FIRST_SEED)) for name, of in values.items()}
    runs = {name: {**rows, **({row: changed[name]} if name in changed else {})} for name, rows in suite.runs.items()}
    return replace(suite, runs=runs)


def judged(suite: Suite) -> list[Judged]:
    return judge_suite(suite, [one for one in CLAIMS if one.is_trained])


FLAT: Truth = dict.fromkeys([*PRINTED, *(row for one in CLAIMS for row in one.rows)], 25.0)
AS_PRINTED: Truth = {row: paper["bleu"] for row, paper in PRINTED.items() if paper["bleu"] is not None}


def test_what_the_paper_prints_is_reproduced_and_its_reverse_is_found_the_other_way_round() -> None:
    results = judged(made(AS_PRINTED, s=0.05))
    reverse = {row: 2 * AS_PRINTED[B0] - bleu for row, bleu in AS_PRINTED.items()}
    reversed_ = judged(made(reverse, scale="captions", s=0.1))
    for id in ("C28b", "C29a", "C29c", "C30a", "C30e", "C30i", "C30j", "C30n", "C31a"):
        found, other = (of(those, id) for those in (results, reversed_))
        assert found.verdict == "reproduced" or id in ("C30e", "C30j"), found.reason
        assert other.verdict == "opposite sign" or id in ("C30i", "C31a"), other.reason
    assert of(results, "C27c").reason.startswith("BLEU "), "a claim on one score names it"
    # a family is judged by its closest row
    assert of(results, "C28e").verdict == "reproduced"
    assert "ahead of the next, h=4, by 0.3" in of(results, "C28e").reason
    otherwise = made({**AS_PRINTED, H1: 27.0}, s=0.05)
    assert of(judged(otherwise), "C28e").verdict == "contradicted"
    assert of(judged(replace(otherwise, scale="captions")), "C28e").verdict == "opposite sign"


def test_a_suite_in_which_nothing_matters_finds_nothing() -> None:
    results = judged(made(FLAT, n=20))
    assert {one.verdict for one in results if one.claim.kind in ("direction", "trend")} == {"inconclusive"}
    assert of(results, "C19").verdict == "reproduced"


def test_where_no_sign_is_found_a_printed_size_may_be_excluded() -> None:
    # 0.9 BLEU of one head is printed; the difference is none, and known to about 0.1, or hardly known
    found, unsure = (of(judged(made(FLAT, scale="captions", s=s)), "C28b") for s in (0.05, 2.0))
    assert (found.verdict, unsure.verdict) == ("printed size excluded", "undetermined")
    assert re.search(r"BLEU below 0\.\d+, printed 0\.9", found.reason)
    assert unsure.found[1].verdict.detectable > 0.9  # type: ignore[operator]
    at_paper = of(judged(made(FLAT, s=0.05)), "C28b")
    assert at_paper.verdict == "inconclusive"


def test_wrong_verdicts_are_as_rare_as_promised() -> None:
    # all rows are equal and the base, in most comparisons, is three times as noisy; benchmarks/verdicts.py has more
    n_pages, wrong = 20, 0
    for seed in range(n_pages):
        page, random = made(FLAT, seed=seed), np.random.default_rng(1_000 + seed)
        noisy = 0.45 * random.standard_normal(5)
        seeds = np.mean([[*rows.values()] for rows in page.runs["BLEU"].values()], axis=0)
        page = with_row(page, B0, BLEU=[*map(float, seeds + noisy)], log_ppl=[*map(float, (seeds + noisy) / 30)])
        said = {found.verdict.outcome for one in judged(page) if one.claim.kind != "equivalence" for found in one.found}
        wrong += bool(said & {*OF_SIGN[:2], *OF_SIZE[:2]})
    assert wrong / n_pages <= ALPHA + 3 * math.sqrt(ALPHA * (1 - ALPHA) / n_pages)


def levels(page: Suite) -> list[float]:
    """At which the claims of a page were tested."""
    return [found.level for one in judged(page) for found in one.found if found.level is not None]


def test_the_levels_of_a_page_come_to_its_error_rate_whatever_of_it_has_been_run() -> None:
    page = made(FLAT, scale="captions-bf16", s=1.0)
    whole = levels(page)
    assert len(whole) == sum(len(one.endpoints) for one in CLAIMS if one.is_trained and may_judge(page.scale, one))
    assert sum(whole) == pytest.approx(ALPHA), "nothing is found, so all stand at the first level"
    runs = {name: {row: of for row, of in rows.items() if row in (B0, H1)} for name, rows in page.runs.items()}
    part = levels(replace(page, runs=runs))
    assert 0 < len(part) < len(whole)
    assert {*part} == {*whole}


def test_a_scale_judges_what_it_can_bear_and_else_a_claim_shows_its_numbers_without_a_verdict() -> None:
    can = [("laptop-en-fr", "C28b"), ("captions", "C28d"), ("paper", "C19"), ("somewhere", "C01a")]
    assert all(may_judge(scale, claim(id)) for scale, id in can)
    cannot = [("smoke", "C28b"), ("laptop", "C28d"), ("single_gpu", "C19")]
    assert not any(may_judge(scale, claim(id)) for scale, id in cannot)
    assert [scale for scale in catalogue.SCALE_ORDER if may_judge_sizes(f"{scale}-en-fr")] == ["paper"]
    result = of(judged(made(AS_PRINTED, scale="laptop", s=0.05)), "C28d")
    assert (result.verdict, result.reason) == ("not judged", "needs scale captions or a larger one")
    found = result.found[1]
    assert (found.value, found.printed, bool(found.interval)) == (pytest.approx(0.3, abs=0.1), pytest.approx(0.3), True)


def test_endpoints_that_disagree_settle_nothing() -> None:
    suite = with_row(made(FLAT, s=0.02), H1, BLEU=(27.0, 27.1, 27.05, 26.9, 27.0), log_ppl=(0.7, 0.7, 0.71, 0.7, 0.7))
    result = of(judged(suite), "C28b")
    assert result.verdict == "inconclusive"
    assert result.reason.startswith("the endpoints disagree: log PPL above")


# From records

LIST = catalogue_digest()


def run(row: str, seed: int, *, bleu: float = 25.0, scale: str = "paper", **other: Any) -> Record:
    """A record of a row by "table/row"."""
    table, name = row.split("/", 1)
    score = paper_run().scores["dev"] | {"bleu": bleu, "bleu_published": bleu + 0.5, **perplexity(2 - bleu / 100)}
    paper = PRINTED.get(row, PaperNumbers(ppl=4.0, bleu=20.0, params=None))
    fields: dict[str, Any] = {"position": -1 if table == "base" else 0, "scale": scale, "paper": paper, "settings": {}}
    fields["scores"] = {"dev": score, "test": score}
    return replace(that_counts(paper_run(name, table, seed=seed, **fields)), **other)


def diverged(row: str, seed: int) -> Record:
    nothing: Any = dict.fromkeys(run(row, seed).scores["dev"])
    return run(row, seed, scores={"dev": nothing, "test": nothing}, status="diverged")


def some(row: str, bleu: float, n: int | None = None) -> list[Record]:
    """As many seeds as are judged, from the first that counts; what a seed is worth is nearly the same in all rows."""
    of_row = int(hashlib.sha256(row.encode()).hexdigest()[:4], 16)
    return [
        run(row, seed, bleu=bleu + 0.1 * (seed % 3 - 1) + 0.01 * (of_row * seed % 7))
        for seed in range(FIRST_SEED, FIRST_SEED + (n or SEEDS))
    ]


def judge(records: Sequence[Record], **other: Any) -> list[Judged]:
    return judging.judge(evidence_of(records), **other)


def test_records_are_judged_and_seeds_beyond_those_declared_change_nothing() -> None:
    declared = [*some(B0, 25.8), *some(H1, 24.9)]
    result = of(judge(declared), "C28b")
    assert (result.verdict, result.explored) == ("reproduced", None)
    log_ppl, bleu = result.found
    assert bleu.value == pytest.approx(0.9, abs=0.05)
    assert log_ppl.value == pytest.approx(0.009, abs=5e-4)  # a better one is less, and still counts as plus
    assert log_ppl.printed == pytest.approx(math.log(5.29 / 4.92))
    assert bleu.runs == (5, 5)
    # the sixth seed of h=1 would turn it round
    more = [*declared, run(H1, FIRST_SEED + SEEDS, bleu=60.0), run(B0, FIRST_SEED + SEEDS, bleu=0.0)]
    assert of(judge(more), "C28b") == result


def test_runs_that_do_not_count_are_explored() -> None:
    explored = [replace(record, claims=None) for record in some(H1, 24.9)]
    result = of(judge([*some(B0, 25.8), *explored]), "C28b")
    assert (result.verdict, result.explored) == ("not judged", "reproduced")
    assert result.reason == "too few runs that count: h=1 0 of 5"
    assert result.found[1].value == pytest.approx(0.9, abs=0.05)
    dirty = [replace(record, stamp={**record.stamp, "dirty": True}) for record in explored]
    assert of(judge([*some(B0, 25.8), *dirty]), "C28b").found[1].value is None

    # fewer than three finished runs show nothing
    for n, explored in ((3, "reproduced"), (2, "not judged")):
        few = [replace(record, claims=None) for record in (*some(B0, 25.8, n), *some(H1, 14.9, n))]
        assert of(judge(few), "C28b").explored == explored
    assert of(judge(few), "C28b").found[1].verdict.reason == "n = 2 (base), 3 are needed"


TOO_FEW = "too few runs that count"
BASE_RUNS = some(B0, 25.8)
UNSCORED = some("table3_D/eps_ls=0.0", 25.3)  # made before accuracy was taken: they did not diverge
IN_BF16 = [replace(record, settings={"precision": "bf16"}) for record in some(H1, 24.9)]
ALIKE = [replace(record, scores=run(B0, 4).scores) for row in (B0, H1) for record in some(row, 25.0)]


@pytest.mark.parametrize(
    ("records", "id", "reason"),
    [
        (BASE_RUNS, "C28b", f"{TOO_FEW}: h=1 0 of 5"),
        (BASE_RUNS, "C28a", "no record has the printed numbers of its rows"),
        ([*BASE_RUNS[:4], *some(H1, 24.9, 2)], "C28b", f"{TOO_FEW}: base 4 of 5, h=1 2 of 5"),
        ([*BASE_RUNS, *UNSCORED], "C27f", f"{TOO_FEW}: base without this score, eps_ls=0.0 without this score"),
        ([*BASE_RUNS, *IN_BF16], "C28b", "its rows differ in precision"),
        (ALIKE, "C28b", "every seed gave the same number"),
    ],
)
def test_why_rows_are_not_judged_is_said(records: list[Record], id: str, reason: str) -> None:
    result = of(judge(records), id)
    assert (result.verdict, result.reason) == ("not judged", reason)


def test_diverged_runs_count() -> None:
    one = [*some(B0, 25.8), *some(H1, 24.9, 4), diverged(H1, FIRST_SEED + 4)]
    assert of(judge(one), "C28b").verdict == "reproduced"
    assert of(judge(one), "C28b").found[1].runs == (5, 4)
    assert f"diverged, so in no mean: seed {FIRST_SEED + 4} of h=1" in of(judge(one), "C28b").reason
    two = of(judge([*one[:-2], diverged(H1, FIRST_SEED + 3), one[-1]]), "C28b")
    assert (two.verdict, two.reason) == ("unstable", "2 of 5 runs of h=1 diverged")


def test_a_claim_that_came_later_is_not_judged_by_the_runs_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    # the list that was there held all claims but this one
    before = "a" * 16
    others = frozenset(catalogue.claim_digest(one) for one in CLAIMS if one.id != "C28b")
    known = {LIST: {catalogue.claim_digest(one) for one in CLAIMS}, before: others}
    for module in ("catalogue", "evidence"):
        monkeypatch.setattr(f"repro.claims.{module}.lists", lambda: known)
    base = some(B0, 25.8)
    older = [replace(record, claims=before) for record in (*some(H1, 14.9), *some(catalogue.H32, 14.9))]
    results = judge([*base, *older])
    assert of(results, "C28b").reason == "5 of its runs began before the claim was listed as it stands"
    assert of(results, "C28c").verdict == "reproduced"  # of h=32, which that list had


def test_dropout_is_judged_only_where_a_text_is_learned_by_heart() -> None:
    def judged(train: float, *, id: str = "C31a") -> Judged:
        """With a training loss that ends so far, and a loss on dev of 1."""
        early = {"step": [*range(1, 21)], "nll": [9.0] * 18 + [train - 0.1, train + 0.1]}
        curves: Any = {"train": early, "dev": {"step": [10, 20], "nll": [0.0, 1.0]}}
        return of(judge([*some(B0, 25.8), *(replace(one, curves=curves) for one in some(catalogue.DROP_0, 24.6))]), id)

    found, near, worse = (judged(train) for train in (0.8, 0.95, 1.2))
    assert [one.verdict for one in (found, near, worse)] == ["reproduced", "not testable here", "not testable here"]
    assert found.reason.endswith("; P_drop=0.0 over-fits: its training loss ends below dev's by 0.20 nats per token")
    below = "its training loss ends below dev's by 0.05 nats per token, less than 0.1"
    assert near.reason.endswith(f"P_drop=0.0 does not over-fit, {below}")
    assert "over-fit" not in judged(0.8, id="C30a").reason
    assert "over-fit" not in of(judge(some(B0, 25.8)), "C31a").reason, "of a row that has no runs"
    without = of(judge([*some(B0, 25.8), *some(catalogue.DROP_0, 24.6)]), "C31a")
    assert (without.verdict, without.reason[:12]) == ("not testable here", "no curves of")


def test_a_trend_names_its_slope_and_the_steps_against_it() -> None:
    depths = {**AS_PRINTED, catalogue.N2: 20.0, catalogue.N4: 24.0, B0: 26.0, catalogue.N8: 25.5}
    deeper = of(judged(made(depths, s=0.02)), "C30i")
    assert deeper.verdict == "reproduced"
    log_ppl, bleu = deeper.reason.split("; ")
    assert log_ppl.startswith("log PPL least-squares slope per doubling above ")
    assert re.search(r", though -0\.0\d\d from base to N=8$", log_ppl)
    assert re.search(r", though -0\.\d\d from base to N=8$", bleu)
    assert "though" not in of(judged(made({**depths, catalogue.N8: 27.0}, s=0.02)), "C30i").reason
    nothing = of(judged(made(FLAT)), "C30i")
    assert (nothing.verdict, "though" in nothing.reason) == ("inconclusive", False), "steps of a slope that may be none"


def test_claims_about_layers_take_the_verdict_of_table_1_and_arithmetic_needs_no_record() -> None:
    before = judge([], measured=verdicts_of_print({}, CLAIMS))
    assert of(before, "C04").verdict == "consistent"
    assert of(before, "C05").reason == "needs the measurements of experiments/table1.py"
    after = of(judge([], measured={"C05": ("does not hold here", "it waits twice")}), "C05")
    assert (after.verdict, after.reason) == ("does not hold here", "it waits twice")


def test_a_distance_to_the_base_has_an_interval_only_where_its_runs_count() -> None:
    def distance(*runs: Record, **other: Any) -> tuple[float, bool] | None:
        found = to_base(evidence_of(runs, **other), H1, BLEU)
        return found and (found.value, found.over_seeds is not None)

    for claims, counts in ((LIST, True), (None, False)):
        runs = [replace(one, claims=claims) for one in (*some(B0, 25.8), *some(H1, 24.9))]
        assert distance(*runs) == (pytest.approx(-0.9, abs=0.05), counts)
    # a single run is compared with the base of its own seed, and of an earlier analysis there are others
    base = [run(B0, seed, bleu=bleu) for seed, bleu in ((9, 25.0), (10, 28.0), (11, 29.0))]
    older = [replace(one, claims=None) for one in base[1:]]
    before = Published(runs=frozenset(one.run for one in older))
    for others in ({}, {"before": before}):
        assert distance(base[0], *(older if others else base[1:]), run(H1, 9, bleu=24.0), **others) == (-1.0, False)
    assert distance(*base, run(H1, 12, bleu=24.0)) is None, "no seed in common"


def test_an_endpoint_reads_the_score_of_its_name_and_turns_it_so_that_more_is_better() -> None:
    record = told_apart("h=1", "table3_A", paper=PaperNumbers(ppl=5.29, bleu=24.9, params=None))
    endpoints = [catalogue.LOG_PPL, BLEU, catalogue.TEST_BLEU]
    assert [one.of(record) for one in endpoints] == [-1.25, 21.1, 34.4]
    printed = [one.printed(record.paper) for one in (*endpoints, catalogue.ACCURACY)]
    assert printed == [pytest.approx(-1.665_818_246), 24.9, 24.9, None], "ln 5.29; the paper prints no accuracy"


# What docs/claims.md says of error rates is what the simulation recorded, of the list of today


@pytest.fixture(scope="module")
def simulation() -> ModuleType:
    return opened("verdicts")


def test_the_page_is_that_of_the_record_and_of_this_list(simulation: ModuleType) -> None:
    record = json.loads(simulation.RECORD.read_bytes())
    page = (Path(__file__).parents[2] / "docs" / "claims.md").read_text("utf-8")
    assert simulation.rendered(page, record) == page, "python benchmarks/verdicts.py --render"
    assert record["claims"] == catalogue_digest(), "python benchmarks/verdicts.py measures again"
    promised = {world.name for world in simulation.WORLDS}
    wrong = {(one["world"], one["shared"]): one["wrong"] for one in record["lines"] if one["world"] in promised}
    assert len(wrong) == 2 * len(promised)
    assert max(wrong.values()) <= 0.05


def test_a_wrong_page_and_a_right_one_are_told_apart(simulation: ModuleType) -> None:
    found = simulation.count(simulation.World(name="shifted", shift=20.0), 2, 1, shared=True)
    assert found["wrong"] == 1.0
    found = simulation.count(simulation.World(name="as printed, and clear", size=60.0), 2, 1, shared=True)
    assert (found["wrong"], found["found"]["C30a"]) == (0.0, 1.0)
