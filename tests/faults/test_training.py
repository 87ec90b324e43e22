"""Training that is killed, stopped, doubled or starved ends where the unbroken run ends, or says why it cannot.

Every launch here is a process of its own that gets real signals; see `workload.py`.
"""

import contextlib
import hashlib
import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import torch
from faults import workload
from faults.workload import STEPS, Act, Plan, finish, start, write_text
from waiting import until

from repro.results import record
from repro.storage import journal
from repro.training import checkpoint

KILL, TERM = (signal.SIGKILL,), (signal.SIGTERM,)
CLOCKED = ("time", "attempt", "tokens_per_second")


@dataclass(frozen=True)
class Outcome:
    """What a run has come to; equal where two runs are one."""

    run: str
    tensors: str  # weights, metrics and Adam's moments of the last checkpoints
    steps: tuple[int, ...]  # those checkpoints' own
    journal: dict[tuple[str, int], dict[str, float]]
    scores: Any
    last_mean: Any
    order: str
    weights: str | None


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_text(tmp_path / "text")
    return tmp_path


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    """The run that nothing happens to."""
    folder = tmp_path_factory.mktemp("unbroken")
    write_text(folder / "text")
    assert launched(Plan(folder=folder)) == 0, said(folder)
    return outcome(folder)


def launched(plan: Plan) -> int:
    return finish(start(plan))


def said(folder: Path) -> str:
    return (folder / "said").read_text("utf-8")


def run_of(folder: Path) -> Path:
    [found] = (folder / "runs").glob("*/journal.jsonl")
    return found.parent


def saved(folder: Path) -> list[Path]:
    return checkpoint.checkpoints(run_of(folder) / "checkpoints")


def last(folder: Path) -> int:
    """The step of the newest checkpoint, 0 if there is none."""
    return max((checkpoint.step_of(path) for path in (folder / "runs").glob("*/checkpoints/step-*")), default=0)


def outcome(folder: Path) -> Outcome:
    run = run_of(folder)
    done = record.load(run / "record.json")
    assert done.determinism is not None
    sha256 = hashlib.sha256()
    for path in saved(folder):
        state = checkpoint.load(path, run.name)
        [optimizer] = state["optimizer_states"]
        moments = {f"{i}/{name}": value for i, kept in optimizer["state"].items() for name, value in kept.items()}
        for name, tensor in sorted({**state["state_dict"], **moments}.items()):
            sha256.update(name.encode() + tensor.reshape(-1).view(torch.uint8).numpy().tobytes())
        sha256.update(repr(optimizer["param_groups"]).encode())  # the rate of the last step among them
    return Outcome(
        run=run.name,
        tensors=sha256.hexdigest(),
        steps=tuple(checkpoint.step_of(path) for path in saved(folder)),
        journal={
            (line["kind"], line["step"]): {name: value for name, value in line.items() if name not in CLOCKED}
            for line in journal.read(run / "journal.jsonl")
        },
        scores=done.scores,
        last_mean=done.last_mean and {**done.last_mean, "seconds": 0.0},
        order=done.determinism["order"],
        weights=done.determinism["weights"],
    )


def determinism(folder: Path) -> Any:
    return record.load(run_of(folder) / "record.json").determinism


# ---- killed (K1, K8, N4)

PLACES = {"forward": 2 * 12, "backward": 2 * 12, "gradient": 12, "validation": 7, "save": 6}  # at most so often


def check_killed(folder: Path, unbroken: Outcome, seed: int, kills: int) -> None:
    """Kill the run at random places of training, then let it end: it is the unbroken run."""
    print(f"seed {seed}")
    chance, steps = random.Random(seed), [0]
    for _ in range(kills):
        place = chance.choice(list(PLACES))
        act = Act(place=place, n=chance.randint(1, PLACES[place]), signals=KILL)
        code = launched(Plan(folder=folder, acts=(act,)))
        assert code in (128 + signal.SIGKILL, 0), said(folder)
        assert last(folder) >= steps[-1]  # progress is never lost
        steps.append(last(folder))
    assert launched(Plan(folder=folder)) == 0, said(folder)
    assert outcome(folder) == unbroken
    shown = determinism(folder)
    assert (shown["badge"], shown["against"]) == ("L1", [])
    assert shown["replayed"] >= 1


@pytest.mark.slow
def test_killed_at_random_places_it_ends_where_the_unbroken_run_ends(folder: Path, unbroken: Outcome) -> None:
    check_killed(folder, unbroken, seed=int.from_bytes(os.urandom(4)), kills=2)


@pytest.mark.faults
@pytest.mark.parametrize("seed", range(4))
def test_killed_again_and_again(folder: Path, unbroken: Outcome, seed: int) -> None:
    check_killed(folder, unbroken, seed=seed, kills=4)


