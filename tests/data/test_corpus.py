"""A corpus is its bytes split at line feeds; what is missing, unequal or bad is named, never passed over."""

import codecs
import gzip
import hashlib
import shutil
import subprocess
import sys
import threading
import tracemalloc
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

import repro.data
from repro.data import corpus
from repro.data.corpus import (
    CORPORA,
    SHA256,
    GrammarSizes,
    Parallel,
    fingerprint,
    made_once,
    open_corpus,
    verified,
)

SPLITTERS = "a\x0bb\x0cc\x1cd\x1de\x1ef\x85g\u2028h\u2029i\rj"  # str.splitlines() makes ten lines of it
clean = st.text().filter(lambda line: line.strip() and not {"\n", "\0"} & set(line))
lines = clean.filter(lambda line: line[0] != "\ufeff" and line[-1] != "\r")  # these two are no text


def written(folder: Path, name: str, content: bytes) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(content)
    return folder / name


def parallel(folder: Path, source: bytes, target: bytes, may_drop: bool = True) -> Parallel:
    return Parallel(written(folder, "x.en", source), written(folder, "x.de", target), may_drop)


def six_files(folder: Path, dev: str = "dev", **changed: bytes) -> Path:
    """A whole corpus of two, one and one pairs."""
    for name, content in {
        "train.en": b"one\ntwo\n",
        "train.de": b"eins\nzwei\n",
        f"{dev}.en": b"three\n",
        f"{dev}.de": b"drei\n",
        "test.en": b"four\n",
        "test.de": b"vier\n",
    }.items():
        written(folder, name, changed.get(name.replace(".", "_"), content))
    return folder


def opened(folder: Path, name: str = "folder", pair: str = "en-de") -> corpus.Corpus:
    return open_corpus(name, pair, data_dir=folder, cache=folder / "cache")


# Lines -----------------------------------------------------------------------------------------------------


def test_only_a_line_feed_ends_a_line(tmp_path: Path) -> None:
    text = f"{SPLITTERS}\nsecond\n".encode()
    assert list(parallel(tmp_path, text, text).pairs()) == [(SPLITTERS, SPLITTERS), ("second", "second")]


@given(st.lists(lines, min_size=1), st.booleans(), st.booleans())
def test_writing_and_reading_is_the_identity(
    tmp_path_factory: pytest.TempPathFactory, text: list[str], is_gzip: bool, ends_in_line_feed: bool
) -> None:
    content = "\n".join(text).encode() + b"\n" * ends_in_line_feed
    content = gzip.compress(content) if is_gzip else content
    split = parallel(tmp_path_factory.mktemp("text"), content, content, may_drop=False)
    assert list(split.pairs()) == [(line, line) for line in text]


def test_what_is_no_text_changes_nothing(tmp_path: Path) -> None:
    # byte order mark, carriage returns before line feeds, no line feed at the end
    plain = written(tmp_path, "plain", b"a\nb\rc\n")
    for content in (
        codecs.BOM_UTF8 + b"a\nb\rc\n",
        b"a\r\nb\rc\r\n",
        b"a\nb\rc",
        codecs.BOM_UTF8 + b"a\r\nb\rc\r",
        gzip.compress(b"a\nb\rc\n"),
        gzip.compress(b"a\n") + gzip.compress(b"b\rc\n"),  # two members, as `cat a.gz b.gz` makes
    ):
        other = written(tmp_path, "other", content)
        assert list(Parallel(plain, other).pairs()) == [("a", "a"), ("b\rc", "b\rc")]
        assert fingerprint(other) == fingerprint(plain)
    assert fingerprint(plain) == (hashlib.sha256(b"a\nb\rc\n").hexdigest(), 2)


