"""What a run is made of: text, numbers and choices. No torch: a sweep asks it."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from repro.data.shards import Prepared
from repro.decoding.search import Scorer
from repro.model.config import Hyper

if TYPE_CHECKING:
    from repro.decoding import backend as backends
    from repro.training import loop


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """The numbers and the text that a result is computed from."""

    prepared: Prepared
    task: Scorer
    in_tokens: bool  # the text is Moses tokens already
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
        """Micro-batches of an update, over all processes."""
        return self.devices * self.accumulate
