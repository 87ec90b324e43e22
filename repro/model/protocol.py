"""What a system offers: written once, asked by training, search and scoring of every model.

Shapes: B sentences, S source and T target tokens, D width of the output, V vocabulary, R hypotheses of a search.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any, Protocol, Self

import torch
from torch import Tensor, nn

from repro.model.embedding import TiedEmbedding

MEMBERS = (
    *("embedding", "encode", "decode", "start", "advance", "prepacked"),
    *("reads_ragged", "in_ctranslate2", "needs_whole_updates"),
)


class TranslationSystem(Protocol):
    """Any module with these members; it is made from (hyper, vocabulary size)."""

    reads_ragged: bool  # whether `encode` and `decode` take ragged batches, as a GPU reads them
    in_ctranslate2: bool  # whether CTranslate2 can express it
    needs_whole_updates: bool  # a sentence meets all of its update, so that no part of one can be computed elsewhere
    # and `n_places: int` where it reads and writes no more tokens than that, and is not made of our learned positions:
    # `repro/runs/line_lengths.py` then refuses longer lines before anything is trained
    embedding: TiedEmbedding  # its weight [V, D] is the matrix of the softmax, too

    def encode(self, source: Any) -> Tensor:
        """int64 [B, S] -> memory [B, S, any]; padding changes nothing."""
        ...

    def decode(self, decoder_in: Any, memory: Tensor, source: Any) -> Tensor:
        """int64 [B, T] -> hidden [B, T, D]; row t from the tokens up to t only. Padding comes first in each row."""
        ...

    def start(self, source: Tensor) -> Any:
        """A search begins: its state, with one row a sentence, `reorder` and `keep` (`decoding/beam.py`)."""
        ...

    def advance(self, ids: Tensor, state: Any) -> tuple[Tensor, Any]:
        """Hidden [R, D] after `ids` [R], the last token of each hypothesis; and the state that follows."""
        ...

    def prepacked(self, dtype: torch.dtype) -> AbstractContextManager[None]:
        """While it lasts the weights stay as they are, and may lie as a search multiplies by them; may do nothing."""
        ...

    # what `nn.Module` has
    def eval(self) -> Any: ...
    def to(self, device: torch.device) -> Any: ...
    def state_dict(self) -> dict[str, Any]: ...


def refuse_incomplete(model: nn.Module) -> None:
    """Raise ValueError where a member is missing, by name."""
    if missing := [name for name in MEMBERS if not hasattr(model, name)]:
        raise ValueError(
            f"{type(model).__name__} lacks {', '.join(missing)}: expected a system with {', '.join(MEMBERS)}. Add "
            "what is missing, or subclass repro.model.protocol.Plain, which brings all but embedding, encode, decode."
        )


def refuse_parts(model: TranslationSystem, parts: int) -> None:
    """Raise ValueError for a model whose sentences meet all of their update, where that is shared out into parts."""
    if parts > 1 and model.needs_whole_updates:
        raise ValueError(
            f"expected whole updates, got {parts} parts of each (processes or micro-batches): in this model the output "
            "for a sentence depends on all others of the update. Train it in one process (--devices 1) that reads an "
            "update at once."
        )


@dataclass(frozen=True)
class PlainState:
    """What is read and written so far, computed anew at each step. The oracle of every state that remembers more."""

    source: Tensor  # int64 [B, S]
    memory: Tensor  # [B, S, any]
    prefix: Tensor  # int64 [R, t], the hypotheses of a sentence side by side

    @classmethod
    def begun(cls, model: TranslationSystem, source: Tensor) -> Self:
        """One hypothesis a sentence, nothing written."""
        return cls(source, model.encode(source), source.new_zeros(len(source), 0))

    def reorder(self, rows: Tensor) -> Self:
        """Hypotheses `rows` int64 [R'] go on, in this order; each sentence keeps its place."""
        return replace(self, prefix=self.prefix[rows])

    def keep(self, sentences: Tensor) -> Self:
        """Only `sentences` int64 [B'] go on, each with all its hypotheses."""
        prefix = self.prefix.view(len(self.source), -1, self.prefix.shape[1])[sentences].flatten(0, 1)
        return replace(self, source=self.source[sentences], memory=self.memory[sentences], prefix=prefix)

    def advance(self, model: TranslationSystem, ids: Tensor) -> tuple[Tensor, Self]:
        """The last row of `decode` on all that is written."""
        grown = replace(self, prefix=torch.cat([self.prefix, ids[:, None]], dim=1))
        width = len(ids) // len(self.source)
        memory, source = (of.repeat_interleave(width, dim=0) for of in (self.memory, self.source))
        return model.decode(grown.prefix, memory, source)[:, -1], grown


class Plain(nn.Module):
    """The base of a system that remembers nothing in a search: it needs `embedding`, `encode` and `decode` alone."""

    reads_ragged = False
    in_ctranslate2 = False
    needs_whole_updates = False
    gradient_norm: float | None = None  # to which the gradient of an update is cut, where it is longer
    embedding: TiedEmbedding
    encode: Callable[..., Tensor]
    decode: Callable[..., Tensor]

    def start(self, source: Tensor) -> PlainState:
        return PlainState.begun(self, source)

    def advance(self, ids: Tensor, state: PlainState) -> tuple[Tensor, PlainState]:
        return state.advance(self, ids)

    def prepacked(self, dtype: torch.dtype) -> AbstractContextManager[None]:
        return nullcontext()
