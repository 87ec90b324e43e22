"""Several processes meet, agree and notice an end; the folder of a run is the first one's alone.

Run as a program, this file is one of two nodes that train the run of `tiny_run.py`, each in a folder of its own.
"""

import json
import os
import shutil
import subprocess
import sys
from collections import defaultdict
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple
from unittest import mock

import pytest
import torch
from torch import Tensor
from training import tiny_run
from training.tiny_run import RUN, Journal, bytes_of, digest, state, train
from waiting import free_port

from repro.model.rivals.attention_rnn import SoftAlignment
from repro.runs.determinism import weights_digest
from repro.training import checkpoint, group
from repro.training.group import Group
from repro.training.loop import Every
from repro.training.module import TranslationModule
from repro.training.run_spec import Peer

pytestmark = pytest.mark.filterwarnings("ignore:.*does not have many workers")
FIRST = Peer(
    launcher="a test", number=0, processes=2, local_number=0, devices=1, node=0, nodes=2,
    address="127.0.0.1", port=0, met_already=False,
)  # fmt: skip
WORDS = ({"step": 7}, None, [1.5, "two"])


@pytest.mark.parametrize("lost", [False, True], ids=["silent", "lost"])
def test_a_waiting_process_can_be_stopped(monkeypatch: pytest.MonkeyPatch, lost: bool) -> None:
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


def test_a_process_that_meets_no_other_says_where_it_waited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group, "PATIENCE", timedelta(seconds=1))
    late = Group(replace(FIRST, number=1, node=1, port=free_port()))
    said = r"^Process 1 of 2 on node 1 did not meet the others at 127\.0\.0\.1, port"
    with mock.patch.dict(os.environ), pytest.raises(ConnectionError, match=said):
        late.__enter__()


# ---- nodes, each with a folder of its own

FEW: dict[str, Any] = {"steps": 14}
SEVEN = {"sentences": 7, "budget": 1_000, "dropout": 0.0, "precision": "fp64", "average": 1, "average_every": 1}
SHARED: dict[str, Any] = SEVEN | {"steps": 1, "every": Every(log=1, validate=1, checkpoint=1)}
HELD_OUT: dict[str, Any] = SHARED | {"budget": 120, "steps": 3, "dev": [300, 9, 40, 7, 12]}
OLDER: dict[str, Any] = SEVEN | {"steps": 3, "every": Every(log=1, validate=3, checkpoint=3), "system": SoftAlignment}
OLDER |= {"d_model": 16, "d_ff": 32, "n_heads": 4, "d_k": 4, "d_v": 4}
OF_TWO: list[tuple[str, dict[str, Any]]] = [  # the name of their folder, and what differs from the tiny run
    ("on", FEW),
    *((name, FEW | {"stop_at": 7}) for name in ("one", "two")),
    ("two", FEW),
    ("shares", SHARED | {"accumulate": 4}),
    ("held out", HELD_OUT),
    ("older", OLDER | {"accumulate": 4}),
]


def trained(folder: Path, journal: Journal, **options: Any) -> None:
    """Train the tiny run; its cost is a line, too."""
    cost = train(folder, journal, **options).cost
    journal.append("cost", cost.steps, **vars(replace(cost, seconds=0, slots=0)))


def be_node(folder: Path, number: int, port: int) -> dict[str, tuple[str, Journal]]:
    """Make all trainings one after the other; the weights in memory, where they are whole, and the lines of each."""
    weights: dict[str, str] = {}
    journals = defaultdict[str, Journal](Journal)
    with Group(replace(FIRST, number=number, node=number, port=port)) as group:
        assert [group.told(word if number == 0 else "of its own") for word in WORDS] == [*WORDS]
        for name, options in OF_TWO:
            with mock.patch.object(tiny_run, "fit", wraps=tiny_run.fit) as fit:
                trained(folder / name, journals[name], devices=2, group=group, **{"accumulate": 1} | options)
            weights[name] = weights_digest(fit.call_args.args[0].model.state_dict())
    return {name: (weights[name], journal) for name, journal in journals.items()}


class Two(NamedTuple):
    """What two nodes made: the first in this process, of which `whole` made the first training alone."""

    folder: Path
    whole: Journal
    first: dict[str, tuple[str, Journal]]
    second: dict[str, str]
    before: dict[str, bytes]  # the second node's folder
    threads: set[int]  # that the first node had while it trained


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Two:
    """All that is asked of two, which start once; the first run goes on where the first node's folder is newer."""
    folder, whole, threads, step = tmp_path_factory.mktemp("two"), Journal(), set(), TranslationModule.training_step

    def counted(module: TranslationModule, *of: Any) -> Any:
        threads.add(torch.get_num_threads())
        return step(module, *of)

    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("OMP_NUM_THREADS", raising=False)  # which Lightning would obey
        patch.setenv("CUDA_VISIBLE_DEVICES", "")
        patch.setattr(TranslationModule, "training_step", counted)
        patch.setattr("warnings.filters", [("ignore", None, Warning, None, 0)])
        trained(folder / "whole", whole, **FEW)
        trained(folder / "0" / "on", Journal(), stop_at=7, **FEW)
        shutil.copytree(folder / "0" / "on", folder / "1" / "on")
        checkpoint.path_of(folder / "1" / "on", 7).unlink()
        before, port = bytes_of(folder / "1" / "on"), free_port()
        root = Path(__file__).parents[2]
        patch.setenv("PYTHONPATH", f"{root}:{root / 'tests'}")
        command = [sys.executable, "-W", "ignore", __file__, str(folder / "1"), str(port)]
        other = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=root)
        first = be_node(folder / "0", 0, port)
        said = other.communicate(timeout=200)[0]
    assert other.returncode == 0, said
    return Two(folder, whole, first, json.loads(said.strip().rpartition("\n")[2]), before, threads)