@given(st.lists(st.sampled_from([b"a", b"\r", b"\n", codecs.BOM_UTF8]), max_size=12).map(b"".join))
def test_the_fingerprint_is_that_of_the_lines_read(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = written(tmp_path_factory.mktemp("text"), "x", content)
    read = list(corpus._lines(path))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(corpus, "BLOCK", 2)  # so that "\r\n" falls on a border
        found = fingerprint(path)
    assert found == (hashlib.sha256(b"".join(line + b"\n" for line in read)).hexdigest(), len(read))


def test_gzip_is_known_by_its_bytes_not_its_name(tmp_path: Path) -> None:
    packed = written(tmp_path, "x.en", gzip.compress(b"a\n"))
    plain = written(tmp_path, "x.de.gz", b"b\n")
    assert list(Parallel(packed, plain).pairs()) == [("a", "b")]


def test_half_a_gzip_file_is_refused(tmp_path: Path) -> None:
    content = gzip.compress(b"".join(b"%d\n" % i for i in range(1000)))
    for damaged in (content[:-20], content + b"rest", content[:50] + b"\xff" + content[51:]):
        path = written(tmp_path, "x.en", damaged)
        with pytest.raises(ValueError, match=r"x\.en is no whole gzip file .*Get it again"):
            fingerprint(path)


# Bad lines -------------------------------------------------------------------------------------------------

BAD = {
    "is empty": b"",
    "is not UTF-8": b"caf\xe9",
    "holds a NUL character": b"a\0b",
    "is longer than 5,000 characters": b"a" * 5_001,
}


@pytest.mark.parametrize("reason", BAD)
@pytest.mark.parametrize("side", ["source", "target"])
def test_training_text_drops_a_bad_pair_and_counts_the_reason(tmp_path: Path, reason: str, side: str) -> None:
    bad, good = b"a\n" + BAD[reason] + b"\nc\n", b"x\ny\nz\n"
    texts = (bad, good) if side == "source" else (good, bad)
    dropped: Counter[str] = Counter()
    assert len(list(parallel(tmp_path, *texts).pairs(dropped))) == 2
    assert dropped == {f"{side} {reason}": 1}


@pytest.mark.parametrize("reason", BAD)
def test_held_out_text_refuses_a_bad_line(tmp_path: Path, reason: str) -> None:
    split = parallel(tmp_path, b"x\ny\nz\n", b"a\n" + BAD[reason] + b"\nc\n", may_drop=False)
    with pytest.raises(ValueError, match=rf"x\.de, line 2 {reason}.*delete line 2 of both x\.en and x\.de"):
        list(split.pairs())


def test_a_pair_bad_on_both_sides_is_counted_once(tmp_path: Path) -> None:
    dropped: Counter[str] = Counter()
    assert list(parallel(tmp_path, b"\n \n", b"\n\xff\n").pairs(dropped)) == []
    assert dropped == {"source is empty": 2}


@pytest.mark.parametrize("content", [b"\xc0\xaf", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", "a".encode("utf-16")])
def test_utf8_is_strict(tmp_path: Path, content: bytes) -> None:
    # an overlong slash, a surrogate, a character beyond Unicode, UTF-16
    dropped: Counter[str] = Counter()
    assert list(parallel(tmp_path, content + b"\n", b"x\n").pairs(dropped)) == []
    assert dropped == {"source is not UTF-8": 1}


def test_the_longest_line_that_is_kept(tmp_path: Path) -> None:
    longest = "\U0001f642".encode() * 5_000  # four bytes each
    for end in (b"\n", b"\r\n", b""):
        assert len(list(parallel(tmp_path, b"a\n" + longest + end, b"x\ny\n", may_drop=False).pairs())) == 2
    dropped: Counter[str] = Counter()
    list(parallel(tmp_path, b"a" + longest + b"\n", b"x\n").pairs(dropped))
    assert dropped == {"source is longer than 5,000 characters": 1}


def test_a_line_without_end_costs_no_memory(tmp_path: Path) -> None:
    split = parallel(tmp_path, b"a" * 50_000_000 + b"\nb\n", b"x\ny\n")
    tracemalloc.start()
    assert list(split.pairs()) == [("b", "y")]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 5_000_000


def test_unequal_sides_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"x\.en has 2 lines, .*x\.de has 3"):
        list(parallel(tmp_path, b"a\nb\n", b"x\ny\nz").pairs())


# Folders ---------------------------------------------------------------------------------------------------


def test_any_folder_of_parallel_files_is_a_corpus(tmp_path: Path) -> None:
    found = opened(six_files(tmp_path))
    assert list(found.train.pairs()) == [("one", "eins"), ("two", "zwei")]
    assert list(found.dev.pairs()) == [("three", "drei")]
    assert list(found.test.pairs()) == [("four", "vier")]
    assert (found.train.may_drop, found.dev.may_drop, found.test.may_drop) == (True, False, False)
    assert (found.name, found.pair) == ("folder", "en-de")


def test_the_hash_is_of_the_text_and_its_places(tmp_path: Path) -> None:
    plain = opened(six_files(tmp_path / "plain", dev="valid"))
    packed = six_files(tmp_path / "packed")
    for path in list(packed.iterdir()):
        written(packed, f"{path.name}.gz", gzip.compress(path.read_bytes()))
        path.unlink()
    assert opened(packed).sha256 == plain.sha256

    others = [
        opened(six_files(tmp_path / "word", test_de=b"fuenf\n")),
        opened(six_files(tmp_path / "order", train_en=b"two\none\n")),
        opened(six_files(tmp_path / "swapped", dev_en=b"four\n", test_en=b"three\n")),
    ]
    for path in (tmp_path / "plain").glob("*.de"):
        path.rename(path.with_suffix(".fr"))
    others.append(opened(tmp_path / "plain", pair="en-fr"))
    assert len({plain.sha256, *(other.sha256 for other in others)}) == 5


@pytest.mark.parametrize("dev", ["dev", "val", "valid"])
def test_the_dev_split_has_three_names(tmp_path: Path, dev: str) -> None:
    assert opened(six_files(tmp_path, dev=dev)).dev.source.name == f"{dev}.en"


def test_a_split_that_is_empty_or_unequal_is_refused_when_opened(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"test\.en and .*test\.de hold no line"):
        opened(six_files(tmp_path / "empty", test_en=b"", test_de=b""))
    with pytest.raises(ValueError, match=r"train\.en has 2 lines, .*train\.de has 1"):
        opened(six_files(tmp_path / "unequal", train_de=b"eins"))


def test_a_missing_corpus_says_what_where_and_how(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corpus, "PROJECT", tmp_path / "project")
    monkeypatch.setenv("REPRO_DATA", str(tmp_path / "given"))
    written(tmp_path / "given" / "multi30k", "val.en", b"a\n")
    with pytest.raises(FileNotFoundError) as error:
        open_corpus("multi30k", "en-fr", data_dir=None, cache=tmp_path)
    message = str(error.value)
    assert "expected the files train.en, train.fr, val.en, val.fr, test_2016_flickr.en" in message
    assert f"{tmp_path}/given/multi30k (lacks train.en, train.fr, val.en, val.fr" in message
    assert f"{tmp_path}/project/data/multi30k (no such folder)" in message
    assert f"{tmp_path}/shared/data/multi30k (no such folder)" in message
    assert "Clone the GitHub repository multi30k/dataset" in message


@pytest.mark.parametrize(
    ("name", "pair", "message"),
    [
        ("wmt", "en-de", "Unknown corpus 'wmt'; expected one of grammar, multi30k"),
        ("tatoeba", "de-en", "Corpus 'tatoeba' has no pair 'de-en'; expected one of en-de, en-fr"),
        ("folder", "en", "A pair is two languages like 'en-de', got 'en'"),
        ("folder", "../x-de", "A pair is two languages"),
        ("folder", "en-de", "Corpus 'folder' needs a folder. .*--data-dir FOLDER"),
        ("grammar", "en-de", "Corpus 'grammar' needs its sizes"),
    ],
)
def test_what_cannot_be_opened(tmp_path: Path, name: str, pair: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        open_corpus(name, pair, data_dir=None, cache=tmp_path)


def test_a_generated_corpus_takes_no_folder(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"'grammar' is generated.*--corpus folder"):
        opened(tmp_path, "grammar")


@pytest.fixture
def tiny_corpus(monkeypatch: pytest.MonkeyPatch) -> None:
    """A named corpus whose test set is known by its hash."""
    known = corpus.Named(folders={"en-de": "tiny_ende"}, licence="none", origin="Nowhere.")
    monkeypatch.setitem(CORPORA, "tiny", known)
    monkeypatch.setitem(SHA256, "tiny_ende/test.de", hashlib.sha256(b"vier\n").hexdigest())


@pytest.mark.usefixtures("tiny_corpus")
def test_another_text_under_a_known_name_is_refused(tmp_path: Path) -> None:
    assert opened(six_files(tmp_path), "tiny").name == "tiny"
    altered = six_files(tmp_path, test_de=b"vieR\n")
    with pytest.raises(ValueError, match="not the text known as tiny: expected SHA-256") as error:
        opened(altered, "tiny")
    assert hashlib.sha256(b"vier\n").hexdigest() in str(error.value)
    assert hashlib.sha256(b"vieR\n").hexdigest() in str(error.value)
    assert opened(altered).name == "folder"


@pytest.mark.usefixtures("tiny_corpus")
def test_the_order_in_which_folders_are_searched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corpus, "PROJECT", tmp_path / "project")
    monkeypatch.setenv("REPRO_DATA", str(tmp_path / "given"))

    def found(data_dir: Path | None = None) -> Path:
        return open_corpus("tiny", "en-de", data_dir=data_dir, cache=tmp_path).test.source.parent

    for folder in (
        tmp_path / "shared" / "data" / "tiny_ende",
        tmp_path / "project" / "data" / "tiny",
        tmp_path / "project" / "data" / "tiny_ende",
        tmp_path / "given" / "tiny",
        tmp_path / "given" / "tiny_ende",
    ):  # each one goes before those above it
        assert found(six_files(folder)) == folder
        assert found() == folder
        assert found(folder.parent) == folder
    with pytest.raises(FileNotFoundError, match="elsewhere"):  # a folder that is named is the only one
        found(tmp_path / "elsewhere")


def test_names_of_corpora_are_cheap() -> None:
    program = (
        "import sys, repro.data.corpus as c; print(*c.CORPORA); "
        "sys.exit(bool({'numpy', 'torch', 'tokenizers', 'repro.data.synthetic'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=corpus.PROJECT)
    assert (done.returncode, done.stdout.split()) == (0, list(CORPORA))


# The embedded corpus ---------------------------------------------------------------------------------------

SIZES = GrammarSizes(n_train=3, n_dev=2, n_test=1, seed=7)


class Generator:
    """Stands in for `synthetic`: what is tested here is when it is called, and what becomes of its files."""

    def __init__(self, source: Path) -> None:
        self.__file__ = str(written(source, "synthetic.py", b"# version 1"))
        self.calls = 0
        self.breaks = False

    def write_grammar(self, folder: Path, *, n_train: int, n_dev: int, n_test: int, seed: int) -> None:
        self.calls += 1
        for split, n in (("train", n_train), ("dev", n_dev), ("test", n_test)):
            for language in ("en", "de", "fr"):
                content = "".join(f"{split} {language} {seed} {i}\n" for i in range(n))
                written(folder, f"{split}.{language}", content.encode())
            if self.breaks:
                raise KeyboardInterrupt


@pytest.fixture
def generator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator:
    generator = Generator(tmp_path / "source")
    lexicon = SimpleNamespace(__file__=str(written(tmp_path / "source", "lexicon.py", b"words")))
    for name, module in (("synthetic", generator), ("lexicon", lexicon)):
        monkeypatch.setattr(repro.data, name, module, raising=False)
        monkeypatch.setitem(sys.modules, f"repro.data.{name}", module)
    return generator


def test_the_grammar_is_generated_once_for_both_pairs(tmp_path: Path, generator: Generator) -> None:
    german = open_corpus("grammar", "en-de", data_dir=None, cache=tmp_path, sizes=SIZES)
    french = open_corpus("grammar", "en-fr", data_dir=None, cache=tmp_path, sizes=SIZES)
    assert generator.calls == 1
    assert list(german.test.pairs()) == [("test en 7 0", "test de 7 0")]
    assert len(list(french.train.pairs())) == 3
    assert german.sha256 != french.sha256


def test_another_generator_makes_another_grammar(tmp_path: Path, generator: Generator) -> None:
    places = set()
    for name, content in (("synthetic.py", b"1"), ("synthetic.py", b"2"), ("lexicon.py", b"more words")):
        written(tmp_path / "source", name, content)
        found = open_corpus("grammar", "en-de", data_dir=None, cache=tmp_path, sizes=SIZES)
        places.add(found.train.source.parent)
    assert len(places) == generator.calls == 3


def test_an_interrupted_generation_is_never_used(tmp_path: Path, generator: Generator) -> None:
    generator.breaks = True
    with pytest.raises(KeyboardInterrupt):
        open_corpus("grammar", "en-de", data_dir=None, cache=tmp_path / "cache", sizes=SIZES)
    assert list((tmp_path / "cache").iterdir()) == []
    generator.breaks = False
    found = open_corpus("grammar", "en-de", data_dir=None, cache=tmp_path / "cache", sizes=SIZES)
    assert len(list(found.train.pairs())) == 3


def test_the_grammar_itself(tmp_path: Path) -> None:
    sizes = GrammarSizes(n_train=50, n_dev=3, n_test=2)
    first = open_corpus("grammar", "en-fr", data_dir=None, cache=tmp_path / "a", sizes=sizes)
    again = open_corpus("grammar", "en-fr", data_dir=None, cache=tmp_path / "b", sizes=sizes)
    assert [len(list(split.pairs())) for split in (first.train, first.dev, first.test)] == [50, 3, 2]
    assert first.sha256 == again.sha256


# Cached folders --------------------------------------------------------------------------------------------


def test_a_folder_is_made_once_and_again_when_damaged(tmp_path: Path) -> None:
    calls = []

    def make(folder: Path) -> dict[str, int]:
        calls.append(written(folder, "a", b"content"))
        return {"answer": 42}

    folder = tmp_path / "made"
    for _ in range(2):
        assert made_once(folder, make) == {"answer": 42}
    assert len(calls) == 1

    (folder / "a").write_bytes(b"c0ntent")
    with pytest.raises(ValueError, match=r"made/a is damaged: expected SHA-256 .* got .*Delete the folder"):
        verified(folder)
    made_once(folder, make)
    assert len(calls) == 2

    (folder / "a").unlink()
    made_once(folder, make)
    manifest = folder / "manifest.json"
    manifest.write_bytes(manifest.read_bytes().replace(b"42", b"43"))
    with pytest.raises(ValueError, match=r"manifest\.json is not what was written"):
        verified(folder)
    assert made_once(folder, make) == {"answer": 42}
    manifest.unlink()
    made_once(folder, make)
    assert len(calls) == 5
    assert [path.name for path in tmp_path.iterdir()] == ["made"]


@pytest.mark.parametrize("damaged", [False, True], ids=["absent", "damaged"])
def test_of_two_that_make_the_same_folder_both_succeed(tmp_path: Path, damaged: bool) -> None:
    folder = tmp_path / "made"
    if damaged:
        made_once(folder, lambda empty: {"length": len(str(written(empty, "a", b"old")))})
        (folder / "a").write_bytes(b"odd")
    both_are_done = threading.Barrier(2, timeout=10)
    results = []

    def make(empty: Path) -> dict[str, str]:
        written(empty, "a", b"content")
        both_are_done.wait()
        return {"made by": empty.name}

    threads = [threading.Thread(target=lambda: results.append(made_once(folder, make))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 2
    assert damaged or results[0] == results[1]  # the second has taken what the first made
    assert (folder / "a").read_bytes() == b"content"
    assert [path.name for path in tmp_path.iterdir()] == ["made"]


# Real text -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "folder", "pair", "sizes"),
    [
        ("multi30k", "multi30k", "en-de", (29_000, 1_014, 1_000)),
        ("multi30k", "multi30k", "en-fr", (29_000, 1_014, 1_000)),
        ("multi30k_tok", "multi30k_tok", "en-de", (29_000, 1_014, 1_000)),
        ("tatoeba", "tatoeba_ende", "en-de", (162_065, 2_380, 2_390)),
        ("tatoeba", "tatoeba_enfr", "en-fr", (136_787, 2_000, 2_000)),
    ],
)
def test_real_text_is_recognised(
    real_text: Path, tmp_path: Path, name: str, folder: str, pair: str, sizes: tuple[int, int, int]
) -> None:
    if not (real_text / folder).is_dir():
        pytest.skip(f"needs the real text: {real_text / folder} is absent.")
    found = open_corpus(name, pair, data_dir=real_text, cache=tmp_path)
    splits = (found.train, found.dev, found.test)
    assert tuple(fingerprint(split.target)[1] for split in splits) == sizes
    assert len(list(found.test.pairs())) == sizes[2]


@pytest.mark.parametrize("pair", ["en-de", "en-fr"])
def test_the_news_tests_are_recognised(real_text: Path, tmp_path: Path, pair: str) -> None:
    # the training text of wmt14 is no part of the real text at hand
    folder = real_text / CORPORA["wmt14"].folders[pair]
    if not folder.is_dir():
        pytest.skip(f"needs the real text: {folder} is absent.")
    for stem in ("newstest2013", "newstest2014"):
        for language in pair.split("-"):
            shutil.copy(folder / f"{stem}.{language}.gz", tmp_path)
    for language in pair.split("-"):
        written(tmp_path, f"train.{language}", b"a\n")
    found = open_corpus("wmt14", pair, data_dir=tmp_path, cache=tmp_path)
    assert len(list(found.dev.pairs())) == 3_000
    assert len(list(found.test.pairs())) == {"en-de": 2_737, "en-fr": 3_003}[pair]
