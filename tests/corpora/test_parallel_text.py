"""Text is its bytes split at line feeds; what is unequal or bad is named, never passed over."""

import codecs
import gzip
import hashlib
import re
import tracemalloc
from collections import Counter
from pathlib import Path
from unicodedata import category, normalize

import pytest
from hypothesis import given
from hypothesis import strategies as st
from text_folders import put, text_folder

from repro.corpora import parallel_text
from repro.corpora.catalogue import open_corpus
from repro.corpora.importer import share_of
from repro.corpora.parallel_text import (
    QUOTES,
    Fingerprint,
    Parallel,
    languages,
    normalised,
    same_spelling,
    text_fingerprint,
)
from repro.corpora.prepare import looked_for, prepare, seen_lines
from repro.data.vocabulary import Subwords

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


# The same sentence ----------------------------------------------------------------------------------------


FRENCH = "L'été, c'est \"déjà\" fini ?"
TWINS = {
    "decomposed": normalize("NFD", FRENCH),
    "no-break blanks": FRENCH.replace(" ", "\u00a0"),
    "thin blank": FRENCH.replace(" ?", "\u202f?").replace("\u202f", " \u202f"),
    "curly quotes": FRENCH.replace("'", "’").replace(' "', " “").replace('"', "”"),
    "guillemets": FRENCH.replace(' "', " «").replace('"', "»"),
    "modifier letter": FRENCH.replace("'", "ʼ"),
    "zero width": FRENCH.replace(" ", " \u200b") + "\ufeff",
    "all of it": normalize("NFD", FRENCH).replace(" ", "\u00a0\u2009").replace("'", "’"),
}
OTHERS = ["L'ete, c'est \"deja\" fini ?", "L'été, c'est \"déjà\" fini !", "l'été, c'est \"déjà\" fini ?", "L'été"]
HINDI = {"दिन": "day", "दान": "gift", "दीन": "poor"}  # one consonant more than the vowel signs tell them apart


@pytest.mark.parametrize("twin", TWINS.values(), ids=TWINS)
def test_one_sentence_in_two_spellings_is_one(twin: str) -> None:
    assert twin != FRENCH
    assert same_spelling(twin) == same_spelling(FRENCH)
    assert normalised(twin) == normalised(FRENCH) == "l été c est déjà fini"


def test_all_that_compares_text_has_this_definition(tmp_path: Path) -> None:
    twin = TWINS["all of it"]
    # shares of the importer    what the card says is repeated
    drawn = {"dev": 0.4, "test": 0.4}
    assert share_of(twin, drawn) == share_of(FRENCH, drawn)
    seen = seen_lines(looked_for({"dev": [(twin, twin)]}), [FRENCH], [FRENCH])
    assert [*seen] == [("seen", "dev", 1), ("seen_pairs", "dev", 1)]

    # sources that are their targets
    text_folder(tmp_path, "fr-en", train=[("un", "one"), (FRENCH, twin)], dev=[(FRENCH, "x")], test=[(twin, "x")])
    corpus = open_corpus("folder", "fr-en", data_dir=tmp_path, cache=tmp_path / "cache")
    made = prepare(corpus, subwords=Subwords("bpe", 300), cache=tmp_path / "cache", max_length=300, workers=1)
    assert made.repeats["same_sides"] == 0.5
    assert made.repeats["dev_sources"] == made.repeats["test_sources"] == 1.0


def test_other_sentences_are_others() -> None:
    assert len({*map(same_spelling, [FRENCH, *OTHERS])}) == 1 + len(OTHERS)
    assert normalised(OTHERS[0]) != normalised(FRENCH) == normalised(OTHERS[1]) == normalised(OTHERS[2])
    assert len({*map(normalised, HINDI)}) == 3
    assert normalised("  “Straße” – it's\u00a0A_B, 3.5 %!") == "strasse it s a b 3 5"


@given(st.text())
def test_a_spelling_is_its_own(line: str) -> None:
    assert same_spelling(same_spelling(line)) == same_spelling(line)
    assert normalised(same_spelling(line)) == normalised(line)


plain = st.text(st.characters(exclude_categories=("Mn", "Mc", "Me", "Cs", "Cf"), exclude_characters="ʼ"))


@given(plain.filter(lambda line: normalize("NFC", line) == line and not re.search(r"[\u0300-\u036f]", line.casefold())))
def test_words_of_text_without_marks_are_what_they_were(line: str) -> None:
    # published shares of repeated text stand on it
    assert normalised(line) == " ".join(re.findall(r"[^\W_]+", line.casefold()))


def test_every_mark_of_quotation_is_plain() -> None:
    quotes = {chr(i) for i in range(0x3000) if category(chr(i)) in ("Pi", "Pf")} - set("⸂⸃⸄⸅⸉⸊⸌⸍⸜⸝⸠⸡")
    assert quotes <= set("".join(QUOTES.values()))
