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

from repro.corpora.pair import languages

MB = 1_000_000
TEXT_BYTES_A_PAIR = 361  # both sides, uncompressed: 14,758,986,622 bytes in 40,853,137 en-fr pairs of WMT 2015
LIST = Path(__file__).with_name("known.sha256")
KNOWN = {place: sha256 for sha256, place in map(str.split, LIST.read_bytes().decode().strip().split("\n"))}


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
    archive: str  # the file name that we give it
    about: str = ""  # what it is
    urls: tuple[str, ...]  # mirrors, tried in this order
    size: int | None = None  # bytes of the archive
    max_size: int = 64 * MB  # the most that is received if the size is unknown
    sha256: str | None = None
    md5: str | None = None  # if nothing better is published
    licence: str
    members: Mapping[str, tuple[Member, Member]]  # pair -> its source side, its target side
    n_pairs: Mapping[str, int]  # lines of each side, as published; the pairs without a number are not checked

    @property
    def is_pinned(self) -> bool:
        """Whether a SHA-256 of the archive, or of all its texts, identifies it, wherever it came from."""
        sides = [member for pair in self.members.values() for member in pair]
        return bool(self.sha256) or (bool(sides) and all(side.sha256 for side in sides))

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
    subset: str | None = None  # lines of test that are a test set of their own
    further: tuple[str, ...] = ()  # other test sets
    licence: str

    @property
    def sources(self) -> tuple[Source, ...]:
        """Training text, dev, test, its subset and other test sets."""
        names = (*self.train, self.dev, self.test, self.subset, *self.further)
        return tuple(source(name) for name in names if name)

    @property
    def text_bytes(self) -> int:
        """Bytes of all its unpacked text: an estimate, the mean over the English-French text for each pair."""
        return TEXT_BYTES_A_PAIR * sum(one.n_pairs.get(self.pair, 0) for one in self.sources)

    @property
    def n_train(self) -> int:
        """Pairs of the training text before any is dropped."""
        return sum(source(name).n_pairs[self.pair] for name in self.train)


def _sides(names: Mapping[str, str], known: str = "") -> dict[str, tuple[Member, Member]]:
    """The two files of each pair: the name with the language for {}; in sgm names its role (src, ref) as well.

    `known` is what comes before the language in the list of known texts.
    """

    def side(name: str, language: str, role: str) -> Member:
        place = f"{role}.{language}" if name.endswith(".sgm") else language
        return Member(language=language, name=name.format(place), sha256=KNOWN.get(f"{known}.{language}"))

    return {
        pair: (side(name, one, "src"), side(name, other, "ref"))
        for pair, name in names.items()
        for one, other in [languages(pair)]
    }


_CAPTIONS_AT = "a3d2e0d26b56f3846f66a952536ffed4e401d05a"  # a commit of multi30k/dataset


def _captions(corpus: str, split: str, n_pairs: int) -> Source:
    """One split of Multi30k. GitHub packs the archive anew for each request, so only its texts have a fixed hash."""
    name = f"raw/{split}.{{}}.gz" if corpus == "multi30k" else f"tok/{split}.lc.norm.tok.{{}}"
    place = f"dataset-{_CAPTIONS_AT}/data/task1/{name}"
    return Source(
        name=f"{corpus}_{split}",
        archive=f"multi30k-{_CAPTIONS_AT[:7]}.tar.gz",
        about="Multi30k: captions of pictures in English, German and French, as they are and as lower-cased tokens",
        urls=(
            f"https://codeload.github.com/multi30k/dataset/tar.gz/{_CAPTIONS_AT}",
            f"https://github.com/multi30k/dataset/archive/{_CAPTIONS_AT}.tar.gz",
        ),
        max_size=256 * MB,
        licence="non-commercial research and education; cite Elliott et al. 2016, 2017",
        members=_sides({"en-de": place, "en-fr": place}, known=f"{corpus}/{split}"),
        n_pairs={"en-de": n_pairs, "en-fr": n_pairs},
    )


_CAPTION_CORPORA = ("multi30k", "multi30k_tok")
_CAPTION_SPLITS = {"train": 29_000, "val": 1_014, "test_2016_flickr": 1_000, "test_2017_flickr": 1_000}
_LISTED = tomllib.loads(Path(__file__).with_name("sources.toml").read_bytes().decode())
_WMT = [
    Source(name=name, **one | {"urls": tuple(one["urls"]), "members": _sides(one["members"])})
    for name, one in _LISTED["sources"].items()
]
_CAPTION_SOURCES = [_captions(corpus, *split) for split in _CAPTION_SPLITS.items() for corpus in _CAPTION_CORPORA]
SOURCES = {one.name: one for one in (*_WMT, *_CAPTION_SOURCES)}
_CAPTION_COLLECTIONS = [
    Collection(
        name=name,
        pair=pair,
        train=(f"{name}_train",),
        dev=f"{name}_val",
        test=f"{name}_test_2016_flickr",
        further=(f"{name}_test_2017_flickr",),
        licence=SOURCES[f"{name}_train"].licence,
    )
    for name in _CAPTION_CORPORA
    for pair in ("en-de", "en-fr")
]
_WMT_COLLECTIONS = [Collection(**one | {"train": tuple(one["train"])}) for one in _LISTED["collections"]]
COLLECTIONS = {f"{one.name}-{one.pair}": one for one in (*_CAPTION_COLLECTIONS, *_WMT_COLLECTIONS)}


def source(name: str) -> Source:
    """The source of this name."""
    return SOURCES[name]
