"""What travels to a node once: the code that makes runs, and the text that they read.

The code is the package and the folder of the experiment file, copied into a folder that holds nothing else; Ray packs
that up, gives it a name by its content, and a node that has it already takes it from there. The text is the files
of the prepared cache and of the corpus, each known by its hash and written under its own name: never an archive.
"""

import hashlib
import json
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

from repro.results import provenance
from repro.results.places import EXPERIMENTS, PACKAGE
from repro.storage import atomic
from repro.storage.folder_cache import MANIFEST, alone

if TYPE_CHECKING:
    from repro.data.corpora import Corpus
    from repro.data.shards import Prepared

KINDS = (".py", ".json")  # what code is made of: neither runs nor caches nor results are
CODE_AT_MOST = 50_000_000  # bytes; an experiment file that lies among other things would take them along
PART = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+=-]*")  # of a path: neither hidden nor a way up
DEEPEST = 8
BLOCK = 1 << 26  # bytes that travel at once
WHOLE = "whole.json"  # in the folder of a text that has all its files


class Described(TypedDict):
    """A file that is to be had on a node."""

    size: int
    sha256: str


@dataclass(frozen=True)
class SentText:
    """The files of a sweep's text, by the names they get on a node."""

    files: Mapping[str, Path]

    def described(self) -> dict[str, Described]:
        """Their sizes and hashes."""
        return {name: _described(path) for name, path in sorted(self.files.items())}

    def blocks(self, name: str) -> Iterator[bytes]:
        """The bytes of one of them, as they travel."""
        with open(self.files[name], "rb") as file:
            while block := file.read(BLOCK):
                yield block


def stage_code(script: Path, folder: Path) -> None:
    """Fill a new folder with all that a node needs to run `script`: the package, and what lies beside the script.

    A commit that has the deciding code goes with it, as there is no git on a node. Raises ValueError where the folder
    of the script holds too much to be an experiment's.
    """
    code = [(path, path.relative_to(PACKAGE.parent)) for path in _code(PACKAGE)]
    code += [(path, EXPERIMENTS / path.relative_to(script.parent)) for path in _code(script.parent, PACKAGE)]
    if (size := sum(path.stat().st_size for path, _ in code)) > CODE_AT_MOST:
        raise ValueError(
            f"{script.parent} holds {size:,} bytes of .py and .json files beside {script.name}; all of them would "
            f"travel to each node, at most {CODE_AT_MOST:,}. Put the experiment's files into a folder of their own."
        )
    for path, name in code:
        atomic.make_folder((folder / name).parent)
        atomic.write_bytes(folder / name, path.read_bytes())
    origin = provenance.provenance()
    if not origin["dirty"]:
        release = {"version": "of a checkout", "commit": origin["commit"], "fingerprint": origin["fingerprint"]}
        atomic.write_text(folder / PACKAGE.name / provenance.RELEASE, json.dumps(release))


def _code(folder: Path, without: Path | None = None) -> Iterator[Path]:
    """The files of code in a folder and in the packages below it."""
    for path in sorted(folder.iterdir()):
        if path.is_file() and path.suffix in KINDS:
            yield path
        elif path.is_dir() and path != without and (path / "__init__.py").is_file():
            yield from _code(path)


def texts(places: "Iterable[tuple[Corpus, Prepared]]", cache: Path, data: Path | None) -> SentText:
    """The files of prepared texts: `cache/...` are those of the cache, `data/...` those of the folder of text.

    Raises ValueError for a name that is none for a node.
    """
    found: set[Path] = set()
    for corpus, prepared in places:
        found.update(path for path in prepared.card.parents[1].rglob("*") if path.is_file())
        sides = [side for text in (*corpus.train, corpus.dev, corpus.test) for side in (text.source, text.target)]
        found.update(sides)
        for folder in {side.parent for side in sides}:
            found.update(path for path in (folder / MANIFEST,) if path.is_file())
            if corpus.subset:  # a part of the test set, in files of its own
                found.update(folder.parent.glob(f"{corpus.subset.name}*/{corpus.subset.name}*"))
                found.update(folder.glob(f"{corpus.subset.name}*"))
        if corpus.vocabulary:
            found.add(corpus.vocabulary)
    files = {}
    for path in sorted(path for path in found if not path.name.startswith(".") and path.is_file()):
        for root, name in ((cache, "cache"), (data, "data")):
            if root is not None and path.absolute().is_relative_to(root.absolute()):
                files[f"{name}/{path.absolute().relative_to(root.absolute()).as_posix()}"] = path
                break
        else:
            raise ValueError(f"{path}: expected a file of the text below {cache} or {data}.")
    for name in files:
        refuse_path(name)
    return SentText(files)


def key(files: Mapping[str, Described]) -> str:
    """By which a text is known: a hash of the names and hashes of its files."""
    return hashlib.sha256(json.dumps(files, sort_keys=True).encode()).hexdigest()[:16]


def refuse_path(name: str) -> None:
    """Raise ValueError for what is no name of a file of text: it would lie outside the folder, or be hidden."""
    parts = name.split("/")
    if len(parts) > DEEPEST or len(name) > 400 or not all(PART.fullmatch(part) for part in parts):
        raise ValueError(
            f"{name[:80]!r} is not a file of a text; expected a name such as cache/tokenizer/tokenizer.json."
        )


def unload(folder: Path, files: Mapping[str, Described], read: Mapping[str, Iterable[bytes]]) -> None:
    """Have the files of a text in `folder`, each verified; those that are there stay, and `read` gives the others.

    Several processes may do so at once. Raises ValueError for a name that is none and for bytes that are others,
    DiskError where the disk has no room.
    """
    for name in files:
        refuse_path(name)
    if (folder / WHOLE).exists():
        return
    atomic.make_folder(folder)
    needed = sum(file["size"] for file in files.values())
    room = atomic.free(folder)
    if room is not None and room < needed:
        raise atomic.DiskError(28, f"{folder}: {needed:,} bytes of text are needed there, {room:,} are free.")
    with alone(folder / "lock", lambda said: None):
        for name, file in files.items():
            if not ((folder / name).exists() and _described(folder / name) == file):
                _write(folder / name, file, read[name])
        atomic.write_json(folder / WHOLE, files)


def _write(path: Path, file: Described, blocks: Iterable[bytes]) -> None:
    def write(opened: atomic.Hashed) -> None:
        for block in blocks:
            opened.write(block)
        if opened.sha256.hexdigest() != file["sha256"]:
            raise ValueError(f"{path} was damaged in transit: expected SHA-256 {file['sha256']}. Run it again.")

    atomic.write_bytes(path, write, needed=file["size"])


def _described(path: Path) -> Described:
    with open(path, "rb") as file:
        return {"size": path.stat().st_size, "sha256": hashlib.file_digest(file, "sha256").hexdigest()}


def clear(folder: Path) -> None:
    """Remove a folder and all that is in it, as far as the system lets us."""
    shutil.rmtree(folder, ignore_errors=True)
