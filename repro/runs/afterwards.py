"""What is made of a finished run later, from the checkpoints that it left: by whoever has it, as by who trained it.

The same command makes it for runs that finished before. There it is made by the process of the sweep, which has threads
and settings of its own, and where a checkpoint may have been damaged since.
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
    """Whether those whose average is scored are in its folder."""
    folder = run.folder / "checkpoints"
    return all(path_of(folder, step).exists() for step in run.spec.hyper.averaged_steps)


def kept_weights(run: "RunDir", tell: Say) -> "Mapping[str, Tensor] | None":
    """The averaged weights; None where a checkpoint cannot be read, which `tell` is told: the record needs none."""
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
    """The threads and the settings of the process that made the run, so that numbers are the same to the bit."""
    import torch

    before = torch.get_num_threads()
    run.trial.tune()
    try:
        yield
    finally:
        torch.set_num_threads(before)
