"""The script of a Slurm array does what it says: run by bash, with a command that stands for Slurm's."""

import os
import signal
import subprocess
from pathlib import Path

import pytest
from waiting import until

SCRIPT = Path(__file__).parents[2] / "docs" / "sweep.sbatch"
ODD = 'it\'s "quoted" $(touch broken) `touch broken` % #\n#SBATCH --mem=1'


def program(path: Path, text: str) -> str:
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def begin(folder: Path, *words: str, task: int = 1, restarts: int = 0, **of_array: str) -> "subprocess.Popen[str]":
    """The script as a task of a node, of an array of eleven; scontrol writes down what it is asked."""
    program(folder / "bin" / "scontrol", f'printf "%s\\n" "$@" >> "{folder}/asked"')
    variables = {
        "PATH": f"{folder / 'bin'}:{os.environ['PATH']}",
        "SLURM_ARRAY_JOB_ID": "76",
        "SLURM_ARRAY_TASK_ID": str(task),
        "SLURM_ARRAY_TASK_MIN": "1",
        "SLURM_ARRAY_TASK_MAX": "11",
        "SLURM_ARRAY_TASK_COUNT": "11",
        **({"SLURM_RESTART_COUNT": str(restarts)} if restarts else {}),
        **of_array,
    }
    return subprocess.Popen(
        ["bash", str(SCRIPT), *words], cwd=folder, env=variables, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True,
    )  # fmt: skip


def requeued(folder: Path) -> list[str]:
    return (folder / "asked").read_text().split("\n")[:-1] if (folder / "asked").exists() else []


def test_odd_words_reach_the_run_unchanged_with_its_shard(tmp_path: Path) -> None:
    python = program(tmp_path / "my python", 'for word in "$@"; do printf "<%s>" "$word"; done')
    words = ["my table.py", "--rows", "it's", "$HOME", "--data-dir", ODD]
    process = begin(tmp_path, python, *words, task=3)
    said, _ = process.communicate()
    assert process.returncode == 0
    assert said == "".join(f"<{word}>" for word in [*words, "--jobs", "1", "--shard", "3/11"])
    assert not (tmp_path / "broken").exists()


@pytest.mark.parametrize("of_array", [{"SLURM_ARRAY_TASK_MIN": "0"}, {"SLURM_ARRAY_TASK_COUNT": "6"}])
def test_an_array_that_would_leave_runs_out_is_refused(tmp_path: Path, of_array: dict[str, str]) -> None:
    process = begin(tmp_path, program(tmp_path / "python", "touch ran"), task=3, **of_array)
    said, _ = process.communicate()
    assert (process.returncode, said.count("--array=1-5")) == (2, 1)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("code", "restarts", "again"),
    [(138, 49, True), (138, 50, False), (143, 0, False), (75, 0, False), (1, 0, False), (0, 0, False)],
)
def test_only_what_stopped_before_the_limit_is_queued_again(
    tmp_path: Path, code: int, restarts: int, again: bool
) -> None:
    process = begin(tmp_path, program(tmp_path / "python", f"exit {code}"), task=2, restarts=restarts)
    process.communicate()
    assert process.returncode == code
    assert requeued(tmp_path) == (["requeue", "76_2"] if again else [])


HEARING = """
trap 'echo USR1 >> heard; sleep 0.2; exit $(cat code)' USR1
trap 'echo TERM >> heard; exit 143' TERM
echo $$ > pid; touch begun
while :; do sleep 0.01; done
"""


@pytest.mark.parametrize("code", [138, 0])  # that of the run, not of the wait that the signal breaks off
def test_the_warning_before_the_limit_is_passed_on_once(tmp_path: Path, code: int) -> None:
    (tmp_path / "code").write_text(str(code))
    process = begin(tmp_path, program(tmp_path / "python", HEARING))
    until((tmp_path / "begun").exists, 30)
    process.send_signal(signal.SIGUSR1)
    said, _ = process.communicate(timeout=30)
    assert (tmp_path / "heard").read_text() == "USR1\n"
    assert (process.returncode, len(requeued(tmp_path)) > 0) == (code, code == 138), said


def test_sigterm_is_not_passed_on(tmp_path: Path) -> None:
    # a second TERM ends a run at once, without the checkpoint that the first one asked for
    process = begin(tmp_path, program(tmp_path / "python", HEARING))
    until((tmp_path / "begun").exists, 30)
    process.send_signal(signal.SIGTERM)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.2)
    assert not (tmp_path / "heard").exists()
    os.kill(int((tmp_path / "pid").read_text()), signal.SIGTERM)
    said, _ = process.communicate(timeout=30)
    assert (process.returncode, requeued(tmp_path)) == (143, []), said
