"""Corpora of trees: where their files are, how they are split, and how they become parallel text. Paper: section 6.3.

`en` has the words of a sentence with blanks between them, `tree` its brackets and tags (`treebank.py`); the later
steps treat them as two languages. Silver text is trees that a parser made; they are added to the gold ones of train.
"""

import functools
import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from repro.corpora.catalogue import CORPORA, Corpus, GrammarSizes, find, generated, hashes_of
from repro.corpora.parallel_text import Parallel, languages, text_fingerprint
from repro.corpora.sources import craft_sources, missing_of_craft
from repro.data.treebank import EMPTY_ELEMENT, Tree, cleaned, linearised, trees_of
from repro.storage import atomic
from repro.storage.folder_cache import made_once

TREES = "en-tree"  # the pair: words, and the tree over them
VERSION = 1  # raise it when the same files give other lines
SPLITS = ("train", "dev", "test")
OF_TREES = ("*.mrg", "*.MRG", "*.ptb", "*.tree")  # files of brackets
MASKED = "_"  # replaces each word of a text that may not be redistributed
Files = Mapping[str, Sequence[Path]]  # split -> its files, in the order of the text


@dataclass(frozen=True, kw_only=True)
class Treebank:
    """What is known of a corpus of trees beside its licence and origin: see catalogue.toml."""

    about: str  # which text it is
    splits: Callable[[Path], Files]  # split -> files of its folder; raises FileNotFoundError if some are missing
    silver: Sequence[str] = ()  # folders of silver text, below a folder of data
    attribution: str = ""  # what its licence asks to be printed with results


# Splits ------------------------------------------------------------------------------------------------------


def check_craft(folder: Path) -> None:
    """Check that a copy is the published one: raises FileNotFoundError if files are missing, ValueError if changed."""
    from repro.corpora.fetch import fetch  # it imports requests

    if lacking := missing_of_craft(folder):
        first = folder / lacking[0].archive
        raise FileNotFoundError(f"{len(lacking):,} files are missing, the first is {first}. {CORPORA['craft'].origin}")
    for source in craft_sources():
        fetch(source, folder, offline=True)


def _craft(folder: Path) -> Files:
    """The splits of the corpus's own lists of documents; only the published files are accepted."""
    check_craft(folder)
    lists = {split: folder / "articles" / "ids" / f"craft-ids-{split}.txt" for split in SPLITS}
    trees = folder / "structural-annotation" / "treebank" / "penn"
    return {
        split: [trees / f"{one}.tree" for one in file.read_bytes().decode().split()] for split, file in lists.items()
    }


def _wsj(folder: Path) -> Files:
    """Sections 02 to 21, 22 and 23, each a folder. Paper: section 6.3, as in earlier work on parsing."""
    found: dict[str, list[Path]] = {split: [] for split in SPLITS}
    for section in range(2, 24):
        files = list(_files_of_trees(folder / f"{section:02}"))
        # a section belongs to one split, so a file of another one must not lie here
        if not files or any((of := re.match(r"wsj_(\d\d)", file.stem)) and int(of[1]) != section for file in files):
            raise FileNotFoundError(
                f"{folder / f'{section:02}'}: expected the trees of section {section:02} and no others, in files such "
                f"as wsj_{section:02}01.mrg (LDC99T42, parsed/mrg/wsj), got {[file.name for file in files[:3]]}."
            )
        found[{22: "dev", 23: "test"}.get(section, "train")] += files
    return found


def _files_of_trees(folder: Path) -> Iterator[Path]:
    yield from sorted({file for form in OF_TREES for file in folder.glob(form)})


_SPLIT_BY: dict[str, Callable[[Path], Files]] = {
    "grammar_trees": lambda folder: {file.stem: [file] for file in folder.glob("*.mrg")},
    "craft": _craft,
    "wsj": _wsj,
}
TREEBANKS = {name: Treebank(splits=splits, **(CORPORA[name].trees or {})) for name, splits in _SPLIT_BY.items()}


# Where -------------------------------------------------------------------------------------------------------


def find_trees(name: str, data_dir: Path | None, *, silver: bool = False) -> Path | None:
    """The folder of a treebank, None if it is generated; no tree is read.

    Raises ValueError if it is no treebank, FileNotFoundError if it is not here or lacks the silver text asked for.
    """
    if name not in TREEBANKS:
        raise ValueError(f"Corpus {name!r} has no trees; expected one of {', '.join(TREEBANKS)}.")
    folder = find(name, TREES, data_dir)
    if silver and folder:
        _silver_files(name, data_dir)
    return folder


def _silver_files(name: str, data_dir: Path | None) -> list[Path]:
    """The files of trees that a parser made; looked for only in the folder that the user names."""
    places = TREEBANKS[name].silver
    folders = [data_dir / place for place in places if (data_dir / place).is_dir()] if data_dir else []
    if files := list(_files_of_trees(folders[0])) if folders else []:
        return files
    raise FileNotFoundError(
        f"There is no silver text beside {name!r}: expected trees that a parser made (.mrg, .ptb, .tree) in "
        f"{' or '.join(places)} of the folder given by --data-dir, such as https://github.com/amir-zeldes/gum. Put "
        "them there, or leave the row out with --rows."
    )


