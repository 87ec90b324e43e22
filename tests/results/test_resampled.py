"""Scores over resampled sentences: BLEU against sacreBLEU's own test, F1 against loops over every draw."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from parser_runs import parser
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.significance import PairedTest, _bootstrap_resample

from repro.pages.table4 import page
from repro.render.markdown import markdown
from repro.results.brackets import Brackets
from repro.results.frame import table
from repro.results.parts import (
    F1_OVER,
    F1_TO_FIRST,
    RESAMPLES,
    Interval,
    bleu_over_sentences,
    draws,
    f1_over_sentences,
    with_brackets,
)
from repro.results.record import Record
from repro.results.sentences import NgramCounts, ngram_counts

N = 23  # sentences
LENGTHS = np.random.default_rng(5).integers(1, 40, N)  # words, and about as many brackets: F1 of sums is of the long


def brackets(seed: int, right: float) -> Brackets:
    """Of trees over one text, about so large a share of them right: in long sentences less."""
    rng = np.random.default_rng(seed)
    found = rng.integers(0, LENGTHS + 2)
    return Brackets(LENGTHS, found, LENGTHS, rng.binomial(np.minimum(found, LENGTHS), right / LENGTHS**0.2), {})


ONE, OTHER = [brackets(seed, 0.9) for seed in (4, 5)], [brackets(seed, 0.7) for seed in (14, 15)]


def drawn_f1(of: Brackets) -> list[float]:
    """F1 of all sentences, then of each of sacreBLEU's draws, one sentence after the other."""
    chosen = np.random.default_rng(12345).choice(N, size=(1000, N), replace=True).tolist()
    scores = []
    for sentences in [[*range(N)], *chosen]:
        found = gold = right = 0
        for i in sentences:
            found, gold, right = found + int(of.found[i]), gold + int(of.gold[i]), right + int(of.right[i])
        precision, recall = right / found, right / gold
        scores.append(100 * 2 * precision * recall / (precision + recall))
    return scores


def by_hand(values: list[float]) -> tuple[float, float, float, int]:
    ordered = sorted(values[1:])
    return values[0], ordered[25], ordered[974], N


def test_f1_of_a_row_is_of_the_sums_over_each_draw() -> None:
    assert f1_over_sentences(ONE[:1]) == pytest.approx(by_hand(drawn_f1(ONE[0])))
    both = [sum(pair) / 2 for pair in zip(*map(drawn_f1, ONE), strict=True)]
    assert f1_over_sentences(ONE) == pytest.approx(by_hand(both))
    assert f1_over_sentences(ONE[:1]).value == pytest.approx(ONE[0].scores()["f1"])


def test_a_difference_is_paired() -> None:
    pairs = [[one - less for one, less in zip(*map(drawn_f1, of), strict=True)] for of in zip(ONE, OTHER, strict=True)]
    both = [sum(of) / 2 for of in zip(*pairs, strict=True)]
    assert f1_over_sentences(ONE, OTHER) == pytest.approx(by_hand(both))
    assert f1_over_sentences(ONE, ONE)[:3] == (0, 0, 0), "what is one run does not differ, whatever is drawn"


def test_text_without_brackets_has_none_right_and_two_texts_are_no_pair() -> None:
    nothing = np.zeros(N, np.int64)
    assert f1_over_sentences([Brackets(LENGTHS, nothing, nothing, nothing, {})]) == Interval(0, 0, 0, N)
    shorter = Brackets(LENGTHS - 1, ONE[0].found, ONE[0].gold, ONE[0].right, {})
    with pytest.raises(ValueError, match="expected runs of one text"):
        f1_over_sentences(ONE, [shorter])


def left(results: Path, row: str, position: int, seed: int, of: Brackets) -> Record:
    """A record with its brackets beside it."""
    return parser(results, row, seed, {"dev": of, "test": of}, position=position, scale="lab")


def test_the_page_holds_every_row_against_the_first(tmp_path: Path) -> None:
    rows = {"WSJ only": ONE, "semi-supervised": OTHER}
    records = [
        left(tmp_path, row, position, seed, of)
        for position, (row, runs) in enumerate(rows.items())
        for seed, of in zip((4, 5), runs, strict=True)
    ]
    frame = with_brackets(table(records), records, tmp_path)
    first, second = (frame.iloc[i] for i in range(2))
    over, more = f1_over_sentences(OTHER), f1_over_sentences(OTHER, ONE)
    assert np.isnan(first[F1_TO_FIRST])
    assert tuple(second[[F1_OVER, f"{F1_OVER}_low", f"{F1_OVER}_high"]]) == pytest.approx(over[:3])
    assert tuple(second[[F1_TO_FIRST, f"{F1_TO_FIRST}_low", f"{F1_TO_FIRST}_high"]]) == pytest.approx(more[:3])
    text = markdown(page(frame, "lab")).translate({ord("−"): "-", ord("\N{NO-BREAK SPACE}"): " ", ord("\\"): None})
    assert "## Over sentences" in text
    assert f"| {over.value:.1f} [{over.low:.1f}, {over.high:.1f}] |" in text
    assert f"| {more.value:+.1f} [{more.low:+.1f}, {more.high:+.1f}] |" in text
    assert "more than WSJ only" in text


def test_a_row_on_another_text_is_not_held_against_the_first(tmp_path: Path) -> None:
    other = replace_words(OTHER[0])
    records = [left(tmp_path, "WSJ only", 0, 4, ONE[0]), left(tmp_path, "semi-supervised", 1, 4, other)]
    frame = with_brackets(table(records), records, tmp_path)
    assert frame[F1_OVER].notna().all()
    assert F1_TO_FIRST not in frame.columns or frame[F1_TO_FIRST].isna().all()


def test_a_row_with_a_run_that_kept_no_brackets_shows_nothing_of_the_other(tmp_path: Path) -> None:
    mended = [of._replace(mended={"never closed": np.ones_like(LENGTHS)}) for of in ONE]
    records = [left(tmp_path, "WSJ only", 0, seed, of) for seed, of in zip((4, 5), mended, strict=True)]
    whole = with_brackets(table(records), records, tmp_path)
    told = [name for name in whole if name.startswith(("dev/mended/", "dev/f1/"))]
    assert any("mended" in name for name in told)
    assert whole[[name for name in told if "half_width" not in name]].notna().all(axis=None)
    next(tmp_path.rglob("*seed5.dev.parquet")).unlink()
    assert with_brackets(table(records), records, tmp_path).reindex(columns=told).isna().all(axis=None)


def replace_words(of: Brackets) -> Brackets:
    return Brackets(of.words + 1, of.found, of.gold, of.right, of.mended)


# BLEU

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
