"""CRAFT 5.0.2, the open treebank: 101 files, each known by its hash (`known.sha256`)."""

import hashlib
from collections.abc import Callable
from pathlib import Path

from repro.corpora.download.sources import KNOWN, Source

ADDRESS = "https://raw.githubusercontent.com/UCDenver-ccp/CRAFT/v5.0.2"
LICENCE = "CC BY 3.0, https://creativecommons.org/licenses/by/3.0"


def craft_sources() -> dict[str, Source]:
    """The files of CRAFT as sources to fetch, by their paths in the folder of the corpus."""
    return {
        path: Source(
            name=f"craft {path}",
            archive=Path(path).name,
            urls=(f"{ADDRESS}/{path}",),
            sha256=sha256,
            licence=LICENCE,
            members={},
            n_pairs={},
        )
        for place, sha256 in KNOWN.items()
        if place != (path := place.removeprefix("craft/"))
    }


def missing_of_craft(folder: Path) -> dict[str, Source]:
    """The files that are absent; no file is read."""
    return {path: source for path, source in craft_sources().items() if not (folder / path).is_file()}


def check_craft(folder: Path) -> None:
    """Check that a copy is the published one: raises FileNotFoundError if files are missing, ValueError if changed.

    Windows line ends are accepted.
    """
    again = "Get the corpus again with: python -m repro data fetch craft"
    if missing := list(missing_of_craft(folder)):
        raise FileNotFoundError(f"{len(missing):,} files are missing, the first is {folder / missing[0]}. {again}.")
    for path, source in craft_sources().items():
        found = hashlib.sha256((folder / path).read_bytes().replace(b"\r\n", b"\n")).hexdigest()
        if found != source.sha256:
            raise ValueError(
                f"{folder / path} is not the published file: expected SHA-256 {source.sha256}, got {found}. {again}, "
                "or leave other trees out of this folder."
            )


def fetch_craft(
    folder: Path,
    *,
    offline: bool = False,
    mirror: str | None = None,
    tell: Callable[[str], object] = print,
) -> None:
    """Fetch the files that `folder` lacks, and verify all. A mirror has them under their own names."""
    from repro.corpora.download.fetch import fetch  # here, not above: to check a copy needs no network

    for path, source in craft_sources().items():
        fetch(source, (folder / path).parent, offline=offline, mirror=mirror, tell=tell)
