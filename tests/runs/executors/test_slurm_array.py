"""The batch script does what it says: run by bash, with commands that stand for Slurm's."""

import os
import shlex
import signal
import subprocess
import time
from pathlib import Path

import pytest

from repro.runs.executors.slurm_array import Needs, Partition, SlurmArray, indices

NEEDS = Needs(processors=2, gpus=0, memory=3 * 2**20 + 1, minutes=45)
ODD = 'it\'s "quoted" $(touch broken) `touch broken` % #\n#SBATCH --mem=1'


def array(
    folder: Path, *words: str, shard: tuple[int, int] = (1, 1), whole: int = 5, at_once: int | None = None
) -> SlurmArray:
    """One whose command is `python` of that folder, which the test has written."""
    return SlurmArray(
        name="table_x-0123456789",
        command=[str(folder / "python"), *words],
        cwd=folder,
        folder=folder,
        whole=whole,
        shard=shard,
        at_once=at_once,
        needs=NEEDS,
    )


def program(path: Path, text: str) -> None:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def begin(one: SlurmArray, task: int, *, state: str = "RUNNING", restarts: int = 0) -> "subprocess.Popen[str]":
    """The script as a task of a node, where squeue says `state` and scontrol writes down what it is asked."""
    tools = one.folder / "tools"
    tools.mkdir(exist_ok=True)
    program(tools / "squeue", f"echo {state}")
    program(tools / "scontrol", f'echo "$@" >> {shlex.quote(str(tools / "asked"))}')
    one.file.write_text(one.script([task]))
    return subprocess.Popen(
        ["bash", str(one.file)],
        env={
            "PATH": f"{tools}:{os.environ['PATH']}",
            "SLURM_JOB_ID": "77",
            "SLURM_ARRAY_JOB_ID": "76",
            "SLURM_ARRAY_TASK_ID": str(task),
            **({"SLURM_RESTART_COUNT": str(restarts)} if restarts else {}),
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def asked(one: SlurmArray) -> list[str]:
    """What scontrol was asked."""
    file = one.folder / "tools" / "asked"
    return file.read_text().splitlines() if file.exists() else []


def test_words_and_folders_arrive_as_they_are(tmp_path: Path) -> None:
    folder = tmp_path / ODD
    folder.mkdir()
    program(folder / "python", 'pwd\nfor word in "$@"; do printf "<%s>" "$word"; done')
    one = array(folder, "my table.py", "--rows", "it's", "$HOME", "--data-dir", ODD, shard=(2, 3), whole=11)
    process = begin(one, 3)
    said, _ = process.communicate()
    assert process.returncode == 0
    words = [
        "my table.py",
        "--rows",
        "it's",
        "$HOME",
        "--data-dir",
        ODD,
        "--on",
        "here",
        "--jobs",
        "1",
        "--shard",
        "8/11",
    ]
    assert "".join(f"<{word}>" for word in words) in said
    assert f"\n{folder}\n" in said
    assert sorted(path.name for path in folder.iterdir()) == ["python", one.file.name, "tools"]
    # no line that Slurm reads has a word of the user's
    lines = [line for line in one.script([3]).split("\n\n")[0].split("\n") if line.startswith("#SBATCH")]
    assert lines == [
        "#SBATCH --job-name=table_x-0123456789",
        "#SBATCH --array=3",
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


@pytest.mark.parametrize(
    ("code", "state", "restarts", "again"),
    [
        (138, "RUNNING", 0, True),  # the limit of time was near
        (138, "RUNNING", 49, True),
        (138, "RUNNING", 50, False),
        (138, "COMPLETING", 0, False),
        (143, "RUNNING", 0, True),  # pre-empted, with time to end
        (143, "COMPLETING", 0, False),  # cancelled: to queue it again would undo that
        (75, "RUNNING", 4, True),
        (75, "RUNNING", 5, False),
        (137, "RUNNING", 4, True),
        (137, "RUNNING", 5, False),
        *((code, "RUNNING", 0, False) for code in (0, 1, 2, 70, 71, 74, 139)),
    ],
)  # fmt: skip
def test_what_may_end_otherwise_is_queued_again_and_nothing_else(
    tmp_path: Path, code: int, state: str, restarts: int, again: bool
) -> None:
    program(tmp_path / "python", f"exit {code}")
    one = array(tmp_path)
    process = begin(one, 2, state=state, restarts=restarts)
    said, _ = process.communicate()
    assert process.returncode == code
    assert asked(one) == (["requeue 76_2"] if again else [])
    assert f": ended with exit code {code}\n" in said
    assert f"queued again {restarts} times: shard 2/5" in said


def wait_for(path: Path) -> None:
    deadline = time.monotonic() + 60
    while not path.exists():
        assert time.monotonic() < deadline
        time.sleep(0.005)


HEARING = """
trap 'echo USR1 >> heard; sleep 0.2; exit $(cat code)' USR1
trap 'echo TERM >> heard; exit 143' TERM
echo $$ > pid; touch begun
while :; do sleep 0.01; done
"""


@pytest.mark.parametrize(("code", "again"), [(138, ["requeue 76_1"]), (0, [])], ids=["stopped", "done anyway"])
def test_the_warning_before_the_limit_is_passed_on_once(tmp_path: Path, code: int, again: list[str]) -> None:
    program(tmp_path / "python", HEARING)
    (tmp_path / "code").write_text(str(code))  # that of the run, not of the wait that the signal breaks off
    one = array(tmp_path)
    process = begin(one, 1)
    wait_for(tmp_path / "begun")
    process.send_signal(signal.SIGUSR1)
    said, _ = process.communicate(timeout=60)
    assert (tmp_path / "heard").read_text() == "USR1\n"
    assert process.returncode == code, said
    assert asked(one) == again


def test_what_goes_to_all_processes_is_not_passed_on(tmp_path: Path) -> None:
    # a second TERM ends a run at once, without the checkpoint that the first one asked for
    program(tmp_path / "python", HEARING)
    one = array(tmp_path)
    process = begin(one, 1, state="COMPLETING")
    wait_for(tmp_path / "begun")
    process.send_signal(signal.SIGTERM)
    time.sleep(0.2)
    assert not (tmp_path / "heard").exists()
    assert process.poll() is None
    os.kill(int((tmp_path / "pid").read_text()), signal.SIGTERM)
    said, _ = process.communicate(timeout=60)
    assert (process.returncode, asked(one)) == (143, []), said


@pytest.mark.parametrize("gone", ["own", "cwd", "python"])
def test_a_machine_that_sees_another_folder_says_which(tmp_path: Path, gone: str) -> None:
    program(tmp_path / "python", "touch made")
    one = array(tmp_path)
    places = {"own": one.file, "cwd": tmp_path, "python": tmp_path / "python"}
    text = one.script([1]).replace(f"{gone}={places[gone]}\n", f"{gone}={tmp_path}/nowhere\n")
    one.file.write_text(text)
    done = subprocess.run(["bash", str(one.file)], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert f": {tmp_path}/nowhere is not here, but was where the array was submitted." in done.stdout
    assert done.stdout.endswith(": ended with exit code 2\n")
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize(
    ("tasks", "written"), [([1], "1"), ([3, 1, 2], "1-3"), ([1, 2, 3, 5, 7, 8], "1-3,5,7-8"), ([10, 2], "2,10")]
)
def test_numbers_of_tasks(tasks: list[int], written: str) -> None:
    assert indices(tasks) == written


@pytest.mark.parametrize("shards", [1, 2, 3, 5, 7])
def test_the_tasks_of_all_shards_are_the_runs_of_the_sweep(tmp_path: Path, shards: int) -> None:
    whole = 11
    program(tmp_path / "python", "")
    found = []
    for i in range(1, shards + 1):
        script = array(tmp_path, shard=(i, shards), whole=whole).script([1])
        [line] = [line for line in script.split("\n") if line.startswith("shard=")]
        n_tasks = len(range(i - 1, whole, shards))
        loop = f'for SLURM_ARRAY_TASK_ID in $(seq {n_tasks}); do {line}; echo "$shard"; done'
        found += subprocess.run(["bash", "-c", loop], capture_output=True, text=True, check=True).stdout.split()
    assert sorted(found) == sorted(f"{number}/{whole}" for number in range(1, whole + 1))


def test_the_command_says_what_no_variable_may_change(tmp_path: Path) -> None:
    assert array(tmp_path, at_once=2).sbatch([1, 2, 4]) == [
        "sbatch", "--parsable", "--job-name=table_x-0123456789", "--array=1-2,4%2", "--output=%A_%a.log",
        "table_x-0123456789.sbatch",
    ]  # fmt: skip
    assert "\n#SBATCH --array=1-2,4%2\n" in array(tmp_path, at_once=2).script([1, 2, 4])


def test_what_a_task_may_use() -> None:
    some = {"threads": 3, "devices": 2, "memory": 1_000, "cluster": Partition(has_gpus=True, most_minutes=90)}
    assert Needs.of(seconds=60.0, **some) == Needs(processors=6, gpus=2, memory=3_000, minutes=30)
    assert Needs.of(seconds=901.0, **some).minutes == 61  # four times fifteen, and begun is whole
    assert Needs.of(seconds=1e6, **some).minutes == 90
    assert Needs.of(seconds=3_600.0, **some | {"cluster": Partition()}) == Needs(
        processors=6, gpus=0, memory=3_000, minutes=240
    )


SINFO = (
    "cpu*|(null)|infinite\ngpu|gpu:a100:4(S:0-1)|2-12:30:00\nshort|(null)|30:00\nhybrid|gres/shard:2,gpu:1|4:00:00\n"
)


@pytest.mark.parametrize(
    ("named", "found"),
    [
        ("", Partition()),
        ("gpu", Partition(has_gpus=True, most_minutes=60 * 60 + 30)),
        ("short", Partition(most_minutes=30)),
        ("short,hybrid", Partition(has_gpus=True, most_minutes=30)),
        ("nowhere", Partition()),
    ],
)
def test_what_the_partition_has(named: str, found: Partition) -> None:
    assert Partition.read(SINFO, {"SBATCH_PARTITION": named} if named else {}) == found
    assert Partition.read("", {}) == Partition()
