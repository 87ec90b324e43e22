"""The smallest system that goes the whole way: means of what is read and written, and no attention."""

import torch
from torch import Tensor, nn

from repro.model.config import Hyper
from repro.model.embedding import TiedEmbedding
from repro.model.protocol import Plain
from repro.model.special_tokens import PAD


class Toy(Plain):
    """hidden_t = W [mean of e(y_0) .. e(y_t) ; e(y_t) ; mean of the source]: causal."""

    def __init__(self, hyper: Hyper, vocab_size: int, *, depth: int = 1) -> None:
        super().__init__()
        d = hyper.d_model
        self.embedding = TiedEmbedding(vocab_size, d)
        self.layers = nn.ModuleList(nn.Linear(d, d) for _ in range(depth))
        self.output = nn.Linear(3 * d, d)
        self.dropout = nn.Dropout(hyper.dropout)

    def encode(self, source: Tensor) -> Tensor:
        x = self.embedding(source)
        for layer in self.layers:
            x = x + layer(x).tanh()
        return x * (source != PAD).unsqueeze(-1)

    def decode(self, decoder_in: Tensor, memory: Tensor, source: Tensor) -> Tensor:
        read = self.embedding(decoder_in)
        n_read = torch.arange(1, read.shape[1] + 1, device=read.device)
        n_source = (source != PAD).sum(dim=1).clamp(min=1)
        about = (memory.sum(dim=1) / n_source.unsqueeze(-1)).unsqueeze(1).expand_as(read)
        parts = [read.cumsum(dim=1) / n_read.unsqueeze(-1), read, about]
        hidden: Tensor = self.output(self.dropout(torch.cat(parts, dim=-1)))
        return hidden
