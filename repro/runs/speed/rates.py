"""How fast this machine is, by what finished runs took, or rows that were tried for some seconds. No torch.

A run that is to come takes the operations of its training at the rate of the known run that is most like it: of the
same row, else of the row whose update has most nearly as many operations. Known are those of the same processor,
device, version of PyTorch, precision and number of threads and processes. What is damaged is left out, and what was
over at once.
"""

import importlib.metadata
import json
import math
import os
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, Self

from repro.model.config import Hyper, written
from repro.results import record
from repro.results.places import PACKAGE
from repro.results.processor import processor
from repro.results.systems import system_text
from repro.runs.cards import visible
from repro.runs.options import Options
from repro.storage import signed_json
from repro.storage.folder_cache import alone

FILE, FORMAT = "speed.json", 2  # in the cache folder: rows that were tried
SCHEDULE = ("steps", "warmup", "average", "average_every", "lr_factor", "warms_up")  # no step is longer for them
SHORTEST = 10.0  # seconds of training: less is mostly what a process does at first
RECORDS = 300  # at most so many of the newest are looked at: a dry run answers at once
OF_BF16 = {"avx512_bf16", "avx_ne_convert", "amx_bf16", "bf16", "svebf16"}  # flags of x86, then of ARM
MEASURED = PACKAGE.parent / "benchmarks/records/gpu.json"


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

    how: Options
    known: Sequence[Known]

    @classmethod
    def load(cls, cache: Path, runs: Path, how: Options) -> Self:
        """Of the runs that are finished, or else of the rows that were tried."""
        mine = speed_conditions(this_machine(), how.threads, how.processes, how.products)
        done, others = ([one for one in found if one.how == mine] for found in (finished(runs), tried(cache)))
        return cls(how, sorted(done or others, key=lambda one: one.made, reverse=True))

    def nearest(self, hyper: Hyper, system: Any, flops: float) -> Known | None:
        """The known run most like one of this row, an update of which takes so many operations; None of none."""
        row = row_of(vars(hyper), system_text(system) or None)
        same = (one for one in self.known if one.row == row)
        return next(same, min(self.known, key=lambda one: abs(math.log(one.flops / flops)), default=None))


def card_peaks(cache: Path, runs: Path, how: Options) -> dict[tuple[str, int], int]:
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
    with suppress(OSError, ValueError, LookupError, TypeError):
        return [Known(**one) for one in signed_json.read(cache / FILE, "rates", FORMAT)["known"]]
    return []


def note_trial(cache: Path, one: Known) -> None:
    """Keep it in place of an older one of the same row; processes that keep some at once wait for each other."""
    with alone(cache / f".{FILE}.lock", lambda said: None):
        others = [other for other in tried(cache) if (other.how, other.row) != (one.how, one.row)]
        signed_json.write(cache / FILE, {"format": FORMAT, "known": [asdict(other) for other in (*others, one)]})


def now() -> str:
    """The time as rates have it."""
    return datetime.now(UTC).isoformat(timespec="seconds")


# Precision -------------------------------------------------------------------------------------------------------


def slow_products(
    options: Options, machine: Machine | None = None, vectors: Collection[str] | None = None
) -> list[str]:
    """A line to say of runs that take longer by their precision; else none, and none of runs on other machines.

    bfloat16 is faster where there are instructions for it, as on GPUs. Nothing is said where the system does not tell
    what the processor can do (`vectors` is empty).
    """
    machine = machine or this_machine()
    vectors = processor().vectors if vectors is None else vectors
    asked, instead = ("bf16", "fp32") if machine.device == machine.cpu else ("fp32", "bf16")
    if options.on != "here" or options.products != asked:
        return []
    if asked == "fp32":
        why = f"on a GPU an update takes {measured_factor() or 'several times as long as in bfloat16'}"
    elif not vectors or OF_BF16 & {*vectors}:
        return []
    else:
        why = f"{machine.cpu} has no instructions for bfloat16, so it takes longer than fp32 here"
    return [f"--precision {asked}: {why}. Type --precision {instead}, unless it is these digits that are wanted."]


def measured_factor(record: Path = MEASURED) -> str | None:
    """How much longer an update of the base takes in float32, and on which card; None where no record is at hand."""
    with suppress(OSError, ValueError, LookupError, TypeError):
        content = json.loads(record.read_bytes())
        of_base = {one["ways"]: one["milliseconds"] for one in content["steps"] if one["size"] == "base"}
        times = of_base["without bf16"] / of_base["all"]
        return f"{times:.1f} times as long as in bfloat16 (the base, {content['stamp']['device']})"
    return None
