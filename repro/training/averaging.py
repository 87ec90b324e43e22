"""Averaging of checkpoints. Paper: section 6.1 (the last 5 for base, the last 20 for big)."""

from collections.abc import Iterable, Iterator
from pathlib import Path

import torch
from torch import Tensor

from repro.training import checkpoint


def averaged(folder: Path, run: str, steps: range) -> dict[str, Tensor]:
    """The weights to decode with: the mean of the checkpoints after `steps`. Paper: section 6.1."""
    paths = [checkpoint.path_of(folder, step) for step in steps]
    if missing := [path.name for path in paths if not path.exists()]:
        raise ValueError(
            f"The row averages {len(paths)} checkpoints, but {folder} lacks {', '.join(missing)}. "
            f"Delete {folder.parent} and run the row again."
        )
    return average(checkpoint.weights(path, run) for path in paths)


def last_mean(folder: Path, run: str, steps: range) -> tuple[list[int], dict[str, Tensor]]:
    """The steps among `steps` whose checkpoints exist undamaged, and the mean of those checkpoints.

    The paper does not score it in Table 3; `docs/deviations.md` says why we do. Runs from before so many checkpoints
    were kept have fewer. A damaged checkpoint is left out, with a warning.
    """
    found: list[int] = []

    def whole() -> Iterator[dict[str, Tensor]]:
        for path in (path for step in steps if (path := checkpoint.path_of(folder, step)).exists()):
            try:
                weights = checkpoint.weights(path, run)
            except checkpoint.DamagedCheckpoint as error:
                print(f"Warning: {error}\nThe mean of the last checkpoints is taken without it.", flush=True)
            else:
                found.append(checkpoint.step_of(path))
                yield weights

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