# To parallel text --------------------------------------------------------------------------------------------


def open_trees(
    name: str, *, silver: bool = False, data_dir: Path | None, cache: Path, sizes: GrammarSizes | None = None
) -> Corpus:
    """The words and trees of a treebank as parallel text, made in `cache` once; with `silver`, train has that part too.

    Trees of train that cannot be read are left out and counted by reason; in held-out text they raise ValueError.
    """
    files = TREEBANKS[name].splits(find_trees(name, data_dir, silver=silver) or generated(name, cache, sizes))
    text, facts = _converted(name, {split: files[split] for split in SPLITS}, cache)
    gold = "gold" if silver else ""
    parts = {gold: (_parallel(text, "train", name=gold), facts["train"])}
    if silver:
        beside, others = _converted(name, {"silver": files.get("silver") or _silver_files(name, data_dir)}, cache)
        parts["silver"] = (_parallel(beside, "silver", name="silver"), others["silver"])
    train, of_train = zip(*parts.values(), strict=True)
    dev, test = (_parallel(text, split) for split in ("dev", "test"))
    about = {part or "train": of for part, (_, of) in parts.items()} | {"dev": facts["dev"], "test": facts["test"]}
    attribution = TREEBANKS[name].attribution
    return Corpus(
        name=f"{name}_silver" if silver else name,
        pair=TREES,
        train=train,
        dev=dev,
        test=test,
        files=hashes_of(train, dev, test, TREES),
        licence=CORPORA[name].licence,
        origin=CORPORA[name].origin,
        whole=tuple(sorted({token for part in of_train for token in part["tokens"]})),
        about=_about(about) | ({"Attribution": attribution} if attribution else {}),
        left_out=dict(sum((Counter(part["left out"]) for part in of_train), Counter())),
    )


def _converted(name: str, files: Files, cache: Path) -> tuple[Path, dict[str, Any]]:
    """The folder that has `<split>.en` and `<split>.tree` of each split, and facts; other files give another folder."""
    known = {split: [text_fingerprint(file).sha256 for file in of] for split, of in files.items()}
    version = hashlib.sha256(json.dumps([VERSION, known]).encode()).hexdigest()
    folder = cache / f"{name}-{'-'.join(files)}-{version[:12]}"
    return folder, made_once(folder, lambda empty: {split: _written(of, empty, split) for split, of in files.items()})


def _parallel(folder: Path, split: str, name: str = "") -> Parallel:
    source, target = (folder / f"{split}.{language}" for language in languages(TREES))
    return Parallel(source, target, may_drop=split not in ("dev", "test"), name=name)


def _written(files: Sequence[Path], folder: Path, split: str) -> dict[str, Any]:
    """Write both sides of a split; returns facts about its trees."""
    facts: dict[str, Any] = {"trees": 0} | {name: Counter() for name in ("labels", "tags", "mended", "left out")}
    source, target = (folder / f"{split}.{language}" for language in languages(TREES))

    def write(words: atomic.Hashed, trees: atomic.Hashed) -> None:
        for tree in _clean(files, facts, may_drop=split not in ("dev", "test")):
            words.write(f"{' '.join(tree.words)}\n".encode())
            trees.write(f"{linearised(tree)}\n".encode())

    atomic.write_bytes(source, lambda words: atomic.write_bytes(target, functools.partial(write, words)))
    if not facts["trees"]:
        raise ValueError(f"{files[0].parent} holds no tree for {split}; left out: {dict(facts['left out'])}.")
    ends = {f"{end}{label}" for label in facts["labels"] for end in "()"}
    return facts | {"tokens": sorted({*ends, *facts["tags"]})}


def _clean(files: Sequence[Path], facts: dict[str, Any], *, may_drop: bool) -> Iterator[Tree]:
    """The cleaned trees of the files, counted in `facts`. Raises ValueError if held-out text has a bad tree."""
    for file in files:
        for number, raw in enumerate(trees_of(file, facts["left out"] if may_drop else None), 1):
            tree, reason = cleaned(raw, facts["mended"]), _no_text(raw)
            if tree is None or reason:
                if not may_drop:
                    raise ValueError(f"{file}, tree {number:,}: expected words, got {reason}. Take it out by hand.")
                facts["left out"][reason] += 1
                continue
            facts["trees"] += 1
            facts["labels"].update(bracket.label for bracket in tree.brackets)
            facts["tags"].update(leaf.tag for leaf in tree.leaves)
            yield tree


def _no_text(tree: Tree) -> str:
    """Why a tree has no sentence; "" where it has one."""
    words = {leaf.word for leaf in tree.leaves if leaf.tag != EMPTY_ELEMENT}
    return "no word" if not words else "a text without its words" if words == {MASKED} else ""


def _about(texts: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """What the data card says of the trees: those of each part of train, of dev and of test."""

    def listed(what: str) -> str:
        counts: Counter[str] = sum((Counter(facts[what]) for facts in texts.values()), Counter())
        return f"{len(counts)}: {', '.join(f'{name} {n:,}' for name, n in counts.most_common()) or 'none'}"

    return {
        "Trees": ", ".join(f"{text} {facts['trees']:,}" for text, facts in texts.items()),
        "Mended on reading": listed("mended"),
        "Trees left out on reading": listed("left out"),
    }
