"""Text of one's own: every form gives the same folder, and bad input is named by file and line."""

import csv
import gzip
import io
import json
import lzma
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from repro.cli.data import main
from repro.corpora.catalogue import open_corpus
from repro.corpora.importer import Imported, import_text, share_of
from repro.corpora.prepare import prepare
from repro.corpora.same_sentence import normalised
from repro.runs.options import Options, chosen_scale

PAIRS = [(f"line {i} \u2028 here", f"Zeile {i}\u00a0da") for i in range(400)]
SHARES = {"dev": 0.05, "test": 0.1}
PACKED: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".gz": gzip.compress,
    ".xz": lzma.compress,
    ".zst": lambda content: pyarrow.compress(content, codec="zstd", asbytes=True),
}


def tsv(pairs: list[tuple[str, str]]) -> bytes:
    return "".join(f"{source}\t{target}\n" for source, target in [("en", "de"), *pairs]).encode()


def comma_separated(pairs: list[tuple[str, str]]) -> bytes:
    file = io.StringIO(newline="")
    csv.writer(file).writerows([("en", "de"), *pairs])
    return file.getvalue().encode()


def jsonl(pairs: list[tuple[str, str]], **more: Any) -> bytes:
    return "".join(json.dumps({"de": target, "en": source} | more) + "\n" for source, target in pairs).encode()


