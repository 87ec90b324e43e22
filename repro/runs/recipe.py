"""What a run is made of: text, numbers and choices, and which of them decide its result. No torch: a sweep asks it."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from repro.data.batch_by import RECORDED
from repro.data.shards import Prepared
from repro.model.config import Hyper, written
from repro.results.provenance import task_digest
from repro.results.systems import system_text
from repro.results.task import TRANSLATION
from repro.runs.task import Task

if TYPE_CHECKING:
    from repro.decoding import backend as backends
    from repro.training import loop


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """The numbers and the text that a result is computed from."""

    prepared: Prepared
    task: Task
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
    strategy: "loop.Strategy" = "ddp"
    system: Any = None  # of the row; None: the Transformer

    @property
    def shares(self) -> int:
        """Micro-batches of an update, over all processes."""
        return self.devices * self.accumulate

    @property
    def decides(self) -> dict[str, Any]:
        """All that decides the result beside the code and the text itself, by fields."""
        return {
            **{f"hyper.{name}": value for name, value in written(vars(self.hyper)).items()},
            **({"system": system_text(self.system)} if self.system else {}),
            "seed": self.seed,
            "tokenizer": self.prepared.tokenizer.sha256,
            "data": self.prepared.data_hash,
            "in_tokens": self.in_tokens,  # how it is scored
            "batch_tokens": self.batch_tokens,
            "fill": RECORDED[self.batch_by],
            "shares": self.shares,  # each has its own dropout
            "threads": self.threads,  # sums are made in other orders
            "precision": self.precision,
            **({"strategy": self.strategy} if self.strategy != "ddp" else {}),  # as with threads
            **self.task.search.settings,
            **self._task,
            "engine": self.backend,
        }

    @property
    def _task(self) -> dict[str, str]:
        """Which task it is, and the code of one that is not in this file's imports; nothing where it is translation."""
        if self.task.facts == TRANSLATION:
            return {}
        return {"task": self.task.facts["name"], "task_code": task_digest(self.task)}
