"""Corpora by name: where their files are, whether they are the known ones, and how their text is cut.

Text that comes cut into pieces is known by marks in its first lines (`repro/data/vocabulary.py` has the schemes).
Scored as it is, it would get another score: most pieces of a word are right if the word is. Pieces are joined to words
before scoring, in translations by the tokenizer and in references by `whole_words`; Moses tokens are left to the
scorers (`repro/decoding/bleu.py`), which count them as they are cut.
"""

import hashlib
import os
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any

from repro.corpora.parallel_text import Parallel, languages
from repro.corpora.sources import COLLECTIONS, KNOWN
from repro.data.vocabulary import SCHEMES, Subwords, whole_words
from repro.storage.folder_cache import MANIFEST, made_once, stated

CHECKOUT = Path(__file__).resolve().parents[2]
PROJECT = CHECKOUT if (CHECKOUT / "pyproject.toml").exists() else Path()  # if installed: the current folder
GIVEN = "vocab"  # the file of tokens in a folder of your own text
FETCHED = "wmt"  # the folder of the texts that `python -m repro data fetch` unpacks

_LOOKED_AT = 10_000  # pairs at the head of a text
_MARKED_FROM = 0.01  # share of lines: rarer marks are chance, as the 2 "@@" in 29,000 German captions
_ESCAPED_FROM = 0.001  # the same for escapes, if full stops stand apart
_APART_FROM = 0.5  # share of the lines that end in a full stop
_EXPECTED = 20  # marked lines to expect in a text: if fewer are expected, none may be chance
_MOSES, _APART = "moses", "apart"  # what is looked for beside the names of SCHEMES

# what is told of lines with a mark of the target
_TOLD = {name: f"bear the marks of pieces of words ({name}): they are joined before a score" for name in SCHEMES} | {
    _MOSES: "have escapes or joiners of Moses (&apos;, @-@, ##AT##): its tokens are scored as multi-bleu has them, and "
    "joined to plain text for sacreBLEU",
    _APART: "that end in a full stop have a blank before it: the text looks tokenised and is scored as it stands, so "
    "its BLEU is not that of plain text",
}
_MOSES_MARK = re.compile(r"&(?:quot|apos|lt|gt|amp|bar|bra|ket|#9[13]|#124);|(?: |^)@[^\w\s]@(?: |$)|##AT##")


@dataclass(frozen=True, kw_only=True)
class NamedCorpus:
    """What is known about a corpus before it is opened."""

    folders: Mapping[str, str]  # language pair -> its folder; empty: any pair, in the folder given
    train: Sequence[str] = ("train",)  # stems of the files; the first that exists counts
    dev: Sequence[str] = ("dev",)
    test: Sequence[str] = ("test",)
    licence: str
    origin: str  # where it comes from and how to get it
    subwords: Mapping[str, tuple[Any, int]] = field(default_factory=dict)  # language pair -> the paper's vocabulary
    in_tokens: bool = False  # the text is Moses tokens, with their escapes
    further: Mapping[str, Sequence[str]] = field(default_factory=dict)  # other test sets: name -> stems of files
    only_data_dir: bool = False  # it is looked for only in the folder that the user names
    places: Sequence[str] = ()  # where else its folder may be
    is_here: str = ""  # a subfolder by which a folder of trees is recognised
    trees: Mapping[str, Any] | None = None  # facts of trees, which become parallel text (`treebanks.py`)

    @property
    def is_generated(self) -> bool:
        """Whether it is generated, so that it has no folder."""
        return "" in self.folders.values()


_LISTED = tomllib.loads(Path(__file__).with_name("catalogue.toml").read_bytes().decode())
CORPORA = {name: NamedCorpus(**facts) for name, facts in _LISTED.items()}


@dataclass(frozen=True, kw_only=True)
class GrammarSizes:
    """How much of the embedded corpus to generate, in pairs."""

    n_train: int
    n_dev: int
    n_test: int
    seed: int = 0
    n_silver: int = 0  # for trees: pairs with errors, added to those of train


