"""How fast rows were on this machine: what was measured here, and what finished runs took. No torch.

A rate is kept by all that decides speed: processor, device, version of PyTorch, threads, row, size of an update, text.
The file is a cache: what is damaged in it is left out and measured again.
"""

import importlib.metadata
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, Literal, Protocol, Self

from repro.data.batch_by import RECORDED
from repro.model.config import Hyper, written
from repro.results import record
from repro.results.processor import processor
from repro.results.systems import system_text
from repro.runs.cards import visible
from repro.runs.scales import Scale
from repro.runs.table import Cell
from repro.runs.task import Task
from repro.storage import signed_json
from repro.storage.folder_cache import alone

FILE = "speed.json"  # in the cache folder
FORMAT = 1
SCHEDULE = ("steps", "warmup", "average", "average_every", "lr_factor", "warms_up")  # no step is longer for them
NEWEST = 3  # of so many measurements of one row the fastest counts: other work only ever makes a run slower
RECORDS = 300  # at most so many of the newest are looked at: a dry run answers at once


class How(Protocol):
    """The settings that decide speed beside row and scale: those of a command, or of a run."""

    @property
    def threads(self) -> int: ...
    @property
    def processes(self) -> int: ...  # that share each update
    @property
    def precision(self) -> str | None: ...  # None: the scale's own
    @property
    def backend(self) -> str: ...


@dataclass(frozen=True, kw_only=True)
class Rates:
    """How long a row takes here, in seconds of one process."""

    step: float  # an update: forward, backward, optimizer
    sentence: float | None  # of held-out text, searched and scored; None where that was not measured
    flops: float  # of an update, by arithmetic
    made: str  # UTC, ISO 8601
    origin: Literal["measured", "run"]  # for some seconds, or by a whole run

    def __post_init__(self) -> None:
        numbers = [self.step, self.flops, *([] if self.sentence is None else [self.sentence])]
        if not all(type(number) in (int, float) and 0 < number < float("inf") for number in numbers):
            raise ValueError(f"expected positive numbers, got {self}")
        if datetime.fromisoformat(self.made).tzinfo is None:
            raise ValueError(f"expected a time with its zone, got {self.made}")


@dataclass(frozen=True)
class Machine:
    """What a run would run on."""

    cpu: str  # as a record's stamp has it
    device: str  # likewise: a GPU's name, or the processor's
    torch: str | None  # its version; None: not installed


@cache
def this_machine() -> Machine:
    """This one, by what the system says: PyTorch is not asked, which would take seconds."""
    cpu = processor().name
    with suppress(importlib.metadata.PackageNotFoundError):
        card = next(iter(visible(os.environ).values()), cpu)  # that a run would take
        return Machine(cpu, card, importlib.metadata.version("torch").partition("+")[0])
    return Machine(cpu, cpu, None)


def speed_key(hyper: Hyper, scale: Scale, task: Task, system: Any, how: How, machine: Machine | None = None) -> str:
    """The name that rates of such a run are kept under: 64 hexadecimal digits."""
    scale = task.at(scale)
    return _key(
        machine or this_machine(),
        vars(hyper),
        system_text(system) or None,
        {
            "corpus": scale.corpus,
            "pair": task.name,
            "batch_tokens": scale.batch_tokens,
            "fill": RECORDED[scale.batch_by],
            "max_length": scale.max_length,
            "vocab_size": scale.subwords(task.name).size,
            "beam": task.search.beam,
            "threads": how.threads,
            "devices": how.processes,
            "precision": how.precision or scale.precision,
            "engine": how.backend,
        },
    )


def key_of_cell(cell: Cell, scale: Scale, how: How) -> str:
    """That of a cell's run."""
    return speed_key(cell.hyper, scale, cell.task, cell.row.system, how)


def _key(machine: Machine, hyper: Mapping[str, Any], system: str | None, settings: Mapping[str, Any]) -> str:
    row = {name: value for name, value in written(hyper).items() if name not in SCHEDULE}
    return signed_json.checksum({**asdict(machine), "hyper": row, "system": system, **settings})


# Finished runs ---------------------------------------------------------------------------------------------------


def of_runs(runs: Path) -> dict[str, list[Rates]]:
    """What the newest finished runs took, whichever machine they ran on; by key. Damaged records are left out."""
    newest = sorted(runs.glob("*/record.json"), key=_made_at, reverse=True)[:RECORDS]
    found: dict[str, list[Rates]] = {}
    for path in newest:
        with suppress(OSError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError):
            content = signed_json.read(path, "a record", record.FORMAT, record.WITHOUT_CURVES)
            found.setdefault(_key_of_record(content), []).append(_rates_of_record(content))
    return found


