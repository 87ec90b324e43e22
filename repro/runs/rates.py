"""How fast this machine is, from the runs that finished here. No torch.

A future run is expected to make the operations of its training at the rate of the most similar known run: one of the
same row, else of the row whose update has most nearly as many operations. Known runs have the same processor, device,
version of PyTorch, precision and number of threads and processes. Damaged records and very short runs are left out.
"""

import importlib.metadata
import math
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import Any

from repro.model.config import Hyper, written
from repro.results import record
from repro.results.processor import processor
from repro.results.systems import system_text
from repro.runs.cards import visible
from repro.runs.options import Options
from repro.storage import signed_json

SCHEDULE = ("steps", "warmup", "average", "average_every", "lr_factor", "warms_up")  # no step takes longer for them
SHORTEST = 10.0  # seconds of training: less is mostly start-up
RECORDS = 300  # at most so many of the newest are read, so that a dry run answers at once
FLOPS_PER_CORE = 25e9  # of one thread in float32: the median of the published runs at `laptop`


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
    """How fast one run was."""

    row: str  # `row_of`
    flops: float  # of an update, by arithmetic
    tokens: int  # of an update, of each side
    train: float  # operations a second
    search: float | None  # sentences a second, times operations of training on a pair of tokens; None: it diverged


def row_of(hyper: Mapping[str, Any], system: str | None) -> str:
    """A hash that rows share whose steps take equally long."""
    row = {name: value for name, value in written(hyper).items() if name not in SCHEDULE}
    return signed_json.checksum({"hyper": row, "system": system})


def finished(options: Options) -> list[Known]:
    """What the newest finished runs with these settings took on this machine, the newest first."""
    wanted = this_machine(), options.threads, options.processes, options.products
    found = []
    for file in sorted(options.runs_dir.glob("*/record.json"), key=os.path.getmtime, reverse=True)[:RECORDS]:
        with suppress(OSError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError):
            content = signed_json.read(file, "a record", record.FORMAT)
            if _made_with(content) == wanted and content["cost"]["train_seconds"] >= SHORTEST:
                found.append((content["stamp"]["started"], _known(content)))
    return [known for _, known in sorted(found, key=lambda one: one[0], reverse=True)]


def _made_with(content: Mapping[str, Any]) -> tuple[Machine, int, int, str]:
    """What runs must share for their rates to be comparable."""
    settings, stamp = content["settings"], content["stamp"]
    machine = Machine(stamp["cpu"], stamp["device"], stamp["versions"]["torch"].partition("+")[0])
    return machine, stamp["n_threads"], settings["devices"], settings["precision"]


def _known(content: Mapping[str, Any]) -> Known:
    settings, cost, corpus = (content[name] for name in ("settings", "cost", "corpus"))
    flops, tokens = cost["flops"] / cost["steps"], settings["batch_tokens"]
    searched = content["status"] == "finished" and cost["decode_seconds"]
    return Known(
        row=row_of(content["hyper"], content.get("system")),
        flops=flops,
        tokens=tokens,
        train=cost["flops"] / cost["train_seconds"],
        search=(corpus["n_dev"] + corpus["n_test"]) / searched * flops / tokens if searched else None,
    )


def nearest(known: Sequence[Known], hyper: Hyper, system: Any, flops: float) -> Known | None:
    """The known run most like one of this row, whose update takes `flops` operations; None if none is known."""
    row = row_of(vars(hyper), system_text(system) or None)
    same = (one for one in known if one.row == row)
    return next(same, min(known, key=lambda one: abs(math.log(one.flops / flops)), default=None))
