"""The journal of training: a line of numbers every few steps and after each validation, and the cost so far."""

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Protocol

import lightning as L
import torch

from repro.data.batch import Batch
from repro.training.cost import TrainingCost
from repro.training.module import TranslationModule

Watch = Callable[[str, int, dict[str, float]], None]  # kind of line, optimizer step, its numbers


class Log(Protocol):
    """Where the numbers are written: the journal of the run (`journal.Journal`), lines by kind and step."""

    def __contains__(self, line: tuple[str, int], /) -> bool: ...
    def __len__(self) -> int: ...
    def append(self, kind: str, step: int, **values: float) -> None: ...
    def sync(self) -> None: ...


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
