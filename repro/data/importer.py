"""Text of one's own, in the forms that it comes in, into a folder as `--data-dir` takes it.

A text is a table (TSV, JSONL, Parquet) or two files of lines, plain or packed (.gz, .xz, .zst). It is read once, as a
stream. A line that cannot be read is named and nothing is written; what is no sentence (empty, far too long) stays in
the training text, where preparing drops it and counts it by reason.
"""

import contextlib
import gzip
import hashlib
import io
import json
import lzma
import zlib
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any, BinaryIO

from repro.data.corpora import DEV_NAMES, GIVEN, refuse_several
from repro.data.pair import languages
from repro.data.parallel_text import as_text
from repro.data.same_sentence import normalised
from repro.storage import atomic
from repro.storage.folder_cache import made_new

SPLITS = {"train": ("train",), "dev": DEV_NAMES, "test": ("test",)}  # and what the files may be called
PACKED = (".gz", ".xz", ".zst")
TABLES = (".tsv", ".jsonl", ".parquet")
FORMS = f"{', '.join(TABLES)}, or two files of lines whose names end in the languages; plain, {', '.join(PACKED)}"
LONGEST_LINE = 1 << 24  # bytes; a file without line ends must not fill the memory
PAIRS_AT_ONCE = 10_000
SHOWN = 200  # characters of bad input
BOM = "\ufeff"
Names = tuple[str, str]  # of source and target
Pairs = Iterator[tuple[str, str]]


