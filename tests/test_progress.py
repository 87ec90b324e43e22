"""Plain lines where there is no terminal."""

import pytest

from repro import progress
from repro.progress import Progress


def test_time_left_counts_the_steps_of_this_attempt(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: clock[0])
    with Progress("table3_A", 1) as shown:
        shown.begin("base seed 1", 1_000)
        clock[0] = 20.0
        shown.step(900, loss=2.5)  # resumed: no rate is known yet
        clock[0] = 40.0
        shown.step(910, loss=2.25, tokens=12_345.6)  # 10 steps in 20 s: 90 more take 180 s
    assert capsys.readouterr().out.split("\n") == [
        "table3_A  base seed 1  900/1000  loss 2.500",
        "table3_A  base seed 1  910/1000  loss 2.250  tokens 12,346  180 s left",
        "",
    ]


def test_quiet_ranks_say_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with Progress("table3_A", 1, quiet=True) as shown:
        shown.begin("base seed 1", 2)
        shown.step(2)
        shown.say("done")
    assert capsys.readouterr().out == ""
