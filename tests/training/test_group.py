"""Several processes meet, agree and notice an end; the folder of a run is the first one's alone.

Run as a program, this file is one of two nodes that train the run of `tiny_run.py`, each in a folder of its own.
"""

import json
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import pytest
import torch
from torch.distributed import HashStore  # type: ignore[attr-defined]
from training import tiny_run
from training.tiny_run import RUN, Every, Journal, bytes_of, digest, train

from repro.runs.determinism import weights_digest
from repro.training import checkpoint, talk
from repro.training.group import Group
from repro.training.module import TranslationModule
from repro.training.peer import Peer
from repro.training.talk import OthersGone, Talk

FIRST = Peer(
    launcher="a test", number=0, processes=2, local_number=0, devices=1, node=0, nodes=2,
    address="127.0.0.1", port=0, met_already=True,
)  # fmt: skip
SECOND = replace(FIRST, number=1, node=1)


@pytest.fixture
def pair(monkeypatch: pytest.MonkeyPatch) -> tuple[Talk, Talk]:
    """Two processes that talk, both in this one."""
    monkeypatch.setattr(talk, "EVERY", 0.02)
    monkeypatch.setattr(talk, "LOOK", 0.001)
    monkeypatch.setattr(talk, "PATIENCE", timedelta(seconds=0.3))
    store = HashStore()
    return Talk(FIRST, store), Talk(SECOND, store)


def test_words_are_heard_in_order_however_late(pair: tuple[Talk, Talk]) -> None:
    first, second = pair
    for word in ({"step": 7}, None, [1.5, "two"]):
        assert first.told(word) == word
    assert [second.told("of its own") for _ in range(3)] == [{"step": 7}, None, [1.5, "two"]]
    # whoever is heard of may take longer than the patience
    threading.Timer(3 * talk.PATIENCE.total_seconds(), first.told, [4]).start()
    assert second.told(None) == 4


def test_who_fails_says_why_and_who_falls_silent_is_named(pair: tuple[Talk, Talk]) -> None:
    first, second = pair
    until = time.monotonic() + 10
    first._closing.set()  # as if it were killed
    with pytest.raises(
        OthersGone, match=r"^Process 0 was not heard of for 0 s\. Type the same command on all nodes: it goes"
    ):
        second.told(None, should_stop=lambda: time.monotonic() > until)
    first.close(ValueError("no text here"))
    with pytest.raises(
        OthersGone, match=rf"^Process 0 of 2 on node 0 \({socket.gethostname()}\) has ended: no text here"
    ):
        second.told(None)


def test_whoever_waits_can_be_stopped(pair: tuple[Talk, Talk]) -> None:
    with pytest.raises(InterruptedError):
        pair[1].told(None, should_stop=lambda: True)


def test_the_first_stays_until_all_have_heard(pair: tuple[Talk, Talk]) -> None:
    first, second = pair
    ended: list[str] = []

    def end(name: str, one: Talk) -> None:
        one.close()
        ended.append(name)

    threading.Thread(target=end, args=("first", first)).start()
    threading.Timer(0.1, end, args=("second", second)).start()
    until = time.monotonic() + 10
    while len(ended) < 2:
        assert time.monotonic() < until
        time.sleep(0.01)
    assert ended == ["second", "first"]


# ---- nodes, each with a folder of its own

FEW: dict[str, Any] = {"steps": 14, "every": Every(log=5, validate=6, checkpoint=4)}
Trainings = dict[str, dict[str, Any]]  # by the name of their folder, with what differs from FEW


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    return port


def be_node(
    folder: Path, number: int, processes: int, port: int, trainings: Trainings
) -> dict[str, tuple[str, Journal]]:
    """Make some trainings one after the other; the weights in memory, where they are whole, and the lines of each."""
    found = {}
    peer = replace(FIRST, number=number, node=number, processes=processes, nodes=processes, port=port)
    with Group(replace(peer, met_already=False)) as group:
        for name, options in trainings.items():
            journal, wanted = Journal(), FEW | {"accumulate": 1} | options
            with mock.patch.object(tiny_run, "fit", wraps=tiny_run.fit) as fit:
                train(folder / name, journal, devices=processes, group=group, **wanted)
            state = fit.call_args.args[0].model.state_dict()
            found[name] = ("" if "strategy" in options else weights_digest(state), journal)
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
    """A run that goes on where the first node's folder is newer; and one whose model is shared out."""
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
        trainings: Trainings = {"on": {}, "parts": {"strategy": "fsdp", "stop_at": 7}}
        other = start_node(folder / "1", 1, 2, port, trainings)
        first = be_node(folder / "0", 0, 2, port, trainings)
        said = other.communicate(timeout=200)[0]
    assert other.returncode == 0, said
    return Two(folder, whole, first, json.loads(said.strip().rpartition("\n")[2]), before, threads)


