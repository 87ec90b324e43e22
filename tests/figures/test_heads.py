"""Attention that runs left, by word and by head: whose it is, what a row and its entropy are, how alike heads are."""

import math
from collections.abc import Callable
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from figures.conftest import assert_words_stand_apart, attention, leave_inside

from repro.figures import heads
from repro.figures.heads import ROW, TABLE, Aligned, Alike, alike_heads, compared_alignments, cosines, draw_alignments
from repro.results.record import Record, path

Make = Callable[..., Record]
SOURCE = {"tokens": ["The", " cat", "s", " sleep"], "words": ["The", "cats", "sleep"], "of": [0, 1, 1, 2]}
TARGET = {"tokens": ["Kat", "zen", " schlafen"], "words": ["Katzen", "schlafen"], "of": [0, 0, 1]}
N_HEADS = 4  # 2 layers of 2


def leave(results: Path, record: Record, sentences: dict[str, Any], source: dict[str, Any] = SOURCE) -> Record:
    """A record, and beside it its attention to the source of each sentence, by where that is from."""
    told = ({"about": about, "source": source, "target": TARGET} for about in sentences)
    return leave_inside(results, record, zip(told, ({"cross": of} for of in sentences.values()), strict=True))


def cross(random: np.random.Generator, n_layers: int = 1, n_heads: int = 1) -> Any:
    return attention(random, (n_layers, n_heads, 3), 4)


def rung(make: Make, seed: int, row: str = ROW, **other: Any) -> Record:
    return make(row, seed, table=TABLE, system="a.System()", **other)


def test_a_row_is_a_word_and_its_entropy_that_of_the_row(a_record: Make, tmp_path: Path) -> None:
    eighths = np.array([[[[8, 0, 0, 0], [0, 4, 4, 0], [2, 2, 2, 2]], [[0, 0, 0, 8], [0, 0, 0, 8], [8, 0, 0, 0]]]]) / 8
    own = leave(tmp_path, rung(a_record, 1), {"line 1": eighths[:, :1]})
    base = leave(tmp_path, a_record("base", 1), {"line 1": np.concatenate([eighths, eighths[:, ::-1]])})
    _, [(one, other)] = compared_alignments([own], [base], tmp_path)
    # "Katzen" looks as the mean of its two pieces, "cats" has the weight of both of its own
    np.testing.assert_allclose(one.weights, [[0.5, 0.5, 0], [0.25, 0.5, 0.25]], atol=0.004)
    np.testing.assert_allclose(one.entropy, [math.log(2), 1.5 * math.log(2)], atol=0.01)
    np.testing.assert_allclose(one.own_entropy, one.entropy)
    assert other.heads.shape == (2, 2, 2, 3)
    np.testing.assert_allclose(other.weights, [[0.25, 0.25, 0.5], [0.625, 0.25, 0.125]], atol=0.004)
    expected = [-sum(p * math.log(p) for p in row) for row in ([0.25, 0.25, 0.5], [0.625, 0.25, 0.125])]
    np.testing.assert_allclose(other.entropy, expected, atol=0.01)
    # of a head that looks at two words by halves or a half and two quarters, and one that looks at a single word
    np.testing.assert_allclose(other.own_entropy, [math.log(2) / 2, 0.75 * math.log(2)], atol=0.01)
    np.testing.assert_allclose(other.weights.sum(1), 1)


def test_the_lowest_seed_is_held_against_a_base_of_the_same(a_record: Make, tmp_path: Path) -> None:
    random = np.random.default_rng(3)
    sentences = {f"line {n}": cross(random) for n in range(6)}
    rows = [
        leave(tmp_path, rung(a_record, 1, dirty=True), sentences),
        leave(tmp_path, rung(a_record, 1, "soft alignment, dot"), sentences),
        rung(a_record, 2),  # which left nothing
        *(leave(tmp_path, rung(a_record, seed), sentences) for seed in (5, 4)),
    ]
    elsewhere = {**SOURCE, "words": ["The", "dogs", "sleep"]}
    base = [
        leave(tmp_path, a_record("base", 4), sentences, elsewhere),  # whose lines are of another text
        *(leave(tmp_path, a_record("base", seed), {"line 7": sentences["line 1"], **sentences}) for seed in (6, 3)),
    ]
    runs, both = compared_alignments(rows, base, tmp_path)
    assert [(run.row, run.seed) for run in runs] == [(ROW, 4), ("base", 3)]
    assert [one.about for one, _ in both] == [f"line {n}" for n in range(4)]
    assert all(one.source == other.source for one, other in both)
    base.append(leave(tmp_path, a_record("base", 4), sentences))
    assert compared_alignments(rows, base[1:], tmp_path)[0][1].seed == 4  # though 3 is lower


def test_a_base_that_is_missing_is_named(a_record: Make, tmp_path: Path) -> None:
    own = leave(tmp_path, rung(a_record, 1), {"line 1": cross(np.random.default_rng(3))})
    with pytest.raises(ValueError, match="no run of committed code of the base row left .* sentences of soft"):
        compared_alignments([own], [a_record("base", 1)], tmp_path)


