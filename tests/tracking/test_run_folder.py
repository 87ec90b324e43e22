"""What a run's folder says of its run, and keeps saying when the run goes on."""

import json
from pathlib import Path
from typing import Any

import pytest

from repro.tracking.run_folder import describe, write_run

BEFORE, NOW = "0" * 16, "1" * 16


def begin(folder: Path, claims: str | None) -> str | None:
    return write_run(folder, "0123456789abcdef", tags={"row": "base"}, params={}, paper={}, claims=claims)


def test_the_list_of_claims_is_that_of_the_beginning_however_often_it_is_described(tmp_path: Path) -> None:
    assert begin(tmp_path, BEFORE) == BEFORE
    execution = describe(tmp_path)["execution"]
    for _ in range(2):
        assert begin(tmp_path, NOW) == BEFORE
    assert (describe(tmp_path)["claims"], describe(tmp_path)["execution"]) == (BEFORE, execution)


def test_a_folder_of_the_time_before_never_gets_a_list(tmp_path: Path) -> None:
    assert begin(tmp_path, None) is None
    assert "claims" not in json.loads((tmp_path / "run.json").read_bytes())
    assert begin(tmp_path, NOW) is None
    assert describe(tmp_path)["claims"] is None


@pytest.mark.parametrize("spoilt", [{"claims": 7}, {"run": "../.."}])
def test_a_damaged_description_of_the_time_before_checksums_is_refused(tmp_path: Path, spoilt: dict[str, Any]) -> None:
    begin(tmp_path, BEFORE)
    content = json.loads((tmp_path / "run.json").read_bytes())
    del content["sha256"]
    (tmp_path / "run.json").write_text(json.dumps(content), "utf-8")
    assert describe(tmp_path)["claims"] == BEFORE
    (tmp_path / "run.json").write_text(json.dumps(content | spoilt), "utf-8")
    with pytest.raises(ValueError, match=r"run\.json: expected run, tags, params and paper, got"):
        describe(tmp_path)


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
