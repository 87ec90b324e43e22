"""The processes that share each update of a run: who started them; and `--devices N`, which starts them itself.

On one machine, PyTorch's launcher starts this command once for each device, with one exit code for all. On several
machines, and wherever a cluster starts the processes, torchrun, srun and Ray Train say in the environment how many
processes there are and which one this is: `membership` reads it.
"""

import re
import shlex
import signal
import sys
from collections.abc import Mapping, Sequence

from repro.runs import command
from repro.runs.signals import STOPPING
from repro.training.peer import Peer

ALONE = {"RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0"}  # the values for a process that no launcher started
PORT, PORTS = 15_000, 10_000  # where the tasks of a Slurm job meet, by the job's number

Environment = Mapping[str, str]


# each launcher's names of: rank, number of processes, local rank, node rank, number of nodes
NAMES = {
    "torchrun": ("RANK", "WORLD_SIZE", "LOCAL_RANK", "GROUP_RANK", "GROUP_WORLD_SIZE"),
    "Ray Train": ("RANK", "WORLD_SIZE", "LOCAL_RANK", "NODE_RANK"),  # LOCAL_WORLD_SIZE tells the number of nodes
    # of the step, that is, of this srun: the shell of a job also has the names of the job, but is one process
    "srun": ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", "SLURM_NODEID", "SLURM_STEP_NUM_NODES"),
}


def membership(devices: int | None, nodes: int | None, environment: Environment) -> Peer | None:
    """Which process this is among those that share each update; None where no launcher started it.

    `devices` and `nodes` are what was asked for, None: whatever there is. Raises ValueError where the launcher started
    other numbers. torchrun, srun and Ray Train are trusted. Their leftover variables in a process that none of them
    started are refused: as rank 1 it would wait silently for a rank 0 that never comes.
    """
    if found := _started(environment):
        _refuse_other_numbers(found, devices, nodes)
        return found
    left = [name for name, value in ALONE.items() if environment.get(name, value) != value]
    if left:
        said = " and ".join(f"{name}={environment[name]}" for name in left)
        raise ValueError(
            f"The environment has {said}, but neither torchrun nor srun nor Ray Train started this process: it "
            f"would wait for processes that never start. Type: unset {' '.join(left)}. For several processes "
            "use --devices N."
        )
    if (nodes or 1) > 1:
        raise ValueError(_what_to_type(devices or 1, nodes or 1))
    return None


def _started(environment: Environment) -> Peer | None:
    """What the launcher says; None without one, and where srun started a single task, which may start its own."""
    tasks = environment.get("SLURM_STEP_NUM_TASKS", "1")
    if "TORCHELASTIC_RUN_ID" in environment:
        found = _read("torchrun", environment)
        if tasks != "1" and found.nodes == 1:
            raise ValueError(
                f"srun started {tasks} torchruns (SLURM_STEP_NUM_TASKS={tasks}), and this one knows of one node: each "
                "would train the same run. Tell each about all nodes: torchrun --nnodes=$SLURM_NNODES "
                "--node-rank=$SLURM_NODEID --master-addr=HOST --master-port=29500, or leave torchrun out."
            )
        return found
    if tasks != "1":
        return _read("srun", environment)
    needed = {*NAMES["Ray Train"], "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"}
    is_ray = needed <= environment.keys() and any(name.startswith("RAY_") for name in environment)
    return _read("Ray Train", environment) if is_ray else None


