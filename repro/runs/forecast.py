"""What runs will cost, before they are made: operations of training at the rate of finished runs or a card. No torch.

It is for the machine that will make them: this one, or, for `--on`, `--hardware`, and models of the paper's size where
there is no GPU, a card from the table of rates (`repro/runs/hardware.py`). Runs that finished here say how fast this
machine is: those with the same processor, device, version of PyTorch, precision and number of threads and processes.
"""

import importlib.metadata
import math
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from repro.corpora.sources import COLLECTIONS
from repro.model.config import BASE, Hyper, written
from repro.model.cost import PAPER_VOCABULARY, TextSizes, n_parameters, training_flops
from repro.render.grid import aligned
from repro.render.several import several
from repro.results import record
from repro.results.labels import label
from repro.results.provenance import processor, system_text
from repro.runs.cards import visible
from repro.runs.hardware import BIG, CARDS, Card, pair_flops
from repro.runs.options import Options
from repro.runs.parallelism import makespan, memory_of, ordered, parallelism
from repro.runs.scales import SCALES, Scale
from repro.runs.sizes import expected_vocabulary, size, sweep_bytes
from repro.storage import atomic, signed_json

if TYPE_CHECKING:
    from repro.runs.run_dir import RunDir

USUAL_CARD = "a100"  # where none is named or here, for models of the paper's size
SCHEDULE = ("steps", "warmup", "average", "average_every", "lr_factor", "warms_up")  # no step takes longer for them
SHORTEST = 10.0  # seconds of training: of shorter runs most is start-up
RECORDS = 300  # at most so many of the newest are read, so that a dry run answers at once
FLOPS_PER_CORE = 22e9  # of one thread in float32, with scoring: the median of the published runs at `laptop`


# How fast --------------------------------------------------------------------------------------------------------


class Machine(NamedTuple):
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


class Known(NamedTuple):
    """How fast a finished run was made."""

    row: dict[str, Any]  # of `row_of`
    flops: float  # of an update
    total: float  # of all updates
    rate: float  # operations of its training in a second of training and scoring


def row_of(hyper: Mapping[str, Any], system: str | None) -> dict[str, Any]:
    """What rows share whose steps take equally long."""
    return {name: value for name, value in written(hyper).items() if name not in SCHEDULE} | {"system": system}


def finished(options: Options) -> list[Known]:
    """How fast the newest finished runs with these settings were made on this machine, the newest first.

    Damaged records are left out: the sweep names them.
    """
    wanted = (*this_machine(), options.threads, options.processes, options.products)
    found = []
    for file in sorted(options.runs_dir.glob("*/record.json"), key=os.path.getmtime, reverse=True)[:RECORDS]:
        with suppress(OSError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError):
            content = signed_json.read(file, "a record", record.FORMAT)
            settings, stamp, cost = content["settings"], content["stamp"], content["cost"]
            machine = Machine(stamp["cpu"], stamp["device"], stamp["versions"]["torch"].partition("+")[0])
            made_with = (*machine, stamp["n_threads"], settings["devices"], settings["precision"])
            if made_with == wanted and content["status"] == "finished" and cost["train_seconds"] >= SHORTEST:
                rate = cost["flops"] / (cost["train_seconds"] + cost["decode_seconds"])
                row = row_of(content["hyper"], content.get("system"))
                found.append((stamp["started"], Known(row, cost["flops"] / cost["steps"], cost["flops"], rate)))
    return [known for _, known in sorted(found, key=lambda one: one[0], reverse=True)]


class Estimate(NamedTuple):
    """What a run will take, on a machine that has nothing else to do."""

    seconds: float
    measured: bool  # by runs on such a machine; False: guessed, or by the published rates of a card

    def to_come(self, trained: float) -> float:
        """Seconds of a run of which this part is trained, from 0 to 1."""
        return self.seconds * (1 - trained)


def estimates(runs: "Sequence[RunDir]", options: Options) -> list[Estimate]:
    """The estimate of each run, on the machine that will make it."""
    if card := card_for(options):
        return [Estimate(3600 * hours_of(run, card), measured=False) for run in runs]
    known = finished(options)
    return [estimate_here(run, known) for run in runs]


