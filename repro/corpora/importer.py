"""Imports your own text, in any of its usual forms, into a folder that `--data-dir` takes.

A text is a table (TSV, CSV, JSON lines, Parquet) or two files of lines, plain or packed (.gz, .xz, .zst). It is read
once, as a stream. If a line cannot be read, it is named and nothing is written. Empty lines of a table are left out and
counted. Training lines that are no sentence (empty, far too long) are kept: preparing drops and counts them.
"""

import csv
import functools
import gzip
import hashlib
import io
import json
import lzma
import zlib
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet

from repro.corpora.catalogue import DEV_NAMES, GIVEN, refuse_several
from repro.corpora.cut_text import CUT
from repro.corpora.pair import languages
from repro.corpora.parallel_text import as_text
from repro.corpora.same_sentence import normalised
from repro.storage import atomic
from repro.storage.folder_cache import made_new

SPLITS = {"train": ("train",), "dev": DEV_NAMES, "test": ("test",)}  # split -> what its files may be called
UNPACK: dict[str, Callable[[str], Any]] = {
    ".gz": gzip.open,
    ".xz": lzma.open,
    ".zst": functools.partial(pyarrow.input_stream, compression="zstd"),
}
PACKED = tuple(UNPACK)
TABLES = (".tsv", ".csv", ".jsonl", ".json", ".parquet")
FORMS = f"{', '.join(TABLES)}, or two files of lines whose names end in the languages; plain, {', '.join(PACKED)}"
PAIRS_AT_ONCE = 10_000
SHOWN = 200  # characters of bad input
BOM = "\ufeff"
Names = tuple[str, str]  # of source and target
Pairs = Iterator[tuple[str, str] | None]  # None: an empty line of a table


@dataclass(frozen=True, kw_only=True)
class Imported:
    """What was written."""

    pairs: Mapping[str, int]  # by split
    first: tuple[str, str]  # pair of the training text, as it was read
    joined: int  # sentences that stretched over several lines
    empty: int  # empty lines of tables, which were left out


def import_text(
    text: Path,
    folder: Path,
    pair: str,
    *,
    held_out: Mapping[str, Path | None] | None = None,
    shares: Mapping[str, float | None] | None = None,
    columns: Names | None = None,
) -> Imported:
    """Write `folder` whole or not at all: train, dev and test of the pair, a sentence a line.

    `text` is a folder with the three, or the training text alone. `held_out` says where dev and test are, `shares` how
    much of the training text becomes one of them. Which pairs do is decided by a hash of the source's words: the same
    in every run, and copies of a source sentence always go to the same split.
    """
    sides = languages(pair)
    if columns and columns[0] == columns[1]:
        raise ValueError(
            f"--columns {' '.join(columns)}: expected two columns, got one twice. Name that of the source and that "
            "of the target."
        )
    given = {split: one for split, one in (held_out or {}).items() if one is not None}
    texts = _found(text, sides, given) | given
    drawn = {split: share for split, share in (shares or {}).items() if share is not None}
    _check_splits(text, texts, drawn)
    streams = {split: _pairs(one, sides, columns) for split, one in texts.items()}

    def make(work: Path) -> Imported:
        with atomic.named(folder), ExitStack() as stack:
            new = {split: [atomic.Hashed(work / f"{split}.{language}") for language in sides] for split in SPLITS}
            files = {split: [stack.enter_context(io.BufferedWriter(file)) for file in new[split]] for split in new}
            made = _written(streams, texts, drawn, files)
            for split in new:
                for writer, file in zip(files[split], new[split], strict=True):
                    writer.flush()
                    file.push()
            for name in (GIVEN, CUT):
                if (beside := text / name).is_file():
                    atomic.write_bytes(work / name, beside.read_bytes())
        for split, n in made.pairs.items():
            if not n:
                advice = f"Ask for a larger --{split}-share." if split in drawn else "Give it a text that has some."
                raise ValueError(f"{texts.get(split, text)}: expected pairs for {split}, got none. {advice}")
        return made

    return made_new(folder, make)


def _check_splits(text: Path, texts: Mapping[str, Path], drawn: Mapping[str, float]) -> None:
    for split, share in drawn.items():
        if not 0 < share < 0.5:
            raise ValueError(f"--{split}-share must lie between 0 and 0.5 of the training text, got {share}.")
        if split in texts:
            raise ValueError(
                f"--{split}-share: there is a text for {split} already, {texts[split]}. Leave one of them out."
            )
    for split in SPLITS:
        if split not in texts and split not in drawn:
            advice = f"Name it with --{split}, or take a part of the training text with --{split}-share 0.01."
            if split == "train":
                advice = "A folder has files train.*; else name a table, or two files by what comes before .LANGUAGE."
            raise ValueError(f"{text} has no text for {split}: expected {FORMS}. {advice}")