def put(path: Path, content: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def table(path: Path, **columns: Any) -> Path:
    parquet.write_table(pyarrow.table(columns), path)
    return path


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
    splits = {
        split: list(zip(expected[f"{split}.en"], expected[f"{split}.de"], strict=True))
        for split in ("train", "dev", "test")
    }
    assert sorted(pair for pairs in splits.values() for pair in pairs) == sorted(PAIRS)
    for pairs in splits.values():
        assert pairs == sorted(pairs, key=PAIRS.index)
    assert 5 < len(splits["dev"]) < 40  # 20 are expected
    assert 20 < len(splits["test"]) < 70  # 40


@pytest.mark.parametrize(
    ("form", "packing"),
    [("tsv", ""), ("csv", ".gz"), ("jsonl", ".xz"), ("json", ".zst"), ("lines", ""), ("lines", ".zst")],
)
def test_every_form_gives_the_same_folder(
    tmp_path: Path, expected: dict[str, list[str]], form: str, packing: str
) -> None:
    pack = PACKED[packing]
    text = tmp_path / "text" / f"corpus.{form}{packing}"
    if form == "lines":
        text = tmp_path / "text" / "corpus"
        for i, language in enumerate(("en", "de")):
            put(Path(f"{text}.{language}{packing}"), pack("".join(f"{pair[i]}\n" for pair in PAIRS).encode()))
    else:
        put(text, pack({"tsv": tsv, "csv": comma_separated, "jsonl": jsonl, "json": jsonl}[form](PAIRS)))
    made = imported(text, tmp_path)
    assert read(tmp_path / "made") == expected
    assert (sum(made.pairs.values()), made.first, made.joined, made.empty) == (400, PAIRS[0], 0, 0)
    assert not list(tmp_path.glob(".*"))


@pytest.mark.parametrize("nested", [False, True])
def test_parquet_gives_the_same_folder(tmp_path: Path, expected: dict[str, list[str]], nested: bool) -> None:
    sides = {"en": [source for source, _ in PAIRS], "de": [target for _, target in PAIRS]}
    rows = [{"en": source, "de": target} for source, target in PAIRS]
    imported(table(tmp_path / "a.parquet", id=[*range(400)], **({"translation": rows} if nested else sides)), tmp_path)
    assert read(tmp_path / "made") == expected


@pytest.mark.parametrize(
    ("content", "columns"),
    [
        (b"id\tde\ten\n7\tzwei\tone\n", None),  # line 1 names the languages
        (b"source\ttarget\tid\none\tzwei\t7\n", None),
        (b"7\tzwei\tone\n", ("3", "2")),  # no header
        (b"id\tde\ten\n7\tzwei\tone\n", ("3", "2")),  # line 1 names these columns, so it is no text
        (b"n\ttgt\tsrc\n7\tzwei\tone\n", ("src", "tgt")),
        (b"\xef\xbb\xbfen\tde\r\none\tzwei\r\n", None),  # as Windows writes it
    ],
)
def test_columns_of_a_tsv(tmp_path: Path, content: bytes, columns: Any) -> None:
    held_out = dict.fromkeys(("dev", "test"), put(tmp_path / "t.en", b"x\n"))
    put(tmp_path / "t.de", b"y\n")
    imported(put(tmp_path / "a.tsv", content), tmp_path, shares={}, held_out=held_out, columns=columns)
    assert read(tmp_path / "made") == {
        "train.en": ["one"], "train.de": ["zwei"], "dev.en": ["x"], "dev.de": ["y"], "test.en": ["x"], "test.de": ["y"],
    }  # fmt: skip


@pytest.mark.parametrize("content", [b"EN\tDE\none\tzwei\n", b"one\tzwei\n"])
def test_no_column_is_guessed(tmp_path: Path, content: bytes) -> None:
    text = put(tmp_path / "a.tsv", content)
    refused = r"line 1 has the columns .*; expected en and de\. Say which .* --columns 1 2 if it is the first pair"
    with pytest.raises(ValueError, match=refused):
        imported(text, tmp_path)


def test_empty_lines_of_tables_are_left_out_and_counted(tmp_path: Path) -> None:
    train = put(tmp_path / "a.tsv", b"\nen\tde\n\none\teins\n\t\n \xc2\xa0\xe3\x80\x80\ntwo\tzwei\n\n")
    dev = put(tmp_path / "dev.json", b'\n{"en": "three", "de": "drei"}\n\xe2\x80\xa8\n\n')
    test = put(tmp_path / "test.csv", b'en,de\n\n"four, or\nso","say ""vier"""\n,\n')
    made = import_text(train, tmp_path / "made", "en-de", held_out={"dev": dev, "test": test})
    assert made == Imported(pairs={"train": 2, "dev": 1, "test": 1}, first=("one", "eins"), joined=1, empty=10)
    assert read(tmp_path / "made") == {
        "train.en": ["one", "two"], "train.de": ["eins", "zwei"], "dev.en": ["three"], "dev.de": ["drei"],
        "test.en": ["four, or so"], "test.de": ['say "vier"'],
    }  # fmt: skip


def test_a_folder_gives_what_it_has_and_its_vocabulary(tmp_path: Path) -> None:
    text = tmp_path / "text"
    put(
        text / "train.jsonl.xz",
        lzma.compress(jsonl([("a", "b")], id=1) + b'{"translation": {"en": "c", "de": "d\\nd"}}\n'),
    )
    put(text / "valid.en.gz", gzip.compress(b"e\n", mtime=0))
    put(text / "valid.de", b"f\n")
    put(text / "test.tsv", b"en\tde\ng\th\n")
    put(text / "vocab", b"a\nb\n")
    made = imported(text, tmp_path, shares={})
    assert read(tmp_path / "made") == {
        "train.en": ["a", "c"], "train.de": ["b", "d d"], "dev.en": ["e"], "dev.de": ["f"],
        "test.en": ["g"], "test.de": ["h"], "vocab": ["a", "b"],
    }  # fmt: skip
    assert made == Imported(pairs={"train": 2, "dev": 1, "test": 1}, first=("a", "b"), joined=1, empty=0)


def test_of_two_dev_texts_none_is_chosen_unless_one_is_named(tmp_path: Path) -> None:
    text = tmp_path / "text"
    for name in ("train", "valid", "test"):
        put(text / f"{name}.tsv", tsv([(name, "x")]))
    for language in ("en", "de"):
        put(text / f"val.{language}", b"val\n")
    refused = rf"{text} has valid\.\* and val\.\*: expected one dev text, got 2\. Move what is not meant"
    with pytest.raises(ValueError, match=refused):
        imported(text, tmp_path, shares={})
    imported(text, tmp_path, shares={}, held_out={"dev": text / "val"})
    assert read(tmp_path / "made")["dev.en"] == ["val"]


@pytest.mark.parametrize("pair", [("empty", ""), ("a\0b", "x")])
def test_a_held_out_pair_without_a_sentence_is_refused_at_once(tmp_path: Path, pair: tuple[str, str]) -> None:
    train, dev = put(tmp_path / "a.tsv", tsv(PAIRS)), put(tmp_path / "dev.tsv", tsv([PAIRS[0], pair, PAIRS[1]]))
    refused = rf"^{dev}, pair 2 of dev: expected a sentence on both sides, .*Correct it, or leave it out"
    with pytest.raises(ValueError, match=refused):
        import_text(train, tmp_path / "made", "en-de", held_out={"dev": dev}, shares={"test": 0.1})
    assert not (tmp_path / "made").exists()


def test_one_of_two_packed_files_names_both(tmp_path: Path) -> None:
    for language, i in (("en", 0), ("de", 1)):
        put(tmp_path / f"train.{language}.gz", gzip.compress("".join(f"{pair[i]}\n" for pair in PAIRS).encode()))
    for name in ("train.en.gz", "train.de.gz"):
        assert import_text(tmp_path / name, tmp_path / f"to-{name}", pair="en-de", shares=SHARES).first == PAIRS[0]


def test_a_text_that_is_there_in_two_forms_is_refused(tmp_path: Path) -> None:
    text = tmp_path / "text"
    for name in ("train.en", "train.de"):
        put(text / name, b"a\n")
    put(text / "train.tsv.gz", gzip.compress(tsv(PAIRS)))
    refused = (
        rf"^{text} has train\.tsv\.gz, train\.en, train\.de: expected one text for train, a table or a file for each"
    )
    with pytest.raises(ValueError, match=refused):
        import_text(text, tmp_path / "made", "en-de", shares=SHARES)


def test_an_empty_folder_may_be_a_link_but_not_where_one_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = put(tmp_path / "text.tsv", tsv(PAIRS))
    (tmp_path / "place").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "place")
    import_text(text, tmp_path / "link", pair="en-de", shares=SHARES)
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "place" / "train.en").is_file()
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    with pytest.raises(ValueError, match="expected a folder of its own, got the one that you are in|Expected a folder"):
        import_text(text, Path(), pair="en-de", shares=SHARES)


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
    drawn = {"dev": 0.25, "test": 0.25}
    expected_splits = ["train", "test", "dev", "dev", "dev", "dev", "train", "train"]
    assert [share_of(f"line {i}", drawn) for i in range(8)] == expected_splits


