"""From an address to plain text: archives are fetched once, verified at every use, and unpacked into our folders.

No network is needed if the archives, or their texts, are there. `transfer.py` downloads one archive.
"""

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from repro.corpora.download.archive import unpack
from repro.corpora.download.sources import Collection, Source
from repro.corpora.download.transfer import (
    CLOCK,
    Announce,
    Clock,
    Unreachable,
    WrongHash,
    at_most,
    digest_of,
    download,
    received_by_one,
    require_room,
)
from repro.corpora.parallel_text import text_fingerprint
from repro.storage import atomic
from repro.storage.folder_cache import MANIFEST, made_once, verified

# Archives --------------------------------------------------------------------------------------------------


def fetch(
    source: Source,
    folder: Path,
    *,
    offline: bool = False,
    mirror: str | None = None,
    tell: Announce = print,
    clock: Clock = CLOCK,
) -> Path:
    """The archive of `source` in `folder`, verified; it is downloaded if absent, unless `offline`.

    `mirror` is the address of a folder with copies under our names; it is tried before the addresses of the source.
    """
    path, copy = folder / source.archive, copies(source, mirror)
    if not path.exists():
        if offline:
            raise FileNotFoundError(f"Offline, and an archive is missing. {_by_hand([source], folder)}")
        if mirror and not copy:
            tell(f"{mirror} is passed over: {source.archive} has no published SHA-256, so it must come by https.")
        atomic.make_folder(folder)
        with received_by_one(source, folder, tell, clock):
            if not path.exists():
                _download(source, [*copy, *source.urls], folder, tell, clock)
    _verify(source, path)
    return path


def copies(source: Source, mirror: str | None) -> list[str]:
    """Where a mirror has the archive, under our name; [] if it has no published hash and would not come over TLS."""
    if mirror is None:
        return []
    address = urlsplit(mirror)
    if address.scheme not in ("http", "https") or not address.hostname or address.query or address.fragment:
        raise ValueError(
            f"--mirror {mirror[:200]!r} is not the address of a folder; expected one like https://example.org/archives."
        )
    is_safe = address.scheme == "https" or source.is_pinned
    return [f"{mirror.rstrip('/')}/{source.archive}"] if is_safe else []


def missing(collection: Collection, archives: Path, texts: Path | None = None) -> list[Source]:
    """The sources of which neither text nor archive is there, one for each archive; no file is read."""
    lacking: dict[str, Source] = {}
    for source in collection.sources:
        has_text = texts is not None and (_text_folder(source, collection.pair, texts) / MANIFEST).is_file()
        if not has_text and not (archives / source.archive).is_file():
            lacking.setdefault(source.archive, source)
    return list(lacking.values())


def instructions(collection: Collection, archives: Path, texts: Path | None = None) -> str:
    """What is to be fetched, its size and where it goes; "" if nothing is missing."""
    lacking = missing(collection, archives, texts)
    return _by_hand(lacking, archives) if lacking else ""


def _by_hand(sources: Sequence[Source], folder: Path) -> str:
    """How to get archives without this program."""
    files = [f"  {line}" for source in sources for line in described(source)]
    return "\n".join([f"Put these files into {folder}, under these names:", *files])


def described(source: Source) -> list[str]:
    """What one must know of an archive: our name for it, size and hash, where it is, what it is, its licence."""
    said = (*source.urls, source.about, f"licence: {source.licence}")
    return [f"{source.archive}  {at_most(source)}  {_published(source)}", *(f"  {line}" for line in said if line)]


def _published(source: Source) -> str:
    if source.sha256:
        return f"SHA-256 {source.sha256}"
    if source.md5:
        return f"MD5 {source.md5}"
    return "known by the SHA-256 of its texts" if source.is_pinned else "no published hash"


def _download(source: Source, urls: Sequence[str], folder: Path, tell: Announce, clock: Clock) -> None:
    """Download the archive from the first address that gives it. Raises one error with the failures of all."""
    failures = download(source, urls, folder, _expected(source), tell, clock)
    if not failures:
        return
    said = [f"No mirror gave {source.archive}:", *(f"  {url}: {failure}" for url, failure in failures.items())]
    if all(isinstance(failure, Unreachable) for failure in failures.values()):
        said.append(
            "None could be reached: is there a network, or does it need a proxy (https_proxy)? Start again when there "
            "is one, name a folder of copies with --mirror URL, or get the file elsewhere and add --offline."
        )
    kind = ValueError if any(isinstance(failure, WrongHash) for failure in failures.values()) else ConnectionError
    raise kind("\n".join([*said, _by_hand([source], folder)]))


