"""ByteNet: dilated convolutions, and a decoder that reads the encoder's output token by token. No attention.

    block(x) = x + up(ReLU(LN(Conv_{k, r}(ReLU(LN(down(ReLU(LN x))))))))        r = 1, 2, 4, 8, 16, 1, ..
    the decoder reads  W_a u_t + W_b e(y_{t-1}) + b        u_t = z_t up to the end of the source, 0 beyond

Kalchbrenner et al. (2016); down and up halve and double the width. A target longer than its source goes on without it.

Shapes: B sentences, R hypotheses in a search, S source and T target tokens, D d_model, w width between blocks.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from repro.model.config import Hyper
from repro.model.embedding import Dropout, TiedEmbedding
from repro.model.layers import NORM_EPS
from repro.model.protocol import Plain
from repro.model.rivals.convolution import SequenceConvolution
from repro.model.rivals.search_state import SearchState, of_each
from repro.model.rivals.size import widest
from repro.model.special_tokens import PAD

DILATIONS = (1, 2, 4, 8, 16)


def active(width: int) -> nn.Sequential:
    """ReLU(LN x)."""
    return nn.Sequential(nn.LayerNorm(width, eps=NORM_EPS), nn.ReLU())


class ResidualBlock(nn.Module):
    """Narrow, convolve, widen, add. Kalchbrenner et al. (2016), figure 3 left."""

    def __init__(self, width: int, *, kernel: int, dilation: int, causal: bool) -> None:
        super().__init__()
        half = width // 2
        self.down = nn.Sequential(active(width), nn.Linear(width, half), active(half))
        self.mix = SequenceConvolution(half, half, kernel=kernel, dilation=dilation, causal=causal)
        self.up = nn.Sequential(active(half), nn.Linear(half, width))

    def forward(self, x: Tensor, real: Tensor | None = None) -> Tensor:
        """[B, L, w] -> [B, L, w]; the convolution sees zeros where `real` [B, L, 1] is false."""
        narrow = self.down(x)
        mixed: Tensor = self.up(self.mix(narrow if real is None else narrow * real))
        return x + mixed

    def step(self, x: Tensor, past: Tensor) -> tuple[Tensor, Tensor]:
        """The same for the next token of each hypothesis, x [R, w]."""
        mixed, past = self.mix.step(self.down(x), past)
        return x + self.up(mixed), past


class ByteNet(Plain):
    """ByteNet with 2 N blocks on each side."""

    encoder: nn.ModuleList
    decoder: nn.ModuleList
    source_in: nn.Linear
    target_in: nn.Linear
    output: nn.Sequential

    def __init__(self, hyper: Hyper, vocab_size: int, *, kernel: int = 3) -> None:
        super().__init__()
        self.kernel, self.d_model, self.n_blocks = kernel, hyper.d_model, 2 * hyper.n_layers
        self.embedding = TiedEmbedding(vocab_size, hyper.d_model)
        self.dropout = Dropout(hyper.dropout)
        self.width = widest(self, hyper, self.layers)

    def layers(self, width: int) -> dict[str, nn.Module]:
        """All trained parts outside the embedding."""
        blocks = {
            side: nn.ModuleList(
                ResidualBlock(width, kernel=self.kernel, dilation=dilation, causal=side == "decoder")
                for dilation in (DILATIONS * self.n_blocks)[: self.n_blocks]
            )
            for side in ("encoder", "decoder")
        }
        return {
            **blocks,
            "source_in": nn.Linear(self.d_model, width),
            "target_in": nn.Linear(width + self.d_model, width),
            "output": nn.Sequential(active(width), nn.Linear(width, self.d_model)),
        }

    def encode(self, source: Tensor) -> Tensor:
        """int64 [B, S] -> z [B, S, w], 0 where padding stands."""
        real = (source != PAD).unsqueeze(-1)
        x = self.source_in(self.dropout(self.embedding(source)))
        for block in self.encoder:
            x = block(x, real)
        z: Tensor = x * real
        return z

    def decode(self, decoder_in: Tensor, memory: Tensor, source: Tensor) -> Tensor:
        """int64 [B, T] and memory [B, S, w] -> hidden [B, T, D]."""
        e = self.dropout(self.embedding(decoder_in))
        n = e.shape[1]
        u = F.pad(memory[:, :n], (0, 0, 0, max(0, n - memory.shape[1])))
        x = self.target_in(torch.cat([u, e], dim=-1))
        for block in self.decoder:
            x = block(x)
        hidden: Tensor = self.dropout(self.output(x))
        return hidden

    def start(self, source: Tensor) -> SearchState:  # type: ignore[override]  # not the plain state
        """The inputs in reach of each block's convolution; z for each sentence."""
        memory = self.encode(source)
        return SearchState(tuple(block.mix.begun(memory) for block in self._decoder), (memory,))

    def advance(self, ids: Tensor, state: SearchState) -> tuple[Tensor, SearchState]:  # type: ignore[override]
        """Hidden [R, D] after `ids` [R]."""
        (z,) = state.shared
        u = z[:, state.position] if state.position < z.shape[1] else torch.zeros_like(z[:, 0])
        x, pasts = self.target_in(torch.cat([of_each(u, state.width), self.embedding(ids)], dim=-1)), []
        for block, past in zip(self._decoder, state.own, strict=True):
            x, past = block.step(x, past)
            pasts.append(past)
        return self.output(x), state.after(pasts)

    @property
    def _decoder(self) -> list[ResidualBlock]:
        return [block for block in self.decoder if isinstance(block, ResidualBlock)]
