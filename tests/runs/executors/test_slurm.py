"""A sweep as a Slurm array: what is submitted, how it is followed, and what is said when it goes wrong.

Slurm's commands are stand-ins here, that answer what a test has laid down; `test_real_slurm.py` has the real ones.
"""

import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from own_signals import own_signals
from waiting import until

from repro.experiment import Paper, Row
from repro.runs.executors import slurm, tail
from repro.runs.executors.executor import FAILED, OUT_OF_MEMORY, Job, JobResult, made_by
from repro.runs.executors.slurm import Slurm, SlurmArray, array_for
from repro.runs.options import Options, chosen_scale
from repro.runs.progress import Progress
from repro.runs.signals import Signals
from repro.runs.table import Table, cells
from repro.runs.task import Translation

ROOT = Path(__file__).parents[3]


def program(path: Path, text: str) -> None:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


class Cluster:
    """Stand-ins for Slurm's commands: squeue answers one scripted text after the other, the last one for ever."""

    def __init__(self, folder: Path, signals: Signals) -> None:
        self.folder, self.signals = folder, signals
        home = f"cd {shlex.quote(str(folder))}; "
        program(
            folder / "squeue",
            home + "n=$(($(cat turn) + 1)); echo $n > turn; while [ ! -e q$n ]; do n=$((n - 1)); done; sh q$n",
        )
        program(
            folder / "sbatch",
            f'at=$(pwd); {home} echo "$at" > submitted_in; printf "%s\\n" "$@" >> submitted; echo "31;one"',
        )
        self.answers()

    def answers(self, *queues: str) -> None:
        """What squeue says, call by call: lines of "job|task|state|why", or "!" where it fails."""
        (self.folder / "turn").write_text("0")
        for number, queue in enumerate(queues or ("",), 1):
            says = "exit 1" if queue == "!" else f"cat <<'END'\n{queue}\nEND"
            (self.folder / f"q{number}").write_text(says)

    @property
    def submitted(self) -> list[str]:
        file = self.folder / "submitted"
        return file.read_text().splitlines() if file.exists() else []

    def make(self, *todo: Job) -> list[JobResult]:
        """What comes of runs that an array makes."""
        with Progress("table_x", len(todo)) as progress, Slurm(array(self.folder.parent), self.signals) as executor:
            return list(made_by(executor, todo, progress))


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    monkeypatch.setattr(slurm, "ASK", 0.01)
    monkeypatch.setattr(slurm, "LATE", 0.1)
    monkeypatch.setattr(tail, "LOOK", 0.01)
    with own_signals():
        yield Cluster(folder, Signals())


def array(folder: Path, *words: str, **differently: Any) -> SlurmArray:
    """One whose command is `python` of that folder."""
    usual: dict[str, Any] = {
        "name": "table_x-0123456789", "command": [str(folder / "python"), *words], "cwd": folder,
        "folder": folder / "runs" / "slurm", "whole": 5, "shard": (1, 1), "parallelism": None,
        "processors": 2, "gpus": 0, "memory": 3 * 2**20 + 1, "minutes": 45,
    }  # fmt: skip
    return SlurmArray(**usual | differently)


def work(folder: Path, number: int, record: Callable[[int], Any] = lambda asked: None) -> Job:
    """What an executor asks of a run; `record` tells whether it is finished when it is asked for the n-th time."""
    asked = [0]

    def finished() -> Any:
        asked[0] += 1
        return record(asked[0])

    name = f"row {number} seed 1"
    run = SimpleNamespace(
        name=name, spec=SimpleNamespace(hyper=SimpleNamespace(steps=40)), finished=finished, folder=folder / name
    )
    return Job(cell=number, run=run)  # type: ignore[arg-type]


def done_at(turn: int) -> Callable[[int], str | None]:
    return lambda asked: "a record" if asked >= turn else None


