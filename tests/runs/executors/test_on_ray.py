"""Runs on Ray are the runs of this machine, to the bit, whatever is lost on the way."""

import hashlib
import ipaddress
import json
import os
import signal
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from runs.executors.typed_sweeps import (
    begin,
    came,
    checkpointed,
    children,
    cluster,
    finish,
    kill,
    listening,
    said,
    workers_of,
)
from waiting import until

from repro.claims.lists import catalogue_digest
from repro.results.provenance import fingerprint
from repro.runs.executors import on_ray
from repro.runs.executors.executor import BUSY, DIVERGED, FAILED, Job
from repro.runs.executors.on_node import Ended, NodeCommand, make_run, versions
from repro.runs.executors.on_ray import OnRay, Share, stage_code

ROOT = Path(__file__).parents[3]

# a node's side, without Ray -----------------------------------------------------------------------------------


def job(folder: Path, program: str, **other: Any) -> NodeCommand:
    (folder / "runs").mkdir(exist_ok=True)
    wanted = folder / "runs" / "wanted"
    wanted.write_text("7")
    usual = {
        "words": ["-c", program],
        "environment": {},
        "wanted": str(wanted),
        "sha256": hashlib.sha256(b"7").hexdigest(),
        "log": str(folder / "log"),
        "versions": versions(),
    }
    return NodeCommand(**usual | other)


def test_a_node_gives_the_exit_code_and_keeps_what_was_printed(tmp_path: Path) -> None:
    assert make_run(job(tmp_path, "print('begun', flush=True); raise SystemExit(74)")) == Ended(
        host=socket.gethostname(), code=74
    )
    assert (tmp_path / "log").read_text() == "begun\n"


def test_a_run_is_stopped_when_its_sweep_ends(tmp_path: Path) -> None:
    asked = job(tmp_path, f"import os, time; os.unlink({str(tmp_path / 'runs/wanted')!r}); time.sleep(60)")
    assert make_run(asked).code == -signal.SIGTERM


@pytest.mark.parametrize("name", ["python", "torch"])
def test_a_node_of_other_versions_is_refused_with_both(tmp_path: Path, name: str) -> None:
    refused = make_run(job(tmp_path, "", versions={**versions(), name: "0.1"})).refused
    assert f"has other versions: {name} {versions()[name]} there, 0.1 here" in refused


@pytest.mark.parametrize("content", [None, "of another folder at the same path"])
def test_a_node_that_does_not_see_the_folder_of_runs_is_refused(tmp_path: Path, content: str | None) -> None:
    asked = job(tmp_path, "")
    Path(asked.wanted).unlink() if content is None else Path(asked.wanted).write_text(content)
    assert "share the folder of runs" in make_run(asked).refused


@pytest.mark.skipif(sys.platform != "linux", reason="the system's own way is Linux's")
def test_a_run_whose_task_was_killed_is_asked_to_stop(tmp_path: Path) -> None:
    program = "import signal, sys, time; signal.signal(15, lambda *_: (open('asked', 'w'), sys.exit())); "
    asked = job(tmp_path, program + "open('began', 'w'); time.sleep(60)")
    (tmp_path / "asks.py").write_text(f"from repro.runs.executors.on_node import *\nmake_run({asked!r})")
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    task = subprocess.Popen([sys.executable, "asks.py"], cwd=tmp_path, env=environment)
    until((tmp_path / "began").exists, 30.0)
    task.kill()
    task.wait()
    until((tmp_path / "asked").exists, 10.0)


# the sweep's side, with an engine that is played --------------------------------------------------------------


class Lost(Exception):
    """What the engine raises where a node is gone."""


