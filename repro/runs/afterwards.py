"""The weights and settings of a finished run, for what is made from its checkpoints after the record.

The same command also makes it for runs that finished earlier. Then the process of the sweep makes it, which has threads
and settings of its own, and a checkpoint may have been damaged since.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from repro.training.checkpoint_files import path_of

if TYPE_CHECKING:
    from torch import Tensor

    from repro.runs.run_dir import RunDir

Say = Callable[[str], object]


def has_checkpoints(run: "RunDir") -> bool:
    """Whether the checkpoints whose average is scored are in the run's folder."""
    folder = run.folder / "checkpoints"
    return all(path_of(folder, step).exists() for step in run.spec.hyper.averaged_steps)


def kept_weights(run: "RunDir", tell: Say) -> "Mapping[str, Tensor] | None":
    """The averaged weights; None where a checkpoint cannot be read: `tell` is told, and the record stands."""
    from repro.training.averaging import averaged
    from repro.training.checkpoint import CheckpointError

    folder = run.folder / "checkpoints"
    try:
        return averaged(folder, run.id, run.spec.hyper.averaged_steps)
    except OSError as error:  # too little memory, or a server that does not answer: nothing is damaged
        tell(f"{run.name} is finished. Its checkpoints cannot be read now ({error}); type the command again later.")
        return None
    except CheckpointError as error:
        tell(
            f"{run.name} is finished, and its record stays. Its checkpoints in {folder} are damaged "
            f"({type(error).__name__}), so nothing more can be made of them. Delete that folder to hide this message, "
            f"or {run.folder} to train the run again."
        )
        return None


@contextmanager
def as_trained(run: "RunDir") -> Iterator[None]:
    """Use the threads and settings of the process that made the run, so that numbers are the same to the bit."""
    import torch

    before = torch.get_num_threads()
    run.trial.tune()
    try:
        yield
    finally:
        torch.set_num_threads(before)
