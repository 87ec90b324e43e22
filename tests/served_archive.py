"""What the tests of downloads share: an archive, and a source that names it."""

import gzip
import hashlib
import io
import random
import tarfile
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from repro.corpora.sources import Member, Source

N_LINES = 4_000
PATH, MIRROR = "/wmt13/x.tgz", "/mirror/x.tgz"


def noise(seed: int) -> list[str]:
    """Lines that gzip cannot shrink much."""
    generator = random.Random(seed)
    return [f"{generator.getrandbits(200):x}" + "x" * generator.randrange(40) for _ in range(N_LINES)]


def tar_of(members: Mapping[str, bytes]) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as tar:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return file.getvalue()


def lines(texts: list[str]) -> bytes:
    return "".join(f"{line}\n" for line in texts).encode()


EN = noise(1)
DE = [f"{line[::-1]} ja" for line in EN]
ARCHIVE = gzip.compress(tar_of({"training/x.de-en.en": lines(EN), "training/x.de-en.de": lines(DE)}), 1, mtime=0)
SHA256 = hashlib.sha256(ARCHIVE).hexdigest()
MD5 = hashlib.md5(ARCHIVE).hexdigest()
OTHER = ARCHIVE[:-1_000] + bytes([ARCHIVE[-1_000] ^ 1]) + ARCHIVE[-999:]  # one bit


def source_at(*urls: str, **changed: Any) -> Source:
    sides = tuple(Member(language=one, name=f"training/x.de-en.{one}") for one in ("en", "de"))
    made = Source(
        name="x_v7",
        archive="x.tgz",
        urls=urls,
        size=len(ARCHIVE),
        sha256=SHA256,
        licence="none",
        members={"en-de": (sides[0], sides[1])},
        n_pairs={"en-de": N_LINES},
    )
    return replace(made, **changed)