def _made_at(path: Path) -> float:
    with suppress(OSError):
        return path.stat().st_mtime
    return 0.0


def _key_of_record(content: Mapping[str, Any]) -> str:
    settings, stamp = content["settings"], content["stamp"]
    machine = Machine(stamp["cpu"], stamp["device"], stamp["versions"]["torch"].partition("+")[0])
    later = {"threads": stamp["n_threads"], "fill": RECORDED["padded_tokens"], "engine": "torch"}  # not said at first
    names = ("batch_tokens", "fill", "max_length", "vocab_size", "beam", "threads", "devices", "precision", "engine")
    chosen = {name: (later | settings)[name] for name in names}
    text = {"corpus": content["corpus"]["name"], "pair": content["pair"]}
    return _key(machine, content["hyper"], content.get("system"), {**text, **chosen})


def _rates_of_record(content: Mapping[str, Any]) -> Rates:
    cost, corpus, hyper = content["cost"], content["corpus"], content["hyper"]
    # a model that has not learned to end translates to the limit, and says nothing of one that has
    speaks = content["status"] == "finished" and learned(hyper["steps"], hyper["warmup"])
    return Rates(
        step=cost["train_seconds"] / cost["steps"],
        sentence=cost["decode_seconds"] / (corpus["n_dev"] + corpus["n_test"]) if speaks else None,
        flops=cost["flops"] / cost["steps"],
        made=content["stamp"]["started"],
        origin="run",
    )


def learned(steps: int, warmup: int) -> bool:
    """Whether a model is taken to end its sentences about where they end.

    At `laptop` the base translates at 1.2 to 1.4 times its usual cost after 250 to 300 of 800 steps of warm-up.
    """
    return steps >= warmup / 4


# What is kept ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Speeds:
    """What is known of speed here; `how` are the settings that the runs to come have."""

    how: How
    known: Mapping[str, list[Rates]]  # by key, whichever machine it was

    @classmethod
    def load(cls, cache: Path, runs: Path, how: How) -> Self:
        """Of the file in the cache folder, and of the runs that are finished."""
        known = {key: [one] for key, one in read_rates(cache).items()}
        for key, rates in of_runs(runs).items():
            known[key] = [*known.get(key, []), *rates]
        return cls(how, known)

    def of(self, cell: Cell, scale: Scale) -> Rates | None:
        """Of a row; of its newest measurements the fastest. None: it was never measured here."""
        return fastest(self.known.get(key_of_cell(cell, scale, self.how), []))

    def flops_per_second(self, cells: Iterable[Cell], scale: Scale) -> float | None:
        """What the measured rows among these sustain together, None where none is measured."""
        rates = [one for cell in cells if (one := self.of(cell, scale))]
        return sum(one.flops for one in rates) / sum(one.step for one in rates) if rates else None


def fastest(measurements: Iterable[Rates]) -> Rates | None:
    """The fastest of the newest, part by part; None of none."""
    newest = sorted(measurements, key=lambda one: datetime.fromisoformat(one.made), reverse=True)[:NEWEST]
    if not newest:
        return None
    best = min(newest, key=lambda one: one.step)
    sentences = [one.sentence for one in newest if one.sentence is not None]
    return Rates(**{**asdict(best), "sentence": min(sentences, default=None)})


def read_rates(cache: Path) -> dict[str, Rates]:
    """What `save_rates` kept, by key; nothing where there is no such file or it is damaged."""
    found = {}
    with suppress(OSError, ValueError, RecursionError, AttributeError):
        content = signed_json.read(cache / FILE, "rates", FORMAT)
        for key, rates in content["rates"].items():
            with suppress(TypeError, ValueError):
                found[key] = Rates(**rates)
    return found


def save_rates(cache: Path, found: Mapping[str, Rates]) -> None:
    """Keep these beside what is kept already; processes that save at once wait for each other."""
    with alone(cache / f".{FILE}.lock", lambda said: None):
        both = {**read_rates(cache), **found}
        rates = {key: {field.name: getattr(one, field.name) for field in fields(one)} for key, one in both.items()}
        signed_json.write(cache / FILE, {"format": FORMAT, "rates": rates})


def now() -> str:
    """The time as rates have it."""
    return datetime.now(UTC).isoformat(timespec="seconds")
