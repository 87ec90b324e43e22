"""A tiny run that is trained as a run is; as a program, this file trains it in a folder: that is what tests kill."""

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import lightning as L
import numpy as np
import torch
from torch import Tensor

from repro.data.datamodule import TranslationData
from repro.model.config import Hyper
from repro.model.special_tokens import EOS
from repro.training import checkpoint
from repro.training.group import Group
from repro.training.loop import Every, Fitted, fit
from repro.training.module import TranslationModule

RUN, V, BUDGET, STEPS, MICRO = "0123456789abcdef", 23, 60, 32, 2
AVERAGED = {"average": 2, "average_every": 3}
HYPER = Hyper(n_layers=2, d_model=14, d_ff=11, n_heads=3, d_k=2, d_v=5, dropout=0.3, steps=STEPS, warmup=7, **AVERAGED)
EVERY = Every(log=5, validate=6, checkpoint=4)  # no stop, checkpoint or averaged step has to fall on a line
EACH = replace(EVERY, log=1)


class Sentences:
    """One side of a text in memory; read as a `Store` is."""

    def __init__(self, lengths: np.ndarray, random: np.random.RandomState) -> None:
        self.lengths = lengths
        self.ids = [np.array([*random.randint(2, V, n - 1), EOS], np.uint16) for n in lengths]

    def gather(self, sentences: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.concatenate([self.ids[i] for i in sentences]), self.lengths[sentences]


def text(n: int, seed: int, lengths: Sequence[int] = ()) -> tuple[Sentences, Sentences]:
    """Sources of these lengths, or of `n` drawn ones."""
    random = np.random.RandomState(seed)
    source = np.array(lengths) if lengths else 2 + random.binomial(12, 0.3, n)
    n = len(source)
    return Sentences(source, random), Sentences(source + random.binomial(4, 0.5, n) - 1, random)


class Journal(dict[tuple[str, int], dict[str, float]]):
    """The lines of a run by kind and step; of a step that is repeated, the last. As a program: printed."""

    printed = False

    def append(self, kind: str, step: int, **numbers: float) -> None:
        numbers.pop("tokens_per_second", None)  # never the same twice
        self[kind, step] = numbers
        if self.printed:
            print(json.dumps({"kind": kind, "step": step, **numbers}), flush=True)

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
    die_at: int = 0,
    wait_at: int = 0,
    stop_at: int = 0,
    watch: Callable[[TranslationModule, str, int], object] = lambda module, kind, step: None,
    should_stop: Callable[[], bool] = lambda: False,
    run: str = RUN,
    seed: int = 1,
    devices: int = 1,
    precision: Any = "fp32",
    group: Group | None = None,
    system: Any = None,
    **change: Any,
) -> Fitted:
    """Train the tiny run; `change` is what differs from `HYPER`. Something may happen at the end of a step."""
    module = TranslationModule(replace(HYPER, **change), V, seed, system)

    def watch_module(kind: str, step: int, numbers: dict[str, float]) -> None:
        watch(module, kind, step)

    def asked() -> bool:
        step = module.trainer.global_step
        if step == die_at:
            os.kill(os.getpid(), signal.SIGKILL)
        if step == wait_at:
            time.sleep(600)  # to be killed
        return step == stop_at or should_stop()

    with same_arithmetic():
        return fit(
            module,
            TranslationData(
                text(sentences, seed=0),
                text(31, seed=1, lengths=dev),
                budget=budget,
                data_hash="data",
                seed=seed,
                accumulate=accumulate,
            ),
            folder=folder,
            run=run,
            log=Journal() if journal is None else journal,
            every=every,
            watch=watch_module,
            should_stop=asked,
            devices=devices,
            precision=precision,
            group=group,
        )


def start(folder: Path, **options: Any) -> subprocess.Popen[bytes]:
    """Train in a process of its own; it prints its journal."""
    environment = os.environ | {"PYTHONWARNINGS": "ignore", "CUDA_VISIBLE_DEVICES": ""}
    command = [sys.executable, __file__, str(folder), json.dumps(options)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, cwd=Path(__file__).parents[2])


def read(journal: Journal, process: subprocess.Popen[bytes], kill_after: int = STEPS + 1) -> int:
    """Take the lines of a process over until it ends; kill it when it has made so many steps. Its exit code."""
    assert process.stdout is not None
    with process:
        for line in process.stdout:
            if line.startswith(b"{"):
                journal.append(**json.loads(line))
                kill_after -= line.startswith(b'{"kind": "train"')
                if kill_after == 0:
                    process.kill()
    return process.returncode


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


def main(folder: str, options: str) -> None:
    """Train as a test asks; the last line printed is the cost."""
    journal = Journal()
    journal.printed = os.environ.get("LOCAL_RANK", "0") == "0"
    wanted = json.loads(options)
    wanted["every"] = Every(**wanted.get("every", vars(EVERY)))
    cost = train(Path(folder), journal, **wanted).cost
    journal.append("cost", cost.steps, **vars(replace(cost, seconds=0, slots=0)))


if __name__ == "__main__":
    main(*sys.argv[1:])
