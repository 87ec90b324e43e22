"""What happens between two optimizer steps: a line of the journal, a checkpoint, a stop; and the cost so far."""

import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import lightning as L
import torch
from torch import distributed

from repro.data.batch import Batch
from repro.training import checkpoint
from repro.training.module import TranslationModule
from repro.training.replay_check import ReplayCheck

Watch = Callable[[str, int, dict[str, float]], None]  # kind of line, optimizer step, its numbers


class Log(Protocol):
    """Where the numbers are written: the journal of the run (`journal.Journal`), lines by kind and step."""

    def __contains__(self, line: tuple[str, int], /) -> bool: ...
    def __len__(self) -> int: ...
    def append(self, kind: str, step: int, **values: float) -> None: ...
    def sync(self) -> None: ...


@dataclass(frozen=True, kw_only=True)
class Every:
    """How often, in optimizer steps."""

    log: int
    validate: int
    checkpoint: int


@dataclass(frozen=True, kw_only=True)
class TrainingCost:
    """What the training of a run has consumed so far, over all its attempts."""

    steps: int = 0
    source_tokens: int = 0  # real tokens, no padding
    target_tokens: int = 0
    slots: int = 0  # token places of both sides, padding included
    seconds: float = 0.0  # spent in steps, without validation, checkpoints and start-up

    @property
    def tokens_per_second(self) -> float:
        return (self.source_tokens + self.target_tokens) / self.seconds if self.seconds else 0.0

    @property
    def padding(self) -> float:
        return 1 - (self.source_tokens + self.target_tokens) / self.slots if self.slots else 0.0

    def __add__(self, other: "TrainingCost") -> "TrainingCost":
        return TrainingCost(**{name: value + getattr(other, name) for name, value in vars(self).items()})


class JournalCallback(L.Callback):
    """Writes a line to the journal every few steps and after each validation; adds up the cost."""

    def __init__(self, log: Log, every: int, watch: Watch) -> None:
        self.journal, self.every, self.watch = log, every, watch
        self.cost = TrainingCost()
        self.step = 0
        self.window = TrainingCost()
        self.clock = 0.0

    @property
    def total(self) -> TrainingCost:
        """The cost up to now, including steps whose journal line is not yet written."""
        return self.cost + self.window

    def setup(self, trainer: L.Trainer, pl_module: L.LightningModule, stage: str) -> None:
        assert isinstance(pl_module, TranslationModule)
        for metric in (pl_module.train_loss, pl_module.train_nll):  # checkpoints need the sums for the next line
            metric.persistent(True)

    def state_dict(self) -> dict[str, Any]:
        return {"cost": vars(self.cost), "window": vars(self.window)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.cost, self.window = TrainingCost(**state["cost"]), TrainingCost(**state["window"])

    def on_train_start(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        assert isinstance(pl_module, TranslationModule)
        if (n := len(trainer.optimizers)) != 1:
            raise ValueError(
                f"A run counts the steps of one optimizer, this module has {n}. Train it with a Trainer of your own: "
                "docs/lightning.md."
            )
        if not trainer.is_global_zero:  # a checkpoint has the sums of all processes together, which count once
            self.window = self._window_of(0, 0, 0)
            pl_module.train_loss.reset()
            pl_module.train_nll.reset()
        self.step, self.clock = trainer.global_step, time.monotonic()

    def on_train_batch_start(
        self, trainer: L.Trainer, pl_module: L.LightningModule, batch: Batch, batch_idx: int
    ) -> None:
        assert batch.step == trainer.global_step, "the plan and the optimizer count the same updates"

    def on_train_batch_end(
        self, trainer: L.Trainer, pl_module: L.LightningModule, outputs: Any, batch: Batch, batch_idx: int
    ) -> None:
        assert isinstance(pl_module, TranslationModule)
        now = time.monotonic()
        share = TrainingCost(
            steps=trainer.global_step - self.step,  # 0 for a micro-batch that does not end its update
            source_tokens=batch.n_source,
            target_tokens=batch.n_target,
            slots=batch.slots,
            seconds=now - self.clock,
        )
        self.window = self.window + share
        self.step, self.clock = trainer.global_step, now
        if not share.steps:
            return
        if self.step % self.every == 0 or self.step == trainer.max_steps:
            window = self._all_ranks(trainer)
            self.cost, self.window = self.cost + window, TrainingCost()
            line = {
                "loss": pl_module.train_loss.compute().item(),
                "nll": pl_module.train_nll.compute().item(),
                "lr": trainer.optimizers[0].param_groups[0]["lr"],
                "tokens_per_second": window.tokens_per_second,
                "padding": window.padding,
            }
            pl_module.train_loss.reset()
            pl_module.train_nll.reset()
            self._write(trainer, "train", line)

    def on_validation_start(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        self.paused = time.monotonic()

    def on_validation_epoch_end(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        assert isinstance(pl_module, TranslationModule)
        self.dev_nll = pl_module.dev_nll.compute()  # now, as logged metrics are reset when validation ends

    def on_validation_end(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        self.step, nll = trainer.global_step, self.dev_nll
        self._write(trainer, "dev", {"nll": nll.item(), "ppl": nll.exp().item()})
        self.journal.sync()
        self.clock += time.monotonic() - self.paused

    def gather(self, trainer: L.Trainer, module: TranslationModule) -> None:
        """Add up in the first process what no journal line has yet. Called by all processes before a checkpoint."""
        if trainer.world_size == 1:
            return
        self.window = self._all_ranks(trainer)
        for metric in (module.train_loss, module.train_nll):
            for name in ("total", "n_tokens"):
                total = trainer.strategy.reduce(getattr(metric, name), reduce_op="sum")
                setattr(metric, name, total if trainer.is_global_zero else torch.zeros_like(total))
        if not trainer.is_global_zero:
            self.window = self._window_of(0, 0, 0)

    def _all_ranks(self, trainer: L.Trainer) -> TrainingCost:
        """The window summed over all processes; time and steps are the same in each of them."""
        own = torch.tensor([self.window.source_tokens, self.window.target_tokens, self.window.slots])
        source, target, slots = trainer.strategy.reduce(own.to(trainer.strategy.root_device), reduce_op="sum").tolist()
        return self._window_of(source, target, slots)

    def _window_of(self, source: int, target: int, slots: int) -> TrainingCost:
        """The window with other token counts; seconds and steps stay."""
        return replace(self.window, source_tokens=source, target_tokens=target, slots=slots)

    def _write(self, trainer: L.Trainer, kind: str, line: dict[str, float]) -> None:
        if trainer.is_global_zero:
            self.journal.append(kind, self.step, **line)
            self.watch(kind, self.step, line)


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
    plan = trainer.datamodule.plan  # type: ignore[attr-defined]
    own = plan.planned(trainer.global_step // plan.updates_per_epoch).digest
    first = trainer.strategy.broadcast(own)
    agree = trainer.strategy.reduce_boolean_decision(own == first)
    if not agree:
        raise ValueError(
            f"Processes disagree on what to read: the plan of process {trainer.global_rank} is {own[:16]}, that of the "
            f"first {first[:16]}. Let all read the same cache, with the same settings."
        )
