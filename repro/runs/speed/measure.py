"""How fast a row is on this machine, by some seconds of its own training, where no run has finished that would tell.

With one thread it is the processor's time that counts, so that other work on the machine does not spoil the rate; with
several, and on a GPU, it is the clock's. Nothing of it stays: the weights are thrown away.
"""

import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import torch

from repro.model.cost import TextSizes, training_flops
from repro.results.systems import system_text
from repro.runs.run_dir import RunDir
from repro.runs.silence import Silence
from repro.runs.speed.rates import Known, note_trial, now, row_of, speed_conditions, this_machine
from repro.training import loop
from repro.training.trial import Trial

SECONDS = 2.5
WARM, WARM_GPU = 3, 30  # first steps, which do not count: memory is fetched, shapes are prepared, layers compiled
AT_LEAST = 3  # steps that count
LONGEST_STEP = 0.6  # seconds of a step by a rough guess; of an update that takes longer a part is measured
SLOW = 40e9  # operations a second of a thread, for that guess
NEVER = 10**9  # steps


class _Enough(Exception):
    """Ends a measurement."""


def measure_run(run: RunDir, cache: Path) -> None:
    """Measure the row of a run, on its text, and keep the rate in the cache folder."""
    trial, spec = run.trial, run.spec
    sizes = _sizes(trial, trial.spec.batch_tokens)
    if torch.cuda.is_available():
        torch.cuda.reset_peak_memory_stats()
    known = Known(
        how=speed_conditions(this_machine(), spec.threads, spec.devices, spec.precision),
        row=row_of(vars(spec.hyper), system_text(spec.system) or None),
        flops=training_flops(trial.spec.hyper, trial.prepared.tokenizer.size, sizes, trial.spec.system),
        tokens=trial.spec.batch_tokens,
        step=seconds_of_an_update(trial),
        sentence=None,
        made=now(),
        memory=torch.cuda.max_memory_allocated() if torch.cuda.is_available() and trial.spec.accumulate == 1 else None,
    )
    note_trial(cache, known)


def seconds_of_an_update(trial: Trial) -> float:
    """Of one device, in the loop that makes runs. Of several devices one does its share alone.

    Layers are not compiled, which takes a GPU half a minute and gains a run a seventh of a step's time
    (docs/performance.md).

    Sets this process up as the run itself does; what is trained afterwards has the bits it would have had.
    """
    trial.tune()
    spec = replace(trial.spec, hyper=replace(trial.spec.hyper, steps=NEVER, average=1))
    clock, first = _clock(trial), WARM_GPU if torch.cuda.is_available() else WARM
    tokens = _tokens_at_once(trial)
    part = replace(trial, spec=replace(spec, batch_tokens=tokens, accumulate=1, devices=1))
    ends: list[float] = []

    def each(kind: str, step: int, numbers: dict[str, float]) -> None:
        ends.append(clock())
        if len(ends) > first + AT_LEAST and ends[-1] - ends[first] > SECONDS:
            raise _Enough

    with tempfile.TemporaryDirectory(prefix="measure-") as folder, suppress(_Enough):
        part.train(
            part.module(),
            folder=Path(folder),
            run="0" * 16,
            log=Silence(),
            every=loop.Every(log=1, validate=NEVER, checkpoint=NEVER),
            watch=each,
            should_stop=lambda: False,
        )
    return (ends[-1] - ends[first]) / (len(ends) - 1 - first) * trial.spec.batch_tokens / (tokens * trial.spec.devices)


def _clock(trial: Trial) -> Callable[[], float]:
    """The processor's time of the thread that works, if it works alone; else the time that passes."""
    return time.thread_time if trial.spec.threads == 1 and not torch.cuda.is_available() else _waited


def _waited() -> float:
    """The time at which the device has done what it was given."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.monotonic()


def _tokens_at_once(trial: Trial) -> int:
    """The size of the micro-batch that is trained on: the planned one, or less where that would take too long."""
    planned = trial.spec.batch_tokens // trial.spec.shares
    if torch.cuda.is_available():
        return planned
    guess = training_flops(trial.spec.hyper, trial.prepared.tokenizer.size, _sizes(trial, planned), trial.spec.system)
    seconds = guess / (SLOW * trial.spec.threads)
    train = trial.prepared.train
    longest = max(int(side.lengths.max()) for side in (train.source, train.target))
    return min(planned, max(longest, int(planned * LONGEST_STEP / seconds)))


def _sizes(trial: Trial, tokens: int) -> TextSizes:
    """So many tokens of the training text."""
    train = trial.prepared.train
    mean = max(float(side.lengths.mean()) for side in (train.source, train.target))  # learned positions end: no longer
    return TextSizes(sentences=tokens / mean, source_tokens=tokens, target_tokens=tokens)
