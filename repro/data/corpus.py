"""Corpora: folders of parallel text, where line i of one file translates line i of the other.

A file is plain or gzip (its first bytes decide) and strict UTF-8. Only a line feed ends a line, so U+2028,
U+0085 and the form feed stay inside it. Three things are no text, and a file with them reads as one without:
a byte order mark at the head of the file, one carriage return at the end of a line, and the line feed at the
end of the file. A bad line takes its pair with it: training text drops the pair and counts the reason,
held-out text refuses, because a test set that shrinks silently is another test set.
"""

import codecs
import errno
import functools
import gzip
import hashlib
import io
import json
import os
import re
import secrets
import shutil
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from repro import durable

MAX_CHARACTERS = 5_000  # longer lines are no sentences; the bound also keeps memory and BPE time small
MAX_BYTES = 4 * MAX_CHARACTERS  # UTF-8 takes at most four bytes a character
BLOCK = 1 << 20
PROJECT = Path(__file__).resolve().parents[2]


# Text ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Parallel:
    """One split: two files with the same number of lines."""

    source: Path
    target: Path
    may_drop: bool = False  # the training text may lose bad pairs, held-out text may not

    def pairs(self, dropped: Counter[str] | None = None) -> Iterator[tuple[str, str]]:
        """Each clean (source, target) pair in order, as a stream; `dropped` counts the others by reason."""
        dropped = Counter() if dropped is None else dropped
        self.check()
        sides = ("source", self.source), ("target", self.target)
        for number, raw in enumerate(zip(_lines(self.source), _lines(self.target), strict=True), 1):
            texts = []
            for (side, path), line in zip(sides, raw, strict=True):
                try:
                    texts.append(_text(line))
                except ValueError as reason:
                    if not self.may_drop:
                        raise ValueError(
                            f"{path}, line {number:,} {reason}; held-out text must not shrink silently. "
                            f"Correct this line, or delete line {number:,} of both {self.source.name} "
                            f"and {self.target.name}."
                        ) from None
                    dropped[f"{side} {reason}"] += 1
                    break
            else:
                yield texts[0], texts[1]

    def check(self) -> None:
        """Refuse sides of different length and sides without a line."""
        n_source, n_target = fingerprint(self.source)[1], fingerprint(self.target)[1]
        if n_source != n_target:
            raise ValueError(
                f"{self.source} has {n_source:,} lines, {self.target} has {n_target:,}; line i must "
                "translate line i. Get both files again, from one source."
            )
        if not n_source:
            raise ValueError(f"{self.source} and {self.target} hold no line; expected at least one pair.")


def fingerprint(path: Path) -> tuple[str, int]:
    """(SHA-256 of the text, number of its lines); a file is read once per process while it stays the same.

    Of the text: uncompressed and without the three things above, so it does not tell plain from gzip or
    Windows from Unix line ends. For a plain file with Unix line ends it is what `sha256sum` prints.
    """
    status = path.stat()
    return _fingerprint(path, status.st_size, status.st_mtime_ns)


@functools.cache
def _fingerprint(path: Path, size: int, mtime_ns: int) -> tuple[str, int]:
    digest, n_lines, is_ended, held = hashlib.sha256(), 0, True, b""
    with _opened(path) as file:
        while block := held + file.read(BLOCK):
            if block == held:  # a carriage return is the last byte of the file
                break
            cut = len(block) - block.endswith(b"\r")  # its line feed may open the next block
            held, text = block[cut:], block[:cut].replace(b"\r\n", b"\n")
            digest.update(text)
            n_lines += text.count(b"\n")
            is_ended = text.endswith(b"\n") if text else is_ended
    if held or not is_ended:
        digest.update(b"\n")
        n_lines += 1
    return digest.hexdigest(), n_lines


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    """The uncompressed bytes of `path`, after a byte order mark if there is one."""
    with open(path, "rb") as file:
        is_gzip = file.peek(2)[:2] == b"\x1f\x8b"
        reader = io.BufferedReader(gzip.GzipFile(fileobj=file), BLOCK) if is_gzip else file
        try:
            if reader.peek(3)[:3] == codecs.BOM_UTF8:
                reader.read(3)
            yield reader
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise ValueError(f"{path} is no whole gzip file ({error}). Get it again.") from error


def _lines(path: Path) -> Iterator[bytes]:
    """Every line without its end; of one over MAX_BYTES only the head, enough to call it too long."""
    with _opened(path) as file:
        while line := file.readline(MAX_BYTES + 3):  # 3: room for "\r\n" and one byte too many
            if len(line) == MAX_BYTES + 3 and not line.endswith(b"\n"):
                while (rest := file.readline(BLOCK)) and not rest.endswith(b"\n"):
                    pass
            yield line.removesuffix(b"\n").removesuffix(b"\r")