# ---- asked to stop (T1, T2, T3, T4)


def test_asked_to_stop_anywhere_it_stops_at_a_step_and_goes_on(folder: Path, unbroken: Outcome) -> None:
    # in the forward pass of step 3, the backward pass of step 8, the second validation, the writing of a checkpoint:
    # none of these steps has a line in the journal
    for place, n, number, step in (
        ("forward", 7, signal.SIGINT, 3),
        ("backward", 2 * 5, signal.SIGHUP, 8),
        ("validation", 1, signal.SIGUSR1, 12),
        ("save", 2, signal.SIGTERM, 18),
    ):
        began = time.monotonic()
        stopped = launched(Plan(folder=folder, acts=(Act(place=place, n=n, signals=(number,)),)))
        assert stopped == 128 + number, said(folder)
        assert time.monotonic() - began < 60  # the start of Python on a busy machine included
        assert last(folder) == step
        assert f"base seed 1 stopped after step {step} of {STEPS}. The same command resumes there." in said(folder)
    assert launched(Plan(folder=folder, acts=(Act(place="decoding", n=4, signals=TERM),))) == 143, said(folder)
    assert "base seed 1 is trained; stopped while translating test, mean of 10 checkpoints" in said(folder)
    assert launched(Plan(folder=folder)) == 0, said(folder)
    assert outcome(folder) == unbroken
    assert determinism(folder)["badge"] == "L1"


@pytest.mark.faults
def test_a_second_signal_ends_it_at_once_and_the_last_checkpoint_is_whole(folder: Path, unbroken: Outcome) -> None:
    act = Act(place="save", n=2, signals=(signal.SIGTERM, signal.SIGINT))
    assert launched(Plan(folder=folder, acts=(act,))) == 130
    assert last(folder) == 4  # the second was about to be written
    assert "Stopped at once; the same command goes on from the last checkpoint." in said(folder)
    assert launched(Plan(folder=folder)) == 0, said(folder)
    assert outcome(folder) == unbroken


# ---- many at once (X1, X2)


def lines(folder: Path) -> int:
    return sum(path.read_bytes().count(b"\n") for path in (folder / "runs").glob("*/journal.jsonl"))


@pytest.mark.faults
@pytest.mark.parametrize("without_locks", [False, True], ids=["locks", "no locks"])
def test_of_two_launches_one_trains_and_the_other_says_who(
    folder: Path, unbroken: Outcome, without_locks: bool
) -> None:
    plan = Plan(folder=folder, slow=0.1, without_locks=without_locks, beat=0.2)
    owner = start(plan)
    until(lambda: lines(folder) >= 3)
    assert launched(replace(plan, slow=0.0)) == 75
    assert f"base seed 1 is skipped. {run_of(folder)} has a writer: process {owner.pid} on " in said(folder)
    assert finish(owner) == 0, said(folder)
    assert outcome(folder) == unbroken


@pytest.mark.slow
def test_an_owner_that_slept_may_write_no_more(folder: Path, unbroken: Outcome) -> None:
    # locks are no help here: everybody gets them
    plan = Plan(folder=folder, slow=0.03, without_locks=True, beat=0.2)
    sleeper = start(plan)
    until(lambda: last(folder) == 8)
    os.kill(sleeper.pid, signal.SIGSTOP)
    heir = start(plan)
    until(lambda: len(list(run_of(folder).glob("attempts/*"))) == 2)
    os.kill(sleeper.pid, signal.SIGCONT)  # while the other one trains
    assert finish(sleeper) == 75
    assert finish(heir) == 0, said(folder)
    assert f"was taken over by process {heir.pid} on" in said(folder)
    assert outcome(folder) == unbroken
    attempts = [line["attempt"] for line in journal.read_all(run_of(folder) / "journal.jsonl")]
    assert attempts == sorted(attempts)  # not a line of the first after the second began


# ---- numbers that are none, and batches that do not fit (N1, N2, N3)


@pytest.mark.parametrize(
    ("place", "n", "what"),
    [
        # in the second micro-batch; one was computed twice
        ("loss", 12, "The loss is nan at step 6; no update was made"),
        ("gradient", 6, "The norm of the gradient is inf at step 6; no update was made"),
        # the rate is asked for at each micro-batch and at the update
        pytest.param("rate", 18, "The learning rate is nan at step 6; no update was made", marks=pytest.mark.faults),
        ("parameter", 2, "The norm of the parameters is nan after step 6; no checkpoint was written"),
    ],
)
def test_what_is_no_number_stops_the_run_before_it_is_kept(folder: Path, place: str, n: int, what: str) -> None:
    assert launched(Plan(folder=folder, acts=(Act(place=place, n=n, spoils=True),))) == 70, said(folder)
    dumped = json.loads((run_of(folder) / "diverged.json").read_bytes())
    assert dumped == {"what": what, "step": 6, "seed": 1, "sentences": dumped["sentences"]}
    assert dumped["sentences"]
    assert f"base seed 1: {what}. Seed 1, sentences {dumped['sentences'][0]}" in said(folder)
    assert "What next" not in said(folder), "nothing is there to translate with"
    assert [path.name for path in saved(folder)] == ["step-000000004.safetensors"]
    state = checkpoint.load(saved(folder)[0], run_of(folder).name)["state_dict"]
    assert all(tensor.isfinite().all() for tensor in state.values())
    done = record.load(run_of(folder) / "record.json")  # an outcome, in the table
    assert (done.status, done.cost["steps"]) == ("diverged", 6 if place == "parameter" else 5)


