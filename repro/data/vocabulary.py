"""Which vocabulary of sub-words is wanted. Paper: section 5.1."""

from dataclasses import dataclass
from typing import Literal, get_args

SubwordKind = Literal["bpe", "wordpiece", "given"]


@dataclass(frozen=True)
class Subwords:
    """One vocabulary for both languages.

    "bpe" merges frequent neighbours, as the paper's English-German; "wordpiece" reads the longest token first, as
    its English-French; "given" takes text that is split into sub-words already, with the vocabulary that came with it.
    """

    kind: SubwordKind
    size: int  # tokens asked for; a small text may have fewer, and what is given has as many as it has
    whole: tuple[str, ...] = ()  # of "bpe": words that are one token each and are never cut, counted in `size`

    def __post_init__(self) -> None:
        """Raises ValueError for another kind, which would pass for word-pieces."""
        if self.kind not in get_args(SubwordKind):
            raise ValueError(f"Sub-words: expected one of {', '.join(get_args(SubwordKind))}, got {self.kind!r}.")
