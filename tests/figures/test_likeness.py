"""How alike heads are: against loops over pairs, and by hand."""

import csv
from collections.abc import Callable
from math import sqrt
from pathlib import Path

import numpy as np
import pytest
from figure_samples import attention, leave_inside

from repro.figures.likeness import Alike, alike_heads, cosines, draw_similarity
from repro.results.record import Record, path

Make = Callable[..., Record]


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


def test_heads_that_are_identical_have_one_and_those_that_share_nothing_zero() -> None:
    first, last = (np.tile(row, (4, 1)) for row in (np.eye(3)[0], np.eye(3)[2]))
    found = cosines([np.stack([[first, first], [last, first]])])
    np.testing.assert_allclose(found[0], [1, 1, 0, 1])
    np.testing.assert_allclose(found[2], [0, 0, 1, 0])


def test_pairs_of_one_layer_and_pairs_of_two(a_record: Make) -> None:
    found = np.array([[1, 0.9, 0.1, 0.2], [0.9, 1, 0.3, 0.4], [0.1, 0.3, 1, 0.5], [0.2, 0.4, 0.5, 1]])
    alike = Alike(a_record(), "encoder", found, n_heads=2, n_sentences=1)
    assert (alike.within, alike.between) == (pytest.approx(0.7), pytest.approx(0.25))
    one_head = Alike(a_record(), "encoder", found, n_heads=1, n_sentences=1)
    assert one_head.within is None
    assert one_head.between == pytest.approx(0.4)
    one_layer = Alike(a_record(), "encoder", found, n_heads=4, n_sentences=1)
    assert one_layer.between is None
    assert one_layer.within == pytest.approx(0.4)


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
    *_, numbers = draw_similarity(tmp_path / "figures", [*records, without], tmp_path)
    with numbers.open(newline="") as lines:
        cells = list(csv.DictReader(lines))
    assert len(cells) == 6 * 6  # runs and kinds, pairs of 4 heads
    [cell] = [
        cell for cell in cells if [*cell.values()][:6] == ["2", "encoder", "2", "1", "1", "2"]
    ]  # seed, kind, layer and head, the other's
    assert float(cell["cosine"]) == pytest.approx(found[1].cosines[2, 1], rel=1e-5)


def test_heads_of_which_nothing_is_known(a_record: Make, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"left its attention weights .* Type the command of a run again"):
        draw_similarity(tmp_path, [a_record()], tmp_path)
