"""The stages of a run, from prepared text to scores. All code that decides a result is here or imported from here.

`repro/results/provenance.py` follows the imports of this file to find the code behind a number. So nothing here writes
records or tables, or to the tracker. Paper: sections 5 and 6.1.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import torch

from repro.data.batch import Batch, DevBatches
from repro.data.batching import BATCH_BY
from repro.data.datamodule import TranslationData
from repro.data.shards import Prepared, Split
from repro.decoding import backend as backends
from repro.decoding.search import Named
from repro.model.build import reads_ragged
from repro.model.protocol import TranslationSystem
from repro.training import cpu_tuning, loop
from repro.training.module import TranslationModule
from repro.training.run_spec import RunSpec


class Scored(NamedTuple):
    """One split, translated and scored."""

    scores: Named  # "nll", "ppl", "accuracy" and those of the task, each with its signature
    hypotheses: list[str]  # in the order of the split


def set_up(spec: RunSpec) -> tuple[str, ...]:
    """Set this process up for the work; returns the names of the settings made.

    Raises ValueError if PyTorch's default dtype is not float32 or autocast is on.
    """
    if (dtype := torch.get_default_dtype()) != torch.float32:
        raise ValueError(
            f"expected PyTorch's default dtype to be torch.float32, got {dtype}: runs are made in it. Type first "
            "torch.set_default_dtype(torch.float32)."
        )
    if on := [kind for kind in ("cpu", "cuda") if torch.is_autocast_enabled(kind)]:
        raise ValueError(
            f"expected no autocast around a run, got one of {on[0]}: its numbers would not be those of its "
            "precision. Leave the block first, and ask for bfloat16 with precision='bf16'."
        )
    made = cpu_tuning.tune(spec.batch_tokens * spec.hyper.d_model**2)
    torch.set_num_threads(spec.threads)
    return made


def new_module(spec: RunSpec, prepared: Prepared) -> TranslationModule:
    """The model with its first weights."""
    return TranslationModule(spec.hyper, prepared.tokenizer.size, spec.seed, spec.system)


def planned_data(spec: RunSpec, prepared: Prepared) -> TranslationData:
    """The batches, in the order of the plan."""
    return TranslationData.from_prepared(
        prepared,
        budget=spec.batch_tokens,
        batch_by=BATCH_BY[spec.batch_by],
        seed=spec.seed,
        accumulate=spec.accumulate,
        packed=torch.cuda.is_available() and reads_ragged(spec.system),
    )


def train(spec: RunSpec, prepared: Prepared, module: TranslationModule, **options: Any) -> loop.Fitted:
    """Train to the end, or until asked to stop; `options` are those of `loop.fit` that do not change the result."""
    data = planned_data(spec, prepared)
    return loop.fit(module, data, devices=spec.devices, precision=spec.precision, **options)


def opened(spec: RunSpec, model: TranslationSystem) -> Any:
    """The backend that translates and scores, as a context."""
    return backends.opened(spec.backend, model, bf16=spec.precision == "bf16")


def score(
    spec: RunSpec, prepared: Prepared, model: backends.Backend, split: Split, between: Callable[[int], None]
) -> Scored:
    """Perplexity, accuracy and the task's scores for one split.

    `between` is called with the number of sentences translated so far, which is 0 before each batch of the
    perplexity; an exception that it raises ends the work.
    """
    budget = spec.batch_tokens // spec.accumulate  # of a micro-batch, read by one process
    batches = DevBatches(split.source, split.target, budget=budget, rank=0, world=1)

    def some() -> Iterator[Batch]:
        for i in range(len(batches)):
            between(0)
            yield batches[i]

    nll, accuracy = model.score_tokens(some())
    found = model.translate(split.source, spec.task.search, between=between)
    hypotheses = [prepared.tokenizer.decode(line) for line in found]
    ppl = torch.tensor(nll, dtype=torch.float64).exp().item()
    own = task_scores(spec, hypotheses, split.references)
    return Scored(scores={"nll": nll, "ppl": ppl, "accuracy": accuracy, **own}, hypotheses=hypotheses)


def task_scores(spec: RunSpec, hypotheses: Sequence[str], references: Sequence[str]) -> Named:
    """The task's scores of these hypotheses."""
    return spec.task.score(hypotheses, references, in_tokens=spec.text.in_tokens)
