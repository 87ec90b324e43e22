"""From an address to plain text: archives are fetched once, verified at every use, and unpacked into our folders.

No network is needed if the archives, or their texts, are there. An archive is read once, as a stream, and its content
never decides where a file is written: a member whose name is known is copied into a file of ours, all others are
skipped. `transfer.py` downloads one archive.
"""

import functools
import gzip
import html
import re
import shutil
import tarfile
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from repro.corpora.download.sources import Collection, Source
from repro.corpora.download.transfer import Announce, at_most, download, wrong_hash
from repro.corpora.parallel_text import text_fingerprint
from repro.storage import atomic
from repro.storage.folder_cache import MANIFEST, alone, made_once, verified

AGAIN = "Delete the archive and get it again."
SEGMENT = re.compile(r"<seg\b[^>]*>(.*?)</seg\s*>", re.IGNORECASE | re.DOTALL)

# Archives --------------------------------------------------------------------------------------------------


def fetch(
    source: Source, folder: Path, *, offline: bool = False, mirror: str | None = None, tell: Announce = print
) -> Path:
    """The archive of `source` in `folder`, verified; it is downloaded if absent, unless `offline`.

    `mirror` is the address of a folder with copies under our names; it is tried before the addresses of the source.
    """
    path, known = folder / source.archive, _known(source)
    if path.exists():
        if wrong := wrong_hash(path, known):
            raise ValueError(f"{path} is not the published file: {wrong}. {AGAIN}")
        return path
    if offline:
        raise FileNotFoundError(f"Offline, and an archive is missing. {by_hand([source], folder)}")
    with alone(folder / f".{source.archive}.lock", tell):
        if not path.exists() and (failures := download(source, _urls(source, mirror), folder, known, tell)):
            said = [f"No address gave {source.archive}:", *(f"  {url}: {why}" for url, why in failures.items())]
            said.append(
                "Without a network, name a folder of copies with --mirror URL, or get the file elsewhere and add "
                "--offline."
            )
            raise ConnectionError("\n".join([*said, by_hand([source], folder)]))
    return path


def _urls(source: Source, mirror: str | None) -> list[str]:
    """The addresses to try; a mirror without TLS only for what a SHA-256 identifies."""
    is_safe = mirror is not None and (mirror.startswith("https://") or source.is_pinned)
    return [*([f"{mirror.rstrip('/')}/{source.archive}"] if mirror and is_safe else []), *source.urls]


def missing(collection: Collection, archives: Path, texts: Path) -> list[Source]:
    """The sources of which neither text nor archive is there, one for each archive; no file is read."""
    lacking: dict[str, Source] = {}
    for source in collection.sources:
        if not (
            (_text_folder(source, collection.pair, texts) / MANIFEST).is_file() or (archives / source.archive).is_file()
        ):
            lacking.setdefault(source.archive, source)
    return list(lacking.values())


def by_hand(sources: Sequence[Source], folder: Path) -> str:
    """How to get archives without this program."""
    files = [f"  {line}" for source in sources for line in described(source)]
    return "\n".join([f"Put these files into {folder}, under these names:", *files])


def described(source: Source) -> list[str]:
    """What one must know of an archive: our name for it, size and hash, where it is, what it is, its licence."""
    published = [f"SHA-256 {source.sha256}"] if source.sha256 else [f"MD5 {source.md5}"] if source.md5 else []
    identity = published or ["known by the SHA-256 of its texts"]
    said = (*source.urls, source.about, f"licence: {source.licence}")
    return ["  ".join([source.archive, at_most(source), *identity]), *(f"  {line}" for line in said if line)]


def _known(source: Source) -> dict[str, str]:
    """The published hash that the archive must have; {} if it is known by its texts."""
    found = {"sha256": source.sha256, "md5": None if source.sha256 else source.md5}
    return {algorithm: digest for algorithm, digest in found.items() if digest}


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
) -> tuple[Path, Path]:
    """The plain text of `source` for `pair`, two files in a folder of `texts`; the archive is needed only to make them.

    The facts kept of that folder are `files` (`n_lines` by language) and the name of the `archive`.
    """
    folder = _text_folder(source, pair, texts)
    try:
        verified(folder)
    except (FileNotFoundError, ValueError) as reason:
        if not isinstance(reason, FileNotFoundError):
            tell(f"{reason} It is made again now.")
        archive = fetch(source, archives, offline=offline, mirror=mirror, tell=tell)
        tell(f"Unpacking {source.name} ({pair}) from {archive}.")
        made_once(folder, lambda empty: _unpacked(source, pair, archive, empty))
    one, other = (folder / f"{source.name}.{side.language}" for side in source.members[pair])
    return one, other


def _text_folder(source: Source, pair: str, texts: Path) -> Path:
    return texts / f"{source.name}-{pair}"


def _unpacked(source: Source, pair: str, archive: Path, folder: Path) -> dict[str, Any]:
    """Fill `folder` from the archive and return its facts. Raises ValueError if the text is not the published one."""
    paths = {side: folder / f"{source.name}.{side.language}" for side in source.members[pair]}
    unpack(archive, {side.name: path for side, path in paths.items()})
    found = {side: text_fingerprint(path) for side, path in paths.items()}
    counts = [one.n_lines for one in found.values()]
    if counts[0] != counts[1] or source.n_pairs.get(pair, counts[0]) != counts[0]:
        expected = f"{source.n_pairs[pair]:,} of each" if pair in source.n_pairs else "as many of each"
        raise ValueError(
            f"{archive}: the sides have {counts[0]:,} and {counts[1]:,} lines, expected {expected}. {AGAIN}"
        )
    for side, one in found.items():
        if side.sha256 not in (None, one.sha256):
            raise ValueError(
                f"{archive}: {side.name!r} is not the published text: expected SHA-256 {side.sha256}, got "
                f"{one.sha256}. {AGAIN}"
            )
    return {"files": {side.language: {"n_lines": one.n_lines} for side, one in found.items()}, "archive": archive.name}


def unpack(archive: Path, wanted: Mapping[str, Path]) -> None:
    """Write the text of each wanted member of a tar or tar.gz, by its name there, to its path."""
    lacking = dict(wanted)
    try:
        with tarfile.open(archive, "r|*") as tar:
            for info in tar:
                if info.name in lacking and info.isreg() and (file := tar.extractfile(info)):
                    atomic.write_bytes(lacking.pop(info.name), functools.partial(_copy, file, info.name))
    except (EOFError, zlib.error, tarfile.TarError) as error:
        raise ValueError(f"{archive} is not a whole archive ({error}). {AGAIN}") from error
    if lacking:
        raise ValueError(f"{archive} lacks {', '.join(map(repr, lacking))}; expected regular files. {AGAIN}")


def _copy(file: IO[bytes], name: str, into: Any) -> None:
    if name.endswith(".sgm"):
        into.write("".join(f"{line}\n" for line in read_sgm(file.read())).encode())
    else:
        shutil.copyfileobj(gzip.GzipFile(fileobj=file) if name.endswith(".gz") else file, into)


def read_sgm(content: bytes) -> list[str]:
    """The sentences of an sgm file in order, one a line.

    The files are SGML only by name: `&` occurs bare and as `&amp;`, tags and attributes in any case and order.
    """
    segments = SEGMENT.findall(content.decode())
    return [html.unescape(re.sub("[ \t\r\n\f\v]+", " ", segment).strip(" ")) for segment in segments]