def _text(line: bytes) -> str:
    """The line as text; a ValueError says what is wrong with it."""
    too_long = f"is longer than {MAX_CHARACTERS:,} characters"
    if len(line) > MAX_BYTES:
        raise ValueError(too_long)
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError:
        raise ValueError("is not UTF-8") from None
    if len(text) > MAX_CHARACTERS:
        raise ValueError(too_long)
    if "\0" in text:
        raise ValueError("holds a NUL character")
    if not text.strip():
        raise ValueError("is empty")
    return text


# Named corpora ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Named:
    """What is known about a corpus before it is opened."""

    folders: Mapping[str, str]  # language pair -> its folder; empty: any pair, in the folder given
    train: tuple[str, ...] = ("train",)  # stems of the files, the first that exists counts
    dev: tuple[str, ...] = ("dev",)
    test: tuple[str, ...] = ("test",)
    licence: str
    origin: str  # where it comes from and how to get it


CORPORA = {
    "grammar": Named(
        folders={"en-de": "", "en-fr": ""},
        licence="MIT, as this package",
        origin="It is generated on the spot.",
    ),
    "multi30k": Named(
        folders={"en-de": "multi30k", "en-fr": "multi30k"},
        dev=("val",),
        test=("test_2016_flickr",),
        licence="for non-commercial research and education (Elliott et al. 2016, 2017)",
        origin="Clone the GitHub repository multi30k/dataset and pass --data-dir dataset/data/task1/raw.",
    ),
    "multi30k_tok": Named(
        folders={"en-de": "multi30k_tok", "en-fr": "multi30k_tok"},
        train=("train", "train.lc.norm.tok"),
        dev=("val", "val.lc.norm.tok"),
        test=("test_2016_flickr", "test_2016_flickr.lc.norm.tok"),
        licence="for non-commercial research and education (Elliott et al. 2016, 2017)",
        origin="Clone the GitHub repository multi30k/dataset and pass --data-dir dataset/data/task1/tok.",
    ),
    "tatoeba": Named(
        folders={"en-de": "tatoeba_ende", "en-fr": "tatoeba_enfr"},
        dev=("valid",),
        licence="CC BY 2.0 FR, www.manythings.org/anki and tatoeba.org",
        origin=(
            "It is a split of the sentence pairs at www.manythings.org/anki; ask the authors of this package "
            "for the files, or make a split of your own and pass --corpus folder --data-dir FOLDER."
        ),
    ),
    "wmt14": Named(
        folders={"en-de": "wmt_ende", "en-fr": "wmt_enfr"},
        dev=("newstest2013",),
        test=("newstest2014",),
        licence="research use (statmt.org/wmt14)",
        origin=(
            "Join the parallel training files of statmt.org/wmt14 into one file a language, take "
            "newstest2013 and newstest2014 (en-de: the filtered set of 2,737 lines) from the GitHub "
            "repository Helsinki-NLP/OPUS-MT-testsets, and pass --data-dir FOLDER."
        ),
    ),
    "folder": Named(
        folders={},
        dev=("dev", "val", "valid"),
        licence="as its owner says",
        origin="Pass the folder of its train, dev and test files as --data-dir FOLDER.",
    ),
}

