"""Scores by length and by position: by hand, and beside the rows of a table."""

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from kept_sentences import REFERENCES, ladder_run, with_scores
from paper_runs import paper_run
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.significance import PairedTest, _bootstrap_resample

from repro.pages.columns import DELTA, row_column, tabled
from repro.pages.tables import OF_TRANSLATIONS, length_columns
from repro.results import details
from repro.results.details import (
    EMPTY,
    KEPT,
    RATIO,
    RESAMPLES,
    THIRDS,
    bleu_over_sentences,
    by_length,
    by_position,
    length_decides,
    with_lengths,
    with_parts,
)
from repro.results.frame import table
from repro.results.record import Record, path
from repro.results.sentences import NgramCounts, Translated, ngram_counts, write_sentences


def counts(right: list[int], of: int = 4) -> NgramCounts:
    """Sentences of 4 words, of which so many are right, and all longer n-grams as far as they go."""
    correct = np.array([[max(0, n - k) for k in range(4)] for n in right])
    lengths = np.full(len(right), of)
    return NgramCounts(lengths, lengths, correct)


def test_parts_by_length_are_of_the_shortest_and_the_longest_whatever_their_order() -> None:
    # lengths 9 1 5 1 9 5 in this order: the shortest are sentences 1 and 3, of which all is right
    found = by_length(counts([0, 4, 3, 4, 1, 3]), [9, 1, 5, 1, 9, 5])
    assert found[0] == pytest.approx(100)
    middle = (6 / 8 * 4 / 6 * 2 / 4 * (1 / 2) / 2) ** 0.25  # no 4-gram is right: half of one
    assert found[1] == pytest.approx(100 * middle)
    assert found[2] == pytest.approx(100 * (1 / 8 * (1 / 2) / 6 * (1 / 4) / 4 * (1 / 8) / 2) ** 0.25)


def test_equally_long_sentences_stand_as_they_stood_and_parts_may_differ_by_one() -> None:
    whole = [4, 4, 0, 4, 4, 0, 4]
    first, second, third = by_length(counts(whole), [3] * 7)  # 3, 2, 2 sentences
    assert first == pytest.approx(by_position([counts(whole[:3])])[0])
    assert (second, third) == pytest.approx(tuple(by_position([counts(whole[3:5]), counts(whole[5:])])))


def test_rows_show_means_and_those_without_counts_nothing(tmp_path: Path) -> None:
    records = [ladder_run(*of, tmp_path, places=of[0] == "One") for of in (("One", 1), ("One", 3), ("Other", 2))]
    frame = with_parts(table(records), records, tmp_path).set_index("row")
    one = frame.loc["One"]
    assert one[THIRDS[0]] == pytest.approx((one[f"{THIRDS[0]}_min"] + one[f"{THIRDS[0]}_max"]) / 2)
    assert frame.loc["Other", [*THIRDS, KEPT]].isna().all()


@pytest.mark.parametrize(("firsts", "kept"), [((20.0, 40.0), 37.5), ((20.0, 0.0), np.nan)])
def test_a_row_keeps_the_mean_of_its_runs_and_nothing_where_one_has_nothing_to_lose(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, firsts: tuple[float, ...], kept: float
) -> None:
    records = [ladder_run("One", 1, tmp_path), ladder_run("One", 3, tmp_path)]
    of = iter([{name: first if name == THIRDS[3] else 10.0 for name in THIRDS} for first in firsts])
    monkeypatch.setattr(details, "bleu_of_parts", lambda record, results: next(of))
    line = with_parts(table(records), records, tmp_path).set_index("row").loc["One"]
    assert line[THIRDS[3]] == np.mean(firsts)
    assert line[KEPT] == pytest.approx(kept, nan_ok=True)


# How long translations are, and how many are empty


WHOLE = REFERENCES["dev"]  # of 8, 6 and 3 words


def run(row: str, seed: int, dev: list[str], results: Path, table: str = "table3_A") -> Record:
    """A run that translated dev so, and test as its references are; no file beside it where dev is nothing."""
    hypotheses = {"dev": dev or WHOLE, "test": REFERENCES["test"]}
    made = {
        split: Translated(lines, REFERENCES[split], "en-de", in_tokens=False) for split, lines in hypotheses.items()
    }
    record = with_scores(paper_run(row, table, seed=seed, run=f"{len(row)}{seed:015x}"), made)
    if dev:
        write_sentences(path(results, record), record.run, made)
    return record


def test_empty_ones_are_counted_and_all_tokens_are_held_against_the_references(tmp_path: Path) -> None:
    records = [
        run("h=1", 1, ["", WHOLE[1], "das ist"], tmp_path),
        run("h=1", 2, [*WHOLE], tmp_path),
        run("h=4", 3, [f"{line} , ja" for line in WHOLE], tmp_path),
        run("h=16", 1, [*WHOLE], tmp_path),
        run("h=16", 2, [], tmp_path),
    ]
    made = with_lengths(table(records), records, tmp_path)
    found = made.set_index("row")
    assert found.loc["h=1", EMPTY] == pytest.approx(100 * (1 / 3 + 0) / 2)
    assert found.loc["h=1", [f"{RATIO}_min", f"{RATIO}_max"]].tolist() == pytest.approx([8 / 17, 1])
    assert found.loc["h=4", [EMPTY, RATIO]].tolist() == pytest.approx([0, 23 / 17])
    assert found.loc["h=16", [EMPTY, RATIO]].isna().all(), "one of its runs is not known"
    names, *others = tabled([row_column(made), *length_columns(made)]).columns
    columns = {column.heading: dict(zip(names.texts, column.texts, strict=True)) for column in others}
    assert {column.group for column in others} == {OF_TRANSLATIONS}
    assert [*columns["empty (%)"].values()] == ["16.7 [0.0, 33.3]", "0.0"], "of h=16 there is nothing to show"
    assert [*columns["length"].values()] == ["0.735 [0.471, 1.000]", "1.353"]
    assert DELTA not in columns, "there is no base"


