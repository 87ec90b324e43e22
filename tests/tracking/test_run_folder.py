"""What a run's folder says of its run, and keeps saying when the run goes on."""

from pathlib import Path

import pytest

from repro.tracking.run_folder import describe, write_run

BEFORE, NOW = "0" * 16, "1" * 16


def begin(folder: Path, claims: str | None) -> str | None:
    return write_run(folder, "0123456789abcdef", tags={"row": "base"}, params={}, paper={}, claims=claims)


def test_a_run_keeps_the_list_of_claims_of_its_first_description(tmp_path: Path) -> None:
    assert begin(tmp_path, BEFORE) == BEFORE
    execution = describe(tmp_path)["execution"]
    for _ in range(2):
        assert begin(tmp_path, NOW) == BEFORE
    assert (describe(tmp_path)["claims"], describe(tmp_path)["execution"]) == (BEFORE, execution)


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
