"""The Transformer: encoder, decoder, shared embedding. Paper: section 3, figure 1.

Shapes: B batch, S source tokens, T target tokens, R hypotheses in a search, D d_model, V vocabulary.
Masks are made here, at the door, from ids; the layers below receive them ready. Training batches may come without
padding (`repro/model/ragged.py`): then there are N tokens instead of [B, S] and [B, T], and spans instead of masks.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from repro.model.attention import MultiHeadAttention, RaggedMask, Sees, hidden_bias
from repro.model.config import Hyper
from repro.model.embedding import LearnedPositions, SinusoidalPositions, TiedEmbedding
from repro.model.layers import DecoderLayer, Dropout, EncoderLayer, FeedForward, LayerCache, allocate_keys
from repro.model.prepacked import can_prepack
from repro.model.ragged import Ragged
from repro.model.special_tokens import PAD

ENCODED_AT_ONCE = 512  # tokens, when a search begins: enough for fast products, few enough to be of like length
BLOCK_SIZE = 16  # positions that a cache has room for: after so many, what nobody needs is left behind


class Transformer(nn.Module):
    """The model of one row; the vocabulary size is an argument, not part of the row."""

    def __init__(self, hyper: Hyper, vocab_size: int) -> None:
        super().__init__()
        sizes = {name: getattr(hyper, name) for name in ("d_model", "d_ff", "n_heads", "d_k", "d_v", "dropout")}
        positions = LearnedPositions if hyper.learned_positions else SinusoidalPositions
        self.embedding = TiedEmbedding(vocab_size, hyper.d_model)
        self.source_positions = positions(hyper.d_model)
        self.target_positions = positions(hyper.d_model)
        self.encoder = nn.ModuleList(EncoderLayer(**sizes) for _ in range(hyper.n_layers))
        self.decoder = nn.ModuleList(DecoderLayer(**sizes) for _ in range(hyper.n_layers))
        self.dropout = Dropout(hyper.dropout)

    def forward(self, source: Tensor, decoder_in: Tensor) -> Tensor:
        """Logits [B, T, V] of the tokens that follow decoder_in [B, T], given source [B, S] (both int64)."""
        return self.embedding.logits(self.decode(decoder_in, self.encode(source), source))

    def encode(self, source: Tensor | Ragged) -> Tensor:
        """int64 [B, S] -> memory [B, S, D]. Paper: section 3.1, encoder."""
        bias = self._source_bias(source, of=source)
        x = self._embedded(source, self.source_positions)
        for layer in self.encoder:
            x = layer(x, bias)
        return x

    def decode(self, decoder_in: Tensor | Ragged, memory: Tensor, source: Tensor | Ragged) -> Tensor:
        """int64 [B, T] and memory [B, S, D] -> hidden [B, T, D]. Paper: section 3.1, decoder.

        Position t sees positions up to t only; padding is at the end, so it needs no mask of its own.
        """
        causal_bias, source_bias = self._causal_bias(decoder_in), self._source_bias(source, of=decoder_in)
        x = self._embedded(decoder_in, self.target_positions)
        for layer in self.decoder:
            x = layer(x, memory, causal_bias, source_bias)
        return x

    def compile_layers(self, backend: str = "inductor") -> None:
        """Have each layer compiled at its next call: one program a kind of layer, its small operations fused."""
        for layer in (*self.encoder, *self.decoder):
            layer.compile(backend=backend)

    def attention_maps(self, source: Tensor, decoder_in: Tensor) -> dict[str, Tensor]:
        """Per-head weights of every attention, by module name: [B, H, Q, K], rows sum to one."""
        parts = {name: part for name, part in self.named_modules() if isinstance(part, MultiHeadAttention)}
        for part in parts.values():
            part.recorded = []
        try:
            self(source, decoder_in)
            return {name: part.recorded[0] for name, part in parts.items() if part.recorded}
        finally:
            for part in parts.values():
                part.recorded = None

    @contextmanager
    def prepacked(self, dtype: torch.dtype) -> Iterator[None]:
        """While it lasts the decoder's weights stay as they are, and lie as a search multiplies by them, in `dtype`."""
        parts = [part for part in self.decoder.modules() if isinstance(part, MultiHeadAttention | FeedForward)]
        if not can_prepack(self.embedding.weight, dtype):
            parts = []
        try:
            for part in parts:
                part.prepack(dtype)
            yield
        finally:
            for part in parts:
                part.prepacked.clear()

    def start(self, source: Tensor) -> "Cache":
        """Encode source [B, S] and be ready to write: one hypothesis a sentence, nothing written."""
        memories = [self.encode(part) for part in _alike(source)]
        layers = []
        for layer in self.decoder_layers:
            sides = zip(*(layer.cross_attention.keys_values(memory) for memory in memories), strict=True)
            k, v = (torch.cat([F.pad(x, (0, 0, 0, source.shape[1] - x.shape[2])) for x in side]) for side in sides)
            source_k = allocate_keys(k, source.shape[1]).copy_(k)
            layers.append(LayerCache(k[:, :, :0], v[:, :, :0], source_k, v))
        nothing = self.embedding.weight.new_zeros(len(source), 1, 1, 0)
        return Cache(layers, self._padding_bias(source), nothing, 0, Written())

    def step(self, ids: Tensor, cache: "Cache") -> tuple[Tensor, "Cache"]:
        """Log-probabilities [R, V] of the token after `ids` [R], the last token of each hypothesis.

        Written tokens are remembered in the cache: a step costs one position, and gives what `forward` would.
        """
        hidden, cache = self.advance(ids, cache)
        return self.embedding.logits(hidden).log_softmax(dim=-1), cache

    def advance(self, ids: Tensor, cache: "Cache") -> tuple[Tensor, "Cache"]:
        """A step without its softmax: hidden [R, D] after `ids` [R]."""
        x = self.embedding(ids.view(len(cache.source_bias), -1))
        cache = cache.to_write_in(x.shape[1])
        x = x + self.target_positions(cache.position, cache.position + 1)
        used, grown = cache.own_bias.shape[3], cache.one_longer(x.shape[1])
        for layer, past in zip(self.decoder_layers, cache.layers, strict=True):
            x = layer.step(x, past, used, grown.own_bias, cache.source_bias)
        return x.view(len(ids), -1), grown

    @property
    def decoder_layers(self) -> list[DecoderLayer]:
        """The decoder's layers, bottom first, as what they are."""
        return [layer for layer in self.decoder if isinstance(layer, DecoderLayer)]

    def _embedded(self, ids: Tensor | Ragged, positions: nn.Module) -> Tensor:
        """What a stack reads: token and position. Paper: sections 3.4, 3.5 and 5.4 (dropout of the sum)."""
        if isinstance(ids, Ragged):
            embedded: Tensor = self.embedding(ids.ids) + positions(0, ids.longest)[ids.position]
        else:
            embedded = self.embedding(ids) + positions(0, ids.shape[1])
        return self.dropout(embedded)

    def _source_bias(self, source: Tensor | Ragged, *, of: Tensor | Ragged) -> Sees:
        """All of a sentence's source, seen from the tokens `of` the same sentence on either side."""
        if isinstance(source, Ragged):
            assert isinstance(of, Ragged)
            return RaggedMask(of.ends, source.ends, of.bound, source.bound)
        return self._padding_bias(source)

    def _causal_bias(self, decoder_in: Tensor | Ragged) -> Sees:
        """Each position sees those before it and itself."""
        if isinstance(decoder_in, Ragged):
            ends, bound = decoder_in.ends, decoder_in.bound
            return RaggedMask(ends, ends, bound, bound, causal=True)
        length = decoder_in.shape[1]
        causal = torch.ones(length, length, dtype=torch.bool, device=decoder_in.device).tril()
        return hidden_bias(causal, self.embedding.weight.dtype)

    def _padding_bias(self, source: Tensor) -> Tensor:
        """Hide padding, [B, 1, 1, S]."""
        return hidden_bias(source != PAD, self.embedding.weight.dtype)[:, None, None, :]


