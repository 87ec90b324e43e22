"""One micro-batch as the model reads it: padded ids, and the target shifted right. Paper: section 3.1.

And the datasets of them: the micro-batches of one process, and held-out text by length.

B sentences; S source and T target tokens in the longest of them, end of sentence included.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import pad
from torch.utils.data import DataLoader, Dataset, IterableDataset

from repro.data.batching import Ints, Plan, share
from repro.data.shards import Side
from repro.model.masks import Ragged, pack, paired, shifted
from repro.model.special_tokens import PAD


@dataclass
class Batch:
    """One micro-batch: the part of an update that one process reads at once."""

    sentence: Tensor  # int64 [B] numbers in the corpus; -1 for the placeholder row of an empty micro-batch
    source: Tensor | Ragged  # int64 [B, S] x1 .. xm EOS PAD ..
    decoder_in: Tensor | Ragged  # int64 [B, T] PAD y1 .. yn, then EOS PAD .. in shorter sentences: the tokens before
    target: Tensor | Ragged  # int64 [B, T] y1 .. yn EOS PAD ..: the tokens to predict
    n_source: int  # tokens in `source` that are not padding
    n_target: int
    n_update: int  # target tokens of the whole update, over all its micro-batches
    micro: int  # number of this micro-batch within its update and process, from 0
    step: int  # number of the update, from 0

    def to(self, device: torch.device | str) -> Self:
        """Copy what the model reads to a device; the sentence numbers stay on the host. Called by Lightning.

        From pinned memory the copy to a GPU runs in the background.
        """
        sent_on = torch.device(device).type == "cuda"
        return self._each(lambda side: side.to(device, non_blocking=sent_on))

    def pin_memory(self) -> Self:
        """The batch in pinned memory; called by the `DataLoader`."""
        return self._each(lambda side: side.pin_memory())

    def _each(self, change: Callable[[Any], Any]) -> Self:
        """Apply `change` to each tensor, once if two sides share it: ragged decoder_in and target share all but ids."""
        target, read = change(self.target), self.decoder_in
        if isinstance(read, Ragged) and isinstance(self.target, Ragged) and read.ends is self.target.ends:
            decoder_in = replace(target, ids=change(read.ids))
        else:
            decoder_in = change(read)
        return replace(self, source=change(self.source), decoder_in=decoder_in, target=target)

    @property
    def slots(self) -> int:
        """Token places of both sides, padding included."""
        return self.source.numel() + self.target.numel()


def make_batch(
    source: Side,
    target: Side,
    sentences: Ints,
    *,
    n_update: int,
    micro: int = 0,
    step: int = 0,
    packed: bool = False,
) -> Batch:
    """Pad or pack these sentences, and shift the target. No sentences give padding, which the loss does not count."""
    (flat_source, n_source), (flat_target, n_target) = (_taken(side, sentences) for side in (source, target))
    read: Tensor | Ragged
    decoder_in: Tensor | Ragged
    written: Tensor | Ragged
    if packed:
        read, written = paired(_in_a_row(flat_source, n_source), _in_a_row(flat_target, n_target))
        decoder_in = shifted(written)
    else:
        read, written = _padded(flat_source, n_source), _padded(flat_target, n_target)
        decoder_in = pad(written[:, :-1], (1, 0), value=PAD)
    return Batch(
        sentence=torch.from_numpy(np.array(sentences, np.int64) if len(sentences) else np.array([-1])),
        source=read,
        decoder_in=decoder_in,
        target=written,
        n_source=len(flat_source),
        n_target=len(flat_target),
        n_update=n_update,
        micro=micro,
        step=step,
    )


Flat = NDArray[np.unsignedinteger]  # ids, sentence after sentence


def _taken(side: Side, sentences: Ints) -> tuple[Flat, NDArray[np.int64]]:
    """Ids and lengths of these sentences; there may be none."""
    return side.gather(sentences) if len(sentences) else (np.empty(0, np.uint16), np.empty(0, np.int64))


def _in_a_row(flat: Flat, lengths: NDArray[np.int64]) -> Ragged:
    return pack(torch.from_numpy(flat.astype(np.int64)), torch.from_numpy(lengths))


def _padded(flat: Flat, lengths: NDArray[np.int64]) -> Tensor:
    """Ids [B, longest], int64."""
    if len(lengths) == 0:
        return torch.full((1, 1), PAD)
    ids = np.full((len(lengths), lengths.max()), PAD, dtype=np.int64)
    ids[np.arange(ids.shape[1]) < lengths[:, None]] = flat
    return torch.from_numpy(ids)


def loader(batches: Dataset[Batch]) -> DataLoader[Batch]:
    """A loader of these batches, without workers: a batch takes less time than handing it over."""
    # the dataset's items are batches already
    return DataLoader(batches, batch_size=None, pin_memory=torch.cuda.is_available())


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
        for update in islice(self.plan.updates(self.start), None if self.stop is None else self.stop - self.start):
            for micro in range(self.accumulate):
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
        self.plan = Plan(source.lengths, target.lengths, budget=max(budget, longest), data_hash="dev").planned(0)

    def __len__(self) -> int:
        return len(self.plan)

    def __getitem__(self, i: int) -> Batch:
        sentences = share(self.plan.batch(i), self.rank, self.world)
        n_update = int(self.plan.target_tokens[i])
        return make_batch(self.source, self.target, sentences, n_update=n_update, step=i)

    def __iter__(self) -> Iterator[Batch]:
        return iter(loader(self))
