"""The Transformer with something else where its self-attention stands, on one side. Domhan (2018), section 4.

Attention to the source, feed-forward networks, norms and positions stay. A recurrent encoder's slot has D / 2 a
direction, a decoder's D; a convolution has kernel 3 and gates. Feed-forward networks are as wide as then fits.

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

Past = tuple[Tensor, ...]  # of a slot, each [R, ...]


class Slot(nn.Module, ABC):
    """What mixes the tokens of one sequence in the place of self-attention: a whole sequence, or one step of a search.

    It is made from (d_model, causal); a causal one stands in a decoder.
    """

    @abstractmethod
    def forward(self, x: Tensor, bias: Tensor) -> Tensor:
        """x [B, L, D] -> [B, L, D]; `bias` is what self-attention would be masked by."""

    @abstractmethod
    def begun(self, like: Tensor) -> Past:
        """What is remembered of sentences [B, ...] that are not begun."""

    @abstractmethod
    def step(self, x: Tensor, past: Past) -> tuple[Tensor, Past]:
        """The next token x [R, D] of each hypothesis: what is made of it, and the past of the one after."""


class Recurrence(Slot):
    """An LSTM: in both directions in an encoder."""

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
    """No token sees another; the norm that follows stays."""

    def __init__(self, d_model: int, *, causal: bool) -> None:
        super().__init__()

    def forward(self, x: Tensor, bias: Tensor) -> Tensor:
        return torch.zeros_like(x)

    def begun(self, like: Tensor) -> Past:
        return (like.new_zeros(len(like), 0),)

    def step(self, x: Tensor, past: Past) -> tuple[Tensor, Past]:
        return torch.zeros_like(x), past


def _real(bias: Tensor) -> Tensor:
    """Which tokens are no padding, bool [B, L], from the bias [B, 1, 1, L] that hides the others."""
    return bias[:, 0, 0] == 0


class HybridEncoder(Transformer):
    """Another slot in the encoder; the decoder, and so a search, is the Transformer's."""

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
    """Another slot in the decoder: a search remembers what that needs, and the keys and values of the source."""

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
        """One layer for one token of each hypothesis, x [R, D]; those of a sentence ask its source side by side."""

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
