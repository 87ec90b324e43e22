"""What a run's folder says of its run, and keeps saying when the run goes on."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from repro.results import record
from repro.runs.executors.tail import noted_step
from repro.runs.load import origin_of
from repro.storage.journal import Journal, read
from repro.tracking.run_folder import RECORD, describe, has_diverged, is_training, outcome, write_run

BEFORE, NOW = "0" * 16, "1" * 16


def begin(folder: Path, claims: str | None) -> str | None:
    return write_run(folder, "0123456789abcdef", tags={"row": "base"}, params={}, paper={}, claims=claims)


def test_a_run_keeps_the_list_of_claims_of_its_first_description(tmp_path: Path) -> None:
    assert begin(tmp_path, BEFORE) == BEFORE
    execution = describe(tmp_path)["execution"]
    for _ in range(2):
        assert begin(tmp_path, NOW) == BEFORE
    assert (describe(tmp_path)["claims"], describe(tmp_path)["execution"]) == (BEFORE, execution)


def test_a_description_without_checksum_or_with_an_odd_name_is_refused(tmp_path: Path) -> None:
    begin(tmp_path, BEFORE)
    content = json.loads((tmp_path / "run.json").read_bytes())
    del content["sha256"]
    (tmp_path / "run.json").write_text(json.dumps(content), "utf-8")
    with pytest.raises(ValueError, match=r"run\.json: expected run, tags, params and paper, got .*checksum None, not"):
        describe(tmp_path)
    write_run(place := tmp_path / "place", "../..", tags={}, params={}, paper={})
    with pytest.raises(ValueError, match=r"run\.json: expected run, .*got .*run is '\.\./\.\.'"):
        describe(place)


def test_no_changed_character_makes_a_description_say_something_else(tmp_path: Path) -> None:
    begin(tmp_path, BEFORE)
    whole, said = (tmp_path / "run.json").read_bytes(), describe(tmp_path)
    for place in range(len(whole)):
        (tmp_path / "run.json").write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        try:
            assert describe(tmp_path) == said, place  # a blank that is another
        except ValueError:
            with pytest.raises(ValueError, match="Take it from a copy, or delete it"):
                begin(tmp_path, NOW)  # and is not written anew, as another execution
            assert (tmp_path / "run.json").read_bytes() != whole
    (tmp_path / "run.json").unlink()
    assert begin(tmp_path, NOW) == NOW
    assert describe(tmp_path)["execution"] != said["execution"]


@pytest.mark.parametrize(
    ("make", "what"),
    [(os.mkfifo, "a pipe"), (lambda path: os.symlink("/dev/zero", path), "a device or a socket")],
)
def test_what_is_no_file_is_named_and_not_waited_for(tmp_path: Path, make: Callable[[Path], object], what: str) -> None:
    for name in ("run.json", RECORD, "journal.jsonl"):
        make(tmp_path / name)
    readers: list[tuple[str, Callable[[], object]]] = [
        ("run.json", lambda: describe(tmp_path)),
        ("run.json", lambda: begin(tmp_path, NOW)),
        (RECORD, lambda: record.load(tmp_path / RECORD)),
        (RECORD, lambda: outcome(tmp_path)),
        (RECORD, lambda: has_diverged(tmp_path)),
        ("journal.jsonl", lambda: read(tmp_path / "journal.jsonl")),
    ]
    for name, reading in readers:
        with pytest.raises(ValueError, match=f"{name}: expected .*, got .*{what}.* delete "):
            reading()
    with pytest.raises((ValueError, OSError), match="journal.jsonl"):
        Journal(tmp_path / "journal.jsonl")
    assert not is_training(tmp_path)
    assert noted_step(tmp_path / "journal.jsonl") == 0
    assert origin_of(tmp_path) == {}
