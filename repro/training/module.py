"""One row as a LightningModule: what a step, a validation and the optimizer are. Paper: section 5.

The class decides nothing: loss, schedule and model are functions of numbers, called here. Random numbers are a
function of (seed, step, share of the update), so a resumed run draws what the unbroken run would have drawn.
"""

import hashlib
import math

import lightning as L
import torch
from torch import Tensor
from torchmetrics import Metric

from repro.data.batch import Batch
from repro.hyper import Hyper
from repro.model.transformer import Transformer
from repro.training.loss import smoothed_cross_entropy
from repro.training.schedule import rate


class NonFiniteLoss(ArithmeticError):
    """The loss became NaN or infinite: the run has diverged and stops before the update."""


def random_seed(seed: int, step: int, share: int) -> int:
    """The generator seed of one micro-batch: the same on every machine, for every way of splitting the update."""
    digest = hashlib.sha256(f"{seed}/{step}/{share}".encode()).digest()
    return int.from_bytes(digest[:8], "little") >> 1


class PieceMean(Metric):
    """Mean over all pieces of all batches and processes, in float64.

    torchmetrics' own mean looks for NaN in each value, which on a GPU means to wait for the step that makes it.
    """

    total: Tensor
    n_pieces: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.add_state("total", torch.zeros((), dtype=torch.float64), dist_reduce_fx="sum")
        self.add_state("n_pieces", torch.zeros((), dtype=torch.float64), dist_reduce_fx="sum")

    def update(self, total: Tensor, n_pieces: int) -> None:
        """Add a sum over `n_pieces`."""
        self.total += total
        self.n_pieces += n_pieces

    def compute(self) -> Tensor:
        return self.total / self.n_pieces


class TranslationModule(L.LightningModule):
    """The Transformer of one row, trained as section 5 says."""

    def __init__(self, hyper: Hyper, vocab_size: int, seed: int) -> None:
        super().__init__()
        self.hyper, self.seed = hyper, seed
        torch.manual_seed(random_seed(seed, step=-1, share=0))
        self.model = Transformer(hyper, vocab_size)
        # since the last time they were read: `training/fit.py` reads and resets them
        self.train_loss, self.train_nll, self.dev_nll = (PieceMean() for _ in range(3))

    def forward(self, source: Tensor, decoder_in: Tensor) -> Tensor:
        """Logits [B, T, V]; see `Transformer.forward`."""
        logits: Tensor = self.model(source, decoder_in)
        return logits

    def on_train_batch_start(self, batch: Batch, batch_idx: int) -> None:
        share = batch.micro * self.trainer.world_size + self.trainer.global_rank
        torch.manual_seed(random_seed(self.seed, self.trainer.global_step, share))

    def training_step(self, batch: Batch, batch_idx: int) -> Tensor:
        """Sum of this share's token losses over the number of tokens of the whole update.

        Lightning divides by the number of accumulated micro-batches and DDP by the number of processes, so both are
        multiplied back: one batch, its halves accumulated and two processes give the same gradient.
        """
        assert batch.step == self.trainer.global_step, "the plan and the optimizer count the same updates"
        loss, nll = self._losses(batch, self.hyper.label_smoothing)
        if loss.device.type == "cpu" and not math.isfinite(loss.item()):
            raise NonFiniteLoss(
                f"The loss is {loss.item()} at step {self.trainer.global_step + 1}; no update was made. "
                f"The run counts as diverged; its last checkpoint is untouched."
            )
        if batch.n_target:
            self.train_loss.update(loss.detach(), batch.n_target)
            self.train_nll.update(nll, batch.n_target)
        return loss * (self.trainer.world_size * self.trainer.accumulate_grad_batches / batch.n_update)

    def validation_step(self, batch: Batch, batch_idx: int) -> None:
        if batch.n_target:
            _, nll = self._losses(batch, epsilon=0.0)
            self.dev_nll.update(nll, batch.n_target)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """Adam with the paper's constants. Paper: section 5.3."""
        return torch.optim.Adam(self.parameters(), lr=1.0, betas=(0.9, 0.98), eps=1e-9, fused=True)

    def on_before_optimizer_step(self, optimizer: torch.optim.Optimizer) -> None:
        """The learning rate is a function of the optimizer step; nothing of it is state."""
        for group in optimizer.param_groups:
            group["lr"] = rate(self.trainer.global_step + 1, self.hyper.d_model, self.hyper.warmup)

    def _losses(self, batch: Batch, epsilon: float) -> tuple[Tensor, Tensor]:
        hidden = self.model.decode(batch.decoder_in, self.model.encode(batch.source), batch.source)
        target = batch.target.flatten()
        return smoothed_cross_entropy(hidden.flatten(0, -2), self.model.embedding.weight, target, epsilon)
