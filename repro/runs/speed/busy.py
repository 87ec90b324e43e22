"""Whether something else takes the processors while a run trains on them; said once, with what to do.

A thread that trains on a processor is never idle: it computes, or it waits for its turn. So its processor time falls
behind the clock just when others have the processors. A checkpoint in between waits for the disk, and does not count.
"""

import os
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

from repro.runs.processors import processors

ENOUGH = 0.7  # of a processor: a run that gets less is told of
SECONDS, LINES = 6.0, 7  # of training that are looked at together, at least


@dataclass(frozen=True)
class Gap:
    """The time between two lines of the journal, in seconds."""

    clock: float
    processor: float  # seconds of it

    @property
    def share(self) -> float:
        """Of a processor."""
        return self.processor / self.clock if self.clock > 0 else 1.0


class BusyWatch:
    """Looks at the runs of one process, one after the other, and says once what it finds."""

    def __init__(
        self,
        tell: Callable[[str], object],
        *,
        threads: int = 1,
        clock: Callable[[], float] = time.monotonic,
        processor: Callable[[], float] | None = None,
        load: Callable[[], float | None] = lambda: load_average(),
    ) -> None:
        # alone it computes beside the tracker's thread, which keeps it waiting for seconds while it starts; of several
        # threads the others' time says little, for they spin where they wait
        self.processor = processor or (time.process_time if threads == 1 else time.thread_time)
        self.tell, self.clock, self.load = tell, clock, load
        self.said = False
        self.gaps: deque[Gap] = deque()
        self.last: tuple[float, float] | None = None  # clock and processor at the last line

    def begin(self) -> None:
        """What comes next begins now: nothing of what was before counts, and no time up to here."""
        self.gaps.clear()
        self.last = None

    def line(self, counts: bool = True) -> None:
        """Some steps were made since the last line; they count where nothing else was done in between."""
        here = self.clock(), self.processor()
        if self.last and counts and not self.said:
            self.gaps.append(Gap(here[0] - self.last[0], here[1] - self.last[1]))
            self._look()
        self.last = here

    def _look(self) -> None:
        # the middle one: a process that was stopped for a while (Ctrl-Z, a laptop asleep) has one gap that says nothing
        if len(self.gaps) < LINES:
            return
        middle = median(gap.share for gap in self.gaps)
        usual = median(gap.clock for gap in self.gaps)
        if usual * len(self.gaps) < SECONDS:
            return
        self.gaps.popleft()
        if middle < ENOUGH:
            self.said = True
            self.tell(busy_sentence(middle, usual * (len(self.gaps) + 1), self.load()))


def busy_sentence(share: float, seconds: float, load: float | None) -> str:
    """What a user should know of a busy machine, and do about it."""
    about = "" if load is None else f", load average {load:.1f} on {processors()} processors"
    return (
        f"This machine is busy: for {seconds:.0f} s a training thread had {share:.0%} of a processor{about}. Runs take "
        f"about {1 / max(share, 0.01):.1f} times as long while that lasts; their results are the same. See what else "
        "runs (top), or ask for fewer runs at once (--jobs)."
    )


def load_average() -> float | None:
    """Processes that ran or waited for a processor in the last minute; None where the system does not tell."""
    try:
        return os.getloadavg()[0]
    except (AttributeError, OSError):
        return None
