"""Several processes meet, agree and notice an end; the folder of a run is the first one's alone.

Run as a program, this file is one of two nodes that train the run of `tiny_run.py`, each in a folder of its own.
"""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple
from unittest import mock

import pytest
import torch
from training import tiny_run
from training.tiny_run import Every, Journal, bytes_of, digest, train
from waiting import free_port

from repro.runs.determinism import weights_digest
from repro.training import checkpoint, group
from repro.training.group import Group
from repro.training.module import TranslationModule
from repro.training.peer import Peer

FIRST = Peer(
    launcher="a test", number=0, processes=2, local_number=0, devices=1, node=0, nodes=2,
    address="127.0.0.1", port=0, met_already=False,
)  # fmt: skip
WORDS = ({"step": 7}, None, [1.5, "two"])


@pytest.mark.parametrize("lost", [False, True], ids=["silent", "lost"])
def test_whoever_waits_can_be_stopped(monkeypatch: pytest.MonkeyPatch, lost: bool) -> None:
    """The first works alone, or has been stopped as well and is gone."""

    def wait() -> None:
        raise RuntimeError("Connection closed by peer")

    waited = SimpleNamespace(is_completed=lambda: lost, wait=wait)
    monkeypatch.setattr(group.distributed, "broadcast", lambda *_, **__: waited)
    second = Group(replace(FIRST, number=1))
    second._words = None  # type: ignore[assignment]
    with pytest.raises(InterruptedError):
        second.told(None, should_stop=lambda: True)
    if lost:
        with pytest.raises(RuntimeError, match="Connection closed by peer"):
            second.told(None)


def test_who_meets_nobody_says_where_it_waited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group, "PATIENCE", timedelta(seconds=1))
    late = Group(replace(FIRST, number=1, node=1, port=free_port()))
    said = r"^Process 1 of 2 on node 1 did not meet the others at 127\.0\.0\.1, port"
    with mock.patch.dict(os.environ), pytest.raises(ConnectionError, match=said):
        late.__enter__()


# ---- nodes, each with a folder of its own

FEW: dict[str, Any] = {"steps": 14, "every": Every(log=5, validate=6, checkpoint=4)}
Trainings = dict[str, dict[str, Any]]  # by the name of their folder, with what differs from FEW


def be_node(
    folder: Path, number: int, processes: int, port: int, trainings: Trainings
) -> dict[str, tuple[str, Journal]]:
    """Make some trainings one after the other; the weights in memory, where they are whole, and the lines of each."""
    found = {}
    peer = replace(FIRST, number=number, node=number, processes=processes, nodes=processes, port=port)
    with Group(peer) as group:
        assert [group.told(word if number == 0 else "of its own") for word in WORDS] == [*WORDS]
        for name, options in trainings.items():
            journal, wanted = Journal(), FEW | {"accumulate": 1} | options
            with mock.patch.object(tiny_run, "fit", wraps=tiny_run.fit) as fit:
                train(folder / name, journal, devices=processes, group=group, **wanted)
            state = fit.call_args.args[0].model.state_dict()
            found[name] = (weights_digest(state), journal)
    return found


def start_node(folder: Path, number: int, processes: int, port: int, trainings: Trainings) -> "subprocess.Popen[str]":
    """The same in a process of its own, which prints the weights."""
    root = Path(__file__).parents[2]
    environment = os.environ | {
        "PYTHONWARNINGS": "ignore", "CUDA_VISIBLE_DEVICES": "", "PYTHONPATH": f"{root}:{root / 'tests'}"
    }  # fmt: skip
    return subprocess.Popen(
        [sys.executable, __file__, str(folder), json.dumps([number, processes, port, trainings])],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment, cwd=root,
    )  # fmt: skip


def all_nodes(folders: list[Path], *trainings: Trainings) -> list[tuple[int, str]]:
    """Exit code and last line of each of some nodes; each with trainings of its own, or all with the same."""
    port, n = free_port(), len(folders)
    nodes = [start_node(folder, k, n, port, trainings[k % len(trainings)]) for k, folder in enumerate(folders)]
    said = [one.communicate(timeout=200)[0] for one in nodes]
    return [(one.returncode, text.strip().rpartition("\n")[2]) for one, text in zip(nodes, said, strict=True)]


class Two(NamedTuple):
    """What two nodes made: the first in this process, of which `whole` made the same alone."""

    folder: Path
    whole: Journal
    first: dict[str, tuple[str, Journal]]
    second: dict[str, str]
    before: dict[str, bytes]  # the second node's folder
    threads: set[int]  # that the first node had while it trained


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Two:
    """A run that goes on where the first node's folder is newer."""
    folder, whole, threads, step = tmp_path_factory.mktemp("two"), Journal(), set(), TranslationModule.training_step

    def counted(module: TranslationModule, *of: Any) -> Any:
        threads.add(torch.get_num_threads())
        return step(module, *of)

    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("OMP_NUM_THREADS", raising=False)  # which Lightning would obey
        patch.setattr(TranslationModule, "training_step", counted)
        patch.setattr("warnings.filters", [("ignore", None, Warning, None, 0)])
        train(folder / "whole", whole, **FEW)
        train(folder / "0" / "on", stop_at=7, **FEW)
        shutil.copytree(folder / "0" / "on", folder / "1" / "on")
        checkpoint.path_of(folder / "1" / "on", 7).unlink()
        before, port = bytes_of(folder / "1" / "on"), free_port()
        trainings: Trainings = {"on": {}}
        other = start_node(folder / "1", 1, 2, port, trainings)
        first = be_node(folder / "0", 0, 2, port, trainings)
        said = other.communicate(timeout=200)[0]
    assert other.returncode == 0, said
    return Two(folder, whole, first, json.loads(said.strip().rpartition("\n")[2]), before, threads)


def test_nodes_without_a_common_folder_go_on_from_what_the_first_one_has(two: Two) -> None:
    assert max(two.before) == "step-000000006.safetensors"  # an older folder, and it stays as it is
    assert bytes_of(two.folder / "1" / "on") == two.before
    assert digest(two.folder / "0" / "on") == digest(two.folder / "whole")
    assert two.second["on"] == two.first["on"][0]  # in the memory of both


def test_threads_are_those_of_the_run_and_not_lightnings_share_of_the_processors(two: Two) -> None:
    assert two.threads == {1}


@pytest.mark.faults
@pytest.mark.parametrize("killed", [0, 1])
def test_when_a_node_is_killed_the_other_ends_and_both_go_on(tmp_path: Path, killed: int) -> None:
    train(tmp_path / "whole", **FEW)
    folders = [tmp_path / "0", tmp_path / "1"]
    acts: list[Trainings] = [{"run": {}}, {"run": {}}]
    acts[killed] = {"run": {"die_at": 9}}
    found = all_nodes(folders, *acts)
    assert found[killed][0] == -9
    assert found[1 - killed][0] == 1  # in PyTorch's words
    assert checkpoint.checkpoints(folders[0] / "run")[-1] == checkpoint.path_of(folders[0] / "run", 8)
    assert [code for code, _ in all_nodes(folders, {"run": {}})] == [0, 0]
    assert digest(folders[0] / "run") == digest(tmp_path / "whole")


def main(folder: str, arguments: str) -> None:
    """Be one node."""
    found = be_node(Path(folder), *json.loads(arguments))
    print(json.dumps({name: weights for name, (weights, _) in found.items()}))


if __name__ == "__main__":
    torch.set_num_threads(1)
    main(*sys.argv[1:])
