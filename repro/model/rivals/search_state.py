"""What a rival remembers in a search instead of the plain state: tensors for each hypothesis and for each sentence.

B sentences, W hypotheses of each side by side, R = B W.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

from torch import Tensor


@dataclass(frozen=True)
class SearchState:
    """Tensors of each hypothesis, and tensors shared by the hypotheses of a sentence, of which there is one copy."""

    own: tuple[Tensor, ...]  # each [R, ...]
    shared: tuple[Tensor, ...]  # each [B, ...]
    position: int = 0  # of the token to be read next

    @property
    def width(self) -> int:
        """W, the number of hypotheses of each sentence."""
        return len(self.own[0]) // len(self.shared[0])

    def reorder(self, rows: Tensor) -> Self:
        """Continue with hypotheses `rows` int64 [R'], in this order; each sentence keeps its place."""
        return replace(self, own=tuple(part[rows] for part in self.own))

    def keep(self, sentences: Tensor) -> Self:
        """Continue with `sentences` int64 [B'] only, each with all its hypotheses."""
        own = tuple(part.unflatten(0, (-1, self.width))[sentences].flatten(0, 1) for part in self.own)
        return replace(self, own=own, shared=tuple(part[sentences] for part in self.shared))

    def after(self, own: Sequence[Tensor]) -> Self:
        """The state after one more token."""
        return replace(self, own=tuple(own), position=self.position + 1)


def of_each(shared: Tensor, width: int) -> Tensor:
    """A shared tensor [B, ...] repeated for each of the W hypotheses: [R, ...]."""
    return shared.unsqueeze(1).expand(-1, width, *shared.shape[1:]).flatten(0, 1)
