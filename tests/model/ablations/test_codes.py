"""Codes of positions by hand."""

import torch

from repro.model.ablations.codes import FastSinusoids, NoPositions, OneHotPositions, ScalarPositions, SlowSinusoids
from repro.model.embedding import SinusoidalPositions, sinusoids


def test_by_hand() -> None:
    assert not NoPositions(3)(5, 7).any()
    assert NoPositions(3)(5, 7).shape == (2, 3)
    assert ScalarPositions(3)(63, 65).tolist() == [[63 / 128, 0, 0], [0.5, 0, 0]]
    assert OneHotPositions(3)(1, 5).tolist() == [[0, 1, 0], [0, 0, 1], [0, 0, 1], [0, 0, 1]]


def test_halves_of_sinusoids_are_what_they_say_and_make_the_whole() -> None:
    fast, slow, whole = (kind(8)(0, 300) for kind in (FastSinusoids, SlowSinusoids, SinusoidalPositions))
    assert torch.equal(fast[:, :4], sinusoids(300, 8)[:, :4])
    assert not fast[:, 4:].any()
    assert not slow[:, :4].any()
    assert torch.equal(fast + slow, whole)
