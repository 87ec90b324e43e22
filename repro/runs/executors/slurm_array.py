"""What is given to Slurm: an array of which each task makes one run, as a batch script and the command that submits it.

A task is this very command with `--shard i/n`, so the script holds nothing but words that a person could have typed.
"""

import re
import shlex
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ARRAYS = "slurm"  # in the folder of runs: scripts and logs
TIME_FACTOR, LEAST_MINUTES = 4, 30  # of the forecast; a run that needs longer is stopped at the limit, and goes on
MEMORY_FACTOR = 1.5
BEFORE_THE_LIMIT = 120  # seconds
STOPPED_AT_MOST, KILLED_AT_MOST = 50, 5  # times that a task is queued again

_DAY = re.compile(r"(?:(?P<days>\d+)-)?(?:(?P<hours>\d+):)?(?P<minutes>\d+):(?P<seconds>\d+)")


@dataclass(frozen=True, kw_only=True)
class Needs:
    """What one task may use."""

    processors: int
    gpus: int
    memory: int  # bytes
    minutes: int

    @classmethod
    def of(cls, *, threads: int, devices: int, seconds: float, memory: int, cluster: "Partition") -> "Needs":
        """For a run that is expected to take so many seconds, and so many bytes in each of its processes.

        Generous, since the next machine is not this one; never more time than the partition gives.
        """
        minutes = max(LEAST_MINUTES, -(-int(TIME_FACTOR * seconds) // 60))
        return cls(
            processors=threads * devices,
            gpus=devices if cluster.has_gpus else 0,
            memory=int(MEMORY_FACTOR * memory * devices),
            minutes=min(minutes, cluster.most_minutes or minutes),
        )


@dataclass(frozen=True, kw_only=True)
class Partition:
    """The machines that the array would go to, as far as `sinfo` told."""

    has_gpus: bool = False
    most_minutes: int | None = None  # None: as many as one likes

    @classmethod
    def read(cls, said: str, environment: Mapping[str, str]) -> "Partition":
        """From what `sinfo --format=%P|%G|%l` says of the partition that sbatch will take: one named, or the usual."""
        named = environment.get("SBATCH_PARTITION", "").split(",")
        lines = [line.split("|") for line in said.split("\n") if line.count("|") == 2]
        own = [line for line in lines if (line[0] in named if any(named) else line[0].endswith("*"))]
        limits = [minutes for _, _, limit in own if (minutes := _minutes(limit)) is not None]
        return cls(
            has_gpus=any(re.search(r"\bgpu\b", resources) for _, resources, _ in own),
            most_minutes=min(limits, default=None),
        )


@dataclass(frozen=True, kw_only=True)
class SlurmArray:
    """An array as it is submitted."""

    name: str  # by which the same command finds it in the queue
    command: Sequence[str]  # without what says which run
    cwd: Path
    folder: Path  # absolute
    whole: int  # runs of the sweep
    shard: tuple[int, int]  # of which this array makes every n-th from the i-th on
    at_once: int | None  # None: as many as the cluster gives
    needs: Needs

    @property
    def file(self) -> Path:
        """Where the script stands."""
        return self.folder / f"{self.name}.sbatch"

    def log(self, job: int, task: int) -> Path:
        """What a task has printed, over all its attempts."""
        return self.folder / f"{job}_{task}.log"

    def sbatch(self, tasks: Collection[int]) -> list[str]:
        """The command that submits these tasks; to be run in the folder, since a name of Slurm's may hold no blank.

        What finds the array again is said here, where no SBATCH_ variable of the environment goes before it.
        """
        most = f"%{self.at_once}" if self.at_once else ""
        return [
            "sbatch",
            "--parsable",
            f"--job-name={self.name}",
            f"--array={indices(tasks)}{most}",
            "--output=%A_%a.log",
            self.file.name,
        ]

    def script(self, tasks: Collection[int]) -> str:
        """The batch script. What it holds of names is quoted; the lines that Slurm reads hold numbers of ours alone."""
        i, n = self.shard
        words = {
            "name": self.name,
            "array": indices(tasks) + (f"%{self.at_once}" if self.at_once else ""),
            "processors": self.needs.processors,
            "gpus": f"#SBATCH --gres=gpu:{self.needs.gpus}\n" if self.needs.gpus else "",
            "memory": -(-self.needs.memory // 2**20),
            "minutes": self.needs.minutes,
            "before": BEFORE_THE_LIMIT,
            "stopped": STOPPED_AT_MOST,
            "killed": KILLED_AT_MOST,
            "cwd": shlex.quote(str(self.cwd)),
            "own": shlex.quote(str(self.file)),
            "python": shlex.quote(self.command[0]),
            "words": shlex.join(self.command[1:]),
            "number": f"$((SLURM_ARRAY_TASK_ID * {n} - {n - i}))" if n > 1 else "$SLURM_ARRAY_TASK_ID",
            "whole": self.whole,
        }
        return _SCRIPT.format_map(words)


def indices(tasks: Collection[int]) -> str:
    """Numbers as Slurm writes them: 1-3,5"""
    runs: list[list[int]] = []
    for task in sorted(tasks):
        if runs and runs[-1][-1] == task - 1:
            runs[-1].append(task)
        else:
            runs.append([task])
    return ",".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)


def _minutes(limit: str) -> int | None:
    """Of Slurm's 1-02:30:00 or 30:00; None for what has no end."""
    found = _DAY.fullmatch(limit.strip())
    if not found:
        return None
    days, hours, minutes, _ = (int(one or 0) for one in found.groups())
    return (days * 24 + hours) * 60 + minutes


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

python={python}
cwd={cwd}
own={own}
shard={number}/{whole}
job=${{SLURM_ARRAY_JOB_ID}}_$SLURM_ARRAY_TASK_ID
say "Slurm job $job, queued again ${{SLURM_RESTART_COUNT:-0}} times: shard $shard"
for there in "$own" "$cwd" "$python"; do
    if [ ! -e "$there" ]; then
        say "$there is not here, but was where the array was submitted. Runs, code and Python have to be in folders" \\
            "that all machines share."
        say "ended with exit code 2"
        exit 2
    fi
done
cd -- "$cwd" || exit 2

# Slurm sends USR1 to this shell alone, before the limit of time: it is passed on, and the run stops with a checkpoint.
# TERM, before it kills, goes to all processes of the task by itself: a second one would end the run at once.
heard= run=
trap 'heard=1; [ -z "$run" ] || kill -USR1 "$run" 2>/dev/null' USR1
trap 'heard=1' TERM
"$python" {words} --on here --jobs 1 --shard "$shard" &
run=$!
code=
while [ -z "$code" ] || [ -n "$heard" ]; do
    heard=
    wait "$run"
    code=$?
done
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
