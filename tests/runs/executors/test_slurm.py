"""A sweep as a Slurm array: what is submitted, and what the script does.

Slurm's commands are stand-ins here; `test_real_slurm.py` has the real ones.
"""

import os
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from waiting import until

from repro.experiment import Paper, Row
from repro.runs.executors import slurm
from repro.runs.executors.executor import Job, JobResult, made_by
from repro.runs.executors.slurm import Slurm, SlurmArray, array_for, submission
from repro.runs.options import Options, chosen_scale
from repro.runs.progress import Progress
from repro.runs.table import Table, cells
from repro.runs.task import Translation


def program(path: Path, text: str) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


@pytest.fixture(autouse=True)
def _stand_ins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty queue, and commands that write down what they are asked."""
    tools = tmp_path / "bin"
    for name, answer in (("squeue", 'cat "$0.queue" 2>/dev/null; true'), ("sbatch", "echo '31;one'"), ("scontrol", "")):
        program(tools / name, f'{{ pwd; printf "%s\\n" "$@"; }} >> "$0.asked"\n{answer}')
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")


def asked(tmp_path: Path, name: str) -> list[str]:
    """The folder in which a command was called, and its words."""
    file = tmp_path / "bin" / f"{name}.asked"
    return file.read_text().split("\n")[:-1] if file.exists() else []


def array(folder: Path, *words: str, **differently: Any) -> SlurmArray:
    """One whose command is `python` of that folder."""
    usual: dict[str, Any] = {
        "name": "table_x-0123456789", "command": [str(folder / "python"), *words], "cwd": folder,
        "folder": folder / "my runs", "whole": 5, "parallelism": None,
        "processors": 2, "gpus": 0, "memory": 3 * 2**20 + 1, "minutes": 45,
    }  # fmt: skip
    return SlurmArray(**usual | differently)


def made(folder: Path, *finished: bool) -> list[JobResult]:
    """What comes of runs of which some are finished; they are numbers 2, 4, ... of the sweep."""
    work: Any = [
        Job(cell=i, run=SimpleNamespace(name=f"row{i}", folder=folder, finished=lambda done=done: done or None))  # type: ignore[arg-type,misc]
        for i, done in enumerate(finished)
    ]
    with Progress("table_x", len(work)) as progress, Slurm(array(folder), range(2, 99, 2)) as executor:
        return list(made_by(executor, work, progress))


def test_runs_without_record_are_submitted_and_left_to_slurm(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    [one] = made(tmp_path, False, True, False)
    assert (one.run.name, one.record) == ("row1", True)
    folder = tmp_path / "my runs"
    assert asked(tmp_path, "sbatch") == [
        str(folder), "--parsable", "--job-name=table_x-0123456789", "--array=2,6", "table_x-0123456789.sbatch"
    ]  # fmt: skip
    assert (folder / "table_x-0123456789.sbatch").read_text() == array(tmp_path).script
    said = capsys.readouterr().out
    assert f"Slurm job 31: 2 runs; logs are {folder}/31_*.log." in said
    assert "Look: squeue --me --name=table_x-0123456789; cancel: scancel --me --name=table_x-0123456789" in said


def test_what_is_in_the_queue_is_not_submitted_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "bin" / "squeue.queue").write_text("29_[1-3]\n")
    assert made(tmp_path, False) == []
    assert asked(tmp_path, "sbatch") == []
    assert asked(tmp_path, "squeue")[1:] == ["--noheader", "--me", "--name=table_x-0123456789"]
    assert "array is in the queue already, so nothing is submitted" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["squeue", "sbatch"])
def test_an_error_of_slurm_is_quoted(tmp_path: Path, name: str) -> None:
    program(tmp_path / "bin" / name, "echo 'error: invalid partition specified: x' >&2; exit 1")
    with pytest.raises(ValueError, match=rf"^{name}: error: invalid partition specified: x\n.*SBATCH_PARTITION"):
        made(tmp_path, False)
    assert asked(tmp_path, "sbatch") == []


def test_a_machine_without_slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ValueError, match=r"^--on slurm: there is no sbatch .* --shard 1/4"):
        made(tmp_path)


def plan(*words: str, again: Sequence[str] = ("/bin/python", "table_x.py")) -> SlurmArray:
    options = Options.read("table_x", ["--scale=smoke", "--on=slurm", *words])
    rows = [Row("h=1", lambda base: base.__class__(**vars(base) | {"warmup": 7}), Paper())]
    scale = chosen_scale(options)
    table = [Table(name="table_x", rows=rows, title="")]
    whole = cells(table, scale.base, seeds=options.seeds, chosen=options.rows, task=Translation("en-de"))
    return array_for(whole, scale, options, [*again, *words])


def test_the_plan_follows_the_options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slurm, "MOST_MINUTES", 100)
    name = plan().name
    assert name.startswith("table_x-")
    assert plan("--dry-run").name == name  # which shows what is submitted without it
    assert plan("--seeds=2").name != name
    made = plan("--seeds=2", "--shard=2/3", "--jobs=4", f"--runs-dir={tmp_path}", "--dry-run")
    assert (made.whole, made.parallelism, made.folder) == (4, 4, tmp_path / "slurm")
    assert list(made.command)[:3] == ["/bin/python", "table_x.py", "--seeds=2"]
    assert "--dry-run" not in made.command
    assert (made.processors, made.gpus, made.minutes) == (1, 0, 30)
    wide = plan("--scale=paper", "--devices=2")
    assert (wide.processors, wide.gpus, wide.minutes) == (2, 2, 100)  # longer runs go on in another task
    shown = submission(made, [4, 2])
    assert made.script in shown
    assert shown.endswith(f"--job-name={made.name} --array=2,4%4 {made.name}.sbatch")


# ---- the script does what it says: run by bash, with commands that stand for Slurm's

ODD = 'it\'s "quoted" $(touch broken) `touch broken` % #\n#SBATCH --mem=1'


def begin(one: SlurmArray, task: int, *, restarts: int = 0) -> "subprocess.Popen[str]":
    """The script as a task of a node."""
    one.folder.mkdir(parents=True, exist_ok=True)
    one.file.write_text(one.script)
    return subprocess.Popen(
        ["bash", str(one.file)],
        env={
            "PATH": os.environ["PATH"],
            "SLURM_ARRAY_JOB_ID": "76",
            "SLURM_ARRAY_TASK_ID": str(task),
            **({"SLURM_RESTART_COUNT": str(restarts)} if restarts else {}),
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def test_odd_words_and_folders_reach_the_run_unchanged(tmp_path: Path) -> None:
    folder = tmp_path / ODD
    program(folder / "python", 'pwd\nfor word in "$@"; do printf "<%s>" "$word"; done')
    words = ["my table.py", "--rows", "it's", "$HOME", "--data-dir", ODD]
    one = array(folder, *words, whole=11)
    process = begin(one, 3)
    said, _ = process.communicate()
    assert process.returncode == 0
    words += ["--on", "here", "--jobs", "1", "--shard", "3/11"]
    assert said == f"{folder}\n" + "".join(f"<{word}>" for word in words)
    assert sorted(path.name for path in folder.iterdir()) == ["my runs", "python"]
    # no line that Slurm reads has a word of the user's
    lines = [line for line in one.script.split("\n\n")[0].split("\n") if line.startswith("#SBATCH")]
    assert lines == [
        "#SBATCH --nodes=1",
        "#SBATCH --ntasks=1",
        "#SBATCH --cpus-per-task=2",
        "#SBATCH --mem=4M",
        "#SBATCH --time=45",
        "#SBATCH --requeue",
        "#SBATCH --signal=B:USR1@120",
        "#SBATCH --open-mode=append",
        "#SBATCH --output=%A_%a.log",
    ]
    (folder / "python").unlink()
    elsewhere = begin(array(tmp_path, cwd=folder / "nowhere"), 1)
    assert "No such file or directory" in elsewhere.communicate()[0]
    assert elsewhere.returncode == 2


@pytest.mark.parametrize(
    ("code", "restarts", "again"),
    [(138, 49, True), (138, 50, False), (143, 0, False), (75, 0, False), (1, 0, False), (0, 0, False)],
)
def test_only_what_stopped_before_the_limit_is_queued_again(
    tmp_path: Path, code: int, restarts: int, again: bool
) -> None:
    program(tmp_path / "python", f"exit {code}")
    process = begin(array(tmp_path), 2, restarts=restarts)
    process.communicate()
    assert process.returncode == code
    assert asked(tmp_path, "scontrol")[1:] == (["requeue", "76_2"] if again else [])


HEARING = """
trap 'echo USR1 >> heard; sleep 0.2; exit $(cat code)' USR1
trap 'echo TERM >> heard; exit 143' TERM
echo $$ > pid; touch begun
while :; do sleep 0.01; done
"""


@pytest.mark.parametrize("code", [138, 0])  # that of the run, not of the wait that the signal breaks off
def test_the_warning_before_the_limit_is_passed_on_once(tmp_path: Path, code: int) -> None:
    program(tmp_path / "python", HEARING)
    (tmp_path / "code").write_text(str(code))
    process = begin(array(tmp_path), 1)
    until((tmp_path / "begun").exists, 30)
    process.send_signal(signal.SIGUSR1)
    said, _ = process.communicate(timeout=30)
    assert (tmp_path / "heard").read_text() == "USR1\n"
    assert (process.returncode, len(asked(tmp_path, "scontrol")) > 0) == (code, code == 138), said


def test_sigterm_is_not_passed_on(tmp_path: Path) -> None:
    # a second TERM ends a run at once, without the checkpoint that the first one asked for
    program(tmp_path / "python", HEARING)
    process = begin(array(tmp_path), 1)
    until((tmp_path / "begun").exists, 30)
    process.send_signal(signal.SIGTERM)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.2)
    assert not (tmp_path / "heard").exists()
    os.kill(int((tmp_path / "pid").read_text()), signal.SIGTERM)
    said, _ = process.communicate(timeout=30)
    assert (process.returncode, asked(tmp_path, "scontrol")) == (143, []), said
