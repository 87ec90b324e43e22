"""Text of one's own: every form gives the same folder, and bad input is named by file and row."""

import csv
import gzip
import io
import itertools
import json
import lzma
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from pyarrow import parquet
from text_folders import put, text_folder
from typed import typed

from repro.corpora.catalogue import open_corpus
from repro.corpora.importer import Imported, import_text, share_of
from repro.corpora.parallel_text import normalised
from repro.corpora.prepare import prepare
from repro.runs.options import Options, chosen_scale

Said = pytest.CaptureFixture[str]
Patch = pytest.MonkeyPatch

PAIRS = [(f'line "{i}" \u2028 here', f"Zeile {i}\u00a0da") for i in range(400)]
SHARES = {"dev": 0.05, "test": 0.1}


def tsv(pairs: list[tuple[str, str]]) -> bytes:
    return "".join(f"{source}\t{target}\n" for source, target in [("en", "de"), *pairs]).encode()


def comma_separated(pairs: list[tuple[str, str]]) -> bytes:
    file = io.StringIO(newline="")
    csv.writer(file).writerows([("en", "de"), *pairs])
    return file.getvalue().encode()


def jsonl(pairs: list[tuple[str, str]]) -> bytes:
    return "".join(json.dumps({"de": target, "en": source, "id": 1}) + "\n" for source, target in pairs).encode()


def table(pairs: list[tuple[str, str]], nested: bool = False) -> bytes:
    rows, file = [{"en": source, "de": target} for source, target in pairs], io.BytesIO()
    parquet.write_table(pyarrow.Table.from_pylist([{"translation": row} for row in rows] if nested else rows), file)
    return file.getvalue()


def read(folder: Path) -> dict[str, list[str]]:
    return {path.name: path.read_bytes().decode().split("\n")[:-1] for path in sorted(folder.iterdir())}


def imported(text: Path, folder: Path, **how: Any) -> Imported:
    return import_text(text, folder / "made", "en-de", **{"shares": SHARES, **how})


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    folder = tmp_path_factory.mktemp("expected")
    imported(put(folder / "a.tsv", tsv(PAIRS)), folder)
    return read(folder / "made")


# What is written -----------------------------------------------------------------------------------------------------


def test_every_pair_stands_in_one_split_and_in_order(expected: dict[str, list[str]]) -> None:
    assert list(expected) == ["dev.de", "dev.en", "test.de", "test.en", "train.de", "train.en"]
    sides = ((expected[f"{split}.en"], expected[f"{split}.de"]) for split in ("train", "dev", "test"))
    splits = [list(zip(*of, strict=True)) for of in sides]
    assert sorted(itertools.chain(*splits)) == sorted(PAIRS)
    assert all(pairs == sorted(pairs, key=PAIRS.index) for pairs in splits)
    assert 5 < len(splits[1]) < 40  # of dev 20 are expected
    assert 20 < len(splits[2]) < 70  # 40