@dataclass(frozen=True, kw_only=True)
class Corpus:
    """Parallel text that was found, counted and, where its hash is known, recognised."""

    name: str
    pair: str  # "en-de": source and target language
    train: tuple[Parallel, ...]  # its parts, one after the other
    dev: Parallel
    test: Parallel
    vocabulary: Path | None = None  # the tokens that came with text already split into sub-words
    in_tokens: bool = False  # the text is Moses tokens with escapes, and is scored as such
    pieces: str = ""  # the scheme by which words are cut (`data/vocabulary.py`); "": whole words
    files: Mapping[str, str]  # "train.en", "train/europarl_v7.en", ... -> SHA-256 of the text
    licence: str
    origin: str
    whole: tuple[str, ...] = ()  # words that are never cut into tokens
    about: Mapping[str, str] = field(default_factory=dict)  # what else its data card says, by topic
    left_out: Mapping[str, int] = field(default_factory=dict)  # left out of train before it became pairs, by reason
    further: Mapping[str, Parallel] = field(default_factory=dict)  # other test sets whose files exist, by name
    notes: tuple[str, ...] = ()  # sentences that a reader of its scores must know

    def subwords(self, of_scale: Subwords, *, asked: int | None) -> Subwords:
        """The vocabulary of the text: its own if it came with one, and then `asked`, a size, must be None."""
        if self.vocabulary is None:
            return replace(of_scale, whole=self.whole)
        if asked is not None:
            came = f"the text came split into sub-words, those of {self.vocabulary}"
            raise ValueError(f"--vocab-size {asked}: {came}. Leave it out.")
        return Subwords("given", 0)

    @property
    def sha256(self) -> str:
        """A hash of all texts and their names; plain or gzip, and which folder, make no difference."""
        return hashlib.sha256("".join(f"{file} {sha256}\n" for file, sha256 in self.files.items()).encode()).hexdigest()


def open_corpus(
    name: str, pair: str, *, data_dir: Path | None, cache: Path, sizes: GrammarSizes | None = None
) -> Corpus:
    """Find (or generate) the files of a corpus and refuse what is missing, unequal, empty or altered.

    If `data_dir` is given, a named corpus is looked for only there; else in the folder that the environment
    variable REPRO_DATA names, then in `data/` of the project.
    """
    folder = find(name, pair, data_dir) or generated(name, cache, sizes)
    known = CORPORA[name]
    if known.trees is not None:
        raise ValueError(f"Corpus {name!r} has trees and no translations: experiments/table4.py reads it.")

    def recognised(stems: Sequence[str], split: str = "", part: str = "") -> Parallel | None:
        if (sides := sides_of(folder, stems, pair)) is None:
            return None
        text = Parallel(*sides, may_drop=split == "train", name=part)
        _refuse_unknown(text, name, pair, stems)
        return text

    *train, dev, test = (one for split, part, of in _wanted(folder, name, pair) if (one := recognised(of, split, part)))
    # other test sets, by what they are called by hand or by fetching; one of them may serve as test instead
    others = {other: recognised((*by_hand, f"{name}_{other}")) for other, by_hand in known.further.items()}
    vocabulary, pieces, in_tokens, notes = None, "", known.in_tokens, list[str]()
    if not known.is_generated:
        head = _heads(train[0])
        if not known.folders:  # a reader's own text, of which nothing is known
            vocabulary = place if (place := folder / GIVEN).is_file() else None
            pieces, in_tokens, notes = _cut(head[1], has_vocabulary=vocabulary is not None)
        _refuse_mixed(head, _heads(dev), _heads(test))
    if [one.sha256 for one in dev.fingerprints()] == [one.sha256 for one in test.fingerprints()]:
        said = "are one text, so scores on test say nothing that those on dev do not; a test set should be text that"
        notes.append(f"{dev.source.name} and {test.source.name} {said} nothing was chosen on.")
    return Corpus(
        name=name,
        pair=pair,
        train=tuple(train),
        dev=dev,
        test=test,
        vocabulary=vocabulary,
        in_tokens=in_tokens,
        pieces=pieces,
        files=hashes_of(train, dev, test, pair),
        licence=known.licence,
        origin=known.origin,
        further={other: text for other, text in others.items() if text and text.source != test.source},
        notes=tuple(notes),
    )


