"""The bootstrap over sentences against sacreBLEU's own, run by run, and what belongs to it being paired."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from kept_sentences import leave, with_scores
from paper_runs import paper_run
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.significance import PairedTest, _bootstrap_resample

from repro.claims.bootstrap import OverSentences, over_sentences
from repro.claims.catalogue import catalogue_digest
from repro.claims.claim import B0, K16
from repro.claims.decisions import FIRST_SEED, SEEDS
from repro.claims.evidence import Evidence
from repro.claims.judge import evidence_of, judge
from repro.results import artifacts
from repro.results.parts import RESAMPLES, Interval, draws
from repro.results.record import Record, path
from repro.results.sentences import NgramCounts, RunKey, Scorers, counts_of_runs, ngram_counts

WORDS = ["der", "die", "das", "Hund", "Katze", "Mann", "läuft", "schläft", "sieht", "heute", "schnell", "und", "gut"]
N = 61  # sentences


def text(seed: int, damage: float, references: list[str]) -> list[str]:
    """The references with words exchanged, much in some lines and little in others."""
    rng = np.random.default_rng(seed)
    return [
        " ".join(rng.choice(WORDS) if rng.random() < damage * rng.random() * 2 else word for word in line.split())
        for line in references
    ]


def lines(seed: int = 7) -> list[str]:
    rng = np.random.default_rng(seed)
    return [" ".join(rng.choice(WORDS, size=rng.integers(4, 15))) for _ in range(N)]


REFERENCES = lines()
HYPOTHESES = {("base", seed): text(seed, 0.20, REFERENCES) for seed in (4, 5, 6)} | {
    ("h=1", seed): text(10 * seed, 0.28, REFERENCES) for seed in (4, 5, 6)
}
RUNS: Mapping[RunKey, Mapping[str, Scorers]] = {
    run: {"dev": ngram_counts(found, REFERENCES, "de", in_tokens=False)} for run, found in HYPOTHESES.items()
}
BASE, OTHER = ([run for run in HYPOTHESES if run[0] == row] for row in ("base", "h=1"))


def found(value: Interval | None) -> Interval:
    assert value is not None
    return value


def resampled(run: RunKey) -> list[float]:
    """BLEU of each of sacreBLEU's resamples, by sacreBLEU."""
    assert "SACREBLEU_SEED" not in os.environ
    metric = BLEU()
    stats = metric._extract_corpus_statistics(HYPOTHESES[run], [REFERENCES])
    return [one.score for one in _bootstrap_resample(stats, metric, RESAMPLES)[1]]


def test_one_run_of_each_row_is_sacrebleus_own_test() -> None:
    one, other = BASE[0], OTHER[0]
    got = found(OverSentences(RUNS)([one], [other]))
    theirs = np.sort(np.array(resampled(one)) - np.array(resampled(other)))
    assert got[1:3] == pytest.approx((theirs[25], theirs[974]), abs=1e-5)  # theirs adds in 32 bits
    scores = [BLEU().corpus_score(HYPOTHESES[run], [REFERENCES]).score for run in (one, other)]
    assert got.value == pytest.approx(scores[0] - scores[1], abs=1e-9)
    assert got.n_sentences == N
    systems = [("other", HYPOTHESES[other]), ("one", HYPOTHESES[one])]
    tested: Any = PairedTest(systems, {"BLEU": BLEU()}, [REFERENCES], test_type="bs")()[1]["BLEU"][1]
    drawn = OverSentences(RUNS)._bleu(one, "dev", "bleu")[1:]
    assert tested.mean == pytest.approx(drawn.mean(), abs=1e-5)
    differences = np.abs(drawn - OverSentences(RUNS)._bleu(other, "dev", "bleu")[1:])
    beyond = ((differences - differences.mean()) > abs(got.value)).sum()
    assert tested.p_value == pytest.approx((beyond + 1) / (RESAMPLES + 1))


def test_several_seeds_are_the_mean_of_their_paired_differences_on_the_same_draws() -> None:
    got = found(OverSentences(RUNS)(BASE, OTHER))
    pairs = [np.array(resampled(a)) - np.array(resampled(b)) for a, b in zip(BASE, OTHER, strict=True)]
    theirs = np.sort(np.mean(pairs, axis=0))
    assert got[1:3] == pytest.approx((theirs[25], theirs[974]), abs=1e-5)  # theirs adds in 32 bits