@given(st.lists(st.text(max_size=5), min_size=1, max_size=5), st.floats(0.01, 0.4))
def test_a_larger_share_keeps_what_a_smaller_one_has(lines: list[str], share: float) -> None:
    for line in lines:
        if share_of(line, {"dev": share / 2}) == "dev":
            assert share_of(line, {"dev": share}) == "dev"


def test_what_is_no_sentence_never_becomes_held_out(tmp_path: Path) -> None:
    odd = [("", "leer"), ("  ", "leer"), ("one", ""), ("x" * 5_001, "lang"), ("nul\0", "null")]
    imported(put(tmp_path / "a.tsv", tsv([*odd * 20, *PAIRS])), tmp_path, shares={"dev": 0.49, "test": 0.49})
    made = read(tmp_path / "made")
    held_out = [line for name, lines in made.items() if "train" not in name for line in lines]
    assert all(line.strip() and len(line) <= 5_000 and "\0" not in line for line in held_out)
    assert sum(len(made[f"{split}.en"]) for split in ("train", "dev", "test")) == 500
    found = open_corpus("folder", "en-de", data_dir=tmp_path / "made", cache=tmp_path)
    list(found.dev.pairs()), list(found.test.pairs())  # nothing is refused


# Bad input -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.tsv", b"en\tde\nc\td\te\n", "a.tsv, line 2 has 3 columns, but the first one has 2. Correct it: a tab"),
        ("a.csv", b'en,de\na,"b\n', "a.csv, line 2 is not CSV .*Correct it"),
        ("a.tsv", b"en\tde\nc\td\xe9\n", r"a.tsv, line 2 is not UTF-8 \(byte 4 of it\). Convert the file first: iconv"),
        ("a.tsv", b"", "a.tsv: expected pairs for train, got none"),
        ("a.jsonl", b'{"en": "a", "de": "b"}\n{"en": "c"}\n', "a.jsonl, line 2 has 'en'; expected 'en' and 'de'. Name"),
        ("a.jsonl", b'{"en": "a", "de": null}\n', "a.jsonl, line 1: 'de' is None, expected text. Correct it."),
        ("a.jsonl", b'{"en": "a",\n', 'a.jsonl, line 1 is not a JSON object: .*, got \'{"en": "a",\''),
        ("a.parquet", b"PAR1 and no more", r"a.parquet is not a whole Parquet file \("),
        ("a.tsv.gz", gzip.compress(b"en\tde\n", mtime=0)[:-9], "a.tsv.gz cannot be read as a whole .gz file"),
        ("a.tsv.xz", lzma.compress(b"en\tde\n")[:-9], "a.tsv.xz cannot be read as a whole .xz file"),
        ("a.tsv.zst", PACKED[".zst"](b"en\tde\n")[:-9], "a.tsv.zst cannot be read as a whole .zst file"),
        ("a.json", b'[{"en": "a", "de": "b"}]\n', "a.json, line 1 is not a JSON object: expected one per line"),
        ("a.xls", b"a,b\n", "a.xls is a file of another kind: expected .tsv, .csv, .jsonl, .json, .parquet, or two"),
    ],
)
def test_bad_text_is_named_and_nothing_is_written(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    text = put(tmp_path / "text" / name, content)
    with pytest.raises(ValueError, match=message):
        imported(text, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["text"]


def test_sides_of_different_length_are_named(tmp_path: Path) -> None:
    put(tmp_path / "a.en", b"a\nb\nc\n")
    put(tmp_path / "a.de", b"a\nb\n")
    with pytest.raises(ValueError, match="a.en has 3 lines, .*a.de has 2; line i must translate line i"):
        imported(tmp_path / "a", tmp_path)


def test_rows_of_parquet_are_named(tmp_path: Path) -> None:
    for columns, message in (
        ({"en": ["a", "b"], "de": ["c", None]}, "row 2: 'de' is None, expected text"),
        ({"x": ["a"], "y": ["c"]}, "row 1 has 'x', 'y'; expected 'en' and 'de'"),
    ):
        with pytest.raises(ValueError, match=f"a.parquet, {message}"):
            imported(table(tmp_path / "a.parquet", **columns), tmp_path)


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"shares": {"dev": 0.1}}, "a.tsv has no text for test: .* Name it with --test, or .*--test-share 0.01"),
        ({"shares": {"dev": 0.5, "test": 0.1}}, "--dev-share must lie between 0 and 0.5 of the training text, got 0.5"),
        ({"shares": {"dev": float("nan"), "test": 0.1}}, "got nan"),
        (
            {"held_out": {"dev": Path("x.tsv")}},
            "--dev-share: there is a text for dev already, x.tsv. Leave one of them",
        ),
        (
            {"shares": {"dev": 1e-9, "test": 0.1}},
            "a.tsv: expected pairs for dev, got none. Ask for a larger --dev-share",
        ),
        ({"columns": ("1", "3")}, "a.tsv, line 1 has 2 columns, so --columns 1 3 names one that is not there"),
        ({"columns": ("0", "1")}, "so --columns 0 1 names one"),
        ({"columns": ("2", "2")}, "--columns 2 2: expected two columns, got one twice. Name that of the source"),
        ({"columns": ("src", "tgt")}, "a.tsv, line 1 has the columns .*; expected src and tgt"),
    ],
)
def test_bad_options_are_named(tmp_path: Path, how: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        imported(put(tmp_path / "a.tsv", tsv(PAIRS)), tmp_path, **how)
    assert not (tmp_path / "made").exists()


def test_a_folder_that_holds_something_is_left_alone(tmp_path: Path) -> None:
    text = put(tmp_path / "a.tsv", tsv(PAIRS))
    mine = put(tmp_path / "made" / "train.en", b"mine\n")
    with pytest.raises(ValueError, match="Expected a new or empty folder, got .*made, which is there"):
        imported(text, tmp_path)
    assert mine.read_bytes() == b"mine\n"


# The command ---------------------------------------------------------------------------------------------------------


def test_what_it_advises_next_can_be_typed_without_a_clone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = put(tmp_path / "a.tsv", tsv([(f"a {i}", f"b {i}") for i in range(200)]))
    command = ["import", str(text), "--pair=en-de", "--dev-share=0.1", "--test-share=0.1"]
    assert main([*command, f"--to={tmp_path / 'my own'}"]) == 0
    advised = capsys.readouterr().out.split("What next:\n")[1].splitlines()
    assert [shlex.split(line)[-2:] for line in advised] == [["--data-dir", str(tmp_path / "my own")]] * 2
    assert " experiments/table3_A.py --pair en-de --data-dir " in advised[1]
    (tmp_path / "experiments").mkdir()
    monkeypatch.setattr("repro.runs.command.PACKAGE", tmp_path)
    assert main([*command, f"--to={tmp_path / 'two'}"]) == 0
    assert f"repro run table3_A --pair en-de --data-dir {tmp_path / 'two'}\n" in capsys.readouterr().out


def test_what_it_advises_first_makes_what_the_second_reads(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # the cache is there
    put(tmp_path / "a.tsv", tsv([(f"a {i}", f"b {i}") for i in range(200)]))
    assert main(["import", "a.tsv", "--pair=en-de", "--dev-share=0.1", "--test-share=0.1", "--to=made"]) == 0
    first, second = map(shlex.split, capsys.readouterr().out.split("What next:\n")[1].splitlines())
    assert main(first[first.index("data") + 1 :]) == 0
    options = Options.read("table3_A", second[second.index("--pair") :])
    scale, text = chosen_scale(options), open_corpus("folder", "en-de", data_dir=options.data_dir, cache=Path("cache"))
    subwords = text.subwords(scale.subwords("en-de"), asked=None)
    made = prepare(text, subwords=subwords, cache=Path("cache"), max_length=scale.max_length, rules=scale.rules)
    assert f"\n{made.card / 'data_card.md'}\n" in capsys.readouterr().out


def test_of_text_that_came_in_pieces_it_advises_no_size(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for split in ("train", "dev", "test"):
        put(tmp_path / "text" / f"{split}.tsv", b"en\tde\na\tb\n")
    put(tmp_path / "text" / "vocab", b"a\nb\n")
    assert main(["import", str(tmp_path / "text"), "--pair=en-de", f"--to={tmp_path / 'made'}"]) == 0
    advised = capsys.readouterr().out.split("What next:\n")[1].splitlines()[0]
    assert "--max-length" in advised
    assert "--vocab-size" not in advised  # it would be refused


def test_preparing_tells_of_unknown_tokens_and_of_what_was_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    train = (b"train", b"a b\n\na\n", b"c\nc\n" + b"c " * 19 + b"x y\n")
    for split, source, target in (train, (b"dev", b"a\n", b"c\n")):
        put(tmp_path / f"{split.decode()}.en", source)
        put(tmp_path / f"{split.decode()}.de", target)
    put(tmp_path / "test.en", b"b\n")
    put(tmp_path / "test.de", b"d\n")
    put(tmp_path / "vocab", b"a\nb\nc\nd\n")
    assert main(["prepare", "folder-en-de", f"--data-dir={tmp_path}", f"--cache-dir={tmp_path / 'cache'}"]) == 0
    said = capsys.readouterr().out
    assert "folder-en-de: train 2, dev 1, test 1 pairs in 7 tokens" in said
    assert "; left out: {'source is empty': 1}; manifest " in said
    assert "Note: 9.1 % of the target tokens of train are not in the vocabulary" in said  # 2 of 22: x y
    assert said.count("not in the vocabulary") == 1


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = b"".join(b"l\xc3\xadnea %d\t\xe7\xac\xac %d\n" % (i, i) for i in range(200))
    text = put(tmp_path / "a.tsv", lines + b"\n\n")
    command = ["import", str(text), "--pair=es-zh-Hans", f"--to={tmp_path / 'made'}", "--columns", "1", "2"]
    assert main([*command, "--test-share=0.1"]) == 2
    assert "has no text for dev" in capsys.readouterr().err
    assert main([*command, "--test-share=0.1", "--dev-share=0.1"]) == 0
    said = capsys.readouterr().out
    assert "pairs; 2 empty lines of tables were left out. The first one:\n  línea 0\n  第 0\n" in said
    assert "-m repro data prepare folder-es-zh-Hans --vocab-size " in said
    assert {path.name for path in (tmp_path / "made").iterdir()} >= {"train.zh-Hans", "dev.es", "test.zh-Hans"}
    options = [f"--data-dir={tmp_path / 'made'}", f"--cache-dir={tmp_path / 'cache'}", "--vocab-size=300"]
    assert main(["prepare", "folder-es-zh-Hans", *options]) == 0
    said = capsys.readouterr().out
    assert "folder-es-zh-Hans: train 1" in said
    assert "Note" not in said  # no source stands on both sides
