"""A node's side of `--on ray`: a task of Ray that starts the sweep's own command for one run, and waits for its end.

It imports neither torch nor Ray: what a node lacks comes back as a sentence, not as an ImportError.
"""

import ctypes
import hashlib
import importlib.metadata
import os
import platform
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

COMPARED = ("ray", "torch", "lightning", "numpy", "tokenizers", "sacrebleu")  # these decide numbers, beside Python
LOOK = 0.5  # seconds between two looks at the process, and at whether the sweep still wants its run
PR_SET_PDEATHSIG = 1  # Linux, prctl(2)


@dataclass(frozen=True, kw_only=True)
class NodeCommand:
    """What a node needs to make one run."""

    words: Sequence[str]  # of the command, after Python
    environment: Mapping[str, str]  # beside that of the node
    wanted: str  # a file in the folder of runs, there for as long as the sweep wants the run
    sha256: str  # of its content
    log: str  # where the command prints, in the folder of runs
    versions: Mapping[str, str]  # of the machine that asks


@dataclass(frozen=True, kw_only=True)
class Ended:
    """How it went: the exit code of the command, negative for a signal; or why the node did not start it."""

    host: str
    code: int = 0
    refused: str = ""


def versions() -> dict[str, str]:
    """Versions of what must be the same on all machines; "none" for what is not installed."""

    def version(name: str) -> str:
        try:
            return importlib.metadata.version(name).partition("+")[0]
        except importlib.metadata.PackageNotFoundError:
            return "none"

    return {"python": platform.python_version(), **{name: version(name) for name in COMPARED}}


def make_run(job: NodeCommand) -> Ended:
    """Start the command and wait for its end; ask it to stop when its sweep no longer wants it."""
    host, wanted = socket.gethostname(), Path(job.wanted)
    if refused := _refused(job):
        return Ended(host=host, refused=refused)
    path = os.pathsep.join([os.getcwd(), *filter(None, [os.environ.get("PYTHONPATH")])])
    with tempfile.TemporaryDirectory(prefix="attention-repro-") as tables, open(job.log, "ab") as log:
        process = subprocess.Popen(
            [sys.executable, *job.words, "--results-dir", tables],  # the tables are made where the sweep is
            env=os.environ | {"PYTHONPATH": path} | {**job.environment},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,  # signals of the terminal go to the sweep, which asks once
            preexec_fn=_end_with_parent if sys.platform == "linux" else None,
        )
        asked = False
        while (code := process.poll()) is None:
            if not asked and not wanted.exists():
                asked = True
                process.terminate()
            time.sleep(LOOK)
    return Ended(host=host, code=code)


def _refused(job: NodeCommand) -> str:
    """Why no run can be made here; empty if one can."""
    here = versions()
    if other := [
        f"{name} {here[name]} there, {job.versions[name]} here" for name in here if here[name] != job.versions[name]
    ]:
        return f"has other versions: {'; '.join(other)}. Install the same Python and constraints.txt on all machines."
    try:
        seen = hashlib.sha256(Path(job.wanted).read_bytes()).hexdigest()
    except OSError:
        seen = ""
    if seen != job.sha256:
        return (
            f"does not see {Path(job.wanted).parents[1]}. The nodes of a sweep share the folder of runs, at the same "
            "path: name one that they share with --runs-dir."
        )
    return ""


def _end_with_parent() -> None:
    """Ask the system to send this process SIGTERM when its parent is gone, however the parent was killed."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
