"""ConvS2S: convolutions with gates, and attention to the source in every block. Gehring et al. (2017).

    y = GLU(Conv_k(dropout(x)))                     GLU(a ; b) = a sigmoid(b)
    q_i = (W_q y_i + b_q + g_i) sqrt(1/2)           g_i the embedded target token
    c_i = sqrt(m) sum_j a_ij (z_j + e_j) sqrt(1/2)  a_i = softmax_j(q_i . z_j), over the m tokens of the source
    y_i <- (y_i + W_c c_i + b_c) sqrt(1/2)          x <- (x + y) sqrt(1/2)

The encoder's blocks are the first and the last line. sqrt(1/2) keeps the variance of a sum, sqrt(m) that of a mean.

Shapes: B sentences, W hypotheses of each, R = B W; S source and T target tokens, D d_model, w width of a block.
"""

from functools import partial
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from repro.model.config import Hyper
from repro.model.embedding import Dropout, LearnedPositions, TiedEmbedding
from repro.model.masks import padding_bias
from repro.model.protocol import Plain
from repro.model.rivals.convolution import SequenceConvolution
from repro.model.rivals.search_state import SearchState
from repro.model.rivals.size import widest
from repro.model.special_tokens import PAD

HALF = 0.5**0.5
SPREAD = 0.1  # initial standard deviation of an embedded token and of a position


class Source(NamedTuple):
    """What is attended to: the same for all hypotheses of a sentence."""

    z: Tensor  # [B, S, D]  keys: the output of the encoder
    values: Tensor  # [B, S, D]  (z + e) sqrt(m / 2)
    bias: Tensor  # [B, 1, S]  very negative where padding stands


class Attention(nn.Module):
    """One step of multi-step attention: a block's query to the source, and how it uses the answer."""

    def __init__(self, width: int, d_model: int) -> None:
        super().__init__()
        self.ask, self.answer = nn.Linear(width, d_model), nn.Linear(d_model, width)

    def weights(self, y: Tensor, g: Tensor, source: Source) -> Tensor:
        """y [B, T, w] and g [B, T, D] -> a [B, T, S]; not scaled by the width."""
        q = (self.ask(y) + g) * HALF
        return (q @ source.z.transpose(1, 2) + source.bias).softmax(dim=-1)

    def forward(self, y: Tensor, g: Tensor, source: Source) -> Tensor:
        """[B, T, w] -> [B, T, w]."""
        c = self.weights(y, g, source) @ source.values
        return (y + self.answer(c)) * HALF


