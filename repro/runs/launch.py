"""The processes that share each update of a run: who started them; and `--devices N`, which starts them itself.

On one machine, PyTorch's launcher starts this command once for each device, with one exit code for all. On several
machines torchrun or srun say in the environment how many processes there are and which one this is: `membership` reads
it.
"""

import re
import signal
import sys
from collections.abc import Mapping, Sequence

from repro.runs.command import STOPPING
from repro.training.run_spec import Peer

ALONE = {"RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0"}  # the values for a process that no launcher started
PORT, PORTS = 15_000, 10_000  # where the tasks of a Slurm job meet, by the job's number
Environment = Mapping[str, str]
# each launcher's names of: rank, number of processes, local rank, node rank, number of nodes
NAMES = {
    "torchrun": ("RANK", "WORLD_SIZE", "LOCAL_RANK", "GROUP_RANK", "GROUP_WORLD_SIZE"),
    # of the step, that is, of this srun: the shell of a job also has the names of the job, but is one process
    "srun": ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", "SLURM_NODEID", "SLURM_STEP_NUM_NODES"),
}


def membership(environment: Environment) -> Peer | None:
    """Which process this is among those that share each update; None where no launcher started it.

    Raises ValueError for leftover variables in a process that no launcher started: as rank 1 it would wait silently for
    a rank 0 that never comes. A single task of srun may start its own processes.
    """
    if "TORCHELASTIC_RUN_ID" in environment:
        return _read("torchrun", environment)
    if environment.get("SLURM_STEP_NUM_TASKS", "1") != "1":
        return _read("srun", environment)
    if left := [name for name, value in ALONE.items() if environment.get(name, value) != value]:
        raise ValueError(
            f"The environment has {' and '.join(f'{name}={environment[name]}' for name in left)}, but neither torchrun "
            f"nor srun started this process. Type: unset {' '.join(left)}. For several processes use --devices N."
        )
    return None


def _read(launcher: str, environment: Environment) -> Peer:
    """The numbers under the names that this launcher gives them."""
    number, n, local, node, nodes = (int(environment[name]) for name in NAMES[launcher])
    master = {}
    if launcher == "srun":  # the first node, and a port of its own: steps of one job may run side by side
        first = re.sub(r"\[(\w+)[^\]]*\]", r"\1", environment["SLURM_STEP_NODELIST"]).split(",")[0]
        own = PORT + (int(environment["SLURM_JOB_ID"]) * 16 + int(environment["SLURM_STEP_ID"])) % PORTS
        master = {"MASTER_ADDR": first, "MASTER_PORT": str(own)}
    master |= environment
    return Peer(
        launcher=launcher,
        number=number,
        processes=n,
        local_number=local,
        devices=n // nodes,
        node=node,
        nodes=nodes,
        address=master["MASTER_ADDR"],
        port=int(master["MASTER_PORT"]),
        met_already=launcher != "srun",  # torchrun holds the meeting open
    )


def refuse_other_processes(found: Peer | None, processes: int) -> None:
    """Raise ValueError where a launcher started a different number of processes from what the run waits for.

    `--devices` may say another, or the name of a scale, such as smoke-2-devices.
    """
    if found is not None and found.processes != processes:
        raise ValueError(
            f"{found.launcher} started {found.processes} in all, but the run asks for {processes} processes. If they "
            "share each update, leave their number out. If they share the runs of a table, start each with --shard."
        )


def launch(command: Sequence[str], devices: int) -> int:
    """Run a script with its arguments in `devices` processes on this machine, to their end.

    Returns the exit code of the first process that failed, as a shell would show it; the launcher's own command returns
    1 for any failure. A signal sent to this process is passed on; the code is then 128 plus its number.
    """
    from torch.distributed.elastic.multiprocessing.api import SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.run import parse_args, run

    # by default the launcher misses SIGUSR1, and handles what `nohup` wants ignored
    heard = [signal.Signals(number).name for number in STOPPING if signal.getsignal(number) is not signal.SIG_IGN]
    how = ("--standalone", f"--nproc-per-node={devices}", f"--signals-to-handle={','.join(heard)}")
    try:
        run(parse_args([*how, *command]))
    except ChildFailedError as failed:
        rank, first = failed.get_first_failure()
        code = first.exitcode if first.exitcode >= 0 else 128 - first.exitcode
        by = f"signal {signal.Signals(-first.exitcode).name}" if first.exitcode < 0 else f"exit code {code}"
        print(f"Process {rank} of {devices} ended first, with {by}; the others were then stopped.", file=sys.stderr)
        return code
    except SignalException as asked:
        return 128 + asked.sigval
    return 0
