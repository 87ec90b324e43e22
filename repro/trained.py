"""What a finished run left to work with: its model with the averaged weights, and its tokenizer."""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from repro import record
from repro.hyper import Hyper
from repro.record import Record

if TYPE_CHECKING:
    from repro.data.tokenizer import Tokenizer
    from repro.model.transformer import Transformer


@dataclass(frozen=True, kw_only=True)
class Trained:
    """A finished run, ready to be used."""

    record: Record
    model: "Transformer"  # in evaluation mode
    tokenizer: "Tokenizer"


def open_run(folder: Path, cache: Path) -> Trained:
    """The run of `folder` (runs/<id>); its tokenizer is looked for in `cache`. A ValueError says what is missing."""
    from repro.model.transformer import Transformer
    from repro.training.fit import averaged

    file = folder / "record.json"
    if not file.exists():
        raise ValueError(f"expected the folder of a finished run, such as runs/<id>, got {folder} without record.json.")
    run = record.load(file)
    again = f"Run {run.table} at scale {run.scale} again."
    hyper = Hyper(**run.hyper)
    tokenizer = _tokenizer(cache, run.tokenizer["sha256"], again)
    model = Transformer(hyper, tokenizer.size).eval()
    weights = averaged(folder / "checkpoints", run.run, hyper.averaged_steps)
    try:
        model.load_state_dict(weights)
    except RuntimeError as error:
        raise ValueError(
            f"{folder}: its weights are those of another model than repro.model now builds. {again}"
        ) from error
    return Trained(record=run, model=model, tokenizer=tokenizer)


def _tokenizer(cache: Path, sha256: str, again: str) -> "Tokenizer":
    from repro.data.tokenizer import Tokenizer

    files = sorted(cache.glob("*/tokenizer/tokenizer.json"))
    for file in files:
        if hashlib.sha256(file.read_bytes()).hexdigest() == sha256:
            return Tokenizer.load(file)
    raise ValueError(
        f"{cache}: expected the tokenizer with SHA-256 {sha256[:12]} that the run was trained with, got {len(files)} "
        f"others. Give the --cache-dir of that run. {again}"
    )
