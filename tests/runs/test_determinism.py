"""A badge stands for what was looked at, and for nothing else."""

from typing import Any

import pytest
import torch

from repro.runs.determinism import determinism, repeated_lines, weights_digest
from repro.training.replay_check import ReproducibilityReport

CPU = {"threads": 1, "processes": 1, "on GPU": False, "deterministic mode": False}


def line(step: int, attempt: int = 1, **values: float) -> dict[str, Any]:
    clock = {"time": 0.5 * attempt, "tokens_per_second": 7.0 * attempt}
    return {"kind": "train", "step": step, "attempt": attempt} | clock | values


def badge(
    report: dict[str, Any] | None = None, lines: list[dict[str, Any]] | None = None, **now: Any
) -> tuple[Any, Any]:
    """Of a run in which all was as it should be, but for what is given."""
    seen: dict[str, Any] = {"order": "ab", "followed": 6, "replayed": 1, "conditions": [(0, CPU | now)]}
    whole = ReproducibilityReport(**seen | (report or {}))
    made = determinism(whole, plan="ab", shares=6, lines=lines or [], weights="cd")
    return made["badge"], made["against"]


def test_all_was_looked_at_and_good() -> None:
    assert badge() == ("L1", [])
    assert badge(**{"on GPU": True, "deterministic mode": True}) == ("L2", [])
    again = [line(1, loss=3.0), line(1, attempt=2, loss=3.0)]
    assert badge({"replayed": 0}, lines=again, processes=2) == ("L3", [])


@pytest.mark.parametrize(
    ("report", "now", "why"),
    [
        ({"replayed": 0}, {}, "no micro-batch was computed twice"),
        ({"unequal": 1}, {}, "1 of 1 micro-batches computed twice differ"),
        ({}, {"on GPU": True}, "a GPU, and not in PyTorch's deterministic mode"),
        ({"replayed": 0}, {"processes": 2}, "several processes, and no journal line was repeated on CPUs"),
        ({"conditions": [(0, CPU), (3, CPU | {"threads": 2})]}, {}, "From step 3 on: threads 1, then 2"),
    ],
)
def test_what_was_not_looked_at_or_failed_leaves_the_order_alone(report: Any, now: Any, why: str) -> None:
    assert badge(report, **now) == ("L0", [why])


@pytest.mark.parametrize("report", [{"order": "ac"}, {"followed": 5}, {"followed": 0}])
def test_another_order_has_no_badge(report: Any) -> None:
    found, why = badge(report)
    assert found is None
    assert "or they were not those planned" in why[0]


def test_lines_that_came_again_must_be_the_same() -> None:
    same = [line(1, loss=3.0), line(2, loss=2.5), line(2, attempt=2, loss=2.5), line(3, attempt=2, loss=2.0)]
    assert repeated_lines(same) == (1, [])
    other = [*same, line(3, attempt=3, loss=2.0 + 2**-51)]
    assert repeated_lines(other) == (2, ["train 3"])
    assert badge(lines=other) == ("L0", ["1 of 2 repeated journal lines differ: train 3"])
    nan = [line(1, loss=float("nan")), line(1, attempt=2, loss=float("nan"))]
    assert repeated_lines(nan) == (1, [])


def test_a_digest_tells_every_bit_name_type_and_shape() -> None:
    weights = {"a": torch.zeros(2, 3), "b": torch.ones(1)}
    others = [
        {"a": torch.zeros(3, 2), "b": torch.ones(1)},
        {"a": torch.zeros(2, 3), "c": torch.ones(1)},
        {"a": torch.zeros(2, 3), "b": torch.ones(1, dtype=torch.int32)},
        {"a": -torch.zeros(2, 3), "b": torch.ones(1)},
    ]
    assert len({weights_digest(one) for one in (weights, *others)}) == 5
    assert weights_digest(dict(reversed(weights.items()))) == weights_digest(weights)