def test_the_draws_are_sacrebleus_and_each_has_as_many_sentences_as_the_text() -> None:
    again = np.random.default_rng(12345).choice(N, size=(1000, N), replace=True)
    assert draws(N).shape == (1000, N)
    assert (draws(N).sum(axis=1) == N).all()
    assert draws(N)[3].tolist() == np.bincount(again[3], minlength=N).tolist()


def test_the_papers_scorer_has_its_own_counts_and_no_smoothing() -> None:
    value = found(OverSentences(RUNS)(BASE, OTHER, score="bleu_published")).value
    scorer = BLEU(smooth_method="none")
    means = [
        np.mean([scorer.corpus_score(HYPOTHESES[run], [REFERENCES]).score for run in row]) for row in (BASE, OTHER)
    ]
    assert value == pytest.approx(means[0] - means[1], abs=1e-9)  # no word here is cut differently


def test_where_a_run_has_no_counts_there_is_no_interval() -> None:
    over = OverSentences({run: counts for run, counts in RUNS.items() if run != OTHER[1]})
    assert over(BASE, OTHER) is None
    assert over(BASE, [OTHER[0], OTHER[2]]) is not None
    assert over(BASE, [OTHER[0]], split="test") is None


def test_runs_of_two_texts_are_no_pair() -> None:
    whole = RUNS[OTHER[0]]["dev"]["bleu"]
    fewer = {"dev": {"bleu": NgramCounts(whole.hypothesis[:-1], whole.reference[:-1], whole.correct[:-1])}}
    with pytest.raises(ValueError, match="expected runs of one text"):
        OverSentences({**RUNS, OTHER[0]: fewer})(BASE, OTHER)


# Of claims


SEEDS_HERE = range(FIRST_SEED, FIRST_SEED + SEEDS)
PRINTED: dict[str, Any] = {
    "base": {"ppl": 4.92, "bleu": 25.8, "params": 65.0},
    "d_k=16": {"ppl": 5.16, "bleu": 25.1, "params": 58.0},
}


def counted(row: str, table: str, seeds: range) -> list[Record]:
    """Runs that count as evidence, each with translations of its own."""
    shown: Any = {"badge": "L1", "against": [], "plan": "ab", "replayed": 2, "repeated_lines": 0}
    place = -1 if table == "base" else 0
    return [
        with_scores(
            paper_run(
                row, table, seed=seed, run=f"{seed:08x}{len(row):08x}", scale="laptop", claims=catalogue_digest(),
                determinism={**shown, "order": f"{seed}", "weights": f"{row} {seed}"}, position=place,
                paper=PRINTED[row],
            )
        )
        for seed in seeds
    ]  # fmt: skip


@pytest.fixture
def evidence(tmp_path: Path) -> Evidence:
    records = [*counted("base", "base", SEEDS_HERE), *counted("d_k=16", "table3_B", SEEDS_HERE)]
    leave(tmp_path, records)
    return evidence_of(records)


def test_a_claim_is_looked_at_by_the_runs_that_are_judged(evidence: Evidence, tmp_path: Path) -> None:
    assert not evidence.apart
    judged = judge(evidence)
    found = over_sentences(judged, evidence, tmp_path)
    [one] = [one for one in judged if one.claim.kind == "direction" and one.claim.rows == (B0, K16)]
    runs = counts_of_runs(tmp_path, evidence.records)
    rows = [(B0, seed) for seed in SEEDS_HERE], [(K16, seed) for seed in SEEDS_HERE]
    assert found[one.claim.id, "BLEU"] == OverSentences(runs)(*rows)
    [bleu] = [found for found in one.found if found.endpoint.name == "BLEU"]
    assert found[one.claim.id, "BLEU"].value == pytest.approx(bleu.value)
    assert {endpoint for _, endpoint in found} == {"BLEU"}, "no score of sentences in log PPL, no runs of table 2"
    artifacts.drop(path(tmp_path, evidence.records[0]))
    assert over_sentences(judged, evidence, tmp_path) == {}
