"""Where public text is: archives, their files, and the corpora made of them, as `sources.toml` lists them.

Paper: section 5.1 trains on "the standard WMT 2014 English-German dataset consisting of about 4.5 million sentence
pairs" and on the English-French one "consisting of 36M sentences"; it names no file. These are the files of the
task's own page, statmt.org/wmt14/translation-task.html.

Each archive has a hash, or all of its texts have one. `known.sha256` lists texts and files, as `sha256sum` prints them.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from repro.corpora.parallel_text import languages

TEXT_BYTES_A_PAIR = 361  # both sides, uncompressed: 14,758,986,622 bytes in 40,853,137 en-fr pairs of WMT 2015
LIST = Path(__file__).with_name("known.sha256")
KNOWN = {place: sha256 for sha256, place in map(str.split, LIST.read_bytes().decode().strip().split("\n"))}
CRAFT_ADDRESS = "https://raw.githubusercontent.com/UCDenver-ccp/CRAFT/v5.0.2"
CRAFT_LICENCE = "CC BY 3.0, https://creativecommons.org/licenses/by/3.0"


@dataclass(frozen=True, kw_only=True)
class Member:
    """One file of an archive, by its exact name, whose ending says how the text is stored: plain, .gz or .sgm."""

    language: str
    name: str
    sha256: str | None = None  # of its text (`parallel_text.text_fingerprint`), if the archive's is unknown


@dataclass(frozen=True, kw_only=True)
class Source:
    """One body of parallel text and the archive that holds it. Several sources may share an archive."""

    name: str
    archive: str  # the file name that we give it, in a folder of files its path
    about: str = ""  # what it is
    urls: tuple[str, ...]  # mirrors, tried in this order
    size: int | None = None  # bytes of the archive
    max_size: int = 64_000_000  # the most that is received if the size is unknown
    sha256: str | None = None
    md5: str | None = None  # if nothing better is published
    licence: str
    members: Mapping[str, tuple[Member, Member]]  # pair -> its source side, its target side
    n_pairs: Mapping[str, int]  # lines of each side, as published

    @property
    def size_at_most(self) -> int:
        """The most bytes to download."""
        return self.max_size if self.size is None else self.size


@dataclass(frozen=True, kw_only=True)
class Collection:
    """One corpus: the sources of its training text in the order in which they are joined, dev and test."""

    name: str
    pair: str  # "en-de": source and target language
    train: tuple[str, ...]  # names of sources
    dev: str
    test: str
    further: tuple[str, ...] = ()  # other test sets
    licence: str

    @property
    def sources(self) -> tuple[Source, ...]:
        """Training text, dev, test and other test sets."""
        return tuple(SOURCES[name] for name in (*self.train, self.dev, self.test, *self.further))

    @property
    def text_bytes(self) -> int:
        """Bytes of all its unpacked text: an estimate, the mean over the English-French text for each pair."""
        return TEXT_BYTES_A_PAIR * sum(one.n_pairs.get(self.pair, 0) for one in self.sources)

    @property
    def n_train(self) -> int:
        """Pairs of the training text before any is dropped."""
        return sum(SOURCES[name].n_pairs[self.pair] for name in self.train)


def _source(name: str, *, members: Mapping[str, str], known: str = "", **facts: Any) -> Source:
    """A source as sources.toml has it."""

    def side(member: str, language: str, role: str) -> Member:
        place = f"{role}.{language}" if member.endswith(".sgm") else language
        return Member(language=language, name=member.format(place), sha256=KNOWN.get(f"{known}.{language}"))

    sides = {
        pair: (side(member, one, "src"), side(member, other, "ref"))
        for pair, member in members.items()
        for one, other in [languages(pair)]
    }
    return Source(name=name, members=sides, **facts | {"urls": tuple(facts["urls"])})


_LISTED = tomllib.loads(Path(__file__).with_name("sources.toml").read_bytes().decode())
SOURCES = {
    name: _source(name, **_LISTED["archives"].get(one["archive"], {}) | one) for name, one in _LISTED["sources"].items()
}
COLLECTIONS = {
    f"{one['name']}-{one['pair']}": Collection(
        **one | {"train": tuple(one["train"]), "further": tuple(one.get("further", ()))}
    )
    for one in _LISTED["collections"]
}


def craft_sources() -> list[Source]:
    """The 101 files of CRAFT 5.0.2, the open treebank, by their paths in its folder; each is known by its hash."""
    facts: dict[str, Any] = {"licence": CRAFT_LICENCE, "members": {}, "n_pairs": {}}
    return [
        Source(name=place, archive=path, urls=(f"{CRAFT_ADDRESS}/{path}",), sha256=sha256, **facts)
        for place, sha256 in KNOWN.items()
        if place != (path := place.removeprefix("craft/"))
    ]


def missing_of_craft(folder: Path) -> list[Source]:
    """The files of CRAFT that are absent; no file is read."""
    return [source for source in craft_sources() if not (folder / source.archive).is_file()]
