"""What runs will cost, before they are made: time, memory and disk. No torch.

Time is the operations of training at the rate of runs that finished on this machine; or, for `--hardware` and models of
the paper's size that are not made here, of a card. Memory and disk are by measured constants.
"""

import errno
import heapq
import importlib.metadata
import math
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from repro.corpora.sources import COLLECTIONS
from repro.model.config import BASE, Hyper, written
from repro.model.cost import PAPER_VOCABULARY, TextSizes, n_parameters, training_flops
from repro.render.text import aligned, several
from repro.results import record
from repro.results.labels import label
from repro.results.provenance import processor, system_text
from repro.runs.machine import free_memory, processors, visible
from repro.runs.options import Options
from repro.runs.run_dir import RunDir
from repro.runs.scales import SCALES, Scale
from repro.storage import atomic, signed_json

USUAL_CARD = "a100"  # where none is named or here, for models of the paper's size
SCHEDULE = ("steps", "warmup", "average", "average_every", "lr_factor", "warms_up")  # no step takes longer for them
SHORTEST = 10.0  # seconds of training: of shorter runs most is start-up
FLOPS_PER_CORE = 22e9  # of one thread in float32, with scoring: the median of the published runs at `laptop`
SPARE_MEMORY = 0.1  # share of what is free that is left alone: a forecast is not exact
FLOAT = 4  # bytes
COPIES = 5  # of each parameter: itself, its gradient, Adam's two moments, and the average that is scored
LOGITS = 2_048  # rows that the loss makes at once, at most, with their softmax and gradient (`repro/model/loss.py`)
ALWAYS = 1_360_000_000  # of every process: PyTorch, Lightning, the tracker, and what allocators keep
BYTES_A_PARAMETER = 12  # in a checkpoint: the weight and Adam's two moments
SPARE_CHECKPOINTS = 2  # the newest, beside those that are scored
BYTES_A_CHECKPOINT, BYTES_A_LINE = 64_000, 250  # at most: names and counters of a checkpoint; a line of the journal


# Cards that are not here ------------------------------------------------------------------------------------------

BIG = replace(BASE, d_model=1024, d_ff=4096, n_heads=16)
VOCABULARY = 37_000  # "about 37000 tokens": section 5.1
SENTENCE = 28  # tokens, on average: WMT 2014


def pair_flops(hyper: Hyper, vocabulary: int = VOCABULARY) -> float:
    """Operations of training on a target token together with a source token, by this suite's arithmetic."""
    return training_flops(hyper, vocabulary, TextSizes(sentences=1 / SENTENCE, source_tokens=1, target_tokens=1))


KEEPS = {1: 1.0, 4: 3.49 / 4, 8: 6.72 / 8}  # cards -> the share of its speed that each keeps: of the A100's source


class Card(NamedTuple):
    """How fast others' programs train the paper's models on one card, in half precision but for the P100."""

    base: float  # pairs of tokens a second
    big: float
    source: str
    keeps: Mapping[int, float] = KEEPS  # while updates grow with the number of cards

    def rate(self, hyper: Hyper) -> float:
        """Operations a second in training a row: those of the big model from its width on, else those of the base."""
        return self.big * pair_flops(BIG) if hyper.d_model >= BIG.d_model else self.base * pair_flops(BASE)

    def efficiency(self, devices: int) -> float:
        """The share of its speed that each of so many cards keeps, as published for the next larger number."""
        return self.keeps[min((n for n in self.keeps if n >= devices), default=max(self.keeps))]


