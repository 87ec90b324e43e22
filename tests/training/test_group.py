"""Several processes meet, agree and notice an end; the folder of a run is the first one's alone.

Run as a program, this file is one of two nodes that train the tiny run of `test_loop.py`, each in a folder of its own.
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
from typing import Any
from unittest import mock

import pytest
import torch
from torch.distributed import HashStore  # type: ignore[attr-defined]
from training import test_loop
from training.test_loop import Every, bytes_of, digest, train

from repro.runs.determinism import weights_digest
from repro.training import checkpoint, talk
from repro.training.group import Group
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
    with pytest.raises(OthersGone, match=r"^Process 0 was not heard of for 0 s\. The same command, on all nodes, goes"):
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


# ---- two nodes, each with a folder of its own

FEW: dict[str, Any] = {"steps": 14, "every": Every(log=5, validate=6, checkpoint=4)}


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    return port


def placed(number: int, port: int) -> Peer:
    """Node `number`; the first one holds the meeting."""
    return replace(FIRST, number=number, node=number, port=port, met_already=False)


def node(folder: Path, number: int, port: int, **acts: int) -> "subprocess.Popen[str]":
    """Start one node; it prints what it has learned in the end."""
    root = Path(__file__).parents[2]
    environment = os.environ | {
        "PYTHONWARNINGS": "ignore", "CUDA_VISIBLE_DEVICES": "", "PYTHONPATH": f"{root}:{root / 'tests'}"
    }  # fmt: skip
    return subprocess.Popen(
        [sys.executable, __file__, str(folder), str(number), str(port), json.dumps(acts)],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment, cwd=root,
    )  # fmt: skip


def both(folders: list[Path], *acts: dict[str, int]) -> list[tuple[int, str]]:
    """Exit code and last line of each of two nodes."""
    port = free_port()
    nodes = [node(folder, k, port, **(acts[k] if acts else {})) for k, folder in enumerate(folders)]
    said = [one.communicate(timeout=200)[0] for one in nodes]
    return [(one.returncode, text.strip().rpartition("\n")[2]) for one, text in zip(nodes, said, strict=True)]


def test_nodes_without_a_common_folder_go_on_from_what_the_first_one_has(tmp_path: Path) -> None:
    train(tmp_path / "whole", **FEW)
    train(tmp_path / "0", stop_at=7, **FEW)
    shutil.copytree(tmp_path / "0", tmp_path / "1")
    (newest := checkpoint.path_of(tmp_path / "1", 7)).unlink()  # an older folder: up to step 6
    assert checkpoint.checkpoints(tmp_path / "1") != []
    before = bytes_of(tmp_path / "1")
    port = free_port()
    other = node(tmp_path / "1", 1, port)
    with mock.patch.object(test_loop, "fit", wraps=test_loop.fit) as fit, Group(placed(0, port)) as group:
        assert train(tmp_path / "0", devices=2, accumulate=1, group=group, **FEW).cost.steps == 14
    said = other.communicate(timeout=200)[0]
    assert other.returncode == 0, said
    assert digest(tmp_path / "0") == digest(tmp_path / "whole")
    assert bytes_of(tmp_path / "1") == before
    assert not newest.exists()
    own = weights_digest(fit.call_args.args[0].model.state_dict())
    assert json.loads(said.strip().rpartition("\n")[2]) == {"steps": 14, "weights": own}  # in the memory of both


@pytest.mark.faults
@pytest.mark.parametrize("killed", [0, 1])
def test_when_a_node_is_killed_the_other_ends_and_both_go_on(tmp_path: Path, killed: int) -> None:
    train(tmp_path / "whole", **FEW)
    folders = [tmp_path / "0", tmp_path / "1"]
    acts: list[dict[str, int]] = [{}, {}]
    acts[killed] = {"die_at": 9}
    found = both(folders, *acts)
    assert found[killed][0] == -9
    assert found[1 - killed][0] == 75
    assert found[1 - killed][1].endswith(talk.AGAIN)
    assert checkpoint.checkpoints(folders[0])[-1] == checkpoint.path_of(folders[0], 8)
    assert [code for code, _ in both(folders)] == [0, 0]
    assert digest(folders[0]) == digest(tmp_path / "whole")


def main(folder: str, number: str, port: str, acts: str) -> None:
    """Be one node."""
    with mock.patch.object(test_loop, "fit", wraps=test_loop.fit) as fit:
        try:
            with Group(placed(int(number), int(port))) as group:
                fitted = train(Path(folder), devices=2, accumulate=1, group=group, **FEW, **json.loads(acts))
        except OthersGone as gone:
            print(gone)
            sys.exit(75)
    weights = weights_digest(fit.call_args.args[0].model.state_dict())
    print(json.dumps({"steps": fitted.cost.steps, "weights": weights}))


if __name__ == "__main__":
    torch.set_num_threads(1)
    main(*sys.argv[1:])
