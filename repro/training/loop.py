"""Training of one run: Lightning's Trainer with our batches, our checkpoints and our journal.

Everything happens at optimizer steps: logging, validation, checkpoints, stopping. A run that is started again goes on
from its newest good checkpoint.
"""

import logging
import os
import signal
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, Protocol

import lightning as L
import torch
from lightning.fabric.plugins.environments.lightning import LightningEnvironment
from lightning.pytorch.strategies import DDPStrategy
from torch.utils.data import DataLoader

from repro.data.batch import Batch
from repro.data.datamodule import DevBatches, TranslationData
from repro.model.ragged import arranged
from repro.storage.atomic import sweep
from repro.training import checkpoint, talk
from repro.training.averaging import average
from repro.training.group import Group
from repro.training.module import NonFinite, TranslationModule
from repro.training.replay_check import Conditions, ReplayCheck, ReproducibilityReport
from repro.training.sharded import ShardedStrategy

# Lightning's greetings and adverts, and its use of a class that torch 2.13 is about to drop: not our users' business
logging.getLogger("lightning.pytorch").setLevel(logging.WARNING)
warnings.filterwarnings("ignore", message=r".*isinstance\(treespec, LeafSpec\)", category=FutureWarning)

# nor is its advice on machines where Slurm is installed: who starts processes is found by `repro/runs/launch.py`
warnings.filterwarnings("ignore", message=r"The `srun` command is available on your system but is not used")

# batches are made by the plan in well under a millisecond; a worker process would cost more than it saves
warnings.filterwarnings("ignore", message=r".*does not have many workers")

Precision = Literal["fp32", "bf16", "fp64"]
LIGHTNING_PRECISION: dict[Precision, Any] = {"fp32": "32-true", "bf16": "bf16-mixed", "fp64": "64-true"}
Strategy = Literal["ddp", "fsdp"]
STRATEGIES: dict[Strategy, type[DDPStrategy]] = {"ddp": DDPStrategy, "fsdp": ShardedStrategy}
Watch = Callable[[str, int, dict[str, float]], None]  # kind of line, optimizer step, its numbers


class OutOfMemory(MemoryError):
    """A batch did not fit; no update was made of a part of it."""


class Log(Protocol):
    """Where numbers go: the journal of the run (`journal.Journal`), lines by kind and step."""

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
    slots: int = 0  # places of both sides, padding included
    seconds: float = 0.0  # in steps, without validation, checkpoints and start-up

    @property
    def tokens_per_second(self) -> float:
        return (self.source_tokens + self.target_tokens) / self.seconds if self.seconds else 0.0

    @property
    def padding(self) -> float:
        return 1 - (self.source_tokens + self.target_tokens) / self.slots if self.slots else 0.0


@dataclass(frozen=True, kw_only=True)
class Fitted:
    """How training ended: at its last step, earlier because it was asked to, or in a loss that is no number."""

    cost: TrainingCost
    reproducibility: ReproducibilityReport
    diverged: NonFinite | None = None  # what happened


def fit(
    module: TranslationModule,
    data: TranslationData,
    *,
    folder: Path,
    run: str,
    log: Log,
    every: Every,
    watch: Watch,
    should_stop: Callable[[], bool],
    devices: int = 1,
    precision: Precision = "fp32",
    conditions: Conditions | None = None,
    group: Group | None = None,
    strategy: Strategy = "ddp",
) -> Fitted:
    """Train `module` to its number of steps, or to the first step after `should_stop()` says so.

    Checkpoints go to `folder`; those that the row averages are kept, and the last two that are whole, so that whatever
    befalls one leaves another to go on from. `watch` receives each logged line. The cost tells by its steps whether
    training is finished. `conditions` is what the result may depend on in its last digits; a change is noted. Of a
    `group` of `devices` processes the first alone sees the folder, and tells the others what is in it.
    """
    resume = None
    if group is None or group.is_first:
        sweep(folder, alone=True)
        resume = newest_checkpoint(folder, run)
    if group is not None:
        told = group.told(resume and resume.name)
        resume = folder / told if told else None
    journal_callback, replay_check = JournalCallback(log, every.log, watch), ReplayCheck(conditions or {})
    stream = _Stream(data)
    checkpoint_callback = CheckpointCallback(
        journal_callback, replay_check, folder, every, module.hyper.averaged_steps, should_stop
    )
    # numbers are written down before the checkpoint that follows them
    callbacks = [journal_callback, replay_check, checkpoint_callback]
    trainer = _trainer(module, stream, every, run, callbacks, folder, devices, precision, group, strategy)
    diverged = None
    try:
        with _threads_kept():
            trainer.fit(module, stream, ckpt_path=resume, weights_only=True)
            if checkpoint_callback.owes_validation(trainer):  # training had ended, and it was killed while validating
                trainer.validate(module, stream, verbose=False)
    except _StopRequested:
        pass
    except NonFinite as error:
        diverged = error
    except Exception as error:
        if _is_want_of_memory(error):
            raise OutOfMemory(_did_not_fit(module, error)) from error
        if group is not None and (gone := group.explained(error)):
            raise gone from error
        raise
    return Fitted(cost=journal_callback.total, reproducibility=replay_check.report, diverged=diverged)


