"""`--on slurm`: one batch script whose array has a task for each run. It is submitted, and the command ends.

A task is this command with `--shard i/n`. Submissions are not recorded: an array that is still in the queue is known by
its name, which holds a hash of the command. Typed again later, the command submits what has no record yet.
"""

import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from repro.render.several import several
from repro.runs.executors.executor import Job, JobResult
from repro.runs.forecast import card_for, duration, estimates
from repro.runs.options import Options
from repro.runs.progress import Progress
from repro.runs.scales import Scale
from repro.runs.sizes import cell_memory, size
from repro.runs.table import Cell, shard_of
from repro.storage import atomic

ARRAYS = "slurm"  # in the folder of runs: scripts and logs
TIME_FACTOR, LEAST_MINUTES, MOST_MINUTES = 4, 30, 24 * 60  # of the forecast; a run that needs more goes on in another
MEMORY_FACTOR = 1.5
BEFORE_THE_LIMIT = 120  # seconds
STOPPED_AT_MOST = 50  # times that a task is queued again
PATIENCE = 120.0  # seconds that a command of Slurm's may take


@dataclass(frozen=True, kw_only=True)
class SlurmArray:
    """An array as it is submitted; its tasks have the numbers of their runs in the whole sweep."""

    name: str  # by which the same command finds it in the queue
    command: Sequence[str]  # without the options that choose a run
    cwd: Path
    folder: Path  # absolute
    whole: int  # runs of the sweep
    parallelism: int | None  # tasks at a time; None: as many as the cluster gives
    processors: int  # of a task, like the fields below
    gpus: int
    memory: int  # bytes
    minutes: int

    @property
    def file(self) -> Path:
        """The path of the batch script."""
        return self.folder / f"{self.name}.sbatch"

    def sbatch(self, tasks: Collection[int]) -> list[str]:
        """The command that submits these tasks; to be run in the folder, as a path for Slurm may hold no space.

        The name that finds the array again is set here: SBATCH_ variables override the script, not the command.
        """
        array = ",".join(map(str, sorted(tasks))) + (f"%{self.parallelism}" if self.parallelism else "")
        return ["sbatch", "--parsable", f"--job-name={self.name}", f"--array={array}", self.file.name]

    @property
    def script(self) -> str:
        """The batch script. Paths and words are quoted for the shell; lines for Slurm hold only our own values."""
        return _SCRIPT.format(
            processors=self.processors,
            gpus=f"#SBATCH --gres=gpu:{self.gpus}\n" if self.gpus else "",
            memory=-(-self.memory // 2**20),
            minutes=self.minutes,
            before=BEFORE_THE_LIMIT,
            most=STOPPED_AT_MOST,
            cwd=shlex.quote(str(self.cwd)),
            words=shlex.join(self.command),
            whole=self.whole,
        )


def array_for(cells: Sequence[Cell], scale: Scale, options: Options, again: Sequence[str]) -> SlurmArray:
    """The array for the sweep of these cells.

    `again` is the command line that starts this command again. A task asks for more than the forecast, since its
    machine is not this one, and for GPUs if models have the paper's size.
    """
    asked, devices = shard_of(cells, options.shard), options.devices or 1
    command = [word for word in again if word != "--dry-run"]
    digest = hashlib.sha256(json.dumps([str(Path.cwd()), *command]).encode()).hexdigest()[:10]
    table = re.sub(r"[^\w.=-]", "_", Path(again[1]).stem, flags=re.ASCII)
    minutes = -(-int(TIME_FACTOR * max(one.seconds for one in estimates(asked, scale, options))) // 60)
    return SlurmArray(
        name=f"{table}-{digest}",
        command=command,
        cwd=Path.cwd(),
        folder=Path.cwd() / options.runs_dir / ARRAYS,
        whole=len(cells),
        parallelism=options.jobs,
        processors=options.threads * devices,
        gpus=devices if card_for(scale, options) else 0,
        memory=int(MEMORY_FACTOR * max(cell_memory(cell, scale) for cell in asked) * devices),
        minutes=min(max(LEAST_MINUTES, minutes), MOST_MINUTES),
    )


def submission(array: SlurmArray, tasks: Collection[int]) -> str:
    """What `--dry-run` shows: the script and the command that would submit it."""
    return f"{array.file} would be:\n\n{array.script}\nand submitted there with: {shlex.join(array.sbatch(tasks))}"


class Slurm(ExitStack):
    """An executor that submits an array, and leaves the runs to Slurm; `numbers` are those of its cells."""

    def __init__(self, array: SlurmArray, numbers: Sequence[int]) -> None:
        super().__init__()
        if shutil.which("sbatch") is None:
            raise ValueError(
                "--on slurm: there is no sbatch on this machine. Type the command where jobs are submitted, or divide "
                "the sweep by hand: --shard 1/4, --shard 2/4, ... on machines that share a folder."
            )
        self.array, self.numbers = array, numbers
        self.n_workers = array.parallelism or len(numbers)
        self.about = (
            f"A Slurm task for each run: {several(array.processors, 'processor')}, "
            f"{several(array.gpus, 'GPU') + ', ' if array.gpus else ''}"
            f"{size(array.memory)} of memory ({MEMORY_FACTOR} times the forecast), {duration(60 * array.minutes)} at a "
            f"time ({TIME_FACTOR} times the longest run, or the limit; a run that needs more continues in another)."
        )

    def make(self, work: Sequence[Job], progress: Progress) -> Iterator[JobResult]:
        """Submit the runs, unless the same command's array is in the queue. Yields nothing: they are made later."""
        array = self.array
        if _call(["squeue", "--noheader", "--me", f"--name={array.name}"]):
            said = "This command's array is in the queue already, so nothing is submitted."
        else:
            atomic.make_folder(array.folder)
            atomic.write_bytes(array.file, os.fsencode(array.script))
            job = _call(array.sbatch([self.numbers[one.cell] for one in work]), array.folder).partition(";")[0]
            said = f"Slurm job {job}: {several(len(work), 'run')}; logs are {array.folder}/{job}_*.log."
        progress.say(
            f"{said}\nLook: squeue --me --name={array.name}; cancel: scancel --me --name={array.name}\n"
            "Once it has left the queue, the same command makes the tables, and submits what has no record."
        )
        yield from ()


def _call(words: Sequence[str], cwd: Path | None = None) -> str:
    """What a command of Slurm's prints. Raises ValueError with its message where it fails.

    It runs in a session of its own, so that a Ctrl-C meant for us does not break off a submission.
    """
    done = subprocess.run(
        words, cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE,
        start_new_session=True, check=False,
    )  # fmt: skip
    if done.returncode:
        raise ValueError(
            f"{words[0]}: {done.stderr.strip()}\nSay what the cluster wants with Slurm's own variables: "
            "SBATCH_PARTITION, SBATCH_ACCOUNT, SBATCH_QOS, SBATCH_GRES, SBATCH_TIMELIMIT."
        )
    return done.stdout.strip()


# exit codes: 128 + a signal (`repro/runs/executors/executor.py`)
_SCRIPT = """\
#!/bin/bash
# Each task of this array makes one run of a sweep. Written by --on slurm.
#SBATCH --nodes=1
#SBATCH --ntasks=1
#SBATCH --cpus-per-task={processors}
{gpus}#SBATCH --mem={memory}M
#SBATCH --time={minutes}
#SBATCH --requeue
#SBATCH --signal=B:USR1@{before}
#SBATCH --open-mode=append
#SBATCH --output=%A_%a.log

cd -- {cwd} || exit 2 # runs, code and Python have to be in folders that all machines share

# Slurm sends USR1 to this shell alone, before the limit of time: it is passed on, and the run stops with a checkpoint.
# TERM goes to all processes of the task by itself: a second one would end the run at once.
trap 'kill -USR1 "$run"' USR1
trap : TERM
{words} --on here --jobs 1 --shard "$SLURM_ARRAY_TASK_ID/{whole}" &
run=$!
while kill -0 "$run" 2>/dev/null; do wait "$run"; done
wait "$run"
code=$?
if [ "$code" = 138 ] && [ "${{SLURM_RESTART_COUNT:-0}}" -lt {most} ]; then
    scontrol requeue "${{SLURM_ARRAY_JOB_ID}}_$SLURM_ARRAY_TASK_ID"
fi
exit "$code"
"""
