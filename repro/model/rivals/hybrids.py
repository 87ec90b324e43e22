"""The Transformer with self-attention replaced on one side, in the encoder or the decoder. Domhan (2018), section 4.

Attention to the source, feed-forward networks, norms and positions stay. An LSTM has width D / 2 for each direction in
an encoder and D in a decoder; a convolution has kernel 3 and gates. Feed-forward networks are as wide as then fits.

Shapes: B sentences, W hypotheses of each, R = B W; L tokens, D d_model.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from repro.model.config import Hyper
from repro.model.kv_cache import Cache
from repro.model.layers import DecoderLayer
from repro.model.masks import padding_bias
from repro.model.rivals.convolution import SequenceConvolution
from repro.model.rivals.recurrent import LSTM, BothWays
from repro.model.rivals.search_state import SearchState
from repro.model.rivals.size import widest
from repro.model.transformer import Transformer

Past = tuple[Tensor, ...]  # what a slot remembers, each [R, ...]


class Slot(nn.Module, ABC):
    """A replacement for self-attention, which mixes the tokens of a whole sequence, or takes one step of a search.

    It is made from (d_model, causal); a causal one is for a decoder.
    """

    @abstractmethod
    def forward(self, x: Tensor, bias: Tensor) -> Tensor:
        """x [B, L, D] -> [B, L, D]; `bias` is the mask that self-attention would get."""

    @abstractmethod
    def begun(self, like: Tensor) -> Past:
        """The past before the first token of sentences [B, ...]."""

    @abstractmethod
    def step(self, x: Tensor, past: Past) -> tuple[Tensor, Past]:
        """The next token x [R, D] of each hypothesis: its output, and the past of the token after."""


class Recurrence(Slot):
    """An LSTM; bidirectional in an encoder."""

    def __init__(self, d_model: int, *, causal: bool) -> None:
        super().__init__()
        self.causal = causal
        self.unit = LSTM(d_model, d_model) if causal else BothWays(LSTM, d_model, d_model // 2)

    def forward(self, x: Tensor, bias: Tensor) -> Tensor:
        if isinstance(self.unit, LSTM):
            return self.unit.read(x)
        made: Tensor = self.unit(x, _real(bias).sum(dim=1).clamp(min=1))
        return made

    def begun(self, like: Tensor) -> Past:
        nothing = like.new_zeros(len(like), self._unit.hidden_size)
        return nothing, nothing

    def step(self, x: Tensor, past: Past) -> tuple[Tensor, Past]:
        state = self._unit.step(x, past)
        return state[0], state

    @property
    def _unit(self) -> LSTM:
        assert isinstance(self.unit, LSTM)
        return self.unit


class GatedConvolution(Slot):
    """GLU(Conv_3(x)). Gehring et al. (2017)."""

    def __init__(self, d_model: int, *, causal: bool, kernel: int = 3) -> None:
        super().__init__()
        self.convolution = SequenceConvolution(d_model, 2 * d_model, kernel=kernel, causal=causal)
        self.causal = causal

    def forward(self, x: Tensor, bias: Tensor) -> Tensor:
        return F.glu(self.convolution(x if self.causal else x * _real(bias).unsqueeze(-1)))

    def begun(self, like: Tensor) -> Past:
        return (self.convolution.begun(like),)

    def step(self, x: Tensor, past: Past) -> tuple[Tensor, Past]:
        y, seen = self.convolution.step(x, past[0])
        return F.glu(y), (seen,)


class Nothing(Slot):
    """No token sees another; the norm after it stays."""

    def __init__(self, d_model: int, *, causal: bool) -> None:
        super().__init__()

    def forward(self, x: Tensor, bias: Tensor) -> Tensor:
        return torch.zeros_like(x)

    def begun(self, like: Tensor) -> Past:
        return (like.new_zeros(len(like), 0),)

    def step(self, x: Tensor, past: Past) -> tuple[Tensor, Past]:
        return torch.zeros_like(x), past


def _real(bias: Tensor) -> Tensor:
    """Which tokens are not padding, bool [B, L], from the bias [B, 1, 1, L] that hides padding."""
    return bias[:, 0, 0] == 0


class HybridEncoder(Transformer):
    """The encoder's self-attention is replaced; the decoder, and so the search, is the Transformer's."""

    reads_ragged = False
    side = "encoder"

    def __init__(
        self, hyper: Hyper, vocab_size: int, *, slot: type[Recurrence] | type[GatedConvolution] | type[Nothing]
    ) -> None:
        super().__init__(hyper, vocab_size)
        self.d_ff = widest(self, hyper, partial(self.layers, hyper, slot))

    def layers(self, hyper: Hyper, slot: Any, d_ff: int) -> dict[str, nn.Module]:
        """Both stacks, with feed-forward networks of this width."""
        plain = Transformer(replace(hyper, d_ff=d_ff), vocab_size=0)
        stacks = {"encoder": plain.encoder, "decoder": plain.decoder}
        for layer in stacks[self.side]:
            layer.self_attention = slot(hyper.d_model, causal=self.side == "decoder")
        return {**stacks}


class HybridDecoder(HybridEncoder):
    """The decoder's self-attention is replaced; a search keeps each slot's past and the source's keys and values."""

    side = "decoder"

    def start(self, source: Tensor) -> Any:
        """The past of each slot; the bias that hides padding, and the keys and values of each layer."""
        memory = self.encode(source)
        pairs = [layer.cross_attention.keys_values(memory) for layer in self.decoder_layers]
        own = [part for slot in self._slots for part in slot.begun(memory)]
        return SearchState(tuple(own), (padding_bias(source, memory.dtype), *(part for pair in pairs for part in pair)))

    def advance(self, ids: Tensor, state: Cache | SearchState) -> tuple[Tensor, Any]:
        """Hidden [R, D] after `ids` [R]."""
        assert isinstance(state, SearchState)
        bias, *pairs = state.shared
        x, pasts = self.embedding(ids) + self.target_positions(state.position, state.position + 1), list[Tensor]()
        parts = (self.decoder_layers, self._slots, self._of_each_layer(state.own), pairs[::2], pairs[1::2])
        for layer, slot, past, k, v in zip(*parts, strict=True):
            x, past = self._step(layer, slot, x, past, (k, v, bias), state.width)
            pasts += past
        return x, state.after(pasts)

    def _step(
        self, layer: DecoderLayer, slot: Slot, x: Tensor, past: Past, source: tuple[Tensor, ...], width: int
    ) -> tuple[Tensor, Past]:
        """One layer for one token of each hypothesis, x [R, D]; the W queries of a sentence share its source."""

        def mixed(x: Tensor) -> Tensor:
            nonlocal past
            made, past = slot.step(x, past)
            return made

        def asked(x: Tensor) -> Tensor:
            q = layer.cross_attention.queries(x.unflatten(0, (-1, width)))
            return layer.cross_attention.attend(q, *source).flatten(0, 1)

        x = layer.around(x, mixed, layer.norms[0], layer.dropout)
        x = layer.around(x, asked, layer.norms[1], layer.dropout)
        return layer.around(x, layer.feed_forward, layer.norms[2], layer.dropout), past

    @property
    def _slots(self) -> list[Slot]:
        return [layer.self_attention for layer in self.decoder if isinstance(layer.self_attention, Slot)]

    def _of_each_layer(self, own: Sequence[Tensor]) -> list[Past]:
        n = len(own) // len(self.decoder)
        return [tuple(own[i : i + n]) for i in range(0, len(own), n)]
