"""A Slurm array makes the runs: `sbatch` takes it, `squeue` says how far it is, the runs' folders have the rest.

Nothing is kept of what was submitted: an array is found again in the queue by a name that is a hash of the command. So
the command may be ended and typed again; what it does not find there and has no record is submitted.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from repro.runs.executors.executor import FAILED, Made, Work
from repro.runs.executors.followed import Lanes, end_of
from repro.runs.executors.slurm_array import ARRAYS, MEMORY_FACTOR, TIME_FACTOR, Needs, Partition, SlurmArray
from repro.runs.executors.workers import tail
from repro.runs.forecast import cell_memory, duration, estimates, size
from repro.runs.options import Options
from repro.runs.progress import Progress
from repro.runs.scales import Scale
from repro.runs.signals import Signals
from repro.runs.table import Cell, shard_of
from repro.storage import atomic
from repro.tracking.run_folder import RECORD

LOOK, ASK = 2.0, 15.0  # seconds between two looks at the runs' folders, and between two questions to Slurm
LATE = 60.0  # seconds after its task's end in which a file may become visible here
PATIENCE = 120.0  # seconds that a command of Slurm's may take
NAMED = 6  # runs that a line names
SAYS_NOTHING = ("dry_run", "traceback", "jobs", "on", "measure", "hardware", "price", "fork")  # of what is to be made
LEAVING = b"Leaving the runs to Slurm; a second signal leaves at once."
BEGIN = b": Slurm job "  # as the script says it, of each attempt
END = re.compile(rb": ended with exit code (\d+)$", re.MULTILINE)


def array_for(cells: Sequence[Cell], scale: Scale, options: Options, again: Sequence[str] | None) -> SlurmArray:
    """The array for the sweep of these cells, of which the options may want a shard.

    `again` are the words that start this command once more. Raises ValueError where there are none.
    """
    if again is None:
        raise ValueError(
            "--on slurm: each task of the array starts the experiment's file again, but this was not started from one. "
            "Type: python FILE.py --on slurm ..."
        )
    if (options.num_nodes or 1) > 1:
        raise ValueError(
            f"--on slurm --num-nodes {options.num_nodes}: a task of the array has one machine. Leave one of the two "
            "out; a run on several is started by srun."
        )
    asked = shard_of(cells, options.shard)
    expected = estimates(asked, scale, options)
    i, n = (int(one) for one in (options.shard or "1/1").split("/"))
    cwd = _here()
    folder = cwd / options.runs_dir / ARRAYS
    return SlurmArray(
        name=_name(again[1], folder, options),
        command=[word for word in again if word not in ("--dry-run", "--measure")],
        cwd=cwd,
        folder=folder,
        whole=len(cells),
        shard=(i, n),
        at_once=options.jobs,
        needs=Needs.of(
            threads=options.threads,
            devices=options.devices or 1,
            seconds=max(one.seconds for one in expected),
            memory=max(cell_memory(cell, scale) for cell in asked),
            cluster=Partition.read(_sinfo(), os.environ),
        ),
    )


def _here() -> Path:
    """This folder under the name that it was entered by: behind a link there may be another disk on each machine."""
    said = Path(os.environ.get("PWD", ""))
    return said if said.is_absolute() and said.exists() and said.samefile(".") else Path.cwd()


def _name(script: str, folder: Path, options: Options) -> str:
    """By which the same command finds its array again: the table, and a hash of what is to be made and where."""
    decides = {name: str(value) for name, value in options.typed.items() if name not in SAYS_NOTHING}
    made_of = json.dumps([str(Path(script).resolve()), str(folder), decides], sort_keys=True)
    table = re.sub(r"[^\w.=-]", "_", Path(script).stem, flags=re.ASCII)
    return f"{table}-{hashlib.sha256(made_of.encode('utf-8', 'surrogateescape')).hexdigest()[:10]}"


def _count(n: int, what: str) -> str:
    return f"{n} {what}{'' if n == 1 else 's'}"


def submission(array: SlurmArray) -> str:
    """What `--dry-run` shows: the script and the command that would submit it, for all runs of the sweep."""
    i, n = array.shard
    tasks = range(1, len(range(i - 1, array.whole, n)) + 1)
    return f"{array.file} would be:\n\n{array.script(tasks)}\nand submitted there with: {' '.join(array.sbatch(tasks))}"


@dataclass(frozen=True, kw_only=True)
class Queued:
    """A task that Slurm has in hand."""

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
        self.n_workers = array.at_once or array.whole
        self.jobs: dict[int, int] = {}  # task -> number of its job
        needs = array.needs
        self.about = (
            f"A Slurm task for each run: {_count(needs.processors, 'processor')}, "
            f"{_count(needs.gpus, 'GPU') + ', ' if needs.gpus else ''}"
            f"{size(needs.memory)} of memory ({MEMORY_FACTOR} times the forecast), {duration(60 * needs.minutes)} at a "
            f"time ({TIME_FACTOR} times the longest run, or the limit; a run that needs more continues in another)."
        )

    def measure(self, work: Sequence[Work], progress: Progress) -> None:
        """Nothing: this machine says nothing of those."""

    def make(self, work: Sequence[Work], progress: Progress) -> Iterator[Made]:
        """Have the array make the runs; the outcome of each once its task has left the queue."""
        waiting = {one.cell + 1: one for one in work}
        self.signals.training, self.signals.answer = True, LEAVING
        self._submit(waiting.keys(), progress)
        yield from self._follow(waiting, progress)
        self.signals.training = False

    def _submit(self, tasks: Collection[int], progress: Progress) -> None:
        """Hand over those that are not in the queue already."""
        found = _squeue(self.array.name)
        if found is None:
            raise ValueError("squeue does not answer, so nobody can tell what is in the queue. Type the command again.")
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
                "cluster wants with Slurm's own variables: SBATCH_PARTITION, SBATCH_ACCOUNT, SBATCH_QOS, "
                "SBATCH_TIMELIMIT. If the array has too many runs: --shard 1/2, then --shard 2/2."
            )
        job = int(said.stdout.strip().partition(";")[0])
        self.jobs |= dict.fromkeys(missing, job)
        progress.say(
            f"Slurm job {job}: {_count(len(missing), 'run')}; logs are {self.array.folder}/{job}_*.log. "
            f"To cancel them: scancel {job}"
        )

    def _follow(self, waiting: dict[int, Work], progress: Progress) -> Iterator[Made]:
        watched, gone, asked = _Watched(progress), dict[int, float](), -ASK
        while waiting:
            if self.signals.should_stop():
                progress.say(
                    f"Slurm continues with {_count(len(waiting), 'run')} in {self._named_jobs(waiting)}. The same "
                    f"command returns to them; to cancel them: scancel {' '.join(map(str, self._jobs_of(waiting)))}"
                )
                for one in waiting.values():
                    yield Made(run=one.run, record=None, code=128 + self.signals.received)
                return
            now = time.monotonic()
            all_done = all((one.run.folder / RECORD).exists() for one in waiting.values())
            if now - asked >= (LOOK if all_done or gone else ASK):
                asked = now
                if (found := _squeue(self.array.name)) is not None:
                    self.jobs |= {task: one.job for task, one in found.items()}
                    gone = {task: gone.get(task, now) for task in waiting if task not in found}
                    watched.show(waiting, found)
            for task, since in list(gone.items()):
                if outcome := self._outcome(task, waiting[task], now - since, progress):
                    del gone[task], waiting[task]
                    yield outcome
            self._sleep()

    def _outcome(self, task: int, work: Work, seconds: float, progress: Progress) -> Made | None:
        """How the run of a task ended that left the queue so long ago; None where that cannot be told yet."""
        name, run = work.run.settings.name, work.run
        if record := run.finished():
            return Made(run=run, record=record)
        log = self.array.log(self.jobs[task], task)
        code = _exit_code(log)
        if not code and seconds < LATE:
            return None
        why = f"its task ended with exit code {code}" if code else "its task ended, or was cancelled, and left none"
        if log.exists():
            progress.say(f"{name} has no record: {why}. The end of {log}:\n{tail(str(log))}")
        else:
            progress.say(
                f"{name} has no record, and {log} was never written: do the machines of the cluster see "
                f"{self.array.folder}? If not, name a folder that they share with --runs-dir."
            )
        return Made(run=run, record=None, code=FAILED if code is None or code == 0 or code > 128 else code)

    def _jobs_of(self, tasks: Collection[int]) -> list[int]:
        return sorted({self.jobs[task] for task in tasks if task in self.jobs})

    def _named_jobs(self, tasks: Collection[int]) -> str:
        """job 12, or jobs 12 and 14"""
        numbers = [str(job) for job in self._jobs_of(tasks)]
        return f"job{'s' if len(numbers) > 1 else ''} {' and '.join(numbers)}"

    def _sleep(self) -> None:
        """Until the next look, or a signal."""
        until = time.monotonic() + LOOK
        while time.monotonic() < until and not self.signals.should_stop():
            time.sleep(min(0.2, LOOK))


class _Watched:
    """The runs of an array on the terminal: a lane for those that run, as far as there is room, and a line of all."""

    def __init__(self, progress: Progress) -> None:
        self._progress, self._said = progress, ""
        self._lanes = Lanes(progress)

    def show(self, waiting: Mapping[int, Work], found: Mapping[int, Queued]) -> None:
        running = [task for task in waiting if task in found and found[task].state == "RUNNING"]
        self._lanes.show({task: waiting[task].run for task in running})
        self._say(self._summary(waiting, found, running))

    def _summary(self, waiting: Mapping[int, Work], found: Mapping[int, Queued], running: Sequence[int]) -> str:
        """Slurm: running base seed 1, h=1 seed 1; 3 pending (Resources)"""
        names = [waiting[task].run.settings.name for task in running[:NAMED]]
        if len(running) > NAMED:
            names.append(f"{len(running) - NAMED} more")
        rest: dict[str, list[str]] = {}
        for task in waiting:
            if task in found and task not in running:
                rest.setdefault(found[task].state.lower(), []).append(found[task].why)
        parts = [f"running {', '.join(names)}"] if names else []
        for state, reasons in rest.items():
            why = ", ".join(sorted({reason for reason in reasons if reason not in ("None", "")}))
            parts.append(f"{len(reasons)} {state}{f' ({why})' if why else ''}")
        return f"Slurm: {'; '.join(parts)}" if parts else ""

    def _say(self, line: str) -> None:
        if line and line != self._said:
            self._said = line
            self._progress.say(line)


# Slurm's commands ---------------------------------------------------------------------------------------------


def _call(words: Sequence[str], cwd: Path | None = None) -> "subprocess.CompletedProcess[str]":
    """A command of Slurm's with this process's environment, as sbatch hands that on to the tasks.

    In a session of its own: a Ctrl-C that is for us must not break off what it submits.
    """
    try:
        return subprocess.run(
            words,
            cwd=cwd,
            env={name: value for name, value in os.environ.items() if name != "SBATCH_WAIT"},  # we wait ourselves
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
    """The tasks of arrays of that name, of this user; None where Slurm does not answer."""
    words = ("--noheader", "--array", f"--user={os.getuid()}", f"--name={name}", "--format=%F|%K|%T|%r")
    said = _call(["squeue", *words])
    if said.returncode:
        return None
    found: dict[int, Queued] = {}
    for line in said.stdout.split("\n"):
        if line.count("|") == 3:
            job, task, state, why = line.strip().split("|")
            found[int(task)] = Queued(job=int(job), state=state, why=why)
    return found


def _sinfo() -> str:
    """What there is, in lines of partition, resources and limit of time; nothing where Slurm does not answer."""
    return _call(["sinfo", "--noheader", "--format=%P|%G|%l"]).stdout if shutil.which("sinfo") else ""


# what a task leaves -------------------------------------------------------------------------------------------


def _exit_code(log: Path) -> int | None:
    """The exit code that the last attempt of a task wrote down; None if there is none."""
    codes = END.findall(end_of(log).rpartition(BEGIN)[2])
    return int(codes[-1]) if codes else None
