"""Prepared text as PyTorch datasets of batches: the micro-batches of one process, and held-out text by length."""

from collections.abc import Iterator
from itertools import islice

import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, get_worker_info

from repro.data.batch import Batch, make_batch
from repro.data.batching import Plan, plan_epoch, share
from repro.data.shards import Side


def loader(batches: Dataset[Batch], workers: int) -> DataLoader[Batch]:
    """A loader of these batches, with this many worker processes."""
    return DataLoader(
        batches,
        batch_size=None,  # the dataset's items are batches already
        num_workers=workers,
        pin_memory=torch.cuda.is_available(),
    )


class TrainingBatches(IterableDataset[Batch]):
    """Micro-batches of one process from update `start` up to, but not including, update `stop`, or without end.

    Part number micro * world + rank of an update is micro-batch `micro` of process `rank`. So two processes
    read the same parts that one process would accumulate.
    """

    def __init__(
        self,
        source: Side,
        target: Side,
        plan: Plan,
        *,
        accumulate: int,
        start: int,
        rank: int,
        world: int,
        stop: int | None = None,
        packed: bool = False,
    ) -> None:
        self.source, self.target, self.plan, self.packed = source, target, plan, packed
        self.start, self.stop = start, stop
        self.accumulate, self.rank, self.world = accumulate, rank, world

    def __iter__(self) -> Iterator[Batch]:
        # the loader takes one batch from each worker in turn: worker w of W makes every W-th batch
        worker = get_worker_info()
        first, stride = (worker.id, worker.num_workers) if worker else (0, 1)
        updates = islice(self.plan.updates(self.start), None if self.stop is None else self.stop - self.start)
        micro_batches = ((update, micro) for update in updates for micro in range(self.accumulate))
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
    """One process's part of every batch of held-out text; a part may be empty.

    All processes have equally many parts: those that wait for each other in a forward pass must all make it.
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

    def __iter__(self) -> Iterator[Batch]:
        # without workers: starting them for each validation takes longer than making the batches
        return iter(loader(self, workers=0))
