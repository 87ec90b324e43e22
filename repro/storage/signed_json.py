"""JSON files that carry the SHA-256 of their own content, so that a later edit is noticed."""

import hashlib
import json
from pathlib import Path
from typing import Any

from repro.storage.atomic import write_json

KEY = "sha256"


def canonical(content: Any) -> bytes:
    """The one encoding that is hashed. Raises TypeError for what JSON lacks, ValueError for NaN and infinities."""
    return json.dumps(content, sort_keys=True, allow_nan=False, ensure_ascii=False).encode("utf-8")


def signed(content: dict[str, Any]) -> bytes:
    """The content and its checksum in one line."""
    return canonical({**content, KEY: checksum(content)})


def write(path: Path, content: dict[str, Any]) -> None:
    """Write `content` together with its checksum."""
    write_json(path, {**content, KEY: checksum(content)})


def read(path: Path, what: str, version: int | None, advice: str = "") -> dict[str, Any]:
    """The content of a file, as `parsed`. An error names the file and ends in the `advice`."""
    try:
        return parsed(path.read_bytes(), what, version)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path}: {error}. {advice}") from error


def parsed(data: bytes, what: str, version: int | None) -> dict[str, Any]:
    """The content without its checksum.

    Raises ValueError, without the file's name, if it is not JSON or of another "format" (None: it has none), has a
    number that is not finite, or does not match its checksum.
    """
    content = json.loads(data)
    got = content.get("format") if isinstance(content, dict) else content
    if not isinstance(content, dict) or got != version:
        raise ValueError(f"expected {what} of format {version}, got {got!r:.80}")
    stated, counted = content.pop(KEY, None), checksum(content)
    if stated != counted:
        raise ValueError(f"edited by hand or damaged: expected the checksum {stated!s:.12}, got {counted:.12}")
    return content


def checksum(content: dict[str, Any]) -> str:
    """SHA-256 of the content, in hexadecimal digits."""
    return hashlib.sha256(canonical(content)).hexdigest()
