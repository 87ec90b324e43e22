"""Checkpoints, and their average: one safetensors file each, complete or absent, verified whenever it is read.

A checkpoint holds weights, optimizer moments, Lightning's counters and the sums for the next line of the journal. It
holds no iterator and no random state: data order and random numbers are functions of the step. Everything but the
tensors is JSON in the file's header, with the run's id. The last tensor is the SHA-256 of all bytes before it. Nothing
in the file is code.
"""

import errno
import hashlib
import json
import os
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from repro.storage.atomic import Hashed, write_bytes
from repro.training.run_spec import checkpoints as checkpoints
from repro.training.run_spec import path_of as path_of
from repro.training.run_spec import step_of as step_of

FORMAT = "3"
SPARE = 2  # undamaged checkpoints that are always kept, in case the disk damages one
_DIGEST, _DIGEST_BYTES = "sha256", 32
_BLOCK = 2**20
_DTYPES = {  # names of types in the format
    torch.float64: "F64", torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16",
    torch.int64: "I64", torch.int32: "I32", torch.int16: "I16", torch.int8: "I8", torch.uint8: "U8", torch.bool: "BOOL",
}  # fmt: skip
_found_whole: set[tuple[Path, int, int, int]] = set()  # states of files that this process wrote or verified


class CheckpointError(ValueError):
    """A checkpoint of another run or another format: going on from it would be wrong."""


class DamagedCheckpoint(CheckpointError):
    """A checkpoint whose bytes differ from those that were written."""


def save(path: Path, state: dict[str, Any], run: str) -> None:
    """Write a nested dictionary of plain values and tensors; at most one tensor is copied at a time.

    We do not use the library's writer, which leaves files with unknown names behind when it is killed. The library
    reads what is written here.
    """
    tensors: dict[str, Tensor] = {}
    about = {"format": FORMAT, "run": run, "state": json.dumps(parted(state, tensors), allow_nan=False)}
    # wide types first, so that each tensor begins at a multiple of its width; the digest last
    order = sorted(tensors, key=lambda name: -tensors[name].element_size())
    header: dict[str, Any] = {"__metadata__": about}
    end = 0
    for name in order:
        begin, end = end, end + tensors[name].nbytes
        header[name] = {
            "dtype": _DTYPES[tensors[name].dtype],
            "shape": list(tensors[name].shape),
            "data_offsets": [begin, end],
        }
    header[_DIGEST] = {"dtype": "U8", "shape": [_DIGEST_BYTES], "data_offsets": [end, end + _DIGEST_BYTES]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)

    def write(file: Hashed) -> None:
        file.write(len(text).to_bytes(8, "little") + text)
        for name in order:
            if tensors[name].nbytes:
                file.write(tensors[name].cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data)
        file.write(file.sha256.digest())

    write_bytes(path, write, needed=8 + len(text) + end + _DIGEST_BYTES)
    _found_whole.add(_state(path))


def load(path: Path, run: str, needed: Collection[str] = ()) -> dict[str, Any]:
    """Read a checkpoint of this run. Raises CheckpointError if it is not usable or lacks one of the keys `needed`."""
    about = _checked(path, run)
    with safe_open(path, framework="pt") as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a dictionary)
    try:
        state: dict[str, Any] = rejoined(json.loads(about["state"]), tensors)
        if lacking := sorted({*needed} - state.keys()):
            raise KeyError(*lacking)
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
        raise CheckpointError(
            f"{path} has the SHA-256 that is written in it, and does not hold what a checkpoint does ({error!r}): this "
            "package did not write it. Delete it, and the run goes on from the one before."
        ) from error
    return state


def _checked(path: Path, run: str) -> dict[str, str]:
    """The metadata of a checkpoint. Raises CheckpointError if it is damaged or of another run or format.

    A file that cannot be opened now, for lack of memory or because a server is down, is not damaged: OSError.
    """
    if path.exists() and not path.is_file():  # reading from a pipe might never end
        raise DamagedCheckpoint(f"{path} is no file. Delete it, and the run goes on from the one before.")
    try:
        whole = _has_own_digest(path)
        with safe_open(path, framework="pt") as file:
            about = file.metadata() or {}
    except (SafetensorError, OSError) as error:
        if isinstance(error, OSError) and error.errno != errno.EIO:
            raise
        raise DamagedCheckpoint(
            f"{path} is not a readable checkpoint ({error}). Delete it, and the run goes on from the one before."
        ) from error
    if not whole:
        raise DamagedCheckpoint(
            f"{path} is damaged: its content does not have the SHA-256 written in it. "
            f"Delete it, and the run goes on from the one before."
        )
    if (found := about.get("format")) != FORMAT:
        raise CheckpointError(
            f"{path} has checkpoint format {found}, expected {FORMAT}: another version of this package wrote it. Go on "
            "with that version, or delete its run folder to train anew."
        )
    if about.get("run") != run:
        raise CheckpointError(
            f"{path} is a checkpoint of run {about.get('run')}, expected run {run}: other settings, data or code. "
            f"Move it back to the folder of its own run."
        )
    return about


def prune(folder: Path, keep: Collection[int]) -> None:
    """Delete checkpoints, except those after the steps `keep` and the last `SPARE` undamaged ones.

    A damaged one does not count, so the undamaged ones before it stay.
    """
    whole = 0
    for path in reversed(checkpoints(folder)):
        if whole < SPARE:
            whole += _is_whole(path)
        elif step_of(path) not in keep:
            path.unlink()


def _is_whole(path: Path) -> bool:
    """Whether a file is undamaged: read only once while it stays the same, and never if this process wrote it."""
    if (state := _state(path)) in _found_whole:
        return True
    whole = _has_own_digest(path)
    if whole:
        _found_whole.add(state)
    return whole


