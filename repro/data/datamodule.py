"""Prepared text as a LightningDataModule: this process's micro-batches, in the order of the plan.

Works with any `Trainer` (`docs/lightning.md`), and without one. A trainer gets no `DataLoader`, into which it would put
a sampler: the plan shares batches out itself, so that its processes read each sentence once.
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

from repro.data import order_digest
from repro.data.batch import Batch
from repro.data.batching import BatchBy, Plan, by_padded_tokens
from repro.data.datasets import DevBatches, TrainingBatches, loader
from repro.data.shards import Side, pair_lengths

if TYPE_CHECKING:
    from repro.data.shards import Prepared
    from repro.data.tokenizer import Tokenizer


def place() -> tuple[int, int]:
    """The number of this process and of all, as PyTorch's own samplers find it."""
    if distributed.is_available() and distributed.is_initialized():
        return distributed.get_rank(), distributed.get_world_size()
    return 0, 1


class Epochs:
    """The micro-batches of one process, an epoch each time it is iterated; each epoch has an order of its own.

    Where it begins is asked for with its first batch. A trainer knows: it counts epochs and batches, and restores both
    from its checkpoints. Without one every iteration is the next epoch, from its beginning.
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
        """What the trainer says, if it trains on these very batches; who reads others beside it reads whole epochs."""
        trainer = self.data.trainer
        if trainer is None or trainer.state.status != TrainerStatus.RUNNING or trainer.train_dataloader is not self:
            return None
        return self.data.where()

    def state_dict(self) -> dict[str, Any]:
        """Nothing; that the method is there tells Lightning that training can go on within an epoch."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Refuse where nobody would say where to go on."""
        if self.data.trainer is None:
            raise ValueError(
                "These batches alone cannot go on within an epoch; expected the data module. Write "
                "trainer.fit(module, datamodule=data, ckpt_path=...)."
            )


