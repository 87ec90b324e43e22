"""A file that carries its own checksum is believed as it was written, and not otherwise."""

import hashlib
import json
from pathlib import Path

import pytest

from repro.storage import signed_json


def test_what_was_written_comes_back_and_has_the_checksum_of_the_sorted_text(tmp_path: Path) -> None:
    content = {"format": 1, "b": [1, 0.5, None], "a": "é"}
    signed_json.write(file := tmp_path / "file.json", content)
    assert signed_json.read(file, "a thing", 1) == content
    stated = json.loads(file.read_bytes())["sha256"]
    assert stated == hashlib.sha256('{"a": "é", "b": [1, 0.5, null], "format": 1}'.encode()).hexdigest()
    with pytest.raises(ValueError, match="not JSON compliant"):
        signed_json.write(file, {"format": 1, "a": float("inf")})
    assert signed_json.read(file, "a thing", 1) == content


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('{"format": 1, "a": 2, "sha256": "00"}', "edited by hand or damaged: expected the checksum 00, got"),
        ('{"format": 2}', "expected a thing of format 1, got 2"),
        ('{"format": 1, "a": NaN}', "not JSON compliant"),
        ('{"format"', "Expecting"),
    ],
)
def test_a_wrong_file_is_refused_with_the_reason(text: str, complaint: str, tmp_path: Path) -> None:
    (tmp_path / "file.json").write_text(text, "utf-8")
    with pytest.raises(ValueError, match=complaint):
        signed_json.read(tmp_path / "file.json", "a thing", 1)