def test_nodes_without_a_common_folder_go_on_from_what_the_first_one_has(two: Two) -> None:
    assert list(two.before) == ["step-000000006.safetensors"]  # an older folder, and it stays as it is
    assert bytes_of(two.folder / "1" / "on") == two.before
    assert digest(two.folder / "0" / "on") == digest(two.folder / "whole")
    assert two.second["on"] == two.first["on"][0]  # in the memory of both


def test_threads_are_those_of_the_run_and_not_lightnings_share_of_the_processors(two: Two) -> None:
    assert two.threads == {1}


def test_a_model_in_parts_loses_as_a_whole_one_and_either_goes_on_from_the_other(two: Two) -> None:
    _, lines = two.first["parts"]
    assert list(lines) == [("train", 5), ("dev", 6)]
    parts, on = (checkpoint.load(checkpoint.checkpoints(two.folder / "0" / of)[-1], RUN) for of in ("parts", "on"))
    assert {name: x.shape for name, x in parts["state_dict"].items()} == {
        name: x.shape for name, x in on["state_dict"].items()
    }
    [groups, expected] = [of["optimizer_states"][0]["param_groups"][0] | {"lr": 0} for of in (parts, on)]
    assert groups == expected
    train(two.folder / "0" / "parts", lines, **FEW)  # one process goes on with what two had in parts
    assert lines.keys() == two.whole.keys()
    for line, numbers in two.whole.items():
        assert lines[line] == pytest.approx(numbers, rel=1e-6), line


@pytest.mark.faults
def test_a_model_in_parts_goes_on_with_other_processes_and_as_a_whole(tmp_path: Path) -> None:
    """Six shares of an update: of two processes three each, of three two."""
    whole = Journal()
    train(tmp_path / "whole", whole, accumulate=6, **FEW)
    begun: Trainings = {"run": {"strategy": "fsdp", "accumulate": 3, "stop_at": 7}}
    on: Trainings = {"run": {"strategy": "fsdp", "accumulate": 2, "stop_at": 10}}
    end: Trainings = {"run": {"accumulate": 3}}
    for trainings, n in ((begun, 2), (on, 3), (end, 2)):
        assert [code for code, _ in all_nodes([tmp_path / str(k) for k in range(n)], trainings)] == [0] * n
    ends = [checkpoint.load(checkpoint.path_of(tmp_path / of, 14), RUN)["state_dict"] for of in ("0/run", "whole")]
    for name, expected in ends[1].items():
        if "train_" not in name and not name.endswith("attention.bias"):  # of keys: no gradient but rounding, scaled up
            torch.testing.assert_close(ends[0][name], expected, rtol=1e-4, atol=1e-4)


@pytest.mark.faults
@pytest.mark.parametrize("killed", [0, 1])
def test_when_a_node_is_killed_the_other_ends_and_both_go_on(tmp_path: Path, killed: int) -> None:
    train(tmp_path / "whole", **FEW)
    folders = [tmp_path / "0", tmp_path / "1"]
    acts: list[Trainings] = [{"run": {}}, {"run": {}}]
    acts[killed] = {"run": {"die_at": 9}}
    found = all_nodes(folders, *acts)
    assert found[killed][0] == -9
    assert found[1 - killed][0] == 75
    assert found[1 - killed][1].endswith(talk.AGAIN)
    assert checkpoint.checkpoints(folders[0] / "run")[-1] == checkpoint.path_of(folders[0] / "run", 8)
    assert [code for code, _ in all_nodes(folders, {"run": {}})] == [0, 0]
    assert digest(folders[0] / "run") == digest(tmp_path / "whole")


def main(folder: str, arguments: str) -> None:
    """Be one node."""
    try:
        found = be_node(Path(folder), *json.loads(arguments))
    except OthersGone as gone:
        print(gone)
        sys.exit(75)
    print(json.dumps({name: weights for name, (weights, _) in found.items()}))


if __name__ == "__main__":
    torch.set_num_threads(1)
    main(*sys.argv[1:])