FORMS: dict[str, Callable[[], bytes]] = {
    ".csv.gz": lambda: gzip.compress(comma_separated(PAIRS)),
    ".jsonl.xz": lambda: lzma.compress(jsonl(PAIRS)),
    ".json": lambda: b"\xef\xbb\xbf" + jsonl(PAIRS),
    ".parquet": lambda: table(PAIRS),
    ".nested.parquet": lambda: table(PAIRS, nested=True),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_same_folder(
    tmp_path: Path, expected: dict[str, list[str]], form: str, monkeypatch: Patch
) -> None:
    monkeypatch.setattr("repro.corpora.importer.ROWS_AT_ONCE", 90)
    made = imported(put(tmp_path / "text" / f"corpus{form}", FORMS[form]()), tmp_path)
    assert read(tmp_path / "made") == expected
    assert (sum(made.pairs.values()), made.first, made.dropped) == (400, PAIRS[0], {})
    assert not list(tmp_path.glob(".*"))


@pytest.mark.parametrize("given", ["corpus", "corpus.en", "corpus.de.gz"])
def test_two_files_are_named_by_either_or_by_what_they_share(
    tmp_path: Path, expected: dict[str, list[str]], given: str
) -> None:
    target = text_folder(tmp_path, corpus=PAIRS) / "corpus.de"
    put(tmp_path / "corpus.de.gz", gzip.compress(target.read_bytes()))
    target.unlink()
    imported(tmp_path / given, tmp_path)
    assert read(tmp_path / "made") == expected


@pytest.mark.parametrize(
    ("content", "columns"),
    [
        (b"id\tde\ten\n7\tzwei\tone\n", None),  # line 1 names the languages
        (b"source\ttarget\tid\none\tzwei\t7\n", None),
        (b"7\tzwei\tone\n", ("3", "2")),  # no header
        (b"n\ttgt\tsrc\n7\tzwei\tone\n", ("src", "tgt")),
        (b"n\ttranslation\tsrc\n7\tzwei\tone\n", ("src", "translation")),  # a column of text may be called so
        (b"translation\tde\ten\n7\tzwei\tone\n", None),
        (b"\xef\xbb\xbfen\tde\r\none\tzwei\r\n", None),  # as Windows writes it
    ],
)
def test_columns_of_a_tsv(tmp_path: Path, content: bytes, columns: Any) -> None:
    held_out = dict.fromkeys(("dev", "test"), text_folder(tmp_path, t=[("x", "y")]) / "t.en")
    imported(put(tmp_path / "a.tsv", content), tmp_path, shares={}, held_out=held_out, columns=columns)
    made = read(tmp_path / "made")
    assert (made.pop("train.en"), made.pop("train.de")) == (["one"], ["zwei"])
    assert made == {"dev.en": ["x"], "dev.de": ["y"], "test.en": ["x"], "test.de": ["y"]}


def test_a_line_feed_becomes_a_blank_and_what_is_no_text_is_counted(tmp_path: Path) -> None:
    text = put(tmp_path / "a.jsonl", jsonl([("a", "b"), ("c", "d\nd"), ("", "leer"), ("e", "x" * 5_001)]))
    dev = put(tmp_path / "dev.tsv", b"en\tde\ne\tf\n")
    made = imported(text, tmp_path, shares={}, held_out={"dev": dev, "test": dev})
    held_out = {
        f"{split}.{language}": [line] for split in ("dev", "test") for language, line in (("en", "e"), ("de", "f"))
    }
    assert read(tmp_path / "made") == held_out | {"train.en": ["a", "c"], "train.de": ["b", "d d"]}
    dropped = {"source is empty": 1, "target is longer than 5,000 characters": 1}
    assert made == Imported(pairs={"train": 2, "dev": 1, "test": 1}, first=("a", "b"), dropped=dropped)


# Shares --------------------------------------------------------------------------------------------------------------


def test_no_source_stands_on_both_sides_however_often_it_comes(tmp_path: Path) -> None:
    again = [(f"Line {i}: here!", f"noch {i}") for i in range(400)]  # the same words
    imported(put(tmp_path / "a.tsv", tsv([*PAIRS, *again, *PAIRS])), tmp_path)
    made = read(tmp_path / "made")
    words = {split: {normalised(line) for line in made[f"{split}.en"]} for split in ("train", "dev", "test")}
    assert sum(map(len, words.values())) == len(set.union(*words.values())) == 400
    assert len(made["dev.en"]) == 3 * len(words["dev"])


def test_a_share_is_a_function_of_the_pair_alone(tmp_path: Path, expected: dict[str, list[str]]) -> None:
    imported(put(tmp_path / "a.tsv", tsv(PAIRS[::-1])), tmp_path)
    assert {name: lines[::-1] for name, lines in read(tmp_path / "made").items()} == expected
    # pinned: another hash would put lines that one has trained on into another's dev
    drawn = [share_of(f"line {i}", {"dev": 0.25, "test": 0.25}) for i in range(8)]
    assert drawn == ["train", "test", "dev", "dev", "dev", "dev", "train", "train"]


# Bad input -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.tsv", b"en\tde\na\tb\nc\td\te\n", "a.tsv cannot be read: .*Expected 2 fields in line 3, saw 3"),
        ("a.tsv", b"en\tde\na\tb\t1\nc\td\t2\n", "a.tsv cannot be read: its rows have more fields than line 1 names"),
        ("a.csv", b'en,de\na,"b\n', "a.csv cannot be read: .*EOF inside string"),
        ("a.tsv", b"EN\tDE\none\tzwei\n", "it has the columns EN, DE; expected en and de. .*--columns 1 2 if line 1"),
        ("a.tsv", b"en\tde\n", "a.tsv: expected pairs for train, got none"),
        ("a.jsonl", b'{"en": "a"}\n', "a.jsonl cannot be read: it has the columns en; expected en and de"),
        ("a.jsonl", b'{"en": "a",\n', "a.jsonl cannot be read: "),
        ("a.parquet", b"PAR1 and no more", "a.parquet cannot be read: "),
        ("a.tsv.gz", gzip.compress(b"en\tde\na\tb\n", mtime=0)[:-9], "a.tsv.gz cannot be read: "),
        ("a.en", b"a\nb\n", "a.en has 2 lines, .*a.de has 1; line i must translate line i"),
        ("a.xls", b"a,b\n", "a.xls is not there or of another kind: expected .tsv, .csv, .jsonl, .json, .parquet,"),
    ],
)
def test_bad_text_is_named_and_nothing_is_written(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    text = put(tmp_path / "text" / name, content)
    put(tmp_path / "text" / "a.de", b"a\n")
    with pytest.raises(ValueError, match=message):
        imported(text, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["text"]


BAD = {
    b"one\t": "target is empty",
    b"one": "target is empty|target is no text",
    b"a\0b\tx": "source holds a NUL character",
    b"one\tcaf\xe9": "target is not UTF-8",
}


@pytest.mark.parametrize("line", BAD)
def test_what_is_no_sentence_is_left_out_of_train_and_refused_elsewhere(tmp_path: Path, line: bytes) -> None:
    lines = tsv(PAIRS).split(b"\n")
    bad = put(tmp_path / "dev.tsv", b"\n".join([*lines[:2], line, *lines[2:]]))
    made = imported(bad, tmp_path)
    [(reason, n)] = made.dropped.items()
    assert (sum(made.pairs.values()), n) == (400, 1)
    assert reason in BAD[line]
    with pytest.raises(ValueError, match=rf"^{bad}, row 2: ({BAD[line]}); correct it, or leave it out"):
        imported(put(tmp_path / "a.tsv", tsv(PAIRS)), tmp_path / "two", held_out={"dev": bad})
    assert not (tmp_path / "two" / "made").exists()


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"shares": {"dev": 0.1}}, "There is no text for test: .* --test FILE, or .*--test-share 0.01"),
        ({"shares": {"dev": 0.5, "test": 0.1}}, "Shares must lie between 0 and 0.5 of the training text, got .*0.5"),
        ({"shares": {"dev": 1e-9, "test": 0.1}}, "a.tsv: expected pairs for dev, got none"),
        ({"columns": ("1", "3")}, "it has the columns 0, 1; expected 1 and 3"),
        ({"columns": ("src", "tgt")}, "it has the columns en, de; expected src and tgt"),
    ],
)
def test_bad_options_are_named(tmp_path: Path, how: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        imported(put(tmp_path / "a.tsv", tsv(PAIRS)), tmp_path, **how)
    assert not (tmp_path / "made").exists()


def test_a_folder_that_holds_something_is_left_to_the_user(tmp_path: Path) -> None:
    mine = put(tmp_path / "made" / "train.en", b"mine\n")
    with pytest.raises(ValueError, match="Expected a new or empty folder, got .*made, which is there"):
        imported(put(tmp_path / "text" / "train.tsv", tsv(PAIRS)), tmp_path)
    assert mine.read_bytes() == b"mine\n"
    with pytest.raises(ValueError, match=r"is a folder: .* needs no import: --corpus folder --data-dir "):
        imported(tmp_path, tmp_path / "to")


# The command ---------------------------------------------------------------------------------------------------------


def test_preparing_tells_of_unknown_tokens_and_of_what_was_left_out(tmp_path: Path, capsys: Said) -> None:
    train = [("a b", "c"), ("", "c"), ("a", "c " * 19 + "x y")]
    put(text_folder(tmp_path, train=train, dev=[("a", "c")], test=[("b", "d")]) / "vocab", b"a\nb\nc\nd\n")
    said = typed(
        capsys, "data", "prepare", "folder-en-de", f"--data-dir={tmp_path}", f"--cache-dir={tmp_path / 'cache'}"
    )
    assert "folder-en-de: train 2, dev 1, test 1 pairs, 7 tokens" in said
    assert "; left out: {'source is empty': 1}\n" in said
    assert "\nmanifest " in said
    assert "Note on folder-en-de: 9.1 % of the target tokens of train are not in the vocabulary" in said  # 2 of 22: x y
    assert said.count("not in the vocabulary") == 1


def test_the_command(tmp_path: Path, capsys: Said, monkeypatch: Patch) -> None:
    """What it advises first makes what the second command that it advises reads."""
    monkeypatch.chdir(tmp_path)  # the cache is there
    lines = b"".join(b"l\xc3\xadnea %d\t\xe7\xac\xac %d\n" % (i, i) for i in range(200))
    text = put(tmp_path / "a.tsv", lines + b"\n\t\n")
    command = ["data", "import", text, "--pair=es-zh-Hans", "--to=my own", "--columns", "1", "2", "--test-share=0.1"]
    assert "There is no text for dev" in typed(capsys, *command, code=2)
    said = typed(capsys, *command, "--dev-share=0.1")
    assert "pairs; left out: {'source is empty': 1}. The first one:\n  línea 0\n  第 0\n" in said
    assert {path.name for path in Path("my own").iterdir()} >= {"train.zh-Hans", "dev.es", "test.zh-Hans"}
    first, second = map(shlex.split, said.split("What next:\n")[1].splitlines())
    said = typed(capsys, *first[first.index("data") :])
    assert "folder-es-zh-Hans: train 1" in said
    assert "Note" not in said  # no source stands on both sides
    options = Options.read("table3_A", second[second.index("--pair") :])
    scale, corpus = chosen_scale(options), open_corpus("folder", options.pair, data_dir=options.data_dir, cache=Path())
    subwords = corpus.subwords(scale.subwords(options.pair), asked=None)
    made = prepare(corpus, subwords=subwords, cache=Path("cache"), max_length=scale.max_length, rules=scale.rules)
    assert f"\n{made.card / 'data_card.json'}\n" in said
