"""`--devices N`: this very command once a device, under PyTorch's launcher, and one exit code for all of it."""

import signal
import sys
from collections.abc import Sequence

from repro.signals import STOPPING


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
