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
    except OSError as error:  # for want of memory or of a server: nothing is damaged
        tell(f"{run.name}: finished; its checkpoints cannot be read now ({error}). Type the command again.")
        return None
    except CheckpointError as error:
        tell(
            f"{run.name}: finished, but what is made of its checkpoints is left out, since they cannot be "
            f"read any more ({type(error).__name__} in {folder}). To be told no more of it delete that folder; to "
            f"train the run again delete {run.folder}."
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