def _written(
    streams: Mapping[str, Pairs],
    texts: Mapping[str, Path],
    drawn: Mapping[str, float],
    files: Mapping[str, "Sequence[io.BufferedWriter[Any]]"],  # quoted: Python 3.11 cannot subscript the class
) -> Imported:
    """Write each pair to its split; pairs of the training text go where `share_of` sends them."""
    pairs, first, joined, empty = dict.fromkeys(SPLITS, 0), ("", ""), 0, 0
    for split, stream in streams.items():
        number = 0
        for pair in stream:
            if pair is None:
                empty += 1
                continue
            number += 1
            joined += sum("\n" in line for line in pair)
            source, target = (line.replace("\r\n", " ").replace("\n", " ") for line in pair)
            to = split
            if split != "train" and not (_is_sentence(source) and _is_sentence(target)):
                raise ValueError(
                    f"{texts[split]}, pair {number:,} of {split}: expected a sentence on both sides, as a score "
                    f"counts every line of held-out text, got {source[:40]!r} and {target[:40]!r}. Correct it, or "
                    "leave it out."
                )
            if split == "train":
                first = first if any(first) else (source, target)
                if drawn and _is_sentence(source) and _is_sentence(target):
                    to = share_of(source, drawn)
            pairs[to] += 1
            for file, line in zip(files[to], (source, target), strict=True):
                file.write(f"{line}\n".encode())
    return Imported(pairs=pairs, first=first, joined=joined, empty=empty)


def share_of(source: str, drawn: Mapping[str, float]) -> str:
    """The split to which a pair of the training text goes, by a hash of the words of its source."""
    words = normalised(source) or source
    place = int.from_bytes(hashlib.blake2b(words.encode(), digest_size=8).digest()) / 2**64
    for split, share in drawn.items():
        if place < share:
            return split
        place -= share
    return "train"


def _is_sentence(line: str) -> bool:
    """Whether held-out text may hold the line."""
    try:
        as_text(line.encode())
    except ValueError:
        return False
    return True


# Where ---------------------------------------------------------------------------------------------------------------


def _found(text: Path, sides: Names, given: Container[str]) -> dict[str, Path]:
    """The texts in a folder by split, except those given; if `text` is no folder, it is the training text."""
    if not text.is_dir():
        return {"train": text}
    found: dict[str, Path] = {}
    for split, stems in SPLITS.items():
        texts = {} if split in given else {stem: one for stem in stems if (one := _of_stem(text / stem, sides))}
        refuse_several(text, texts)
        if texts:
            [found[split]] = texts.values()
    return found


def _of_stem(stem: Path, sides: Names) -> Path | None:
    """The table, or the two files, named `stem` plus an ending. Raises ValueError if there is more than one text."""
    tables = (stem.with_name(f"{stem.name}{form}{packing}") for form in TABLES for packing in ("", *PACKED))
    found = [path for path in tables if path.is_file()]
    if files := _two_files(stem, sides):
        found.append(stem)
    if len(found) > 1:
        names = [path.name for path in found if path != stem] + [file.name for file in files or ()]
        raise ValueError(
            f"{stem.parent} has {', '.join(names)}: expected one text for {stem.name}, a table or a file for each "
            "language. Move what is not meant to another folder."
        )
    return found[0] if found else None


def _two_files(stem: Path, sides: Names) -> tuple[Path, Path] | None:
    """The file of each language, found by the stem of the two names or by one of the names; None if one is missing."""
    plain = stem.name.removesuffix(stem.suffix) if stem.suffix in PACKED else stem.name
    for name in (stem.name, *(plain.removesuffix(f".{side}") for side in sides)):
        source, target = (
            next((path for end in ("", *PACKED) if (path := stem.with_name(f"{name}.{side}{end}")).is_file()), None)
            for side in sides
        )
        if source and target:
            return source, target
    return None


def _pairs(text: Path, sides: Names, columns: Names | None) -> Pairs:
    """The pairs of a text, whatever its form."""
    form = (text.with_suffix("") if text.suffix in PACKED else text).suffix
    if text.is_file() and form in TABLES:
        if form in (".tsv", ".csv"):
            return _of_cells(text, _cells(text, form), sides, columns)
        return (_of_jsonl if form in (".jsonl", ".json") else _of_parquet)(text, sides, columns)
    if files := _two_files(text, sides):
        return _of_lines(*files)
    what = "is a file of another kind" if text.is_file() else "is not there"
    raise ValueError(f"{text} {what}: expected {FORMS} (here {text.name}.{sides[0]} and {text.name}.{sides[1]}).")


# Forms ---------------------------------------------------------------------------------------------------------------


def _of_lines(source: Path, target: Path) -> Pairs:
    n_source = n_target = 0
    for one, other in zip_longest(_lines(source), _lines(target)):
        n_source, n_target = n_source + (one is not None), n_target + (other is not None)
        if one is not None and other is not None:
            yield one, other
    if n_source != n_target:
        raise ValueError(
            f"{source} has {n_source:,} lines, {target} has {n_target:,}; line i must translate line i. Get both files "
            "again, from one source."
        )


