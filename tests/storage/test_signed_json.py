"""A file that carries its own checksum is believed as it was written, and not otherwise."""

import hashlib
import json
from pathlib import Path

import pytest

from repro.storage import signed_json


def test_what_was_written_comes_back(tmp_path: Path) -> None:
    content = {"format": 3, "name": "é", "values": [1, 0.5, None]}
    signed_json.write(tmp_path / "file.json", content)
    assert signed_json.read(tmp_path / "file.json", "a thing", 3) == content


def test_the_checksum_is_that_of_the_sorted_text(tmp_path: Path) -> None:
    signed_json.write(tmp_path / "file.json", {"format": 1, "b": 2, "a": "é"})
    stated = json.loads((tmp_path / "file.json").read_bytes())["sha256"]
    assert stated == hashlib.sha256('{"a": "é", "b": 2, "format": 1}'.encode()).hexdigest()


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('{"format": 1, "a": 2, "sha256": "00"}', "edited by hand or damaged: expected the checksum 00, got"),
        ('{"format": 1, "a": 2}', "edited by hand or damaged: expected the checksum None, got"),
        ('{"format": 2}', "expected a thing of format 1, got 2"),
        ("[]", r"expected a thing of format 1, got \[\]"),
        ('{"format": 1, "a": NaN}', "not JSON compliant"),
        ('{"format"', "Expecting"),
    ],
)
def test_what_cannot_be_believed_says_why(text: str, complaint: str, tmp_path: Path) -> None:
    (tmp_path / "file.json").write_text(text, "utf-8")
    with pytest.raises(ValueError, match=complaint):
        signed_json.read(tmp_path / "file.json", "a thing", 1)


def test_a_number_that_is_none_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        signed_json.write(tmp_path / "file.json", {"format": 1, "a": float("inf")})
    assert list(tmp_path.iterdir()) == []
