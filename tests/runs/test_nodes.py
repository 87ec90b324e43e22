"""One run on two nodes, by the launcher's own command: torchrun twice on loopback."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from waiting import free_port, until

from repro.results import record
from repro.results.record import Record

ROOT = Path(__file__).parents[2]
SCRIPT = str(ROOT / "experiments" / "table3_A.py")
SMOKE = ("--scale=smoke", "--rows", "base", "--steps=4")
TORCHRUN = (sys.executable, "-m", "torch.distributed.run")
pytestmark = pytest.mark.faults


def environment(**more: str) -> dict[str, str]:
    left = ("RANK", "WORLD_SIZE", "LOCAL_RANK")
    kept = {name: value for name, value in os.environ.items() if name not in left and not name.startswith("SLURM_")}
    return kept | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""} | more


def start(folder: Path, *command: str, **more: str) -> "subprocess.Popen[str]":
    """In a folder and a session of its own."""
    folder.mkdir(exist_ok=True)
    with open(folder / "said", "a") as said:
        return subprocess.Popen(
            command, cwd=folder, env=environment(**more), stdout=said, stderr=said, text=True, start_new_session=True
        )


def nodes(folder: Path, steps: tuple[int, int] = (4, 4)) -> list["subprocess.Popen[str]"]:
    """Two torchruns of one process each, as on two machines: what they share is the network."""
    how = ("--nnodes=2", "--master-addr=127.0.0.1", f"--master-port={free_port()}", "--nproc-per-node=1")
    return [
        start(folder / str(k), *TORCHRUN, *how, f"--node-rank={k}", SCRIPT, *SMOKE[:-1], f"--steps={n}")
        for k, n in enumerate(steps)
    ]


def kill(torchrun: int) -> None:
    """End a node at once: torchrun, and the process that it started, which is in a session of its own."""
    for process in (torchrun, *processes_of(torchrun)):
        os.kill(process, signal.SIGKILL)


def said(folder: Path) -> str:
    return "\n".join(path.read_text() for path in sorted(folder.rglob("said")))


def made(folder: Path) -> Record:
    [path] = folder.glob("runs/*/record.json")
    return record.load(path)


def same(found: Record, expected: Record) -> bool:
    """One run to the bit: its id, its weights, what it read and what it is worth."""
    return (found.run, found.scores, found.determinism and found.determinism["weights"]) == (
        expected.run, expected.scores, expected.determinism and expected.determinism["weights"]
    )  # fmt: skip


@pytest.fixture(scope="module")
def one_node(tmp_path_factory: pytest.TempPathFactory) -> Record:
    """The same run by two processes of one machine."""
    folder = tmp_path_factory.mktemp("one")
    assert start(folder, sys.executable, SCRIPT, *SMOKE, "--devices=2").wait(timeout=400) == 0, said(folder)
    return made(folder)


def test_two_nodes_make_the_run_of_one(tmp_path: Path, one_node: Record) -> None:
    assert [node.wait(timeout=400) for node in nodes(tmp_path)] == [0, 0], said(tmp_path)
    assert same(made(tmp_path / "0"), one_node)
    assert list((tmp_path / "1").glob("runs/*")) == []  # the second node writes nothing
    # what is finished is told, too
    assert [node.wait(timeout=400) for node in nodes(tmp_path)] == [0, 0], said(tmp_path)
    assert "finished before" in (tmp_path / "0" / "said").read_text()


def test_a_killed_node_ends_the_other_and_the_same_command_goes_on(tmp_path: Path, one_node: Record) -> None:
    both = nodes(tmp_path)
    # it trains, or is about to
    until(lambda: list(tmp_path.glob("0/runs/*/journal.jsonl")), 200, lambda: said(tmp_path))
    kill(both[0].pid)
    assert both[1].wait(timeout=130) != 0
    both[0].wait()
    assert [node.wait(timeout=400) for node in nodes(tmp_path)] == [0, 0], said(tmp_path)
    assert same(made(tmp_path / "0"), one_node)


def test_torchrun_starts_its_processes_again_and_they_go_on(tmp_path: Path, one_node: Record) -> None:
    how = (f"--master-port={free_port()}", "--master-addr=127.0.0.1", "--nproc-per-node=2", "--max-restarts=1")
    torchrun = start(tmp_path, *TORCHRUN, *how, SCRIPT, *SMOKE)
    until(lambda: list(tmp_path.glob("runs/*/journal.jsonl")), 200, lambda: said(tmp_path))  # it trains, or is about to
    of_first = processes_of(torchrun.pid)
    os.kill(of_first[1], signal.SIGKILL)
    assert torchrun.wait(timeout=400) == 0, said(tmp_path)
    assert len(of_first) == 2
    assert same(made(tmp_path), one_node)


def processes_of(torchrun: int) -> list[int]:
    """The processes that it started."""
    return [int(pid) for pid in Path(f"/proc/{torchrun}/task/{torchrun}/children").read_text().split()]


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def test_processes_whose_launcher_was_killed_stop_with_a_checkpoint(tmp_path: Path) -> None:
    command = (sys.executable, SCRIPT, "--scale=smoke", "--rows", "base", "--steps=400", "--devices=2")
    launcher = start(tmp_path, *command)
    until(lambda: list(tmp_path.glob("runs/*/checkpoints/step-*.safetensors")), 200, lambda: said(tmp_path))
    started = processes_of(launcher.pid)
    assert len(started) >= 2
    launcher.kill()
    launcher.wait()
    until(lambda: not any(map(is_alive, started)), 60, lambda: said(tmp_path))
    assert not list(tmp_path.glob("runs/*/record.json")), "they went on to the end"
    assert "stopped after step" in said(tmp_path)
    assert start(tmp_path, *command).wait(timeout=400) == 0, said(tmp_path)


def test_nodes_with_other_commands_are_refused(tmp_path: Path) -> None:
    assert all(node.wait(timeout=200) for node in nodes(tmp_path, steps=(4, 5)))
    assert "would make a different run from the first process: hyper.steps 4 there, 5 here" in said(tmp_path / "1")