@pytest.mark.slow
def test_nodes_without_a_common_folder_go_on_from_what_the_first_one_has(two: Two) -> None:
    assert max(two.before) == "step-000000006.safetensors"  # an older folder, and it stays as it is
    assert bytes_of(two.folder / "1" / "on") == two.before
    assert digest(two.folder / "0" / "on") == digest(two.folder / "whole")
    assert two.second["on"] == two.first["on"][0]  # in the memory of both


def test_threads_are_those_of_the_run_and_not_lightnings_share_of_the_processors(two: Two) -> None:
    assert two.threads == {1}


def test_two_processes_that_stop_write_the_lines_of_the_unbroken_run(two: Two) -> None:
    # What each has summed up so far counts once, whether two go on or one does. Losses are float32 and summed in
    # float64, so that sums are exact in any order; dev is cut into other batches by two, and has other last digits.
    alone = Journal(two.first["one"][1])
    assert checkpoint.checkpoints(two.folder / "0" / "one")[-1].name == "step-000000007.safetensors"
    trained(two.folder / "0" / "one", alone, **FEW)
    for name, found in (("one", alone), ("two", two.first["two"][1])):
        assert digest(two.folder / "0" / name) == digest(two.folder / "whole")
        for line, numbers in two.whole.items():
            assert found[line] == (pytest.approx(numbers, rel=1e-6) if line[0] == "dev" else numbers), line


def first_gradient(folder: Path) -> list[Tensor]:
    """After one step, Adam's first moment is a tenth of the gradient."""
    (optimizer,) = checkpoint.load(checkpoint.path_of(folder, 1), RUN)["optimizer_states"]
    return [10 * moment["exp_avg"] for _, moment in sorted(optimizer["state"].items())]


def test_one_batch_its_halves_and_two_processes(two: Two, tmp_path: Path) -> None:
    # seven sentences of several lengths in one update; of the eight shares of two processes one holds none
    whole, halves = Journal(), Journal()
    trained(tmp_path / "whole", whole, accumulate=1, **SHARED)
    trained(tmp_path / "halves", halves, accumulate=2, **SHARED)
    gradient = first_gradient(tmp_path / "whole")
    assert max(g.abs().max().item() for g in gradient) > 0.01
    for folder, journal in ((tmp_path / "halves", halves), (two.folder / "0" / "shares", two.first["shares"][1])):
        torch.testing.assert_close(first_gradient(folder), gradient, rtol=1e-9, atol=1e-12)
        for line in (("train", 1), ("dev", 1), ("cost", 1)):
            found, expected = ({**of[line], "padding": 0.0} for of in (journal, whole))  # which is that of the shares
            assert found == pytest.approx(expected, rel=1e-6), line


def test_two_processes_read_held_out_text_of_which_one_has_nothing(two: Two, tmp_path: Path) -> None:
    """A sentence alone in its batch, longer than the table of positions: the first process reads it, and trains on."""
    alone, (_, together) = Journal(), two.first["held out"]
    trained(tmp_path, alone, accumulate=2, **HELD_OUT)
    for line in [(kind, step) for kind in ("train", "dev") for step in (1, 2, 3)]:
        assert together[line]["nll"] == pytest.approx(alone[line]["nll"], rel=1e-9), line


def test_two_processes_train_a_system_before_the_transformer_as_one_does(two: Two, tmp_path: Path) -> None:
    """Three updates, their gradients cut; of the eight shares of an update one holds no sentence."""
    alone, (_, together) = Journal(), two.first["older"]
    trained(tmp_path, alone, accumulate=1, **OLDER)
    lines = [("train", 1), ("train", 2), ("train", 3), ("dev", 3)]
    for line in lines:
        assert together[line]["nll"] == pytest.approx(alone[line]["nll"], rel=1e-9), line
    assert len({alone[line]["nll"] for line in lines}) == 4
    for found, expected in zip(state(two.folder / "0" / "older"), state(tmp_path), strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-7, atol=1e-9)


if __name__ == "__main__":
    torch.set_num_threads(1)
    found = be_node(Path(sys.argv[1]), 1, int(sys.argv[2]))
    print(json.dumps({name: weights for name, (weights, _) in found.items()}))
