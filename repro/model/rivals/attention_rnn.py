"""Soft alignment: the decoder attends to the whole source at each step. Bahdanau et al. (2015), Luong et al. (2015).

    c_i = sum_j a_ij h_j        a_i = softmax_j score(s_{i-1}, h_j)        s_i = LSTM([e(y_{i-1}) ; c_i], s_{i-1})

Shapes: B sentences, W hypotheses of each, R = B W; S source and T target tokens, D d_model, w width of a state.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor, nn

from repro.model.config import Hyper
from repro.model.masks import padding_bias
from repro.model.rivals.recurrent import GRU, LSTM, State, StaticLast
from repro.model.rivals.search_state import SearchState


class Additive(nn.Module):
    """v^T tanh(W q + U h_j + b). Bahdanau et al. (2015), appendix A.1.2; the width of v is w."""

    def __init__(self, d_query: int, d_memory: int, width: int) -> None:
        super().__init__()
        self.queries = nn.Linear(d_query, width, bias=False)
        self.keys = nn.Linear(d_memory, width)
        self.v = nn.Linear(width, 1, bias=False)

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        """query [B, W, d_query] and keys [B, S, w], which are computed once for each sentence -> scores [B, W, S]."""
        met = self.queries(query).unsqueeze(2) + keys.unsqueeze(1)
        scores: Tensor = self.v(met.tanh()).squeeze(-1)
        return scores


class Dot(nn.Module):
    """(W q) . (U h_j). Luong et al. (2015), section 3.1: "dot", with both sides projected to the same width."""

    def __init__(self, d_query: int, d_memory: int, width: int) -> None:
        super().__init__()
        self.queries = nn.Linear(d_query, width, bias=False)
        self.keys = nn.Linear(d_memory, width, bias=False)

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        """query [B, W, d_query] and keys [B, S, w] -> [B, W, S]."""
        return self.queries(query) @ keys.transpose(1, 2)


class ScaledDot(Dot):
    """The same divided by sqrt(w), as in the paper's equation (1)."""

    def forward(self, query: Tensor, keys: Tensor) -> Tensor:
        return super().forward(query, keys) * keys.shape[-1] ** -0.5


class Source(NamedTuple):
    """What a decoder attends to: the same for all hypotheses of a sentence."""

    h: Tensor  # [B, S, 2w]
    keys: Tensor  # [B, S, w]
    bias: Tensor  # [B, 1, S]  very negative where padding stands


Attend = Callable[[Tensor], Tensor]  # a query [R, d_query] -> c [R, 2w]


class SoftAlignment(StaticLast):
    """The query is the previous state: c_i from s_{i-1}. Bahdanau et al. (2015), section 3.1."""

    score: Additive | Dot

    def __init__(
        self,
        hyper: Hyper,
        vocab_size: int,
        *,
        unit: type[LSTM] | type[GRU] = LSTM,
        score: type[Additive] | type[Dot] = Additive,
    ) -> None:
        self.made_score = score
        super().__init__(hyper, vocab_size, unit=unit)

    def layers(self, unit: type[LSTM] | type[GRU], d_model: int, width: int) -> dict[str, nn.Module]:
        score = self.made_score(width, 2 * width, width)  # first, as the order decides which numbers each part draws
        return {**super().layers(unit, d_model, width), "score": score}

    def turn(self, e: Tensor, state: State, attend: Attend) -> tuple[Tensor, State]:
        """One step from e(y_{i-1}) [R, D] and the unit's state: c_i [R, 2w] and the next state."""
        c = attend(state[0])
        return c, self.unit.step(torch.cat([e, c], dim=-1), state)

    def looked_at(self, memory: Tensor, source: Tensor) -> Source:
        """What the decoder attends to; U h_j is computed once for each sentence."""
        return Source(memory, self.score.keys(memory), padding_bias(source, memory.dtype)[:, 0])

    def weights(self, query: Tensor, source: Source) -> Tensor:
        """a_i: query [R, d_query] -> [B, W, S]; each row sums to one, padding has 0."""
        query = query.view(len(source.h), -1, query.shape[-1])
        return (self.score(query, source.keys) + source.bias).softmax(dim=-1)

    def attend(self, source: Source, query: Tensor) -> Tensor:
        """c_i = sum_j a_ij h_j, [R, 2w]."""
        return (self.weights(query, source) @ source.h).flatten(0, 1)

    def decode(self, decoder_in: Tensor, memory: Tensor, source: Tensor) -> Tensor:
        """int64 [B, T] and memory [B, S, 2w] -> r [B, T, D]."""
        return self.written(decoder_in, memory, source, partial(self.attend, self.looked_at(memory, source)))

    def written(self, decoder_in: Tensor, memory: Tensor, source: Tensor, attend: Attend) -> Tensor:
        """All steps in turn, with `attend` mapping each query to its context: r [B, T, D]."""
        e = self.dropout(self.embedding(decoder_in))
        state = self.first_state(memory, source)
        found, states = [], []
        for e_i in e.unbind(dim=1):
            c, state = self.turn(e_i, state, attend)
            found.append(c)
            states.append(state[0])
        r: Tensor = self.dropout(
            self.readout(torch.cat([torch.stack(states, dim=1), torch.stack(found, dim=1), e], dim=-1))
        )
        return r

    def attention_maps(self, source: Tensor, decoder_in: Tensor) -> dict[str, Tensor]:
        """The weights a_i, named as in a Transformer of one layer and one head: [B, 1, T, S], rows sum to one."""
        memory = self.encode(source)
        looked_at, rows = self.looked_at(memory, source), []

        def attend(query: Tensor) -> Tensor:
            rows.append(self.weights(query, looked_at))
            return (rows[-1] @ looked_at.h).flatten(0, 1)

        self.written(decoder_in, memory, source, attend)
        return {"decoder.0.cross_attention": torch.stack(rows, dim=2)}

    def start(self, source: Tensor) -> SearchState:  # type: ignore[override]
        """The unit's state for each hypothesis; what is attended to for each sentence."""
        memory = self.encode(source)
        return SearchState(self.first_state(memory, source), tuple(self.looked_at(memory, source)))

    def advance(self, ids: Tensor, state: SearchState) -> tuple[Tensor, SearchState]:  # type: ignore[override]
        """r [R, D] after `ids` [R]."""
        e = self.embedding(ids)
        c, after = self.turn(e, state.own, partial(self.attend, Source(*state.shared)))
        return self.readout(torch.cat([after[0], c, e], dim=-1)), state.after(after)
