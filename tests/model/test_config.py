"""The hyper-parameters of a row."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from repro.model.config import BASE, LATER, Hyper, divide, written


def test_the_defaults_are_the_base_model() -> None:
    # Table 3, first line; sections 5.3 and 5.4
    assert Hyper() == BASE
    assert (BASE.n_layers, BASE.d_model, BASE.d_ff, BASE.n_heads) == (6, 512, 2048, 8)
    assert (BASE.d_k, BASE.d_v, BASE.dropout, BASE.label_smoothing) == (64, 64, 0.1, 0.1)
    assert (BASE.steps, BASE.warmup, BASE.average, BASE.learned_positions) == (100_000, 4_000, 1, False)
    assert BASE.average_every == 1_500  # 10 minutes of 0.4 s


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_layers": 0}, "n_layers must be at least 1, got 0"),
        ({"average_every": 0}, "average_every must be at least 1, got 0"),
        ({"average": 68}, "68 checkpoints, 1500 updates apart, do not fit in 100000 steps"),
        ({"d_model": 7}, "d_model must be even, got 7"),
        ({"attention_dropout": 1.0}, r"attention_dropout must lie in \[0, 1\), got 1.0"),
        ({"lr_factor": 0.0}, "lr_factor must be a positive number, got 0.0"),
        ({"lr_factor": float("nan")}, "lr_factor must be a positive number, got nan"),
        ({"dropout": 1}, r"dropout must lie in \[0, 1\), got 1.0"),
        ({"d_ff": 2048 / 3}, r"d_ff must be a whole number, got 682\.66"),
        ({"steps": float("inf")}, "steps must be a whole number, got inf"),
        ({"n_heads": True}, "n_heads must be a whole number, got True"),
        ({"dropout": True}, "dropout must be a number, got True"),
        ({"dropout": "0.1"}, "dropout must be a number, got '0.1'"),
        ({"learned_positions": 1}, "learned_positions must be True or False, got 1"),
    ],
)
def test_what_cannot_be_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        replace(BASE, **change)


def test_numbers_are_kept_as_their_fields_have_them() -> None:
    asked = {"dropout": 0, "label_smoothing": np.float64(0.2), "lr_factor": 2, "d_ff": 2048 * 0.5, "steps": 1e3}
    made = replace(BASE, **asked, average_every=np.int64(20))
    assert made == replace(
        BASE, dropout=0.0, label_smoothing=0.2, lr_factor=2.0, d_ff=1024, steps=1000, average_every=20
    )
    assert {name: type(value) for name, value in vars(made).items()} == {
        name: type(value) for name, value in vars(BASE).items()
    }


def test_averaged_checkpoints_end_with_the_last_step() -> None:
    assert list(replace(BASE, average=1).averaged_steps) == [100_000]
    assert list(replace(BASE, average=3, average_every=7).averaged_steps) == [99_986, 99_993, 100_000]
    assert replace(BASE, average=67).averaged_steps[0] == 1_000


def test_the_last_ten_checkpoints_are_as_far_apart_and_end_with_the_last_step() -> None:
    assert list(BASE.last_steps) == [*range(86_500, 100_001, 1_500)]
    assert list(replace(BASE, steps=32, average_every=3).last_steps) == [5, 8, 11, 14, 17, 20, 23, 26, 29, 32]
    assert list(replace(BASE, steps=7, average_every=3).last_steps) == [1, 4, 7]
    assert list(replace(BASE, steps=2, average_every=3).last_steps) == [2]


def test_kept_are_the_averaged_checkpoints_and_the_last_ten() -> None:
    for average, kept in ((1, 10), (5, 10), (20, 20)):
        steps = replace(BASE, average=average).kept_steps
        assert {*steps} == {*BASE.last_steps} | {*replace(BASE, average=average).averaged_steps}
        assert (len(steps), steps[-1]) == (kept, BASE.steps)


def test_a_field_that_came_later_is_written_only_where_it_says_something() -> None:
    first = {name for name in vars(BASE) if name not in LATER}
    assert written(vars(BASE)).keys() == first
    assert written(vars(replace(BASE, lr_factor=2.0))) == {**written(vars(BASE)), "lr_factor": 2.0}
    assert (BASE.attention_dropout, BASE.lr_factor, BASE.warms_up) == (0.0, 1.0, True)


def test_divide() -> None:
    assert divide(512, 8) == 64
    with pytest.raises(ValueError, match="512 cannot be divided evenly by 3"):
        divide(512, 3)
