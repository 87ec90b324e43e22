"""Prepared text as a LightningDataModule: this process's micro-batches, in the order of the plan."""

from collections.abc import Iterator
from itertools import islice

import lightning as L
from torch.utils.data import DataLoader, Dataset, IterableDataset, get_worker_info

from repro.data import order
from repro.data.batch import Batch, make_batch
from repro.data.buckets import Fill, by_slots, plan_epoch, share, updates, updates_per_epoch
from repro.data.store import Side


class TrainingBatches(IterableDataset[Batch]):
    """Micro-batches of one process from update `start` on, without end.

    Share number micro * world + rank of an update is micro-batch `micro` of process `rank`, so that two
    processes read what one process accumulates, share by share.
    """

    def __init__(
        self,
        source: Side,
        target: Side,
        *,
        budget: int,
        fill: Fill,
        accumulate: int,
        data_hash: str,
        seed: int,
        start: int,
        rank: int,
        world: int,
        packed: bool = False,
    ) -> None:
        self.source, self.target, self.fill, self.packed = source, target, fill, packed
        self.budget, self.data_hash, self.seed, self.start = budget, data_hash, seed, start
        self.accumulate, self.rank, self.world = accumulate, rank, world

    def __iter__(self) -> Iterator[Batch]:
        # the loader takes one batch from each worker in turn: worker w of W makes every W-th
        worker = get_worker_info()
        first, stride = (worker.id, worker.num_workers) if worker else (0, 1)
        plan = updates(
            self.source.lengths,
            self.target.lengths,
            budget=self.budget,
            fill=self.fill,
            data_hash=self.data_hash,
            seed=self.seed,
            start=self.start,
        )
        micro_batches = ((update, micro) for update in plan for micro in range(self.accumulate))
        for update, micro in islice(micro_batches, first, None, stride):
            yield make_batch(
                self.source,
                self.target,
                share(update.sentences, micro * self.world + self.rank, self.accumulate * self.world),
                n_update=update.target_tokens,
                micro=micro,
                step=update.step,
                packed=self.packed,
            )


class DevBatches(Dataset[Batch]):
    """One process's share of every batch of the dev set: equally many for all, some perhaps empty.

    Equally many because processes that wait for each other in every forward pass must all make it.
    """

    def __init__(self, source: Side, target: Side, *, budget: int, rank: int, world: int) -> None:
        self.source, self.target, self.rank, self.world = source, target, rank, world
        longest = int(max(source.lengths.max(), target.lengths.max()))
        self.plan = plan_epoch(
            source.lengths, target.lengths, budget=max(budget, longest), data_hash="dev", seed=0, epoch=0
        )

    def __len__(self) -> int:
        return len(self.plan)

    def __getitem__(self, i: int) -> Batch:
        sentences = share(self.plan.batch(i), self.rank, self.world)
        n_update = int(self.plan.target_tokens[i])
        return make_batch(self.source, self.target, sentences, n_update=n_update, step=i)


class Translation(L.LightningDataModule):
    """Any corpus that has been prepared: training by the plan, dev by length.

    The trainer must run with `use_distributed_sampler=False`: the plan shares batches out itself.
    """

    def __init__(
        self,
        train: tuple[Side, Side],
        dev: tuple[Side, Side],
        *,
        budget: int,
        data_hash: str,
        seed: int,
        fill: Fill = by_slots,
        accumulate: int = 1,
        workers: int = 0,
        packed: bool = False,
    ) -> None:
        super().__init__()
        self.train, self.dev = train, dev  # (source, target)
        self.budget, self.fill = budget, fill  # of a side of one update, over all processes and micro-batches
        self.data_hash, self.seed, self.accumulate, self.workers = data_hash, seed, accumulate, workers
        self.packed = packed  # training batches come without padding, as a GPU likes them

    def plan_digest(self, step: int) -> str:
        """SHA-256 of the epoch that update `step` belongs to: what processes that train together must agree on."""
        (source, target), budget = (side.lengths for side in self.train), self.budget
        n = updates_per_epoch(source, target, budget=budget, fill=self.fill)
        plan = plan_epoch(
            source, target, budget=budget, fill=self.fill, data_hash=self.data_hash, seed=self.seed, epoch=step // n
        )
        return plan.digest

    def order_digest(self, steps: int, n_shares: int) -> str:
        """What the sentences of the first `steps` updates add up to, in `n_shares` each (`data/order.py`)."""
        plan = updates(
            *(side.lengths for side in self.train),
            budget=self.budget,
            fill=self.fill,
            data_hash=self.data_hash,
            seed=self.seed,
        )
        return order.planned(islice(plan, steps), n_shares)

    def train_dataloader(self) -> DataLoader[Batch]:
        """From the update after the last one done: Lightning has restored `global_step` before it asks."""
        assert self.trainer is not None
        if self.accumulate != self.trainer.accumulate_grad_batches:
            raise ValueError(
                f"The plan cuts an update into {self.accumulate} micro-batches, the trainer accumulates "
                f"{self.trainer.accumulate_grad_batches}. Give both the same number."
            )
        return self._loader(
            TrainingBatches(
                *self.train,
                budget=self.budget,
                fill=self.fill,
                accumulate=self.accumulate,
                data_hash=self.data_hash,
                seed=self.seed,
                start=self.trainer.global_step,
                rank=self.trainer.global_rank,
                world=self.trainer.world_size,
                packed=self.packed,
            ),
            self.workers,
        )

    def val_dataloader(self) -> DataLoader[Batch]:
        """Batches of the size of a micro-batch, so what fits in training fits here.

        Made without workers: to start them for each validation takes longer than to make the batches.
        """
        assert self.trainer is not None
        return self._loader(
            DevBatches(
                *self.dev,
                budget=self.budget // self.accumulate,
                rank=self.trainer.global_rank,
                world=self.trainer.world_size,
            ),
            workers=0,
        )

    def _loader(self, batches: Dataset[Batch], workers: int) -> DataLoader[Batch]:
        assert self.trainer is not None
        return DataLoader(
            batches,
            batch_size=None,  # they are batches already
            num_workers=workers,
            pin_memory=self.trainer.strategy.root_device.type == "cuda",
        )
