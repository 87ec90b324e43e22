"""Evidence of a run's reproducibility, collected while it trains and kept in its checkpoints.

Three things are recorded. First, the sentences that were read, to be compared with the plan. Second, whether the first
micro-batch of each attempt, computed twice, gives the same gradient to the bit. Third, the conditions that may change
a last digit but are not part of the run: versions, processor, threads.

The order of reading is one digest that does not depend on how updates are split over processes. Every micro-batch of an
update adds a SHA-256 of its number and its sentences, word by word. Unlike the state of a hash, such a sum can be kept
in a checkpoint and added up over processes. Equal digests mean that each update read the same sentences.
"""

import hashlib
import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import lightning as L
import numpy as np
import torch
from numpy.typing import NDArray

from repro.data.batch import Batch
from repro.data.batching import Ints, Update, share
from repro.training.module import TranslationModule

Conditions = Mapping[str, Any]  # plain values by name
Words = NDArray[np.int64]  # [8], each below 2^32

NOTHING: Words = np.zeros(8, np.int64)


def of_share(step: int, part: int, sentences: Ints) -> Words:
    """What micro-batch number `part` of update `step` adds; an empty one counts as sentence -1."""
    ids = np.asarray(sentences, "<i8") if len(sentences) else np.array([-1], "<i8")
    digest = hashlib.sha256(f"{step}/{part}/".encode() + ids.tobytes()).digest()
    return np.frombuffer(digest, "<u4").astype(np.int64)


def add(one: Words, other: Words) -> Words:
    """The sum, word by word."""
    return (one + other) % 2**32


def order_digest(words: Words) -> str:
    """The digest as 64 hexadecimal digits."""
    return np.asarray(words, "<u4").tobytes().hex()


def planned_order(updates: Iterable[Update], n_shares: int) -> str:
    """The digest that the plan expects for these updates, each cut into `n_shares` micro-batches."""
    words = NOTHING
    for update in updates:
        for part in range(n_shares):
            words = add(words, of_share(update.step, part, share(update.sentences, part, n_shares)))
    return order_digest(words)


@dataclass(frozen=True, kw_only=True)
class ReproducibilityReport:
    """What was recorded, over all attempts."""

    order: str  # digest of the sentences that were read
    followed: int  # micro-batches that the digest covers
    replayed: int = 0  # micro-batches that were computed twice
    unequal: int = 0  # of these, how many were not equal to the bit
    conditions: list[tuple[int, dict[str, Any]]] = field(default_factory=list)  # each with the step from which it held


class ReplayCheck(L.Callback):
    """Collects the report while a run trains."""

    def __init__(self, conditions: Conditions) -> None:
        self.now = dict(conditions)
        self.words, self.followed = NOTHING, 0
        self.replayed, self.unequal = 0, 0
        self.conditions: list[tuple[int, dict[str, Any]]] = []
        self.replay: Batch | None = None
        self.is_new = True  # this attempt has computed nothing yet

    @property
    def report(self) -> ReproducibilityReport:
        """What was recorded up to now."""
        return ReproducibilityReport(
            order=order_digest(self.words),
            followed=self.followed,
            replayed=self.replayed,
            unequal=self.unequal,
            conditions=self.conditions,
        )

    def state_dict(self) -> dict[str, Any]:
        return {
            "words": self.words.tolist(),
            "followed": self.followed,
            "replayed": self.replayed,
            "unequal": self.unequal,
            "conditions": [[step, held] for step, held in self.conditions],
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.words, self.followed = np.array(state["words"], np.int64), state["followed"]
        self.replayed, self.unequal = state["replayed"], state["unequal"]
        self.conditions = [(step, held) for step, held in state["conditions"]]

    def on_train_start(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        self.rank, self.world = trainer.global_rank, trainer.world_size
        if self.rank:  # a checkpoint has the sums of all processes together, which count once
            self.words, self.followed = NOTHING, 0
        if not self.conditions or self.conditions[-1][1] != self.now:
            self.conditions.append((trainer.global_step, self.now))
            if trainer.is_global_zero:
                for change in list(changes(self.conditions))[-1:]:
                    print(f"Going on under other conditions than before, and recorded so. {change}", flush=True)

    def on_train_batch_start(
        self, trainer: L.Trainer, pl_module: L.LightningModule, batch: Batch, batch_idx: int
    ) -> None:
        if self.is_new and trainer.world_size == 1:  # with several processes a gradient needs the work of all
            self.replay = batch
        self.is_new = False

    def on_after_backward(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        if self.replay is None:
            return
        assert isinstance(pl_module, TranslationModule)
        batch, self.replay = self.replay, None
        first = _bits(pl_module)
        kept = [(buffer, buffer.clone()) for buffer in pl_module.model.buffers()]  # running means must count it once
        pl_module.zero_grad()
        with trainer.precision_plugin.train_step_context():
            loss = pl_module.loss_again(batch)
        loss.backward()
        for buffer, once in kept:
            buffer.copy_(once)
        self.replayed += 1
        self.unequal += _bits(pl_module) != first

    def on_train_batch_end(
        self, trainer: L.Trainer, pl_module: L.LightningModule, outputs: Any, batch: Batch, batch_idx: int
    ) -> None:
        sentences = batch.sentence.numpy()  # they are on the host, even with a GPU
        part = of_share(batch.step, batch.micro * self.world + self.rank, sentences)
        self.words = add(self.words, part)
        self.followed += 1

    def gather(self, trainer: L.Trainer) -> None:
        """Add up in the first process what each has followed. Called by all processes before a checkpoint."""
        if trainer.world_size == 1:
            return
        own = torch.from_numpy(np.append(self.words, self.followed)).to(trainer.strategy.root_device)
        *words, followed = trainer.strategy.reduce(own, reduce_op="sum").tolist()
        first = trainer.is_global_zero
        self.words = np.array(words, np.int64) % 2**32 if first else NOTHING
        self.followed = followed if first else 0


def changes(held: list[tuple[int, dict[str, Any]]]) -> Iterator[str]:
    """The differences in conditions between the attempts of a run, in words."""
    for (_, before), (step, after) in pairwise(held):
        different = [name for name in sorted(before.keys() | after.keys()) if before.get(name) != after.get(name)]
        words = [f"{name} {before.get(name)}, then {after.get(name)}" for name in different]
        yield f"From step {step} on: {'; '.join(words)}"


def _bits(module: TranslationModule) -> str:
    """SHA-256 of all gradients."""
    sha256 = hashlib.sha256()
    for parameter in module.parameters():
        if parameter.grad is not None:
            grad = parameter.grad.detach().cpu().contiguous()
            sha256.update(struct.pack("<q", grad.numel()))
            sha256.update(grad.reshape(-1).view(torch.uint8).numpy().data)
    return sha256.hexdigest()