@dataclass(frozen=True, kw_only=True)
class Imported:
    """What was written."""

    pairs: Mapping[str, int]  # by split
    first: tuple[str, str]  # pair of the training text, as it was read
    joined: int  # sentences that were on several lines


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
    much of the training text is to become one of them. That is drawn by a hash of the words of the source: the same
    in every run, and no source sentence stands on both sides, however often it comes.
    """
    sides = languages(pair)
    if columns and len({int(name) if name.isdecimal() else name for name in columns}) == 1:
        raise ValueError(
            f"--columns {' '.join(columns)}: expected two columns, got one twice, so source and target would be the "
            "same text. Name that of each."
        )
    given = {split: one for split, one in (held_out or {}).items() if one is not None}
    texts = _found(text, sides, given) | given
    drawn = {split: share for split, share in (shares or {}).items() if share is not None}
    _check_splits(text, texts, drawn)
    streams = {split: _pairs(one, sides, columns) for split, one in texts.items()}
    vocabulary = text / GIVEN

    def make(work: Path) -> Imported:
        written = _Written(sides)

        def fill(files: Mapping[str, atomic.Hashed]) -> None:
            for split, pairs in streams.items():
                written.add(split, texts[split], pairs, drawn if split == "train" else {}, files)

        _open_all(work, [f"{split}.{language}" for split in SPLITS for language in sides], {}, fill)
        if vocabulary.is_file():
            atomic.write_bytes(work / GIVEN, vocabulary.read_bytes())
        for split, n in written.pairs.items():
            if not n:
                advice = f"Ask for a larger --{split}-share." if split in drawn else "Give it a text that has some."
                raise ValueError(f"{texts.get(split, text)}: expected pairs for {split}, got none. {advice}")
        return Imported(pairs=written.pairs, first=written.first, joined=written.joined)

    return made_new(folder, make)


def _check_splits(text: Path, texts: Mapping[str, Path], drawn: Mapping[str, float]) -> None:
    for split, share in drawn.items():
        if not 0 < share < 0.5:
            raise ValueError(f"--{split}-share must lie between 0 and 0.5 of the training text, got {share}.")
        if split in texts:
            raise ValueError(f"--{split}-share asks for what is there already: {texts[split]}. Leave one out.")
    for split in SPLITS:
        if split not in texts and split not in drawn:
            advice = f"Name it with --{split}, or take a part of the training text with --{split}-share 0.01."
            if split == "train":
                advice = "A folder has files train.*; else name a table, or two files by what comes before .LANGUAGE."
            raise ValueError(f"{text} has no text for {split}: expected {FORMS}. {advice}")


def _open_all(
    folder: Path,
    names: list[str],
    files: dict[str, atomic.Hashed],
    fill: Callable[[Mapping[str, atomic.Hashed]], None],
) -> None:
    """Have all files open at once, each of which is whole in the end or absent."""
    if not names:
        fill(files)
        return
    name, *others = names
    atomic.write_bytes(folder / name, lambda file: _open_all(folder, others, {**files, name: file}, fill))


# Where ---------------------------------------------------------------------------------------------------------------


def _found(text: Path, sides: Names, given: Container[str]) -> dict[str, Path]:
    """The texts of a folder, by split, but those that are given; of anything else it is the training text."""
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
    """The table, or the two files, whose names begin with this. Raises ValueError where there is more than one text."""
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
    """The file of each language: named by what stands before it, or by one of the two."""
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
    """The pairs of a text in whatever form it has."""
    form = (text.with_suffix("") if text.suffix in PACKED else text).suffix
    if text.is_file() and form in TABLES:
        return {".tsv": _of_tsv, ".jsonl": _of_jsonl, ".parquet": _of_parquet}[form](text, sides, columns)
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


def _of_tsv(path: Path, sides: Names, columns: Names | None) -> Pairs:
    places: tuple[int, int] | None = None
    n_columns = 0
    for number, line in enumerate(_lines(path), 1):
        cells = line.split("\t")
        if places is None:
            n_columns = len(cells)
            places, is_header = _places(path, cells, sides, columns)
            if is_header:
                continue
        if len(cells) != n_columns:
            raise ValueError(
                f"{path}, line {number:,} has {len(cells)} columns, but line 1 has {n_columns}. Correct it: a tab "
                "separates two columns and is nowhere else."
            )
        yield cells[places[0]], cells[places[1]]


def _places(path: Path, first: list[str], sides: Names, columns: Names | None) -> tuple[tuple[int, int], bool]:
    """Which columns are source and target, and whether the first line names them."""
    if columns and all(name.isdecimal() for name in columns):
        source, target = (int(name) - 1 for name in columns)
        if not (0 <= source < len(first) and 0 <= target < len(first)):
            raise ValueError(f"{path}, line 1 has {len(first)} columns, expected numbers {' and '.join(columns)}.")
        return (source, target), False
    for names in [columns] if columns else [sides, ("source", "target")]:
        if all(name in first for name in names):
            return (first.index(names[0]), first.index(names[1])), True
    if columns or len(first) < 2:
        raise ValueError(
            f"{path}, line 1 has the columns {', '.join(map(repr, first))[:SHOWN]}; expected "
            f"{' and '.join(columns or sides)}. Name two with --columns SOURCE TARGET, or give their numbers where "
            "line 1 is text already: --columns 1 2."
        )
    return (0, 1), False


def _of_jsonl(path: Path, sides: Names, columns: Names | None) -> Pairs:
    for number, line in enumerate(_lines(path), 1):
        try:
            found = json.loads(line)
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict):
            raise ValueError(
                f"{path}, line {number:,} is not a JSON object: expected one per line, got {line[:SHOWN]!r}."
            )
        yield _chosen(found, sides, columns, f"{path}, line {number:,}")


def _of_parquet(path: Path, sides: Names, columns: Names | None) -> Pairs:
    if path.suffix in PACKED:
        raise ValueError(f"{path} is compressed, which Parquet is inside already. Decompress it first.")
    arrow = _pyarrow(path)
    number = 0
    try:
        table = arrow.parquet.ParquetFile(path)
        names = table.schema_arrow.names
        wanted = {*(columns or (*sides, "source", "target")), "translation"}
        for batch in table.iter_batches(PAIRS_AT_ONCE, columns=[name for name in names if name in wanted]):
            for row in batch.to_pylist():
                number += 1
                yield _chosen(row or dict.fromkeys(names), sides, columns, f"{path}, row {number:,}")
    except (OSError, arrow.ArrowException) as error:
        raise ValueError(f"{path} is not a whole Parquet file ({_brief(error)}). Get it again.") from error


def _chosen(row: Mapping[str, Any], sides: Names, columns: Names | None, where: str) -> tuple[str, str]:
    """Source and target of a row whose columns have names, or of the `translation` in it."""
    for names in [columns] if columns else [sides, ("source", "target")]:
        for level in (row, row.get("translation")):
            if isinstance(level, dict) and all(name in level for name in names):
                return _text(level[names[0]], f"{where}: {names[0]!r}"), _text(
                    level[names[1]], f"{where}: {names[1]!r}"
                )
    one, other = columns or sides
    raise ValueError(
        f"{where} has {', '.join(map(repr, row))[:SHOWN] or 'nothing'}; expected {one!r} and {other!r}. Name others "
        "with --columns SOURCE TARGET."
    )


def _text(value: Any, where: str) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{where} is {str(value)[:SHOWN]}, expected text. Correct it.")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{where} holds half a character, {value[:SHOWN]!r}. Correct it.") from None
    return value


# Lines ---------------------------------------------------------------------------------------------------------------


def _lines(path: Path) -> Iterator[str]:
    """The lines of a file without their ends; a ValueError names the line that is no text."""
    with _unpacked(path) as file:
        number = 0
        while raw := file.readline(LONGEST_LINE):
            number += 1
            if len(raw) == LONGEST_LINE and not raw.endswith(b"\n"):
                raise ValueError(
                    f"{path}, line {number:,} is longer than {LONGEST_LINE:,} bytes: expected a sentence per line. Is "
                    "this a file of another kind?"
                )
            try:
                line = raw.removesuffix(b"\n").removesuffix(b"\r").decode()
            except UnicodeDecodeError as error:
                raise ValueError(
                    f"{path}, line {number:,} is not UTF-8 (byte {error.start + 1:,} of it). Convert the file first: "
                    "iconv -f ENCODING -t UTF-8"
                ) from None
            yield line.removeprefix(BOM) if number == 1 else line


@contextmanager
def _unpacked(path: Path) -> Iterator[BinaryIO]:
    """The bytes of a file, unpacked as the end of its name says."""
    with contextlib.ExitStack() as stack:
        try:
            if path.suffix == ".gz":
                file: Any = stack.enter_context(gzip.open(path, "rb"))
            elif path.suffix == ".xz":
                file = stack.enter_context(lzma.open(path, "rb"))
            elif path.suffix == ".zst":
                packed = _pyarrow(path).input_stream(str(path), compression="zstd")
                file = stack.enter_context(io.BufferedReader(packed))
            else:
                file = stack.enter_context(open(path, "rb"))
            yield file
        except (EOFError, gzip.BadGzipFile, zlib.error, lzma.LZMAError) as error:
            raise ValueError(f"{path} is not a whole {path.suffix} file ({_brief(error)}). Get it again.") from error
        except OSError as error:  # as a ValueError, or it would pass for one of the file that is being written
            raise ValueError(f"{path} cannot be read ({_brief(error)}). Get it again.") from error


def _brief(error: BaseException) -> str:
    return str(error).partition("\n")[0]


def _pyarrow(path: Path) -> Any:
    """The library, which comes with MLflow; nothing else here needs it."""
    try:
        import pyarrow.parquet
    except ImportError:
        raise ModuleNotFoundError(
            f"{path} needs pyarrow to be read, which is not installed: pip install pyarrow"
        ) from None
    return pyarrow


# Splits --------------------------------------------------------------------------------------------------------------


def share_of(source: str, drawn: Mapping[str, float]) -> str:
    """The split that a pair of the training text falls to, by a hash of the words of its source."""
    words = normalised(source) or source
    place = int.from_bytes(hashlib.blake2b(words.encode(), digest_size=8).digest()) / 2**64
    for split, share in drawn.items():
        if place < share:
            return split
        place -= share
    return "train"


class _Written:
    """What has gone into the files so far."""

    def __init__(self, sides: Names) -> None:
        self.sides = sides
        self.pairs = dict.fromkeys(SPLITS, 0)
        self.first = ("", "")
        self.joined = 0

    def add(
        self,
        split: str,
        text: Path,
        pairs: Iterable[tuple[str, str]],
        drawn: Mapping[str, float],
        files: Mapping[str, atomic.Hashed],
    ) -> None:
        """Write the pairs of `text`; of the training text each to the split that it falls to."""
        held: dict[str, list[tuple[str, str]]] = {name: [] for name in SPLITS}
        for number, pair in enumerate(pairs, start=1):
            source, target = (self._on_one_line(line) for line in pair)
            if split != "train" and not (_is_sentence(source) and _is_sentence(target)):
                raise ValueError(
                    f"{text}, pair {number:,} of {split}: expected a sentence on both sides, as a score counts every "
                    f"line of held-out text, got {source[:40]!r} and {target[:40]!r}. Correct it, or leave it out."
                )
            if split == "train" and not any(self.first):
                self.first = source, target
            may_move = drawn and _is_sentence(source) and _is_sentence(target)
            to = share_of(source, drawn) if may_move else split
            held[to].append((source, target))
            if len(held[to]) == PAIRS_AT_ONCE:
                self._write(to, held[to], files)
        for to, rest in held.items():
            self._write(to, rest, files)

    def _write(self, split: str, held: list[tuple[str, str]], files: Mapping[str, atomic.Hashed]) -> None:
        for i, language in enumerate(self.sides):
            files[f"{split}.{language}"].write("".join(f"{pair[i]}\n" for pair in held).encode())
        self.pairs[split] += len(held)
        held.clear()

    def _on_one_line(self, line: str) -> str:
        if "\n" not in line:
            return line
        self.joined += 1
        return line.replace("\r\n", " ").replace("\n", " ")


def _is_sentence(line: str) -> bool:
    """Whether held-out text may hold the line."""
    try:
        as_text(line.encode())
    except ValueError:
        return False
    return True