def asked(answers: Sequence[Any], tmp_path: Path, *, finished: bool = False, stopped: bool = False) -> Any:
    """What comes of a run whose tasks end in these ways, one after the other, and what was said."""
    said: list[str] = []
    left, record = list(answers), SimpleNamespace(status="finished")

    def get(reference: object) -> Ended:
        answer = left.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return Ended(host="n7", code=answer)

    run: Any = SimpleNamespace(id="ab", name="base seed 1", finished=lambda: record if finished else None)
    sweep = object.__new__(OnRay)
    sweep.options = SimpleNamespace(on="ray")  # type: ignore[assignment]
    sweep.signals = SimpleNamespace(should_stop=lambda: stopped, received=2)  # type: ignore[assignment]
    errors = SimpleNamespace(RayTaskError=ZeroDivisionError, RayError=Lost)
    sweep._ray, sweep._logs = SimpleNamespace(get=get, exceptions=errors), tmp_path
    lost: Counter[int] = Counter()
    while (made := sweep._outcome(Job(cell=0, run=run), None, lost, SimpleNamespace(say=said.append))) is None:  # type: ignore[arg-type]
        pass
    return made.code, made.record is not None, len(answers) - len(left), "\n".join(said)


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(on_ray, "LATE", 0.0)


def test_lost_runs_restart_and_failed_runs_do_not(tmp_path: Path) -> None:
    for ways in ([Lost("gone"), 74], [-9, 74], [143, 74], [-9, BUSY, 74]):
        code, has_record, n, text = asked(ways, tmp_path)
        assert (code, has_record, n) == (74, False, len(ways)), ways
        assert "It goes on from its last checkpoint" in text
        assert "its process on n7 ended with exit code 74. The end of" in text
    assert asked([BUSY, 74], tmp_path) == (BUSY, False, 1, "")  # another sweep makes it
    assert asked([ZeroDivisionError("no room")], tmp_path)[:3] == (FAILED, False, 1)
    code, _, n, text = asked([-9] * 9, tmp_path)
    assert (code, n) == (FAILED, on_ray.LOST_AT_MOST + 1)
    assert "It is skipped" in text


def test_a_record_is_what_counts(tmp_path: Path) -> None:
    assert asked([DIVERGED], tmp_path, finished=True) == (0, True, 1, "")
    assert asked([0], tmp_path)[:2] == (FAILED, False)
    assert asked([143], tmp_path, stopped=True) == (130, False, 1, "")
    assert asked([0], tmp_path, stopped=True, finished=True) == (0, True, 1, "")


def test_addresses() -> None:
    assert on_ray._address("ray", {}) == "local"
    assert on_ray._address("ray", {"RAY_ADDRESS": "auto"}) == "auto"
    for where, address in [("ray://", None), ("ray://head", None), ("ray://head:port", None), ("ray", "10.0.0.7")]:
        with pytest.raises(ValueError, match="expected ray, or ray://HOST:PORT"):
            on_ray._address(where, {"RAY_ADDRESS": address} if address else {})


def test_an_address_must_answer() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        assert on_ray._address(f"ray://{address}", {}) == f"ray://{address}"
        assert on_ray._address("ray", {"RAY_ADDRESS": address}) == address
    with pytest.raises(ValueError, match=f"nothing answers at {address}"):
        on_ray._address(f"ray://{address}", {})


def test_how_many_runs_a_node_takes() -> None:
    needs = Share(processors=2, memory=10**9)
    node = {"CPU": 7.0, "memory": 2.5e9, "GPU": 1.0}
    assert [replace(needs, gpus=gpus).fit(node) for gpus in (0, 1, 2)] == [2, 1, 0]
    assert needs.fit({"memory": 1e12}) == 0
    assert str(replace(needs, gpus=1)) == "a run (2 processors, about 1.0 GB of memory, 1 GPU)"


def test_the_staged_code_runs_on_its_own(tmp_path: Path) -> None:
    own = tmp_path / "mine"
    (own / "helpers").mkdir(parents=True)
    for name in ("rows.py", "facts.json", "helpers/__init__.py", "text.bin"):
        (own / name).write_text("")
    stage_code(own / "rows.py", tmp_path / "there")
    there = {path.relative_to(tmp_path / "there").as_posix() for path in (tmp_path / "there").rglob("*")}
    assert {"experiments/rows.py", "experiments/facts.json", "experiments/helpers/__init__.py"} <= there
    assert "experiments/text.bin" not in there
    code = """import json
from repro.claims.lists import catalogue_digest  # a record names the list that it began under
from repro.results.provenance import fingerprint
print(json.dumps([fingerprint(), catalogue_digest()]))"""
    found = subprocess.check_output(
        [sys.executable, "-c", code],
        cwd=tmp_path / "there",
        env={**os.environ, "PYTHONPATH": str(tmp_path / "there")},
    )
    assert json.loads(found) == [fingerprint(), catalogue_digest()]


