"""Several processes have one exit code, and it says what happened; on two nodes they make the run of one.

Nodes are torchrun, started twice on the loopback address.
"""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
from waiting import free_port, until

from repro import experiment
from repro.results import record
from repro.runs.launch import ALONE, membership, refuse_other_processes
from repro.runs.options import USUAL, Options, chosen_scale

ROOT = Path(__file__).parents[2]
LAUNCH = "import sys; from repro.runs.launch import launch; sys.exit(launch(sys.argv[1:], 2))"
SCRIPT = """
import os, pathlib, signal, sys, time

rank, folder = int(os.environ["LOCAL_RANK"]), pathlib.Path(sys.argv[1])

def tidy_up(number, frame):
    (folder / f"asked {rank}").touch()
    sys.exit(128 + number)

for number in (signal.SIGTERM, signal.SIGUSR1):
    signal.signal(number, tidy_up)
(folder / f"begun {rank}").touch()
if rank == 1:
    while not (folder / "begun 0").exists():  # the other hears signals only from then on
        time.sleep(0.01)
    exec(sys.argv[2])
while not (folder / "end").exists():
    time.sleep(0.01)
"""
Start = Callable[[str], "subprocess.Popen[bytes]"]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts two processes, of which one does something; whatever is left of them is ended."""
    started: list[subprocess.Popen[bytes]] = []

    def run(what: str) -> "subprocess.Popen[bytes]":
        (tmp_path / "script.py").write_text(SCRIPT)
        command = [sys.executable, "-c", LAUNCH, str(tmp_path / "script.py"), str(tmp_path), what]
        environment = os.environ | {"PYTHONPATH": str(ROOT)}
        with open(tmp_path / "said", "wb") as said:
            started.append(subprocess.Popen(command, env=environment, stdout=said, stderr=said, start_new_session=True))
        return started[0]

    yield run
    for process in started:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@pytest.mark.parametrize(
    ("what", "code", "how"),
    [
        ("sys.exit(70)", 70, "exit code 70"),
        pytest.param("os.kill(os.getpid(), signal.SIGKILL)", 137, "signal SIGKILL", marks=pytest.mark.faults),
    ],
)
def test_the_first_to_fail_decides(start: Start, tmp_path: Path, what: str, code: int, how: str) -> None:
    assert start(what).wait(timeout=120) == code, (tmp_path / "said").read_text()
    assert f"Process 1 of 2 ended first, with {how}" in (tmp_path / "said").read_text()
    assert (tmp_path / "asked 0").exists()  # the other was ended, and could tidy up


def test_a_signal_is_passed_on(start: Start, tmp_path: Path) -> None:
    # by default PyTorch's launcher misses this one
    launcher = start("pass")
    until(lambda: len(list(tmp_path.glob("begun *"))) == 2, 120, (tmp_path / "said").read_text)
    launcher.send_signal(signal.SIGUSR1)
    launcher.wait(timeout=60)
    assert launcher.returncode == 128 + signal.SIGUSR1, (tmp_path / "said").read_text()
    assert len(list(tmp_path.glob("asked *"))) == 2  # by that signal, and given time to tidy up


# what each sets for the last process of two: on one node, and on two
MASTER = {"MASTER_ADDR": "n1", "MASTER_PORT": "29500"}
RANKS = {"RANK": "1", "WORLD_SIZE": "2", "LOCAL_RANK": "1", **MASTER}
TORCHRUN = {"TORCHELASTIC_RUN_ID": "none", "GROUP_RANK": "0", "GROUP_WORLD_SIZE": "1", **RANKS}
APART = {"LOCAL_RANK": "0"}
TORCHRUNS = TORCHRUN | APART | {"GROUP_RANK": "1", "GROUP_WORLD_SIZE": "2"}
JOB = {"SLURM_JOB_ID": "12345", "SLURM_JOB_NAME": "table3", "SLURM_NTASKS": "2", "SLURM_NNODES": "1"}
SHELL = JOB | {"SLURM_PROCID": "0", "SLURM_LOCALID": "0", "SLURM_NODEID": "0"}  # of sbatch -n 2, outside any srun
STEP = {"SLURM_STEP_ID": "0", "SLURM_STEP_NUM_TASKS": "2", "SLURM_STEP_NUM_NODES": "1", "SLURM_STEP_NODELIST": "n1"}
SRUN = JOB | STEP | {"SLURM_PROCID": "1", "SLURM_LOCALID": "1", "SLURM_NODEID": "0"}
SRUNS = SRUN | {"SLURM_STEP_NUM_NODES": "2", "SLURM_NODEID": "1", "SLURM_LOCALID": "0"}
FOUR = {"SLURM_STEP_NUM_TASKS": "4", "SLURM_PROCID": "3", "SLURM_LOCALID": "1"}


@pytest.mark.parametrize(
    ("environment", "found"),  # number, processes, number on its node, processes of its node, node, nodes
    [
        ({}, None),
        (TORCHRUN, (1, 2, 1, 2, 0, 1)),
        (TORCHRUNS, (1, 2, 0, 1, 1, 2)),
        (SRUN, (1, 2, 1, 2, 0, 1)),
        (SRUNS | FOUR, (3, 4, 1, 2, 1, 2)),
        (SHELL | TORCHRUN, (1, 2, 1, 2, 0, 1)),  # torchrun within a job
        (SRUNS | TORCHRUNS, (1, 2, 0, 1, 1, 2)),  # one torchrun a node, started by srun
        (SHELL, None),  # what sbatch runs: one process, however many tasks it may start
        (SRUN | {"SLURM_STEP_NUM_TASKS": "1", "SLURM_PROCID": "0"}, None),  # one task, which may start its own
        ({"RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0"}, None),  # a container for one process says so too
    ],
)
def test_a_process_finds_its_rank(environment: dict[str, str], found: tuple[int, ...] | None) -> None:
    peer = membership(environment)
    names = ("number", "processes", "local_number", "devices", "node", "nodes")
    assert (peer and tuple(getattr(peer, name) for name in names)) == found


def test_all_processes_find_the_same_meeting() -> None:
    own = 15_000 + 12345 * 16 % 10_000
    for environment, expected in (
        (TORCHRUN, ("n1", 29500, True)),
        (SRUN | {"SLURM_STEP_NODELIST": "gpu[03-05,7],n1"}, ("gpu03", own, False)),
        (SRUN | {"SLURM_STEP_NODELIST": "a,b", "SLURM_STEP_ID": "2"}, ("a", own + 2, False)),
        (SRUN | MASTER, ("n1", 29500, False)),
    ):
        assert (peer := membership(environment))
        assert (peer.address, peer.port, peer.met_already) == expected


def test_what_cannot_be_is_refused_with_what_to_type() -> None:
    with pytest.raises(ValueError, match="^The environment has RANK=x and LOCAL_RANK=1,.* unset RANK LOCAL_RANK"):
        membership({"LOCAL_RANK": "1", "RANK": "x"})
    with pytest.raises(ValueError, match="^The environment has RANK=1 .* nor srun started"):
        membership(RANKS)


def test_other_processes_than_were_asked_for_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(experiment, "Signals", lambda: None)
    # else it would wait minutes for processes that nobody starts
    monkeypatch.setattr(experiment.command, "outlive_reader", lambda: pytest.fail("it begins"))
    monkeypatch.chdir(tmp_path)
    alone = TORCHRUN | APART | {"RANK": "0", "WORLD_SIZE": "1"}  # would train alone
    for asked, started in (("--scale=smoke-2-devices", alone), ("--devices=2", SRUNS | FOUR)):
        with monkeypatch.context() as then:
            for name, value in started.items():
                then.setenv(name, value)
            with pytest.raises(SystemExit, match="2"):
                experiment.main("table3_A", [], [asked, "--steps=1"])
        said = capsys.readouterr().err
        assert re.search(r"(torchrun started 1|srun started 4) in all, but the run asks for 2 processes\. If", said)
    assert list(tmp_path.iterdir()) == []
    refuse_other_processes(None, 2)  # none was started, so it starts its own
    refuse_other_processes(membership(SRUNS | FOUR), 4)


def test_a_run_is_the_same_however_its_processes_are_spread() -> None:
    spread = [
        Options(devices=4),
        *(one.started_as(membership(SRUNS | FOUR)) for one in (Options(), Options(devices=4))),
    ]
    assert {chosen_scale(one).name for one in spread} == {"laptop-4-devices"}
    assert Options().started_as(membership(TORCHRUN | APART | {"RANK": "0", "WORLD_SIZE": "1"})) == USUAL


# ---- one run on two nodes, by the launcher's own command

TABLE3_A = str(ROOT / "experiments" / "table3_A.py")
SMOKE = ("--scale=smoke", "--rows", "base", "--steps=4")
LAUNCHER = (sys.executable, "-m", "torch.distributed.run")


def typed(folder: Path, *command: str) -> "subprocess.Popen[str]":
    """In a folder and a session of its own."""
    folder.mkdir(exist_ok=True)
    kept = {name: value for name, value in os.environ.items() if name not in ALONE and not name.startswith("SLURM_")}
    own = kept | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    with open(folder / "said", "a") as said:
        return subprocess.Popen(
            command, cwd=folder, env=own, stdout=said, stderr=said, text=True, start_new_session=True
        )


def nodes(folder: Path, steps: tuple[int, int] = (4, 4)) -> list["subprocess.Popen[str]"]:
    """Two torchruns of one process each, as on two machines: what they share is the network."""
    how = ("--nnodes=2", "--master-addr=127.0.0.1", f"--master-port={free_port()}", "--nproc-per-node=1")
    return [
        typed(folder / str(k), *LAUNCHER, *how, f"--node-rank={k}", TABLE3_A, *SMOKE[:-1], f"--steps={n}")
        for k, n in enumerate(steps)
    ]


def said(folder: Path) -> str:
    return "\n".join(path.read_text() for path in sorted(folder.rglob("said")))


def made(folder: Path) -> tuple[Any, ...]:
    """One run to the bit: its id, its scores and its weights."""
    [path] = folder.glob("runs/*/record.json")
    found = record.load(path)
    return found.run, found.scores, found.determinism and found.determinism["weights"]


@pytest.fixture(scope="module")
def one_node(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, ...]:
    """The same run by two processes of one machine."""
    folder = tmp_path_factory.mktemp("one")
    assert typed(folder, sys.executable, TABLE3_A, *SMOKE, "--devices=2").wait(timeout=400) == 0, said(folder)
    return made(folder)


@pytest.mark.faults
def test_two_nodes_make_the_run_of_one(tmp_path: Path, one_node: tuple[Any, ...]) -> None:
    assert [node.wait(timeout=400) for node in nodes(tmp_path)] == [0, 0], said(tmp_path)
    assert made(tmp_path / "0") == one_node
    assert list((tmp_path / "1").glob("runs/*")) == []  # the second node writes nothing
    # what is finished is told, too
    assert [node.wait(timeout=400) for node in nodes(tmp_path)] == [0, 0], said(tmp_path)
    assert "finished before" in (tmp_path / "0" / "said").read_text()


@pytest.mark.faults
def test_a_killed_node_ends_the_other_and_the_same_command_goes_on(tmp_path: Path, one_node: tuple[Any, ...]) -> None:
    both = nodes(tmp_path)
    # it trains, or is about to
    until(lambda: list(tmp_path.glob("0/runs/*/journal.jsonl")), 200, lambda: said(tmp_path))
    torchrun = psutil.Process(both[0].pid)
    for process in (torchrun, *torchrun.children()):
        process.kill()
    assert both[1].wait(timeout=130) != 0
    both[0].wait()
    assert [node.wait(timeout=400) for node in nodes(tmp_path)] == [0, 0], said(tmp_path)
    assert made(tmp_path / "0") == one_node


@pytest.mark.faults
def test_torchrun_starts_its_processes_again_and_they_go_on(tmp_path: Path, one_node: tuple[Any, ...]) -> None:
    how = (f"--master-port={free_port()}", "--master-addr=127.0.0.1", "--nproc-per-node=2", "--max-restarts=1")
    torchrun = typed(tmp_path, *LAUNCHER, *how, TABLE3_A, *SMOKE)
    until(lambda: list(tmp_path.glob("runs/*/journal.jsonl")), 200, lambda: said(tmp_path))  # it trains, or is about to
    of_first = psutil.Process(torchrun.pid).children()
    of_first[1].kill()
    assert torchrun.wait(timeout=400) == 0, said(tmp_path)
    assert len(of_first) == 2
    assert made(tmp_path) == one_node


@pytest.mark.faults
def test_processes_whose_launcher_was_killed_stop_with_a_checkpoint(tmp_path: Path) -> None:
    command = (sys.executable, TABLE3_A, "--scale=smoke", "--rows", "base", "--steps=400", "--devices=2")
    launcher = typed(tmp_path, *command)
    until(lambda: list(tmp_path.glob("runs/*/checkpoints/step-*.safetensors")), 200, lambda: said(tmp_path))
    started = psutil.Process(launcher.pid).children()
    assert len(started) >= 2
    launcher.kill()
    launcher.wait()
    _, alive = psutil.wait_procs(started, timeout=60)
    assert alive == [], said(tmp_path)
    assert not list(tmp_path.glob("runs/*/record.json")), "they went on to the end"
    assert "stopped after step" in said(tmp_path)
    assert typed(tmp_path, *command).wait(timeout=400) == 0, said(tmp_path)


@pytest.mark.faults
def test_nodes_with_other_commands_are_refused(tmp_path: Path) -> None:
    assert all(node.wait(timeout=200) for node in nodes(tmp_path, steps=(4, 5)))
    assert "would make a different run from the first process: hyper.steps (4 there, 5 here)" in said(tmp_path / "1")
