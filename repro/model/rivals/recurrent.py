"""Recurrent translation without attention: the decoder knows the source by one vector only.

    s_i = LSTM([e(y_{i-1}) ; c], s_{i-1})            r_i = max over pairs of W_r [s_i ; c ; e(y_{i-1})] + b_r

The softmax uses the shared embedding, so r_i has its width D. Sutskever et al. (2014) give the decoder only its first
state; Cho et al. (2014) also give it a context c of the source, the same at every step.

Shapes: B sentences, S source and T target tokens, R hypotheses in a search, D d_model, w width of a state.
"""

from collections.abc import Callable
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from repro.model.config import Hyper
from repro.model.embedding import Dropout, TiedEmbedding
from repro.model.protocol import Plain
from repro.model.rivals.search_state import SearchState, of_each
from repro.model.rivals.size import widest
from repro.model.special_tokens import PAD

GRADIENT_NORM = 1.0  # deviation: gradients of recurrent rows are clipped to it (5 in the systems' papers)
State = tuple[Tensor, ...]  # of a recurrent unit, each [B, w]; the first is its output s


class LSTM(nn.LSTM):
    """A unit with a memory cell and three gates. Hochreiter and Schmidhuber (1997), Gers et al. (2000)."""

    def __init__(self, d_in: int, width: int) -> None:
        super().__init__(d_in, width, batch_first=True)

    def begun(self, s: Tensor) -> State:
        """The first state: s, and an empty memory cell."""
        return s, torch.zeros_like(s)

    def read(self, x: Tensor, state: State | None = None) -> Tensor:
        """x [B, T, d_in] -> [B, T, w]: s after each; begins with zeros where no state is given."""
        made: Tensor = self(x, None if state is None else tuple(part.unsqueeze(0) for part in state))[0]
        return made

    def step(self, x: Tensor, state: State) -> State:
        """x [B, d_in] -> the state after it."""
        (s, cell), (of_x, of_s, b, b_s) = state, self.all_weights[0]
        z = F.linear(x, of_x, b) + F.linear(s, of_s, b_s)
        let_in, forget, new, let_out = z.chunk(4, dim=-1)
        cell = forget.sigmoid() * cell + let_in.sigmoid() * new.tanh()
        return let_out.sigmoid() * cell.tanh(), cell


class GRU(nn.GRU):
    """A unit with two gates and no cell of its own. Cho et al. (2014); the form of the candidate is cuDNN's."""

    def __init__(self, d_in: int, width: int) -> None:
        super().__init__(d_in, width, batch_first=True)

    def begun(self, s: Tensor) -> State:
        """The first state: s alone."""
        return (s,)

    def read(self, x: Tensor, state: State | None = None) -> Tensor:
        """x [B, T, d_in] -> [B, T, w]: s after each; begins with zeros where no state is given."""
        made: Tensor = self(x, None if state is None else state[0].unsqueeze(0))[0]
        return made

    def step(self, x: Tensor, state: State) -> State:
        """x [B, d_in] -> the state after it."""
        (s,), (of_x, of_s, b, b_s) = state, self.all_weights[0]
        reset_x, keep_x, new_x = F.linear(x, of_x, b).chunk(3, dim=-1)
        reset_s, keep_s, new_s = F.linear(s, of_s, b_s).chunk(3, dim=-1)
        keep = (keep_x + keep_s).sigmoid()
        new = (new_x + (reset_x + reset_s).sigmoid() * new_s).tanh()
        return (keep * s + (1 - keep) * new,)


class Maxout(nn.Module):
    """r = max over pairs of W_r x + b_r. Goodfellow et al. (2013); Bahdanau et al. (2015), appendix A.2.2."""

    def __init__(self, d_in: int, d_out: int) -> None:
        super().__init__()
        self.linear = nn.Linear(d_in, 2 * d_out)

    def forward(self, x: Tensor) -> Tensor:
        """[..., d_in] -> [..., d_out]."""
        return self.linear(x).unflatten(-1, (-1, 2)).amax(dim=-1)


def lengths_of(source: Tensor) -> Tensor:
    """Tokens of each sentence, int64 [B]; 1 for a row of padding alone, which stands in for an empty batch."""
    return (source != PAD).sum(dim=1).clamp(min=1)


def forwards(x: Tensor, lengths: Tensor) -> Tensor:
    """The sentences in their own order."""
    return x


def backwards(x: Tensor, lengths: Tensor) -> Tensor:
    """Each sentence of x [B, S, ...] reversed, from its last token to its first; its padding stays at the end."""
    place = torch.arange(x.shape[1], device=x.device)
    turned = lengths.unsqueeze(1) - 1 - place
    return x[torch.arange(len(x), device=x.device).unsqueeze(1), turned.where(turned >= 0, place)]


class BothWays(nn.Module):
    """h_j = [->h_j ; <-h_j]: the state after reading forwards up to token j, and after reading backwards down to it.

    Schuster and Paliwal (1997). Both directions read the sentence first and its padding last, so no state of a token
    has seen padding.
    """

    def __init__(self, unit: type[LSTM] | type[GRU], d_in: int, width: int) -> None:
        super().__init__()
        self.forth, self.back = unit(d_in, width), unit(d_in, width)

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        """[B, S, d_in] -> [B, S, 2w]."""
        back = backwards(self.back.read(backwards(x, lengths)), lengths)
        return torch.cat([self.forth.read(x), back], dim=-1)