# SHA-256 of the uncompressed files. The training text of wmt14 has none: its parts are joined in many ways.
SHA256 = {
    "multi30k/train.en": "460a15fbd157e34a7a9957ee388c1ca247fe47af3ef25fb50442af6c274e0fc6",
    "multi30k/train.de": "2c2b73fd2b548fbcde3a875e0a78d6ee94d498bfdee6bd3eae3945779e9ddf72",
    "multi30k/train.fr": "5925a3c18f1587b6b54b87743106e6e8ab93618edb6f65d19eac0621f853a10d",
    "multi30k/val.en": "1f2a23d992769b5b3d209b0a10dd0b77c08cceb1f20dfb97ed0aafa49d107227",
    "multi30k/val.de": "660e09eb7e1da2f856ea13ee5ad3cf6d36b3d5b0b733c857e94c5747a3dfc660",
    "multi30k/val.fr": "5304e444d842e962b2dda4d816b70b22a1765b15401642b7ca37a67477e708dc",
    "multi30k/test_2016_flickr.en": "399a4382932c1aadd3ceb9bef1008d388a64c76d4ae4e9d4728c6f4301cac182",
    "multi30k/test_2016_flickr.de": "4be6b5b3236b79c25475c6bb829800a7ce559e9ba7a1f6c2394fe4d40be46d16",
    "multi30k/test_2016_flickr.fr": "cb3160d69b002bb638e66cc7612fcd56cb0af82eadc9c142dedc438afb885ef6",
    "multi30k_tok/train.en": "08925f8e0572bcd5a006702fc5fe20e2d77c6917d4eebd576fc20de6693c2119",
    "multi30k_tok/train.de": "cb5a23529b65ec2061f1dc446192a9c37382b63cc75f81a0be59d34894b3a505",
    "multi30k_tok/train.fr": "8fa41bb718412bcb7c5dfa58603842810a01543eae86a51279f9886b901266e1",
    "multi30k_tok/val.en": "46573ce391ae227f1c72f873392436a20ef18e0a6d518098cfbd70b77c8572ec",
    "multi30k_tok/val.de": "97232bd273eceb7207f689527386a97e4be2616b18ada47576bdaf96c8ae1f00",
    "multi30k_tok/val.fr": "b303e301aa21fe7822a846b2b3fb2d5a1121ec807cd5b1d006fb7b2b5507168a",
    "multi30k_tok/test_2016_flickr.en": "5b7f32627cf99eced828311b955dae9800bb52bc8b91cf8b6526829e605b29d2",
    "multi30k_tok/test_2016_flickr.de": "c6a33d39d48f9f510de147651316cd9d918e09ad0219df734a2f16b6baccacc4",
    "multi30k_tok/test_2016_flickr.fr": "1463bd5960f9bfe098ec3cd752d3df0c49c84dc646fb518964a29232658cd836",
    "tatoeba_ende/train.en": "fa4aefb76298ce84e59aad2bcb0c3d0c4a79c7952494535f6f9c9a0547361706",
    "tatoeba_ende/train.de": "7f3ec20e1c8b15b08569daa7521c45e9e10b60b4c1ec4170c3fd0552c0cf305c",
    "tatoeba_ende/valid.en": "f590444433589fc9c3640eb80efe08e2b25347d82aaa5028557c347d25c4018f",
    "tatoeba_ende/valid.de": "30a39ef0d8e9961b3b811980c2cfb3e87649acf77e772a33801066a0ce1f08ad",
    "tatoeba_ende/test.en": "d9f544412587755b758f11b5debb4f5832ff2375acc79683dc2efddec76e936c",
    "tatoeba_ende/test.de": "6ba5aaf669084ad0f5cc2dff16211849e37f7f03d151b04298a3b8f9364b0312",
    "tatoeba_enfr/train.en": "022fc79fb2179c1b562a950508aafbf6180bb83fb5e1c3ca08bb07c298db5528",
    "tatoeba_enfr/train.fr": "2c7808d93615540372ae53f9698b55a4e28943ff125c1443e927b170b30b2665",
    "tatoeba_enfr/valid.en": "a529bb668bcd7b2bc6f9f5e078a5d937a4e8b1a582c2a70287d1f5ca5a67978f",
    "tatoeba_enfr/valid.fr": "c66b7fe901838fdc48cb7b77ca6f5802f7749db29a3bd2e7938a4d20ac7d0026",
    "tatoeba_enfr/test.en": "a1872e878ed2729a4e87f972a775d2d10908908fcf5d759eb7b876564eefff90",
    "tatoeba_enfr/test.fr": "067ab72d967b3d2418f2f8cb3ecebab93ad663b74e1f8051925e3bfc4fa533b6",
    "wmt_ende/newstest2013.en": "ace268a1d9724ca76f6d8e5c720ffdc08f01bdce45630ed8b269dc7918e1c16e",
    "wmt_ende/newstest2013.de": "d7ea35ab91ff3709e03ad9cb6bf5b4f2cc775cd2d72efd5254c4aec5e69663ca",
    "wmt_ende/newstest2014.en": "18db2323feae45b4b9e7d3b400d3ee3740f03a4da50046c07e3c255b9985a3f9",
    "wmt_ende/newstest2014.de": "48fad9e043d7e8e89c06fa8203283501166e4f4a059f6cf08d9a4d6674a19fd8",
    "wmt_enfr/newstest2013.en": "ace268a1d9724ca76f6d8e5c720ffdc08f01bdce45630ed8b269dc7918e1c16e",
    "wmt_enfr/newstest2013.fr": "909b63be5df3eb8c13e1d5967bf3f0adfdb9f6ed5e638c5bffff563ee2ff7f41",
    "wmt_enfr/newstest2014.en": "9a12cb6e8efb3509ebede627e4a9c83ee64935509d561ff70f4b7bd5f93f6096",
    "wmt_enfr/newstest2014.fr": "2bd07dc204f965bf88e90adb6223a8cb850f9bf9840df6af1f4945195936656e",
}


