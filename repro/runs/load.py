"""What a finished run left to work with: its model with the averaged weights, and its tokenizer."""

import hashlib
import json
import runpy
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from repro.model.config import Hyper
from repro.results import record
from repro.results.places import EXPERIMENTS, experiment_files
from repro.results.provenance import system_text
from repro.results.record import Record
from repro.tracking.run_folder import RECORD

if TYPE_CHECKING:
    from torch import Tensor

    from repro.data.tokenizer import Tokenizer
    from repro.model.protocol import TranslationSystem

TOKENIZER = "tokenizer.json"  # in the folder of a run
ORIGIN = "run.json"  # in an exported folder: whose weights these are, and in which format
TENSORS = "model.safetensors"  # there


@dataclass(frozen=True, kw_only=True)
class Trained:
    """A finished run, ready to be used."""

    record: Record
    model: "TranslationSystem"  # in evaluation mode
    tokenizer: "Tokenizer"


def finished(folder: Path) -> Record:
    """The record of the run in `folder` (runs/<id>)."""
    file = folder / RECORD
    if not file.exists():
        raise ValueError(f"expected the folder of a finished run, such as runs/<id>; {folder} has no record.json.")
    return record.load(file)


def open_run(folder: Path, system: Any = None) -> Trained:
    """The run of `folder` (runs/<id>, or its export to safetensors), ready for work. A ValueError says what is missing.

    `system` is that of its row; None: the one in the experiment file.
    """
    from repro.data.tokenizer import Tokenizer
    from repro.model.build import build
    from repro.training.checkpoint import averaged

    run = finished(folder)
    again = f"Delete {folder} and run {run.table} with the same options again."
    hyper, file, sha256 = Hyper(**run.hyper), folder / TOKENIZER, run.tokenizer["sha256"]
    kept = _exported_tensors(folder)
    if not file.exists() or hashlib.sha256(file.read_bytes()).hexdigest() != sha256:
        why = "which is damaged" if file.exists() else "which is not there"
        raise ValueError(f"expected the run's tokenizer, with SHA-256 {sha256[:12]}, in {file}, {why}. {again}")
    tokenizer = Tokenizer.load(file)
    model = build(system_of(run, system), hyper, tokenizer.size).eval()
    weights = kept or averaged(folder / "checkpoints", run.run, hyper.averaged_steps)
    try:
        model.load_state_dict(weights)
    except RuntimeError as error:
        raise ValueError(f"{folder}: its weights do not fit the model that repro.model builds now. {again}") from error
    return Trained(record=run, model=model, tokenizer=tokenizer)


def _exported_tensors(folder: Path) -> "dict[str, Tensor] | None":
    """The weights in a folder that was exported to "safetensors"; None where the folder is no export.

    Raises ValueError for another format and for weights that are not those that were written.
    """
    origin = origin_of(folder)
    if "format" not in origin:
        return None
    if origin["format"] != "safetensors":
        raise ValueError(
            f"{folder} is an export to {origin['format']}, for others to open. Give the run itself, or export it with "
            "--format safetensors."
        )
    contents = (folder / TENSORS).read_bytes()
    if hashlib.sha256(contents).hexdigest() != origin.get("weights"):
        raise ValueError(f"{folder / TENSORS} has changed since it was exported. Export the run again.")
    import safetensors.torch

    return safetensors.torch.load(contents)


def origin_of(folder: Path) -> dict[str, Any]:
    """What an exported folder says of itself; empty where nothing can be read."""
    try:
        origin = json.loads((folder / ORIGIN).read_bytes())
    except (OSError, ValueError):
        return {}
    return origin if isinstance(origin, dict) else {}


def system_of(run: Record, given: Any = None) -> Any:
    """The system of a run: the one that is `given`, or that of its row in the experiment file; None: the Transformer.

    The file is found by the table's name alone, in the folder `experiments` here or of this code, and is executed: a
    record names its row, never the place of code. Raises ValueError where there is none, or another system.
    """
    system, file = given, "its file"
    if given is None and run.system is not None:
        places = [folder / f"{run.table}.py" for folder in (EXPERIMENTS, experiment_files())]
        if (found := next((place for place in places if place.is_file()), None)) is None:
            raise ValueError(
                f"Run {run.run} is a {run.system} of {run.table}, of which there is no file in the folder experiments. "
                f"Type the command where it is; for a row of a program, repro.load({run.run!r}, system=...)."
            )
        file, rows = str(found), experiment(found).get("ROWS", [])
        system = next((row.system for row in rows if row.name == run.row), None)
    if (now := system_text(system)) != (run.system or ""):
        raise ValueError(
            f"Run {run.run} is a {run.system or 'Transformer'}, and row {run.row!r} of {file} is "
            f"{now or 'the Transformer or gone'}. Give the system of its row, or run it again."
        )
    return system


def experiment(file: Path) -> dict[str, Any]:
    """What an experiment file defines, by name. It is executed, without making runs, and can import its neighbours."""
    sys.path.append(str(file.parent))
    try:
        return runpy.run_path(str(file), run_name=file.stem)
    finally:
        sys.path.remove(str(file.parent))
