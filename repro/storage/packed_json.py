"""Small tables in files of a few kilobytes: JSON with its checksum, packed. The same content is the same bytes."""

import functools
import gzip
import io
import json
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from repro.storage import atomic, signed_json

MOST = 1 << 28  # bytes of an unpacked file
BLOCK = 1 << 20
_DAMAGED = "{} is damaged: {}"


def write_packed(file: Path, content: Mapping[str, Any]) -> None:
    """Write the content together with its checksum."""
    signed = {**content, signed_json.KEY: signed_json.checksum(dict(content))}
    atomic.write_bytes(file, packed(json.dumps(signed, sort_keys=True).encode()))


def read_packed(file: Path, form: int) -> Mapping[str, Any]:
    """What was written as `format` number `form`. Raises ValueError for anything else, and for what was changed."""
    try:
        seen = file.stat()
    except OSError as error:
        raise ValueError(_DAMAGED.format(file.name, error)) from error
    return _read(file, (seen.st_mtime_ns, seen.st_size, seen.st_ino), form)


@functools.lru_cache(maxsize=4)  # who reads one table out of a file often reads another out of it next
def _read(file: Path, _state: tuple[int, ...], form: int) -> Mapping[str, Any]:
    content = json.loads(unpacked(file))
    if not isinstance(content, dict) or content.get("format") != form:
        raise ValueError(f"expected a table of format {form}")
    if (stated := content.pop(signed_json.KEY, None)) != (counted := signed_json.checksum(content)):
        raise ValueError(f"edited by hand or damaged: expected the checksum {stated}, got {counted}")
    return content


def packed(data: bytes) -> bytes:
    """The same data, the same bytes: neither time nor name."""
    return gzip.compress(data, 9, mtime=0)


def unpacked(file: Path) -> bytes:
    """What a file holds, if that is no more than text of sentences may be. Raises ValueError."""
    data = bytearray()
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(file.read_bytes())) as stream:
            while len(data) <= MOST and (block := stream.read(BLOCK)):  # asked for all, memory for MOST would be taken
                data += block
    except (EOFError, OSError, zlib.error) as error:
        raise ValueError(_DAMAGED.format(file.name, error)) from error
    if len(data) > MOST:
        raise ValueError(f"{file.name} holds more than {MOST:,} bytes")
    return bytes(data)