@dataclass(frozen=True, kw_only=True)
class GrammarSizes:
    """How much of the embedded corpus to generate, in pairs."""

    n_train: int
    n_dev: int
    n_test: int
    seed: int = 0


@dataclass(frozen=True, kw_only=True)
class Corpus:
    """Parallel text that was found, counted and, where its hash is known, recognised."""

    name: str
    pair: str  # "en-de": source and target language
    train: Parallel
    dev: Parallel
    test: Parallel
    sha256: str  # of the six texts and their places; plain or gzip, and where they lie, is all one
    licence: str


def open_corpus(
    name: str, pair: str, *, data_dir: Path | None, cache: Path, sizes: GrammarSizes | None = None
) -> Corpus:
    """Find (or generate) the six files of a corpus and refuse what is missing, unequal, empty or altered.

    A named corpus is looked for in `data_dir` and nowhere else if that is given; else in the folder that the
    environment variable REPRO_DATA names, in `data/` of the project and in `../shared/data/` beside it.
    """
    if name not in CORPORA:
        raise ValueError(f"Unknown corpus {name!r}; expected one of {', '.join(CORPORA)}.")
    known = CORPORA[name]
    if known.folders and pair not in known.folders:
        raise ValueError(f"Corpus {name!r} has no pair {pair!r}; expected one of {', '.join(known.folders)}.")
    if not re.fullmatch(r"\w+-\w+", pair, re.ASCII):
        raise ValueError(f"A pair is two languages like 'en-de', got {pair!r}.")

    languages = pair.split("-")
    if name == "grammar":
        if data_dir is not None:
            raise ValueError("Corpus 'grammar' is generated; for text of your own add --corpus folder.")
        folder = _grammar(cache, sizes)
    else:
        folder = _find(name, pair, data_dir)
    places, digests = {}, []
    for split, stems in (("train", known.train), ("dev", known.dev), ("test", known.test)):
        paths = _side_paths(folder, stems, languages)
        assert paths is not None  # _find looked, generating wrote
        for path, language in zip(paths, languages, strict=True):
            digests.append(f"{split}.{language} {_recognised(path, name, pair, stems[0], language)}\n")
        places[split] = Parallel(*paths, may_drop=split == "train")
        places[split].check()
    sha256 = hashlib.sha256("".join(digests).encode()).hexdigest()
    return Corpus(name=name, pair=pair, sha256=sha256, licence=known.licence, **places)


def _find(name: str, pair: str, data_dir: Path | None) -> Path:
    """The first folder with all files of the corpus."""
    known, languages = CORPORA[name], pair.split("-")
    splits = (known.train, known.dev, known.test)
    looked = []
    for folder in _candidates(name, pair, data_dir):
        if not folder.is_dir():
            looked.append(f"{folder} (no such folder)")
            continue
        lacks = [_expected(stems, languages) for stems in splits if not _side_paths(folder, stems, languages)]
        if not lacks:
            return folder
        looked.append(f"{folder} (lacks {', '.join(lacks)})")
    wanted = ", ".join(_expected(stems, languages) for stems in splits)
    raise FileNotFoundError(
        f"Corpus {name!r} ({pair}) is not here: expected the files {wanted}, each plain or .gz; "
        f"looked in {'; '.join(looked)}. {known.origin}"
    )


def _candidates(name: str, pair: str, data_dir: Path | None) -> list[Path]:
    """Where to look, in this order."""
    known = CORPORA[name]
    inside = dict.fromkeys((known.folders[pair], name)) if known.folders else {}
    if data_dir is not None:
        return [data_dir, *(data_dir / folder for folder in inside)]
    if not inside:
        raise ValueError(f"Corpus {name!r} needs a folder. {known.origin}")
    given = [Path(os.environ["REPRO_DATA"])] if os.environ.get("REPRO_DATA") else []
    roots = [*given, PROJECT / "data", PROJECT.parent / "shared" / "data"]
    return [root / folder for root in roots for folder in inside]


def _side_paths(folder: Path, stems: tuple[str, ...], languages: list[str]) -> tuple[Path, Path] | None:
    """The two files of a split, or None where one is missing."""
    for stem in stems:
        source, target = (_plain_or_gzip(folder / f"{stem}.{language}") for language in languages)
        if source and target:
            return source, target
    return None


