"""What a search remembers: keys and values of what is written, shared by the hypotheses of a sentence.

B sentences, W hypotheses of each side by side, R = B W; H heads, S source tokens. Beside the paper's pages, for speed:
what it gives is what one pass over all that is written would give.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Tensor

from repro.model.masks import hidden_bias
from repro.model.special_tokens import PAD

ENCODED_AT_ONCE = 512  # tokens, when a search begins: enough for fast products, few enough to be of like length
BLOCK_SIZE = 16  # positions that a cache has room for: after so many, what nobody needs is left behind


def alike(source: Tensor) -> list[Tensor]:
    """Sentences [B, S] in parts without the padding that all of a part have: sorted by length, they have little else.

    A GPU takes them whole: it would wait longer for the lengths than for the padding.
    """
    if source.is_cuda:
        return [source]
    lengths = (source != PAD).sum(dim=1).clamp(min=1)
    parts = source.split(max(1, ENCODED_AT_ONCE // source.shape[1]))
    return [part[:, : int(longest.max())] for part, longest in zip(parts, lengths.split(len(parts[0])), strict=True)]


def _sent(x: Tensor, device: torch.device) -> Tensor:
    """On the device, which is not waited for where the tensor is on the host."""
    if device.type == "cuda" and x.device.type == "cpu":
        return x.pin_memory().to(device, non_blocking=True)
    return x.to(device)


@dataclass
class LayerCache:
    """What one decoder layer remembers of B sentences while it writes W hypotheses of each.

    The hypotheses of a sentence share its slots, in the order of writing: parents change with every token, keys stay
    where they are, and a bias says which slots are a hypothesis's own past. Keys lie as `allocate_keys` makes them.
    """

    k: Tensor  # [B, H, room for slots, d_k]
    v: Tensor  # [B, H, room for slots, d_v]
    source_k: Tensor  # [B, H, S, d_k]
    source_v: Tensor  # [B, H, S, d_v]

    @classmethod
    def begun(cls, parts: Sequence[tuple[Tensor, Tensor]], n_source: int) -> "LayerCache":
        """Of a layer that has written nothing, with its keys and values of parts of the source, made as long as all."""
        k, v = (
            torch.cat([F.pad(x, (0, 0, 0, n_source - x.shape[2])) for x in side]) for side in zip(*parts, strict=True)
        )
        return cls(k[:, :, :0], v[:, :, :0], allocate_keys(k, n_source).copy_(k), v)

    def write(self, k: Tensor, v: Tensor, used: int) -> tuple[Tensor, Tensor]:
        """Put keys and values [B, H, W, E] behind the `used` slots; back come all written so far."""
        stop = used + k.shape[2]
        self.k[:, :, used:stop], self.v[:, :, used:stop] = k, v
        return self.k[:, :, :stop], self.v[:, :, :stop]

    def moved(self, slots: Tensor, room: int) -> "LayerCache":
        """Only `slots` int64 [B, n] of each sentence, in this order, in new room."""
        k, v = allocate_keys(self.k, room), self.v.new_empty(*self.v.shape[:2], room, self.v.shape[3])
        for past, made in ((self.k, k), (self.v, v)):
            index = slots[:, None, :, None].expand(-1, past.shape[1], -1, past.shape[3])
            made[:, :, : slots.shape[1]] = past.gather(2, index)
        return LayerCache(k, v, self.source_k, self.source_v)


def allocate_keys(k: Tensor, room: int) -> Tensor:
    """Fresh memory for keys like k [B, H, any, d_k]: [B, H, room, d_k].

    On a CPU the numbers of one coordinate stand side by side, of all keys: few queries meet many of them, and a
    product of matrices so small is twice as fast if it has nothing to turn round (`benchmarks/decode.py`).
    """
    n, heads, _, d_k = k.shape
    return k.new_empty(n, heads, room, d_k) if k.is_cuda else k.new_empty(n, heads, d_k, room).transpose(2, 3)


@dataclass
class Written:
    """How many positions are written in the slots that several caches may share."""

    position: int = 0


@dataclass
class Kept:
    """How often a cache of a search was asked to `keep`: all of them share the keys and values of the source."""

    times: int = 0


@dataclass(frozen=True)
class Cache:
    """The memory of a search over B sentences with W hypotheses each, side by side: R = B W.

    A step writes behind what its cache holds and gives a cache that holds one position more, in the same slots.
    Whoever steps twice from one cache gets a copy of what was written. `keep` moves what is kept, of the source as
    well, so all caches of the search but the one that it gives are given up.
    """

    layers: list[LayerCache]
    source_bias: Tensor  # float [B, 1, 1, S]
    own_bias: Tensor  # float [B, 1, W, slots]  which slots are the past of a hypothesis
    position: int  # of the token to be read next
    written: Written
    kept: Kept
    kept_before: int = 0  # the times at which this cache was made

    @classmethod
    def begun(cls, layers: list[LayerCache], source_bias: Tensor) -> "Cache":
        """One hypothesis a sentence, nothing written."""
        return cls(layers, source_bias, source_bias.new_zeros(len(source_bias), 1, 1, 0), 0, Written(), Kept())

    def reorder(self, rows: Tensor) -> "Cache":
        """Hypotheses `rows` int64 [R'] go on, in this order; each sentence keeps its place. Nothing is moved."""
        n, _, _, slots = self.own_bias.shape
        return replace(self, own_bias=self.own_bias.flatten(0, 2)[rows].view(n, 1, len(rows) // n, slots))

    def keep(self, sentences: Tensor) -> "Cache":
        """Only `sentences` int64 [B'] go on, each with all its hypotheses; those that keep their place cost nothing.

        Where they are on the host, no GPU is waited for.
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
        """The cache after a step: W new slots, of which each hypothesis sees its own."""
        own = torch.eye(width, dtype=torch.bool, device=self.own_bias.device)
        new = hidden_bias(own, self.own_bias.dtype).expand(len(self.own_bias), 1, -1, -1)
        self.written.position = self.position + 1
        return replace(self, own_bias=torch.cat([self.own_bias, new], dim=3), position=self.position + 1)

    def to_write_in(self, width: int) -> "Cache":
        """This cache with room for a step; a copy where there is none, or where another has written behind it since.

        A copy leaves slots behind that are no live hypothesis's past: most are, for hypotheses soon share their past.
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
