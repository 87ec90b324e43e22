"""Real kills at random moments, on a disk that is not TMPDIR's: what the model of a disk says, by the system itself."""

import os
import random
import signal
import time
from itertools import count
from pathlib import Path

import pytest
import torch
from faults.disk import tmpfs
from faults.test_crashes import RUN, lines, steps_of

from repro.storage.atomic import sweep
from repro.storage.journal import Journal
from repro.training import checkpoint


def train(run: Path) -> None:
    """Go on from the newest checkpoint, for ever."""
    sweep(run, alone=True)
    with Journal(run / "journal.jsonl") as journal:
        found = steps_of(run)
        for step in count(found[0] + 1 if found else 1):
            journal.append("train", step, loss=step / 8)
            journal.sync()
            state = {"step": step, "w": torch.full((1_000_000,), float(step))}
            checkpoint.save(checkpoint.path_of(run / "checkpoints", step), state, RUN)
            checkpoint.prune(run / "checkpoints", keep=())


def killed(run: Path, seconds: float) -> None:
    """Train in a process of its own, and kill it."""
    process = os.fork()
    if not process:
        try:
            train(run)
        finally:
            os._exit(1)
    time.sleep(seconds)
    os.kill(process, signal.SIGKILL)
    _, status = os.waitpid(process, 0)
    assert os.waitstatus_to_exitcode(status) == -signal.SIGKILL, "training had ended by itself"


@pytest.mark.faults
def test_killed_again_and_again(tmp_path: Path) -> None:
    seed = time.time_ns() % 10**6
    print(f"seed {seed}")
    chance = random.Random(seed)
    with tmpfs(tmp_path / "disk", 2**25) as disk:
        run, newest, left = disk / "run", 0, 0
        for _ in range(50):
            killed(run, chance.uniform(0.02, 0.3))
            left += len(list(run.rglob("*.partial")))
            whole = steps_of(run)
            assert {path.suffix for path in run.rglob("*") if path.is_file()} <= {".jsonl", ".safetensors", ".partial"}
            if whole:
                assert whole[0] >= newest
                assert len(whole) >= min(2, whole[0])
                written = [step for _, step, _ in lines(run / "journal.jsonl")]
                assert written == list(range(1, len(written) + 1))
                assert written[-1] >= whole[0]
                newest = whole[0]
        assert newest > 50
        assert left, "no kill ever fell into a write: it proved nothing"
        sweep(run, alone=False)
        assert not list(run.rglob("*.partial"))