def _state(path: Path) -> tuple[Path, int, int, int]:
    status = path.stat()
    return path, status.st_ino, status.st_size, status.st_mtime_ns


def _has_own_digest(path: Path) -> bool:
    """Whether the file ends with the SHA-256 of all bytes before."""
    if not path.is_file() and path.exists():
        return False
    with open(path, "rb") as file:
        rest = os.fstat(file.fileno()).st_size - _DIGEST_BYTES
        digest = hashlib.sha256()
        while rest > 0 and (block := file.read(min(rest, _BLOCK))):
            digest.update(block)
            rest -= len(block)
        return file.read() == digest.digest()


def newest_whole(folder: Path, run: str) -> Path | None:
    """The newest undamaged checkpoint; damaged ones are reported, renamed and skipped."""
    for path in reversed(checkpoints(folder)):
        try:
            _checked(path, run)
        except DamagedCheckpoint as error:
            print(f"Warning: {error}\nGoing on from the checkpoint before it.", flush=True)
            path.rename(path.with_suffix(".damaged"))
        else:
            return path
    return None


def weights(path: Path, run: str) -> dict[str, Tensor]:
    """The model's own weights in a checkpoint, without optimizer state."""
    prefix = "model."
    state = load(path, run, ("state_dict",))["state_dict"]
    return {name.removeprefix(prefix): tensor for name, tensor in state.items() if name.startswith(prefix)}


# Averages. Paper: section 6.1 (the last 5 for base, the last 20 for big)


def averaged(folder: Path, run: str, steps: range) -> dict[str, Tensor]:
    """The weights to decode with: the mean of the checkpoints after `steps`. Paper: section 6.1."""
    paths = [path_of(folder, step) for step in steps]
    if missing := [path.name for path in paths if not path.exists()]:
        raise ValueError(
            f"The row averages {len(paths)} checkpoints, but {folder} lacks {', '.join(missing)}. "
            f"Delete {folder.parent} and run the row again."
        )
    return average(weights(path, run) for path in paths)


def last_mean(folder: Path, run: str, steps: range) -> tuple[list[int], dict[str, Tensor]]:
    """The steps among `steps` whose checkpoints exist undamaged, and the mean of those checkpoints.

    The paper does not score it in Table 3; `docs/deviations.md` says why we do. Runs from before so many checkpoints
    were kept have fewer. A damaged checkpoint is left out, with a warning.
    """
    found: list[int] = []

    def whole() -> Iterator[dict[str, Tensor]]:
        for path in (path for step in steps if (path := path_of(folder, step)).exists()):
            try:
                state = weights(path, run)
            except DamagedCheckpoint as error:
                print(f"Warning: {error}\nThe mean of the last checkpoints is taken without it.", flush=True)
            else:
                found.append(step_of(path))
                yield state

    mean = average(whole())
    return found, mean


def average(states: Iterable[dict[str, Tensor]]) -> dict[str, Tensor]:
    """The mean of each weight over several models, summed in float64 and returned in the weight's own type.

    All states need the same names and shapes. Only one state is in memory at a time.
    """
    total: dict[str, Tensor] = {}
    dtypes: dict[str, torch.dtype] = {}
    n = 0
    for n, state in enumerate(states, start=1):
        if n == 1:
            dtypes = {name: tensor.dtype for name, tensor in state.items()}
            total = {name: torch.zeros_like(tensor, dtype=torch.float64) for name, tensor in state.items()}
        if state.keys() != total.keys():
            odd = ", ".join(sorted(state.keys() ^ total.keys()))
            raise ValueError(f"Checkpoint {n} of the average has other weights than the first: {odd}.")
        for name, tensor in state.items():
            if tensor.shape != total[name].shape:
                raise ValueError(
                    f"Checkpoint {n} of the average has another shape of {name} than the first: expected "
                    f"{[*total[name].shape]}, got {[*tensor.shape]}."
                )
            total[name] += tensor
    if n == 0:
        raise ValueError("Nothing to average: expected at least one checkpoint, got none.")
    return {name: (tensor / n).to(dtypes[name]) for name, tensor in total.items()}


# A nested state as JSON, and its tensors


def parted(value: Any, tensors: dict[str, Tensor], place: str = "") -> Any:
    """Convert a nested value to JSON; each tensor moves to `tensors` and is replaced by its name there."""
    if isinstance(value, Tensor):
        name = f"{len(tensors)}{place}"  # numbered, as two places may look alike: 1 and "1", a/b and a, b
        tensors[name] = value.detach()  # stays on its device: tensors are written one at a time
        return {"tensor": name}
    if isinstance(value, dict):
        items = [(f"{place}/{key}", key, item) for key, item in value.items()]
        return {"dict": [[parted(key, tensors, at), parted(item, tensors, at)] for at, key, item in items]}
    if isinstance(value, list | tuple):
        kind = "tuple" if isinstance(value, tuple) else "list"
        return {kind: [parted(item, tensors, f"{place}/{i}") for i, item in enumerate(value)]}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise CheckpointError(
        f"A checkpoint holds plain values and tensors only; {place or 'it'} is a {type(value).__name__}."
    )


def rejoined(value: Any, tensors: dict[str, Tensor]) -> Any:
    """The nested value that was taken apart by `parted`. Raises ValueError for unknown content."""
    if not isinstance(value, dict):
        return value
    ((kind, content),) = value.items()
    if kind == "tensor":
        return tensors[content]
    if kind == "dict":
        return {rejoined(key, tensors): rejoined(item, tensors) for key, item in content}
    if kind not in ("list", "tuple"):
        raise ValueError(f"expected tensor, dict, list or tuple, got {kind!r}")
    items = [rejoined(item, tensors) for item in content]
    return tuple(items) if kind == "tuple" else items
