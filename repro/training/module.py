"""One row as a LightningModule: training step, validation and optimizer. Paper: section 5.

The class only calls: loss, schedule and model are functions defined elsewhere. Random numbers are a function of
(seed, step, micro-batch), so a resumed run draws the same numbers as an uninterrupted run.
"""

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

import lightning as L
import numpy as np
import torch
from lightning.pytorch.trainer.states import TrainerFn
from torch import Tensor
from torchmetrics import Metric

from repro.data.batch import Batch
from repro.data.datamodule import Epochs
from repro.data.shards import Encoded
from repro.model.build import build, gradient_norm
from repro.model.config import Hyper
from repro.model.loss import smoothed_cross_entropy
from repro.model.protocol import refuse_parts
from repro.model.special_tokens import PAD

SHOWN = 12  # how many sentences a message names
FREE = ("steps", "average", "average_every")  # fields that may differ: how long to train changes no update


class NonFinite(ArithmeticError):
    """A loss, gradient, parameter or learning rate became NaN or infinite: the run has diverged and stops."""

    def __init__(self, what: str, *, step: int, seed: int, sentences: Sequence[int]) -> None:
        self.what, self.step, self.seed, self.sentences = what, step, seed, list(sentences)
        shown = ", ".join(map(str, self.sentences[:SHOWN]))
        more = f" and {len(self.sentences) - SHOWN} more" if len(self.sentences) > SHOWN else ""
        super().__init__(
            f"{what}. Seed {seed}, sentences {shown}{more}. "
            "The run counts as diverged; its last checkpoint is untouched."
        )


def random_seed(seed: int, step: int, share: int) -> int:
    """The generator seed of one micro-batch, the same on every machine and for every way of splitting the update."""
    digest = hashlib.sha256(f"{seed}/{step}/{share}".encode()).digest()
    return int.from_bytes(digest[:8], "little") >> 1


def rate(step: int, d_model: int, warmup: int, factor: float = 1.0, *, rises: bool = True) -> float:
    """factor d_model^-0.5 min(step^-0.5, step warmup^-1.5). Paper: section 5.3, equation (3).

    `step` is the number of the optimizer step, from 1. The rate rises to its peak, factor (d_model warmup)^-0.5, at
    step `warmup`; without `rises` it is at the peak until then. In the paper it rises and the factor is 1.
    """
    if step < 1:
        raise ValueError(f"Optimizer steps are counted from 1, got {step}.")
    before = step * warmup**-1.5 if rises else warmup**-0.5
    return float(factor * d_model**-0.5 * min(step**-0.5, before))


class TokenMean(Metric):
    """Mean over all tokens of all batches and processes, in float64.

    torchmetrics' own mean checks each value for NaN, so on a GPU it would wait for the step that computes the value.
    """

    total: Tensor
    n_tokens: Tensor

    def __init__(self) -> None:
        super().__init__()
        for name in ("total", "n_tokens"):
            self.add_state(name, torch.zeros((), dtype=torch.float64), dist_reduce_fx="sum")

    def update(self, total: Tensor, n_tokens: int) -> None:
        """Add a sum over `n_tokens`. Not in place: Lightning may have reset the state in inference mode."""
        self.total = self.total + total
        self.n_tokens = self.n_tokens + n_tokens

    def compute(self) -> Tensor:
        return self.total / self.n_tokens


class DeferredCheck:
    """The norm of a gradient that is being copied from the device to the host."""

    def __init__(self, norm: Tensor, step: int, sentences: Sequence[Tensor]) -> None:
        self.step, self.sentences = step, sentences
        self._norm = norm.to("cpu", non_blocking=True)
        self._came = torch.cuda.current_stream().record_event() if norm.is_cuda else None

    @property
    def norm(self) -> float:
        """The norm. Waits until the copy has finished; for past steps it already has."""
        if self._came is not None:
            self._came.synchronize()
        return self._norm.item()


