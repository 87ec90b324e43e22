"""Runs on Ray are the runs of this machine, to the bit, whatever is lost on the way."""

import ipaddress
import signal
import socket
import time
from pathlib import Path
from typing import Any

import pytest
from faults.disk import tmpfs
from runs.executors.ray_sweeps import (
    begin,
    came,
    children,
    cluster,
    finish,
    kill,
    listening,
    of_several,
    said,
    until,
    workers_of,
)

pytest.importorskip("ray", reason="needs the extra [ray]")


@pytest.fixture(scope="session")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What `--jobs 1` makes, by its options."""
    made: dict[tuple[str, ...], Any] = {}

    def of(*options: str) -> Any:
        if options not in made:
            folder = tmp_path_factory.mktemp("alone") / "here"
            finish(begin(folder, *options, "--jobs", "1", shared=True), folder)
            made[options] = came(folder)
        return made[options]

    return of


def checkpointed(folder: Path) -> list[Path]:
    return list((folder / "runs").glob("*/checkpoints/step-*.safetensors"))


@pytest.mark.faults  # half a minute of a core
def test_a_node_that_sees_no_folder_makes_the_same_run(tmp_path: Path, alone: Any) -> None:
    folder = tmp_path / "sweep"
    process = begin(folder, "--steps", "2", "--on", "ray")
    until(lambda: workers_of(folder) or process.poll() is not None)
    heard_at = listening(children(process.pid))
    text = finish(process, folder)
    assert {ipaddress.ip_address(address).is_loopback for address in heard_at} == {True}, heard_at
    assert "1 run at a time on Ray on" in text
    assert came(folder) == alone("--steps", "2")
    assert workers_of(folder) == []
    [run] = (folder / "runs").glob("*/record.json")
    assert not list(run.parent.rglob("*.partial"))


@pytest.mark.faults
@pytest.mark.parametrize("shared", [True, False])
def test_three_nodes_make_the_same_runs(tmp_path: Path, alone: Any, shared: bool) -> None:
    options = ("--steps", "12", "--seeds", "4")
    with cluster(3) as nodes:
        finish(begin(tmp_path / "s", *options, "--on", "ray", shared=shared, RAY_ADDRESS=nodes.address), tmp_path / "s")
    assert "3 runs at a time" in said(tmp_path / "s")
    assert len(came(tmp_path / "s")) == 4
    assert came(tmp_path / "s") == alone(*options)


LONG = ("--steps", "40", "--seeds", "2")  # a checkpoint each 10 steps
LONGER = ("--steps", "200", "--seeds", "2")  # 40 steps may be over when the first checkpoint of them has travelled


@pytest.mark.faults
@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("lost", ["worker", "actor", "node", "driver", "all"])
def test_what_is_lost_is_made_again(tmp_path: Path, alone: Any, lost: str, shared: bool) -> None:
    folder = tmp_path / "sweep"
    with cluster(3) as nodes:
        process = begin(folder, *LONG, "--on", "ray", shared=shared, RAY_ADDRESS=nodes.address)
        until(lambda: checkpointed(folder))
        victims = workers_of(folder)
        assert victims
        if lost == "worker":
            kill(victims[:1])
        elif lost == "actor":
            kill([int(Path(f"/proc/{victims[0]}/stat").read_text().rpartition(")")[2].split()[1])])
        elif lost == "node":
            busy = [
                node
                for node in nodes.worker_nodes
                if set(children(node.all_processes["raylet"][0].process.pid)) & {*victims}
            ]
            nodes.remove_node(busy[0], allow_graceful=False)
        else:
            kill([process.pid, *(victims if lost == "all" else [])])
            process.wait()
            until(lambda: not workers_of(folder), 60.0)  # who lost its sweep ends by itself
            assert len(came(folder)) < 2, "it had ended by itself"
            process = begin(folder, *LONG, "--on", "ray", shared=shared, RAY_ADDRESS=nodes.address)
        text = finish(process, folder)
    if lost in ("worker", "actor", "node"):
        assert "Another takes its place" in text
    assert came(folder) == alone(*LONG)
    until(lambda: not workers_of(folder), 20.0)


TWO = ("--steps", "40", "--devices", "2")


@pytest.mark.faults
@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("lost", [False, True])
def test_a_run_of_two_processes_is_that_of_this_machine(tmp_path: Path, alone: Any, lost: bool, shared: bool) -> None:
    folder = tmp_path / "sweep"
    with cluster(1, num_cpus=2) as nodes:
        process = begin(folder, *TWO, "--on", "ray", shared=shared, RAY_ADDRESS=nodes.address)
        if lost:
            until(lambda: checkpointed(folder))
            kill(workers_of(folder))
        text = finish(process, folder)
    assert ("Another takes its place, and goes on from the last checkpoint" in text) == lost
    assert came(folder) == alone(*TWO)
    until(lambda: not of_several(folder), 20.0)


@pytest.mark.faults
def test_two_processes_stop_when_the_sweep_is_asked_to(tmp_path: Path, alone: Any) -> None:
    folder, options = tmp_path / "sweep", ("--steps", "200", "--devices", "2")
    with cluster(1, num_cpus=2) as nodes:
        process = begin(folder, *options, "--on", "ray", RAY_ADDRESS=nodes.address)
        until(lambda: checkpointed(folder))
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 128 + signal.SIGINT, said(folder)
        finish(begin(folder, *options, "--on", "ray", RAY_ADDRESS=nodes.address), folder)
    assert came(folder) == alone(*options)


@pytest.mark.faults
def test_asked_to_stop_every_node_leaves_a_checkpoint(tmp_path: Path, alone: Any) -> None:
    folder = tmp_path / "sweep"
    with cluster(2) as nodes:
        process = begin(folder, *LONGER, "--on", "ray", RAY_ADDRESS=nodes.address)
        until(lambda: checkpointed(folder))
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 128 + signal.SIGINT
        assert "Stopping after this step" in said(folder)
        stopped = {path.name for path in checkpointed(folder)}
        assert any(int(name[5:14]) % 10 for name in stopped), stopped  # of the step it stood at
        finish(begin(folder, *LONGER, "--on", "ray", RAY_ADDRESS=nodes.address), folder)
    assert came(folder) == alone(*LONGER)


@pytest.mark.faults
@pytest.mark.parametrize(("room", "said_of_it"), [(2**23, "free in {disk}"), (2**24, "failed on ")])
def test_a_full_disk_on_one_node_is_named(tmp_path: Path, alone: Any, room: int, said_of_it: str) -> None:
    # too small for a run, which is seen before the sweep; or for the text beside it, which is seen on the way
    folder = tmp_path / "sweep"
    with tmpfs(tmp_path / "disk", room) as disk, cluster(2, env_vars={"TMPDIR": str(disk)}) as nodes:
        process = begin(folder, *LONG, "--on", "ray", RAY_ADDRESS=nodes.address)
        assert process.wait(300) == 74, said(folder)
        assert said_of_it.format(disk=disk) in said(folder)
        assert str(disk) in said(folder)
        nodes.remove_node(next(iter(nodes.worker_nodes)))
        finish(begin(folder, *LONG, "--on", "ray", RAY_ADDRESS=nodes.address), folder)
    assert came(folder) == alone(*LONG)


def test_nobody_at_the_head(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    started = time.monotonic()
    process = begin(tmp_path / "s", "--on", f"ray://127.0.0.1:{port}")
    assert process.wait(60) == 2
    assert f"nobody answers at 127.0.0.1:{port}" in said(tmp_path / "s")
    assert time.monotonic() - started < 55
