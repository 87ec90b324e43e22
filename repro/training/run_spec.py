"""All that decides the result of a run, as plain data: a text by its hashes, numbers and choices.

No torch: a sweep asks for many.
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
    """Which text is read, by SHA-256; None where nobody has opened it."""

    corpus: str | None = None  # of its files
    data: str | None = None  # of all that decides the ids; the plan is a function of it
    ids: str | None = None  # of the ids, whatever code made them of the text
    tokenizer: str | None = None
    in_tokens: bool = False  # the text is Moses tokens already, which is how it is scored
    test_subset: str | None = None  # of which lines of test are a test set of their own


UNOPENED = TextSpec()


@dataclass(frozen=True, kw_only=True)
class RunSpec:
    """The text, the numbers and the choices that a result is computed from."""

    text: TextSpec
    task: Scorer
    hyper: Hyper
    seed: int
    batch_tokens: int  # of each side in one update
    batch_by: Literal["padded_tokens", "tokens"]
    devices: int
    accumulate: int  # micro-batches per update and device
    threads: int  # of each process, for the operations of PyTorch on a CPU
    precision: "loop.Precision"
    backend: "backends.Name"
    system: Any = None  # of the row; None: the Transformer

    @property
    def shares(self) -> int:
        """Micro-batches of an update, over all processes: each has its own dropout."""
        return self.devices * self.accumulate