class TranslationModule(L.LightningModule):
    """The model of one row, trained as section 5 says; the Transformer unless the row names another system."""

    def __init__(self, hyper: Hyper | Mapping[str, Any], vocab_size: int, seed: int, system: Any = None) -> None:
        super().__init__()
        if isinstance(system, str):
            raise ValueError(
                f"The checkpoint is of the system {system}; it holds its name and not its code. Write "
                "load_from_checkpoint(path, system=...) with that class."
            )
        self.hyper = hyper if isinstance(hyper, Hyper) else Hyper(**hyper)
        self.vocab_size, self.seed = vocab_size, seed
        # for Lightning's own checkpoints and for loggers
        named = None if system is None else _name(system)
        self.save_hyperparameters(
            {"hyper": asdict(self.hyper), "vocab_size": vocab_size, "seed": seed, "system": named}
        )
        self.batch: Batch | None = None  # the current micro-batch, for messages
        self.update: list[Tensor] = []  # sentences of the micro-batches of the current update
        self.deferred: DeferredCheck | None = None  # the gradient norm that has not been checked yet
        torch.manual_seed(random_seed(seed, step=-1, share=0))
        self.model = build(system, self.hyper, vocab_size)
        self.gradient_norm = gradient_norm(system)
        self.logs = False  # whether anything reads the logged training values
        self.losses: list[tuple[Tensor, Tensor]] = []  # if so: summed loss and nll of the update's micro-batches
        # means since the last line of the journal: `training/callbacks.py` reads and resets them
        self.train_loss, self.train_nll = TokenMean(), TokenMean()
        self.dev_nll, self.test_nll = TokenMean(), TokenMean()  # of one evaluation: Lightning resets logged metrics

    def setup(self, stage: str) -> None:
        """Raise ValueError if the data's vocabulary has another size than the module's."""
        size = getattr(self.trainer.datamodule, "vocab_size", self.vocab_size)  # type: ignore[attr-defined]
        if size != self.vocab_size:
            raise ValueError(
                f"The module is for a vocabulary of {self.vocab_size} tokens, the data have {size}. Write "
                "TranslationModule(hyper, data.vocab_size, seed)."
            )

    def forward(self, source: Tensor, decoder_in: Tensor) -> Tensor:
        """Logits [B, T, V] of the tokens that follow decoder_in [B, T], given source [B, S]."""
        hidden = self.model.decode(decoder_in, self.model.encode(source), source)
        logits: Tensor = self.model.embedding.logits(hidden)
        return logits

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Resume after the last whole update, no matter when Lightning wrote the checkpoint."""
        if self._trainer is None or self.trainer.state.fn != TrainerFn.FITTING:
            return
        refuse_another(checkpoint.get("hyper_parameters", {}), self.hparams)
        if self.automatic_optimization:
            data = type(self.trainer.datamodule).__qualname__  # type: ignore[attr-defined]
            after_whole_update(checkpoint, self.trainer.accumulate_grad_batches, data)

    def on_train_start(self) -> None:
        """Raise ValueError if the model needs whole updates but gets parts, or the batches do not know this trainer."""
        refuse_parts(self.model, self.trainer.world_size * self.trainer.accumulate_grad_batches)
        batches = self.trainer.train_dataloader
        if isinstance(batches, Epochs) and batches.data.trainer is not self.trainer:
            raise ValueError(
                "expected the data module, got its training batches alone, which know nothing of the trainer. Write "
                "trainer.fit(module, datamodule=data)."
            )

        self._set_rate(self.trainer.optimizers, self.begun)
        trainer = self.trainer  # in our own runs only the journal reads training values, so nothing is logged
        self.logs = bool(trainer.loggers or trainer.checkpoint_callbacks or trainer.early_stopping_callbacks)

    def on_train_batch_end(self, outputs: Any, batch: Batch, batch_idx: int) -> None:
        self._set_rate(self.trainer.optimizers, self.begun)

    def _set_rate(self, optimizers: Sequence[torch.optim.Optimizer], updates: int) -> float:
        """Set and return the learning rate of the next update, after `updates` of them. It is no state to be saved.

        It is set as soon as the previous update has ended, so reading it within a step gives the rate of that step.
        """
        learning_rate = rate(
            updates + 1, self.hyper.d_model, self.hyper.warmup, self.hyper.lr_factor, rises=self.hyper.warms_up
        )
        for optimizer in optimizers:
            for group in optimizer.param_groups:
                group["lr"] = learning_rate
        return learning_rate

    def on_train_batch_start(self, batch: Batch, batch_idx: int) -> None:
        n = self.trainer.accumulate_grad_batches
        if batch.micro != (expected := self.trainer.fit_loop.total_batch_idx % n):
            raise ValueError(
                f"Update {batch.step + 1}: expected its micro-batch {expected + 1} of {n}, got its micro-batch "
                f"{batch.micro + 1}. Let the trainer accumulate as many as the data cut an update into."
            )
        self.draw_anew(batch)
        self.batch = batch
        self.update = [*(self.update if batch.micro else []), batch.sentence]

    def draw_anew(self, batch: Batch) -> None:
        """Seed the generator for this micro-batch, independent of what was drawn before."""
        share = batch.micro * self.trainer.world_size + self.trainer.global_rank
        torch.manual_seed(random_seed(self.seed, batch.step, share))

    def training_step(self, batch: Batch, batch_idx: int) -> Tensor:
        """The sum of this micro-batch's token losses, divided by the number of target tokens of the whole update.

        Lightning divides by the number of accumulated micro-batches and DDP by the number of processes, so both are
        multiplied back. One batch, two accumulated halves and two processes thus give the same gradient.
        """
        loss, nll = self._losses(batch, self.hyper.label_smoothing)
        # Each gradient is checked before its update in any case. This check names the micro-batch sooner. It is made
        # where it costs nothing and no other process waits for this one.
        if loss.device.type == "cpu" and self.trainer.world_size == 1 and not math.isfinite(loss.item()):
            raise self.non_finite(f"The loss is {loss.item()}", [batch.sentence])
        if batch.n_target:
            self.train_loss.update(loss.detach(), batch.n_target)
            self.train_nll.update(nll, batch.n_target)
        if self.logs:
            self.losses = [*(self.losses if batch.micro else []), (loss.detach(), nll)]
        return loss * self._weight(batch)

    def loss_again(self, batch: Batch) -> Tensor:
        """The loss of `training_step` for this micro-batch, divided as Lightning divides it, without recording it."""
        self.draw_anew(batch)
        loss, _ = self._losses(batch, self.hyper.label_smoothing)
        return loss * self._weight(batch) / self.trainer.accumulate_grad_batches

    def _weight(self, batch: Batch) -> float:
        if not batch.n_update:
            raise ValueError(
                f"Update {batch.step + 1} has no target token to learn from. Its sentences: {batch.sentence.tolist()}; "
                f"look at them, and prepare the corpus again."
            )
        return self.trainer.world_size * self.trainer.accumulate_grad_batches / batch.n_update

    def validation_step(self, batch: Batch, batch_idx: int) -> None:
        self._measure(batch, self.dev_nll)
        self.log("dev/nll", self.dev_nll)

    def test_step(self, batch: Batch, batch_idx: int) -> None:
        self._measure(batch, self.test_nll)
        self.log("test/nll", self.test_nll)

    def _measure(self, batch: Batch, mean: TokenMean) -> None:
        self.batch = batch
        _, nll = self._losses(batch, epsilon=0.0)  # even for an empty share: other processes may wait in each layer
        if batch.n_target:
            mean.update(nll, batch.n_target)

    def predict_step(self, batch: Batch, batch_idx: int) -> dict[int, str] | dict[int, Sequence[int]]:
        """The translations by sentence number in the text; as ids if the data module has no tokenizer."""
        from repro.decoding.translate import translate

        assert isinstance(batch.source, Tensor)
        rows = {i: row[row != PAD].cpu().numpy() for i, row in zip(batch.sentence.tolist(), batch.source, strict=True)}
        rows.pop(-1, None)  # the placeholder row of an empty share
        if not rows:
            return {}
        source = Encoded(np.concatenate(list(rows.values())), np.cumsum([0, *map(len, rows.values())]))
        by_number = dict(zip(rows, translate(self.model, source), strict=True))
        tokenizer = getattr(self.trainer.datamodule, "tokenizer", None)  # type: ignore[attr-defined]
        return {i: tokenizer.decode(ids) for i, ids in by_number.items()} if tokenizer else by_number

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """Adam with the paper's constants. Paper: section 5.3."""
        return torch.optim.Adam(self.parameters(), lr=1.0, betas=(0.9, 0.98), eps=1e-9, fused=True)

    def on_before_optimizer_step(self, optimizer: torch.optim.Optimizer) -> None:
        """Check that rate and gradient are finite; clip the gradient if the system asks for it. Raises NonFinite."""
        learning_rate = self._set_rate([optimizer], self.updates)
        if not math.isfinite(learning_rate):
            raise self.non_finite(f"The learning rate is {learning_rate}", self.update)
        if self.logs:
            self._log_update(learning_rate)
        # A norm costs a tenth of a flag for each element. It also catches a square that overflows, which would spoil
        # Adam's second moment for good. All processes have the same gradient, so they raise together.
        gradients = [p.grad for p in self.parameters() if p.grad is not None]
        norm = _norm(gradients)
        if self.gradient_norm is not None:
            cut(gradients, norm, self.gradient_norm)
        self.check_deferred()
        self.deferred = DeferredCheck(norm, self.updates, self.update)
        if self.defers_check:
            optimizer.found_inf = (~norm.isfinite()).float()  # type: ignore[attr-defined]  # the update is left out
        else:
            self.check_deferred()

    def _log_update(self, learning_rate: float) -> None:
        """Log loss and rate of the current update, over all its micro-batches and processes."""
        assert self.batch is not None
        for name, parts in zip(("loss", "nll"), zip(*self.losses, strict=True), strict=True):
            mean = torch.stack(parts).sum() / self.batch.n_update
            self.log(f"train/{name}", mean, reduce_fx="sum", sync_dist=self.trainer.world_size > 1)
        self.log("train/lr", learning_rate)

    @property
    def begun(self) -> int:
        """How many updates are done, when asked between two micro-batches."""
        return (self.trainer.fit_loop.total_batch_idx + 1) // self.trainer.accumulate_grad_batches

    @property
    def updates(self) -> int:
        """How many updates precede the current one. Not `global_step`, which adds up the steps of all optimizers."""
        return self.trainer.fit_loop.total_batch_idx // self.trainer.accumulate_grad_batches

    @property
    def defers_check(self) -> bool:
        """Whether a gradient is checked only when the next one is there: checking it at once would stall a GPU."""
        return self.device.type == "cuda"

    def check_deferred(self) -> None:
        """Raise `NonFinite` if the gradient that is not yet checked has a NaN or infinite element."""
        deferred, self.deferred = self.deferred, None
        if deferred and not math.isfinite(norm := deferred.norm):
            raise self.non_finite(f"The norm of the gradient is {norm}", deferred.sentences, deferred.step)

    def check_parameters(self) -> None:
        """Raise `NonFinite` if a parameter is NaN or infinite: checked before a checkpoint is written."""
        self.check_deferred()
        norm = _norm([p.detach() for p in self.parameters()]).item()
        if not math.isfinite(norm):
            step = self.trainer.global_step
            what = f"The norm of the parameters is {norm} after step {step}; no checkpoint was written"
            raise NonFinite(what, step=step, seed=self.seed, sentences=_numbers(self.update))

    def non_finite(self, what: str, sentences: Sequence[Tensor], done: int | None = None) -> NonFinite:
        """The error that names a step and its sentences: the current step, or the one after `done` steps."""
        step = (self.updates if done is None else done) + 1
        what = f"{what} at step {step}; no update was made"
        return NonFinite(what, step=step, seed=self.seed, sentences=_numbers(sentences))

    def _losses(self, batch: Batch, epsilon: float) -> tuple[Tensor, Tensor]:
        hidden = self.model.decode(batch.decoder_in, self.model.encode(batch.source), batch.source)
        target = batch.target.flatten()
        return smoothed_cross_entropy(hidden.flatten(0, -2), self.model.embedding.weight, target, epsilon)


