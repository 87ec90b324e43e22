"""A busy machine is told of once; whatever else keeps a process waiting is not."""

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from repro.runs.speed.busy import BusyWatch, busy_sentence


class Machine:
    """Clocks that a test turns."""

    def __init__(self) -> None:
        self.now = self.worked = 0.0
        self.said: list[str] = []
        self.watch = BusyWatch(
            self.said.append, clock=lambda: self.now, processor=lambda: self.worked, load=lambda: 3.5
        )

    def steps(self, seconds: float, share: float, n: int = 1, *, counts: bool = True) -> None:
        """n lines, with so many seconds of the clock before each, of which the thread had a share."""
        for _ in range(n):
            self.now += seconds
            self.worked += seconds * share
            self.watch.line(counts)


@pytest.fixture
def machine() -> Machine:
    return Machine()


def test_a_quiet_machine_is_not_told_of(machine: Machine) -> None:
    machine.steps(1, 0.98, 100)
    assert machine.said == []


def test_a_busy_machine_is_told_of_once(machine: Machine) -> None:
    machine.steps(1, 1.0, 20)
    machine.watch.begin()  # another run
    machine.steps(1, 0.4, 50)
    machine.watch.begin()
    machine.steps(1, 0.3, 50)
    [said] = machine.said
    assert "had 40% of a processor, load average 3.5 on " in said
    assert "Runs take about 2.5 times as long" in said
    assert "--jobs" in said


def test_it_is_told_after_some_seconds_and_some_lines(machine: Machine) -> None:
    machine.steps(1, 0.5, 7)  # the first line has no beginning
    assert machine.said == []
    machine.steps(1, 0.5)
    assert len(machine.said) == 1


def test_a_run_of_a_second_is_too_short_to_say_anything(machine: Machine) -> None:
    machine.steps(0.05, 0.1, 20)
    assert machine.said == []
    machine.steps(0.05, 0.1, 120)  # lines that follow each other fast are looked at for as long
    assert len(machine.said) == 1


@pytest.mark.parametrize("share", [0.75, 0.95])
def test_a_process_that_was_stopped_for_a_while_is_not_told_of(machine: Machine, share: float) -> None:
    for _ in range(10):  # Ctrl-Z, and on again, many times
        machine.steps(1, share, 6)
        machine.steps(300, 0.0)
    assert machine.said == []


def test_what_waits_for_the_disk_does_not_count(machine: Machine) -> None:
    for _ in range(30):
        machine.steps(1, 0.9)
        machine.steps(5, 0.1, counts=False)  # a checkpoint, a validation
    assert machine.said == []
    machine.steps(1, 0.3, 60)
    assert len(machine.said) == 1


def test_time_between_runs_does_not_count(machine: Machine) -> None:
    for _ in range(20):
        machine.watch.begin()
        machine.now += 60  # text is prepared, another run is scored
        machine.steps(1, 0.95, 4)
    assert machine.said == []


def test_a_clock_that_stands_still_says_nothing(machine: Machine) -> None:
    machine.steps(0, 0.0, 20)
    assert machine.said == []


def test_where_the_system_does_not_tell_its_load() -> None:
    assert "load average" not in busy_sentence(0.5, 10.0, None)


@pytest.fixture
def burners() -> Iterator[int]:
    """Three processes that take all they get of one processor; its number."""
    if not hasattr(os, "sched_setaffinity"):
        pytest.skip("this system does not say which processor a process runs on")
    core = min(os.sched_getaffinity(0))
    code = f"import os\nos.sched_setaffinity(0, {{{core}}})\nwhile True: pass"
    started = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(3)]
    try:
        yield core
    finally:
        for process in started:
            process.kill()
            process.wait()


@pytest.mark.faults
def test_a_real_burner_on_the_same_processor_is_noticed(burners: int) -> None:
    before = os.sched_getaffinity(0)
    said: list[str] = []
    watch = BusyWatch(said.append)
    os.sched_setaffinity(0, {burners})
    try:
        end = time.monotonic() + 40
        while not said and time.monotonic() < end:
            line = time.monotonic() + 1
            while time.monotonic() < line:
                sum(range(1000))
            watch.line()
    finally:
        os.sched_setaffinity(0, before)
    assert said
    assert int(re.findall(r"had (\d+)%", said[0])[0]) < 70