def test_a_difference_of_lengths_is_over_common_seeds_and_says_where_it_decides(tmp_path: Path) -> None:
    # 16 of 17 words and all of them right, so less BLEU for the penalty alone; another word wrong, and no penalty
    short, wrong = [" ".join(WHOLE[0].split()[:-1]), *WHOLE[1:]], [f"x {WHOLE[0].split(' ', 1)[1]}", *WHOLE[1:]]
    base = [run("base", 1, short, tmp_path, table="base")]
    records = [run("h=1", 1, wrong, tmp_path), run("h=1", 2, [*WHOLE], tmp_path), run("h=4", 2, [*WHOLE], tmp_path)]
    of_other_text = {**records[0].corpus, "sha256": "cd"}
    records.append(replace(run("other", 1, wrong, tmp_path), corpus=of_other_text))
    made = with_lengths(table(records, base=base), [*base, *records], tmp_path)
    assert [column.texts for column in length_columns(made) if column.heading == DELTA] == [["", "+0.059", "", ""]]


@pytest.mark.parametrize(
    ("bleus", "lengths", "decides"),
    [
        ((20.0, 25.0), (0.8, 1.0), True),  # 20 e^0.25 = 25.7: better words, and fewer of them
        ((20.0, 25.0), (0.85, 1.0), False),  # 20 e^0.176 = 23.9
        ((25.0, 24.0), (1.2, 0.9), True),  # 24 e^0.111 = 26.8; what is too long has no penalty
        ((0.0, 20.0), (0.1, 1.0), False),
    ],
)
def test_length_decides_where_bleu_without_its_penalty_has_the_other_sign(
    bleus: tuple[float, float], lengths: tuple[float, float], decides: bool
) -> None:
    assert length_decides(bleus[0] - bleus[1], bleus, lengths) == decides


# On other sentences: against sacreBLEU's own test

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
LINES = [" ".join(RANDOM.choice(WORDS, size=RANDOM.integers(4, 15))) for _ in range(N)]
GOOD = [text(seed, 0.20, LINES) for seed in (4, 5, 6)]
BAD = [text(seed, 0.28, LINES) for seed in (40, 50, 60)]


def counted(hypotheses: list[str]) -> NgramCounts:
    return ngram_counts(hypotheses, LINES, "de")


def resampled(hypotheses: list[str]) -> list[float]:
    """BLEU of each of sacreBLEU's resamples, by sacreBLEU."""
    assert "SACREBLEU_SEED" not in os.environ
    metric = BLEU()
    stats = metric._extract_corpus_statistics(hypotheses, [LINES])
    return [one.score for one in _bootstrap_resample(stats, metric, RESAMPLES)[1]]


def test_one_run_of_each_row_is_sacrebleus_own_test() -> None:
    got = bleu_over_sentences([counted(GOOD[0])], [counted(BAD[0])])
    drawn = np.array(resampled(GOOD[0])) - np.array(resampled(BAD[0]))
    theirs = np.sort(drawn)
    assert got[1:3] == pytest.approx((theirs[25], theirs[974]), abs=1e-5)  # theirs adds in 32 bits
    scores = [BLEU().corpus_score(lines, [LINES]).score for lines in (GOOD[0], BAD[0])]
    assert got.value == pytest.approx(scores[0] - scores[1], abs=1e-9)
    assert got.n_sentences == N
    systems = [("other", BAD[0]), ("one", GOOD[0])]
    tested: Any = PairedTest(systems, {"BLEU": BLEU()}, [LINES], test_type="bs")()[1]["BLEU"][1]
    beyond = ((np.abs(drawn) - np.abs(drawn).mean()) > abs(got.value)).sum()
    assert tested.p_value == pytest.approx((beyond + 1) / (RESAMPLES + 1))


def test_several_seeds_are_the_mean_of_their_paired_differences_on_the_same_draws() -> None:
    got = bleu_over_sentences([*map(counted, GOOD)], [*map(counted, BAD)])
    pairs = [np.array(resampled(a)) - np.array(resampled(b)) for a, b in zip(GOOD, BAD, strict=True)]
    theirs = np.sort(np.mean(pairs, axis=0))
    assert got[1:3] == pytest.approx((theirs[25], theirs[974]), abs=1e-5)  # theirs adds in 32 bits


def test_runs_of_two_texts_are_no_pair() -> None:
    whole = counted(GOOD[0])
    fewer = NgramCounts(whole.hypothesis[:-1], whole.reference[:-1], whole.correct[:-1])
    with pytest.raises(ValueError, match="expected runs of one text"):
        bleu_over_sentences([whole], [fewer])