def hashes_of(train: Iterable[Parallel], dev: Parallel, test: Parallel, pair: str) -> dict[str, str]:
    """The SHA-256 of each file, by its name in a corpus."""
    return {
        f"{split}/{text.name}.{language}" if text.name else f"{split}.{language}": one.sha256
        for split, text in (*(("train", part) for part in train), ("dev", dev), ("test", test))
        for language, one in zip(languages(pair), text.fingerprints(), strict=True)
    }


def find(name: str, pair: str, data_dir: Path | None) -> Path | None:
    """The first folder with all files of a corpus, None if they are generated; no file is read.

    Raises ValueError for an unknown corpus or a pair that it lacks, FileNotFoundError for text that is not here.
    """
    if name not in CORPORA:
        raise ValueError(f"Unknown corpus {name!r}; expected one of {', '.join(CORPORA)}.")
    known = CORPORA[name]
    languages(pair)  # raises if it is no pair
    if known.folders and pair not in known.folders:
        raise ValueError(f"Corpus {name!r} has no pair {pair!r}; expected one of {', '.join(known.folders)}.")
    if known.is_generated:
        if data_dir is not None:
            alike = [one for one, of in CORPORA.items() if not of.is_generated and bool(of.trees) == bool(known.trees)]
            raise ValueError(f"Corpus {name!r} is generated; for text in {data_dir} add --corpus {' or '.join(alike)}.")
        return None
    if known.only_data_dir and data_dir is None:
        raise ValueError(f"Corpus {name!r} needs a folder. {known.origin}")
    inside = dict.fromkeys((known.folders[pair], *known.places, name, FETCHED)) if known.folders else {}
    roots = [data_dir] if data_dir is not None else data_folders()
    looked = []
    for folder in [*([data_dir] if data_dir is not None else []), *(root / one for root in roots for one in inside)]:
        if not (lacks := _lacks(folder, name, pair)):
            devs = [one for one in known.dev if sides_of(folder, (one,), pair)]
            if not known.folders and len(devs) > 1:  # any of them might be meant
                meant = "expected one text for dev. Move what is not meant to another folder."
                raise ValueError(f"{folder} has {' and '.join(devs)}: {meant}")
            return folder
        looked.append(f"{folder} (lacks {', '.join(lacks)})" if folder.is_dir() else f"{folder} (no such folder)")
    files = ", ".join(_expected(stems, pair) for stems in (known.train, known.dev, known.test))
    expected = f"a folder with {known.is_here}" if known.is_here else f"the files {files}, each plain or .gz"
    raise FileNotFoundError(
        f"Corpus {name!r} ({pair}) is not here: expected {expected}; looked in {'; '.join(looked)}. {known.origin}"
    )


def _lacks(folder: Path, name: str, pair: str) -> list[str]:
    if mark := CORPORA[name].is_here:
        return [] if (folder / mark).is_dir() else [mark]
    wanted = [stems for _, _, stems in _wanted(folder, name, pair)]
    return [_expected(stems, pair) for stems in wanted if not sides_of(folder, stems, pair)]


