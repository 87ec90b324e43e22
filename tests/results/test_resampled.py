"""BLEU over resampled sentences against sacreBLEU's own test."""

import os
from typing import Any

import numpy as np
import pytest
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.significance import PairedTest, _bootstrap_resample

from repro.results.parts import (
    RESAMPLES,
    bleu_over_sentences,
    draws,
)
from repro.results.sentences import NgramCounts, ngram_counts

N = 23  # sentences
WORDS = ["der", "die", "das", "Hund", "Katze", "Mann", "läuft", "schläft", "sieht", "heute", "schnell", "und", "gut"]


def text(seed: int, damage: float, references: list[str]) -> list[str]:
    """The references with words exchanged, much in some lines and little in others."""
    rng = np.random.default_rng(seed)
    return [
        " ".join(rng.choice(WORDS) if rng.random() < damage * rng.random() * 2 else word for word in line.split())
        for line in references
    ]


RANDOM = np.random.default_rng(7)
REFERENCES = [" ".join(RANDOM.choice(WORDS, size=RANDOM.integers(4, 15))) for _ in range(N)]
GOOD = [text(seed, 0.20, REFERENCES) for seed in (4, 5, 6)]
BAD = [text(seed, 0.28, REFERENCES) for seed in (40, 50, 60)]


def counts(hypotheses: list[str]) -> NgramCounts:
    return ngram_counts(hypotheses, REFERENCES, "de", in_tokens=False)["bleu"]


def resampled(hypotheses: list[str]) -> list[float]:
    """BLEU of each of sacreBLEU's resamples, by sacreBLEU."""
    assert "SACREBLEU_SEED" not in os.environ
    metric = BLEU()
    stats = metric._extract_corpus_statistics(hypotheses, [REFERENCES])
    return [one.score for one in _bootstrap_resample(stats, metric, RESAMPLES)[1]]


def test_one_run_of_each_row_is_sacrebleus_own_test() -> None:
    got = bleu_over_sentences([counts(GOOD[0])], [counts(BAD[0])])
    drawn = np.array(resampled(GOOD[0])) - np.array(resampled(BAD[0]))
    theirs = np.sort(drawn)
    assert got[1:3] == pytest.approx((theirs[25], theirs[974]), abs=1e-5)  # theirs adds in 32 bits
    scores = [BLEU().corpus_score(lines, [REFERENCES]).score for lines in (GOOD[0], BAD[0])]
    assert got.value == pytest.approx(scores[0] - scores[1], abs=1e-9)
    assert got.n_sentences == N
    systems = [("other", BAD[0]), ("one", GOOD[0])]
    tested: Any = PairedTest(systems, {"BLEU": BLEU()}, [REFERENCES], test_type="bs")()[1]["BLEU"][1]
    beyond = ((np.abs(drawn) - np.abs(drawn).mean()) > abs(got.value)).sum()
    assert tested.p_value == pytest.approx((beyond + 1) / (RESAMPLES + 1))


def test_several_seeds_are_the_mean_of_their_paired_differences_on_the_same_draws() -> None:
    got = bleu_over_sentences([*map(counts, GOOD)], [*map(counts, BAD)])
    pairs = [np.array(resampled(a)) - np.array(resampled(b)) for a, b in zip(GOOD, BAD, strict=True)]
    theirs = np.sort(np.mean(pairs, axis=0))
    assert got[1:3] == pytest.approx((theirs[25], theirs[974]), abs=1e-5)  # theirs adds in 32 bits


def test_the_draws_are_sacrebleus_and_each_has_as_many_sentences_as_the_text() -> None:
    again = np.random.default_rng(12345).choice(N, size=(1000, N), replace=True)
    assert draws(N).shape == (1000, N)
    assert (draws(N).sum(axis=1) == N).all()
    assert draws(N)[3].tolist() == np.bincount(again[3], minlength=N).tolist()


def test_runs_of_two_texts_are_no_pair() -> None:
    whole = counts(GOOD[0])
    fewer = NgramCounts(whole.hypothesis[:-1], whole.reference[:-1], whole.correct[:-1])
    with pytest.raises(ValueError, match="expected runs of one text"):
        bleu_over_sentences([whole], [fewer])