@contextmanager
def _threads_kept() -> Iterator[None]:
    """The threads of this process are part of a run, so they stay as they are.

    Where several processes train, Lightning divides the processors it counts among them, unless the environment says
    how many threads each has; then sums are made in another order, on each machine in its own.
    """
    is_said = "OMP_NUM_THREADS" in os.environ
    os.environ.setdefault("OMP_NUM_THREADS", str(torch.get_num_threads()))
    try:
        yield
    finally:
        if not is_said:
            del os.environ["OMP_NUM_THREADS"]


def _trainer(
    module: TranslationModule,
    stream: "_Stream",
    every: Every,
    run: str,
    callbacks: list[L.Callback],
    folder: Path,
    devices: int,
    precision: Precision,
    group: Group | None,
    strategy: Strategy,
) -> L.Trainer:
    """Lightning's part: it decides neither what is read nor what is written, nor who takes part."""
    accumulate = stream.data.accumulate
    nodes = group.peer.nodes if group else 1
    io = checkpoint.SafetensorsIO(run, group.shared if group else None)
    return L.Trainer(
        accelerator="auto",
        devices=devices // nodes,
        num_nodes=nodes,
        strategy=STRATEGIES[strategy](timeout=talk.PATIENCE) if devices > 1 else "auto",
        precision=LIGHTNING_PRECISION[precision],
        max_steps=module.hyper.steps,
        accumulate_grad_batches=accumulate,
        val_check_interval=every.validate * accumulate,
        check_val_every_n_epoch=None,
        num_sanity_val_steps=0,
        use_distributed_sampler=False,
        callbacks=callbacks,
        plugins=[io, group.environment if group else LightningEnvironment()],
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        default_root_dir=folder,
    )


class _Stream(L.LightningDataModule):
    """The data of a run as one epoch without end: whatever happens, happens at optimizer steps."""

    def __init__(self, data: TranslationData) -> None:
        super().__init__()
        self.data = data

    def train_dataloader(self) -> DataLoader[Batch]:
        """From the update after the last one done: Lightning has restored `global_step` before it asks."""
        assert self.trainer is not None
        return self.data.batches(self.trainer.global_step)

    def val_dataloader(self) -> DevBatches:
        return self.data.val_dataloader()


class _StopRequested(Exception):
    """Ends training between two steps, when the checkpoint is there. Asked more kindly, Lightning validates first."""


def _is_want_of_memory(error: Exception) -> bool:
    """PyTorch has a class for GPUs only; of a CPU it says it in words."""
    return isinstance(error, MemoryError | torch.OutOfMemoryError) or "can't allocate memory" in str(error)


def _did_not_fit(module: TranslationModule, error: Exception) -> str:
    batch = module.batch
    if batch is None:
        return f"The model did not fit in memory ({error})."
    source, target = (arranged(side).longest for side in (batch.source, batch.target))
    return (
        f"Out of memory at step {batch.step + 1}: a batch of {len(batch.sentence)} sentences, {source} source and "
        f"{target} target tokens long, did not fit ({str(error).partition(chr(10))[0]}). Nothing was skipped and no "
        "update made. The same command goes on from the last checkpoint: where there is more memory, or with more "
        "--devices."
    )


