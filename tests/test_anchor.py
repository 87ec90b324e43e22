"""The anchor is the published recipe, in numbers: its size, its rate, and what is averaged."""

import runpy
from dataclasses import replace
from pathlib import Path

from repro.model.cost import n_parameters
from repro.runs.scales import SCALES
from repro.training.schedule import rate

[TINY] = runpy.run_path(str(Path(__file__).parents[1] / "experiments" / "anchor.py"))["ROWS"]


def test_the_rate_rises_to_five_thousandths_in_two_thousand_updates() -> None:
    made = TINY.at(replace(SCALES["captions"].base, steps=12_000), equal_updates=True)
    rates = [rate(step, made.d_model, made.warmup, made.lr_factor) for step in (1_000, 2_000, 8_000)]
    assert [round(one, 6) for one in rates] == [0.0025, 0.005, 0.0025]


def test_ten_checkpoints_lie_over_the_last_sixth_of_the_updates() -> None:
    made = TINY.at(replace(SCALES["captions"].base, steps=12_000), equal_updates=True)
    assert [*made.averaged_steps] == [10_200, 10_400, 10_600, 10_800, 11_000, 11_200, 11_400, 11_600, 11_800, 12_000]


def test_its_size_is_its_own_at_every_scale() -> None:
    attention, norm = 4 * (128**2 + 128), 2 * 128
    encoder = attention + norm + (2 * 128 * 256 + 256 + 128) + norm
    decoder = encoder + attention + norm
    for scale in SCALES.values():
        assert n_parameters(TINY.at(scale.base), vocab_size=7) == 4 * (encoder + decoder) + 7 * 128
