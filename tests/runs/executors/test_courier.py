"""What travels between two machines of a run's folder: all of it, each line once, and nothing but that."""

import os
import shutil
import signal
from pathlib import Path
from random import Random
from time import sleep

import pytest
import torch
from faults.disk import tmpfs
from faults.test_crashes import RUN
from hypothesis import given
from hypothesis import strategies as st

from repro.runs.executors import courier
from repro.runs.executors.courier import Parcel, Seen, all_seen, begun, deliver, is_empty, news
from repro.storage.atomic import DiskError
from repro.storage.journal import Journal, read_all
from repro.training import checkpoint

HASH_OF_NOTHING = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


def contents(folder: Path) -> dict[str, bytes]:
    """All files of a folder, but who makes the run."""
    found = {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    return {name: data for name, data in found.items() if not name.startswith("attempts/")}


def carry(source: Path, target: Path, seen: Seen, most: int = courier.MOST) -> Seen:
    """Carry until nothing is left."""
    while True:
        parcel, seen = news(source, seen, most)
        if is_empty(parcel):
            return seen
        deliver(target, parcel)


def parcel(name: str, data: bytes = b"", at: int | None = None, sha256: str = HASH_OF_NOTHING) -> Parcel:
    return {"pieces": [{"name": name, "at": at, "data": data, "sha256": sha256}], "gone": []}


@given(
    steps=st.lists(st.sampled_from(["line", "half", "checkpoint", "drop", "rewrite", "carry"]), max_size=25),
    most=st.sampled_from([1, 10, 1000]),
)
def test_the_other_folder_becomes_the_same(
    steps: list[str], most: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    here, there = tmp_path_factory.mktemp("here"), tmp_path_factory.mktemp("there")
    journal, saved, seen = here / "journal.jsonl", here / "checkpoints", Seen()
    saved.mkdir()
    for number, step in enumerate(steps):
        text = journal.read_bytes() if journal.exists() else b""
        if step in ("line", "half"):
            # what was half a line is whole with the next one
            journal.write_bytes(text + b"%d, and more" % number + b"\n" * (step == "line"))
        elif step == "checkpoint":
            (saved / f"step-{number:09}.safetensors").write_bytes(b"w" * number)
        elif step == "drop":
            [path.unlink() for path in sorted(saved.iterdir())[:1]]
        elif step == "rewrite":
            partial = here / ".run.json.partial"
            partial.write_bytes(b"%d" % number)
            partial.replace(here / "run.json")
        else:
            told, seen = news(here, seen, most)
            deliver(there, told)
            mine = contents(here)
            assert all(mine.get(name, b"").startswith(data) for name, data in contents(there).items() if name in mine)
    carry(here, there, seen, most)
    whole = contents(here)
    if journal.exists():
        whole["journal.jsonl"] = whole["journal.jsonl"][: whole["journal.jsonl"].rfind(b"\n") + 1]
    assert {name: data for name, data in contents(there).items() if data} == {n: d for n, d in whole.items() if d}


def test_half_a_line_stays_where_it_is(tmp_path: Path) -> None:
    (tmp_path / "journal.jsonl").write_bytes(b'{"step": 1}\n{"st')
    told, seen = news(tmp_path, Seen())
    assert [piece["data"] for piece in told["pieces"]] == [b'{"step": 1}\n']
    assert is_empty(news(tmp_path, seen)[0])
    with open(tmp_path / "journal.jsonl", "ab") as file:
        file.write(b'ep": 2}\n')
    [piece] = news(tmp_path, seen)[0]["pieces"]
    assert (piece["at"], piece["data"]) == (12, b'{"step": 2}\n')


def test_what_is_not_whole_and_who_makes_the_run_stay(tmp_path: Path) -> None:
    for name in (
        ".run.json.vm.7.ab.partial",
        "attempts/000001/owner.json",
        "checkpoints/.step-1.x.partial",
        "run.json",
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / name).write_bytes(b"x")
    (tmp_path / "way.out").symlink_to("/etc/passwd")
    assert [piece["name"] for piece in news(tmp_path, Seen())[0]["pieces"]] == ["run.json"]


def test_the_record_comes_after_all_else(tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    (here / "checkpoints").mkdir(parents=True)
    there.mkdir()
    for name in ("record.json", "checkpoints/step-000000001.safetensors", "checkpoints/step-000000002.safetensors"):
        (here / name).write_bytes(bytes(1 if name == "record.json" else 5))  # it would fit beside the first
    seen, order = Seen(), []
    for _ in range(3):  # a parcel takes one of them
        told, seen = news(here, seen, most=7)
        order += [piece["name"] for piece in told["pieces"]]
    assert order[-1] == "record.json"
    assert len(order) == 3


def test_no_checkpoint_is_gone_before_the_next_has_come(tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    (here / "checkpoints").mkdir(parents=True)
    paths = [here / "checkpoints" / f"step-{step:09}.safetensors" for step in (1, 2, 3)]
    paths[0].write_bytes(bytes(5))
    seen = carry(here, there, Seen())
    for path in paths[1:]:
        path.write_bytes(bytes(5))
    paths[0].unlink()
    told, seen = news(here, seen, most=7)
    assert ([piece["name"][-13] for piece in told["pieces"]], told["gone"]) == (["2"], [])
    told, seen = news(here, seen, most=7)
    assert ([piece["name"][-13] for piece in told["pieces"]], told["gone"]) == (
        ["3"],
        ["checkpoints/step-000000001.safetensors"],
    )
    assert is_empty(news(here, seen)[0])


@pytest.mark.parametrize(
    "name", ["../x.json", "/etc/x.json", "checkpoints/../../x.json", "attempts/000002/owner.json", ".x.json",
             "a\0.json", "checkpoints", "run.json\n", "a" * 200 + ".json", ""],
)  # fmt: skip
def test_a_name_that_is_none_is_refused(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "run"
    for told in (parcel(name), {"pieces": [], "gone": [name]}):
        with pytest.raises(ValueError, match="not a file of a run"):
            deliver(folder, told)  # type: ignore[arg-type]
    assert list(tmp_path.rglob("*")) == []


def test_damage_on_the_way_is_found_before_anything_is_written(tmp_path: Path) -> None:
    good = parcel("run.json")["pieces"]
    with pytest.raises(ValueError, match=r"record\.json was damaged in transit"):
        deliver(tmp_path, {"pieces": [*good, *parcel("record.json", b"{}")["pieces"]], "gone": []})
    assert list(tmp_path.iterdir()) == []


def test_a_gap_in_a_journal_is_refused(tmp_path: Path) -> None:
    (tmp_path / "journal.jsonl").write_bytes(b"1\n")
    for at in (0, 1, 3):
        with pytest.raises(ValueError, match=f"expected {at} bytes, to which more is to be added, found 2"):
            deliver(tmp_path, parcel("journal.jsonl", at=at))


def test_who_was_replaced_writes_nothing(tmp_path: Path) -> None:
    def check() -> None:
        raise PermissionError("superseded")

    for told in (parcel("run.json"), parcel("journal.jsonl", at=0), Parcel(pieces=[], gone=["run.json"])):
        with pytest.raises(PermissionError):
            deliver(tmp_path / "run", told, check)
    assert not (tmp_path / "run").exists()


def test_another_machine_goes_on_where_the_run_stands(tmp_path: Path) -> None:
    here, there, back = tmp_path / "driver", tmp_path / "node", tmp_path / "copy"
    with Journal(here / "journal.jsonl") as journal:
        journal.append("train", 1, nll=2.5)
    with open(here / "journal.jsonl", "ab") as file:
        file.write(b'{"crc32": "9c1')  # the machine before was lost here
    checkpoint.save(checkpoint.path_of(here / "checkpoints", 1), {"step": 1, "w": torch.ones(3)}, RUN)
    shutil.copytree(here, back)
    for told in begun(here, most=1):
        deliver(there, told)
    assert contents(there) == contents(here)
    seen = all_seen(there)
    with Journal(there / "journal.jsonl") as journal:
        journal.append("train", 2, nll=1.5)
    told, seen = news(there, seen)
    assert [piece["name"] for piece in told["pieces"]] == ["journal.jsonl"]  # nothing travels back but the new line
    deliver(here, told)
    assert [(line["step"], line["attempt"]) for line in read_all(here / "journal.jsonl")] == [(1, 1), (2, 2)]
    assert checkpoint.load(checkpoint.path_of(there / "checkpoints", 1), RUN)["step"] == 1
    with pytest.raises(ValueError, match="more is to be added"):
        deliver(back, told)  # torn: it was not cut there


@pytest.mark.faults
def test_a_full_disk_is_named_and_what_was_whole_stays(tmp_path: Path) -> None:
    with tmpfs(tmp_path / "disk", 2**18) as disk:
        here, there = tmp_path / "here", disk / "run"
        (here / "checkpoints").mkdir(parents=True)
        (here / "journal.jsonl").write_bytes(b"line\n")
        first, second = (here / "checkpoints" / f"step-{step:09}.safetensors" for step in (1, 2))
        first.write_bytes(os.urandom(2**16))
        seen = carry(here, there, Seen())
        second.write_bytes(os.urandom(2**18))
        with pytest.raises(DiskError, match=r"step-000000002.safetensors cannot be written to: No space left"):
            carry(here, there, seen)
        first_there = there / "checkpoints" / first.name
        assert first_there.read_bytes() == first.read_bytes()
        assert sorted(path.name for path in there.rglob("*") if path.is_file()) == ["journal.jsonl", first.name]
        second.write_bytes(os.urandom(2**10))
        carry(here, there, seen)
        assert contents(there) == contents(here)


@pytest.mark.faults
def test_killed_at_any_moment_the_other_side_can_go_on(tmp_path: Path) -> None:
    here, there, chance = tmp_path / "here", tmp_path / "there", Random(1)
    with Journal(here / "journal.jsonl") as journal:
        for step in range(1, 60):
            journal.append("train", step, nll=step / 8)
    for step in range(1, 40):
        checkpoint.save(checkpoint.path_of(here / "checkpoints", step), {"w": torch.full((50_000,), step)}, RUN)
    for _ in range(200):
        process = os.fork()
        if not process:
            try:
                mine = all_seen(there)
                carry(here, there, Seen(mine.read, {name: courier._state(here / name) for name in mine.looked}), most=1)
                os._exit(0)
            finally:
                os._exit(1)
        sleep(chance.uniform(0.01, 0.1))
        os.kill(process, signal.SIGKILL)
        code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
        assert code in (0, -signal.SIGKILL)
        for name in all_seen(there).looked if there.exists() else ():
            assert (here / name).read_bytes() == (there / name).read_bytes()
        if code == 0:
            break
    assert code == 0
    assert {name: data for name, data in contents(there).items() if "partial" not in name} == contents(here)
