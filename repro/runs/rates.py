"""How fast this machine is, from finished runs or rows that were tried for some seconds. No torch.

A future run is expected to make the operations of its training at the rate of the most similar known run: one of the
same row, else of the row whose update has most nearly as many operations. Known runs have the same processor, device,
version of PyTorch, precision and number of threads and processes. Damaged records and very short runs are left out.
"""

import importlib.metadata
import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from repro.model.config import Hyper, written
from repro.results import record
from repro.results.processor import processor
from repro.results.systems import system_text
from repro.runs.cards import visible
from repro.runs.options import Options
from repro.storage import signed_json
from repro.storage.atomic import make_folder

TRIED, FORMAT = "rates", 3  # a folder of the cache: a file for each row that was tried
SCHEDULE = ("steps", "warmup", "average", "average_every", "lr_factor", "warms_up")  # no step takes longer for them
SHORTEST = 10.0  # seconds of training: less is mostly start-up
RECORDS = 300  # at most so many of the newest are read, so that a dry run answers at once
FLOPS_PER_CORE = 40e9  # sustained by one thread: a guess, used only for rows that are called unmeasured
OF_BF16 = {"avx512_bf16", "avx_ne_convert", "amx_bf16", "bf16", "svebf16"}  # flags of x86, then of ARM


@dataclass(frozen=True)
class Machine:
    """What a run would run on."""

    cpu: str  # as a record's stamp has it
    device: str  # likewise: a GPU's name, or the processor's
    torch: str  # its version

    @property
    def is_gpu(self) -> bool:
        """Whether the work is done on a card."""
        return self.device != self.cpu


@cache
def this_machine() -> Machine:
    """This machine, by what the system says: to ask PyTorch would take seconds."""
    cpu = processor().name
    device = next(iter(visible(os.environ).values()), cpu)  # the one that a run would take
    return Machine(cpu, device, importlib.metadata.version("torch").partition("+")[0])


@dataclass(frozen=True, kw_only=True)
class Known:
    """How fast one run was, or the trial of its row."""

    how: str  # `speed_conditions`
    row: str  # `row_of`
    flops: float  # of an update, by arithmetic
    tokens: int  # of an update, of each side
    train: float  # operations a second
    search: float | None  # sentences a second, times operations of training on a pair of tokens; None: a trial
    made: str  # UTC, ISO 8601
    memory: int | None = None  # bytes of a GPU at the peak of a whole update; None on a processor, or not known


def speed_conditions(machine: Machine, threads: int, processes: int, precision: str) -> str:
    """A hash of what runs must share for their rates to be comparable."""
    return signed_json.checksum({**asdict(machine), "threads": threads, "devices": processes, "precision": precision})


def row_of(hyper: Mapping[str, Any], system: str | None) -> str:
    """A hash that rows share whose steps take equally long."""
    row = {name: value for name, value in written(hyper).items() if name not in SCHEDULE}
    return signed_json.checksum({"hyper": row, "system": system})


def finished(options: Options) -> list[Known]:
    """What the newest finished runs with these settings took on this machine, the newest first."""
    files = sorted(options.runs_dir.glob("*/record.json"), key=os.path.getmtime, reverse=True)[:RECORDS]
    return _here(options, files, record.FORMAT, _of_record)


def tried(options: Options) -> list[Known]:
    """The same for rows that were tried, the newest first."""
    return _here(options, (options.cache_dir / TRIED).glob("*.json"), FORMAT, lambda content: Known(**content))


def _here(
    options: Options, files: Iterable[Path], version: int, known: Callable[[dict[str, Any]], Known]
) -> list[Known]:
    mine = speed_conditions(this_machine(), options.threads, options.processes, options.products)
    found = []
    for file in files:
        with suppress(OSError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError):
            content = signed_json.read(file, "a record", version)
            del content["format"]
            found.append(known(content))
    return sorted((one for one in found if one.how == mine), key=lambda one: one.made, reverse=True)


def _of_record(content: Mapping[str, Any]) -> Known:
    settings, stamp, cost, corpus = (content[name] for name in ("settings", "stamp", "cost", "corpus"))
    if cost["train_seconds"] < SHORTEST:
        raise ValueError(f"expected at least {SHORTEST:g} s of training, got {cost['train_seconds']}")
    machine = Machine(stamp["cpu"], stamp["device"], stamp["versions"]["torch"].partition("+")[0])
    flops, tokens, seconds = cost["flops"] / cost["steps"], settings["batch_tokens"], cost["decode_seconds"]
    searched = content["status"] == "finished" and seconds
    is_whole = machine.is_gpu and settings.get("accumulate", 1) == 1
    return Known(
        how=speed_conditions(machine, stamp["n_threads"], settings["devices"], settings["precision"]),
        row=row_of(content["hyper"], content.get("system")),
        flops=flops,
        tokens=tokens,
        train=cost["flops"] / cost["train_seconds"],
        search=(corpus["n_dev"] + corpus["n_test"]) / seconds * flops / tokens if searched else None,
        made=stamp["started"],
        memory=cost.get("peak_memory_bytes") if is_whole else None,
    )


def note_trial(cache: Path, one: Known) -> None:
    """Save a trial in place of an older one of the same row."""
    name = signed_json.checksum({"how": one.how, "row": one.row, "tokens": one.tokens})[:16]
    make_folder(cache / TRIED)
    signed_json.write(cache / TRIED / f"{name}.json", {"format": FORMAT, **asdict(one)})


def nearest(known: Sequence[Known], hyper: Hyper, system: Any, flops: float) -> Known | None:
    """The known run most like one of this row, whose update takes `flops` operations; None if none is known."""
    row = row_of(vars(hyper), system_text(system) or None)
    same = (one for one in known if one.row == row)
    return next(same, min(known, key=lambda one: abs(math.log(one.flops / flops)), default=None))


def card_peaks(options: Options) -> dict[tuple[str, int], int]:
    """Peak memory on a card of this machine, in bytes, by row and tokens of an update, from runs and trials.

    Of several peaks the largest counts, as a peak depends on which sentences are batched together.
    """
    found: dict[tuple[str, int], int] = {}
    for one in (*finished(options), *tried(options)):
        if one.memory is not None:
            found[one.row, one.tokens] = max(one.memory, found.get((one.row, one.tokens), 0))
    return found


def slow_products(options: Options) -> list[str]:
    """A warning if the precision makes runs slower on this machine; else, and for other machines, nothing.

    bfloat16 is faster where there are instructions for it, as on GPUs. There is no warning where the system does not
    tell what the processor can do.
    """
    machine, vectors = this_machine(), processor().vectors
    slow, instead = ("fp32", "bf16") if machine.is_gpu else ("bf16", "fp32")
    why = f"{machine.cpu} has no instructions for bfloat16, so it takes longer than fp32 here"
    if machine.is_gpu:
        why = "on a GPU an update takes several times as long as in bfloat16 (docs/performance.md)"
    elif not vectors or OF_BF16 & {*vectors}:
        return []
    if options.on != "here" or options.products != slow:
        return []
    return [f"--precision {slow}: {why}. Type --precision {instead} unless you need exactly the numbers of {slow}."]
