"""A crash at any system call of what a run leaves: journal, checkpoints, tables."""

import contextlib
from pathlib import Path

import pytest
import torch
from faults.disk import Disk, fill, prepack, tmpfs
from paper_runs import PAPER_SETTINGS, paper_run

from repro.pages import build
from repro.results import record
from repro.results.frame import ResultSet
from repro.storage.atomic import DiskError, sweep
from repro.storage.journal import Journal, read
from repro.training import checkpoint

RUN = "0123456789abcdef"
SETTINGS = {**PAPER_SETTINGS, "claim": "the numbers"}


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


def test_a_run_goes_on_when_there_is_room_again(tmp_path: Path) -> None:
    # results on a file system of their own, which is full, then is not; TMPDIR has all the room there is
    with tmpfs(tmp_path / "disk", 2**17) as disk:
        run = disk / "run"
        with Journal(run / "journal.jsonl") as journal:
            advance(run, journal, range(1, 4))
            fill(disk)
            with pytest.raises(DiskError, match=r"disk/run/.* cannot be written to: No space left .* free\)"):
                advance(run, journal, range(4, 99))
        stopped, written = steps_of(run), [step for _, step, _ in lines(run / "journal.jsonl")]
        assert stopped == [3, 2]
        assert written in ([1, 2, 3], [1, 2, 3, 4])
        (disk / "filling").unlink()
        sweep(run, alone=True)
        with Journal(run / "journal.jsonl") as journal:
            advance(run, journal, range(4, 7))
        assert steps_of(run) == [6, 5]


# ---- tables


def test_a_table_after_a_crash_at_any_call(tmp_path: Path) -> None:
    results = tmp_path / "results"
    for seed in (1, 2):
        one = paper_run(settings=SETTINGS, seed=seed)
        one.save(record.path(results, one))
    build.write_scale(ResultSet.read(results / "paper"))
    old = {path.name: path.read_bytes() for path in (results / "paper").iterdir() if path.is_file()}
    more = paper_run(settings=SETTINGS, seed=3)
    more.save(record.path(results, more))
    with Disk(results / "paper").watching() as disk:
        build.write_scale(ResultSet.read(results / "paper"))
    new = {path.name: path.read_bytes() for path in (results / "paper").iterdir() if path.is_file()}
    assert {name for name in new if new[name] != old[name]} >= {"README.md", "table3.md", "table3.csv"}
    for when, left in disk.left():
        for name in new:
            assert left.get(name) in (old[name], new[name]), f"{when}: {name}"


@pytest.mark.parametrize("pages", [0, 4])
def test_a_full_disk_keeps_the_old_tables(tmp_path: Path, pages: int) -> None:
    with tmpfs(tmp_path / "disk", 2**18) as disk:
        one, another = paper_run(settings=SETTINGS), paper_run(settings=SETTINGS, seed=2)
        one.save(record.path(disk, one))
        old = {path: path.read_bytes() for path in build.write_scale(ResultSet.read(disk / "paper"))}
        another.save(record.path(disk, another))
        fill(disk, spare=pages * 4_096)
        with contextlib.suppress(DiskError):
            build.write_scale(ResultSet.read(disk / "paper"))
        written = {path: path.read_bytes() for path in old}
        assert {path for path in (disk / "paper").iterdir() if path.is_file()} == set(old)
        (disk / "filling").unlink()
        new = {path: path.read_bytes() for path in build.write_scale(ResultSet.read(disk / "paper"))}
        assert all(written[path] in (old[path], new[path]) for path in old)
        assert pages or written == old


def test_a_full_disk_keeps_the_old_record(tmp_path: Path) -> None:
    with tmpfs(tmp_path / "disk", 2**15) as disk:
        one, file = paper_run(), disk / "record.json"
        one.save(file)
        before = file.read_bytes()
        fill(disk)
        with pytest.raises(DiskError, match="record.json cannot be written to: No space left"):
            paper_run(row="other", table="table3_A").save(file)
        assert file.read_bytes() == before
        assert record.load(file) == one
