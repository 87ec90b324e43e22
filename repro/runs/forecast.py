"""What runs will cost, before they are made: operations at the rate of finished runs, or at that of a card.

It is for the machine that will make them: this one, or, for `--on`, `--hardware`, and models of the paper's size where
there is no GPU, a card from the table of rates (`repro/runs/hardware.py`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple

from repro.corpora.catalogue import CORPORA
from repro.corpora.download.sources import COLLECTIONS, source
from repro.corpora.treebanks import TREEBANKS
from repro.model.config import BASE, Hyper
from repro.model.cost import PAPER_VOCABULARY, TextSizes, n_parameters, training_flops
from repro.render.grid import aligned
from repro.render.several import several
from repro.results.labels import label
from repro.runs.hardware import BIG, CARDS, TRANSLATED, Card, pair_flops
from repro.runs.options import Options
from repro.runs.parallelism import makespan, ordered
from repro.runs.rates import FLOPS_PER_CORE, Known, finished, nearest, this_machine
from repro.runs.scales import Scale
from repro.runs.sizes import cell_memory, disk_needed, expected_vocabulary, size
from repro.runs.standing import NOT_BEGUN, Standing
from repro.runs.table import Cell
from repro.storage import atomic

USUAL_CARD = "a100"  # where none is named or here, for models of the paper's size
NOTHING_BEGUN: Mapping[Cell, Standing] = MappingProxyType({})
WEIGHTS = 2  # sets of weights that dev and test are scored with: the paper's, and the mean of the last checkpoints
HELD_OUT = 3_000  # sentences of dev and of test, where nothing says how many
SEARCHED = 0.5  # target tokens that a search writes on a processor while one pair of tokens is trained on


class Rate(NamedTuple):
    """How fast a run is made."""

    train: float  # operations a second
    search: float  # sentences a second, by one process, times the operations of training on a pair of tokens
    measured: bool  # by runs on such a machine; False: guessed


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """What a run will take, in seconds of a machine that has nothing else to do."""

    training: float
    scoring: float  # dev, test and other test sets, searched and scored
    measured: bool

    @property
    def seconds(self) -> float:
        """All of it."""
        return self.training + self.scoring

    def to_come(self, trained: float) -> float:
        """Seconds of a run of which this part is trained, from 0 to 1."""
        return self.training * (1 - trained) + self.scoring


def estimates(cells: Sequence[Cell], scale: Scale, options: Options) -> list[Estimate]:
    """The estimate of each cell, on the machine that will make it."""
    if card := card_for(scale, options):
        return [estimate(cell, scale, rate_on(card, cell, scale, options.processes)) for cell in cells]
    known = finished(options)
    return [estimate(cell, scale, rate_here(cell, scale, options, known)) for cell in cells]


def card_for(scale: Scale, options: Options) -> Card | None:
    """The card whose published rates tell how long runs take; None where they are made here, or on machines like this.

    A dry run of models of the paper's size is for a card, since nobody trains those on a processor.
    """
    if options.hardware:
        return CARDS[options.hardware]
    has_gpu_or_begins = this_machine().is_gpu or not options.dry_run
    if scale.base.d_model < BASE.d_model or (options.on == "here" and has_gpu_or_begins):
        return None
    return CARDS[USUAL_CARD]


def rate_here(cell: Cell, scale: Scale, options: Options, known: Sequence[Known]) -> Rate:
    """The rate of the known run most like this one; where none is known, that of a card like the one here, or a guess.

    One process of several translates.
    """
    like = nearest(known, cell.hyper, cell.row.system, _flops(cell, scale) / cell.hyper.steps)
    if like is None and this_machine().is_gpu:
        device = this_machine().device.lower()
        card = next((card for card in CARDS.values() if card.name in device), CARDS[USUAL_CARD])
        return rate_on(card, cell, scale, options.processes)._replace(measured=False)
    train = like.train if like else FLOPS_PER_CORE * options.threads * options.processes
    guess = train / options.processes * SEARCHED / cell.task.at(scale).sentence_tokens
    return Rate(train, (like and like.search) or guess, like is not None)


def rate_on(card: Card, cell: Cell, scale: Scale, devices: int) -> Rate:
    """The rate of a run that so many cards share; one of them translates."""
    alone = card.rate(cell.hyper)
    search = alone * TRANSLATED / cell.task.at(scale).sentence_tokens
    return Rate(alone * devices * card.efficiency(devices), search, card.is_published)


def estimate(cell: Cell, scale: Scale, rate: Rate) -> Estimate:
    """The estimate of one cell at this rate, from its operations in training and in searching."""
    read, flops = cell.task.at(scale), _flops(cell, scale)
    a_pair = flops / (cell.hyper.steps * read.batch_tokens)  # of tokens
    n_dev, n_test, n_further = held_out(read, cell.task.name)
    n_searched = WEIGHTS * (n_dev + n_test) + n_further
    return Estimate(training=flops / rate.train, scoring=n_searched * a_pair / rate.search, measured=rate.measured)


def hours_of(cell: Cell, scale: Scale, card: Card, devices: int) -> float:
    """Hours of a run that so many of these cards share."""
    return estimate(cell, scale, rate_on(card, cell, scale, devices)).seconds / 3600


def held_out(scale: Scale, pair: str) -> tuple[int, int, int]:
    """How many sentences dev, test and other test sets have, as they are fetched: added ones do not count."""
    if CORPORA[scale.corpus].is_generated and scale.grammar:
        return scale.grammar.n_dev, scale.grammar.n_test, 0
    if scale.corpus in TREEBANKS and (trees := TREEBANKS[scale.corpus].held_out):
        return *trees, 0
    if (collection := COLLECTIONS.get(f"{scale.corpus}-{pair}")) is None:
        return HELD_OUT, HELD_OUT, 0
    n_dev, n_test = (source(name).n_pairs.get(pair, HELD_OUT) for name in (collection.dev, collection.test))
    return n_dev, n_test, sum(source(name).n_pairs.get(pair, 0) for name in collection.further)


def expected_flops(hyper: Hyper, scale: Scale, pair: str, system: Any = None) -> float:
    """Floating-point operations of training one run, as if no slot were padding."""
    tokens = float(hyper.steps * scale.batch_tokens)
    text = TextSizes(sentences=tokens / scale.sentence_tokens, source_tokens=tokens, target_tokens=tokens)
    return training_flops(hyper, expected_vocabulary(scale, pair), text, system)


def _flops(cell: Cell, scale: Scale) -> float:
    return expected_flops(cell.hyper, cell.task.at(scale), cell.task.name, cell.row.system)


class _Ahead(NamedTuple):
    """A run, what it takes, and how far it has come."""

    cell: Cell
    estimate: Estimate
    at: Standing

    @property
    def seconds(self) -> float:
        """Seconds that are to come."""
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
    texts = " and ".join(dict.fromkeys(cell.task.at(scale).corpus for cell in asked))
    expected = zip(asked, estimates(asked, scale, options), strict=True)
    ahead = [_Ahead(cell, one, standing.get(cell, NOT_BEGUN)) for cell, one in expected]
    done = sum(one.at.done for one in ahead)
    to_come, scoring = sum(one.seconds for one in ahead), sum(one.estimate.scoring for one in ahead if not one.at.done)
    largest, free = max(asked, key=lambda cell: cell_memory(cell, scale)), atomic.free(options.runs_dir)
    room = "" if options.hardware else f"; {'unknown' if free is None else size(free)} free"
    return "\n".join(
        [
            f"{table}{of} at scale {scale.name}: {several(len(asked), 'run')} on {texts}, {options.seeds.told}; "
            f"shows {scale.claim}.",
            *_rows(ahead, scale),
            f"In all about {duration(to_come)} to come ({done} of {len(ahead)} finished), one run after the other: "
            f"{duration(to_come - scoring)} of training, {duration(scoring)} of translating and scoring.",
            *(_of_card(card, ahead, options) if card else _of_machine(ahead, options)),
            *_side_by_side(ahead, options, parallelism if card is None else (1, "")),
            *(
                []
                if card
                else [f"Memory: {size(cell_memory(largest, scale))} for the largest run, {largest.row.name}."]
            ),
            f"At paper size a row has the paper's sizes and {PAPER_VOCABULARY:,} word-pieces; here those of its scale.",
            f"Tokens are source and target tokens read in training. Disk: {disk_needed(asked, scale)}{room}.",
        ]
    )


def _rows(ahead: Sequence[_Ahead], scale: Scale) -> list[str]:
    """A line for each row: what it is, what one run of it takes, and what is left of its seeds."""
    rows: dict[tuple[str, str], list[_Ahead]] = {}
    for one in ahead:
        rows.setdefault((one.cell.table, one.cell.row.name), []).append(one)
    head = ("row", "runs", "steps", "params here", "at paper size", "tokens", "FLOPs", "a run", "to come")
    lines = [(*head, "")]
    for of in rows.values():
        cell = of[0].cell
        vocabulary, system = expected_vocabulary(cell.task.at(scale), cell.task.name), cell.row.system
        begun = [f"seed {one.cell.seed} {one.at.told(cell.hyper.steps)}" for one in of if one.at != NOT_BEGUN]
        lines.append(
            (
                label(cell.row.name, vars(cell.hyper)),
                f"{len(of)}",
                f"{cell.hyper.steps:,}",
                f"{n_parameters(cell.hyper, vocabulary, system) / 1e6:.2f}M",
                f"{n_parameters(cell.row.at(BASE), PAPER_VOCABULARY, system) / 1e6:.1f}M",
                f"{2 * cell.hyper.steps * scale.batch_tokens:.1e}",
                f"{_flops(cell, scale):.1e}",
                duration(of[0].estimate.seconds),
                duration(sum(one.seconds for one in of)),
                ", ".join(begun),
            )
        )
    to_the_left = [True, *[False] * (len(lines[0]) - 2), True]
    return ["  ".join(line).rstrip() for line in aligned(zip(*lines, strict=True), to_the_left)]


def _of_machine(ahead: Sequence[_Ahead], options: Options) -> list[str]:
    """Which machine the times are of, where that is not plain."""
    machine = this_machine().device
    if not all(one.estimate.measured for one in ahead):
        return [f"No run has finished on such a machine ({machine}): times are guessed from operations."]
    return [] if options.on == "here" else [f"Times are those of a machine like this one, {machine}."]


def _of_card(card: Card, ahead: Sequence[_Ahead], options: Options) -> list[str]:
    """The rates that the times were computed with, and what they come to in device-hours and money."""
    n, hours = options.processes, sum(one.seconds for one in ahead) / 3600
    money = "" if options.price is None else f", {hours * n * options.price:,.2f} in money"
    instead = "" if options.hardware else f" Of other cards: --hardware with one of {', '.join(CARDS)}."
    base, big = card.base / pair_flops(BASE), card.big / pair_flops(BIG)
    together = f" Of {n} each keeps {card.efficiency(n):.0%} of its speed." if n > 1 else ""
    return [
        f"Times are those of {n} {card.name}, by published rates, and not of this machine: {hours:,.1f} hours, "
        f"{hours * n:,.1f} device-hours{money}.{instead}",
        f"One {card.name}: {base:,.0f} pairs of tokens a second (base), {big:,.0f} (big); {card.source}.{together} "
        f"{card.note}".rstrip(),
    ]


def _side_by_side(ahead: Sequence[_Ahead], options: Options, parallelism: tuple[int, str]) -> list[str]:
    """The time until the last run ends, where several are made at a time."""
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


def duration(seconds: float) -> str:
    """Seconds as a person says them."""
    for of_unit, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= 2 * of_unit:
            return f"{seconds / of_unit:.1f} {unit}"
    return f"{seconds:.0f} s"
