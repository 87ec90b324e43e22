"""How fast a row is on this machine, from some seconds of its own training, where no finished run tells.

With one thread, processor time is measured, so that other work on the machine does not spoil the rate; with several
threads, and on a GPU, wall-clock time. The weights are thrown away.
"""

import tempfile
import time
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import torch

from repro.model.cost import TextSizes, training_flops
from repro.results.systems import system_text
from repro.runs.rates import FLOPS_PER_CORE, Known, note_trial, row_of, speed_conditions, this_machine
from repro.runs.run_dir import RunDir
from repro.runs.silence import Silence
from repro.training import loop
from repro.training.trial import Trial

SECONDS = 2.5
WARM, WARM_GPU = 3, 30  # first steps, which do not count: memory is fetched, shapes are prepared, layers compiled
AT_LEAST = 3  # steps that count
LONGEST_STEP = 0.6  # seconds of a step by a rough guess; of a longer update only a part is measured
NEVER = 10**9  # steps


class _Enough(Exception):
    """Ends a measurement."""


def measure_run(run: RunDir, cache: Path) -> None:
    """Measure the row of a run, on its text, and keep the rate in the cache folder."""
    spec, trial, on_card = run.spec, run.trial, torch.cuda.is_available()
    if on_card:
        torch.cuda.reset_peak_memory_stats()
    seconds, flops = seconds_of_an_update(trial), _flops(trial, trial.spec.batch_tokens)
    known = Known(
        how=speed_conditions(this_machine(), spec.threads, spec.devices, spec.precision),
        row=row_of(vars(spec.hyper), system_text(spec.system) or None),
        flops=flops,
        tokens=trial.spec.batch_tokens,
        train=flops / seconds,
        search=None,
        made=datetime.now(UTC).isoformat(timespec="seconds"),
        memory=torch.cuda.max_memory_allocated() if on_card and trial.spec.accumulate == 1 else None,
    )
    note_trial(cache, known)


def seconds_of_an_update(trial: Trial) -> float:
    """Seconds of an update on one device, in the loop that makes runs. Of several devices, one does its share alone.

    Layers are not compiled: that takes a GPU half a minute and saves a run a seventh of a step's time
    (docs/performance.md).

    This process is set up as the run itself does it, so that a run trained afterwards has the same bits.
    """
    trial.tune()
    tokens, on_card = _tokens_at_once(trial), torch.cuda.is_available()
    first = WARM_GPU if on_card else WARM
    hyper = replace(trial.spec.hyper, steps=NEVER, average=1)
    part = replace(trial, spec=replace(trial.spec, hyper=hyper, batch_tokens=tokens, accumulate=1, devices=1))
    ends: list[float] = []

    def each(kind: str, step: int, numbers: dict[str, float]) -> None:
        if on_card:
            torch.cuda.synchronize()
        ends.append(time.thread_time() if trial.spec.threads == 1 and not on_card else time.monotonic())
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


def _tokens_at_once(trial: Trial) -> int:
    """The size of the micro-batch that is trained on: the planned one, or less where that would take too long."""
    planned, train = trial.spec.batch_tokens // trial.spec.shares, trial.prepared.train
    if torch.cuda.is_available():
        return planned
    seconds = _flops(trial, planned) / (FLOPS_PER_CORE * trial.spec.threads)
    longest = max(int(side.lengths.max()) for side in (train.source, train.target))
    return min(planned, max(longest, int(planned * LONGEST_STEP / seconds)))


def _flops(trial: Trial, tokens: int) -> float:
    """Operations of training on so many tokens of the text."""
    train = trial.prepared.train
    mean = max(float(side.lengths.mean()) for side in (train.source, train.target))  # learned positions end: no longer
    sizes = TextSizes(sentences=tokens / mean, source_tokens=tokens, target_tokens=tokens)
    return training_flops(trial.spec.hyper, trial.prepared.tokenizer.size, sizes, trial.spec.system)
