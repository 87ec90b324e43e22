"""The Transformer: encoder, decoder, shared embedding. Paper: section 3, figure 1.

Shapes: B batch, S source tokens, T target tokens, R hypotheses in a search, D d_model, V vocabulary.
Masks are made here from the ids; the layers below receive them ready-made. Training batches may come without
padding (`masks.Ragged`): then there are N tokens instead of [B, S] and [B, T].
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch import Tensor, nn

from repro.model import prepacked
from repro.model.attention import Mixing, MultiHeadAttention, ScaledDotProduct, SelfAttention
from repro.model.compiled import compile_training
from repro.model.config import Hyper
from repro.model.embedding import Dropout, LearnedPositions, SinusoidalPositions, TiedEmbedding
from repro.model.kv_cache import Cache, LayerCache, alike
from repro.model.layers import DecoderLayer, EncoderLayer, FeedForward, PostNorm
from repro.model.masks import Padded, Ragged, Sees, arranged, padding_bias


class Transformer(nn.Module):
    """The model of one row; the vocabulary size is an argument, not part of the row.

    The parts that another row may replace are arguments as well: how queries meet keys (`mix`, and `mix_source` where
    the decoder attends to the source differently), what stands `around` a sub-layer, the `positions` (made from
    d_model), `self_attention` and the `feed_forward` network. The last three methods say which positions see which.
    """

    reads_ragged = True
    needs_whole_updates = False

    def __init__(
        self,
        hyper: Hyper,
        vocab_size: int,
        *,
        mix: Callable[..., Mixing] = ScaledDotProduct,
        mix_source: Callable[..., Mixing] | None = None,
        around: type[PostNorm] = PostNorm,
        positions: Callable[[int], nn.Module] | None = None,
        self_attention: Callable[..., SelfAttention] = SelfAttention,
        feed_forward: Callable[..., nn.Module] = FeedForward,
    ) -> None:
        super().__init__()
        sizes: dict[str, Any] = {
            name: getattr(hyper, name)
            for name in ("d_model", "d_ff", "n_heads", "d_k", "d_v", "dropout", "attention_dropout")
        }
        parts: dict[str, Any] = {
            "mix": mix, "around": around, "self_attention": self_attention, "feed_forward": feed_forward,
        }  # fmt: skip
        chosen = (mix, mix_source, around, positions, self_attention, feed_forward)
        as_printed = chosen == (ScaledDotProduct, None, PostNorm, None, SelfAttention, FeedForward)
        self.in_ctranslate2 = as_printed and type(self) is Transformer
        positions = positions or (LearnedPositions if hyper.learned_positions else SinusoidalPositions)
        self.embedding = TiedEmbedding(vocab_size, hyper.d_model)
        self.source_positions = positions(hyper.d_model)
        self.target_positions = positions(hyper.d_model)
        self.encoder = nn.ModuleList(EncoderLayer(**sizes, **parts) for _ in range(hyper.n_layers))
        self.decoder = nn.ModuleList(
            DecoderLayer(**sizes, **parts, mix_source=mix_source or mix) for _ in range(hyper.n_layers)
        )
        self.encoder_end, self.decoder_end = around.after_stack(hyper.d_model), around.after_stack(hyper.d_model)
        self.dropout = Dropout(hyper.dropout)

    def forward(self, source: Tensor, decoder_in: Tensor) -> Tensor:
        """Logits [B, T, V] of the tokens that follow decoder_in [B, T], given source [B, S] (both int64)."""
        return self.embedding.logits(self.decode(decoder_in, self.encode(source), source))

    def encode(self, source: Tensor | Ragged) -> Tensor:
        """int64 [B, S] -> memory [B, S, D]. Paper: section 3.1, encoder."""
        read = arranged(source)
        x, sees = self._embedded(read, self.source_positions), self._sees_itself(read)
        for layer in self.encoder:
            x = layer(x, sees)
        return x if self.encoder_end is None else self.encoder_end(x)

    def decode(self, decoder_in: Tensor | Ragged, memory: Tensor, source: Tensor | Ragged) -> Tensor:
        """int64 [B, T] and memory [B, S, D] -> hidden [B, T, D]. Paper: section 3.1, decoder.

        Position t sees only positions up to t. Padding is at the end, so it needs no mask of its own.
        """
        read = arranged(decoder_in)
        sees_past, sees_source = self._sees_past(read), self._sees_source(arranged(source), read)
        x = self._embedded(read, self.target_positions)
        for layer in self.decoder:
            x = layer(x, memory, sees_past, sees_source)
        return x if self.decoder_end is None else self.decoder_end(x)

    def compile_layers(self, backend: str = "inductor") -> None:
        """Compile each layer for training: a few programs for each kind of layer, with small operations fused."""
        for layer in (*self.encoder, *self.decoder):
            compile_training(layer, backend)

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

    def prepacked(self, dtype: torch.dtype) -> AbstractContextManager[None]:
        """A context in which the decoder's weights must not change and are laid out for a search, in `dtype`."""
        return prepacked.prepacked(self.decoder, dtype)

    def start(self, source: Tensor) -> Cache:
        """Encode source [B, S] and begin a search: one empty hypothesis for each sentence."""
        memories = [self.encode(part) for part in alike(source)]
        layers = [
            LayerCache.begun([layer.cross_attention.keys_values(memory) for memory in memories], source.shape[1])
            for layer in self.decoder_layers
        ]
        return Cache.begun(layers, padding_bias(source, self.embedding.weight.dtype))

    def step(self, ids: Tensor, cache: Cache) -> tuple[Tensor, Cache]:
        """Log-probabilities [R, V] of the token after `ids` [R], the last token of each hypothesis.

        The cache holds the keys and values of earlier tokens: a step computes one position, as `forward` would.
        """
        hidden, cache = self.advance(ids, cache)
        return self.embedding.logits(hidden).log_softmax(dim=-1), cache

    def advance(self, ids: Tensor, cache: Cache) -> tuple[Tensor, Cache]:
        """A step without its softmax: hidden [R, D] after `ids` [R]."""
        x = self.embedding(ids.view(len(cache.source_bias), -1))
        cache = cache.to_write_in(x.shape[1])
        x = x + self.target_positions(cache.position, cache.position + 1)
        used, grown = cache.own_bias.shape[3], cache.one_longer(x.shape[1])
        for layer, past in zip(self.decoder_layers, cache.layers, strict=True):
            x = layer.step(x, past, used, grown.own_bias, cache.source_bias)
        x = x if self.decoder_end is None else self.decoder_end(x)
        return x.view(len(ids), -1), grown

    @property
    def decoder_layers(self) -> list[DecoderLayer]:
        """The decoder's layers, bottom first, typed as `DecoderLayer`."""
        return [layer for layer in self.decoder if isinstance(layer, DecoderLayer)]

    def _embedded(self, read: Padded | Ragged, positions: nn.Module) -> Tensor:
        """The input of a stack: token plus position. Paper: sections 3.4, 3.5 and 5.4 (dropout of the sum)."""
        embedded: Tensor = self.dropout(self.embedding(read.ids) + read.encodings(positions))
        return embedded

    def _sees_itself(self, source: Padded | Ragged) -> Sees:
        """The mask of the encoder's self-attention: each source position sees the whole source sentence."""
        return self._sees_source(source, source)

    def _sees_source(self, source: Any, read: Padded | Ragged) -> Sees:
        """The mask of attention to the source: each token of `read` sees all source tokens of its own sentence."""
        sees: Sees = source.seen_from(read, self.embedding.weight.dtype)
        return sees

    def _sees_past(self, read: Padded | Ragged) -> Sees:
        """The mask of the decoder's self-attention: each position sees itself and those before it."""
        return read.causal(self.embedding.weight.dtype)