def _cells(path: Path, form: str) -> Iterator[tuple[int, list[str]]]:
    """The rows of a TSV, which has no quotes, or of a CSV, each with its line number."""
    if form == ".tsv":
        yield from enumerate((line.split("\t") for line in _lines(path)), 1)
        return
    reader = csv.reader((f"{line}\n" for line in _lines(path)), strict=True)
    try:
        yield from ((reader.line_num, cells) for cells in reader)
    except csv.Error as error:
        raise ValueError(f"{path}, line {reader.line_num:,} is not CSV ({error}). Correct it.") from None


def _of_cells(path: Path, rows: Iterator[tuple[int, list[str]]], sides: Names, columns: Names | None) -> Pairs:
    first: list[str] = []
    source = target = 0
    for number, cells in rows:
        if not "".join(cells).strip():
            yield None
            continue
        if not first:
            first = cells
            (source, target), is_header = _places(f"{path}, line {number:,}", cells, sides, columns)
            if is_header:
                continue
        if len(cells) != len(first):
            raise ValueError(
                f"{path}, line {number:,} has {len(cells)} columns, but the first one has {len(first)}. Correct it: a "
                "tab or an unquoted comma separates two columns and is nowhere else."
            )
        yield cells[source], cells[target]


def _places(where: str, first: list[str], sides: Names, columns: Names | None) -> tuple[tuple[int, int], bool]:
    """Which columns are source and target, and whether the first line names them; never a guess."""
    known = [sides, ("source", "target")]
    if columns and all(name.isdecimal() for name in columns):
        source, target = (int(name) - 1 for name in columns)
        if not (0 <= source < len(first) and 0 <= target < len(first)):
            raise ValueError(
                f"{where} has {len(first)} columns, so --columns {' '.join(columns)} names one that is not there."
            )
        return (source, target), (first[source], first[target]) in known
    for names in [columns] if columns else known:
        if all(name in first for name in names):
            return (first.index(names[0]), first.index(names[1])), True
    raise ValueError(
        f"{where} has the columns {', '.join(map(repr, first))[:SHOWN]}; expected {' and '.join(columns or sides)}. "
        "Say which are source and target: --columns SOURCE TARGET if this line holds their names, --columns 1 2 if it "
        "is the first pair."
    )


def _of_jsonl(path: Path, sides: Names, columns: Names | None) -> Pairs:
    for number, line in enumerate(_lines(path), 1):
        if not line.strip():
            yield None
            continue
        try:
            found = json.loads(line)
        except ValueError:
            found = None
        if not isinstance(found, dict):
            raise ValueError(
                f"{path}, line {number:,} is not a JSON object: expected one per line, got {line[:SHOWN]!r}."
            )
        yield _chosen(found, sides, columns, f"{path}, line {number:,}")


def _of_parquet(path: Path, sides: Names, columns: Names | None) -> Pairs:
    number = 0
    try:
        table = pyarrow.parquet.ParquetFile(path)
        names = table.schema_arrow.names
        wanted = {*(columns or (*sides, "source", "target")), "translation"}
        for batch in table.iter_batches(PAIRS_AT_ONCE, columns=[name for name in names if name in wanted]):
            for row in batch.to_pylist():
                number += 1
                yield _chosen(row or dict.fromkeys(names), sides, columns, f"{path}, row {number:,}")
    except (OSError, pyarrow.ArrowException) as error:
        brief = str(error).partition("\n")[0]
        raise ValueError(f"{path} is not a whole Parquet file ({brief}). Get it again.") from error


def _chosen(row: Mapping[str, Any], sides: Names, columns: Names | None, where: str) -> tuple[str, str]:
    """Source and target of a row with named columns, or of its column `translation`."""
    for one, other in [columns] if columns else [sides, ("source", "target")]:
        for level in (row, row.get("translation")):
            if isinstance(level, dict) and one in level and other in level:
                return _text(level[one], f"{where}: {one!r}"), _text(level[other], f"{where}: {other!r}")
    one, other = columns or sides
    raise ValueError(
        f"{where} has {', '.join(map(repr, row))[:SHOWN] or 'nothing'}; expected {one!r} and {other!r}. Name others "
        "with --columns SOURCE TARGET."
    )


def _text(value: Any, where: str) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{where} is {str(value)[:SHOWN]}, expected text. Correct it.")
    return value


# Lines ---------------------------------------------------------------------------------------------------------------


def _lines(path: Path) -> Iterator[str]:
    """The lines of a file without their ends. Raises ValueError that names the line that is not UTF-8."""
    unpack = UNPACK.get(path.suffix, io.FileIO)
    try:
        with io.BufferedReader(unpack(str(path))) as file:
            for number, raw in enumerate(file, 1):
                try:
                    line = raw.removesuffix(b"\n").removesuffix(b"\r").decode()
                except UnicodeDecodeError as error:
                    raise ValueError(
                        f"{path}, line {number:,} is not UTF-8 (byte {error.start + 1:,} of it). Convert the file "
                        "first: iconv -f ENCODING -t UTF-8"
                    ) from None
                yield line.removeprefix(BOM) if number == 1 else line
    except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
        brief = str(error).partition("\n")[0]  # no OSError: it would blame the output file
        raise ValueError(f"{path} cannot be read as a whole {path.suffix} file ({brief}). Get it again.") from error
