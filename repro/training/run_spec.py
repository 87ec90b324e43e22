"""What is known of a run before torch is imported, as a sweep makes many: all that decides its result, as plain data.

And this process's place among those that share an update, and the names of checkpoint files.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from repro.decoding.search import Scorer
from repro.model.config import Hyper

if TYPE_CHECKING:
    from repro.decoding import backend as backends

Precision = Literal["fp32", "bf16", "fp64"]  # of matrix products
RECORDED = {"padded_tokens": "slots", "tokens": "tokens"}  # `batch_by` in records, run ids and folder names


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
    precision: Precision
    backend: "backends.Name"
    system: Any = None  # the row's system; None: the Transformer

    @property
    def shares(self) -> int:
        """Micro-batches of an update, over all processes; each draws its own dropout."""
        return self.devices * self.accumulate


@dataclass(frozen=True, kw_only=True)
class Peer:
    """This process's place among all that share each update, on one node or many, as told by their launcher."""

    launcher: str  # its name, for messages
    number: int  # of this process among all, from 0
    processes: int  # over all nodes
    local_number: int  # of this process within its node; also the number of its GPU
    devices: int  # processes of each node
    node: int  # from 0
    nodes: int
    address: str  # of node 0, where all processes connect
    port: int
    met_already: bool  # whether the launcher runs the store where they meet; else process 0 does

    @property
    def is_first(self) -> bool:
        """Whether this is the first process, the only one that writes, decodes and scores."""
        return self.number == 0

    @property
    def environment(self) -> Mapping[str, str]:
        """The same as torchrun's environment variables, which Lightning reads."""
        said = {
            "RANK": self.number,
            "WORLD_SIZE": self.processes,
            "LOCAL_RANK": self.local_number,
            "GROUP_RANK": self.node,
            "MASTER_ADDR": self.address,
            "MASTER_PORT": self.port,
        }
        return {name: str(value) for name, value in said.items()}

    def __str__(self) -> str:
        where = f" on node {self.node}" if self.nodes > 1 else ""
        return f"process {self.number} of {self.processes}{where}"


def path_of(folder: Path, step: int) -> Path:
    """The file of the checkpoint after optimizer step `step`."""
    return folder / f"step-{step:09d}.safetensors"


def step_of(path: Path) -> int:
    """The optimizer step after which a checkpoint was written, from its name."""
    return int(path.stem.removeprefix("step-"))


def checkpoints(folder: Path) -> list[Path]:
    """All checkpoint files of a run, oldest first; not yet verified."""
    return sorted(folder.glob("step-*.safetensors"))
