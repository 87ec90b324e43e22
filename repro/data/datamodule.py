"""Prepared text as a LightningDataModule: this process's micro-batches, in the order of the plan.

It works with any `Trainer` (`docs/lightning.md`) and without one. A trainer would put a sampler into a `DataLoader`, so
it gets none: the plan itself distributes the batches, so that the processes together read each sentence once.
"""

from collections.abc import Iterator
from functools import cached_property
from itertools import islice
from numbers import Integral
from typing import TYPE_CHECKING, Any

import lightning as L
from lightning.pytorch.trainer.states import TrainerFn, TrainerStatus
from torch import distributed
from torch.utils.data import DataLoader

from repro.data.batch import Batch, DevBatches, TrainingBatches, loader
from repro.data.batching import BatchBy, Plan, by_padded_tokens
from repro.data.shards import Side, pair_counts

if TYPE_CHECKING:
    from repro.data.shards import Prepared
    from repro.data.tokenizer import Tokenizer


def place() -> tuple[int, int]:
    """This process's rank and the number of processes, found as PyTorch's own samplers do."""
    if distributed.is_available() and distributed.is_initialized():
        return distributed.get_rank(), distributed.get_world_size()
    return 0, 1


class Epochs:
    """The micro-batches of one process; each iteration is one epoch, and each epoch has its own order.

    The starting point is determined when iteration begins. A trainer knows it: it counts epochs and batches, and
    restores both from its checkpoints. Without a trainer every iteration is the next epoch, from its beginning.
    """

    def __init__(self, data: "TranslationData") -> None:
        self.data, self.epoch = data, 0

    def __len__(self) -> int:
        return self.data.updates_per_epoch * self.data.accumulate

    def __iter__(self) -> Iterator[Batch]:
        epoch, done = self._where() or (self.epoch, 0)
        self.epoch = epoch + 1
        n = self.data.updates_per_epoch
        start, micro = divmod(done, self.data.accumulate)
        yield from islice(self.data.batches(epoch * n + start, (epoch + 1) * n), micro, None)

    def _where(self) -> tuple[int, int] | None:
        """The trainer's epoch and micro-batch if it trains on these very batches; None otherwise."""
        trainer = self.data.trainer
        if trainer is None or trainer.state.status != TrainerStatus.RUNNING or trainer.train_dataloader is not self:
            return None
        return self.data.where()

    def state_dict(self) -> dict[str, Any]:
        """Nothing; the existence of this method tells Lightning that training can resume within an epoch."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Raise ValueError if there is no trainer that knows where to resume."""
        if self.data.trainer is None:
            raise ValueError(
                "These batches alone cannot go on within an epoch; expected the data module. Write "
                "trainer.fit(module, datamodule=data, ckpt_path=...)."
            )


