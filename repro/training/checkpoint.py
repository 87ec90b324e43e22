"""Checkpoints: one safetensors file a checkpoint, whole or absent, verified whenever it is read.

A checkpoint holds weights, optimizer moments and Lightning's counters, no iterator and no random state: data order
and random numbers are functions of the step. Everything but the tensors is JSON in the file's own header, with the
run's id and a SHA-256 over it and all tensors. Nothing in it is code.
"""

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import torch
from lightning.pytorch.plugins.io import CheckpointIO
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from repro.durable import replacing

FORMAT = "1"
_NAME = "step-{:09d}.safetensors"


class CheckpointError(ValueError):
    """A checkpoint of another run or another format: going on from it would be wrong."""


class DamagedCheckpoint(CheckpointError):
    """A checkpoint whose bytes are not those that were written."""


def path_of(folder: Path, step: int) -> Path:
    """The file of the checkpoint after optimizer step `step`."""
    return folder / _NAME.format(step)


def step_of(path: Path) -> int:
    """The optimizer step after which a checkpoint was written, from its name."""
    return int(path.stem.removeprefix("step-"))


def checkpoints(folder: Path) -> list[Path]:
    """All checkpoint files of a run, oldest first; not yet verified."""
    return sorted(folder.glob("step-*.safetensors"))


def save(path: Path, state: dict[str, Any], run: str) -> None:
    """Write a nested dictionary of plain values and tensors."""
    tensors: dict[str, Tensor] = {}
    header = {"format": FORMAT, "run": run, "state": json.dumps(_split(state, tensors), allow_nan=False)}
    header["sha256"] = _digest(header, tensors)
    with replacing(path) as partial:
        save_file(tensors, partial, metadata=header)


def load(path: Path, run: str) -> dict[str, Any]:
    """Read a checkpoint of this run back, or say what is wrong with it (`CheckpointError`)."""
    try:
        with safe_open(path, framework="pt") as file:
            header = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a dictionary)
    except (SafetensorError, OSError) as error:
        raise DamagedCheckpoint(
            f"{path} is no readable checkpoint ({error}). Delete it to go on from the one before."
        ) from error
    if header.get("format") != FORMAT:
        raise CheckpointError(
            f"{path} has checkpoint format {header.get('format')}, expected {FORMAT}. "
            f"Delete its run folder to train anew."
        )
    if header.get("sha256") != _digest(header, tensors):
        raise DamagedCheckpoint(
            f"{path} is damaged: its content does not have the SHA-256 written in it. "
            f"Delete it to go on from the one before."
        )
    if header["run"] != run:
        raise CheckpointError(
            f"{path} is a checkpoint of run {header['run']}, expected run {run}: other settings, data or code. "
            f"Move it back to the folder of its own run."
        )
    state: dict[str, Any] = _join(json.loads(header["state"]), tensors)
    return state


class SafetensorsIO(CheckpointIO):
    """How Lightning saves and loads checkpoints of one run."""

    def __init__(self, run: str) -> None:
        self.run = run

    def save_checkpoint(self, checkpoint: dict[str, Any], path: Any, storage_options: Any = None) -> None:
        save(Path(path), checkpoint, self.run)

    def load_checkpoint(self, path: Any, map_location: Any = None, weights_only: bool | None = None) -> dict[str, Any]:
        return load(Path(path), self.run)

    def remove_checkpoint(self, path: Any) -> None:
        os.unlink(path)


def weights(path: Path, run: str) -> dict[str, Tensor]:
    """The model's own weights in a checkpoint, without optimizer state."""
    prefix = "model."
    state = load(path, run)["state_dict"]
    return {name.removeprefix(prefix): tensor for name, tensor in state.items() if name.startswith(prefix)}


def _split(value: Any, tensors: dict[str, Tensor], place: str = "") -> Any:
    """JSON for everything but tensors, which move to `tensors` and leave their name."""
    if isinstance(value, Tensor):
        name = f"{len(tensors)}{place}"  # numbered, as two places may read alike: 1 and "1", a/b and a, b
        tensors[name] = value.detach().cpu().contiguous()
        return {"tensor": name}
    if isinstance(value, dict):
        items = [(f"{place}/{key}", key, item) for key, item in value.items()]
        return {"dict": [[_split(key, tensors, at), _split(item, tensors, at)] for at, key, item in items]}
    if isinstance(value, list | tuple):
        kind = "tuple" if isinstance(value, tuple) else "list"
        return {kind: [_split(item, tensors, f"{place}/{i}") for i, item in enumerate(value)]}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise CheckpointError(
        f"A checkpoint holds plain values and tensors only; {place or 'it'} is a {type(value).__name__}."
    )


def _join(value: Any, tensors: dict[str, Tensor]) -> Any:
    if not isinstance(value, dict):
        return value
    ((kind, content),) = value.items()
    if kind == "tensor":
        return tensors[content]
    if kind == "dict":
        return {_join(key, tensors): _join(item, tensors) for key, item in content}
    items = [_join(item, tensors) for item in content]
    return tuple(items) if kind == "tuple" else items


def _digest(header: dict[str, str], tensors: dict[str, Tensor]) -> str:
    digest = hashlib.sha256()
    for part in ("format", "run", "state"):
        digest.update(f"{part}={header.get(part)}\0".encode())
    for name in sorted(tensors):
        tensor = tensors[name]
        digest.update(f"{name}:{tensor.dtype}:{tuple(tensor.shape)}\0".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()