def _verify(source: Source, path: Path) -> None:
    """Set aside an archive that is not the published one, and raise ValueError; a file is hashed once per process."""
    size = path.stat().st_size
    if not path.is_file():  # perhaps an unpacked folder; reading a pipe might never end
        raise ValueError(
            f"{path}: expected the file as it is published, got a folder or a pipe. Move that away and start again; "
            "archives are unpacked for you."
        )
    if source.size not in (None, size):
        raise _set_aside(path, f"{source.size:,} bytes", f"{size:,}")
    for algorithm, digest in _expected(source).items():
        found = digest_of(path, algorithm)
        if found != digest:
            raise _set_aside(path, f"{algorithm} {digest}", found)


def _expected(source: Source) -> dict[str, str]:
    """The published hash that the archive must have; {} if it is known by its texts, or has none."""
    if source.sha256:
        return {"sha256": source.sha256}
    return {"md5": source.md5} if source.md5 and not source.is_pinned else {}


def _set_aside(path: Path, expected: str, found: str) -> ValueError:
    """Rename a file that is not what its name says; return the error to raise."""
    aside = path.with_name(f"{path.name}.refused")
    with suppress(FileNotFoundError):  # another process did it
        path.replace(aside)
    return ValueError(
        f"{path} is not the published file: expected {expected}, got {found}. It was set aside as {aside.name} and "
        "is not used. Start again to download it, or put the right file there."
    )


# Texts -----------------------------------------------------------------------------------------------------


def text(
    source: Source,
    pair: str,
    archives: Path,
    texts: Path,
    *,
    offline: bool = False,
    mirror: str | None = None,
    tell: Announce = print,
    clock: Clock = CLOCK,
) -> tuple[Path, Path]:
    """The plain text of `source` for `pair`, two files in a folder of `texts`; the archive is needed only to make them.

    The facts kept of that folder are `files` (`bytes`, `sha256`, `n_lines` by language) and `archive`, its SHA-256.
    """
    folder = _text_folder(source, pair, texts)
    try:
        verified(folder)
    except (FileNotFoundError, ValueError) as reason:
        if not isinstance(reason, FileNotFoundError):
            tell(f"{reason} It is made again now.")
        archive = fetch(source, archives, offline=offline, mirror=mirror, tell=tell, clock=clock)
        tell(f"Unpacking {source.name} ({pair}) from {archive}.")
        made_once(folder, lambda empty: _unpacked(source, pair, archive, empty))
    one, other = (folder / f"{source.name}.{side.language}" for side in source.members[pair])
    return one, other


def _text_folder(source: Source, pair: str, texts: Path) -> Path:
    return texts / f"{source.name}-{pair}"


def _unpacked(source: Source, pair: str, archive: Path, folder: Path) -> dict[str, Any]:
    """Fill `folder` from the archive and return its facts; the sides must have the published number of lines."""
    require_room(folder, source.text_bytes(pair), f"the text of {source.name}, by an estimate,")
    sides = source.members[pair]
    members = {f"{source.name}.{member.language}": member for member in sides}
    done = unpack(archive, members, folder)
    files = {member.language: done[name] for name, member in members.items()}
    counts = [files[side.language]["n_lines"] for side in sides]
    expected = source.n_pairs.get(pair)
    if counts[0] != counts[1] or expected not in (None, counts[0]):
        raise ValueError(
            f"{archive}: {sides[0].name!r} has {counts[0]:,} lines, {sides[1].name!r} has {counts[1]:,}; expected "
            + (f"{expected:,} of each. " if expected is not None else "as many of each. ")
            + "Delete the archive and get it again."
        )
    for name, member in members.items():
        if member.sha256 not in (None, found := text_fingerprint(folder / name).sha256):
            raise ValueError(
                f"{archive}: {member.name!r} is not the published text: expected SHA-256 {member.sha256}, got {found}. "
                "Delete the archive and get it again."
            )
    return {"files": files, "archive": digest_of(archive, "sha256")}