OF_A100 = (
    "big model github.com/NVIDIA/DeepLearningExamples PyTorch/Translation/Transformer README, pytorch-22.06, 1 A100 40 "
    "GB; base model extrapolated: its operations a second times 0.74, as on the paper's own cards (arXiv 1706.03762, "
    "section 5.2)"
)
OF_H100 = (
    "extrapolated: the A100's times 1.95 (github.com/mosaicml/llm-foundry scripts/train/benchmarking README: 760m, "
    f"2,048 long, 8 GPUs: 63,147 and 32,434). The A100's: {OF_A100}"
)
OF_P100 = "arXiv 1706.03762, section 5.2, of 8 cards together, in float32; this PyTorch has no kernels for it"
OF_H200 = f"taken as an H100, which has the same processor and less memory: {OF_H100}"
CARDS = {
    "p100": Card(7_812.5, 3_125, OF_P100, {8: 1.0}),  # 25,000 pairs a step on 8 cards, in 0.4 s and 1.0 s
    "a100": Card(201_930, 80_772, OF_A100),  # 82,059 pairs with a vocabulary of 33,708
    "h100": Card(393_145, 157_258, OF_H100),
    "h200": Card(393_145, 157_258, OF_H200),
}


# How fast --------------------------------------------------------------------------------------------------------


class Machine(NamedTuple):
    """What a run would run on, as a record's stamp has it."""

    cpu: str
    device: str  # a GPU's name, or the processor's
    torch: str  # its version


@cache
def this_machine() -> Machine:
    """This machine, by what the system says: to ask PyTorch would take seconds."""
    cpu = processor().name
    device = next(iter(visible().values()), cpu)  # the one that a run would take
    return Machine(cpu, device, importlib.metadata.version("torch").partition("+")[0])


class Known(NamedTuple):
    """How fast a finished run was made."""

    row: dict[str, Any]  # of `row_of`
    flops: float  # of all its updates
    rate: float  # operations of its training in a second of training and scoring


def row_of(hyper: Mapping[str, Any], system: str | None) -> dict[str, Any]:
    """What rows share whose steps take equally long."""
    return {name: value for name, value in written(hyper).items() if name not in SCHEDULE} | {"system": system}


def finished(options: Options) -> list[Known]:
    """How fast runs with these settings were made on such a machine, the newest first; without damaged records."""
    wanted = (*this_machine(), options.threads, options.processes, options.products)
    found: list[Known] = []
    for file in sorted(options.runs_dir.glob("*/record.json"), key=os.path.getmtime, reverse=True):
        with suppress(OSError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError):
            content = signed_json.read(file, "a record", record.FORMAT)
            settings, stamp, cost = content["settings"], content["stamp"], content["cost"]
            machine = Machine(stamp["cpu"], stamp["device"], stamp["versions"]["torch"].partition("+")[0])
            made_with = (*machine, stamp["n_threads"], settings["devices"], settings["precision"])
            if made_with == wanted and content["status"] == "finished" and cost["train_seconds"] >= SHORTEST:
                rate = cost["flops"] / (cost["train_seconds"] + cost["decode_seconds"])
                found.append(Known(row_of(content["hyper"], content.get("system")), cost["flops"], rate))
    return found


def estimates(runs: Sequence[RunDir], options: Options) -> tuple[list[float], bool]:
    """Seconds of each run on the machine that will make it, and whether they rest on runs that finished there."""
    card, known = card_for(options), []
    if card is None and not (known := finished(options)) and (here := this_machine()).device != here.cpu:
        card = next((of for name, of in CARDS.items() if name in here.device.lower()), CARDS[USUAL_CARD])
    if card:
        return [3600 * hours_of(run, card) for run in runs], False
    if known:
        return [seconds_like(run, known) for run in runs], True
    return [flops_of(run) / (FLOPS_PER_CORE * run.spec.threads * run.spec.devices) for run in runs], False


def card_for(options: Options) -> Card | None:
    """The card whose published rates tell how long runs take; None where they are made here, or on machines like this.

    A dry run of models of the paper's size is for a card, since nobody trains those on a processor.
    """
    if options.hardware:
        return CARDS[options.hardware]
    has_gpu_or_begins = this_machine().device != this_machine().cpu or not options.dry_run
    if SCALES[options.scale].base.d_model < BASE.d_model or (options.on == "here" and has_gpu_or_begins):
        return None
    return CARDS[USUAL_CARD]


