"""Packed bytes: the same content is the same bytes, and no more is unpacked than a text of sentences may be."""

import gzip
import io
import zlib
from pathlib import Path

MOST = 1 << 28  # bytes of an unpacked file
BLOCK = 1 << 20


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
        raise ValueError(f"{file.name} is damaged: {error}") from error
    if len(data) > MOST:
        raise ValueError(f"{file.name} holds more than {MOST:,} bytes")
    return bytes(data)
