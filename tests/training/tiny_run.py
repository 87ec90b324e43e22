"""A tiny run that is trained as a run is."""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import lightning as L
import numpy as np
import torch
from model.samples import encoded
from torch import Tensor

from repro.data.datamodule import TranslationData
from repro.data.shards import Encoded
from repro.model.config import Hyper
from repro.training import checkpoint
from repro.training.group import Group
from repro.training.loop import Every, Fitted, fit
from repro.training.module import TranslationModule

RUN, V, BUDGET, STEPS, MICRO = "0123456789abcdef", 23, 60, 20, 2
AVERAGED = {"average": 2, "average_every": 3}
HYPER = Hyper(n_layers=2, d_model=14, d_ff=11, n_heads=3, d_k=2, d_v=5, dropout=0.3, steps=STEPS, warmup=7, **AVERAGED)
EVERY = Every(log=5, validate=6, checkpoint=4)  # no stop, checkpoint or averaged step has to fall on a line
EACH = replace(EVERY, log=1)


def text(n: int, seed: int, lengths: Sequence[int] = ()) -> tuple[Encoded, Encoded]:
    """Sources of these lengths, or of `n` drawn ones."""
    random = np.random.RandomState(seed)
    of_source = np.array(lengths) if lengths else 2 + random.binomial(12, 0.3, n)
    source = encoded([random.randint(2, V, n - 1) for n in of_source])
    of_target = of_source + random.binomial(4, 0.5, len(of_source)) - 1
    return source, encoded([random.randint(2, V, n - 1) for n in of_target])


class Journal(dict[tuple[str, int], dict[str, float]]):
    """The lines of a run by kind and step; of a step that is repeated, the last."""

    def append(self, kind: str, step: int, **numbers: float) -> None:
        numbers.pop("tokens_per_second", None)  # never the same twice
        self[kind, step] = numbers

    def sync(self) -> None:
        pass


@contextmanager
def same_arithmetic() -> Iterator[None]:
    """One thread of a CPU at full precision, whatever other tests have set."""
    n, precision = torch.get_num_threads(), torch.get_float32_matmul_precision()
    trainer = L.Trainer
    torch.set_num_threads(1)
    torch.set_float32_matmul_precision("highest")
    try:
        with mock.patch.object(L, "Trainer", lambda **options: trainer(**options | {"accelerator": "cpu"})):
            yield
    finally:
        torch.set_num_threads(n)
        torch.set_float32_matmul_precision(precision)


def train(
    folder: Path,
    journal: Journal | None = None,
    *,
    sentences: int = 67,
    dev: Sequence[int] = (),
    budget: int = BUDGET,
    accumulate: int = MICRO,
    every: Every = EVERY,
    stop_at: int = 0,
    watch: Callable[[TranslationModule, str, int], object] = lambda module, kind, step: None,
    devices: int = 1,
    precision: Any = "fp32",
    group: Group | None = None,
    system: Any = None,
    **change: Any,
) -> Fitted:
    """Train the tiny run; `change` is what differs from `HYPER`. Something may happen at the end of a step."""
    module = TranslationModule(replace(HYPER, **change), V, 1, system)
    sides = text(sentences, seed=0), text(31, seed=1, lengths=dev)
    with same_arithmetic():
        return fit(
            module,
            TranslationData(*sides, budget=budget, data_hash="data", seed=1, accumulate=accumulate),
            folder=folder,
            run=RUN,
            log=Journal() if journal is None else journal,
            every=every,
            watch=lambda kind, step, numbers: watch(module, kind, step),
            should_stop=lambda: module.trainer.global_step == stop_at,
            devices=devices,
            precision=precision,
            group=group,
        )


def state(folder: Path) -> list[Tensor]:
    """Weights, metrics and Adam's moments of the last checkpoint."""
    saved = checkpoint.load(checkpoint.checkpoints(folder)[-1], RUN)
    (optimizer,) = saved["optimizer_states"]
    moments = [x for _, moment in sorted(optimizer["state"].items()) for _, x in sorted(moment.items())]
    return [*saved["state_dict"].values(), *moments]


def digest(folder: Path) -> str:
    """SHA-256 of the last checkpoint's step, weights and moments."""
    sha256 = hashlib.sha256(checkpoint.checkpoints(folder)[-1].name.encode())
    for tensor in state(folder):
        sha256.update(tensor.reshape(-1).view(torch.uint8).numpy())
    return sha256.hexdigest()


def bytes_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}