def seconds_like(run: RunDir, known: Sequence[Known]) -> float:
    """By the newest known run of the same row, else of any, that was about as long: short ones have more start-up."""
    flops, row = flops_of(run), row_of(vars(run.spec.hyper), system_text(run.spec.system) or None)
    like = min(known, key=lambda one: (one.row != row, round(10 * abs(math.log(one.flops / flops)))))
    return flops / like.rate


def hours_of(run: RunDir, card: Card) -> float:
    """Hours of training a run that as many of these cards share as it has processes."""
    n = run.spec.devices
    return flops_of(run) / (card.rate(run.spec.hyper) * n * card.efficiency(n)) / 3600


def flops_of(run: RunDir) -> float:
    """Floating-point operations of training a run, as if no slot were padding."""
    scale, hyper = run.scale, run.spec.hyper
    tokens = float(hyper.steps * scale.batch_tokens)
    text = TextSizes(sentences=tokens / scale.sentence_tokens, source_tokens=tokens, target_tokens=tokens)
    return training_flops(hyper, vocabulary_of(run), text, run.spec.system)


def vocabulary_of(run: RunDir) -> int:
    """The size of its vocabulary before its text is open; the paper's for one that comes with its text."""
    return run.scale.subwords(run.task.name).size or PAPER_VOCABULARY


def _n_parameters(run: RunDir) -> int:
    return n_parameters(run.spec.hyper, vocabulary_of(run), run.spec.system)


# How many at a time ----------------------------------------------------------------------------------------------


def memory_of(run: RunDir) -> int:
    """Peak resident bytes of a process that makes this run here; on a GPU an upper bound of those of the host.

    For each token and layer, the backward pass keeps what enters and leaves the products, norms and dropout of both
    stacks. `tests/runs/test_forecast.py` compares the forecast with the peaks of published runs.
    """
    scale, hyper = run.scale, run.spec.hyper
    tokens = min(scale.batch_tokens, scale.device_tokens)
    width = hyper.n_heads * (2 * hyper.d_k + hyper.d_v)
    activations = tokens * hyper.n_layers * (14 * hyper.d_model + 6 * hyper.d_ff + 6 * width)
    logits = 2 * min(tokens, LOGITS) * vocabulary_of(run)
    return ALWAYS + FLOAT * (COPIES * _n_parameters(run) + activations + logits)


