"""A real Slurm of this machine alone, for tests: munged, slurmctld and slurmd in a folder of their own.

Nothing is installed: it is there where the three are on PATH and this is root, as slurmd wants to be.
"""

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scontrol", "sinfo")
REQUEUED_AFTER = 5  # seconds; Slurm waits as long as a credential lives, two minutes by default

CONF = """
ClusterName=tests
SlurmctldHost={host}
SlurmctldPort={port}
SlurmdPort={other_port}
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket,cred_expire={expire}
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=batch_sched_delay=0,sched_interval=2
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ReturnToService=2
MpiDefault=none
NodeName={host} CPUs={cpus} RealMemory={memory} State=UNKNOWN
PartitionName=usual Nodes=ALL Default=YES MaxTime=60
"""


def why_not() -> str | None:
    """Why there can be no Slurm here; None where there can."""
    if missing := [name for name in PROGRAMS if shutil.which(name) is None]:
        return f"needs Slurm, installed: {', '.join(missing)} is not on PATH (Debian: slurm-wlm, munge)"
    if os.getuid() != 0:
        return "needs to be root: slurmd starts tasks as other users"
    return None


@contextmanager
def one_machine(folder: Path) -> Iterator[dict[str, str]]:
    """A Slurm of one idle node; what its commands need in the environment to find it."""
    for name in ("state", "spool"):
        (folder / name).mkdir(mode=0o700)
    host = socket.gethostname().partition(".")[0]
    conf = folder / "slurm.conf"
    port, other_port = _free_ports(2)
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2**20 - 1024
    conf.write_text(
        CONF.format(
            folder=folder, host=host, port=port, other_port=other_port, cpus=os.cpu_count(), memory=memory,
            expire=REQUEUED_AFTER,
        )
    )  # fmt: skip
    key = folder / "munge.key"
    key.touch(mode=0o600)
    key.write_bytes(os.urandom(128))
    files = {name: folder / f"munge.{name}" for name in ("socket", "log", "pid", "seed")}
    munged = ["munged", "--foreground", "--force", f"--key-file={key}"]
    munged += [f"--{'pid' if name == 'pid' else name}-file={file}" for name, file in files.items() if name != "socket"]
    environment = os.environ | {"SLURM_CONF": str(conf)}
    with ExitStack() as stack:
        for words in (
            [*munged, f"--socket={files['socket']}"],
            ["slurmctld", "-D", "-f", str(conf)],
            ["slurmd", "-D", "-f", str(conf)],
        ):
            said = stack.enter_context(open(folder / f"{words[0]}.said", "wb"))
            daemon = subprocess.Popen(words, env=environment, stdin=subprocess.DEVNULL, stdout=said, stderr=said)
            stack.callback(_end, daemon)
            if words[0] == "munged":
                _wait(lambda: files["socket"].exists(), folder)
        _wait(lambda: b"idle" in _said(["sinfo", "--noheader", "--format=%t"], environment), folder)
        yield {"SLURM_CONF": str(conf)}
        subprocess.run(["scancel", "--user=root"], env=environment, check=False, timeout=30)
        _wait(lambda: not _said(["squeue", "--noheader"], environment).strip(), folder)


def _free_ports(n: int) -> list[int]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(n)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


def _said(words: list[str], environment: dict[str, str]) -> bytes:
    return subprocess.run(words, env=environment, capture_output=True, check=False, timeout=30).stdout


def _wait(condition: "object", folder: Path) -> None:
    deadline = time.monotonic() + 60
    while not condition():  # type: ignore[operator]
        if time.monotonic() > deadline:
            logs = {path.name: path.read_text("utf-8", "replace")[-2_000:] for path in folder.glob("*.[ls]*[dog]")}
            raise TimeoutError(f"Slurm did not come up in {folder}: {logs}")
        time.sleep(0.1)


def _end(daemon: "subprocess.Popen[bytes]") -> None:
    daemon.terminate()
    try:
        daemon.wait(20)
    except subprocess.TimeoutExpired:
        daemon.kill()
        daemon.wait()