def test_runs_without_record_are_submitted_and_followed(
    tmp_path: Path, cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    todo = [work(tmp_path, 0, done_at(2)), work(tmp_path, 1, done_at(1)), work(tmp_path, 2, done_at(2))]
    pending = "31|1|PENDING|Resources\n31|3|PENDING|Priority"
    cluster.answers("", pending, "31|1|RUNNING|None\n31|3|PENDING|Priority", "31|3|COMPLETING|None", "")
    outcomes = cluster.make(*todo)
    assert [(one.run, one.record, one.code) for one in outcomes] == [
        (todo[number].run, "a record", 0) for number in (1, 0, 2)
    ]
    assert cluster.submitted == [
        "--parsable", "--job-name=table_x-0123456789", "--array=1,3", "--output=%A_%a.log", "table_x-0123456789.sbatch"
    ]  # fmt: skip
    folder = tmp_path / "runs" / "slurm"
    assert (cluster.folder / "submitted_in").read_text() == f"{folder}\n"
    assert "#SBATCH --array=1,3\n" in (folder / "table_x-0123456789.sbatch").read_text()
    said = capsys.readouterr().out
    assert "row 1 seed 1: finished before" in said
    assert "Slurm job 31: 2 runs; " in said
    assert "To cancel them: scancel 31\n" in said
    assert [line for line in said.split("\n") if line.startswith("Slurm: ")] == [
        "Slurm: 2 pending (Priority, Resources)",
        "Slurm: 1 running, 1 pending (Priority)",
        "Slurm: 1 completing",
    ]


def test_queued_runs_are_not_submitted_twice(
    tmp_path: Path, cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.answers("29|2|PENDING|None", "")
    assert len(cluster.make(*(work(tmp_path, number, done_at(2)) for number in range(3)))) == 3
    assert "--array=1,3" in cluster.submitted
    assert "In Slurm's queue already: job 29 with 1 of these runs." in capsys.readouterr().out
    (cluster.folder / "submitted").unlink()
    cluster.answers("29|1|PENDING|None", "")
    assert len(cluster.make(work(tmp_path, 0, done_at(2)))) == 1
    assert cluster.submitted == []


def test_ctrl_c_leaves_the_runs_to_slurm(tmp_path: Path, cluster: Cluster, capfd: pytest.CaptureFixture[str]) -> None:
    cluster.answers("", "31|1|RUNNING|None\n31|2|PENDING|None")
    todo, outcomes = [work(tmp_path, 0), work(tmp_path, 1)], []
    with Progress("table_x", 2) as progress, Slurm(array(tmp_path), cluster.signals) as executor:
        say, said = progress.say, list[str]()
        progress.say = lambda text: (said.append(text), say(text), "running" in text and os.kill(os.getpid(), 2))  # type: ignore
        outcomes = list(made_by(executor, todo, progress))
    assert [(one.record, one.code) for one in outcomes] == [(None, 130)] * 2
    assert said[-1] == (
        "Slurm continues with 2 runs in job 31. The same command returns to them; to cancel them: scancel 31"
    )
    assert "Leaving the runs to Slurm; a second signal leaves at once." in capfd.readouterr().err


def log(folder: Path, task: int, *attempts: str) -> Path:
    path = folder / "runs" / "slurm" / f"31_{task}.log"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"2026 node: Slurm job 31_{task}, queued again 0 times\n{text}\n" for text in attempts))
    return path


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        ("killed: 9\nx: ended with exit code 71", OUT_OF_MEMORY, "its task ended with exit code 71"),
        ("x: ended with exit code 143\nCANCELLED", FAILED, "its task ended with exit code 143"),
        ("killed", FAILED, "its task ended or was cancelled without one"),
    ],
)
def test_a_run_without_a_record_is_named_with_the_end_of_its_log(
    tmp_path: Path, cluster: Cluster, capsys: pytest.CaptureFixture[str], text: str, code: int, said: str
) -> None:
    path = log(tmp_path, 1, "x: ended with exit code 138", text)
    cluster.answers("", "31|1|RUNNING|None\n31|2|RUNNING|None", "")
    made = cluster.make(work(tmp_path, 0), work(tmp_path, 1, done_at(2)))
    [good, bad] = sorted(made, key=lambda one: not one.record)
    assert (good.code, bad.record, bad.code) == (0, None, code)
    printed = capsys.readouterr().out
    assert f"row 0 seed 1 has no record: {said}. The end of {path}:\n" in printed
    assert f"  | {text.split()[-1]}" in printed or f"  | {text.splitlines()[-1]}" in printed