def _wanted(folder: Path, name: str, pair: str) -> list[tuple[str, str, Sequence[str]]]:
    """(split, part, stems) of each text: the training text whole or, if that is absent, in its parts.

    The stems are those of files got by hand, then those of files that fetching unpacks.
    """
    known = CORPORA[name]
    if (fetched := COLLECTIONS.get(f"{name}-{pair}")) is None:
        return [("train", "", known.train), ("dev", "", known.dev), ("test", "", known.test)]
    train = [("train", "", (*known.train, *fetched.train[:1]))]
    if len(fetched.train) > 1:
        train = [("train", one, (one,)) for one in fetched.train]
        train = [("train", "", tuple(known.train))] if sides_of(folder, known.train, pair) else train
    return [*train, ("dev", "", (*known.dev, fetched.dev)), ("test", "", (*known.test, fetched.test))]


def data_folders() -> list[Path]:
    """Where text is looked for if nobody says where: the folder that REPRO_DATA names, then `data/` of the project."""
    given = os.environ.get("REPRO_DATA")
    return [*([Path(given)] if given else []), PROJECT / "data"]


def sides_of(folder: Path, stems: Sequence[str], pair: str) -> tuple[Path, Path] | None:
    """The two files of a text, in `folder` or in the subfolder that fetching makes; None if one is missing."""
    for place in (place / stem for stem in stems for place in (folder, folder / f"{stem}-{pair}")):
        named = ([Path(f"{place}.{language}{packed}") for packed in ("", ".gz")] for language in languages(pair))
        source, target = (next(filter(Path.is_file, files), None) for files in named)
        if source and target:
            return source, target
    return None


def _expected(stems: Sequence[str], pair: str) -> str:
    return ", ".join(f"{'|'.join(dict.fromkeys(stems))}.{language}" for language in languages(pair))


def _refuse_unknown(text: Parallel, name: str, pair: str, stems: Sequence[str]) -> None:
    """Raise ValueError if a text is not the known one; of text that fetching unpacked, the archive was checked."""
    place, known = text.source.parent, CORPORA[name]
    folder, found = known.folders.get(pair), text.fingerprints()
    # one's own folder may have a file so named; of generated text nothing was unpacked
    unpacked = stated(place).get("files") if known.folders and (place / MANIFEST).exists() else None
    for path, language, one in zip((text.source, text.target), languages(pair), found, strict=True):
        if unpacked:  # known by what was unpacked: the files are gigabytes, and one look at them is enough
            if one.sha256 != (expected := unpacked[language]["sha256"]):
                differ = f"expected SHA-256 {expected}, got {one.sha256}"
                raise ValueError(f"{path} is damaged: {differ}. Delete its folder and fetch it again.")
            continue
        # known by its own name or, if it goes by another name, by the usual one
        usual = KNOWN.get(f"{folder}/{stems[0]}.{language}", one.sha256)
        expected = KNOWN.get(f"{folder}/{path.name.removesuffix('.gz')}", usual)
        if one.sha256 != expected:
            differ = f"expected SHA-256 {expected}, got {one.sha256}"
            how = "Get it again, or read it as a text of your own with --corpus folder."
            raise ValueError(f"{path} is not the text known as {name}: {differ}. {how}")


def generated(name: str, cache: Path, sizes: GrammarSizes | None) -> Path:
    """The folder of a generated corpus; another generator or size gives another folder."""
    from repro.corpora.grammar import generate  # here, not above: the names of the corpora do not need it

    if sizes is None:
        raise ValueError(f"Corpus {name!r} is generated: expected its sizes, got none. Take those of a scale.")
    counts = {"n_train": sizes.n_train, "n_dev": sizes.n_dev, "n_test": sizes.n_test}
    write: Callable[..., None] = generate.write_grammar
    if CORPORA[name].trees is not None:
        counts["n_silver"], write = sizes.n_silver, generate.write_grammar_trees
    code = b"".join(file.read_bytes() for file in sorted(Path(str(generate.__file__)).parent.glob("*.*")))
    numbers = "-".join(map(str, (*counts.values(), sizes.seed)))
    folder = cache / f"{name}-{numbers}-{hashlib.sha256(code).hexdigest()[:12]}"

    made_once(folder, lambda empty: write(empty, **counts, seed=sizes.seed))
    return folder