def _plain_or_gzip(path: Path) -> Path | None:
    return next((file for file in (path, path.with_name(f"{path.name}.gz")) if file.is_file()), None)


def _expected(stems: tuple[str, ...], languages: list[str]) -> str:
    return ", ".join(f"{'|'.join(stems)}.{language}" for language in languages)


def _recognised(path: Path, name: str, pair: str, stem: str, language: str) -> str:
    """The hash of a file's text, refused if it is known to be another."""
    found = fingerprint(path)[0]
    expected = SHA256.get(f"{CORPORA[name].folders.get(pair)}/{stem}.{language}", found)
    if found != expected:
        raise ValueError(
            f"{path} is not the text known as {name}: expected SHA-256 {expected}, got {found}. Get it again "
            "or, to use this text under no name, choose --corpus folder."
        )
    return found


def _grammar(cache: Path, sizes: GrammarSizes | None) -> Path:
    """The folder of the embedded corpus; another generator or size is another folder."""
    # here, not above: the names of the corpora are wanted without them
    from repro.data import english, french, german, lexicon, sentence, synthetic

    if sizes is None:
        raise ValueError("Corpus 'grammar' needs its sizes; the scales state them.")
    sources = (lexicon, sentence, english, german, french, synthetic)
    generator = b"".join(Path(str(source.__file__)).read_bytes() for source in sources)
    version = hashlib.sha256(generator).hexdigest()[:12]
    folder = cache / f"grammar-{sizes.n_train}-{sizes.n_dev}-{sizes.n_test}-{sizes.seed}-{version}"

    def generate(empty: Path) -> dict[str, Any]:
        synthetic.write_grammar(empty, n_train=sizes.n_train, n_dev=sizes.n_dev, n_test=sizes.n_test, seed=sizes.seed)
        return {}

    made_once(folder, generate)
    return folder


# Cached folders --------------------------------------------------------------------------------------------

MANIFEST = "manifest.json"


def made_once(folder: Path, make: Callable[[Path], dict[str, Any]]) -> dict[str, Any]:
    """Have `folder` as `make` fills it, and return the facts that `make` returned.

    It is made where it is absent or damaged and used as it is elsewhere. The work is done under a name of its
    own, so what an interrupted process leaves (`.*.making`) is never read; and two processes that make the
    same folder both succeed without a lock, the later one using what the earlier one made.
    """
    try:
        return verified(folder)
    except (FileNotFoundError, ValueError):
        pass
    folder.parent.mkdir(parents=True, exist_ok=True)
    work = folder.with_name(f".{folder.name}.{secrets.token_hex(4)}.making")
    work.mkdir()
    try:
        facts = make(work)
        files = {path.name: _sha256(path) for path in sorted(work.iterdir())}
        contents = {"facts": facts, "files": files}
        durable.write_json(work / MANIFEST, contents | {"sha256": _sha256_of_json(contents)})
        _take_name(work, folder)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return verified(folder)


def verified(folder: Path) -> dict[str, Any]:
    """The facts of a folder that `made_once` made, after each file is found to be what was written."""
    manifest = folder / MANIFEST
    again = "Delete the folder; it is made again."
    try:
        contents = json.loads(manifest.read_bytes())
        sha256 = contents.pop("sha256")
        if sha256 != _sha256_of_json(contents):
            raise ValueError("altered")
    except (AttributeError, KeyError, TypeError, ValueError):
        raise ValueError(f"{manifest} is not what was written. {again}") from None
    for name, expected in contents["files"].items():
        found = _sha256(folder / name)
        if found != expected:
            raise ValueError(f"{folder / name} is damaged: expected SHA-256 {expected}, got {found}. {again}")
    facts: dict[str, Any] = contents["facts"]
    return facts


def _take_name(work: Path, folder: Path) -> None:
    """Rename `work` to `folder`, unless another process was first; a damaged folder makes way."""
    while True:
        try:
            work.rename(folder)
            return
        except OSError as error:
            if error.errno not in (errno.EEXIST, errno.ENOTEMPTY):
                raise
        try:
            verified(folder)
            return
        except (FileNotFoundError, ValueError):
            aside = work.with_suffix(".damaged")
            with suppress(FileNotFoundError):  # a third process made way already
                folder.rename(aside)
            shutil.rmtree(aside, ignore_errors=True)


def _sha256(path: Path) -> str:
    """The SHA-256 of a file's bytes, computed once per process while it stays the same."""
    status = path.stat()
    return _sha256_of_file(path, status.st_size, status.st_mtime_ns)


@functools.cache
def _sha256_of_file(path: Path, size: int, mtime_ns: int) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _sha256_of_json(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()
