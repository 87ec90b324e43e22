"""A run that was never trained, as much of it as is asked for, whose inside can be looked at."""

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from paper_runs import paper_run

from repro.data.tokenizer import train_tokenizer
from repro.data.vocabulary import Subwords
from repro.model.build import build
from repro.model.config import Hyper
from repro.results import artifacts
from repro.results.record import Record, path
from repro.runs.outputs import note_beside
from repro.runs.table import Translation
from repro.training import checkpoint
from repro.training.run_spec import UNOPENED, RunSpec, path_of

LINES = [
    f"the {size} dog saw {n} red cats near the old house." for n in ("two", "three", "ten") for size in ("big", "small")
]
HYPER = Hyper(n_layers=2, d_model=12, d_ff=7, n_heads=3, d_k=5, d_v=4, steps=2, dropout=0.0)
RUN = "00000000000000ab"


def spec_of(**changes: Any) -> RunSpec:
    """Of the smallest run, with changes."""
    usual: dict[str, Any] = {"text": UNOPENED, "task": Translation("en-de"), "hyper": HYPER, "seed": 1}
    usual |= {"batch_tokens": 512, "batch_by": "padded_tokens", "devices": 1, "accumulate": 1, "threads": 1}
    return RunSpec(**usual | {"precision": "fp32", "backend": "torch"} | changes)


def looked_at(folder: Path, corpus: str = "grammar", system: Any = None, lines: Sequence[str] = LINES) -> Any:
    """A run with one checkpoint in its folder, of weights that are large enough to prefer something."""
    tokenizer = train_tokenizer(LINES * 9, Subwords("bpe", 340))
    torch.manual_seed(11)
    model = build(system, HYPER, tokenizer.size)
    weights = {f"model.{name}": 3 * tensor for name, tensor in model.state_dict().items()}
    (folder / "checkpoints").mkdir(parents=True)
    checkpoint.save(path_of(folder / "checkpoints", 2), {"state_dict": weights}, RUN)
    ids = [tokenizer.encode([line])[0] for line in lines]
    source = SimpleNamespace(lengths=np.array([len(one) for one in ids], np.uint16), sentence=lambda i: ids[i])
    prepared: Any = SimpleNamespace(tokenizer=tokenizer, dev=SimpleNamespace(source=source))
    spec = spec_of(batch_tokens=7, system=system)
    return SimpleNamespace(
        id=RUN,
        folder=folder,
        corpus=SimpleNamespace(name=corpus, in_tokens=False, further={}),
        prepared=prepared,
        name="h=1 seed 1",
        task=Translation("en-de"),
        spec=spec,
    )


def its_record(**other: Any) -> Record:
    settings: Any = {**paper_run().settings, "extra_length": 3}
    return paper_run("h=1", "table3_A", **{"run": RUN, "scale": "laptop", "settings": settings, **other})


def keep(run: Any, record: Record, results: Path) -> None:
    """What a sweep keeps beside the record; there are no other test sets to score."""
    note_beside(run, record, None, print, None)  # type: ignore[arg-type]
    artifacts.copy(run.folder / "record.json", path(results, record), record.run)
