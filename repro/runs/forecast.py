"""What runs will cost, before they are made: operations at the rate of finished runs, or at that of a card.

It is said of the machine that will make them: this one, or for `--on`, `--hardware` and models of the paper's size
where there is no GPU a card from the table of rates (`repro/runs/speed/hardware.py`).
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple

from repro.corpora.catalogue import CORPORA
from repro.corpora.download.sources import COLLECTIONS, source
from repro.corpora.treebanks import TREEBANKS
from repro.model.config import BASE, Hyper
from repro.model.cost import PAPER_VOCABULARY, TextSizes, n_parameters, training_flops
from repro.render.several import several
from repro.results.labels import label
from repro.results.processor import processor
from repro.runs import command
from repro.runs.options import Options
from repro.runs.scales import Scale
from repro.runs.speed.hardware import CARDS, Hardware, card_of
from repro.runs.speed.memory import MemoryUse, free_memory, host_memory, memory_use
from repro.runs.speed.rates import Speeds, slow_products, this_machine
from repro.runs.speed.schedule import makespan, ordered
from repro.runs.standing import NOT_BEGUN, Standing
from repro.runs.table import Cell
from repro.runs.task import Task
from repro.storage import atomic

BYTES_A_PARAMETER = 12  # in a checkpoint: the weight and Adam's two moments
SPARE_CHECKPOINTS = 2  # the newest, beside those that are scored
BYTES_A_CHECKPOINT, BYTES_A_LINE = 64_000, 250  # at most: names and counters of a checkpoint; a line of the journal
BYTES_A_TOKEN, BYTES_AN_OFFSET = 2, 4
FLOPS_PER_CORE = 40e9  # sustained by one thread: a guess, used only for rows that are called unmeasured
USUAL_CARD = "a100"  # where none is named or here, of models that want one
NO_TEXTS: Mapping[Task, tuple[int, int]] = MappingProxyType({})
NOTHING_BEGUN: Mapping[Cell, Standing] = MappingProxyType({})
WEIGHTS = 2  # dev and test are scored by: the paper's, and the mean of the last checkpoints
HELD_OUT = 3_000  # sentences of dev and of test, where nothing says how many
BACKWARD_AND_FORWARD = 3  # of an update's time, forward is one part
SEARCHED_ON = 1.17  # tokens that a search reads for each that its answer keeps (`docs/log.md`)


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """What a run will take, in seconds of a machine that has nothing else to do."""

    train_seconds: float  # all updates
    validation_seconds: float  # dev read along the way
    decode_seconds: float  # dev, test and other test sets, searched and scored
    measured: bool  # by runs on such a machine; False: guessed

    @property
    def seconds(self) -> float:
        """All of it."""
        return self.train_seconds + self.validation_seconds + self.decode_seconds

    def to_come(self, trained: float) -> float:
        """Seconds of a run of which this part is trained, from 0 to 1."""
        return (self.train_seconds + self.validation_seconds) * (1 - trained) + self.decode_seconds


def estimates(
    cells: Sequence[Cell], scale: Scale, options: Options, sentences: Mapping[Task, tuple[int, int]] = NO_TEXTS
) -> list[Estimate]:
    """Of each cell, on the machine that will make it.

    `sentences` are those of dev and test of each task whose text has been opened.
    """
    if card := card_for(scale, options):
        return [_on_card(cell, scale, card, options.processes) for cell in cells]
    speeds = Speeds.load(options.cache_dir, options.runs_dir, options)
    return [estimate(cell, scale, speeds, sentences=sentences.get(cell.task)) for cell in cells]


def card_for(scale: Scale, options: Options) -> Hardware | None:
    """The card whose published rates tell how long runs take; None where they are made here, or on machines like this.

    A dry run of models of the paper's size is of a card, since nobody trains those on a processor.
    """
    if options.hardware:
        return card_of(options.hardware)
    machine = this_machine()
    has_gpu_or_begins = machine.device != machine.cpu or not options.dry_run
    if scale.base.d_model < BASE.d_model or (options.on == "here" and has_gpu_or_begins):
        return None
    return CARDS[USUAL_CARD]


def estimate(cell: Cell, scale: Scale, speeds: Speeds, *, sentences: tuple[int, int] | None = None) -> Estimate:
    """Of one cell on this machine: its operations at the rate of the known run that is most like it.

    `sentences` are those of dev and test, None: as many as they are known to have.
    """
    hyper, pair, scale = cell.hyper, cell.task.name, cell.task.at(scale)
    flops = expected_flops(hyper, scale, pair, cell.row.system) / hyper.steps
    known = speeds.nearest(hyper, cell.row.system, flops)
    if known:
        step = known.step * flops / known.flops
    else:
        step = flops / (FLOPS_PER_CORE * speeds.how.threads * speeds.how.processes)
    forward = step / BACKWARD_AND_FORWARD / scale.batch_tokens  # seconds of a pair of tokens
    n_dev, n_test = sentences or held_out(scale, pair)
    length, search = scale.sentence_tokens, cell.task.search
    if known and known.sentence:
        sentence = known.sentence * (flops / scale.batch_tokens) / (known.flops / known.tokens)
    else:
        sentence = forward * speeds.how.processes * length * (search.beam * SEARCHED_ON + 1)  # by one of them alone
    return Estimate(
        train_seconds=hyper.steps * step,
        validation_seconds=hyper.steps // scale.validate_every * n_dev * length * forward,
        decode_seconds=(WEIGHTS * (n_dev + n_test) + further_sentences(scale, pair)) * sentence,
        measured=known is not None,
    )


def _on_card(cell: Cell, scale: Scale, card: Hardware, devices: int) -> Estimate:
    """Of a run that so many cards share; one of them translates."""
    pair, scale = cell.task.name, cell.task.at(scale)
    n_dev, n_test = held_out(scale, pair)
    translated = (WEIGHTS * (n_dev + n_test) + further_sentences(scale, pair)) * scale.sentence_tokens
    speed = card.rate(cell.hyper).flops * devices * card.efficiency(devices)
    train = expected_flops(cell.hyper, scale, pair, cell.row.system) / speed
    read = cell.hyper.steps // scale.validate_every * n_dev * scale.sentence_tokens  # tokens of dev along the way
    return Estimate(
        train_seconds=train,
        validation_seconds=train * read / (cell.hyper.steps * scale.batch_tokens) / BACKWARD_AND_FORWARD,
        decode_seconds=translated / card.translated,
        measured=not card.rate(cell.hyper).extrapolated,
    )


def hours_of(cell: Cell, scale: Scale, card: Hardware, devices: int) -> float:
    """Hours of a run that so many of these cards share."""
    return _on_card(cell, scale, card, devices).seconds / 3600


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


class _Ahead(NamedTuple):
    """A run, what it takes, and how far it has come."""

    cell: Cell
    estimate: Estimate
    at: Standing

    @property
    def seconds(self) -> float:
        """What is to come."""
        return 0.0 if self.at.done else self.estimate.to_come(self.at.trained)


def forecast(
    table: str,
    asked: Sequence[Cell],
    scale: Scale,
    options: Options,
    parallelism: tuple[int, str] = (1, ""),
    standing: Mapping[Cell, Standing] = NOTHING_BEGUN,
) -> str:
    """Rows, parameters, tokens, operations, time, memory and disk before anything is trained.

    `parallelism` is how many runs are made at the same time on this machine, and why. `standing` is how far each has
    come.
    """
    of, card = f", shard {options.shard}" if options.shard else "", card_for(scale, options)
    expected = zip(asked, estimates(asked, scale, options), strict=True)
    ahead = [_Ahead(cell, one, standing.get(cell, NOT_BEGUN)) for cell, one in expected]
    free = atomic.free(options.runs_dir)
    return "\n".join(
        [
            f"{table}{of} at scale {scale.name}: {several(len(asked), 'run')} on {texts_of(asked, scale)}, "
            f"{options.seeds.told}; shows {scale.claim}.",
            *_rows(ahead, scale, options),
            _in_all(ahead),
            *(_of_card(card, ahead, scale, options) if card else _of_machine(table, ahead, options)),
            *_side_by_side(ahead, options, parallelism if card is None else (1, "")),
            *slow_products(options),
            *([] if card else [f"Memory: {_memory(asked, scale, options)}."]),
            f"At paper size a row has the paper's sizes and {PAPER_VOCABULARY:,} word-pieces; here those of its scale.",
            f"Tokens are source and target tokens read in training. Disk: {disk_needed(asked, scale)}"
            + ("." if options.hardware else f"; {'unknown' if free is None else size(free)} free."),
        ]
    )


def _rows(ahead: Sequence[_Ahead], scale: Scale, options: Options) -> list[str]:
    """A line for each row: what it is, what one run of it takes, and what is left of its seeds."""
    rows: dict[tuple[str, str], list[_Ahead]] = {}
    for one in ahead:
        rows.setdefault((one.cell.table, one.cell.row.name), []).append(one)
    names = [label(of[0].cell.row.name, vars(of[0].cell.hyper)) for of in rows.values()]
    width, price = max(map(len, names)) + 2, options.price
    lines = [
        f"{'row':<{width}}{'runs':>5}{'steps':>9}{'params here':>13}{'at paper size':>15}{'tokens':>10}{'FLOPs':>10}"
        f"{'a run':>10}{'to come':>10}" + ("" if price is None else f"{'money':>12}")
    ]
    for name, of in zip(names, rows.values(), strict=True):
        cell, left = of[0].cell, sum(one.seconds for one in of)
        pair, system, read = cell.task.name, cell.row.system, cell.task.at(scale)
        money = "" if price is None else f"{left / 3600 * options.processes * price:>12,.2f}"
        begun = [f"seed {one.cell.seed} {one.at.told(cell.hyper.steps)}" for one in of if one.at != NOT_BEGUN]
        lines.append(
            f"{name:<{width}}{len(of):>5}{cell.hyper.steps:>9,}"
            f"{n_parameters(cell.hyper, expected_vocabulary(read, pair), system) / 1e6:>12.2f}M"
            f"{n_parameters(cell.row.at(BASE), PAPER_VOCABULARY, system) / 1e6:>14.1f}M"
            f"{2 * cell.hyper.steps * scale.batch_tokens:>10.1e}{expected_flops(cell.hyper, read, pair, system):>10.1e}"
            f"{duration(of[0].estimate.seconds):>10}{duration(left):>10}{money}  {', '.join(begun)}".rstrip()
        )
    return lines


def _in_all(ahead: Sequence[_Ahead]) -> str:
    """The sum of what is to come, and how many runs are done."""
    done = sum(one.at.done for one in ahead)
    begun = sum(one.at.step > 0 for one in ahead) - done
    parts = ((done, "finished"), (begun, "half made"), (len(ahead) - done - begun, "to begin"))
    left = [one for one in ahead if not one.at.done]
    train = sum(one.estimate.train_seconds * (1 - one.at.trained) for one in left)
    decode = sum(one.estimate.decode_seconds for one in left)
    validate = sum(one.seconds for one in left) - train - decode
    told = ", ".join(f"{n} {what}" for n, what in parts if n)
    spent_on = ((train, "training"), (validate, "validation"), (decode, "translating and scoring"))
    return (
        f"In all about {duration(train + validate + decode)} to come ({told}), one run after the other: "
        f"{', '.join(f'{duration(seconds)} of {what}' for seconds, what in spent_on)}."
    )


def _of_machine(table: str, ahead: Sequence[_Ahead], options: Options) -> list[str]:
    """Whose times these are; where no run has finished on such a machine, how they become known."""
    machine = this_machine().device
    if all(one.estimate.measured for one in ahead):
        return [] if options.on == "here" else [f"Times are those of a machine like this one, {machine}."]
    again = command.command_line({**options.typed, "dry_run": True, "measure": True})
    return [
        f"No run has finished on such a machine ({machine}): times are guessed from operations. To try each row for "
        f"about 3 s first: {command.python()} {command.script(table)} {again}"
    ]


def _of_card(card: Hardware, ahead: Sequence[_Ahead], scale: Scale, options: Options) -> list[str]:
    """The rates that the times were computed with, and what they come to in device-hours and money."""
    n, tokens = options.processes, scale.batch_tokens // options.processes
    hours = sum(one.seconds for one in ahead) / 3600
    money = "" if options.price is None else f", {hours * n * options.price:,.2f} in money"
    rates = {("big" if card.rate(one.cell.hyper) is card.big else "base"): card.rate(one.cell.hyper) for one in ahead}
    instead = "" if options.hardware else f" Of other cards: --hardware with one of {', '.join(CARDS)}."
    less = f"; with {card.scaling_tokens:,} tokens each per update, here {tokens:,}: expect less"
    slower = "half precision; float32 takes longer" if options.products == "fp32" else "half precision"
    precision = "float32" if card.name == "p100" else slower
    return [
        f"Times are those of {n} {card.name}, by published rates, and not of this machine: {hours:,.1f} hours, "
        f"{hours * n:,.1f} device-hours{money}.{instead}",
        *(
            f"Rate of the {name} model on one {card.name}, in {precision}: {rate.pairs:,.0f} pairs of "
            f"tokens a second, {'extrapolated: ' if rate.extrapolated else 'published: '}{rate.source}."
            for name, rate in rates.items()
        ),
        *(
            [
                f"With {n} of them, each keeps {card.efficiency(n):.0%} of its speed ({card.scaling_source}"
                f"{less if tokens < card.scaling_tokens else ''})."
            ]
            if n > 1
            else []
        ),
        "Other rows: from their operations, at the rate of the model of the same width. Translating: "
        f"{card.translated:,.0f} tokens a second on one, {card.translated_source}. {card.note}".rstrip(),
    ]


def _side_by_side(ahead: Sequence[_Ahead], options: Options, parallelism: tuple[int, str]) -> list[str]:
    """Until the last run ends, where several are made at a time."""
    jobs, why = parallelism
    if options.on != "here":
        jobs, why = options.jobs or len(ahead), "--jobs" if options.jobs else f"--on {options.on}, if it gives as many"
    seconds = {one.cell: one.seconds for one in ahead}
    if jobs == 1 or not any(seconds.values()):
        return []
    order = ordered([*seconds], [*seconds.values()], jobs)
    whole = makespan([seconds[cell] for cell in order], jobs)
    unless = ", if nothing else uses the processors" if options.on == "here" else ""
    return [f"With {jobs} runs at a time ({why}) about {duration(whole)}{unless}."]


def _memory(asked: Sequence[Cell], scale: Scale, options: Options) -> str:
    """Of the largest run; of runs that are made here beside what is free."""
    uses = {cell.row.name: cell_memory(cell, scale) for cell in asked}
    largest = max(uses, key=lambda name: uses[name])
    free = free_memory()
    beside = f"; {'unknown' if free is None else size(free)} free" if options.on == "here" else ""
    return f"{size(uses[largest])} for the largest run, {largest}{beside}"


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


def run_bytes(hyper: Hyper, scale: Scale, pair: str, system: Any = None, *, in_training: bool = False) -> int:
    """What a finished run keeps on the disk, its checkpoints and its journal; or what it takes until it is scored."""
    n = n_parameters(hyper, expected_vocabulary(scale, pair), system)
    checkpoint = BYTES_A_PARAMETER * n + BYTES_A_CHECKPOINT
    lines = hyper.steps // scale.log_every + hyper.steps // scale.validate_every + 1
    scored = hyper.kept_steps if in_training else hyper.averaged_steps
    return checkpoint * (SPARE_CHECKPOINTS + len(scored)) + lines * BYTES_A_LINE


def sweep_bytes(of_runs: Iterable[tuple[Hyper, Scale, str, Any]]) -> int:
    """What runs take on the disk, `run_bytes` of each, while the one that takes most for it is in training."""
    both = [(run_bytes(*one), run_bytes(*one, in_training=True)) for one in of_runs]
    return sum(kept for kept, _ in both) + max((most - kept for kept, most in both), default=0)


def disk_needed(asked: Sequence[Cell], scale: Scale) -> str:
    """What the runs and their text will take."""
    checkpoints = sweep_bytes((cell.hyper, cell.task.at(scale), cell.task.name, cell.row.system) for cell in asked)
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