def parallelism(runs: Sequence[RunDir], options: Options) -> tuple[int, str]:
    """How many runs at a time, as asked for or as processors, GPUs and memory allow, and why.

    Raises ValueError where more were asked for than is possible.
    """
    if options.processes > 1:
        if (options.jobs or 1) > 1:
            raise ValueError(f"--jobs {options.jobs}: runs of {options.processes} processes go one at a time.")
        return 1, f"{options.processes} processes share each"
    memory, free = max(map(memory_of, runs)), free_memory()
    if options.jobs is None:
        at_a_time, why = processors() // options.threads, f"{processors()} processors, {options.threads} a run"
        if n_cards := len(visible()):
            at_a_time, why = n_cards, several(n_cards, "GPU")
        fit = min(at_a_time, int(free * (1 - SPARE_MEMORY)) // memory, len(runs))
        return max(1, fit), f"{why}; {size(free)} of memory free, about {size(memory)} a run"
    n_jobs = min(options.jobs, len(runs))
    if n_jobs > 1 and n_jobs * memory > free:
        needed = f"{n_jobs} runs at a time need about {size(n_jobs * memory)} of memory"
        raise ValueError(f"--jobs {options.jobs}: {needed}, and {size(free)} is free. Without it as many run as fit.")
    return n_jobs, "--jobs"


def makespan(seconds: Sequence[float], jobs: int) -> float:
    """Seconds until the last run ends, if `jobs` workers take the runs in this order, each when it becomes free."""
    free = [0.0] * max(1, min(jobs, len(seconds)))  # when each worker becomes free, as a heap
    for one in seconds:
        heapq.heapreplace(free, free[0] + one)
    return max(free)


def ordered(runs: Sequence[RunDir], seconds: Sequence[float], jobs: int) -> list[int]:
    """The numbers of the runs, seed by seed, so that a stopped sweep has complete seeds; the longest of a seed first.

    Of equally long ones those of more heads do: on a processor narrow products take longer than operations tell.
    """
    place = {seed: i for i, seed in enumerate(dict.fromkeys(run.spec.seed for run in runs))}
    order = [(place[run.spec.seed], -seconds[i], -run.spec.hyper.n_heads, i) for i, run in enumerate(runs)]
    return [i for *_, i in (order if jobs == 1 else sorted(order))]


# Disk -------------------------------------------------------------------------------------------------------------


def run_bytes(run: RunDir, *, in_training: bool = False) -> int:
    """Bytes of checkpoints and journal that a finished run keeps; with `in_training`, the most until it is scored."""
    scale, hyper = run.scale, run.spec.hyper
    checkpoint = BYTES_A_PARAMETER * _n_parameters(run) + BYTES_A_CHECKPOINT
    lines = hyper.steps // scale.log_every + hyper.steps // scale.validate_every + 1
    scored = hyper.kept_steps if in_training else hyper.averaged_steps
    return checkpoint * (SPARE_CHECKPOINTS + len(scored)) + lines * BYTES_A_LINE


def sweep_bytes(runs: Sequence[RunDir]) -> int:
    """Bytes on the disk for runs: `run_bytes` of each, and the most that one of them takes beyond that in training."""
    both = [(run_bytes(run), run_bytes(run, in_training=True)) for run in runs]
    return sum(kept for kept, _ in both) + max((most - kept for kept, most in both), default=0)


def check_room(runs: Sequence[RunDir], folder: Path) -> str:
    """In words, the disk space that the runs still need and what is free. Raises DiskError where that is too little.

    The runs need what each keeps when finished, and for one of them what it takes in training; a run that begins checks
    again. Checkpoints on the disk are subtracted, but another version may have made them: one run must fit at least.
    """
    needed = max(sweep_bytes(runs) - sum(run.held() for run in runs), *map(run_bytes, runs), 0)
    there = atomic.free(folder)
    room = f"Disk: {size(needed)} needed in {folder}, {'unknown' if there is None else size(there)} free"
    if there is not None and there < needed:
        raise atomic.DiskError(
            errno.ENOSPC,
            f"{room}: checkpoints and journals of {several(len(runs), 'run')}. Free space there, name another folder "
            "with --runs-dir, or ask for fewer --rows or --seeds.",
        )
    return f"{room}."


# What a dry run says ---------------------------------------------------------------------------------------------


def forecast(table: str, runs: Sequence[RunDir], scale: Scale, options: Options) -> str:
    """Rows, parameters, tokens, operations, time, memory and disk of these runs, whether they are finished or not."""
    of, card = f", shard {options.shard}" if options.shard else "", card_for(options)
    texts = " and ".join(dict.fromkeys(run.scale.corpus for run in runs))
    seconds, measured = estimates(runs, options)
    free = atomic.free(options.runs_dir)
    room = "" if options.hardware else f"; {'unknown' if free is None else size(free)} free"
    where = _of_card(card, sum(seconds) / 3600, options) if card else _of_machine(runs, seconds, measured, options)
    return "\n".join(
        [
            f"{table}{of} at scale {scale.name}: {several(len(runs), 'run')} on {texts}, {options.seeds.told}; "
            f"shows {scale.claim}.",
            *_rows(runs, seconds),
            f"In all about {duration(sum(seconds))}, one run after the other.",
            *where,
            f"At paper size a row has the paper's sizes and {PAPER_VOCABULARY:,} word-pieces; here those of its scale.",
            f"Tokens are source and target tokens read in training. Disk: {disk_needed(runs)}{room}.",
        ]
    )


def _rows(runs: Sequence[RunDir], expected: Sequence[float]) -> list[str]:
    """A line for each row: what it is, and what one run of it takes."""
    of_rows: dict[tuple[str, str], list[tuple[RunDir, float]]] = {}
    for run, seconds in zip(runs, expected, strict=True):
        of_rows.setdefault((run.table, run.row), []).append((run, seconds))
    lines = [("row", "runs", "steps", "params here", "at paper size", "tokens", "FLOPs", "a run")]
    for (run, seconds), *more in of_rows.values():
        spec, hyper = run.spec, run.spec.hyper
        here, paper = _n_parameters(run), n_parameters(run.paper_hyper, PAPER_VOCABULARY, spec.system)
        params = f"{here / 1e6:.2f}M", f"{paper / 1e6:.1f}M"
        work = f"{2 * hyper.steps * spec.batch_tokens:.1e}", f"{flops_of(run):.1e}", duration(seconds)
        lines.append((label(run.row, vars(hyper)), f"{1 + len(more)}", f"{hyper.steps:,}", *params, *work))
    to_the_left = [True, *[False] * (len(lines[0]) - 1)]
    return ["  ".join(line).rstrip() for line in aligned(zip(*lines, strict=True), to_the_left)]


def _of_machine(runs: Sequence[RunDir], seconds: Sequence[float], measured: bool, options: Options) -> list[str]:
    """What the times rest on, the time of several runs side by side, and the memory of the largest."""
    said, largest = [], max(runs, key=memory_of)
    if not measured:
        machine = this_machine().device
        said.append(f"No run of {SHORTEST:g} s or more has finished on such a machine ({machine}): times are guessed.")
    jobs, why = parallelism(runs, options) if options.on == "here" else (1, "")
    if jobs > 1:
        whole = duration(makespan([seconds[i] for i in ordered(runs, seconds, jobs)], jobs))
        said.append(f"With {jobs} runs at a time ({why}) about {whole}, if nothing else uses the processors.")
    return [*said, f"Memory: {size(memory_of(largest))} for the largest run, {largest.row}."]


def _of_card(card: Card, hours: float, options: Options) -> list[str]:
    """The rates that the times were computed with, and what they come to in device-hours and money."""
    n, name = options.processes, options.hardware or USUAL_CARD
    money = "" if options.price is None else f", {hours * n * options.price:,.2f} in money"
    instead = "" if options.hardware else f" Of other cards: --hardware with one of {', '.join(CARDS)}."
    together = f" Of {n} each keeps {card.efficiency(n):.0%} of its speed." if n > 1 else ""
    return [
        f"Times are those of training on {n} {name}, by published rates, and not of this machine: {hours:,.1f} "
        f"hours, {hours * n:,.1f} device-hours{money}.{instead}",
        f"One {name}: {card.base:,.0f} pairs of tokens a second (base), {card.big:,.0f} (big); {card.source}."
        f"{together}",
    ]


def disk_needed(runs: Sequence[RunDir]) -> str:
    """In words, the disk space that the runs and their text will take."""
    parts = [f"checkpoints at most {size(sweep_bytes(runs))}"]
    archives: dict[str, int] = {}  # two pairs may share some
    for corpus, pair in dict.fromkeys((run.scale.corpus, run.task.name) for run in runs):
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


def size(n_bytes: float) -> str:
    """Bytes as a person says them."""
    for unit, name in ((1e9, "GB"), (1e6, "MB")):
        if n_bytes >= unit:
            return f"{n_bytes / unit:.1f} {name}"
    return f"{n_bytes / 1e3:.0f} kB"
