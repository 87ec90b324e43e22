"""The interface of a system, through which training, search and scoring use every model.

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

    reads_ragged: bool  # whether `encode` and `decode` take ragged batches, which are used on a GPU
    in_ctranslate2: bool  # whether CTranslate2 can express it
    needs_whole_updates: bool  # whether outputs depend on the whole update, so that it cannot be split into parts
    # Optional, for a system without our learned positions: `n_places: int`, the most tokens that it can read or write.
    # `repro/runs/refused.py` then refuses longer lines before training.
    embedding: TiedEmbedding  # its weight [V, D] is also the softmax matrix

    def encode(self, source: Any) -> Tensor:
        """int64 [B, S] -> memory [B, S, any]; padding must not change the result."""
        ...

    def decode(self, decoder_in: Any, memory: Tensor, source: Any) -> Tensor:
        """int64 [B, T] -> hidden [B, T, D]; row t depends on tokens up to t only. Each sentence begins with padding."""
        ...

    def start(self, source: Tensor) -> Any:
        """The initial state of a search, one row for each sentence, with `reorder` and `keep` (`decoding/beam.py`)."""
        ...

    def advance(self, ids: Tensor, state: Any) -> tuple[Tensor, Any]:
        """Hidden [R, D] after `ids` [R], the last token of each hypothesis; and the next state."""
        ...

    def prepacked(self, dtype: torch.dtype) -> AbstractContextManager[None]:
        """A context in which weights must not change and may be laid out for a search in `dtype`; it may do nothing."""
        ...

    # inherited from `nn.Module`
    def eval(self) -> Any: ...
    def to(self, device: torch.device) -> Any: ...
    def state_dict(self) -> dict[str, Any]: ...


def refuse_incomplete(model: nn.Module) -> None:
    """Raise ValueError, with their names, if members are missing."""
    if missing := [name for name in MEMBERS if not hasattr(model, name)]:
        raise ValueError(
            f"{type(model).__name__} lacks {', '.join(missing)}: expected a system with {', '.join(MEMBERS)}. Add "
            "what is missing, or subclass repro.model.protocol.Plain, which brings all but embedding, encode, decode."
        )


def refuse_parts(model: TranslationSystem, parts: int) -> None:
    """Raise ValueError if the model needs whole updates but each update is split into several parts."""
    if parts > 1 and model.needs_whole_updates:
        raise ValueError(
            f"expected whole updates, got {parts} parts of each (processes or micro-batches): in this model the output "
            "for a sentence depends on all others of the update. Train it in one process (--devices 1) that reads an "
            "update at once."
        )


@dataclass(frozen=True)
class PlainState:
    """The tokens read and written so far; every step computes all anew. The reference for states that remember more."""

    source: Tensor  # int64 [B, S]
    memory: Tensor  # [B, S, any]
    prefix: Tensor  # int64 [R, t], the hypotheses of a sentence side by side

    @classmethod
    def begun(cls, model: TranslationSystem, source: Tensor) -> Self:
        """One empty hypothesis for each sentence."""
        return cls(source, model.encode(source), source.new_zeros(len(source), 0))

    def reorder(self, rows: Tensor) -> Self:
        """Continue with hypotheses `rows` int64 [R'], in this order; each sentence keeps its place."""
        return replace(self, prefix=self.prefix[rows])

    def keep(self, sentences: Tensor) -> Self:
        """Continue with `sentences` int64 [B'] only, each with all its hypotheses."""
        prefix = self.prefix.view(len(self.source), -1, self.prefix.shape[1])[sentences].flatten(0, 1)
        return replace(self, source=self.source[sentences], memory=self.memory[sentences], prefix=prefix)

    def advance(self, model: TranslationSystem, ids: Tensor) -> tuple[Tensor, Self]:
        """Append `ids` to the prefixes; the last row of `decode` on them, and the new state."""
        grown = replace(self, prefix=torch.cat([self.prefix, ids[:, None]], dim=1))
        width = len(ids) // len(self.source)
        memory, source = (of.repeat_interleave(width, dim=0) for of in (self.memory, self.source))
        return model.decode(grown.prefix, memory, source)[:, -1], grown


class Plain(nn.Module):
    """The base of a system that caches nothing in a search: it only needs `embedding`, `encode` and `decode`."""

    reads_ragged = False
    in_ctranslate2 = False
    needs_whole_updates = False
    gradient_norm: float | None = None  # the norm to which a longer gradient of an update is clipped
    embedding: TiedEmbedding
    encode: Callable[..., Tensor]
    decode: Callable[..., Tensor]

    def start(self, source: Tensor) -> PlainState:
        return PlainState.begun(self, source)

    def advance(self, ids: Tensor, state: PlainState) -> tuple[Tensor, PlainState]:
        return state.advance(self, ids)

    def prepacked(self, dtype: torch.dtype) -> AbstractContextManager[None]:
        return nullcontext()
