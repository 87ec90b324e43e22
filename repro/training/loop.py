"""Training of one run: Lightning's Trainer with our batches, our checkpoints and our journal.

Logging, validation, checkpoints and stopping all happen at optimizer steps. A run that is started again resumes from
its newest undamaged checkpoint.
"""

import logging
import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lightning as L
import torch
from lightning.fabric.plugins.environments.lightning import LightningEnvironment
from lightning.pytorch.plugins.io import CheckpointIO

from repro.data.datamodule import TranslationData
from repro.model.bfloat16 import bfloat16_products
from repro.model.masks import arranged
from repro.storage.atomic import sweep
from repro.training import checkpoint
from repro.training.callbacks import CheckpointCallback, JournalCallback, StopRequested, Watch
from repro.training.callbacks import Every as Every
from repro.training.callbacks import Log as Log
from repro.training.callbacks import TrainingCost as TrainingCost
from repro.training.checkpoint import save
from repro.training.group import Group
from repro.training.module import NonFinite, TranslationModule
from repro.training.replay_check import Conditions, ReplayCheck, ReproducibilityReport
from repro.training.run_spec import Precision

# silence Lightning's greetings and adverts, and a warning about its use of a class that torch 2.13 deprecates
logging.getLogger("lightning.pytorch").setLevel(logging.WARNING)
warnings.filterwarnings("ignore", message=r".*isinstance\(treespec, LeafSpec\)", category=FutureWarning)

# and its advice where Slurm is installed: `repro/runs/launch.py` finds out who starts the processes
warnings.filterwarnings("ignore", message=r"The `srun` command is available on your system but is not used")

# and its advice to use the GPU of a Mac, see `_trainer`
warnings.filterwarnings("ignore", message="GPU available but not used")

# and its advice to use workers: a batch takes well under a millisecond, a worker process costs more than it saves
warnings.filterwarnings("ignore", message=r".*does not have many workers")

NEEDED = ("state_dict", "optimizer_states", "loops", "global_step")  # keys without which Lightning cannot resume
LIGHTNING_PRECISION: dict[Precision, Any] = {"fp32": "32-true", "bf16": "bf16-mixed", "fp64": "64-true"}


class SafetensorsIO(CheckpointIO):
    """Saves and loads the checkpoints of one run for Lightning; `share` sends what one process has loaded to all."""

    def __init__(self, run: str, share: Callable[[Callable[[], dict[str, Any]]], dict[str, Any]] | None = None) -> None:
        self.run, self.share = run, share or (lambda load: load())

    def save_checkpoint(self, checkpoint: dict[str, Any], path: Any, storage_options: Any = None) -> None:
        save(Path(path), checkpoint, self.run)

    def load_checkpoint(self, path: Any, map_location: Any = None, weights_only: bool | None = None) -> dict[str, Any]:
        return self.share(lambda: checkpoint.load(Path(path), self.run, NEEDED))

    def remove_checkpoint(self, path: Any) -> None:
        os.unlink(path)


class OutOfMemory(MemoryError):
    """A batch did not fit in memory; no update was made from a part of it."""