def _alike(source: Tensor) -> list[Tensor]:
    """Sentences [B, S] in parts without the padding that all of a part have: sorted by length, they have little else.

    A GPU takes them whole: it would wait longer for the lengths than for the padding.
    """
    if source.is_cuda:
        return [source]
    lengths = (source != PAD).sum(dim=1).clamp(min=1)
    parts = source.split(max(1, ENCODED_AT_ONCE // source.shape[1]))
    return [part[:, : int(longest.max())] for part, longest in zip(parts, lengths.split(len(parts[0])), strict=True)]


@dataclass
class Written:
    """How many positions are written in the slots that several caches may share; -1: given up."""

    position: int = 0


@dataclass(frozen=True)
class Cache:
    """The memory of a search over B sentences with W hypotheses each, side by side: R = B W.

    A step writes behind what its cache holds and gives a cache that holds one position more, in the same slots.
    Whoever steps twice from one cache gets a copy. `keep` moves what is kept, so the cache it is asked of is given up.
    """

    layers: list[LayerCache]
    source_bias: Tensor  # float [B, 1, 1, S]
    own_bias: Tensor  # float [B, 1, W, slots]  which slots are the past of a hypothesis
    position: int  # of the token to be read next
    written: Written

    def reorder(self, rows: Tensor) -> "Cache":
        """Hypotheses `rows` int64 [R'] go on, in this order; each sentence keeps its place. Nothing is moved."""
        n, _, _, slots = self.own_bias.shape
        return replace(self, own_bias=self.own_bias.flatten(0, 2)[rows].view(n, 1, len(rows) // n, slots))

    def keep(self, sentences: Tensor) -> "Cache":
        """Only `sentences` int64 [B'] go on, each with all its hypotheses; those that keep their place cost nothing."""
        cache, n = self.to_write_in(0), len(sentences)
        place = torch.arange(n, device=sentences.device)
        places = place[sentences != place]

        def kept(x: Tensor) -> Tensor:
            x[places] = x[sentences[places]]
            return x[:n]

        slots = self.own_bias.shape[3]
        for layer in cache.layers:
            for past in (layer.k, layer.v):
                kept(past[:, :, :slots])
        layers = [
            LayerCache(layer.k[:n], layer.v[:n], kept(layer.source_k), kept(layer.source_v)) for layer in cache.layers
        ]
        cache.written.position = -1
        return Cache(
            layers, self.source_bias[sentences], self.own_bias[sentences], self.position, Written(self.position)
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
        if self.written.position < 0:
            raise ValueError("expected a cache that nobody has given up, got one after its `keep`. Use what that gave.")
        slots = self.own_bias.shape[3]
        if self.written.position == self.position and slots + width <= self.layers[0].k.shape[2]:
            return self
        seen = (self.own_bias == 0).any(dim=2).squeeze(1)  # [B, slots]
        n = int(seen.sum(dim=1).max())
        kept = seen.byte().sort(dim=1, descending=True, stable=True).indices[:, :n]
        own_bias = self.own_bias.gather(3, kept[:, None, None].expand(-1, -1, self.own_bias.shape[2], -1))
        layers = [layer.moved(kept, n + BLOCK_SIZE * width) for layer in self.layers]
        return replace(self, layers=layers, own_bias=own_bias, written=Written(self.position))