def card_for(options: Options) -> Card | None:
    """The card whose published rates tell how long runs take; None where they are made here, or on machines like this.

    A dry run of models of the paper's size is for a card, since nobody trains those on a processor.
    """
    if options.hardware:
        return CARDS[options.hardware]
    has_gpu_or_begins = this_machine().is_gpu or not options.dry_run
    if SCALES[options.scale].base.d_model < BASE.d_model or (options.on == "here" and has_gpu_or_begins):
        return None
    return CARDS[USUAL_CARD]


def estimate_here(run: "RunDir", known: Sequence[Known]) -> Estimate:
    """By the known run most like this one: of the same row, else of an update with as many operations; then as long.

    Of a short trial more is scoring and start-up. Where none is known, by a card like the one here, or a guess.
    """
    flops, spec = _flops(run), run.spec
    row, of_update = row_of(vars(spec.hyper), system_text(spec.system) or None), flops / spec.hyper.steps
    if known:

        def unlike(one: Known) -> tuple[float, ...]:
            same = one.row == row  # its updates differ by padding alone, and its length counts from a tenth on
            of_updates = 0.0 if same else abs(math.log(one.flops / of_update))
            return not same, of_updates, round(10 * abs(math.log(one.total / flops)))

        like = min(known, key=unlike)
        return Estimate(flops / like.rate, measured=True)
    if this_machine().is_gpu:
        device = this_machine().device.lower()
        card = next((card for card in CARDS.values() if card.name in device), CARDS[USUAL_CARD])
        return Estimate(3600 * hours_of(run, card), measured=False)
    return Estimate(flops / (FLOPS_PER_CORE * spec.threads * spec.devices), measured=False)


def hours_of(run: "RunDir", card: Card) -> float:
    """Hours of training a run that as many of these cards share as it has processes."""
    n = run.spec.devices
    return _flops(run) / (card.rate(run.spec.hyper) * n * card.efficiency(n)) / 3600


def expected_flops(hyper: Hyper, scale: Scale, pair: str, system: Any = None) -> float:
    """Floating-point operations of training one run, as if no slot were padding."""
    tokens = float(hyper.steps * scale.batch_tokens)
    text = TextSizes(sentences=tokens / scale.sentence_tokens, source_tokens=tokens, target_tokens=tokens)
    return training_flops(hyper, expected_vocabulary(scale, pair), text, system)


def _flops(run: "RunDir") -> float:
    return expected_flops(run.spec.hyper, run.entry.scale, run.task.name, run.spec.system)


# What a dry run says ---------------------------------------------------------------------------------------------


def forecast(table: str, runs: "Sequence[RunDir]", scale: Scale, options: Options) -> str:
    """Rows, parameters, tokens, operations, time, memory and disk before anything is trained.

    Finished runs are not looked for. Raises ValueError for more `--jobs` than this machine has memory for.
    """
    of, card = f", shard {options.shard}" if options.shard else "", card_for(options)
    texts = " and ".join(dict.fromkeys(run.entry.scale.corpus for run in runs))
    expected = estimates(runs, options)
    whole = sum(one.seconds for one in expected)
    largest, free = max(runs, key=memory_of), atomic.free(options.runs_dir)
    room = "" if options.hardware else f"; {'unknown' if free is None else size(free)} free"
    memory = f"Memory: {size(memory_of(largest))} for the largest run, {largest.entry.row}."
    return "\n".join(
        [
            f"{table}{of} at scale {scale.name}: {several(len(runs), 'run')} on {texts}, {options.seeds.told}; "
            f"shows {scale.claim}.",
            *_rows(runs, expected),
            f"In all about {duration(whole)}, one run after the other.",
            *(_of_card(card, whole / 3600, options) if card else _of_machine(expected, options)),
            *_side_by_side(runs, expected, options, card),
            *([] if card else [memory]),
            f"At paper size a row has the paper's sizes and {PAPER_VOCABULARY:,} word-pieces; here those of its scale.",
            f"Tokens are source and target tokens read in training. Disk: {disk_needed(runs)}{room}.",
        ]
    )


