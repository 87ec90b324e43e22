"""Text is its bytes split at line feeds; what is unequal or bad is named, never passed over."""

import codecs
import gzip
import hashlib
import tracemalloc
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from text_folders import put

from repro.corpora import parallel_text
from repro.corpora.parallel_text import Fingerprint, Parallel, languages, text_fingerprint

SPLITTERS = "a\x0bb\x0cc\x1cd\x1de\x1ef\x85g\u2028h\u2029i\rj"  # str.splitlines() makes ten lines of it
clean = st.text().filter(lambda line: line.strip() and not {"\n", "\0"} & set(line))
lines = clean.filter(lambda line: line[0] != "\ufeff" and line[-1] != "\r")  # these two are no text


def parallel(folder: Path, source: bytes, target: bytes, may_drop: bool = True) -> Parallel:
    return Parallel(put(folder / "x.en", source), put(folder / "x.de", target), may_drop)


# Lines -----------------------------------------------------------------------------------------------------


def test_only_a_line_feed_ends_a_line(tmp_path: Path) -> None:
    text = f"{SPLITTERS}\nsecond\n".encode()
    assert list(parallel(tmp_path, text, text).pairs()) == [(SPLITTERS, SPLITTERS), ("second", "second")]


@given(st.lists(lines, min_size=1), st.booleans(), st.booleans())
def test_writing_and_reading_is_the_identity(
    tmp_path_factory: pytest.TempPathFactory, wanted: list[str], is_gzip: bool, ends_in_line_feed: bool
) -> None:
    content = "\n".join(wanted).encode() + b"\n" * ends_in_line_feed
    content = gzip.compress(content) if is_gzip else content
    split = parallel(tmp_path_factory.mktemp("text"), content, content, may_drop=False)
    assert list(split.pairs()) == [(line, line) for line in wanted]


def test_line_ends_byte_order_marks_and_gzip_change_nothing(tmp_path: Path) -> None:
    # byte order mark, carriage returns before line feeds, no line feed at the end
    plain = put(tmp_path / "plain", b"a\nb\rc\n")
    for content in (
        codecs.BOM_UTF8 + b"a\nb\rc\n",
        b"a\r\nb\rc\r\n",
        b"a\nb\rc",
        codecs.BOM_UTF8 + b"a\r\nb\rc\r",
        gzip.compress(b"a\nb\rc\n"),
        gzip.compress(b"a\n") + gzip.compress(b"b\rc\n"),  # two members, as `cat a.gz b.gz` makes
    ):
        other = put(tmp_path / "other", content)
        assert list(Parallel(plain, other).pairs()) == [("a", "a"), ("b\rc", "b\rc")]
        assert text_fingerprint(other) == text_fingerprint(plain)
    assert text_fingerprint(plain) == Fingerprint(hashlib.sha256(b"a\nb\rc\n").hexdigest(), 2, marks=(0,))


@given(st.lists(st.sampled_from([b"a", b"\r", b"\n", codecs.BOM_UTF8]), max_size=12).map(b"".join))
def test_the_fingerprint_is_that_of_the_lines_read(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = put(tmp_path_factory.mktemp("text") / "x", content)
    read = list(parallel_text._lines(path, 0))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parallel_text, "READ_AT_ONCE", 2)  # so that "\r\n" falls on a border
        found = text_fingerprint(path)
    whole = b"".join(line + b"\n" for line in read)
    assert found == Fingerprint(hashlib.sha256(whole).hexdigest(), len(read), marks=())


PACKED = gzip.compress(b"".join(b"%d\n" % i for i in range(1000)))
NOT_TEXT = {
    "half of a gzip file": (PACKED[:-20], "is not a whole gzip file .*Get it again"),
    "more than a gzip file": (PACKED + b"rest", "is not a whole gzip file .*Get it again"),
    "a damaged gzip file": (PACKED[:50] + b"\xff" + PACKED[51:], "is not a whole gzip file .*Get it again"),
    "UTF-16, little end first": (codecs.BOM_UTF16_LE + b"a\0\n\0", r"is UTF-16: expected UTF-8\. Convert it: iconv"),
    "UTF-16, big end first": (codecs.BOM_UTF16_BE + b"\0a\0\n", r"is UTF-16: expected UTF-8\. Convert it: iconv"),
}


@pytest.mark.parametrize("name", NOT_TEXT)
def test_what_is_no_text_is_named(tmp_path: Path, name: str) -> None:
    content, refused = NOT_TEXT[name]
    with pytest.raises(ValueError, match=rf"x\.en {refused}"):
        text_fingerprint(put(tmp_path / "x.en", content))


# Bad lines -------------------------------------------------------------------------------------------------

BAD = {
    "is empty": b"",
    "is not UTF-8": b"caf\xe9",  # Latin-1
    "holds a NUL character": b"a\0b",
    "is longer than 5,000 characters": b"a" * 5_001,
}


