"""How fast this machine is, by what finished runs took, or rows that were tried for some seconds. No torch.

A run that is to come takes the operations of its training at the rate of the known run that is most like it: of the
same row, else of the row whose update has most nearly as many operations. Known are those of the same processor,
device, version of PyTorch, precision and number of threads and processes. What is damaged is left out, and what was
over at once.
"""

import importlib.metadata
import math
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, Protocol, Self

from repro.model.config import Hyper, written
from repro.results import record
from repro.results.processor import processor
from repro.results.systems import system_text
from repro.runs.cards import visible
from repro.storage import signed_json
from repro.storage.folder_cache import alone

FILE, FORMAT = "speed.json", 2  # in the cache folder: rows that were tried
SCHEDULE = ("steps", "warmup", "average", "average_every", "lr_factor", "warms_up")  # no step is longer for them
SHORTEST = 10.0  # seconds of training: less is mostly what a process does at first
RECORDS = 300  # at most so many of the newest are looked at: a dry run answers at once


class How(Protocol):
    """The settings that decide speed beside row and scale: those of a command, or of a run."""

    @property
    def threads(self) -> int: ...
    @property
    def processes(self) -> int: ...  # that share each update
    @property
    def products(self) -> str: ...  # the precision of matrix products


@dataclass(frozen=True)
class Machine:
    """What a run would run on."""

    cpu: str  # as a record's stamp has it
    device: str  # likewise: a GPU's name, or the processor's
    torch: str | None  # its version; None: not installed


@dataclass(frozen=True, kw_only=True)
class Known:
    """What one run took, or the trial of its row."""

    how: str  # `speed_conditions`
    row: str  # `row_of`
    flops: float  # of an update, by arithmetic
    tokens: int  # of an update, of each side
    step: float  # seconds of an update
    sentence: float | None  # seconds to search and score one of held-out text; None: not known
    made: str  # UTC, ISO 8601
    memory: int | None = None  # bytes of a GPU at the peak of a whole update; None on a processor, or not known

    def __post_init__(self) -> None:
        known = [one for one in (self.sentence, self.memory) if one is not None]
        numbers = [self.step, self.flops, self.tokens, *known]
        if not all(type(number) in (int, float) and 0 < number < math.inf for number in numbers):
            raise ValueError(f"expected positive numbers, got {self}")


@cache
def this_machine() -> Machine:
    """This one, by what the system says: PyTorch is not asked, which would take seconds."""
    cpu = processor().name
    with suppress(importlib.metadata.PackageNotFoundError):
        card = next(iter(visible(os.environ).values()), cpu)  # that a run would take
        return Machine(cpu, card, importlib.metadata.version("torch").partition("+")[0])
    return Machine(cpu, cpu, None)


def speed_conditions(machine: Machine, threads: int, processes: int, precision: str) -> str:
    """What runs have in common whose rates say something of each other."""
    return signed_json.checksum({**asdict(machine), "threads": threads, "devices": processes, "precision": precision})


def row_of(hyper: Mapping[str, Any], system: str | None) -> str:
    """What rows have in common that take as long a step."""
    row = {name: value for name, value in written(hyper).items() if name not in SCHEDULE}
    return signed_json.checksum({"hyper": row, "system": system})


@dataclass(frozen=True)
class Speeds:
    """What finished runs with these settings took on this machine, the newest first; where none has, trials of rows."""

    how: How
    known: Sequence[Known]

    @classmethod
    def load(cls, cache: Path, runs: Path, how: How) -> Self:
        """Of the runs that are finished, or else of the rows that were tried."""
        mine = speed_conditions(this_machine(), how.threads, how.processes, how.products)
        done, others = ([one for one in found if one.how == mine] for found in (finished(runs), tried(cache)))
        return cls(how, sorted(done or others, key=lambda one: one.made, reverse=True))

    def nearest(self, hyper: Hyper, system: Any, flops: float) -> Known | None:
        """The known run most like one of this row, an update of which takes so many operations; None of none."""
        row = row_of(vars(hyper), system_text(system) or None)
        same = (one for one in self.known if one.row == row)
        return next(same, min(self.known, key=lambda one: abs(math.log(one.flops / flops)), default=None))


def card_peaks(cache: Path, runs: Path, how: How) -> dict[tuple[str, int], int]:
    """Bytes of a card of this machine at the peak, by row and tokens of an update: of runs, and of trials.

    The largest of several, as a peak depends on which sentences came together.
    """
    mine = speed_conditions(this_machine(), how.threads, how.processes, how.products)
    found: dict[tuple[str, int], int] = {}
    for one in (*finished(runs), *tried(cache)):
        if one.how == mine and one.memory is not None:
            found[one.row, one.tokens] = max(one.memory, found.get((one.row, one.tokens), 0))
    return found


# Finished runs ---------------------------------------------------------------------------------------------------


def finished(runs: Path) -> list[Known]:
    """What the newest finished runs took, whichever machine they ran on."""
    newest = sorted(runs.glob("*/record.json"), key=_made_at, reverse=True)[:RECORDS]
    found = []
    for path in newest:
        with suppress(OSError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError):
            found.append(_of_record(signed_json.read(path, "a record", record.FORMAT)))
    return found


def _made_at(path: Path) -> float:
    with suppress(OSError):
        return path.stat().st_mtime
    return 0.0


def _of_record(content: Mapping[str, Any]) -> Known:
    settings, stamp, cost, corpus = (content[name] for name in ("settings", "stamp", "cost", "corpus"))
    if cost["train_seconds"] < SHORTEST:
        raise ValueError(f"expected at least {SHORTEST:g} s of training, got {cost['train_seconds']}")
    machine = Machine(stamp["cpu"], stamp["device"], stamp["versions"]["torch"].partition("+")[0])
    is_on_card = stamp["device"] not in (None, stamp["cpu"])
    searched = content["status"] == "finished" and cost["decode_seconds"]
    return Known(
        how=speed_conditions(machine, stamp["n_threads"], settings["devices"], settings["precision"]),
        row=row_of(content["hyper"], content.get("system")),
        flops=cost["flops"] / cost["steps"],
        tokens=settings["batch_tokens"],
        step=cost["train_seconds"] / cost["steps"],
        sentence=cost["decode_seconds"] / (corpus["n_dev"] + corpus["n_test"]) if searched else None,
        made=stamp["started"],
        memory=None if settings.get("accumulate", 1) > 1 or not is_on_card else cost.get("peak_memory_bytes"),
    )


# Rows that were tried --------------------------------------------------------------------------------------------


def tried(cache: Path) -> list[Known]:
    """What `note_trial` kept; nothing where there is no such file or it is damaged."""
    found = []
    with suppress(OSError, ValueError, RecursionError, AttributeError):
        for one in signed_json.read(cache / FILE, "rates", FORMAT)["known"]:
            with suppress(TypeError, ValueError):
                found.append(Known(**one))
    return found


def note_trial(cache: Path, one: Known) -> None:
    """Keep it in place of an older one of the same row; processes that keep some at once wait for each other."""
    with alone(cache / f".{FILE}.lock", lambda said: None):
        others = [other for other in tried(cache) if (other.how, other.row) != (one.how, one.row)]
        signed_json.write(cache / FILE, {"format": FORMAT, "known": [asdict(other) for other in (*others, one)]})


def now() -> str:
    """The time as rates have it."""
    return datetime.now(UTC).isoformat(timespec="seconds")
