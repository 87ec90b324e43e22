"""Which executor makes the runs of a sweep, from its options."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from repro.runs.executors.executor import Executor
from repro.runs.executors.in_process import InProcess
from repro.runs.executors.pool import Pool
from repro.runs.executors.slurm import Slurm, array_for
from repro.runs.parallelism import parallelism
from repro.runs.session import Session
from repro.runs.signals import Signals
from repro.runs.sizes import cell_memory
from repro.runs.table import Cell
from repro.tracking.tracker import Tracker

if TYPE_CHECKING:
    from repro.training.group import Group


def chosen(
    session: Session,
    cells: Sequence[Cell],
    again: Sequence[str] | None,
    tracker: Tracker,
    signals: Signals,
    group: "Group | None" = None,
) -> Executor:
    """Start the executor that the options ask for. Raises ValueError for impossible options.

    `again` is the command line that starts this command again, None where nothing can.
    """
    options = session.options
    in_process = InProcess(tracker, signals, group)
    on = options.on
    if on == "here":
        n_jobs, why = parallelism(cells, session.scale, options)
        if n_jobs == 1 or (again is None and options.jobs is None):
            return in_process
    if again is None:
        raise ValueError(
            f"{f'--jobs {options.jobs}' if on == 'here' else f'--on {on}'}: each run starts the experiment's file "
            "again, but this was not started from one. Type: python FILE.py and the same options."
        )
    if on == "here":
        return Pool(again, options.runs_dir, n_jobs, signals, why)
    if group:
        raise ValueError(
            f"--on {on}: the processes of a run share one machine, and are started there. Type the command once; a run "
            "on several machines is started by torchrun or srun, without --on."
        )
    numbers = [session.whole.index(cell) + 1 for cell in cells]
    if on == "slurm":
        return Slurm(array_for(session.whole, session.scale, options, again), numbers)
    from repro.runs.executors.on_ray import OnRay

    memory = max(cell_memory(cell, session.scale) for cell in cells)
    return OnRay(options, memory, numbers, len(session.whole), again, signals)
