"""How fast a row is on this machine, by a few seconds of its own work: real steps, then a real search.

With one thread it is the processor's time that counts, so that other work on the machine does not spoil the rate; with
several, and on a GPU, it is the clock's. Nothing of it stays: the weights are thrown away.
"""

import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import numpy as np
import torch
from numpy.typing import NDArray

from repro.data.shards import SIDES, Encoded, Prepared, Split
from repro.decoding.backend import Backend
from repro.model.cost import TextSizes, training_flops
from repro.model.special_tokens import EOS, SPECIAL
from repro.runs.forecast import BACKWARD_AND_FORWARD, FLOPS_PER_CORE, SEARCHED_ON, expected_vocabulary, held_out
from repro.runs.options import Options
from repro.runs.run import Run
from repro.runs.scales import Scale
from repro.runs.silence import Silence
from repro.runs.speed.busy import BusyWatch
from repro.runs.speed.rates import Rates, key_of_cell, now, save_rates, speed_key
from repro.runs.table import Cell
from repro.runs.task import Task
from repro.runs.trial import Trial
from repro.training import loop
from repro.training.module import TranslationModule

TRAINING, SEARCHING = 1.8, 0.8  # seconds for each
WARM, WARM_GPU = 3, 30  # first steps, which do not count: memory is fetched, shapes are prepared, layers compiled
AT_LEAST = 3  # steps that count
LONGEST_STEP = 0.6  # seconds of a step by a rough guess; of an update that takes longer a part is measured
FEW = 16  # sentences that are searched first, to know how many more there is time for
NEVER = 10**9  # steps
MADE_UP, AS_MANY_UPDATES = 1_000, 64  # sentences of dev and of test at most, updates of training, that are made up
SPREAD = 0.4  # of the logarithm of their lengths


class _Enough(Exception):
    """Ends a measurement."""


def measure(trial: Trial, watch: BusyWatch | None = None) -> Rates:
    """The rates of a row, in about three seconds. Of several devices one does its share alone.

    Layers are not compiled, which takes a GPU half a minute and gains a run a seventh of a step's time
    (docs/performance.md).

    Sets this process up as the run itself does; what is trained and searched afterwards has the bits it would have had.
    """
    trial.tune()
    trial = replace(trial, hyper=replace(trial.hyper, steps=NEVER, average=1))
    module = trial.module()
    step = _step(trial, module, watch)
    splits = trial.prepared.dev, trial.prepared.test
    source, target = (float(np.concatenate(lengths).mean()) for lengths in zip(*map(_lengths, splits), strict=True))
    read = step / BACKWARD_AND_FORWARD / trial.batch_tokens * target  # for the perplexity
    sizes = TextSizes(
        sentences=trial.batch_tokens / source, source_tokens=trial.batch_tokens, target_tokens=trial.batch_tokens
    )
    return Rates(
        step=step,
        sentence=_sentence(trial, module, source, target) + read,
        flops=training_flops(trial.hyper, trial.prepared.tokenizer.size, sizes, trial.system),
        made=now(),
        origin="measured",
    )


def _lengths(split: Split) -> tuple[NDArray[np.integer], NDArray[np.integer]]:
    return split.source.lengths, split.target.lengths


def _clock(trial: Trial) -> Callable[[], float]:
    """The processor's time of the thread that works, if it works alone; else the time that passes."""
    return time.thread_time if trial.threads == 1 and not torch.cuda.is_available() else _waited