# Ray itself ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What `--jobs 1` makes, by its options."""
    made: dict[tuple[str, ...], Any] = {}

    def of(*options: str) -> Any:
        if options not in made:
            folder = tmp_path_factory.mktemp("alone") / "here"
            finish(begin(folder, *options, "--jobs", "1"), folder)
            made[options] = came(folder)
        return made[options]

    return of


@pytest.mark.faults  # half a minute of a core
def test_a_ray_of_its_own_makes_the_same_run_on_the_loopback_address(tmp_path: Path, alone: Any) -> None:
    pytest.importorskip("ray", reason="needs the extra [ray]")
    folder = tmp_path / "sweep"
    process = begin(folder, "--steps", "2", "--on", "ray")
    until(lambda: workers_of(folder) or process.poll() is not None)
    started = children(process.pid)
    heard_at = listening(started)
    text = finish(process, folder)
    assert {ipaddress.ip_address(address).is_loopback for address in heard_at} == {True}, heard_at
    assert "1 run at a time on Ray" in text
    assert came(folder) == alone("--steps", "2")
    until(lambda: not [pid for pid in started if Path(f"/proc/{pid}").exists()], 20.0)


LONG = ("--steps", "40", "--seeds", "3")  # a checkpoint each 10 steps


@pytest.mark.faults
@pytest.mark.parametrize("lost", ["nothing", "process", "task", "node", "driver", "all"])
def test_what_is_lost_is_made_again(tmp_path: Path, alone: Any, lost: str) -> None:
    pytest.importorskip("ray", reason="needs the extra [ray]")
    folder = tmp_path / "sweep"
    with cluster(3) as nodes:
        process = begin(folder, *LONG, "--on", "ray", RAY_ADDRESS=nodes.address)
        until(lambda: checkpointed(folder))
        victims = workers_of(folder)
        assert victims
        if lost == "process":
            kill(victims[:1])
        elif lost == "task":
            kill([int(Path(f"/proc/{victims[0]}/stat").read_text().rpartition(")")[2].split()[1])])
        elif lost == "node":
            busy = [
                node
                for node in nodes.worker_nodes
                if set(children(node.all_processes["raylet"][0].process.pid)) & {*victims}
            ]
            nodes.remove_node(busy[0], allow_graceful=False)
        elif lost != "nothing":
            kill([process.pid, *(victims if lost == "all" else [])])
            process.wait()
            until(lambda: not workers_of(folder), 60.0)  # who lost its sweep ends by itself
            process = begin(folder, *LONG, "--on", "ray", RAY_ADDRESS=nodes.address)
        text = finish(process, folder)
    assert ("It goes on from its last checkpoint" in text) == (lost in ("process", "task", "node"))
    assert came(folder) == alone(*LONG)
    until(lambda: not workers_of(folder), 20.0)


@pytest.mark.faults
@pytest.mark.parametrize("devices", [1, 2])
def test_asked_to_stop_each_run_leaves_a_checkpoint(tmp_path: Path, alone: Any, devices: int) -> None:
    pytest.importorskip("ray", reason="needs the extra [ray]")
    folder, options = tmp_path / "sweep", ("--steps", "200", "--devices", str(devices))
    with cluster(1, num_cpus=2) as nodes:
        process = begin(folder, *options, "--on", "ray", RAY_ADDRESS=nodes.address)
        until(lambda: checkpointed(folder))
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 128 + signal.SIGINT, said(folder)
        finish(begin(folder, *options, "--on", "ray", RAY_ADDRESS=nodes.address), folder)
    assert came(folder) == alone(*options)