def test_a_missing_log_points_at_the_shared_folder(
    tmp_path: Path, cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.answers("", "")
    [one] = cluster.make(work(tmp_path, 0))
    assert one.code == FAILED
    assert "31_1.log was never written: do the machines of the cluster see" in capsys.readouterr().out


def test_a_record_that_becomes_visible_late_counts(tmp_path: Path, cluster: Cluster) -> None:
    # a network file system shows what another machine wrote some seconds later
    cluster.answers("", "")
    [one] = cluster.make(work(tmp_path, 0, done_at(9)))
    assert (one.record, one.code) == ("a record", 0)


def test_a_silent_queue_is_asked_again(tmp_path: Path, cluster: Cluster) -> None:
    cluster.answers("", "!", "!", "31|1|RUNNING|None", "!", "")
    [one] = cluster.make(work(tmp_path, 0, done_at(2)))
    assert one.record
    assert (cluster.folder / "turn").read_text().strip() == "6", "a queue that is silent is not an empty one"


def test_steps_are_shown_as_the_journal_has_them(
    tmp_path: Path, cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    one = work(tmp_path, 0, done_at(2))
    one.run.folder.mkdir()
    line = '{{"crc32": "00000000", "kind": "{}", "step": {}, "time": 1.0, "attempt": 1}}\n'
    (one.run.folder / "journal.jsonl").write_text(line.format("train", 35) + line.format("train", 40) + '{"crc32": "0')
    cluster.answers("", "31|1|RUNNING|None", "")
    cluster.make(one)
    assert "table_x  row 0 seed 1  40/40\n" in capsys.readouterr().out


def test_an_error_of_sbatch_is_quoted(tmp_path: Path, cluster: Cluster) -> None:
    program(cluster.folder / "sbatch", "echo 'sbatch: error: invalid partition specified: x' >&2; exit 1")
    with pytest.raises(ValueError, match=r"invalid partition specified: x\nIts script is .*SBATCH_PARTITION"):
        cluster.make(work(tmp_path, 0))


def test_nothing_is_submitted_where_the_queue_cannot_be_read(tmp_path: Path, cluster: Cluster) -> None:
    cluster.answers("!")
    with pytest.raises(ValueError, match="squeue does not answer"):
        cluster.make(work(tmp_path, 0))
    assert cluster.submitted == []


def test_a_machine_without_slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with own_signals(), pytest.raises(ValueError, match=r"^--on slurm: there is no sbatch .* --shard 1/4"):
        Slurm(array(tmp_path), Signals())


def plan(*words: str, again: Sequence[str] | None = ("/bin/python", "table_x.py")) -> SlurmArray:
    options = Options.read("table_x", ["--scale=smoke", "--on=slurm", *words])
    rows = [Row("h=1", lambda base: base.__class__(**vars(base) | {"warmup": 7}), Paper())]
    scale = chosen_scale(options)
    table = [Table(name="table_x", rows=rows, title="")]
    asked = cells(table, scale.base, seeds=options.seeds, chosen=options.rows, task=Translation("en-de"))
    return array_for(asked, scale, options, again)


def test_the_same_command_has_the_same_name_and_another_one_another(cluster: Cluster) -> None:
    name = plan().name
    assert name.startswith("table_x-")
    assert {plan(*words).name for words in (["--traceback"], ["--jobs=3"], ["--dry-run"])} == {name}
    others = [["--seeds=2"], ["--rows", "h=1"], ["--runs-dir=elsewhere"], ["--shard=1/2"], ["--steps=3"]]
    assert len({name, *(plan(*words).name for words in others)}) == 1 + len(others)
    assert plan(again=["/bin/python", "table_y.py"]).name.startswith("table_y-")


def test_the_plan_follows_the_options(cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slurm, "MOST_MINUTES", 100)
    made = plan(
        "--seeds=2", "--shard=2/3", "--jobs=4", f"--runs-dir={tmp_path}", again=["/bin/python", "x.py", "--dry-run"]
    )
    assert (made.whole, made.shard, made.parallelism, made.folder) == (4, (2, 3), 4, tmp_path / "slurm")
    assert list(made.command) == ["/bin/python", "x.py"]
    assert (made.processors, made.gpus, made.minutes) == (1, 0, 30)
    wide = plan("--scale=paper", "--devices=2")
    assert (wide.processors, wide.gpus, wide.minutes) == (2, 2, 100)  # longer runs go on in another task
    with pytest.raises(ValueError, match=r"starts the experiment's file again, .* python FILE\.py --on slurm"):
        plan(again=None)


def test_a_dry_run_shows_the_script_and_the_command_and_submits_nothing(cluster: Cluster, tmp_path: Path) -> None:
    program = (
        "import runpy, sys\n"
        f"sys.argv = [{str(ROOT / 'experiments' / 'table3_A.py')!r}, *sys.argv[1:]]\n"
        "runpy.run_path(sys.argv[0], run_name='__main__')\n"
        "heavy = {'torch', 'lightning', 'mlflow', 'pandas', 'tokenizers'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    script = tmp_path / "program.py"
    script.write_text(program)
    words = ["--scale=smoke", "--on=slurm", "--devices=2", "--dry-run", "--runs-dir", str(tmp_path / "my runs")]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, str(script), *words],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "#SBATCH --array=1-5\n#SBATCH --nodes=1\n#SBATCH --ntasks=1\n#SBATCH --cpus-per-task=2\n" in done.stdout
    assert "--dry-run" not in done.stdout.partition("#!/bin/bash")[2]
    assert done.stdout.rstrip().endswith(".sbatch")
    assert cluster.submitted == []
    assert not (tmp_path / "my runs").exists()


# ---- the script does what it says: run by bash, with commands that stand for Slurm's

ODD = 'it\'s "quoted" $(touch broken) `touch broken` % #\n#SBATCH --mem=1'


def begin(one: SlurmArray, task: int, *, state: str = "RUNNING", restarts: int = 0) -> "subprocess.Popen[str]":
    """The script as a task of a node, where squeue says `state` and scontrol writes down what it is asked."""
    tools = one.folder / "tools"
    tools.mkdir(parents=True, exist_ok=True)
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
        start_new_session=True,  # a group of its own, as on a node
    )


def asked(one: SlurmArray) -> list[str]:
    """What scontrol was asked."""
    file = one.folder / "tools" / "asked"
    return file.read_text().splitlines() if file.exists() else []


def test_odd_words_and_folders_reach_the_run_unchanged(tmp_path: Path) -> None:
    folder = tmp_path / ODD
    folder.mkdir()
    program(folder / "python", 'pwd\nfor word in "$@"; do printf "<%s>" "$word"; done')
    one = array(folder, "my table.py", "--rows", "it's", "$HOME", "--data-dir", ODD, shard=(2, 3), whole=11)
    process = begin(one, 3)
    said, _ = process.communicate()
    assert process.returncode == 0
    words = ["my table.py", "--rows", "it's", "$HOME", "--data-dir", ODD]
    words += ["--on", "here", "--jobs", "1", "--shard", "8/11"]
    assert "".join(f"<{word}>" for word in words) in said
    assert f"\n{folder}\n" in said
    assert sorted(path.name for path in folder.iterdir()) == ["python", "runs"]
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
        (138, "RUNNING", 49, True),  # the limit of time was near
        (138, "RUNNING", 50, False),
        (143, "COMPLETING", 0, False),  # cancelled: to queue it again would undo that
        (75, "RUNNING", 5, False),
        (137, "RUNNING", 4, True),
        (1, "RUNNING", 0, False),
    ],
)
def test_only_stopped_or_killed_tasks_are_queued_again(
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


HEARING = """
trap 'echo USR1 >> heard; sleep 0.2; exit $(cat code)' USR1
trap 'echo TERM >> heard; exit 143' TERM
echo $$ > pid; touch begun
while :; do sleep 0.01; done
"""


def test_the_warning_before_the_limit_is_passed_on_once(tmp_path: Path) -> None:
    program(tmp_path / "python", HEARING)
    (tmp_path / "code").write_text("0")  # that of the run, not the 138 of the wait that the signal breaks off
    one = array(tmp_path)
    process = begin(one, 1)
    until((tmp_path / "begun").exists, 30)
    process.send_signal(signal.SIGUSR1)
    said, _ = process.communicate(timeout=30)
    assert (tmp_path / "heard").read_text() == "USR1\n"
    assert (process.returncode, asked(one)) == (0, []), said


def test_sigterm_is_not_passed_on(tmp_path: Path) -> None:
    # a second TERM ends a run at once, without the checkpoint that the first one asked for
    program(tmp_path / "python", HEARING)
    one = array(tmp_path)
    process = begin(one, 1, state="COMPLETING")
    until((tmp_path / "begun").exists, 30)
    process.send_signal(signal.SIGTERM)
    time.sleep(0.2)
    assert not (tmp_path / "heard").exists()
    assert process.poll() is None
    os.kill(int((tmp_path / "pid").read_text()), signal.SIGTERM)
    said, _ = process.communicate(timeout=30)
    assert (process.returncode, asked(one)) == (143, []), said


def test_an_exit_code_that_bash_loses_is_that_of_the_signal(tmp_path: Path) -> None:
    """Bash 5.2 keeps -1, about every second time, of a run that ends while the script's own trap runs."""
    for turn in range(4):
        folder = tmp_path / str(turn)
        folder.mkdir()
        program(folder / "python", HEARING)
        one = array(folder)
        process = begin(one, 1)
        until((folder / "begun").exists, 30)
        os.killpg(process.pid, signal.SIGTERM)
        said, _ = process.communicate(timeout=30)
        assert (process.returncode, asked(one)) == (143, ["requeue 76_1"]), said
        assert said.count(": ended with exit code 143\n") == 1


def test_a_machine_that_does_not_see_the_folder_says_so(tmp_path: Path) -> None:
    program(tmp_path / "python", "touch made")
    one = array(tmp_path, cwd=tmp_path / "nowhere")
    process = begin(one, 1)
    said, _ = process.communicate()
    assert process.returncode == 2
    assert f"{tmp_path}/nowhere" in said
    assert said.endswith("in folders that all machines share: ended with exit code 2\n")
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize("shards", [1, 3])
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


@pytest.mark.parametrize(
    ("tasks", "most", "written"),
    [([1], None, "1"), ([3, 1, 2], None, "1-3"), ([10, 2, 3], None, "2,3,10"), ([1, 2], 2, "1-2%2")],
)
def test_the_command_line_fixes_name_array_and_output(
    tmp_path: Path, tasks: list[int], most: int | None, written: str
) -> None:
    one = array(tmp_path, parallelism=most)
    name, output = "--job-name=table_x-0123456789", "--output=%A_%a.log"
    assert one.sbatch(tasks) == ["sbatch", "--parsable", name, f"--array={written}", output, one.file.name]
    assert f"\n#SBATCH --array={written}\n" in one.script(tasks)