def _name(part: Any) -> str:
    """A system, or an argument of one, as text: `module.Class`, or `module.Class(name=module.Class)` for a partial."""
    if isinstance(part, partial):
        given = [*map(_name, part.args), *(f"{name}={_name(value)}" for name, value in part.keywords.items())]
        return f"{_name(part.func)}({', '.join(given)})"
    return f"{part.__module__}.{part.__qualname__}" if hasattr(part, "__qualname__") else repr(part)


def cut(gradients: Sequence[Tensor], norm: Tensor, longest: float) -> None:
    """Scale gradients whose joint `norm` exceeds `longest` down to it, in place. Pascanu et al. (2013)."""
    factor = (longest / norm).clamp(max=1.0)
    for gradient in gradients:
        gradient.mul_(factor.to(gradient.dtype))


def _numbers(sentences: Sequence[Tensor]) -> list[int]:
    """The sentence numbers of some micro-batches, without the placeholder -1."""
    return [i for part in sentences for i in part.tolist() if i >= 0]


def _norm(tensors: Sequence[Tensor]) -> Tensor:
    """The Euclidean norm of all elements of all tensors; finite only if every element is."""
    if tensors[0].is_cuda:
        norms = torch._foreach_norm(list(tensors))
    else:  # a dot product uses all threads, PyTorch's norm only one
        norms = tuple(x.dot(x).sqrt() for x in (tensor.flatten() for tensor in tensors))
    return torch.stack(norms).norm()