def _rows(runs: "Sequence[RunDir]", expected: Sequence[Estimate]) -> list[str]:
    """A line for each row: what it is, and what one run of it takes."""
    of_rows: dict[tuple[str, str], list[tuple[RunDir, Estimate]]] = {}
    for run, one in zip(runs, expected, strict=True):
        of_rows.setdefault((run.entry.table, run.entry.row), []).append((run, one))
    lines = [("row", "runs", "steps", "params here", "at paper size", "tokens", "FLOPs", "a run")]
    for (run, one), *more in of_rows.values():
        entry, spec = run.entry, run.spec
        vocabulary = expected_vocabulary(entry.scale, run.task.name)
        lines.append(
            (
                label(entry.row, vars(spec.hyper)),
                f"{1 + len(more)}",
                f"{spec.hyper.steps:,}",
                f"{n_parameters(spec.hyper, vocabulary, spec.system) / 1e6:.2f}M",
                f"{n_parameters(entry.paper_hyper, PAPER_VOCABULARY, spec.system) / 1e6:.1f}M",
                f"{2 * spec.hyper.steps * spec.batch_tokens:.1e}",
                f"{_flops(run):.1e}",
                duration(one.seconds),
            )
        )
    to_the_left = [True, *[False] * (len(lines[0]) - 1)]
    return ["  ".join(line).rstrip() for line in aligned(zip(*lines, strict=True), to_the_left)]


def _of_machine(expected: Sequence[Estimate], options: Options) -> list[str]:
    """Which machine the times are of, where that is not plain."""
    machine = this_machine().device
    if not all(one.measured for one in expected):
        return [f"No run of {SHORTEST:g} s or more has finished on such a machine ({machine}): times are guessed."]
    return [] if options.on == "here" else [f"Times are those of a machine like this one, {machine}."]


def _of_card(card: Card, hours: float, options: Options) -> list[str]:
    """The rates that the times were computed with, and what they come to in device-hours and money."""
    n = options.processes
    money = "" if options.price is None else f", {hours * n * options.price:,.2f} in money"
    instead = "" if options.hardware else f" Of other cards: --hardware with one of {', '.join(CARDS)}."
    base, big = card.base / pair_flops(BASE), card.big / pair_flops(BIG)
    together = f" Of {n} each keeps {card.efficiency(n):.0%} of its speed." if n > 1 else ""
    return [
        f"Times are those of training on {n} {card.name}, by published rates, and not of this machine: {hours:,.1f} "
        f"hours, {hours * n:,.1f} device-hours{money}.{instead}",
        f"One {card.name}: {base:,.0f} pairs of tokens a second (base), {big:,.0f} (big); {card.source}.{together} "
        f"{card.note}".rstrip(),
    ]


def _side_by_side(
    runs: "Sequence[RunDir]", expected: Sequence[Estimate], options: Options, card: Card | None
) -> list[str]:
    """The time until the last run ends, where several are made at a time."""
    if options.on != "here":
        jobs, why = options.jobs or len(runs), "--jobs" if options.jobs else f"--on {options.on}, if it gives as many"
    else:
        jobs, why = (1, "") if card else parallelism(runs, options)
    if jobs == 1:
        return []
    seconds = [one.seconds for one in expected]
    whole = makespan([seconds[i] for i in ordered(runs, seconds, jobs)], jobs)
    unless = ", if nothing else uses the processors" if options.on == "here" else ""
    return [f"With {jobs} runs at a time ({why}) about {duration(whole)}{unless}."]


def disk_needed(runs: "Sequence[RunDir]") -> str:
    """In words, the disk space that the runs and their text will take."""
    checkpoints = sweep_bytes((run.spec.hyper, run.entry.scale, run.task.name, run.spec.system) for run in runs)
    parts = [f"checkpoints at most {size(checkpoints)}"]
    archives: dict[str, int] = {}  # two pairs may share some
    for corpus, pair in dict.fromkeys((run.entry.scale.corpus, run.task.name) for run in runs):
        if collection := COLLECTIONS.get(f"{corpus}-{pair}"):
            archives |= {source.archive: source.size_at_most for source in collection.sources}
            parts.append(f"{corpus} {pair} {size(collection.text_bytes)} of text, less of ids")
    parts += [f"archives at most {size(sum(archives.values()))}"] if archives else []
    return "; ".join(parts)


def duration(seconds: float) -> str:
    """Seconds as a person says them."""
    for of_unit, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= 2 * of_unit:
            return f"{seconds / of_unit:.1f} {unit}"
    return f"{seconds:.0f} s"