@pytest.mark.parametrize("reason", BAD)
def test_training_text_drops_a_bad_pair_and_held_out_text_refuses_it(tmp_path: Path, reason: str) -> None:
    source, target = b"a\n" + BAD[reason] + b"\nc\n \n", b"x\ny\n" + BAD[reason] + b"\n\n"
    dropped: Counter[str] = Counter()
    assert list(parallel(tmp_path, source, target).pairs(dropped)) == [("a", "x")]
    once = Counter({"source is empty": 1})  # bad on both sides
    assert dropped == once + Counter({f"source {reason}": 1, f"target {reason}": 1})
    split = parallel(tmp_path, b"x\ny\nz\n", b"a\n" + BAD[reason] + b"\nc\n", may_drop=False)
    with pytest.raises(ValueError, match=rf"x\.de, line 2 {reason}.*delete line 2 of both x\.en and x\.de"):
        list(split.pairs())


def test_the_longest_line_that_is_kept(tmp_path: Path) -> None:
    longest = "\U0001f642".encode() * 5_000  # four bytes each
    for end in (b"\n", b"\r\n", b""):
        assert len(list(parallel(tmp_path, b"a\n" + longest + end, b"x\ny\n", may_drop=False).pairs())) == 2
    dropped: Counter[str] = Counter()
    list(parallel(tmp_path, b"a" + longest + b"\n", b"x\n").pairs(dropped))
    assert dropped == {"source is longer than 5,000 characters": 1}


def test_a_line_without_end_costs_no_memory(tmp_path: Path) -> None:
    split = parallel(tmp_path, b"a" * 20_000_000 + b"\nb\n", b"x\ny\n")
    tracemalloc.start()
    assert list(split.pairs()) == [("b", "y")]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 5_000_000


# Passages --------------------------------------------------------------------------------------------------


@given(
    st.lists(st.sampled_from([b"a", b"bb\r", b"", b"\xff", b"c" * 9]), min_size=1, max_size=20),
    st.integers(1, 7),
    st.sampled_from([b"", codecs.BOM_UTF8]),
    st.booleans(),
    st.booleans(),
)
def test_passages_are_the_text_in_pieces(
    tmp_path_factory: pytest.TempPathFactory, wanted: list[bytes], size: int, head: bytes, is_gzip: bool, ended: bool
) -> None:
    content = head + b"\n".join(wanted) + b"\n" * ended
    folder = tmp_path_factory.mktemp("text")
    if content == head:
        return
    split = parallel(folder, gzip.compress(content) if is_gzip else content, content)
    whole_dropped: Counter[str] = Counter()
    whole = list(split.pairs(whole_dropped))
    assert [chunk.n_lines for chunk in split.chunks()] == [text_fingerprint(split.source).n_lines]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parallel_text, "CHUNK", size)
        patch.setattr(parallel_text, "READ_AT_ONCE", 3)  # a chunk ends in the middle of one, and several end in one
        parallel_text._fingerprint.cache_clear()
        chunks = split.chunks()
        n_lines = text_fingerprint(split.source).n_lines
    parallel_text._fingerprint.cache_clear()
    assert [(chunk.first_line, chunk.n_lines) for chunk in chunks] == [
        (first, min(size, n_lines - first)) for first in range(0, n_lines, size)
    ]
    dropped: Counter[str] = Counter()
    assert [pair for chunk in reversed(chunks) for pair in list(chunk.pairs(dropped))[::-1]] == whole[::-1]
    assert dropped == whole_dropped


def test_a_passage_names_the_line_of_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel_text, "CHUNK", 2)
    split = parallel(tmp_path, b"a\nb\nc\nd\n\n", b"v\nw\nx\ny\nz\n", may_drop=False)
    with pytest.raises(ValueError, match=r"x\.en, line 5 is empty"):
        list(split.chunks()[2].pairs())


# Pairs of languages ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pair", "found"),
    [
        ("en-de", ("en", "de")),
        ("en-zh-Hans", ("en", "zh-Hans")),
        ("zh-Hans-en", ("zh-Hans", "en")),
        ("pt-BR-pt-PT", ("pt-BR", "pt-PT")),
        ("zh-Hans-CN-zh-Hant-TW", ("zh-Hans-CN", "zh-Hant-TW")),
        ("de-1996-es-419", ("de-1996", "es-419")),
        ("source-target", ("source", "target")),  # one dash: the two may be called anything
    ],
)
def test_a_pair_is_two_tags(pair: str, found: tuple[str, str]) -> None:
    assert languages(pair) == found


@pytest.mark.parametrize("pair", ["en", "en-", "en--de", "en-de-fr", "Hans-zh-en", "../x-y", "en-zh\n", "é-de"])
def test_anything_else_is_refused(pair: str) -> None:
    with pytest.raises(ValueError, match="A pair is two languages like 'en-de', got"):
        languages(pair)
    with pytest.raises(ValueError, match="A pair is two different languages like 'en-de', got 'zh-Hans-zh-Hans'"):
        languages("zh-Hans-zh-Hans")
