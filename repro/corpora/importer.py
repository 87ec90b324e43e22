"""Imports your own text, in any of its usual forms, into a folder that `--data-dir` takes.

A text is a table (TSV, CSV, JSON lines, Parquet) or two files of lines. It is read as a stream. A pair that is no text
is left out of train and counted by reason; in dev and test it is refused, and nothing is written.
"""

import csv
import hashlib
import io
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.parquet

from repro.corpora.catalogue import sides_of
from repro.corpora.parallel_text import Parallel, as_text, languages, normalised
from repro.storage import atomic
from repro.storage.folder_cache import made_new

SPLITS = ("train", "dev", "test")
TABLES = (".tsv", ".csv", ".jsonl", ".json", ".parquet")
PACKED = ("", ".gz", ".bz2", ".xz")  # of tables; files of lines are plain or .gz
ROWS_AT_ONCE = 10_000
SHOWN = 10  # columns that a message names
Names = tuple[str, str]  # of source and target


@dataclass(frozen=True, kw_only=True)
class Imported:
    """What was written."""

    pairs: Mapping[str, int]  # by split
    first: tuple[str, str]  # pair of the training text
    dropped: Mapping[str, int]  # pairs left out of the training text, by reason


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

    `text` is the training text. `held_out` says where dev and test are, `shares` how much of the training text becomes
    one of them. Which pairs do is decided by a hash of the source's words: the same in every run, and copies of a
    source sentence always go to the same split.
    """
    texts = {"train": text} | {split: one for split, one in (held_out or {}).items() if one is not None}
    drawn = {split: share for split, share in (shares or {}).items() if share is not None and split not in texts}
    for split in SPLITS:
        if split not in texts | drawn:
            how = f"expected --{split} FILE, or a part of the training text by --{split}-share 0.01"
            raise ValueError(f"There is no text for {split}: {how}.")
    if not all(0 < share < 0.5 for share in drawn.values()):
        raise ValueError(f"Shares must lie between 0 and 0.5 of the training text, got {drawn}.")

    def make(work: Path) -> Imported:
        counts, dropped = dict.fromkeys(SPLITS, 0), Counter[str]()
        first = ("", "")
        with atomic.named(folder), ExitStack() as stack:
            new = {split: [atomic.Hashed(work / f"{split}.{one}") for one in languages(pair)] for split in SPLITS}
            files = {split: [stack.enter_context(io.BufferedWriter(file)) for file in new[split]] for split in SPLITS}
            for split, one in texts.items():
                for source, target in _pairs(one, pair, columns, dropped if split == "train" else None):
                    first = first if any(first) else (source, target)
                    to = share_of(source, drawn) if split == "train" else split
                    counts[to] += 1
                    for file, line in zip(files[to], (source, target), strict=True):
                        file.write(f"{line}\n".encode())
        if empty := [split for split, n in counts.items() if not n]:
            raise ValueError(f"{texts.get(empty[0], text)}: expected pairs for {empty[0]}, got none.")
        return Imported(pairs=counts, first=first, dropped=dict(dropped))

    return made_new(folder, make)


def share_of(source: str, drawn: Mapping[str, float]) -> str:
    """The split to which a pair of the training text goes, by a hash of the words of its source."""
    words = normalised(source) or source
    place = int.from_bytes(hashlib.blake2b(words.encode(), digest_size=8).digest()) / 2**64
    for split, share in drawn.items():
        if place < share:
            return split
        place -= share
    return "train"


def _pairs(text: Path, pair: str, columns: Names | None, dropped: Counter[str] | None) -> Iterator[tuple[str, str]]:
    """The clean pairs of a text in any form; others are counted in `dropped` or, without it, raise ValueError."""
    packing = next(end for end in PACKED[::-1] if text.name.endswith(end))
    form = Path(text.name.removesuffix(packing)).suffix
    if form not in TABLES:
        one, other = languages(pair)
        stem = text.name.removesuffix(".gz")
        stems = (text.name, stem.removesuffix(f".{one}"), stem.removesuffix(f".{other}"))
        if (sides := sides_of(text.parent, stems, pair)) is None and text.is_dir():
            raise ValueError(
                f"{text} is a folder: expected its training text, with --dev and --test. A folder of train.{one}, "
                f"train.{other}, dev.* and test.* needs no import: --corpus folder --data-dir {text}."
            )
        if sides is None:
            raise ValueError(
                f"{text} is not there or of another kind: expected {', '.join(TABLES)}, plain or "
                f"{', '.join(PACKED[1:])}, or two files {text.name}.{one} and {text.name}.{other}, plain or .gz."
            )
        yield from Parallel(*sides, may_drop=dropped is not None).pairs(dropped)
        return
    for number, row in enumerate(_rows(text, form, languages(pair), columns), 1):
        try:
            source, target = (_as_line(side, value) for side, value in zip(("source", "target"), row, strict=True))
        except ValueError as reason:
            if dropped is None:
                raise ValueError(f"{text}, row {number:,}: {reason}; correct it, or leave it out.") from None
            dropped[f"{reason}"] += 1
        else:
            yield source, target


def _as_line(side: str, value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{side} is no text")
    try:
        return as_text(" ".join(value.replace("\r\n", "\n").split("\n")).encode(errors="surrogateescape"))
    except ValueError as reason:
        raise ValueError(f"{side} {reason}") from None


def _rows(path: Path, form: str, sides: Names, columns: Names | None) -> Iterator[tuple[Any, Any]]:
    """Source and target of each row; a column `translation`, as in the data sets of Hugging Face, holds both."""
    try:
        for frame in _frames(path, form, columns):
            nested = columns is None and "translation" in frame and isinstance(frame["translation"].iloc[0], dict)
            found = pd.DataFrame(frame["translation"].tolist()) if nested else frame
            wanted: list[Any] = [columns] if columns else [sides, ("source", "target")]
            if columns and found.columns.inferred_type == "integer":
                wanted = [tuple(int(name) - 1 for name in columns)]
            names = next((names for names in wanted if {*names} <= {*found}), None)
            if names is None:
                there, expected = ", ".join(map(str, [*found][:SHOWN])), " and ".join(columns or sides)
                how = "Name them with --columns SOURCE TARGET, or --columns 1 2 if line 1 is text"
                raise ValueError(f"it has the columns {there}; expected {expected}. {how}")
            yield from zip(found[names[0]], found[names[1]], strict=True)
    except Exception as error:  # of five readers and four ways of packing
        raise ValueError(f"{path} cannot be read: {str(error).strip()}.") from error


def _frames(path: Path, form: str, columns: Names | None) -> Iterator[pd.DataFrame]:
    """The table in parts. A TSV has no quotes."""
    how: dict[str, Any] = {"encoding_errors": "surrogateescape", "chunksize": ROWS_AT_ONCE}
    if form == ".parquet":
        with pyarrow.parquet.ParquetFile(path) as file:
            yield from (batch.to_pandas() for batch in file.iter_batches(ROWS_AT_ONCE))
    elif form in (".jsonl", ".json"):
        with pd.read_json(path, lines=True, dtype=False, encoding="utf-8-sig", **how) as reader:
            yield from reader
    else:
        how |= {"sep": "\t", "quoting": csv.QUOTE_NONE} if form == ".tsv" else {}
        is_numbered = columns is not None and all(name.isdecimal() for name in columns)
        with pd.read_csv(path, header=None if is_numbered else 0, dtype=object, keep_default_na=False, **how) as reader:
            for frame in reader:
                if not isinstance(frame.index, pd.RangeIndex):  # pandas takes the first field for a name of the row
                    raise ValueError("its rows have more fields than line 1 names; name them all, or delete the others")
                yield frame