# How text is cut ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Head:
    """What the first lines of one side of a text show."""

    path: Path
    counts: Mapping[str, tuple[int, int]]  # lines with a mark, and lines that could have it

    def share(self, name: str) -> float:
        n, of = self.counts[name]
        return n / of if of else 0.0

    def has(self, name: str) -> bool:
        return self.share(name) >= (_APART_FROM if name == _APART else _MARKED_FROM)

    @property
    def schemes(self) -> list[str]:
        return [name for name in SCHEMES if self.has(name)]

    @property
    def is_moses(self) -> bool:
        """Whether it has escapes or joiners; if full stops are attached to words, the text was only escaped."""
        if self.has(_APART):
            return self.share(_MOSES) >= _ESCAPED_FROM
        return self.has(_MOSES) and not self.counts[_APART][1]


Heads = tuple[_Head, _Head]  # of source and target


def _cut(target: _Head, *, has_vocabulary: bool) -> tuple[str, bool, list[str]]:
    """How text of one's own is cut: the scheme of its pieces or "", whether it is Moses tokens, and what is told of it.

    With a vocabulary, text without other marks counts as pieces of Moses tokens, as that of Britz et al. Raises
    ValueError if pieces cannot be joined.
    """
    if len(target.schemes) > 1:
        shares = " and ".join(f"{name} in {target.share(name):.1%}" for name in target.schemes)
        raise ValueError(
            f"{target.path}: expected pieces by one scheme, got {shares} of its lines. Cut it by one of them."
        )
    found = [*target.schemes, *([_MOSES] if target.is_moses else [_APART] if target.has(_APART) else [])]
    said = {*found} | ({"@@", _MOSES} if has_vocabulary and not {*target.schemes} - {"@@"} else set())
    notes = [
        f"{100 * target.share(name):.1f} % of the target lines of the training text {_TOLD[name]}." for name in found
    ]
    return next((name for name in SCHEMES if name in said), ""), _MOSES in said, notes


def _refuse_mixed(train: Heads, *held_out: Heads) -> None:
    """Raise ValueError if training and held-out text are not cut alike: the score would measure the cutting."""
    for one, other in (sides for text in held_out for sides in zip(train, text, strict=True)):
        for name in (*SCHEMES, _APART):
            fewer, more = sorted((one, other), key=lambda head: head.share(name))
            expected = more.share(name) * fewer.counts[name][1] if more.has(name) else 0
            if expected >= _EXPECTED and 10 * fewer.share(name) < more.share(name):
                what = "full stops that stand apart" if name == _APART else f"pieces of words ({name})"
                differ = f"in {more.share(name):.1%} of its lines, {fewer.path} in {fewer.share(name):.1%}"
                how = "expected training and held-out text to be cut alike. Cut or join one of them."
                raise ValueError(f"{more.path} has {what} {differ}: {how}")


def _heads(text: Parallel) -> Heads:
    """What the first lines of source and target of a text, or of a part of one, show."""
    pairs = list(islice(text.pairs(), _LOOKED_AT))
    sources, targets = ([pair[i] for pair in pairs] for i in range(2))
    return _Head(text.source, _counted(sources)), _Head(text.target, _counted(targets))


def _counted(lines: Sequence[str]) -> dict[str, tuple[int, int]]:
    n = len(lines)
    found = {name: sum(bool(scheme.mark.search(line)) for line in lines) for name, scheme in SCHEMES.items()}
    schemes = [name for name in SCHEMES if found[name] >= _MARKED_FROM * n]
    words = [whole_words(line, schemes[0]) for line in lines] if len(schemes) == 1 else lines
    stops = [line for line in words if line.endswith(".")]
    return {
        **{name: (count, n) for name, count in found.items()},
        _MOSES: (sum(bool(_MOSES_MARK.search(line)) for line in words), n),
        _APART: (sum(line.endswith(" .") for line in stops), len(stops)),
    }
