"""`--on slurm`: one batch script whose array has a task for each run, submitted by `sbatch` and followed by `squeue`.

A task is this command with `--shard i/n`. Submissions are not recorded: an array is found again in the queue by its
name, which holds a hash of the command. So the command may be ended and typed again; it then submits only what is
neither queued nor finished.
"""

import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import time
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from repro.render.several import several
from repro.runs.executors.executor import FAILED, Job, JobResult, command_of_file
from repro.runs.executors.tail import LATE, Lanes, end_of, late_record, tail
from repro.runs.forecast import card_for, duration, estimates
from repro.runs.options import Options
from repro.runs.progress import Progress
from repro.runs.scales import Scale
from repro.runs.signals import Signals
from repro.runs.sizes import cell_memory, size
from repro.runs.table import Cell, shard_of
from repro.storage import atomic
from repro.tracking.run_folder import RECORD

ARRAYS = "slurm"  # in the folder of runs: scripts and logs
TIME_FACTOR, LEAST_MINUTES, MOST_MINUTES = 4, 30, 24 * 60  # of the forecast; a run that needs more goes on in another
MEMORY_FACTOR = 1.5
BEFORE_THE_LIMIT = 120  # seconds
STOPPED_AT_MOST, KILLED_AT_MOST = 50, 5  # times that a task is queued again
ASK, LOOK = 10.0, 0.2  # seconds between two questions to Slurm, and between two looks at what a signal asked for
PATIENCE = 120.0  # seconds that a command of Slurm's may take
SAYS_NOTHING = ("dry_run", "traceback", "jobs", "on", "measure", "hardware", "price", "fork")  # change no run
LEAVING = b"Leaving the runs to Slurm; a second signal leaves at once."
BEGIN = b": Slurm job "  # in the log, where the script begins an attempt
END = re.compile(rb": ended with exit code (\d+)$", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class SlurmArray:
    """An array as it is submitted."""

    name: str  # by which the same command finds it in the queue
    command: Sequence[str]  # without the options that choose a run
    cwd: Path
    folder: Path  # absolute
    whole: int  # runs of the sweep
    shard: tuple[int, int]  # of which this array makes every n-th from the i-th on
    parallelism: int | None  # tasks at a time; None: as many as the cluster gives
    processors: int  # of a task, like the fields below
    gpus: int
    memory: int  # bytes
    minutes: int

    @property
    def file(self) -> Path:
        """The path of the batch script."""
        return self.folder / f"{self.name}.sbatch"

    def log(self, job: int, task: int) -> Path:
        """The path of the log of a task, of all its attempts."""
        return self.folder / f"{job}_{task}.log"

    def sbatch(self, tasks: Collection[int]) -> list[str]:
        """The command that submits these tasks; to be run in the folder, as a path for Slurm may hold no space.

        The name that finds the array again is set here: SBATCH_ variables override the script, not the command.
        """
        words = ["--parsable", f"--job-name={self.name}", f"--array={self._indices(tasks)}", "--output=%A_%a.log"]
        return ["sbatch", *words, self.file.name]

    def _indices(self, tasks: Collection[int]) -> str:
        """Numbers as Slurm writes them: 1-3 or 1,3, and %2 for two at a time."""
        ordered = sorted(tasks)
        is_range = len(ordered) > 1 and ordered == [*range(ordered[0], ordered[-1] + 1)]
        numbers = f"{ordered[0]}-{ordered[-1]}" if is_range else ",".join(map(str, ordered))
        return numbers + (f"%{self.parallelism}" if self.parallelism else "")

    def script(self, tasks: Collection[int]) -> str:
        """The batch script. Paths and words are quoted for the shell; lines for Slurm hold only our own values."""
        i, n = self.shard
        return _SCRIPT.format(
            name=self.name,
            array=self._indices(tasks),
            processors=self.processors,
            gpus=f"#SBATCH --gres=gpu:{self.gpus}\n" if self.gpus else "",
            memory=-(-self.memory // 2**20),
            minutes=self.minutes,
            before=BEFORE_THE_LIMIT,
            stopped=STOPPED_AT_MOST,
            killed=KILLED_AT_MOST,
            cwd=shlex.quote(str(self.cwd)),
            words=shlex.join(self.command),
            number=f"$((SLURM_ARRAY_TASK_ID * {n} - {n - i}))" if n > 1 else "$SLURM_ARRAY_TASK_ID",
            whole=self.whole,
        )


def array_for(cells: Sequence[Cell], scale: Scale, options: Options, again: Sequence[str] | None) -> SlurmArray:
    """The array for the sweep of these cells, or for the shard of it that the options ask for.

    `again` is the command line that starts this command again. A task asks for more than the forecast, since its
    machine is not this one, and for GPUs if models have the paper's size. Raises ValueError for impossible options.
    """
    again = command_of_file(again, "--on slurm")
    if (options.num_nodes or 1) > 1:
        raise ValueError(
            f"--on slurm --num-nodes {options.num_nodes}: a task of the array has one machine. Leave one of the two "
            "out; a run on several is started by srun."
        )
    asked, devices = shard_of(cells, options.shard), options.devices or 1
    i, n = (int(one) for one in (options.shard or "1/1").split("/"))
    said = Path(os.environ.get("PWD", ""))  # a link may lead to another disk on each machine
    cwd = said if said.is_absolute() and said.exists() and said.samefile(".") else Path.cwd()
    folder = cwd / options.runs_dir / ARRAYS
    minutes = -(-int(TIME_FACTOR * max(one.seconds for one in estimates(asked, scale, options))) // 60)
    return SlurmArray(
        name=_name(again[1], folder, options),
        command=[word for word in again if word not in ("--dry-run", "--measure")],
        cwd=cwd,
        folder=folder,
        whole=len(cells),
        shard=(i, n),
        parallelism=options.jobs,
        processors=options.threads * devices,
        gpus=devices if card_for(scale, options) else 0,
        memory=int(MEMORY_FACTOR * max(cell_memory(cell, scale) for cell in asked) * devices),
        minutes=min(max(LEAST_MINUTES, minutes), MOST_MINUTES),
    )


def _name(script: str, folder: Path, options: Options) -> str:
    """The name by which the same command finds its array: the table, and a hash of what is made and where."""
    decides = {name: str(value) for name, value in options.typed.items() if name not in SAYS_NOTHING}
    made_of = json.dumps([str(Path(script).resolve()), str(folder), decides], sort_keys=True)
    table = re.sub(r"[^\w.=-]", "_", Path(script).stem, flags=re.ASCII)
    return f"{table}-{hashlib.sha256(made_of.encode('utf-8', 'surrogateescape')).hexdigest()[:10]}"


def submission(array: SlurmArray) -> str:
    """What `--dry-run` shows: the script and the command that would submit it, for all runs of the sweep."""
    i, n = array.shard
    tasks = range(1, len(range(i - 1, array.whole, n)) + 1)
    return f"{array.file} would be:\n\n{array.script(tasks)}\nand submitted there with: {' '.join(array.sbatch(tasks))}"


@dataclass(frozen=True, kw_only=True)
class Queued:
    """A task in Slurm's queue."""

    job: int
    state: str  # RUNNING, PENDING, COMPLETING, ...
    why: str  # it waits, in Slurm's words


class Slurm(ExitStack):
    """An executor that submits an array, unless it is in the queue, and follows it to its end."""

    def __init__(self, array: SlurmArray, signals: Signals) -> None:
        super().__init__()
        if shutil.which("sbatch") is None:
            raise ValueError(
                "--on slurm: there is no sbatch on this machine. Type the command where jobs are submitted, or divide "
                "the sweep by hand: --shard 1/4, --shard 2/4, ... on machines that share a folder."
            )
        self.array, self.signals = array, signals
        self.n_workers = array.parallelism or array.whole
        self.jobs: dict[int, int] = {}  # task -> number of its job
        self.about = (
            f"A Slurm task for each run: {several(array.processors, 'processor')}, "
            f"{several(array.gpus, 'GPU') + ', ' if array.gpus else ''}"
            f"{size(array.memory)} of memory ({MEMORY_FACTOR} times the forecast), {duration(60 * array.minutes)} at a "
            f"time ({TIME_FACTOR} times the longest run, or the limit; a run that needs more continues in another)."
        )

    def measure(self, work: Sequence[Job], progress: Progress) -> None:
        """Does nothing: the speed of this machine says nothing of the cluster."""

    def make(self, work: Sequence[Job], progress: Progress) -> Iterator[JobResult]:
        """Have the array make the runs; yields the outcome of each once its task has left the queue."""
        waiting = {one.cell + 1: one for one in work}
        self.signals.training, self.signals.answer = True, LEAVING
        self._submit(waiting.keys(), progress)
        lanes, said = Lanes(progress), ""
        while waiting and not self.signals.should_stop():
            queued = _squeue(self.array.name)
            if queued is not None:  # no answer says nothing of the tasks
                self.jobs |= {task: one.job for task, one in queued.items()}
                here = {task: queued[task] for task in waiting if task in queued}
                lanes.show({task: waiting[task].run for task, one in here.items() if one.state == "RUNNING"})
                if here and (now := _summary(list(here.values()))) != said:
                    said = now
                    progress.say(said)
                for task in [task for task in waiting if task not in queued]:
                    yield self._outcome(task, waiting.pop(task), progress)
            self._sleep(waiting.values())
        if waiting:
            progress.say(
                f"Slurm continues with {several(len(waiting), 'run')} in {self._named_jobs(waiting)}. The same "
                f"command returns to them; to cancel them: scancel {' '.join(map(str, self._jobs_of(waiting)))}"
            )
        for one in waiting.values():
            yield JobResult(run=one.run, record=None, code=128 + self.signals.received)
        self.signals.training = False

    def _submit(self, tasks: Collection[int], progress: Progress) -> None:
        """Submit the tasks that are not in the queue already."""
        found = _squeue(self.array.name)
        if found is None:
            raise ValueError("squeue does not answer, so the queue is unknown. Type the command again.")
        self.jobs |= {task: one.job for task, one in found.items()}
        there, missing = tasks & found.keys(), tasks - found.keys()
        if there:
            progress.say(f"In Slurm's queue already: {self._named_jobs(there)} with {len(there)} of these runs.")
        if not missing:
            return
        atomic.make_folder(self.array.folder)
        atomic.write_bytes(self.array.file, os.fsencode(self.array.script(missing)))
        said = _call(self.array.sbatch(missing), self.array.folder)
        if said.returncode:
            raise ValueError(
                f"sbatch refused the array: {said.stderr.strip()}\nIts script is {self.array.file}. Say what the "
                "cluster wants with Slurm's own variables: SBATCH_PARTITION, SBATCH_ACCOUNT, SBATCH_QOS, SBATCH_GRES, "
                "SBATCH_TIMELIMIT. If the array has too many runs: --shard 1/2, then --shard 2/2."
            )
        job = int(said.stdout.strip().partition(";")[0])
        self.jobs |= dict.fromkeys(missing, job)
        progress.say(
            f"Slurm job {job}: {several(len(missing), 'run')}; logs are {self.array.folder}/{job}_*.log. "
            f"To cancel them: scancel {job}"
        )

    def _outcome(self, task: int, work: Job, progress: Progress) -> JobResult:
        """How the run ended whose task has left the queue."""
        name, log = work.run.name, self.array.log(self.jobs[task], task)
        codes = END.findall(end_of(log).rpartition(BEGIN)[2])  # of the last attempt
        code = int(codes[-1]) if codes else 0
        if record := late_record(work.run, 0 if code else LATE, self.signals.should_stop):
            return JobResult(run=work.run, record=record)
        why = f"its task ended with exit code {code}" if code else "its task ended or was cancelled without one"
        if log.exists():
            progress.say(f"{name} has no record: {why}. The end of {log}:\n{tail(str(log))}")
        else:
            progress.say(
                f"{name} has no record, and {log} was never written: do the machines of the cluster see "
                f"{self.array.folder}? If not, name a folder that they share with --runs-dir."
            )
        return JobResult(run=work.run, record=None, code=code if 0 < code <= 128 else FAILED)

    def _jobs_of(self, tasks: Collection[int]) -> list[int]:
        return sorted({self.jobs[task] for task in tasks if task in self.jobs})

    def _named_jobs(self, tasks: Collection[int]) -> str:
        """Their jobs in words: job 12, or jobs 12 and 14."""
        numbers = [str(job) for job in self._jobs_of(tasks)]
        return f"job{'s' if len(numbers) > 1 else ''} {' and '.join(numbers)}"

    def _sleep(self, waiting: Collection[Job]) -> None:
        """Wait until it is time to ask again, all runs have their records, or a signal comes."""
        until = time.monotonic() + ASK
        while time.monotonic() < until and not self.signals.should_stop():
            time.sleep(min(LOOK, ASK))
            if all((one.run.folder / RECORD).exists() for one in waiting):
                return


def _summary(queued: Sequence[Queued]) -> str:
    """The queue in words: Slurm: 2 running, 3 pending (Resources)."""
    states = Counter(one.state for one in queued)
    parts = []
    for state, n in sorted(states.items(), reverse=True):
        why = sorted({one.why for one in queued if one.state == state} - {"None", ""})
        parts.append(f"{n} {state.lower()}" + (f" ({', '.join(why)})" if why else ""))
    return f"Slurm: {', '.join(parts)}"


def _call(words: Sequence[str], cwd: Path | None = None) -> "subprocess.CompletedProcess[str]":
    """Run a command of Slurm's.

    It runs in a session of its own, so that a Ctrl-C meant for us does not break off a submission.
    """
    try:
        return subprocess.run(
            words,
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=PATIENCE,
            start_new_session=True,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return subprocess.CompletedProcess(words, 1, "", str(error))


def _squeue(name: str) -> dict[int, Queued] | None:
    """This user's tasks in arrays of that name; None where Slurm does not answer."""
    words = ("--noheader", "--array", f"--user={os.getuid()}", f"--name={name}", "--format=%F|%K|%T|%r")
    said = _call(["squeue", *words])
    if said.returncode:
        return None
    lines = [line.strip().split("|") for line in said.stdout.split("\n") if line.count("|") == 3]
    return {int(task): Queued(job=int(job), state=state, why=why) for job, task, state, why in lines}


# exit codes: 128 + a signal, 75 where another process has the run (`repro/runs/executors/executor.py`)
_SCRIPT = """\
#!/bin/bash
# Each task of this array makes one run of a sweep. Written by --on slurm; `sbatch` takes it again, in this folder.
#SBATCH --job-name={name}
#SBATCH --array={array}
#SBATCH --nodes=1
#SBATCH --ntasks=1
#SBATCH --cpus-per-task={processors}
{gpus}#SBATCH --mem={memory}M
#SBATCH --time={minutes}
#SBATCH --requeue
#SBATCH --signal=B:USR1@{before}
#SBATCH --open-mode=append
#SBATCH --output=%A_%a.log

say() {{ printf '%s %s: %s\\n' "$(date +%FT%T)" "$(hostname)" "$*"; }}

shard={number}/{whole}
job=${{SLURM_ARRAY_JOB_ID}}_$SLURM_ARRAY_TASK_ID
say "Slurm job $job, queued again ${{SLURM_RESTART_COUNT:-0}} times: shard $shard"
if ! cd -- {cwd}; then
    say "runs, code and Python have to be in folders that all machines share: ended with exit code 2"
    exit 2
fi

# Slurm sends USR1 to this shell alone, before the limit of time: it is passed on, and the run stops with a checkpoint.
# TERM, before it kills, goes to all processes of the task by itself: a second one would end the run at once.
heard= run=
trap 'heard=1; [ -z "$run" ] || kill -USR1 "$run" 2>/dev/null' USR1
trap 'heard=1' TERM
{words} --on here --jobs 1 --shard "$shard" &
run=$!
code=
while [ -z "$code" ] || [ -n "$heard" ]; do
    heard=
    wait "$run"
    code=$?
done
[ "$code" -ge 0 ] || code=143 # bash 5.2 loses what a run ended with that TERM ends while the trap runs, and says -1
say "ended with exit code $code"

case $code in
    138 | 143) most={stopped} ;; # stopped, with a checkpoint
    75 | 137) most={killed} ;; # another process had the run, or this one was killed: by whom is not known
    *) exit "$code" ;; # done, or what would only happen again
esac
if [ "$(squeue --noheader --jobs="$SLURM_JOB_ID" --format=%T)" != RUNNING ]; then
    say "not queued again by this script: Slurm itself is ending the task"
elif [ "${{SLURM_RESTART_COUNT:-0}}" -ge "$most" ]; then
    say "not queued again: that was done $most times. The command that submitted this array goes on"
else
    say "queueing $job again"
    scontrol requeue "$job"
fi
exit "$code"
"""