@pytest.mark.faults
def test_a_batch_that_does_not_fit_is_named_and_not_skipped(folder: Path, unbroken: Outcome) -> None:
    assert launched(Plan(folder=folder, acts=(Act(place="forward", n=12, spoils=True),))) == 71, said(folder)
    assert re.search(
        r"base seed 1: Out of memory at step 6: a batch of \d+ sentences, \d+ source and \d+ target tokens long, did "
        r"not fit \(CUDA out of memory\.\)\. Nothing was skipped",
        said(folder),
    )
    assert last(folder) == 4
    assert launched(Plan(folder=folder)) == 0, said(folder)
    assert outcome(folder) == unbroken


# ---- changed between two launches (X4)


def test_another_processor_goes_on_and_the_record_says_so(folder: Path) -> None:
    short = Plan(folder=folder, hyper={"steps": 4, "average": 1}, processor="one")
    assert launched(replace(short, acts=(Act(place="forward", n=4, signals=TERM),))) == 143, said(folder)
    assert launched(replace(short, processor="another")) == 0, said(folder)
    change = "From step 2 on: device one, then another; processor one, then another"
    assert f"Going on under other conditions than before, and recorded so. {change}" in said(folder)
    assert (determinism(folder)["badge"], determinism(folder)["against"]) == ("L0", [change])


# ---- several processes (R1, R2, R4)


def several(folder: Path, **told: Any) -> "subprocess.Popen[bytes]":
    """Two processes as `--devices=2` starts them, in a session of their own."""
    tests = Path(workload.__file__).parents[1]
    environment = os.environ | {"PYTHONPATH": f"{tests.parent}:{tests}", "CUDA_VISIBLE_DEVICES": ""}
    command = [sys.executable, workload.__file__, json.dumps({"folder": str(folder), **told})]
    with open(folder / "said", "ab") as output:
        return subprocess.Popen(command, stdout=output, stderr=output, env=environment, start_new_session=True)


def session(leader: int) -> list[int]:
    """The processes of a session that are alive."""
    alive = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, _, _, of, *_ = path.read_bytes().rpartition(b")")[2].split()
            alive += [int(path.parent.name)] if int(of) == leader and state != b"Z" else []
    return alive


@pytest.mark.faults
@pytest.mark.parametrize(
    ("act", "code"),
    [
        ({"place": "forward", "n": 6, "signals": KILL}, 137),
        ({"place": "forward", "n": 6, "raises": True}, 1),
        ({"place": "forward", "n": 6, "hangs": True}, None),
        ({"place": "backward", "n": 6, "signals": TERM}, 143),
        ({}, None),
    ],
    ids=["killed", "raises", "hangs", "asked to stop", "another plan"],
)
def test_when_one_process_of_two_fails_both_end_and_the_run_goes_on(
    folder: Path, unbroken: Outcome, act: dict[str, Any], code: int | None
) -> None:
    another_plan = not act
    launcher = several(folder, act=act, another_plan=another_plan, patience=5 if act.get("hangs") else 60)
    until(lambda: lines(folder) >= 1 or launcher.poll() is not None, seconds=120)
    began = time.monotonic()
    ended = launcher.wait(timeout=60)
    assert ended != 0
    assert code is None or ended == code, said(folder)
    assert time.monotonic() - began < 60
    assert session(launcher.pid) == [], said(folder)
    if another_plan:
        assert "Processes disagree on what to read: the plan of process 1 is " in said(folder)
        assert lines(folder) == 0
    else:
        assert last(folder) == (6 if act["place"] == "backward" else 4)
    # as many shares of an update, in one process: the same run, and the same bits
    assert launched(Plan(folder=folder)) == 0, said(folder)
    found = outcome(folder)
    assert (found.run, found.tensors, found.order, found.weights) == (
        unbroken.run, unbroken.tensors, unbroken.order, unbroken.weights,
    )  # fmt: skip
    if not another_plan:
        assert determinism(folder)["badge"] == "L0"
        assert "processes 2, then 1" in determinism(folder)["against"][0]