def test_the_picture_says_of_which_runs_and_sentences_it_is(a_record: Make, tmp_path: Path, notes: list[str]) -> None:
    random = np.random.default_rng(5)
    own = leave(tmp_path, rung(a_record, 3), {f"line {n}": cross(random) for n in (1, 2)})
    base = leave(tmp_path, a_record("base", 3), {f"line {n}": cross(random, 2, 2) for n in (1, 2)})
    draw_alignments([own], [base], tmp_path)
    assert all(words in notes[0] for words in ("line 1, line 2", own.run, "base seed 3"))


def test_each_matrix_is_its_systems_and_no_two_labels_touch(a_record: Make) -> None:
    random, n_source, n_target = np.random.default_rng(7), 27, 17
    long = "Geschwindigkeitsbegrenzung"

    def one(n_heads: int, n_rows: int) -> Aligned:
        heads = random.dirichlet(np.ones(n_source), (1, n_heads, n_rows))
        return Aligned("line 1", [f"{n}{long}" for n in range(n_source)], [long] * n_rows, heads)

    pair = one(1, n_target), one(3, n_target + 2)
    figure: Any = heads.paint_alignments((rung(a_record, 1), a_record("base", 1)), [pair] * 2)
    shown = [axes.images[0].get_array() for axes in figure.axes if axes.images]
    np.testing.assert_allclose(shown[1], pair[1].weights)
    np.testing.assert_allclose([bar.get_width() for bar in figure.axes[3].patches], pair[1].entropy)
    [of_heads, _] = figure.axes[3].get_lines()  # and the entropy of a look at all words alike
    np.testing.assert_allclose(of_heads.get_xdata(), pair[1].own_entropy)
    labels = [text for axes in figure.axes for text in (*axes.get_xticklabels(), axes.xaxis.label)]
    labels += [text for axes in figure.axes if axes.images for text in axes.get_yticklabels()]
    assert assert_words_stand_apart(figure, [*labels, *figure.texts]) > 2 * 2 * (n_source + n_target)
    assert len(long) > heads.LETTERS


def test_the_cosine_of_each_pair_is_the_mean_over_sentences() -> None:
    random = np.random.default_rng(5)
    sentences = [random.dirichlet(np.ones(k), (2, 3, q)) for q, k in ((4, 4), (7, 7), (3, 5))]
    found = cosines(sentences)
    assert found.shape == (6, 6)
    for one in range(6):
        for other in range(6):
            expected = []
            for weights in sentences:
                a, b = (weights[n // 3, n % 3].ravel() for n in (one, other))
                expected.append(sum(x * y for x, y in zip(a, b, strict=True)) / sqrt(sum(a * a) * sum(b * b)))
            assert found[one, other] == pytest.approx(sum(expected) / 3)


def test_pairs_of_one_layer_and_pairs_of_two(a_record: Make) -> None:
    found = np.array([[1, 0.9, 0.1, 0.2], [0.9, 1, 0.3, 0.4], [0.1, 0.3, 1, 0.5], [0.2, 0.4, 0.5, 1]])
    alike = Alike(a_record(), "encoder", found, n_heads=2, n_sentences=1)
    assert (alike.mean(same=True), alike.mean(same=False)) == (pytest.approx(0.7), pytest.approx(0.25))
    one_head, one_layer = (Alike(a_record(), "encoder", found, n_heads=n, n_sentences=1) for n in (1, 4))
    assert (one_head.mean(same=True), one_head.mean(same=False)) == (None, pytest.approx(0.4))
    assert (one_layer.mean(same=True), one_layer.mean(same=False)) == (pytest.approx(0.4), None)


def test_what_runs_left_is_drawn_and_what_does_not_count_is_left_out(a_record: Make, tmp_path: Path) -> None:
    random = np.random.default_rng(7)
    records = [a_record("base", seed) for seed in (1, 2, 3)]
    records.append(a_record("base", 4, dirty=True))
    sentences = []
    for record in records:
        weights = attention(random, (2, 2, 5), 5)
        sentences.append(weights)
        leave_inside(
            tmp_path, record, [({}, {"encoder": weights, "decoder": weights}), ({}, {"encoder": weights[..., ::-1]})]
        )
    without = a_record("base", 5)
    without.save(path(tmp_path, without))
    found = alike_heads([*records[::-1], without], tmp_path)
    assert [(one.record.seed, one.kind, one.n_sentences) for one in found] == [
        *((seed, "encoder", 2) for seed in (1, 2, 3)),
        *((seed, "decoder", 1) for seed in (1, 2, 3)),
    ]
    np.testing.assert_allclose(found[0].cosines, cosines([sentences[0]]), atol=0.02)  # weights are kept in a byte
    [figure] = heads.draw_similarity([*records, without], tmp_path)
    left, right, _ = figure.axes
    np.testing.assert_allclose(left.images[0].get_array(), found[0].cosines)
    of_runs, mean = right.get_lines()[:2]  # heads of one layer of the encoder
    np.testing.assert_allclose(of_runs.get_xdata(), [one.mean(same=True) for one in found[:3]])
    assert mean.get_xdata() == pytest.approx(np.mean([one.mean(same=True) for one in found[:3]]))