def newest_checkpoint(folder: Path, run: str) -> Path | None:
    """The newest checkpoint that is whole; damaged ones are named, moved aside and skipped."""
    for path in reversed(checkpoint.checkpoints(folder)):
        try:
            checkpoint.load(path, run)
        except checkpoint.DamagedCheckpoint as error:
            print(f"Warning: {error}\nGoing on from the checkpoint before it.", flush=True)
            path.rename(path.with_suffix(".damaged"))
        else:
            return path
    return None


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
        """The cost up to now, the lines not yet written included."""
        return _sum(self.cost, self.window)

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
        if not trainer.is_global_zero:  # what the checkpoint holds is of all processes together, and counts once
            self.window = replace(self.window, source_tokens=0, target_tokens=0, slots=0)
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
        self.window = _sum(self.window, share)
        self.step, self.clock = trainer.global_step, now
        if not share.steps:
            return
        if self.step % self.every == 0 or self.step == trainer.max_steps:
            window = self._all_ranks(trainer)
            self.cost, self.window = _sum(self.cost, window), TrainingCost()
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
        self.dev_nll = pl_module.dev_nll.compute()  # now: what is logged is reset when validation ends

    def on_validation_end(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        self.step, nll = trainer.global_step, self.dev_nll
        self._write(trainer, "dev", {"nll": nll.item(), "ppl": nll.exp().item()})
        self.journal.sync()
        self.clock += time.monotonic() - self.paused

    def gather(self, trainer: L.Trainer, module: TranslationModule) -> None:
        """Bring together on the first process what is not yet written down: before a checkpoint, by all processes."""
        if trainer.world_size == 1:
            return
        self.window = self._all_ranks(trainer)
        for metric in (module.train_loss, module.train_nll):
            for name in ("total", "n_tokens"):
                total = trainer.strategy.reduce(getattr(metric, name), reduce_op="sum")
                setattr(metric, name, total if trainer.is_global_zero else torch.zeros_like(total))
        if not trainer.is_global_zero:
            self.window = replace(self.window, source_tokens=0, target_tokens=0, slots=0)

    def _all_ranks(self, trainer: L.Trainer) -> TrainingCost:
        """The window of all processes together; time and steps are the same for each."""
        own = torch.tensor([self.window.source_tokens, self.window.target_tokens, self.window.slots])
        source, target, slots = trainer.strategy.reduce(own.to(trainer.strategy.root_device), reduce_op="sum").tolist()
        return replace(self.window, source_tokens=source, target_tokens=target, slots=slots)

    def _write(self, trainer: L.Trainer, kind: str, line: dict[str, float]) -> None:
        if trainer.is_global_zero:
            self.journal.append(kind, self.step, **line)
            self.watch(kind, self.step, line)


class CheckpointCallback(L.Callback):
    """Writes a checkpoint every few steps, before each validation, at those that are averaged and when asked to stop;
    removes the oldest.
    """

    def __init__(
        self,
        journal_callback: JournalCallback,
        replay_check: ReplayCheck,
        folder: Path,
        every: Every,
        averaged: range,
        should_stop: Callable[[], bool],
    ) -> None:
        self.journal_callback, self.replay_check, self.folder, self.every = (
            journal_callback,
            replay_check,
            folder,
            every,
        )
        self.averaged, self.should_stop = averaged, should_stop
        self.step = 0
        self.lines = 0  # of the journal when the checkpoint was written
        self.on_sigterm = signal.getsignal(signal.SIGTERM)

    def state_dict(self) -> dict[str, Any]:
        return {"journal": len(self.journal_callback.journal)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.lines = state["journal"]

    def on_load_checkpoint(self, trainer: L.Trainer, pl_module: L.LightningModule, checkpoint: dict[str, Any]) -> None:
        # Lightning counts micro-batches, of which an update has as many as this number of processes makes
        done = checkpoint["global_step"] * trainer.accumulate_grad_batches
        counters = checkpoint["loops"]["fit_loop"]["epoch_loop.batch_progress"]
        for counted in (counters["total"], counters["current"]):
            counted |= {"ready": done, "started": done, "processed": done, "completed": done - 1}

    def on_train_start(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        self.step = trainer.global_step
        # Lightning has put its own handler here, which ends training inside a step, unsaved, with exit code 0.
        # The caller's goes back in its place: it is for `should_stop` to say when.
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
            validation.restarting = False  # from its first batch, wherever the checkpoint's own counters stand
            trainer.validating = True
            validation.run()
            trainer.training = True

    def owes_validation(self, trainer: L.Trainer) -> bool:
        """Whether the run was ended between the checkpoint of a step and the line of its validation."""
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
        if stop or due or self.step in self.averaged:
            paused = time.monotonic()
            pl_module.check_parameters()
            self.journal_callback.gather(trainer, pl_module)
            self.replay_check.gather(trainer)
            self.journal_callback.journal.sync()
            trainer.save_checkpoint(checkpoint.path_of(self.folder, self.step))
            if trainer.is_global_zero:
                checkpoint.prune(self.folder, keep=self.averaged)
            self.journal_callback.clock += time.monotonic() - paused
        if stop:
            raise _StopRequested

    def on_validation_batch_start(self, trainer: L.Trainer, *_: Any) -> None:
        # the checkpoint of this step is there, and the validation is made up for when the run goes on
        if self._stop_requested(trainer):
            raise _StopRequested

    def _stop_requested(self, trainer: L.Trainer) -> bool:
        return bool(trainer.strategy.reduce_boolean_decision(self.should_stop(), all=False))


def _agree_on_plan(trainer: L.Trainer) -> None:
    """Of several processes each has its own plan: that they are one is looked at before the first step."""
    stream = trainer.datamodule  # type: ignore[attr-defined]
    if trainer.world_size == 1:
        return
    own = stream.data.plan_digest(trainer.global_step)
    first = trainer.strategy.broadcast(own)
    agree = trainer.strategy.reduce_boolean_decision(own == first)
    if not agree:
        raise ValueError(
            f"Processes disagree on what to read: the plan of process {trainer.global_rank} is {own[:16]}, that of the "
            f"first {first[:16]}. Let all read the same cache, with the same settings."
        )


def _sum(a: TrainingCost, b: TrainingCost) -> TrainingCost:
    return TrainingCost(**{name: value + getattr(b, name) for name, value in vars(a).items()})


def averaged(folder: Path, run: str, steps: range) -> dict[str, torch.Tensor]:
    """The weights to decode with: the mean of the checkpoints after `steps`. Paper: section 6.1."""
    paths = [checkpoint.path_of(folder, step) for step in steps]
    if missing := [path.name for path in paths if not path.exists()]:
        raise ValueError(
            f"The row averages {len(paths)} checkpoints, but {folder} lacks {', '.join(missing)}. "
            f"Delete {folder.parent} and run the row again."
        )
    return average(checkpoint.weights(path, run) for path in paths)
