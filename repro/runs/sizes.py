"""A forecast of the memory and disk that runs take, and what is free. Measured constants; no torch."""

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Any

import psutil

from repro.corpora.download.sources import COLLECTIONS
from repro.model.config import Hyper
from repro.model.cost import PAPER_VOCABULARY, n_parameters
from repro.results.processor import processor
from repro.runs.rates import this_machine
from repro.runs.scales import Scale
from repro.runs.table import Cell

CGROUP = Path("/sys/fs/cgroup")
FLOAT = 4  # bytes
IMPORTS = 760_000_000  # PyTorch, Lightning, the tracker, and what the allocator keeps of what was freed
OF_CUDA = 2_000_000_000  # of its libraries in the host's memory: a guess, no GPU was at hand
COPIES = 5  # of each parameter: itself, its gradient, Adam's two moments, and the average that is scored
LARGE_PRODUCT = 2**23  # as in `repro/training/cpu_tuning.py`: from this size on oneDNN makes products, and keeps memory
LOGITS = 2_048  # rows that the loss makes at once, at most, with their softmax and gradient (`repro/model/loss.py`)
KEPT_SHAPES, KEPT_A_TOKEN = 600_000_000, 75_000  # bytes that it keeps: for all shapes, and for a token of a batch
WIDE, KEPT_WIDE = "avx512f", 500_000_000  # a processor with these vectors has code made for small products as well
BYTES_A_PARAMETER = 12  # in a checkpoint: the weight and Adam's two moments
SPARE_CHECKPOINTS = 2  # the newest, beside those that are scored
BYTES_A_CHECKPOINT, BYTES_A_LINE = 64_000, 250  # at most: names and counters of a checkpoint; a line of the journal
BYTES_A_TOKEN, BYTES_AN_OFFSET = 2, 4


def expected_vocabulary(scale: Scale, pair: str) -> int:
    """The size of the vocabulary; the paper's for one that comes with its text."""
    return scale.subwords(pair).size or PAPER_VOCABULARY


def run_memory(
    hyper: Hyper, scale: Scale, pair: str, system: Any = None, vectors: Collection[str] | None = None
) -> int:
    """Peak resident bytes of a process that makes this run here; on a GPU those of the host.

    `vectors` are those of the processor (None: this one's). For each token and layer, the backward pass keeps what
    enters and leaves the products, norms and dropout of both stacks. `tests/runs/test_sizes.py` compares the forecast
    with the peaks of published runs.
    """
    vocabulary = expected_vocabulary(scale, pair)
    always = IMPORTS + COPIES * FLOAT * n_parameters(hyper, vocabulary, system)
    if this_machine().is_gpu:
        return always + OF_CUDA
    tokens = min(scale.batch_tokens, scale.device_tokens)
    width = hyper.n_heads * (2 * hyper.d_k + hyper.d_v)
    activations = tokens * hyper.n_layers * (14 * hyper.d_model + 6 * hyper.d_ff + 6 * width) * FLOAT
    logits = 2 * min(tokens, LOGITS) * vocabulary * FLOAT
    kept = KEPT_WIDE if WIDE in (processor().vectors if vectors is None else vectors) else 0
    if tokens * hyper.d_model**2 >= LARGE_PRODUCT:
        kept = KEPT_SHAPES + KEPT_A_TOKEN * tokens
    return always + activations + logits + kept


def cell_memory(cell: Cell, scale: Scale) -> int:
    """The same for a cell of a sweep at this scale."""
    return run_memory(cell.hyper, cell.task.at(scale), cell.task.name, cell.row.system)


def free_memory(cgroup: Path = CGROUP) -> int:
    """Bytes that new processes may take without pushing others out.

    Of this machine, or of the control group that this process is in, whichever leaves less; its file cache is free.
    """
    free = psutil.virtual_memory().available
    try:
        most, used = (int((cgroup / f"memory.{name}").read_bytes()) for name in ("max", "current"))
        lines = (cgroup / "memory.stat").read_bytes().split(b"\n")
    except (OSError, ValueError):  # no such file, or "max"
        return free
    cached = sum(int(line.split()[1]) for line in lines if line.startswith(b"inactive_file "))
    return min(free, max(0, most - used + cached))


def run_bytes(hyper: Hyper, scale: Scale, pair: str, system: Any = None, *, in_training: bool = False) -> int:
    """Bytes of checkpoints and journal that a finished run keeps; with `in_training`, the most until it is scored."""
    n = n_parameters(hyper, expected_vocabulary(scale, pair), system)
    checkpoint = BYTES_A_PARAMETER * n + BYTES_A_CHECKPOINT
    lines = hyper.steps // scale.log_every + hyper.steps // scale.validate_every + 1
    scored = hyper.kept_steps if in_training else hyper.averaged_steps
    return checkpoint * (SPARE_CHECKPOINTS + len(scored)) + lines * BYTES_A_LINE


def sweep_bytes(of_runs: Iterable[tuple[Hyper, Scale, str, Any]]) -> int:
    """Bytes on the disk for runs: `run_bytes` of each, and the most that one of them takes beyond that in training."""
    both = [(run_bytes(*one), run_bytes(*one, in_training=True)) for one in of_runs]
    return sum(kept for kept, _ in both) + max((most - kept for kept, most in both), default=0)


def disk_needed(asked: Sequence[Cell], scale: Scale) -> str:
    """In words, the disk space that the runs and their text will take."""
    checkpoints = sweep_bytes((cell.hyper, cell.task.at(scale), cell.task.name, cell.row.system) for cell in asked)
    parts = [f"checkpoints at most {size(checkpoints)}"]
    archives: dict[str, int] = {}  # two pairs may share some
    for pair in dict.fromkeys(cell.task.name for cell in asked):
        if collection := COLLECTIONS.get(f"{scale.corpus}-{pair}"):
            archives |= {source.archive: source.size_at_most for source in collection.sources}
            ids = 2 * collection.n_train * (BYTES_A_TOKEN * scale.sentence_tokens + BYTES_AN_OFFSET)
            parts.append(f"{scale.corpus} {pair} {size(collection.text_bytes)} of text, {size(ids)} of ids")
    parts += [f"archives at most {size(sum(archives.values()))}"] if archives else []
    return "; ".join(parts)


def size(n_bytes: float) -> str:
    """Bytes as a person says them."""
    for unit, name in ((1e9, "GB"), (1e6, "MB")):
        if n_bytes >= unit:
            return f"{n_bytes / unit:.1f} {name}"
    return f"{n_bytes / 1e3:.0f} kB"
