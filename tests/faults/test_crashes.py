"""A crash at any system call of what a run leaves: journal and checkpoints."""

import contextlib
from pathlib import Path

import torch
from faults.disk import Disk, prepack

from repro.storage.atomic import sweep
from repro.storage.journal import Journal, read
from repro.training import checkpoint

RUN = "0123456789abcdef"


def lines(path: Path) -> list[tuple[str, float, float]]:
    return [(str(line["kind"]), line["step"], line["loss"]) for line in read(path)]


# ---- the journal


def test_a_journal_cut_off_at_every_byte_of_its_last_three_lines(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    with Journal(path) as journal:
        for step in range(1, 6):
            journal.append("train", step, loss=step / 8)
    whole = path.read_bytes()
    ends = [i + 1 for i, byte in enumerate(whole) if byte == ord("\n")]
    for length in range(ends[1], len(whole) + 1):
        path.write_bytes(whole[:length])
        kept = sum(end <= length for end in ends)
        assert lines(path) == [("train", step, step / 8) for step in range(1, kept + 1)]
        with Journal(path) as journal:
            assert journal.attempt == 2
            journal.append("train", kept + 1, loss=7.0)  # the lost step again
        assert lines(path) == [*(("train", step, step / 8) for step in range(1, kept + 1)), ("train", kept + 1, 7.0)]
        assert path.read_bytes().startswith(whole[: ends[kept - 1]])


def test_a_journal_after_a_crash_at_any_call(tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    synced = []
    with Disk(run).watching() as disk, Journal(run / "journal.jsonl") as journal:
        for step in range(1, 5):
            journal.append("train", step, loss=step / 8)
            if step % 2 == 0:
                journal.sync()
                synced.append((len(disk.moments), step))
    for when, left in disk.left():
        path = prepack(left, run) / "journal.jsonl"
        found = lines(path)
        assert found == [("train", step, step / 8) for step in range(1, len(found) + 1)], when
        with Journal(path) as journal:
            journal.append("train", len(found) + 1, loss=7.0)
        assert lines(path) == [*found, ("train", len(found) + 1, 7.0)], when
    for since, step in synced:
        for _, moment in disk.moments[since:]:
            for left in moment.power_lost():
                assert left["journal.jsonl"].count(b"\n") >= step, "synced, and yet lost"


# ---- journal, checkpoints and pruning, as training has them


def steps_of(run: Path) -> list[int]:
    """The whole checkpoints, newest first."""
    found = []
    for path in reversed(checkpoint.checkpoints(run / "checkpoints")):
        with contextlib.suppress(checkpoint.DamagedCheckpoint):
            found.append(int(checkpoint.load(path, RUN)["step"]))
    return found


def advance(run: Path, journal: Journal, steps: range) -> None:
    """What training writes in some steps: numbers, then the checkpoint that follows them; then what is old goes."""
    for step in steps:
        journal.append("train", step, loss=step / 8)
        journal.sync()
        state = {"step": step, "w": torch.full((3, 5), float(step))}
        checkpoint.save(checkpoint.path_of(run / "checkpoints", step), state, RUN)
        checkpoint.prune(run / "checkpoints", keep=())


def test_a_run_after_a_crash_at_any_call(tmp_path: Path) -> None:
    run = tmp_path / "run"
    with Journal(run / "journal.jsonl") as journal:
        advance(run, journal, range(1, 4))
    with Disk(run).watching() as disk, Journal(run / "journal.jsonl") as journal:
        advance(run, journal, range(4, 6))
    ways = list(disk.left())
    assert len(ways) > 20
    for when, left in ways:
        prepack(left, run)
        sweep(run, alone=True)
        whole = steps_of(run)
        assert whole[:2] in ([3, 2], [4, 3], [5, 4]), when
        written = [step for _, step, _ in lines(run / "journal.jsonl")]
        assert written == list(range(1, len(written) + 1)), when
        assert written[-1] >= whole[0], f"{when}: a checkpoint whose numbers are lost"
        assert not [path for path in run.rglob("*") if path.is_file() and path.suffix not in (".jsonl", ".safetensors")]
