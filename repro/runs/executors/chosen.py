"""Which executor makes the runs of a sweep, from its options."""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from repro.runs.cards import visible
from repro.runs.executors.executor import Executor, command_of_file
from repro.runs.executors.in_process import InProcess
from repro.runs.executors.pool import LocalWorker, Pool
from repro.runs.executors.slurm import Slurm, array_for
from repro.runs.parallelism import parallelism
from repro.runs.session import Session
from repro.runs.signals import Signals
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
    if options.on == "slurm":
        if group:
            raise ValueError("--on slurm: each of several processes would submit the array. Start one, without srun.")
        return Slurm(array_for(session.whole, session.scale, options, again), signals)
    if options.on.startswith("ray"):
        return _on_ray(session, cells, again, signals)
    in_process = InProcess(options.cache_dir, tracker, signals, group)
    n_jobs, why = parallelism(cells, session.scale, options)
    if n_jobs == 1 or (again is None and options.jobs is None):
        return in_process
    again = command_of_file(again, f"--jobs {options.jobs}")
    environment = dict(os.environ)
    cards = list(visible(environment))

    def start(number: int) -> LocalWorker:
        own = {"CUDA_VISIBLE_DEVICES": cards[(number - 1) % len(cards)]} if cards else {}
        return LocalWorker(again, options.runs_dir, number, environment | own)

    pool = Pool(start, n_jobs, signals, about=f"{n_jobs} runs at a time: {why}.")
    pool.begin()
    return pool


def _on_ray(session: Session, cells: Sequence[Cell], again: Sequence[str] | None, signals: Signals) -> Executor:
    options = session.options
    again = command_of_file(again, f"--on {options.on}")
    if (options.num_nodes or 1) > 1:
        raise ValueError(
            f"--on {options.on} --num-nodes {options.num_nodes}: the processes of a run share one node of the cluster. "
            "Leave --num-nodes out, or start a run on several by torchrun."
        )
    from repro.runs.executors.on_ray import OnRay

    return OnRay(session, cells, again, signals)
