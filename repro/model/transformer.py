"""The Transformer: encoder, decoder, shared embedding. Paper: section 3, figure 1.

Shapes: B batch, S source pieces, T target pieces, R hypotheses in a search, D d_model, V vocabulary.
Masks are made here, at the door, from ids; the layers below receive them ready.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from repro.hyper import Hyper
from repro.model.attention import MultiHeadAttention, hidden_bias
from repro.model.embedding import LearnedPositions, SinusoidalPositions, TiedEmbedding
from repro.model.layers import DecoderLayer, Dropout, EncoderLayer, LayerCache
from repro.symbols import PAD


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
        """Logits [B, T, V] of the pieces that follow decoder_in [B, T], given source [B, S] (both int64)."""
        return self.embedding.logits(self.decode(decoder_in, self.encode(source), source))

    def encode(self, source: Tensor) -> Tensor:
        """int64 [B, S] -> memory [B, S, D]. Paper: section 3.1, encoder."""
        bias = self._source_bias(source)
        x = self.dropout(self.embedding(source) + self.source_positions(0, source.shape[1]))
        for layer in self.encoder:
            x = layer(x, bias)
        return x

    def decode(self, decoder_in: Tensor, memory: Tensor, source: Tensor) -> Tensor:
        """int64 [B, T] and memory [B, S, D] -> hidden [B, T, D]. Paper: section 3.1, decoder.

        Position t sees positions up to t only; padding is at the end, so it needs no mask of its own.
        """
        length = decoder_in.shape[1]
        causal = torch.ones(length, length, dtype=torch.bool, device=decoder_in.device).tril()
        causal_bias = hidden_bias(causal, self.embedding.weight.dtype)
        source_bias = self._source_bias(source)
        x = self.dropout(self.embedding(decoder_in) + self.target_positions(0, length))
        for layer in self.decoder:
            x = layer(x, memory, causal_bias, source_bias)
        return x

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

    def start(self, source: Tensor) -> "Cache":
        """Encode source [B, S] and be ready to write: one hypothesis a sentence, nothing written."""
        memory = self.encode(source)
        layers = []
        for layer in self.decoder_layers:
            k, v = layer.cross_attention.keys_values(memory)
            layers.append(LayerCache(k[:, :, :0], v[:, :, :0], k, v))
        return Cache(layers, self._source_bias(source))

    def step(self, ids: Tensor, cache: "Cache") -> tuple[Tensor, "Cache"]:
        """Log-probabilities [R, V] of the piece after `ids` [R], the last piece of each hypothesis.

        Written pieces are remembered in the cache: a step costs one position, and gives what `forward` would.
        """
        position = cache.layers[0].k.shape[2]
        x = self.embedding(ids.unsqueeze(1)) + self.target_positions(position, position + 1)
        layers = []
        for layer, past in zip(self.decoder_layers, cache.layers, strict=True):
            x, grown = layer.step(x, past, cache.source_bias)
            layers.append(grown)
        log_prob = self.embedding.logits(x.squeeze(1)).log_softmax(dim=-1)
        return log_prob, Cache(layers, cache.source_bias)

    @property
    def decoder_layers(self) -> list[DecoderLayer]:
        """The decoder's layers, bottom first, as what they are."""
        return [layer for layer in self.decoder if isinstance(layer, DecoderLayer)]

    def _source_bias(self, source: Tensor) -> Tensor:
        return hidden_bias(source != PAD, self.embedding.weight.dtype)[:, None, None, :]


@dataclass
class Cache:
    """The memory of a search over B sentences with R hypotheses (R / B a sentence, side by side)."""

    layers: list[LayerCache]
    source_bias: Tensor  # float [B, 1, 1, S]

    def reorder(self, rows: Tensor) -> "Cache":
        """Hypotheses `rows` int64 [R'] go on, in this order; each sentence keeps its place."""
        layers = [LayerCache(c.k[rows], c.v[rows], c.source_k, c.source_v) for c in self.layers]
        return Cache(layers, self.source_bias)

    def keep(self, sentences: Tensor) -> "Cache":
        """Only `sentences` int64 [B'] go on, each with all its hypotheses."""
        width = self.layers[0].k.shape[0] // self.source_bias.shape[0]
        rows = (sentences.unsqueeze(1) * width + torch.arange(width, device=sentences.device)).flatten()
        layers = [LayerCache(c.k[rows], c.v[rows], c.source_k[sentences], c.source_v[sentences]) for c in self.layers]
        return Cache(layers, self.source_bias[sentences])
