"""The run that the tests of faults kill, stop and starve: tiny, and hard where it matters.

Shuffled, more than three epochs, ragged lengths, dropout, two micro-batches an update, two averaged checkpoints. It
goes the whole way of an experiment, from the command line to the record, in a process of its own. These processes are
forked from one server that has imported everything, so that a real process with real signals costs no start.
"""

import json
import multiprocessing
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from own_signals import hear_all, places

STEPS, LOG = 32, 5  # no stop, checkpoint or averaged step has to fall on a line of the journal
FORK = multiprocessing.get_context("forkserver")


def write_text(folder: Path) -> None:
    """A corpus of distinct lines of one to eight words."""
    folder.mkdir(parents=True)
    random = np.random.RandomState(0)
    for split, n in {"train": 31, "dev": 7, "test": 5}.items():
        for language in ("en", "de"):
            lines = [" ".join(random.choice(["ab", "cde", "f", "gh"], random.randint(1, 9))) for _ in range(n)]
            text = "".join(f"{i} {line}\n" for i, line in enumerate(lines))
            (folder / f"{split}.{language}").write_text(text, "utf-8")


@dataclass(frozen=True, kw_only=True)
class Act:
    """What happens at the `n`-th time that training comes to a place: signals to itself, an exception, a bad number."""

    place: str
    n: int
    signals: tuple[int, ...] = ()
    raises: bool = False
    hangs: bool = False
    spoils: bool = False  # a number becomes none, or memory ends

    def __call__(self) -> None:
        for number in self.signals:
            os.kill(os.getpid(), number)
        if self.raises:
            raise ArithmeticError("planted")
        if self.hangs:
            time.sleep(600)


@dataclass(frozen=True, kw_only=True)
class Plan:
    """One launch of the experiment."""

    folder: Path
    acts: tuple[Act, ...] = ()
    options: tuple[str, ...] = ()
    without_locks: bool = False
    beat: float = 5.0
    hyper: dict[str, Any] = field(default_factory=dict)
    processor: str | None = None  # what this machine is taken for
    slow: float = 0.0  # seconds that a step takes longer


def start(plan: Plan) -> Any:
    """Launch it in a process of its own; what it prints goes to `said` in the folder."""
    FORK.set_forkserver_preload(["faults.preloaded", "faults.workload"])
    process = FORK.Process(target=launch, args=(plan,))
    with mock.patch.dict(os.environ, PYTHONPATH=str(Path(__file__).parents[1])):  # the server does not know `sys.path`
        process.start()
    return process


def finish(process: Any, patience: float = 120.0) -> int:
    """Wait for it; the exit code, that of a shell where a signal ended it."""
    process.join(patience)
    if process.exitcode is None:
        process.kill()
        process.join()
        raise TimeoutError(f"it did not end within {patience} s")
    code: int = process.exitcode
    return 128 - code if code < 0 else code


def launch(plan: Plan) -> None:
    """In the process: play the plan."""
    said = os.open(plan.folder / "said", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(said, 1)
    os.dup2(said, 2)
    play(plan)


def play(plan: Plan) -> None:
    """The experiment with all that shall happen to it."""
    import fcntl

    from repro import experiment
    from repro.model.config import Hyper
    from repro.results import provenance
    from repro.results.provenance import processor
    from repro.runs import run, scales, sweep
    from repro.storage import lease

    hear_all()
    if plan.processor:
        provenance.processor = lambda: processor()._replace(name=str(plan.processor), model=None)
    lease.EVERY = plan.beat
    if plan.without_locks:
        fcntl.flock = lambda *_: None  # as some file systems do: everybody gets the lock
    hyper = Hyper(
        n_layers=2, d_model=14, d_ff=11, n_heads=3, d_k=2, d_v=5, dropout=0.3, steps=STEPS, warmup=7, average=2,
        average_every=1,
    )  # fmt: skip
    tiny = scales.Scale(
        name="tiny", base=replace(hyper, **plan.hyper), corpus="folder", vocab_size=300, batch_tokens=100,
        device_tokens=50, max_length=50, sentence_tokens=10, log_every=LOG, validate_every=6, checkpoint_every=4,
        claim="nothing",
    )  # fmt: skip
    scales.SCALES["tiny"] = tiny
    run.Mirror = NoMirror  # type: ignore[assignment, misc]
    sweep.install_views = lambda *_: None
    sweep.write_scale = lambda *_: []  # tables have tests of their own
    sweep.console = lambda *_: ""
    for act in plan.acts:
        install(act)
    if plan.slow:
        install(Act(place="forward", n=0), each=lambda: time.sleep(plan.slow))
    own = places(plan.folder, *plan.options)
    experiment.main("table_x", [], ["--scale=tiny", f"--data-dir={plan.folder / 'text'}", *own])


class NoMirror:
    """Stands where MLflow's mirror stands, which has tests of its own."""

    run_id = None

    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    def close(self, status: str) -> None:
        pass


def install(act: Act, each: Callable[[], None] | None = None) -> None:
    """Have `act` happen at its place; `each` happens every time."""
    from repro.decoding import backend
    from repro.training import checkpoint, module

    owner, name = {
        "forward": (module.TranslationModule, "_losses"),
        "loss": (module, "smoothed_cross_entropy"),
        "backward": (module.TranslationModule, "training_step"),
        "rate": (module, "rate"),
        "gradient": (module.TranslationModule, "on_before_optimizer_step"),
        "parameter": (module.TranslationModule, "check_parameters"),
        "validation": (module.TranslationModule, "validation_step"),
        "save": (checkpoint, "write_bytes"),
        "decoding": (backend, "translate"),
    }[act.place]
    real, left = getattr(owner, name), [act.n]

    def replaced(*arguments: Any, **options: Any) -> Any:
        left[0] -= 1
        if each:
            each()
        if left[0] == 0 and act.spoils:
            return spoiled(act.place, real, *arguments, **options)
        if left[0] == 0 and act.place == "backward":
            loss = real(*arguments, **options)
            loss.register_hook(lambda gradient: act())
            return loss
        if left[0] == 0:
            act()
        return real(*arguments, **options)

    setattr(owner, name, replaced)


def spoiled(place: str, real: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """What comes out where a number is none, a single one of many, or where memory ends."""
    import torch

    if place == "forward":
        raise torch.OutOfMemoryError("CUDA out of memory.")
    if place == "rate":
        return float("nan")
    if place == "loss":
        loss, nll = real(*arguments, **options)
        return loss * float("nan"), nll
    last = list(arguments[0].parameters())[-1]
    with torch.no_grad():
        (last.grad if place == "gradient" else last).view(-1)[-1] = float("inf" if place == "gradient" else "nan")
    return real(*arguments, **options)


def one_of_several(folder: str, patience: float, act: dict[str, Any], another_plan: bool) -> None:
    """Be one of the processes that PyTorch's launcher started; in the second something happens."""
    from repro.data import datamodule
    from repro.training import group

    group.PATIENCE = timedelta(seconds=patience)
    is_second = os.environ["RANK"] == "1"
    if is_second and another_plan:
        given: Any = datamodule.Plan
        datamodule.Plan = lambda **options: given(**options | {"data_hash": "another"})  # type: ignore[assignment, misc]
    play(Plan(folder=Path(folder), acts=(Act(**act),) if is_second and act else (), options=("--devices=2",)))


if __name__ == "__main__":
    if "LOCAL_RANK" not in os.environ:
        from repro.runs.launch import launch as launch_processes

        sys.exit(launch_processes(sys.argv, 2))
    one_of_several(**json.loads(sys.argv.pop()))
