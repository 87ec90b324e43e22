"""Where the source enters a decoder, against what each class says of itself."""

import csv
from pathlib import Path

import numpy as np
import torch
from matplotlib.figure import Figure

from repro.figures.decoders import NARROW, SOURCE, WRITTEN, Entrances, draw_decoders, entrances, three_decoders
from repro.model.rivals.attention_rnn import SoftAlignment
from repro.model.rivals.recurrent import Simple, StaticLast, StaticMean

S, T = len(SOURCE), len(WRITTEN)


def of(kind: type[Simple]) -> Entrances:
    torch.manual_seed(3)
    return entrances(kind(NARROW, 23).double(), range(3, 3 + S), range(10, 10 + T))


def test_a_simple_decoder_has_the_last_state_and_nothing_after() -> None:
    found = of(Simple)
    np.testing.assert_array_equal(found.first > 0, [False] * (S - 1) + [True])
    assert not found.steps.any()
    assert not found.both_ways


def test_a_static_context_is_the_same_at_each_step() -> None:
    found = of(StaticMean)
    np.testing.assert_allclose(found.steps, np.full((T, S), 1 / S))
    np.testing.assert_array_equal(found.first > 0, [True] + [False] * (S - 1))  # the end of what was read backwards
    assert found.is_same
    assert found.both_ways
    both_ends = of(StaticLast).steps > 0
    np.testing.assert_array_equal(both_ends, [[True, *[False] * (S - 2), True]] * T)


def test_soft_alignment_sees_every_word_at_each_step_and_each_time_otherwise() -> None:
    found = of(SoftAlignment)
    assert (found.steps > 0).all()
    np.testing.assert_allclose(found.steps.sum(1), 1)
    assert not found.is_same


def test_the_picture_has_three_and_its_numbers(tmp_path: Path, painted: list[Figure]) -> None:
    before = torch.random.get_rng_state()
    picture, numbers = draw_decoders(tmp_path)
    assert torch.equal(torch.random.get_rng_state(), before)
    assert picture.suffix == ".svg"
    with numbers.open(newline="") as lines:
        cells = list(csv.DictReader(lines))
    assert len(cells) == 3 * (1 + T) * S
    assert [found.is_same for found in three_decoders().values()] == [True, True, False]
    shown = [np.ma.filled(axes.images[0].get_array(), 0) for axes in painted[0].axes]
    np.testing.assert_allclose(shown, [np.vstack([of.first, of.steps]) for of in three_decoders().values()])
