"""Runs on Ray are the runs of this machine, to the bit, whatever is lost on the way."""

import ipaddress
import os
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from runs import typed_sweeps as sweeps
from typed import ROOT
from waiting import until

from repro.runs import on_ray
from repro.runs.command import FAILED
from repro.runs.on_ray import OnRay, make_run
from repro.runs.pool import BUSY, DIVERGED

# the task and the sweep's side, without Ray ---------------------------------------------------------------------


def test_a_task_gives_the_exit_code_and_keeps_what_was_printed(tmp_path: Path) -> None:
    program = "import os; print(os.getcwd(), os.environ['ASKED'], flush=True); raise SystemExit(74)"
    log = tmp_path / "log"
    assert make_run([sys.executable, "-c", program], str(tmp_path), str(log), {"ASKED": "7"}) == 74
    assert log.read_text() == f"{tmp_path} 7\n"
    with pytest.raises(ChildProcessError, match="ended by signal 9"):  # for which Ray starts the task again
        make_run([sys.executable, "-c", "import os; os.kill(os.getpid(), 9)"], str(tmp_path), str(log), {})


LOOP = """
import signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: (open("asked", "w").close(), sys.exit(143)))
open("began", "w").close()
while True:
    time.sleep(0.02)
"""


def test_a_cancelled_task_asks_its_run_to_stop_and_waits_for_it(tmp_path: Path) -> None:
    (tmp_path / "task.py").write_text(
        "import signal, sys; from repro.runs.on_ray import make_run\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # which a shell's background programs are without
        f"sys.exit(make_run([sys.executable, '-c', {LOOP!r}], '.', 'log', {{}}))"
    )
    task = subprocess.Popen([sys.executable, "task.py"], cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(ROOT)})
    until((tmp_path / "began").exists, 60.0)
    task.send_signal(signal.SIGINT)
    assert task.wait(30) == 143
    assert (tmp_path / "asked").exists()


def outcome(tmp_path: Path, answer: Any, *, finished: bool = False, received: int = 0) -> Any:
    """What comes of a run whose task ends in this way, and what was said."""
    words: list[str] = []

    def get(reference: object) -> int:
        if isinstance(answer, Exception):
            raise answer
        return int(answer)

    run: Any = SimpleNamespace(id="ab", name="base seed 1", finished=lambda: finished or None)
    sweep = object.__new__(OnRay)
    sweep.options = SimpleNamespace(runs_dir=tmp_path)  # type: ignore[assignment]
    sweep.signals = SimpleNamespace(received=received)  # type: ignore[assignment]
    sweep._ray = SimpleNamespace(get=get, exceptions=SimpleNamespace(RayError=EOFError))
    made = sweep._outcome(run, None, SimpleNamespace(say=words.append))  # type: ignore[arg-type]
    return made.code, made.record is not None, "\n".join(words)


def test_a_record_is_what_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(on_ray, "LATE", 0.0)
    assert outcome(tmp_path, DIVERGED, finished=True) == (0, True, "")
    assert outcome(tmp_path, 0)[:2] == (FAILED, False)
    code, _, text = outcome(tmp_path, BUSY)
    assert code == BUSY
    assert text.startswith("base seed 1 has no record: its process ended with exit code 75. The")
    code, _, text = outcome(tmp_path, EOFError("task\nnode 7 died"))  # lost, and begun again too often
    assert (code, text.partition(". The")[0]) == (FAILED, "base seed 1 has no record: EOFError: node 7 died")
    assert outcome(tmp_path, 143, received=2) == (130, False, "")
    assert outcome(tmp_path, 0, received=2, finished=True) == (0, True, "")


# Ray itself ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What `--jobs 1` makes, by its options."""
    made: dict[tuple[str, ...], Any] = {}

    def of(*options: str) -> Any:
        if options not in made:
            folder = tmp_path_factory.mktemp("alone") / "here"
            sweeps.finish(sweeps.begin(folder, *options, "--jobs", "1"), folder)
            made[options] = sweeps.came(folder)
        return made[options]

    return of


@pytest.mark.faults  # half a minute of a core
def test_a_ray_of_its_own_makes_the_same_run_on_the_loopback_address(tmp_path: Path, alone: Any) -> None:
    pytest.importorskip("ray", reason="needs the extra [ray]")
    folder = tmp_path / "sweep"
    process = sweeps.begin(folder, "--steps", "2", "--on", "ray")
    until(lambda: sweeps.workers_of(folder) or process.poll() is not None)
    started = sweeps.children(process.pid)
    heard_at = sweeps.listening(started)
    text = sweeps.finish(process, folder)
    assert {ipaddress.ip_address(address).is_loopback for address in heard_at} == {True}, heard_at
    assert "1 run at a time on Ray" in text
    assert sweeps.came(folder) == alone("--steps", "2")
    until(lambda: not [pid for pid in started if Path(f"/proc/{pid}").exists()], 20.0)


LONG = ("--steps", "40", "--seeds", "3")  # a checkpoint each 10 steps


@pytest.mark.faults
@pytest.mark.parametrize("lost", ["process", "task", "node", "driver"])
def test_what_is_lost_is_made_again(tmp_path: Path, alone: Any, lost: str) -> None:
    pytest.importorskip("ray", reason="needs the extra [ray]")
    folder = tmp_path / "sweep"
    with sweeps.cluster(3) as nodes:
        process = sweeps.begin(folder, *LONG, "--on", "ray", RAY_ADDRESS=nodes.address)
        until(lambda: sweeps.checkpointed(folder))
        victims = sweeps.workers_of(folder)
        assert victims
        if lost == "process":
            sweeps.kill(victims[:1])
        elif lost == "task":
            sweeps.kill([int(Path(f"/proc/{victims[0]}/stat").read_text().rpartition(")")[2].split()[1])])
        elif lost == "node":
            raylets = [(node, node.all_processes["raylet"][0].process.pid) for node in nodes.worker_nodes]
            busy = [node for node, pid in raylets if {*sweeps.children(pid)} & {*victims}]
            nodes.remove_node(busy[0], allow_graceful=False)
        else:
            sweeps.kill([process.pid])
            process.wait()
            until(lambda: not sweeps.workers_of(folder), 60.0)  # who lost its sweep ends by itself
            process = sweeps.begin(folder, *LONG, "--on", "ray", RAY_ADDRESS=nodes.address)
        sweeps.finish(process, folder)
    assert sweeps.came(folder) == alone(*LONG)
    until(lambda: not sweeps.workers_of(folder), 20.0)


@pytest.mark.faults
@pytest.mark.parametrize("devices", [1, 2])
def test_asked_to_stop_each_run_leaves_a_checkpoint(tmp_path: Path, alone: Any, devices: int) -> None:
    pytest.importorskip("ray", reason="needs the extra [ray]")
    folder, options = tmp_path / "sweep", ("--steps", "200", "--devices", str(devices))
    with sweeps.cluster(1, num_cpus=2) as nodes:
        process = sweeps.begin(folder, *options, "--on", "ray", RAY_ADDRESS=nodes.address)
        until(lambda: sweeps.checkpointed(folder))
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 128 + signal.SIGINT, sweeps.said(folder)
        assert not sweeps.workers_of(folder)
        sweeps.finish(sweeps.begin(folder, *options, "--on", "ray", RAY_ADDRESS=nodes.address), folder)
    assert sweeps.came(folder) == alone(*options)