@dataclass(frozen=True, kw_only=True)
class Fitted:
    """How training ended: at its last step, earlier on request, or because it diverged."""

    cost: TrainingCost
    reproducibility: ReproducibilityReport
    diverged: NonFinite | None = None  # the error, if it diverged


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
) -> Fitted:
    """Train `module` to its number of steps, or to the end of the step at which `should_stop()` is true.

    Checkpoints go to `folder`. Those of `Hyper.kept_steps` are kept, and the last two undamaged ones, so that damage
    to one leaves another. `watch` receives each logged line. The steps in the cost tell whether training is finished.
    `conditions` are what the last digits of the result may depend on; a change is recorded. In a `group` of `devices`
    processes only the first one sees the folder; it tells the others what is in it.
    """
    resume = None
    if group is None or group.is_first:
        sweep(folder, alone=True)
        resume = checkpoint.newest_whole(folder, run)
    if group is not None:
        told = group.told(resume and resume.name)
        resume = folder / told if told else None
    journal_callback, replay_check = JournalCallback(log, every.log, watch), ReplayCheck(conditions or {})
    data.endless = True  # one endless epoch: everything happens at optimizer steps
    checkpoint_callback = CheckpointCallback(
        journal_callback, replay_check, folder, every, module.hyper.kept_steps, should_stop
    )
    # in this order, so that numbers are written before the checkpoint of the same step
    callbacks = [journal_callback, replay_check, checkpoint_callback]
    trainer = _trainer(module, data, every, run, callbacks, folder, devices, precision, group)
    diverged = None
    try:
        narrow = bfloat16_products(trainer.strategy.root_device, wanted=precision == "bf16")
        with _threads_kept(), narrow:
            trainer.fit(module, data, ckpt_path=resume, weights_only=True)
            if checkpoint_callback.owes_validation(trainer):  # the run was killed in the validation after its last step
                trainer.validate(module, data, verbose=False)
    except StopRequested:
        pass
    except NonFinite as error:
        diverged = error
    except Exception as error:
        if _is_want_of_memory(error):
            raise OutOfMemory(_did_not_fit(module, error)) from error
        raise
    return Fitted(cost=journal_callback.total, reproducibility=replay_check.report, diverged=diverged)


@contextmanager
def _threads_kept() -> Iterator[None]:
    """Keep the number of threads, which is part of a run.

    With several processes, Lightning divides the processors among them, unless the environment sets the number of
    threads. Another number would change the order of summation, differently on each machine.
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
    data: TranslationData,
    every: Every,
    run: str,
    callbacks: list[L.Callback],
    folder: Path,
    devices: int,
    precision: Precision,
    group: Group | None,
) -> L.Trainer:
    """Lightning's Trainer, which decides neither what is read or written nor which processes take part."""
    accumulate = data.accumulate
    nodes = group.peer.nodes if group else 1
    io = SafetensorsIO(run, group.shared if group else None)
    trainer = L.Trainer(
        accelerator="cuda" if torch.cuda.is_available() else "cpu",  # Apple's GPUs lack float64, needed to sum dev
        devices=devices // nodes,
        num_nodes=nodes,
        strategy="ddp" if devices > 1 else "auto",
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
        inference_mode=False,  # as Lightning does when it validates within a fit; see also `without_gradients`
        default_root_dir=folder,
    )
    # Before each batch Lightning broadcasts whether a SIGTERM came, which stalls GPUs; here `should_stop` reports it
    trainer.fit_loop.epoch_loop._broadcast_sigterm_tensor = lambda: None  # type: ignore[method-assign]
    return trainer


def _is_want_of_memory(error: Exception) -> bool:
    """Whether memory ran out. PyTorch has an error class for GPUs only; on a CPU only the message says it."""
    return isinstance(error, MemoryError | torch.OutOfMemoryError) or "can't allocate memory" in str(error)


def _did_not_fit(module: TranslationModule, error: Exception) -> str:
    batch = module.batch
    if batch is None:
        return f"The model did not fit in memory ({error})."
    source, target = (arranged(side).longest for side in (batch.source, batch.target))
    half = max(batch.source.numel(), batch.target.numel()) // 2
    done = module.trainer.global_step
    where = f"at step {batch.step + 1}" if module.training else f"while dev was read after step {done}"
    return (
        f"Out of memory {where}: a batch of {len(batch.sentence)} sentences, {source} source and "
        f"{target} target tokens long, did not fit ({str(error).partition(chr(10))[0]}). Nothing was skipped and no "
        "update made. The same command goes on from the last checkpoint, where there is more memory. With less of it "
        f"let a device take less at once, --device-tokens {half}, or take more --devices: each is another run."
    )