def last(h: Tensor, lengths: Tensor) -> Tensor:
    """[B, S, w] -> [B, w]: the state of each sentence's last token."""
    return h[torch.arange(len(h), device=h.device), lengths - 1]


class Simple(Plain):
    """Encoder-decoder: the last state of the encoder is all that the decoder knows. Sutskever et al. (2014).

    `order` is the order in which the source is read; that paper reads it `backwards`. The encoder has one direction
    only, which ends in that last state: the output of another direction would not be used.
    """

    gradient_norm = GRADIENT_NORM
    encoder: nn.Module
    first: nn.Linear
    unit: LSTM | GRU
    readout: Maxout

    def __init__(
        self,
        hyper: Hyper,
        vocab_size: int,
        *,
        unit: type[LSTM] | type[GRU] = LSTM,
        order: Callable[[Tensor, Tensor], Tensor] = forwards,
    ) -> None:
        super().__init__()
        self.order = order
        self.embedding = TiedEmbedding(vocab_size, hyper.d_model)
        self.dropout = Dropout(hyper.dropout)
        self.width = widest(self, hyper, partial(self.layers, unit, hyper.d_model))

    def layers(self, unit: type[LSTM] | type[GRU], d_model: int, width: int) -> dict[str, nn.Module]:
        """All trained parts outside the embedding."""
        return {
            "encoder": unit(d_model, width),
            "first": nn.Linear(width, width),
            "unit": unit(d_model, width),
            "readout": Maxout(width + d_model, d_model),
        }

    def encode(self, source: Tensor) -> Tensor:
        """int64 [B, S] -> h [B, S, w], 0 where padding stands."""
        x, lengths = self.dropout(self.embedding(source)), lengths_of(source)
        h = self.states(self.order(x, lengths), lengths)
        return h * (source != PAD).unsqueeze(-1)

    def states(self, x: Tensor, lengths: Tensor) -> Tensor:
        """The encoder's state after each token."""
        assert isinstance(self.encoder, LSTM | GRU)
        return self.encoder.read(x)

    def first_state(self, memory: Tensor, source: Tensor) -> State:
        """s_0 = tanh(W_0 h_m + b_0) of the last token read, and an empty memory cell."""
        return self.unit.begun(self.first(last(memory, lengths_of(source))).tanh())

    def context(self, memory: Tensor, source: Tensor) -> Tensor:
        """The context c [B, width of c]; here it has width 0."""
        return memory[:, 0, :0]

    def decode(self, decoder_in: Tensor, memory: Tensor, source: Tensor) -> Tensor:
        """int64 [B, T] and memory [B, S, any] -> r [B, T, D]."""
        e = self.dropout(self.embedding(decoder_in))
        c = self.context(memory, source).unsqueeze(1).expand(-1, e.shape[1], -1)
        s = self.unit.read(torch.cat([e, c], dim=-1), self.first_state(memory, source))
        r: Tensor = self.dropout(self.readout(torch.cat([s, c, e], dim=-1)))
        return r

    def start(self, source: Tensor) -> SearchState:  # type: ignore[override]  # not the plain state
        """s_0 and the memory cell for each hypothesis; the context for each sentence."""
        memory = self.encode(source)
        return SearchState(self.first_state(memory, source), (self.context(memory, source),))

    def advance(self, ids: Tensor, state: SearchState) -> tuple[Tensor, SearchState]:  # type: ignore[override]
        """r [R, D] after `ids` [R]."""
        e, c = self.embedding(ids), of_each(state.shared[0], state.width)
        unit_state = self.unit.step(torch.cat([e, c], dim=-1), state.own)
        return self.readout(torch.cat([unit_state[0], c, e], dim=-1)), state.after(unit_state)


class StaticLast(Simple):
    """The decoder sees c = [->h_m ; <-h_1] at every step, and begins with s_0 = tanh(W_0 <-h_1). Cho et al. (2014)."""

    def layers(self, unit: type[LSTM] | type[GRU], d_model: int, width: int) -> dict[str, nn.Module]:
        return {
            "encoder": BothWays(unit, d_model, width),
            "first": nn.Linear(width, width),
            "unit": unit(d_model + 2 * width, width),
            "readout": Maxout(width + 2 * width + d_model, d_model),
        }

    def states(self, x: Tensor, lengths: Tensor) -> Tensor:
        h: Tensor = self.encoder(x, lengths)
        return h

    def first_state(self, memory: Tensor, source: Tensor) -> State:
        """s_0 = tanh(W_0 <-h_1 + b_0), and an empty memory cell."""
        return self.unit.begun(self.first(memory[:, 0, self.width :]).tanh())

    def context(self, memory: Tensor, source: Tensor) -> Tensor:
        """c [B, 2w]: the last states of both directions."""
        return torch.cat([last(memory, lengths_of(source))[:, : self.width], memory[:, 0, self.width :]], dim=-1)


class StaticMean(StaticLast):
    """The same with c = (1/m) sum_j h_j: every word has equal weight."""

    def context(self, memory: Tensor, source: Tensor) -> Tensor:
        """c [B, 2w]."""
        return memory.sum(dim=1) / lengths_of(source).unsqueeze(-1)
