"""`--devices N`: this very command once a device, under PyTorch's launcher, and one exit code for all of it.

Or under torchrun or srun, where those who run a cluster start the processes themselves: `rank` says which one this is.
"""

import signal
import sys
from collections.abc import Mapping, Sequence

from repro.runs.signals import STOPPING

ALONE = {"RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0"}  # what is true of a process that nothing started


def rank(devices: int, environment: Mapping[str, str]) -> int | None:
    """The number of this process among the `devices` that share each update; None where none was started for that.

    torchrun and srun are believed. What is left of them in the environment of a process that neither started is not:
    as number 1 it would wait for a number 0 that never comes, without a word.
    """
    if "TORCHELASTIC_RUN_ID" in environment:
        return _one_of("torchrun", "RANK", "WORLD_SIZE", devices, environment)
    if environment.get("SLURM_NTASKS", "1") != "1" and environment.get("SLURM_JOB_NAME") not in ("bash", "interactive"):
        return _one_of("srun", "SLURM_PROCID", "SLURM_NTASKS", devices, environment)
    left = [name for name, value in ALONE.items() if environment.get(name, value) != value]
    if left:
        said = " and ".join(f"{name}={environment[name]}" for name in left)
        raise ValueError(
            f"{said} stands in the environment, but neither torchrun nor srun started this process: it would wait for "
            f"others that nobody starts. Remove it with: unset {' '.join(left)}. Several processes: --devices N."
        )
    return None


def _one_of(launcher: str, number: str, count: str, devices: int, environment: Mapping[str, str]) -> int:
    try:
        found, n = int(environment[number]), int(environment[count])
    except (KeyError, ValueError) as error:
        raise ValueError(f"{launcher} sets {number} and {count} to whole numbers, but: {error!r}.") from None
    if n != devices or not 0 <= found < n:
        raise ValueError(
            f"{launcher} started {n} processes ({count}={n}, {number}={found}), but --devices is {devices}. Processes "
            f"that share each update: --devices {n}. Those that share the runs of a table: a job array, or one by one."
        )
    return found


def launch(command: Sequence[str], devices: int) -> int:
    """Run a script with its arguments in so many processes of this machine, to their end.

    Gives the exit code of the process that was the first to fail, as a shell would show it: the launcher's own command
    answers 1 whatever it was. A signal sent to this process is passed on; the code is then 128 and its number.
    """
    from torch.distributed.elastic.multiprocessing.api import SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.run import parse_args, run

    # the launcher would leave SIGUSR1 out, and answer what `nohup` wants ignored
    heard = [signal.Signals(number).name for number in STOPPING if signal.getsignal(number) is not signal.SIG_IGN]
    how = ("--standalone", f"--nproc-per-node={devices}", f"--signals-to-handle={','.join(heard)}")
    try:
        run(parse_args([*how, *command]))
    except ChildFailedError as failed:
        rank, first = failed.get_first_failure()
        code = first.exitcode if first.exitcode >= 0 else 128 - first.exitcode
        by = f"signal {signal.Signals(-first.exitcode).name}" if first.exitcode < 0 else f"exit code {code}"
        print(f"Process {rank} of {devices} ended first, with {by}; then the others were ended.", file=sys.stderr)
        return code
    except SignalException as asked:
        return 128 + asked.sigval
    return 0