class TranslationData(L.LightningDataModule):
    """Any prepared text: training batches by the plan, an epoch at a time; dev and test batches by length.

    Sides are (source, target) as ids; `from_prepared` takes those of a corpus, and its tokenizer.
    """

    endless = False  # if true, training is one endless epoch that begins with the trainer's current update

    def __init__(
        self,
        train: tuple[Side, Side],
        dev: tuple[Side, Side],
        test: tuple[Side, Side] | None = None,
        *,
        budget: int,
        data_hash: str,
        seed: int,
        batch_by: BatchBy = by_padded_tokens,
        accumulate: int = 1,
        packed: bool = False,
        tokenizer: "Tokenizer | None" = None,
    ) -> None:
        super().__init__()
        for name, number in (("budget", budget), ("accumulate", accumulate)):
            if not isinstance(number, Integral) or number < 1:
                raise ValueError(f"{name}: expected a whole number from 1 on, got {number!r}.")
        self.train, self.dev, self.test, self.data_hash = train, dev, test, data_hash
        self.tokenizer = tokenizer
        self.budget, self.batch_by = budget, batch_by  # for a side of one update, over all processes and micro-batches
        self.seed, self.accumulate = seed, accumulate
        self.packed = packed  # training batches come without padding, which is fast on a GPU
        # epoch and micro-batch of the checkpoint to resume from, and the number of micro-batches an epoch had then
        self._saved: tuple[int, int, int | None] | None = None

    @classmethod
    def from_prepared(cls, text: "Prepared", **plan: Any) -> "TranslationData":
        """The data module for all splits of a corpus; `plan` holds `budget`, `seed` and the other arguments above."""
        train, dev, test = ((split.source, split.target) for split in (text.train, text.dev, text.test))
        return cls(train, dev, test, data_hash=text.data_hash, tokenizer=text.tokenizer, **plan)

    @property
    def vocab_size(self) -> int:
        """The size of the shared vocabulary, which a model needs. Raises AttributeError if there is no tokenizer."""
        if self.tokenizer is None:
            raise AttributeError("There is no tokenizer here: expected TranslationData(..., tokenizer=...).")
        return self.tokenizer.size

    @cached_property
    def plan(self) -> Plan:
        """Which pairs of the training text make up which update."""
        return Plan(
            *(side.lengths for side in self.train),
            budget=self.budget,
            batch_by=self.batch_by,
            data_hash=self.data_hash,
            seed=self.seed,
            counts=pair_counts(*self.train),
        )

    @property
    def updates_per_epoch(self) -> int:
        """The number of updates in an epoch, the same for every epoch."""
        return self.plan.updates_per_epoch

    def batches(self, start: int, stop: int | None = None) -> DataLoader[Batch]:
        """This process's micro-batches of the updates from `start` to before `stop` (None: no end), over all epochs."""
        rank, world = place()
        plan, accumulate, packed = self.plan, self.accumulate, self.packed
        return loader(
            TrainingBatches(
                *self.train, plan, accumulate=accumulate, start=start, stop=stop, rank=rank, world=world, packed=packed
            )
        )

    def setup(self, stage: str | None = None) -> None:
        """Forget the checkpoint of an earlier fit that had nothing left to train."""
        if stage == TrainerFn.FITTING:
            self._saved = None

    def train_dataloader(self) -> Epochs | DataLoader[Batch]:
        """Batches that give the next epoch each time they are iterated. Make it once: a new one starts at epoch 0."""
        if self.endless:
            assert self.trainer is not None  # it restores `global_step` before it calls this
            return self.batches(self.trainer.global_step)
        return Epochs(self)

    def val_dataloader(self) -> DevBatches:
        """Batches of dev, of the size of a training micro-batch, so they fit in memory if training does."""
        return self._held_out(self.dev)

    def test_dataloader(self) -> DevBatches:
        """Batches of test, of the same size as those of dev. Raises ValueError if there is no test text."""
        if self.test is None:
            raise ValueError(
                "There is no test text here: expected a third pair of sides, TranslationData(train, dev, test)."
            )
        return self._held_out(self.test)

    def predict_dataloader(self) -> DevBatches:
        """The batches that `trainer.predict` translates: test, or dev if there is no test text."""
        return self.val_dataloader() if self.test is None else self.test_dataloader()

    def _held_out(self, sides: tuple[Side, Side]) -> DevBatches:
        rank, world = place()
        return DevBatches(*sides, budget=self.budget // self.accumulate, rank=rank, world=world)

    def where(self) -> tuple[int, int] | None:
        """The trainer's next epoch and micro-batch, None if none is fitting. ValueError: they do not suit the plan."""
        trainer = self.trainer
        if trainer is None or trainer.state.fn != TrainerFn.FITTING:
            return None
        if trainer.accumulate_grad_batches != self.accumulate:
            raise ValueError(
                f"The plan cuts an update into {self.accumulate} micro-batches, the trainer accumulates "
                f"{trainer.accumulate_grad_batches}. Give both the same number."
            )
        if trainer.num_training_batches % self.accumulate:
            raise ValueError(
                f"{trainer.num_training_batches} batches an epoch end within an update of {self.accumulate} "
                f"micro-batches. Let limit_train_batches be a multiple of {self.accumulate}."
            )
        if trainer.overfit_batches:  # type: ignore[attr-defined]
            raise ValueError(
                "overfit_batches asks for the same batches in every epoch, but each epoch has an order of its own. "
                "Prepare a text of a few sentences instead."
            )
        # epochs as Lightning counts them for samplers, batches as it restores them
        loop = trainer.fit_loop
        epochs = loop.epoch_progress.current.processed  # type: ignore[attr-defined]
        here = epochs, loop.epoch_loop.batch_progress.current.ready
        if self._saved:
            (epoch, batch, of), self._saved = self._saved, None
            whole = batch == (of or trainer.num_training_batches)  # the finished epoch may or may not be counted yet
            if here not in ([(epoch, 0), (epoch + 1, 0)] if whole else [(epoch, batch)]):
                raise ValueError(
                    f"The checkpoint was written after batch {batch} of epoch {epoch}, the trainer would go on after "
                    f"batch {here[1]} of epoch {here[0]}. Go on from the checkpoint of an epoch's end, with the "
                    "limit_train_batches of that epoch."
                )
        return here

    def _identity(self) -> dict[str, Any]:
        """Everything except the epoch that decides the order."""
        fields = {name: getattr(self, name) for name in ("data_hash", "seed", "budget", "accumulate")}
        way = self.batch_by.__name__.replace("padded_tokens", "slots")  # the name that checkpoints have always used
        return fields | {"fill": way}

    def state_dict(self) -> dict[str, Any]:
        """The state for a trainer's checkpoint; empty if `endless`, where the number of updates is enough."""
        if self.endless:
            return {}
        if self.trainer is None:
            return self._identity()
        at = [self.trainer.current_epoch, self.trainer.fit_loop.epoch_loop.batch_progress.current.ready]
        return self._identity() | {"at": at, "of": self.trainer.num_training_batches}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Raise ValueError if the checkpoint belongs to another order than this one."""
        if self.trainer is not None and self.trainer.state.fn != TrainerFn.FITTING:
            return  # held-out text is read completely, so its order does not matter
        own = self._identity()
        different = [
            f"{name} {state.get(name)!r} there, {own[name]!r} here" for name in own if state.get(name) != own[name]
        ]
        if different:
            raise ValueError(
                f"The checkpoint is of other data: {'; '.join(different)}. Go on with those, or train anew without it."
            )
        if "at" in state:
            epoch, batch = state["at"]
            self._saved = epoch, batch, state.get("of")  # older checkpoints lack "of"