def _waited() -> float:
    """The time at which the device has done what it was given."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.monotonic()


def _step(trial: Trial, module: TranslationModule, watch: BusyWatch | None) -> float:
    """Seconds of an update of one device, in the loop that makes runs."""
    clock, first = _clock(trial), WARM_GPU if torch.cuda.is_available() else WARM
    tokens = _tokens_at_once(trial)
    part = replace(trial, batch_tokens=tokens, accumulate=1, devices=1)
    ends: list[float] = []

    def each(kind: str, step: int, numbers: dict[str, float]) -> None:
        ends.append(clock())
        if watch and clock is time.thread_time:
            watch.line()
        if len(ends) > first + AT_LEAST and ends[-1] - ends[first] > TRAINING:
            raise _Enough

    if watch:
        watch.begin()
    with tempfile.TemporaryDirectory(prefix="measure-") as folder, suppress(_Enough):
        part.train(
            module,
            folder=Path(folder),
            run="0" * 16,
            log=Silence(),
            every=loop.Every(log=1, validate=NEVER, checkpoint=NEVER),
            watch=each,
            should_stop=lambda: False,
        )
    return (ends[-1] - ends[first]) / (len(ends) - 1 - first) * trial.batch_tokens / (tokens * trial.devices)


def _tokens_at_once(trial: Trial) -> int:
    """The size of the micro-batch that is trained on: the planned one, or less where that would take too long."""
    planned = trial.batch_tokens // trial.shares
    if torch.cuda.is_available():
        return planned
    mean = max(float(lengths.mean()) for lengths in _lengths(trial.prepared.train))  # learned positions end: no longer
    sizes = TextSizes(sentences=planned / mean, source_tokens=planned, target_tokens=planned)
    guess = training_flops(trial.hyper, trial.prepared.tokenizer.size, sizes, trial.system)
    seconds = guess / (FLOPS_PER_CORE * trial.threads)
    longest = max(int(lengths.max()) for lengths in _lengths(trial.prepared.train))
    return min(planned, max(longest, int(planned * LONGEST_STEP / seconds)))


def _sentence(trial: Trial, module: TranslationModule, source: float, target: float) -> float:
    """Seconds of a sentence of dev or test, searched as far as a trained model's would be."""
    clock, dev, test = _clock(trial), trial.prepared.dev.source, trial.prepared.test.source
    extra = max(0, round(target * SEARCHED_ON - source))
    search = replace(trial.task.search, extra=extra)
    with torch.no_grad():
        module.model.embedding.weight[EOS] = 0.0  # never among the likeliest: a search goes on to its limit
    all_of_them = [(side, i) for side in (dev, test) for i in range(len(side))]
    by_length = sorted(all_of_them, key=lambda one: int(one[0].lengths[one[1]]))

    def seconds(n: int, opened: Backend) -> float:
        chosen = [by_length[i * len(by_length) // n] for i in range(n)]  # of all lengths alike
        some = _encoded([np.asarray(side.sentence(i)) for side, i in chosen])
        begun = clock()
        opened.translate(some, search)
        return (clock() - begun) / n

    with trial.opened(module.model) as opened:
        few = min(FEW, len(by_length))
        seconds(few, opened)
        n = min(len(by_length), max(few, int(SEARCHING / seconds(few, opened))))
        return seconds(n, opened)


def _encoded(sentences: Sequence[NDArray[np.unsignedinteger]]) -> Encoded:
    offsets = np.cumsum([0, *(len(one) for one in sentences)])
    return Encoded(np.concatenate(sentences), offsets)


# Rows that nobody has begun ----------------------------------------------------------------------------------------


def measure_rows(asked: Sequence[Cell], scale: Scale, options: Options, tell: Callable[[str], object]) -> None:
    """Measure each of these rows once and keep the rates; on the prepared text, or on numbers like it."""
    texts: dict[Task, Prepared] = {}
    watch = BusyWatch(tell, threads=options.threads)
    for key, cell in {key_of_cell(cell, scale, options): cell for cell in reversed(asked)}.items():
        if cell.task not in texts:
            texts[cell.task] = _text(cell.task, scale, options, tell)
        rates = measure(_trial(cell, scale, options, texts[cell.task]), watch)
        save_rates(options.cache_dir, {key: rates})
        sentence = "" if rates.sentence is None else f", {1000 * rates.sentence:.1f} ms a sentence translated"
        tell(f"{cell.row.name}: {1000 * rates.step:.1f} ms an update{sentence}")


def measure_run(run: Run, cache: Path) -> None:
    """Measure the row of a run, on its text, and keep the rates in the cache folder."""
    settings = run.settings
    key = speed_key(settings.hyper, settings.scale, settings.task, settings.system, settings)
    save_rates(cache, {key: measure(Trial(**vars(run.recipe)))})


def _trial(cell: Cell, scale: Scale, options: Options, prepared: Prepared) -> Trial:
    """What a run of the cell computes."""
    return Trial(
        prepared=prepared,
        task=cell.task,
        in_tokens=False,
        hyper=cell.hyper,
        seed=cell.seed,
        batch_tokens=scale.batch_tokens,
        batch_by=scale.batch_by,
        devices=options.processes,
        accumulate=scale.micro_batches(options.processes),
        threads=options.threads,
        precision=options.products,
        backend=options.backend,
        system=cell.row.system,
    )


def _text(task: Task, scale: Scale, options: Options, tell: Callable[[str], object]) -> Prepared:
    """The text of the runs where it is prepared; else numbers that look like it."""
    scale = task.at(scale)
    subwords = scale.subwords(task.name)
    if not any(options.cache_dir.glob(f"{scale.corpus}-{task.name}-{subwords.size}-*/encoded-*/card")):
        tell(f"The text of {scale.corpus} {task.name} is not prepared: measured on random ids of its size.")
        return made_up(scale, task.name)
    corpus = task.open_corpus(
        scale.corpus, data_dir=options.data_dir, cache=options.cache_dir, sizes=scale.grammar, tell=tell
    )
    return task.prepare(
        corpus,
        subwords=corpus.subwords(subwords, asked=options.vocab_size),
        cache=options.cache_dir,
        max_length=scale.max_length,
        rules=scale.rules,
        tell=tell,
    )


def made_up(scale: Scale, pair: str) -> Prepared:
    """Numbers like those of a prepared text: lengths around the scale's, ids as often as words are."""
    generator = np.random.Generator(np.random.PCG64(0))
    n_dev, n_test = (min(n, MADE_UP) for n in held_out(scale, pair))
    size = expected_vocabulary(scale, pair)

    def side(lengths: NDArray[np.int64]) -> Encoded:
        ids = len(SPECIAL) + (size - len(SPECIAL)) ** generator.random(int(lengths.sum())) - 1  # Zipf's law
        ids[np.cumsum(lengths) - 1] = EOS
        return Encoded(ids.astype(np.uint32), np.concatenate([[0], np.cumsum(lengths)]))

    def split(n: int) -> Split:
        middle = np.log(scale.sentence_tokens) - SPREAD**2 / 2
        source = np.exp(middle + SPREAD * generator.standard_normal(n))
        lengths = (source, source * np.exp(SPREAD / 4 * generator.standard_normal(n)))  # a target follows its source
        sides = [side(np.clip(one, 2, scale.max_length).astype(np.int64)) for one in lengths]
        return cast("Split", SimpleNamespace(**dict(zip(SIDES, sides, strict=True))))

    n_train = AS_MANY_UPDATES * scale.batch_tokens // scale.sentence_tokens
    return cast(
        "Prepared",
        SimpleNamespace(
            train=split(n_train),
            dev=split(n_dev),
            test=split(n_test),
            tokenizer=SimpleNamespace(size=size),
            data_hash="made up",
        ),
    )
