"""What a sweep says of its runs and of the time left, in plain lines where there is no terminal."""

import pytest

from repro.runs import progress
from repro.runs.progress import Progress


def test_time_left_counts_the_steps_of_this_attempt(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: clock[0])
    with Progress("table3_A", 1) as shown:
        lane = shown.lane()
        lane.begin("base seed 1", 1_000)
        clock[0] = 20.0
        lane.step(900, loss=2.5)  # resumed: no rate is known yet
        clock[0] = 40.0
        lane.step(910, loss=2.25, tokens=12_345.6)  # 10 steps in 20 s: 90 more take 180 s
    assert capsys.readouterr().out.split("\n") == [
        "table3_A  base seed 1  900/1000  loss 2.500",
        "table3_A  base seed 1  910/1000  loss 2.250  tokens 12,346  180 s left",
        "",
    ]


def test_the_time_left_of_the_whole_is_that_of_the_last_worker_at_the_pace_seen(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: clock[0])
    with Progress("table3_A", 5) as shown:
        shown.expected = {cell: 120.0 for cell in range(5)}
        one, _ = shown.lane(), shown.lane()
        one.begin("h=1 seed 1", 1_000)
        for seconds, ended in ((61.0, ()), (240.0, (0, 1)), (301.0, ()), (1_000.0, ())):
            clock[0] = seconds
            for cell in ended:
                shown.finish_run(cell)
            one.step(250)
    lines = [line for line in capsys.readouterr().out.split("\n") if "runs done" in line]
    assert lines == [
        "table3_A  0 of 5 runs done  about 5.0 min left",  # three runs of 120 s for one of two workers, less 61 s
        "table3_A  2 of 5 runs done  about 8.0 min left",  # a run takes 240 s: two of them
        "table3_A  2 of 5 runs done  about 7.0 min left",
        "table3_A  2 of 5 runs done  longer than forecast",
    ]


def test_quiet_ranks_say_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with Progress("table3_A", 1, quiet=True) as shown:
        lane = shown.lane()
        lane.begin("base seed 1", 2)
        lane.step(2)
        shown.say("done")
    assert capsys.readouterr().out == ""