# Where training resumes from one of Lightning's checkpoints, which may be written at any moment of a step.
#
# On Slurm's signal, Ctrl-C or an exception, Lightning saves at once: inside the backward pass, between two
# micro-batches, or after the optimizer has changed the weights but before the step is counted. An unfinished update is
# lost with its gradient, so training resumes after the last whole one.


def after_whole_update(checkpoint: dict[str, Any], accumulate: int, data: str) -> None:
    """Set the counters of a checkpoint to the end of its last whole update of `accumulate` micro-batches.

    Lightning resets its counters of this epoch to the last finished batch, but not its counter of all epochs.
    `data` is the key of the data module's state.
    """
    loop = checkpoint["loops"]["fit_loop"]
    progress = loop["epoch_loop.batch_progress"]
    counted = loop["epoch_loop.automatic_optimization.optim_progress"]["optimizer"]["step"]["total"]
    if _steps_of_optimizer(checkpoint) == {counted["completed"] + 1}:  # the weights changed, but it is not yet counted
        counted["completed"] += 1
    n_updates = counted["completed"]
    too_many = progress["total"]["processed"] - n_updates * accumulate
    if progress["total"]["ready"] == progress["total"]["processed"] and not too_many:
        return
    for batches in (progress["total"], progress["current"]):
        done = batches["processed"] - too_many
        # as Lightning writes it when a batch has ended
        batches |= {"ready": done, "started": done, "processed": done, "completed": done - 1}
    progress["is_last_batch"] &= too_many < 0  # else the batch that the flag belongs to is read again
    loop["epoch_loop.state_dict"]["_batches_that_stepped"] = n_updates - 1
    state = checkpoint.get(data, {})
    if "at" in state:
        state["at"] = [state["at"][0], progress["current"]["ready"]]


def refuse_another(saved: Mapping[str, Any], own: Mapping[str, Any]) -> None:
    """Raise ValueError if a checkpoint is of a module with other settings, with which every update would differ."""
    there, here = (_flat(one) for one in (saved, own))
    different = [
        f"{name} {there[name]!r} there, {here[name]!r} here"
        for name in here
        if name in there and there[name] != here[name] and name not in FREE
    ]
    if different:
        raise ValueError(
            f"The checkpoint is of another module: {'; '.join(different)}. Go on with those; or begin anew with its "
            "weights: fit(TranslationModule.load_from_checkpoint(path), data) without ckpt_path."
        )


def _flat(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Seed, vocabulary size, system and the fields of the row in one dictionary."""
    own = {name: settings[name] for name in ("seed", "vocab_size", "system") if name in settings}
    return own | dict(settings.get("hyper", {}))


def _steps_of_optimizer(checkpoint: dict[str, Any]) -> set[int]:
    """The numbers of updates that Adam has counted for its parameters."""
    moments = (state for optimizer in checkpoint.get("optimizer_states", []) for state in optimizer["state"].values())
    return {int(state["step"]) for state in moments if "step" in state}