class TranslationData(L.LightningDataModule):
    """Any text that has been prepared: training by the plan, an epoch at a time; dev and test by length.

    Sides are (source, target) as ids; `from_prepared` takes those of a corpus, and its tokenizer.
    """

    endless = False  # training is one epoch without end, from the update that the trainer is at

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
        workers: int = 0,
        packed: bool = False,
        tokenizer: "Tokenizer | None" = None,
    ) -> None:
        super().__init__()
        for name, number, least in (("budget", budget, 1), ("accumulate", accumulate, 1), ("workers", workers, 0)):
            if not isinstance(number, Integral) or number < least:
                raise ValueError(f"{name}: expected a whole number from {least} on, got {number!r}.")
        self.train, self.dev, self.test, self.data_hash = train, dev, test, data_hash
        self.tokenizer = tokenizer
        self.budget, self.batch_by = budget, batch_by  # of a side of one update, over all processes and micro-batches
        self.seed, self.accumulate, self.workers = seed, accumulate, workers
        self.packed = packed  # training batches come without padding, as a GPU likes them
        # epoch and micro-batch of the checkpoint to go on from, and how many micro-batches an epoch had there
        self._saved: tuple[int, int, int | None] | None = None

    @classmethod
    def from_prepared(cls, text: "Prepared", **plan: Any) -> "TranslationData":
        """All splits of a corpus; `plan` is `budget`, `seed` and the other choices above."""
        train, dev, test = ((split.source, split.target) for split in (text.train, text.dev, text.test))
        return cls(train, dev, test, data_hash=text.data_hash, tokenizer=text.tokenizer, **plan)

    @property
    def vocab_size(self) -> int:
        """Tokens of both languages, as a model needs to know. AttributeError: what came as ids alone does not say."""
        if self.tokenizer is None:
            raise AttributeError("There is no tokenizer here: expected TranslationData(..., tokenizer=...).")
        return self.tokenizer.size

    @cached_property
    def plan(self) -> Plan:
        """Which pairs of the training text make up which update."""
        return Plan(
            lengths=pair_lengths(*self.train),
            budget=self.budget,
            batch_by=self.batch_by,
            data_hash=self.data_hash,
            seed=self.seed,
        )

    def plan_digest(self, step: int) -> str:
        """SHA-256 of the plan around update `step`: what processes that train together must agree on."""
        return self.plan.digest(step)

    def order_digest(self, steps: int, n_shares: int) -> str:
        """What the sentences of the first `steps` updates add up to, in `n_shares` each (`data/order_digest.py`)."""
        return order_digest.planned(islice(self.plan.updates(), steps), n_shares)

    @property
    def updates_per_epoch(self) -> int:
        """As many for every epoch."""
        return self.plan.updates_per_epoch

    def batches(self, start: int, stop: int | None = None) -> DataLoader[Batch]:
        """This process's micro-batches from update `start` on, over all epochs, to before `stop` or without end."""
        rank, world = place()
        return loader(
            TrainingBatches(
                *self.train,
                self.plan,
                accumulate=self.accumulate,
                start=start,
                stop=stop,
                rank=rank,
                world=world,
                packed=self.packed,
            ),
            self.workers,
        )

    def setup(self, stage: str | None = None) -> None:
        """Forget the checkpoint of an earlier fit, in which nothing was left to train."""
        if stage == TrainerFn.FITTING:
            self._saved = None

    def train_dataloader(self) -> Epochs | DataLoader[Batch]:
        """The next epoch each time it is iterated. Make it once: a new one begins with the first epoch."""
        if self.endless:
            assert self.trainer is not None  # it has restored `global_step` before it asks
            return self.batches(self.trainer.global_step)
        return Epochs(self)

    def val_dataloader(self) -> DevBatches:
        """Batches of the size of a micro-batch, so what fits in training fits here."""
        return self._held_out(self.dev)

    def test_dataloader(self) -> DevBatches:
        """Batches of test, of the size of those of dev. ValueError: there is no test text."""
        if self.test is None:
            raise ValueError(
                "There is no test text here: expected a third pair of sides, TranslationData(train, dev, test)."
            )
        return self._held_out(self.test)

    def predict_dataloader(self) -> DevBatches:
        """What `trainer.predict` translates: test, or dev where there is no test."""
        return self.val_dataloader() if self.test is None else self.test_dataloader()

    def _held_out(self, sides: tuple[Side, Side]) -> DevBatches:
        rank, world = place()
        return DevBatches(*sides, budget=self.budget // self.accumulate, rank=rank, world=world)

    def where(self) -> tuple[int, int] | None:
        """Epoch and micro-batch that the trainer is about to train on; None without a trainer that trains."""
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
            whole = batch == (of or trainer.num_training_batches)  # the epoch may count as ended already, or not yet
            if here not in ([(epoch, 0), (epoch + 1, 0)] if whole else [(epoch, batch)]):
                raise ValueError(
                    f"The checkpoint was written after batch {batch} of epoch {epoch}, the trainer would go on after "
                    f"batch {here[1]} of epoch {here[0]}. Go on from the checkpoint of an epoch's end, with the "
                    "limit_train_batches of that epoch."
                )
        return here

    def _identity(self) -> dict[str, Any]:
        """What decides the order, but for the epoch."""
        fields = {name: getattr(self, name) for name in ("data_hash", "seed", "budget", "accumulate")}
        way = self.batch_by.__name__.replace("padded_tokens", "slots")  # as checkpoints have said it from the first
        return fields | {"fill": way}

    def state_dict(self) -> dict[str, Any]:
        """For a trainer's checkpoint; nothing where updates alone say what comes next."""
        if self.endless:
            return {}
        if self.trainer is None:
            return self._identity()
        at = [self.trainer.current_epoch, self.trainer.fit_loop.epoch_loop.batch_progress.current.ready]
        return self._identity() | {"at": at, "of": self.trainer.num_training_batches}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Refuse to go on in another order than that of the checkpoint."""
        if self.trainer is not None and self.trainer.state.fn != TrainerFn.FITTING:
            return  # held-out text is read whole, in whatever order
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
            self._saved = epoch, batch, state.get("of")  # checkpoints of before have none