class ConvS2S(Plain):
    """ConvS2S with 2 N blocks a side: 2 N pairs of 14 D² parameters equal N of the base's layers of 28 D²."""

    gradient_norm = 1.0  # deviation: 0.1 there, with normalised weights and another optimizer
    encoder: nn.ModuleList
    decoder: nn.ModuleList
    attention: nn.ModuleList
    encoder_in: nn.Module
    encoder_out: nn.Module
    decoder_in: nn.Module

    def __init__(self, hyper: Hyper, vocab_size: int, *, kernel: int = 3) -> None:
        super().__init__()
        self.kernel, self.d_model, self.n_blocks = kernel, hyper.d_model, 2 * hyper.n_layers
        self.embedding = TiedEmbedding(vocab_size, hyper.d_model)
        self.source_positions = LearnedPositions(hyper.d_model)
        self.target_positions = LearnedPositions(hyper.d_model)
        self.width = widest(self, hyper, self.layers)
        self.output = nn.Linear(self.width, hyper.d_model)
        self.dropout = Dropout(hyper.dropout)
        self.reset_parameters(1 - hyper.dropout)

    def layers(self, width: int) -> dict[str, nn.Module]:
        """Blocks and attention, and maps from and to the embedding's width if it differs from that of the blocks."""
        blocks = {
            side: nn.ModuleList(
                SequenceConvolution(width, 2 * width, kernel=self.kernel, causal=side == "decoder")
                for _ in range(self.n_blocks)
            )
            for side in ("encoder", "decoder")
        }
        same = width == self.d_model
        maps = {
            name: nn.Identity() if same else nn.Linear(*sizes)
            for name, sizes in {
                "encoder_in": (self.d_model, width),
                "encoder_out": (width, self.d_model),
                "decoder_in": (self.d_model, width),
            }.items()
        }
        attention = nn.ModuleList(Attention(width, self.d_model) for _ in range(self.n_blocks))
        return {**blocks, **maps, "attention": attention}

    def reset_parameters(self, kept: float) -> None:
        """Make dropout and gates keep the variance. Gehring et al. (2017), section 3.5; `kept` is 1 - P_drop."""
        for part in (self.source_positions, self.target_positions):
            nn.init.normal_(part.weight, std=SPREAD)
        gated = {convolution.linear for convolution in self.modules() if isinstance(convolution, SequenceConvolution)}
        for linear in self.modules():
            if isinstance(linear, nn.Linear):
                gain = 4 if linear in gated else 1
                # deviation: theirs has no `kept` without dropout in front: ask, answer, output, encoder_out
                nn.init.normal_(linear.weight, std=(gain * kept / linear.in_features) ** 0.5)
                nn.init.zeros_(linear.bias)

    def embedded(self, ids: Tensor, positions: Tensor) -> Tensor:
        """0.1 e + p: the tied embedding has unit variance; unscaled attention can bear only a hundredth of that."""
        x: Tensor = self.dropout(SPREAD * self.embedding(ids) + positions)
        return x

    def encode(self, source: Tensor) -> Tensor:
        """int64 [B, S] -> [z ; e], which is [B, S, 2D] and 0 where padding stands.

        Each of the 2 N attentions sends back two gradients for z, of the keys and of the values. Their sum is divided
        by 4 N before it goes to the encoder; the gradient of e is not. Gehring et al. (2017), section 3.4.
        """
        real = (source != PAD).unsqueeze(-1)
        e = self.embedded(source, self.source_positions(0, source.shape[1])) * real
        x = self.encoder_in(e)
        for convolution in self.encoder:
            x = (x + F.glu(convolution(self.dropout(x * real)))) * HALF
        z = self.encoder_out(x) * real
        if z.requires_grad:
            z.register_hook(partial(torch.mul, other=1 / (2 * self.n_blocks)))
        return torch.cat([z, e], dim=-1)

    def looked_at(self, memory: Tensor, source: Tensor) -> Source:
        """Keys, values and bias of the source, shared by all attentions."""
        z, e = memory.chunk(2, dim=-1)
        m = (source != PAD).sum(dim=1).clamp(min=1)[:, None, None]
        return Source(z, (z + e) * HALF * m.to(z.dtype).sqrt(), padding_bias(source, z.dtype)[:, 0])

    def decode(self, decoder_in: Tensor, memory: Tensor, source: Tensor) -> Tensor:
        """int64 [B, T] and memory [B, S, 2D] -> hidden [B, T, D]."""
        looked_at = self.looked_at(memory, source)
        g = self.embedded(decoder_in, self.target_positions(0, decoder_in.shape[1]))
        x = self.decoder_in(g)
        for convolution, attention in zip(self.decoder, self.attention, strict=True):
            y = F.glu(convolution(self.dropout(x)))
            x = (x + attention(y, g, looked_at)) * HALF
        hidden: Tensor = self.dropout(self.output(x))
        return hidden

    def start(self, source: Tensor) -> SearchState:  # type: ignore[override]  # not the plain state
        """The last k - 1 inputs of each block for each hypothesis; what is attended to for each sentence."""
        looked_at = self.looked_at(self.encode(source), source)
        return SearchState(tuple(block.begun(looked_at.z) for block in self._decoder), tuple(looked_at))

    def advance(self, ids: Tensor, state: SearchState) -> tuple[Tensor, SearchState]:  # type: ignore[override]
        """Hidden [R, D] after `ids` [R]."""
        looked_at, width = Source(*state.shared), state.width
        g = self.embedded(ids, self.target_positions(state.position, state.position + 1))
        x, pasts = self.decoder_in(g), []
        for convolution, past, attention in zip(self._decoder, state.own, self.attention, strict=True):
            y, past = convolution.step(x, past)
            pasts.append(past)
            asked = (part.unflatten(0, (-1, width)) for part in (F.glu(y), g))
            x = (x + attention(*asked, looked_at).flatten(0, 1)) * HALF
        return self.output(x), state.after(pasts)

    @property
    def _decoder(self) -> list[SequenceConvolution]:
        return [block for block in self.decoder if isinstance(block, SequenceConvolution)]