def _read(launcher: str, environment: Environment) -> Peer:
    """The numbers under the names that this launcher gives them. Raises ValueError for impossible ones."""
    names = NAMES[launcher]
    try:
        number, n, local, node, *said = (int(environment[name]) for name in names)
        nodes = said[0] if said else n // int(environment["LOCAL_WORLD_SIZE"])
        each = n // nodes
        address, port = _head(environment) if launcher == "srun" else _master(environment)
    except (KeyError, ValueError, ZeroDivisionError) as error:
        raise ValueError(f"{launcher}: expected whole numbers in {', '.join(names)}, got {error!r}.") from None
    if n % nodes or local >= each:
        all_said = ", ".join(f"{name}={environment[name]}" for name in names)
        raise ValueError(
            f"{launcher} started {n} processes on {nodes} nodes ({all_said}): expected the same number on each node. "
            "Say how many a node has: torchrun --nproc-per-node=N, srun --ntasks-per-node=N."
        )
    return Peer(
        launcher=launcher,
        number=number,
        processes=n,
        local_number=local,
        devices=each,
        node=node,
        nodes=nodes,
        address=address,
        port=port,
        met_already=launcher != "srun",  # torchrun and Ray Train hold the meeting open
    )


def _master(environment: Environment) -> tuple[str, int]:
    return environment["MASTER_ADDR"], int(environment["MASTER_PORT"])


def _head(environment: Environment) -> tuple[str, int]:
    """The first node of this srun and a port of its own; MASTER_ADDR and MASTER_PORT override them."""
    first = re.sub(r"\[(\w+)[^\]]*\]", r"\1", environment["SLURM_STEP_NODELIST"]).split(",")[0]
    # no two jobs share a number, and steps of one job may run side by side
    own = PORT + (int(environment["SLURM_JOB_ID"]) * 16 + int(environment["SLURM_STEP_ID"])) % PORTS
    return _master({"MASTER_ADDR": first, "MASTER_PORT": str(own), **environment})


def _refuse_other_numbers(found: Peer, devices: int | None, nodes: int | None) -> None:
    if devices not in (None, found.devices):
        each = " on each node" if found.nodes > 1 else ""
        raise ValueError(
            f"{found.launcher} started {found.devices} processes{each}, but --devices is {devices}. If they "
            "share each update, leave --devices out: the number is found. If they share the runs of a table, start "
            "them as a job array, or one by one."
        )
    if nodes not in (None, found.nodes):
        raise ValueError(
            f"{found.launcher} started processes on {found.nodes} nodes, but --num-nodes is {nodes}. Leave --num-nodes "
            "out, since the number is found; or start as many."
        )


def refuse_other_processes(found: Peer | None, processes: int) -> None:
    """Raise ValueError where a launcher started a different number of processes from what the run waits for.

    For example, the name of a scale may ask for more, such as smoke-2-devices.
    """
    if found is not None and found.processes != processes:
        raise ValueError(
            f"{found.launcher} started {found.processes} process{'es' * (found.processes != 1)}, but --scale says "
            f"--devices {processes}. Start as many, or leave {processes}-devices out of its name: the number is found."
        )


def _what_to_type(devices: int, nodes: int) -> str:
    this = shlex.join(sys.argv)
    return (
        f"--num-nodes {nodes}: this command starts processes on its own machine only. Type on each node, with K from 0 "
        f"to {nodes - 1} and the name of node 0 for HOST:\n"
        f"  {torchrun(devices, nodes)} {this}\nor once, under Slurm:\n  {srun(devices, nodes)} {this}"
    )


def torchrun(devices: int, nodes: int) -> str:
    """The words before a script that start it on many nodes; typed on each, with K and HOST filled in."""
    return f"torchrun --nnodes={nodes} --node-rank=K --master-addr=HOST --master-port=29500 --nproc-per-node={devices}"


def srun(devices: int, nodes: int) -> str:
    """The same under Slurm, typed once."""
    return f"srun --nodes={nodes} --ntasks-per-node={devices} {command.python()}"


def started_again(peer: Peer) -> tuple[str, str, dict[str, int]]:
    """How to start processes on several nodes again: the words before the script, a remark, and options.

    Ray Train has no command to type: one machine makes the same runs with as many processes.
    """
    if peer.launcher == "torchrun":
        where = f", typed on each node with K from 0 to {peer.nodes - 1} and the name of node 0 for HOST"
        return torchrun(peer.devices, peer.nodes), where, {}
    if peer.launcher == "srun":
        return srun(peer.devices, peer.nodes), "", {}
    return command.python(), ", on one machine", {"devices": peer.processes}


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
