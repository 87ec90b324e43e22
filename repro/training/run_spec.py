"""Everything that decides the result of a run, as plain data: hashes of the text, numbers and choices.

It imports no torch, as a sweep makes many of these.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from repro.decoding.search import Scorer
from repro.model.config import Hyper

if TYPE_CHECKING:
    from repro.decoding import backend as backends
    from repro.training import loop


@dataclass(frozen=True, kw_only=True)
class TextSpec:
    """Which text is read, as SHA-256 hashes; None if the text has not been opened."""

    corpus: str | None = None  # of its files
    data: str | None = None  # of everything that decides the ids; the plan is a function of it
    ids: str | None = None  # of the ids themselves, whatever code made them
    tokenizer: str | None = None
    in_tokens: bool = False  # the text is already Moses tokens, and is scored as such
    test_subset: str | None = None  # of the choice of test lines that form a test set of their own


UNOPENED = TextSpec()


@dataclass(frozen=True, kw_only=True)
class RunSpec:
    """The text, numbers and choices from which a result is computed."""

    text: TextSpec
    task: Scorer
    hyper: Hyper
    seed: int
    batch_tokens: int  # on each side of one update
    batch_by: Literal["padded_tokens", "tokens"]
    devices: int
    accumulate: int  # micro-batches per update and device
    threads: int  # of each process, for PyTorch's operations on a CPU
    precision: "loop.Precision"
    backend: "backends.Name"
    system: Any = None  # the row's system; None: the Transformer

    @property
    def shares(self) -> int:
        """Micro-batches of an update, over all processes; each draws its own dropout."""
        return self.devices * self.accumulate
