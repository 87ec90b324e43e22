"""What runs will cost, before they are made: by what was measured on this machine, or by arithmetic, which it says."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from repro.data.corpora import CORPORA
from repro.data.download.sources import COLLECTIONS, source
from repro.data.treebanks import TREEBANKS
from repro.model.config import BASE, Hyper
from repro.model.cost import PAPER_VOCABULARY, TextSizes, n_parameters, training_flops
from repro.render.several import several
from repro.results.labels import label
from repro.results.processor import processor
from repro.runs import command
from repro.runs.options import Options
from repro.runs.scales import Scale
from repro.runs.speed.bfloat16 import slow_products
from repro.runs.speed.memory import MemoryUse, free_memory, host_memory, memory_use
from repro.runs.speed.rates import Speeds, learned, this_machine
from repro.runs.speed.schedule import makespan, ordered
from repro.runs.table import Cell
from repro.runs.task import Task
from repro.storage import atomic

BYTES_A_PARAMETER = 12  # in a checkpoint: the weight and Adam's two moments
SPARE_CHECKPOINTS = 2  # beside those that the row averages
OTHER_FILES = 16  # its description, journals, translations and record, an attempt at it, and one that is being written
BYTES_A_CHECKPOINT, BYTES_A_LINE = 64_000, 250  # at most: names and counters of a checkpoint; a line of the journal
BYTES_A_TOKEN, BYTES_AN_OFFSET = 2, 4
FLOPS_PER_CORE = 40e9  # sustained by one thread: a guess, used only for rows that are called unmeasured
NO_TEXTS: Mapping[Task, tuple[int, int]] = MappingProxyType({})
HELD_OUT = 3_000  # sentences of dev and of test, where nothing says how many
BACKWARD_AND_FORWARD = 3  # of an update's time, forward is one part
SEARCHED_ON = 1.17  # tokens that a search reads for each that its answer keeps (`docs/log.md`)


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """What a run will take, in seconds of this machine while it has nothing else to do."""

    train_seconds: float  # all updates
    validation_seconds: float  # dev read along the way
    decode_seconds: float  # dev, test and other test sets, searched and scored
    measured: bool  # here, on this row; False: guessed from its operations

    @property
    def seconds(self) -> float:
        """All of it."""
        return self.train_seconds + self.validation_seconds + self.decode_seconds


def estimates(
    cells: Sequence[Cell], scale: Scale, speeds: Speeds, sentences: Mapping[Task, tuple[int, int]] = NO_TEXTS
) -> list[Estimate]:
    """Of each cell; rows that were never measured are guessed at the speed that the measured ones among them have.

    `sentences` are those of dev and test of each task whose text has been opened.
    """
    speed = speeds.flops_per_second(cells, scale)
    return [estimate(cell, scale, speeds, flops_per_second=speed, sentences=sentences.get(cell.task)) for cell in cells]


def estimate(
    cell: Cell,
    scale: Scale,
    speeds: Speeds,
    *,
    flops_per_second: float | None = None,
    sentences: tuple[int, int] | None = None,
) -> Estimate:
    """Of one cell; `flops_per_second` is for a row that was never measured, None: a guess.

    `sentences` are those of dev and test, None: as many as they are known to have.
    """
    hyper, rates, pair = cell.hyper, speeds.of(cell, scale), cell.task.name
    scale = cell.task.at(scale)
    if rates:
        step = rates.step
    else:
        guess = flops_per_second or FLOPS_PER_CORE * speeds.how.threads * speeds.how.processes
        step = expected_flops(hyper, scale, pair, cell.row.system) / hyper.steps / guess
    forward = step / BACKWARD_AND_FORWARD / scale.batch_tokens  # seconds of a pair of tokens
    n_dev, n_test = sentences or held_out(scale, pair)
    n_further = further_sentences(scale, pair)
    length, search = scale.sentence_tokens, cell.task.search
    sentence = rates.sentence if rates else None
    if sentence is None:
        sentence = forward * speeds.how.processes * length * (search.beam * SEARCHED_ON + 1)  # by one of them alone
    if not learned(hyper.steps, hyper.warmup):  # it will go on to the limit
        sentence *= (length + search.extra) / (length * SEARCHED_ON)
    return Estimate(
        train_seconds=hyper.steps * step,
        validation_seconds=hyper.steps // scale.validate_every * n_dev * length * forward,
        decode_seconds=(n_dev + n_test + n_further) * sentence,
        measured=rates is not None,
    )


def texts_of(cells: Iterable[Cell], scale: Scale) -> str:
    """The corpora that runs read."""
    return " and ".join(dict.fromkeys(cell.task.at(scale).corpus for cell in cells))


def held_out(scale: Scale, pair: str) -> tuple[int, int]:
    """How many sentences dev and test have."""
    if CORPORA[scale.corpus].is_generated and scale.grammar:
        return scale.grammar.n_dev, scale.grammar.n_test
    if scale.corpus in TREEBANKS and (trees := TREEBANKS[scale.corpus].held_out):
        return trees
    if (collection := COLLECTIONS.get(f"{scale.corpus}-{pair}")) is None:
        return HELD_OUT, HELD_OUT
    n_dev, n_test = (source(name).n_pairs.get(pair, HELD_OUT) for name in (collection.dev, collection.test))
    return n_dev, n_test


def further_sentences(scale: Scale, pair: str) -> int:
    """How many sentences other test sets have, as fetching brings them; those that somebody lays beside are more."""
    collection = COLLECTIONS.get(f"{scale.corpus}-{pair}")
    return sum(source(name).n_pairs.get(pair, 0) for name in collection.further) if collection else 0


def forecast(
    table: str, asked: Sequence[Cell], scale: Scale, options: Options, at_once: tuple[int, str] = (1, "")
) -> str:
    """Rows, parameters, tokens, operations, time, memory and disk before anything is trained.

    `at_once` is how many runs are made at the same time, and why so many.
    """
    of = f", shard {options.shard}" if options.shard else ""
    speeds = Speeds.load(options.cache_dir, options.runs_dir, options)
    expected = estimates(asked, scale, speeds)
    ends = [f"{duration(one.seconds):>10}{'' if one.measured else '  unmeasured'}" for one in expected]
    free = atomic.free(options.runs_dir)
    return "\n".join(
        [
            f"{table}{of} at scale {scale.name}: {several(len(asked), 'run')} on {texts_of(asked, scale)}; "
            f"shows {scale.claim}.",
            *forecast_rows(asked, scale, "time", ends),
            *_in_all(table, asked, expected, options),
            *_side_by_side(asked, expected, *at_once),
            *slow_products(options),
            f"Memory: {_memory(asked, scale)}.",
            f"Tokens are source and target tokens read in training. Disk: {disk_needed(asked, scale)}; "
            f"{'unknown' if free is None else size(free)} free.",
        ]
    )


def forecast_rows(asked: Sequence[Cell], scale: Scale, titles: str, ends: Iterable[str]) -> list[str]:
    """A line for each run: what it is, then its end; above them the head, which ends in `titles`."""
    names = [label(cell.row.name, vars(cell.hyper)) for cell in asked]
    width = max(map(len, names)) + 2
    lines = [
        f"{'row':<{width}}{'seed':>5}{'steps':>9}{'params here':>13}{'at paper size':>15}"
        f"{'tokens':>10}{'FLOPs':>10}{titles:>10}"
    ]
    for name, cell, end in zip(names, asked, ends, strict=True):
        pair, system, read = cell.task.name, cell.row.system, cell.task.at(scale)
        lines.append(
            f"{name:<{width}}{cell.seed:>5}{cell.hyper.steps:>9,}"
            f"{n_parameters(cell.hyper, expected_vocabulary(read, pair), system) / 1e6:>12.2f}M"
            f"{n_parameters(cell.row.at(BASE), PAPER_VOCABULARY, system) / 1e6:>14.1f}M"
            f"{2 * cell.hyper.steps * scale.batch_tokens:>10.1e}"
            f"{expected_flops(cell.hyper, read, pair, system):>10.1e}{end}"
        )
    return lines


def _in_all(table: str, asked: Sequence[Cell], expected: Sequence[Estimate], options: Options) -> list[str]:
    """The sum, and how much of it is guessed."""
    train, validate, decode = (
        duration(sum(getattr(one, f"{part}_seconds") for one in expected)) for part in ("train", "validation", "decode")
    )
    lines = [
        f"In all about {duration(sum(one.seconds for one in expected))}, one run after the other: {train} of training, "
        f"{validate} of validation, {decode} of translating and scoring."
    ]
    rows = {(cell.table, cell.row.name): one.measured for cell, one in zip(asked, expected, strict=True)}
    if unmeasured := [row for row, measured in rows.items() if not measured]:
        again = command.command_line({**options.typed, "dry_run": True, "measure": True})
        lines.append(
            f"{len(unmeasured)} of {len(rows)} rows are unmeasured: their times are guessed from their operations. "
            f"To measure them, about 3 s per row: {command.python()} {command.script(table)} {again}"
        )
    return lines


def _side_by_side(asked: Sequence[Cell], expected: Sequence[Estimate], jobs: int, why: str) -> list[str]:
    """Until the last run ends, where several are made at a time."""
    if jobs == 1:
        return []
    seconds = {(cell.table, cell.row.name, cell.seed): one.seconds for cell, one in zip(asked, expected, strict=True)}
    order = ordered(asked, list(seconds.values()), jobs)
    whole = makespan([seconds[cell.table, cell.row.name, cell.seed] for cell in order], jobs)
    return [f"With {jobs} runs at a time ({why}) about {duration(whole)}, if nothing else uses the processors."]


def _memory(asked: Sequence[Cell], scale: Scale) -> str:
    """Of the largest run, beside what is free."""
    uses = {cell.row.name: cell_memory(cell, scale) for cell in asked}
    largest = max(uses, key=lambda name: uses[name])
    free = free_memory()
    return f"{size(uses[largest])} for the largest run, {largest}; {'unknown' if free is None else size(free)} free"


def run_memory(
    hyper: Hyper, scale: Scale, pair: str, system: Any = None, vectors: Collection[str] | None = None
) -> int:
    """Resident bytes of a process that makes this run here, what it imports included; on a GPU those of the host.

    `vectors` are of the processor (None: this one's).
    """
    use = MemoryUse(
        n_parameters=n_parameters(hyper, expected_vocabulary(scale, pair), system),
        vocabulary=expected_vocabulary(scale, pair),
        tokens=min(scale.batch_tokens, scale.device_tokens),
        vectors=processor().vectors if vectors is None else vectors,
    )
    machine = this_machine()
    return memory_use(hyper, use) if machine.device == machine.cpu else host_memory(use)


def cell_memory(cell: Cell, scale: Scale) -> int:
    """The same, of a cell of a sweep at this scale."""
    return run_memory(cell.hyper, cell.task.at(scale), cell.task.name, cell.row.system)


def expected_vocabulary(scale: Scale, pair: str) -> int:
    """The size of the vocabulary; of one that comes with the text it is known when that is here."""
    return scale.subwords(pair).size or PAPER_VOCABULARY


def expected_flops(hyper: Hyper, scale: Scale, pair: str, system: Any = None) -> float:
    """Floating-point operations of training one run, as if no slot were padding."""
    tokens = float(hyper.steps * scale.batch_tokens)
    text = TextSizes(sentences=tokens / scale.sentence_tokens, source_tokens=tokens, target_tokens=tokens)
    return training_flops(hyper, expected_vocabulary(scale, pair), text, system)


def run_bytes(hyper: Hyper, scale: Scale, pair: str, system: Any = None) -> int:
    """What a run keeps on the disk: its checkpoints and its journal."""
    n = n_parameters(hyper, expected_vocabulary(scale, pair), system)
    checkpoint = BYTES_A_PARAMETER * n + BYTES_A_CHECKPOINT
    lines = hyper.steps // scale.log_every + hyper.steps // scale.validate_every + 1
    return checkpoint * (SPARE_CHECKPOINTS + hyper.average) + lines * BYTES_A_LINE


def cell_bytes(cell: Cell, scale: Scale) -> int:
    """The same, of a cell of a sweep at this scale."""
    return run_bytes(cell.hyper, cell.task.at(scale), cell.task.name, cell.row.system)


def run_files(hyper: Hyper) -> int:
    """How many files and folders a run makes, at most."""
    return SPARE_CHECKPOINTS + hyper.average + OTHER_FILES


def disk_needed(asked: Sequence[Cell], scale: Scale) -> str:
    """What the runs and their text will take."""
    checkpoints = sum(cell_bytes(cell, scale) for cell in asked)
    parts = [f"checkpoints at most {size(checkpoints)}"]
    archives: dict[str, int] = {}  # two pairs may share some
    for pair in dict.fromkeys(cell.task.name for cell in asked):
        if collection := COLLECTIONS.get(f"{scale.corpus}-{pair}"):
            archives |= {source.archive: source.size_at_most for source in collection.sources}
            ids = 2 * collection.n_train * (BYTES_A_TOKEN * scale.sentence_tokens + BYTES_AN_OFFSET)
            parts.append(f"{scale.corpus} {pair} {size(collection.text_bytes)} of text, {size(ids)} of ids")
    parts += [f"archives at most {size(sum(archives.values()))}"] if archives else []
    return "; ".join(parts)


def duration(seconds: float) -> str:
    """Seconds as a person says them."""
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.0f} s"


def size(n_bytes: float) -> str:
    """Bytes as a person says them."""
    for unit, name in ((1e9, "GB"), (1e6, "MB")):
        if n_bytes >= unit:
            return f"{n_bytes / unit:.1f} {name}"
    return f"{n_bytes / 1e3:.0f} kB"
