"""What a search remembers: keys and values of the written tokens, shared by the hypotheses of a sentence.

B sentences, W hypotheses of each side by side, R = B W; H heads, S source tokens. This is not in the paper but for
speed; the results are those of a full pass over all written tokens.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Tensor

from repro.model.masks import hidden_bias
from repro.model.special_tokens import PAD

ENCODED_AT_ONCE = 512  # tokens encoded together: enough for fast products, few enough for similar lengths
BLOCK_SIZE = 16  # positions that a cache has room for; when it is full, a copy drops the slots no longer needed


def alike(source: Tensor) -> list[Tensor]:
    """Split sentences [B, S], sorted by length, into parts, and cut off the padding common to each part.

    On a GPU they stay whole: waiting for the lengths would take longer than encoding the padding.
    """
    if source.is_cuda:
        return [source]
    lengths = (source != PAD).sum(dim=1).clamp(min=1)
    parts = source.split(max(1, ENCODED_AT_ONCE // source.shape[1]))
    return [part[:, : int(longest.max())] for part, longest in zip(parts, lengths.split(len(parts[0])), strict=True)]


def _sent(x: Tensor, device: torch.device) -> Tensor:
    """Copy to the device; if the tensor is on the host, without waiting for the device."""
    if device.type == "cuda" and x.device.type == "cpu":
        return x.pin_memory().to(device, non_blocking=True)
    return x.to(device)


@dataclass
class LayerCache:
    """What one decoder layer remembers of B sentences while it writes W hypotheses of each.

    The hypotheses of a sentence share its slots, which are filled in the order of writing. Parents change with every
    token but keys stay in place; a bias says which slots are a hypothesis's past. `allocate_keys` gives their layout.
    """

    k: Tensor  # [B, H, room for slots, d_k]
    v: Tensor  # [B, H, room for slots, d_v]
    source_k: Tensor  # [B, H, S, d_k]
    source_v: Tensor  # [B, H, S, d_v]

    @classmethod
    def begun(cls, parts: Sequence[tuple[Tensor, Tensor]], n_source: int) -> "LayerCache":
        """The cache of a layer that has written nothing; keys and values of parts of the source, padded to n_source."""
        k, v = (
            torch.cat([F.pad(x, (0, 0, 0, n_source - x.shape[2])) for x in side]) for side in zip(*parts, strict=True)
        )
        return cls(k[:, :, :0], v[:, :, :0], allocate_keys(k, n_source).copy_(k), v)

    def write(self, k: Tensor, v: Tensor, used: int) -> tuple[Tensor, Tensor]:
        """Write keys and values [B, H, W, E] after the `used` slots; returns all written so far."""
        stop = used + k.shape[2]
        self.k[:, :, used:stop], self.v[:, :, used:stop] = k, v
        return self.k[:, :, :stop], self.v[:, :, :stop]

    def moved(self, slots: Tensor, room: int) -> "LayerCache":
        """A copy with only `slots` int64 [B, n] of each sentence, in this order, and room for `room` slots."""
        k, v = allocate_keys(self.k, room), self.v.new_empty(*self.v.shape[:2], room, self.v.shape[3])
        for past, made in ((self.k, k), (self.v, v)):
            index = slots[:, None, :, None].expand(-1, past.shape[1], -1, past.shape[3])
            made[:, :, : slots.shape[1]] = past.gather(2, index)
        return LayerCache(k, v, self.source_k, self.source_v)


def allocate_keys(k: Tensor, room: int) -> Tensor:
    """Fresh memory for keys like k [B, H, any, d_k]: [B, H, room, d_k].

    On a CPU the memory is transposed: each coordinate is contiguous over all keys. Few queries meet many keys, and such
    small matrix products are twice as fast if nothing has to be transposed (`benchmarks/decode.py`).
    """
    n, heads, _, d_k = k.shape
    return k.new_empty(n, heads, room, d_k) if k.is_cuda else k.new_empty(n, heads, d_k, room).transpose(2, 3)


@dataclass
class Written:
    """How many positions are written in slots that several caches may share."""

    position: int = 0


@dataclass
class Kept:
    """How often `keep` was called in a search, counted for all its caches, which share the keys of the source."""

    times: int = 0


@dataclass(frozen=True)
class Cache:
    """The memory of a search over B sentences with W hypotheses each, side by side: R = B W.

    A step writes after what its cache holds and returns a cache with one more position, in the same slots. A second
    step from one cache works on a copy. `keep` moves data in place, the source's too, so it makes all other caches of
    the search invalid; only the one that it returns may be used.
    """

    layers: list[LayerCache]
    source_bias: Tensor  # float [B, 1, 1, S]
    own_bias: Tensor  # float [B, 1, W, slots]  which slots are the past of a hypothesis
    position: int  # of the token to be read next
    written: Written
    kept: Kept
    kept_before: int = 0  # `kept.times` when this cache was made

    @classmethod
    def begun(cls, layers: list[LayerCache], source_bias: Tensor) -> "Cache":
        """One hypothesis a sentence, nothing written."""
        return cls(layers, source_bias, source_bias.new_zeros(len(source_bias), 1, 1, 0), 0, Written(), Kept())

    def reorder(self, rows: Tensor) -> "Cache":
        """Continue with hypotheses `rows` int64 [R'], in this order; each sentence keeps its place. Moves no data."""
        n, _, _, slots = self.own_bias.shape
        return replace(self, own_bias=self.own_bias.flatten(0, 2)[rows].view(n, 1, len(rows) // n, slots))

    def keep(self, sentences: Tensor) -> "Cache":
        """Continue with `sentences` int64 [B'] only, with all their hypotheses; only those that change place cost work.

        If `sentences` is on the host, there is no wait for a GPU.
        """
        cache, n = self.to_write_in(0), len(sentences)
        place = torch.arange(n, device=sentences.device)
        moved = sentences != place
        device = self.source_bias.device
        places, come = (_sent(of[moved], device) for of in (place, sentences))
        sentences = _sent(sentences, device)

        def kept(x: Tensor) -> Tensor:
            x[places] = x[come]
            return x[:n]

        slots = cache.own_bias.shape[3]
        for layer in cache.layers:
            for past in (layer.k, layer.v):
                kept(past[:, :, :slots])
        layers = [
            LayerCache(layer.k[:n], layer.v[:n], kept(layer.source_k), kept(layer.source_v)) for layer in cache.layers
        ]
        self.kept.times += 1
        return Cache(
            layers,
            cache.source_bias[sentences],
            cache.own_bias[sentences],
            self.position,
            Written(self.position),
            self.kept,
            self.kept.times,
        )

    def one_longer(self, width: int) -> "Cache":
        """The cache after a step: W new slots, of which each hypothesis sees only its own."""
        own = torch.eye(width, dtype=torch.bool, device=self.own_bias.device)
        new = hidden_bias(own, self.own_bias.dtype).expand(len(self.own_bias), 1, -1, -1)
        self.written.position = self.position + 1
        return replace(self, own_bias=torch.cat([self.own_bias, new], dim=3), position=self.position + 1)

    def to_write_in(self, width: int) -> "Cache":
        """This cache with room for a step: a copy if it is full, or if another cache has written after its slots.

        A copy drops slots in no live hypothesis's past. These are most slots, as hypotheses soon share their past.
        """
        if self.kept_before != self.kept.times:
            raise ValueError(
                "expected the cache that the last `keep` of this search gave, got one of before. Use what it gave."
            )
        slots = self.own_bias.shape[3]
        if self.written.position == self.position and slots + width <= self.layers[0].k.shape[2]:
            return self
        seen = (self.own_bias == 0).any(dim=2).squeeze(1)  # [B, slots]
        n = int(seen.sum(dim=1).max())
        kept = seen.byte().sort(dim=1, descending=True, stable=True).indices[:, :n]
        own_bias = self.own_bias.gather(3, kept[:, None, None].expand(-1, -1, self.own_bias.shape[2], -1))
        layers = [layer.moved(kept, n + BLOCK_SIZE * width) for layer in self.layers]
        return replace(self, layers=layers, own_bias=own_bias, written=Written(self.position))
