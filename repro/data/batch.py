"""One micro-batch as the model reads it: padded ids, and the target shifted right. Paper: section 3.1.

B sentences, S source and T target pieces of the longest, end of sentence included.
"""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from repro.data.buckets import Ints
from repro.data.store import Side
from repro.packed import Packed, pack, paired
from repro.symbols import PAD


@dataclass
class Batch:
    """The share of one update that one process reads at once."""

    sentence: Tensor  # int64 [B] numbers in the corpus; -1 for the row that stands in for an empty share
    source: Tensor | Packed  # int64 [B, S] x1 .. xm EOS PAD ..
    decoder_in: Tensor | Packed  # int64 [B, T] PAD y1 .. yn: what has been written before ...
    target: Tensor | Packed  # int64 [B, T] y1 .. yn EOS PAD ..: ... what comes next
    n_source: int  # pieces in `source` that are not padding
    n_target: int
    n_update: int  # target pieces of the whole update, over all its shares
    micro: int  # this is micro-batch number `micro` of its update in this process
    step: int  # number of the update, from 0

    def pin_memory(self) -> Self:
        """The batch in pinned memory; called by the `DataLoader`. Lightning moves it to the device by itself."""
        return replace(
            self,
            sentence=self.sentence.pin_memory(),
            source=self.source.pin_memory(),
            decoder_in=self.decoder_in.pin_memory(),
            target=self.target.pin_memory(),
        )

    @property
    def slots(self) -> int:
        """Places of both sides, padding included."""
        return self.source.numel() + self.target.numel()

    def packed(self) -> Self:
        """The same sentences one after the other, without padding between them."""
        assert isinstance(self.source, Tensor)
        assert isinstance(self.decoder_in, Tensor)
        assert isinstance(self.target, Tensor)
        lengths = [(side != PAD).sum(dim=1) for side in (self.source, self.target)]
        source, decoder_in, target = paired(
            pack(self.source, lengths[0]), pack(self.decoder_in, lengths[1]), pack(self.target, lengths[1])
        )
        return replace(self, source=source, decoder_in=decoder_in, target=target)


def make_batch(source: Side, target: Side, sentences: Ints, *, n_update: int, micro: int = 0, step: int = 0) -> Batch:
    """Pad and shift these sentences. None give one row of padding, which weighs nothing in the loss."""
    source_ids, n_source = _padded(source, sentences)
    target_ids, n_target = _padded(target, sentences)
    return Batch(
        sentence=torch.from_numpy(np.array(sentences, np.int64) if len(sentences) else np.array([-1])),
        source=source_ids,
        decoder_in=pad(target_ids[:, :-1], (1, 0), value=PAD),
        target=target_ids,
        n_source=n_source,
        n_target=n_target,
        n_update=n_update,
        micro=micro,
        step=step,
    )


def _padded(side: Side, sentences: Ints) -> tuple[Tensor, int]:
    """Ids [B, longest], int64, and how many of them are pieces."""
    if len(sentences) == 0:
        return torch.full((1, 1), PAD), 0
    flat, lengths = side.gather(sentences)
    ids = np.full((len(lengths), lengths.max()), PAD, dtype=np.int64)
    ids[np.arange(ids.shape[1]) < lengths[:, None]] = flat
    return torch.from_numpy(ids), len(flat)
