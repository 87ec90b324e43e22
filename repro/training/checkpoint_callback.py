"""When training is saved and when it stops: between two updates, with a checkpoint of the last one."""

import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lightning as L
import torch
from torch import distributed

from repro.data.batch import Batch
from repro.training import checkpoint
from repro.training.journal_callback import JournalCallback
from repro.training.module import TranslationModule
from repro.training.replay_check import ReplayCheck


@dataclass(frozen=True, kw_only=True)
class Every:
    """How often, in optimizer steps."""

    log: int
    validate: int
    checkpoint: int


class StopRequested(Exception):
    """Ends training between two steps, once the checkpoint is written. Lightning's own way would validate first."""


class CheckpointCallback(L.Callback):
    """Writes a checkpoint every few steps, before each validation, at the steps to be kept and when asked to stop;
    deletes the oldest.
    """

    def __init__(
        self,
        journal_callback: JournalCallback,
        replay_check: ReplayCheck,
        folder: Path,
        every: Every,
        kept: range,
        should_stop: Callable[[], bool],
    ) -> None:
        self.journal_callback, self.replay_check = journal_callback, replay_check
        self.folder, self.every, self.kept, self.should_stop = folder, every, kept, should_stop
        self.step = 0
        self.lines = 0  # length of the journal when the checkpoint was written
        self.on_sigterm = signal.getsignal(signal.SIGTERM)
        self.host: Any = None  # process group that communicates on the host; None: the default group does that already

    def state_dict(self) -> dict[str, Any]:
        return {"journal": len(self.journal_callback.journal)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.lines = state["journal"]

    def on_train_start(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        self.step = trainer.global_step
        if trainer.world_size > 1 and distributed.get_backend() != "gloo":
            self.host = distributed.new_group(backend="gloo")
        # Lightning has installed its own handler, which ends training inside a step, unsaved, with exit code 0.
        # The caller's handler is restored: `should_stop` decides when to stop.
        signal.signal(signal.SIGTERM, self.on_sigterm)
        _agree_on_plan(trainer)
        if trainer.is_global_zero and len(self.journal_callback.journal) < self.lines:
            print(
                f"Warning: the journal has {len(self.journal_callback.journal)} lines, and had {self.lines} when the "
                f"checkpoint after step {self.step} was written. Training goes on; the curves have a gap.",
                flush=True,
            )
        if self.owes_validation(trainer):
            validation = trainer.fit_loop.epoch_loop.val_loop
            validation.restarting = False  # start with the first batch, whatever the counters in the checkpoint say
            trainer.validating = True
            validation.run()
            trainer.training = True

    def owes_validation(self, trainer: L.Trainer) -> bool:
        """Whether the run was interrupted between the checkpoint of a step and the journal line of its validation."""
        step = trainer.global_step
        owes = step > 0 and step % self.every.validate == 0 and ("dev", step) not in self.journal_callback.journal
        return bool(trainer.strategy.broadcast(owes))

    def on_train_batch_end(
        self, trainer: L.Trainer, pl_module: L.LightningModule, outputs: Any, batch: Batch, batch_idx: int
    ) -> None:
        assert isinstance(pl_module, TranslationModule)
        if trainer.global_step == self.step:
            return
        self.step = trainer.global_step
        stop = self._stop_requested(trainer)
        due = self.step % self.every.checkpoint == 0 or self.step % self.every.validate == 0
        if stop or due or self.step in self.kept:
            paused = time.monotonic()
            pl_module.check_parameters()
            self.journal_callback.gather(trainer, pl_module)
            self.replay_check.gather(trainer)
            self.journal_callback.journal.sync()
            trainer.save_checkpoint(checkpoint.path_of(self.folder, self.step))
            if trainer.is_global_zero:
                checkpoint.prune(self.folder, keep=self.kept)
            self.journal_callback.clock += time.monotonic() - paused
        if stop:
            raise StopRequested

    def on_validation_batch_start(self, trainer: L.Trainer, *_: Any) -> None:
        # the checkpoint of this step is written, and the validation is repeated when the run resumes
        if self._stop_requested(trainer):
            raise StopRequested

    def _stop_requested(self, trainer: L.Trainer) -> bool:
        """Whether any process should stop, the same answer in all of them; found out without waiting for a GPU."""
        stop = self.should_stop()
        if trainer.world_size == 1:
            return stop
        one_should = torch.tensor(int(stop))
        distributed.all_reduce(one_should, distributed.ReduceOp.MAX, self.host)
        return bool(one_should)


def _agree_on_plan(trainer: L.Trainer) -> None:
    """Check before the first step that all processes have the same plan. Raises ValueError."""
    if trainer.world_size == 1:
        return
    own = trainer.datamodule.plan.digest(trainer.global_step)  # type: ignore[attr-defined]
    first = trainer.strategy.broadcast(own)
    agree = trainer.strategy.reduce_boolean_decision(own == first)
    if not agree:
        raise ValueError(
            f"Processes disagree on what to read: the plan of process {trainer.global_rank} is {own[:16]}, that of the "
            f"first {first[:16]}. Let all read the same cache, with the same settings."
        )
