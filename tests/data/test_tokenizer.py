"""Any line comes back from its tokens, and the same text always gives the same tokenizer."""

import hashlib
import json
import os
import pickle
import subprocess
import sys
import unicodedata
from collections.abc import Callable
from functools import cache
from pathlib import Path
from string import ascii_lowercase
from typing import Any
from unittest import mock

import numpy as np
import pytest
import tokenizers
from hypothesis import example, given
from hypothesis import strategies as st

from repro.data import tokenizer as module
from repro.data.tokenizer import Tokenizer, given_tokenizer, n_lone_bytes, n_unknown, train_tokenizer
from repro.data.vocabulary import Subwords
from repro.model.special_tokens import EOS, PAD, SPECIAL

ROOT = Path(__file__).parents[2]
TEXT = [
    "the small dog runs",
    "the dog sees the small house",
    "der kleine Hund läuft",
    "der Hund sieht das kleine Haus",
    "l'été dernier, où était-il ?",
] * 3
LINES = st.text().filter(lambda line: "\n" not in line)
# few letters, much white space of all kinds, and what the engine cuts at
KNOTTY = st.text(st.sampled_from(" \t\r\x0b\x1c\x85\u00a0\u1680\u180e\u2009\u200b\u2028\u3000'stdé1²,-_\u0301\u203f字"))
SPACED = ["a  b   c \t\t d", "e\u00a0\u00a0 été  \u2009 st\u00a0 \u00a0a", "'s  -- 1²1 \x85\x85  t"] * 3
GIVEN = ["<unk>", "<s>", "</s>", "the", ",", "Hund@@", "e", "@-@", "klein@@", "&quot;", "ein@@"]


@cache
def learned(kind: str) -> Tokenizer:
    return train_tokenizer(TEXT, {"bpe": Subwords("bpe", 400), "wordpiece": Subwords("wordpiece", 700)}[kind])


@pytest.fixture(scope="module", params=["bpe", "wordpiece"])
def tokenizer(request: pytest.FixtureRequest) -> Tokenizer:
    return learned(request.param)


@pytest.fixture(scope="module")
def britz() -> Tokenizer:
    return given_tokenizer(GIVEN)


def tokens(tokenizer: Tokenizer, line: str) -> list[int]:
    return tokenizer.encode([line])[0].tolist()


def contents(tokenizer: Tokenizer, folder: Path) -> bytes:
    tokenizer.save(folder / "tokenizer.json")
    return (folder / "tokenizer.json").read_bytes()


@pytest.mark.parametrize(
    ("size", "sha256"),
    [
        (258, "d73835b56ae095183988ca8ce25f5d9a9bb2b916cdfc2f665c1f7d21d6798634"),
        (400, "2be53fd8d20de55421c2eab5f99996877b854cb4797427221edced554fc7d087"),
    ],
)
def test_the_merges_are_those_of_the_published_results(size: int, sha256: str) -> None:
    # records hold the SHA-256 of their tokenizer: another file would be another experiment
    tokenizer = train_tokenizer(TEXT, Subwords("bpe", size))
    assert tokenizer.sha256 == sha256
    if size == 400:
        ids = [266, 284, 281, 222, 160, 224, 244, 275, 8, 313, 222, 222, 29, 16, 84, 31, EOS]
        assert tokens(tokenizer, "the small Hund — l'été  </s>") == ids


# ---- learned tokens: any line


@given(LINES)
@example("")
@example(" ")
@example("  two before, two inside  and two after  ")
@example("👩‍👩‍👧 \U0001f1e9\U0001f1ea e\u0301 \ufb01 \u212b")  # joined, combined, compatible: no normal form
@example("a\x0bb\x0cc\x1cd\x85e\u2028f\u2029g\rh\ti\0j\ufeffk\u00a0l\u200bm")
@example("</s><pad> </s> <unk> Ġ ĊÂ")
@example("##a ## \u203fa\u203f \u203f")  # what other word-pieces, and ours, go on with
@example("é" * 5_000)  # one word, as far as blanks tell
def test_any_line_comes_back(tokenizer: Tokenizer, line: str) -> None:
    *inside, end = tokens(tokenizer, line)
    assert end == EOS
    assert not {PAD, EOS} & set(inside)
    assert tokenizer.decode([*inside, end]) == line


@pytest.mark.parametrize("kind", ["bpe", "wordpiece"])
def test_no_spelling_is_special(kind: str) -> None:
    # even where the training text is full of it
    tokenizer = train_tokenizer(["a </s> b <pad> </s> </s>"] * 5, Subwords(kind, 600))  # type: ignore[arg-type]
    assert tokens(tokenizer, "</s>").count(EOS) == 1
    assert PAD not in tokens(tokenizer, "<pad>")


def test_the_first_word_has_the_pieces_of_the_same_word_inside(tokenizer: Tokenizer) -> None:
    dog, the = tokens(tokenizer, "dog")[:-1], tokens(tokenizer, "the")[:-1]
    assert tokens(tokenizer, "the dog the") == [*the, *dog, *the, EOS]


def test_merges_go_by_frequency_and_word_pieces_by_length(tmp_path: Path) -> None:
    # "bc" occurs five times and is merged first; "ab" three times, always at the head of a word
    def cut(kind: str) -> list[str]:
        made = train_tokenizer(["vbc wbc xbc ybc zbc", "ab ab ab"], Subwords(kind, 600))  # type: ignore[arg-type]
        named = {id: token for token, id in json.loads(contents(made, tmp_path))["model"]["vocab"].items()}
        return [named[id] for id in tokens(made, "abc")]

    assert cut("bpe")[-2:] == ["bc", "</s>"]
    assert cut("wordpiece") == ["Ġab", "\u203fc", "</s>"]


def test_decoding_stops_at_the_end_and_skips_padding(tokenizer: Tokenizer) -> None:
    the, dog = tokens(tokenizer, "the")[:-1], tokens(tokenizer, "dog")[:-1]
    assert tokenizer.decode([PAD, *the, PAD, *dog, EOS, *the, PAD]) == "the dog"
    assert tokenizer.decode(np.array([*the, EOS])) == "the"
    assert tokenizer.decode(tokens(tokenizer, "the\ndog")) == "the dog"
    assert tokenizer.decode([]) == tokenizer.decode([EOS]) == tokenizer.decode([PAD]) == ""


# ---- letters take their marks

MARKED = {  # a word each, in which marks or joiners stand between letters
    "Hindi": "हिन्दी",
    "Thai": "ภาษาไทย",
    "Arabic, vowelled": "العَرَبِيَّة",
    "Hebrew, pointed": "עִבְרִית",
    "Bengali": "বাংলা",
    "Persian, non-joiner": "می\u200cخواهم",
    "Sinhala, joiner": "ශ්\u200dරී",
    "French, decomposed": "e\u0301le\u0300ve",
    "Vietnamese, decomposed": "tie\u0302\u0301ng",
}
MARKED_TEXT = [f"{word} {word}s 's" for word in MARKED.values()] * 3 + TEXT
ANY = st.text(st.sampled_from(" \t\u00a0'stdé1²,-e\u0301\u094d\u093f\u0e31\u20e3\u200c\u200d\ufe0fहन字"), max_size=12)


@cache
def of_marks(kind: str) -> Tokenizer:
    return train_tokenizer(MARKED_TEXT, Subwords(kind, 2_000))  # type: ignore[arg-type]


@cache
def of_blanks(kind: str) -> Tokenizer:
    """Learned where white space is frequent enough to be merged."""
    return train_tokenizer(SPACED, Subwords(kind, 700))  # type: ignore[arg-type]


@cache
def bare(made: Tokenizer) -> tokenizers.Tokenizer:
    """The library with the same file."""
    return tokenizers.Tokenizer.from_buffer(made.__reduce__()[1][0])


@pytest.mark.parametrize("word", MARKED.values(), ids=MARKED)
@pytest.mark.parametrize("kind", ["bpe", "wordpiece"])
def test_a_word_with_marks_may_become_one_token(kind: str, word: str) -> None:
    made = of_marks(kind)
    assert len(tokens(made, word)) == 1 + 1
    assert made.decode(tokens(made, f"{word} {word}")) == f"{word} {word}"


@given(LINES | KNOTTY)
def test_text_without_marks_is_cut_as_it_was(line: str) -> None:
    plain = "".join(one for one in line if one not in "\u200c\u200d" and unicodedata.category(one)[0] != "M")
    usual, marked = (module._bytes(with_marks=which) for which in (False, True))
    assert marked.pre_tokenize_str(plain) == usual.pre_tokenize_str(plain)


@pytest.mark.parametrize(("line", "found"), [("e\u0301", True), ("a\u200db", True), ("été — 字 \u200b", False)])
def test_a_tokenizer_says_which_cut_is_its_own(tmp_path: Path, line: str, found: bool) -> None:
    made = train_tokenizer([*TEXT, line], Subwords("bpe", 300))
    cut = json.loads(contents(made, tmp_path))["pre_tokenizer"]
    assert (cut["type"] == "Sequence") == found
    if not found:
        assert cut == {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}


# ---- encoding: what is remembered changes nothing


@pytest.mark.parametrize("kind", ["bpe", "wordpiece"])
@pytest.mark.parametrize("learned_from", [of_blanks, of_marks])
@given(lines=st.lists(LINES | KNOTTY | ANY, max_size=9))
@example(lines=["a  b", "a   b", " a", "a ", "", " ", "the\t dog", "st\u00a0 \u00a0a", "x" * 65 + " x", "the", ""])
def test_lines_are_read_as_by_the_library_and_come_back(
    kind: str, learned_from: Callable[[str], Tokenizer], lines: list[str]
) -> None:
    made = learned_from(kind)
    with mock.patch.object(module, "LINES_AT_ONCE", 3):
        ids, offsets = made.encode(lines)
    assert (ids.dtype, offsets.dtype, offsets[0]) == (np.uint16, np.int64, 0)
    read = [part.tolist() for part in np.split(ids, offsets[1:-1])] if lines else []
    assert read == [[*encoding.ids, EOS] for encoding in bare(made).encode_batch(lines)]
    assert [made.decode(line) for line in read] == lines


def test_memory_for_words_has_a_limit(tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LINES_AT_ONCE", 1)
    monkeypatch.setattr(module, "MOST_KNOWN", 4)
    fresh, words = pickle.loads(pickle.dumps(tokenizer)), list[str]()  # it knows nothing yet
    spelled = fresh._spelled
    monkeypatch.setattr(fresh, "_spelled", lambda texts: words.extend(sorted(texts)) or spelled(texts))
    lines = ["a", "b", "c", "d", "e", "b", "a", "e", "c"]  # the fifth is one too many: the first two stay
    assert fresh.encode(lines)[0].tolist() == tokenizer.encode(lines)[0].tolist()
    assert "".join(words) == "abcdeec"


# ---- sizes and files


@pytest.mark.parametrize(
    ("kind", "size"),
    [("bpe", module.MIN_SIZE), ("bpe", 300), ("wordpiece", module.MIN_WORD_PIECES), ("wordpiece", 540)],
)
def test_a_vocabulary_is_as_large_as_asked_and_smaller_where_the_text_has_no_more(kind: str, size: int) -> None:
    made, all_there_is = (train_tokenizer(TEXT, Subwords(kind, n)) for n in (size, 5_000))  # type: ignore[arg-type]
    assert made.size == size < all_there_is.size < 5_000
    assert max(made.encode(TEXT)[0]) < size


@pytest.mark.parametrize(("kind", "size"), [("bpe", module.MIN_SIZE), ("wordpiece", module.MIN_WORD_PIECES)])
def test_a_sequence_that_occurs_once_becomes_no_piece(kind: str, size: int) -> None:
    assert train_tokenizer(["abcdefg"], Subwords(kind, 600)).size == size  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("kind", "size", "said"),
    [
        ("bpe", 257, r"needs 258 tokens for the bytes and .*, got 257"),
        ("wordpiece", 513, r"needs 514 tokens for the bytes and .*, got 513"),
        ("given", 37_000, "not learned.*given_tokenizer"),
        ("BPE", 600, "^Sub-words: expected one of bpe, wordpiece, given, got 'BPE'"),
    ],
)
def test_what_cannot_be_learned_is_refused(kind: Any, size: int, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        train_tokenizer(TEXT, Subwords(kind, size))


def test_an_error_in_the_text_is_the_error_of_training() -> None:
    def broken() -> object:
        yield "a"
        raise ValueError("line 2 is empty")

    with pytest.raises(ValueError, match="line 2 is empty"):
        train_tokenizer(broken(), Subwords("bpe", 300))  # type: ignore[arg-type]


def test_the_same_text_gives_the_same_bytes_in_every_process() -> None:
    # many ties in count, so that any order left to chance would show
    program = (
        "import itertools; from repro.data.vocabulary import Subwords; "
        "from repro.data.tokenizer import train_tokenizer; "
        "words = map(''.join, itertools.product('abcdefghij', repeat=3)); lines = [' '.join(words)] * 2; "
        "print(*(train_tokenizer(lines, Subwords(kind, 900)).sha256 for kind in ('bpe', 'wordpiece')))"
    )
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", program],
            cwd=ROOT,
            env=os.environ | {"PYTHONHASHSEED": seed, "RAYON_NUM_THREADS": n, "TOKENIZERS_PARALLELISM": many},
            stdout=subprocess.PIPE,
        )
        for seed, n, many in (("0", "1", "true"), ("3", "7", "false"))
    ]
    hashes = {process.communicate(timeout=60)[0] for process in processes}
    assert len(hashes) == 1
    assert len(hashes.pop()) == 2 * 65


@pytest.mark.parametrize("kind", ["bpe", "wordpiece", "given"])
def test_a_tokenizer_is_its_file(tmp_path: Path, kind: str) -> None:
    tokenizer = given_tokenizer(GIVEN) if kind == "given" else learned(kind)
    path = tmp_path / "tokenizer.json"
    tokenizer.save(path)
    loaded = Tokenizer.load(path)
    assert loaded.sha256 == tokenizer.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    assert loaded.size == tokenizer.size == len(json.loads(path.read_bytes())["model"]["vocab"])
    ids = tokenizer.encode(TEXT)[0]
    for other in (loaded, pickle.loads(pickle.dumps(tokenizer))):
        np.testing.assert_array_equal(other.encode(TEXT)[0], ids)
        assert other.decode(ids) == tokenizer.decode(ids)
        assert (n_unknown(other, ids), n_lone_bytes(other, ids)) == (
            n_unknown(tokenizer, ids),
            n_lone_bytes(tokenizer, ids),
        )


def test_a_file_that_is_no_tokenizer_is_refused(tmp_path: Path, tokenizer: Tokenizer) -> None:
    path = tmp_path / "tokenizer.json"
    content = contents(tokenizer, tmp_path)
    path.write_bytes(content[:-30])
    with pytest.raises(ValueError, match=r"tokenizer\.json is not a tokenizer"):
        Tokenizer.load(path)
    path.write_bytes(content.replace(SPECIAL[EOS].encode(), b"<end>"))
    with pytest.raises(ValueError, match="must have .* at ids 0 and 1, got"):
        Tokenizer.load(path)


@pytest.mark.parametrize(("size", "dtype"), [(65_536, "<u2"), (65_537, "<u4")])
def test_ids_are_as_wide_as_the_vocabulary_needs(tmp_path: Path, size: int, dtype: str) -> None:
    facts = json.loads(contents(learned("bpe"), tmp_path))
    for id in range(learned("bpe").size, size):
        facts["model"]["vocab"][f"token {id}"] = id
    wide = Tokenizer(json.dumps(facts).encode())
    assert (wide.size, wide.dtype) == (size, np.dtype(dtype))
    ids, offsets = wide.encode(TEXT)
    assert ids.dtype == dtype
    np.testing.assert_array_equal(ids, learned("bpe").encode(TEXT)[0])
    assert offsets.tolist() == learned("bpe").encode(TEXT)[1].tolist()


def test_a_forked_process_may_encode_and_says_nothing() -> None:
    # as a data worker: the threads of the library are not forked, and waiting for them would never end
    program = """
import os
from repro.data.vocabulary import Subwords
from repro.data.tokenizer import train_tokenizer
text = ["some words", "and many others"] * 500
tokenizer = train_tokenizer(text, Subwords("bpe", 300))
tokenizer.encode(text)
child = os.fork()
if not child:
    os._exit(len(tokenizer.encode([*text, "new ones", "too"])[1]) != 1003)
raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    env = {name: value for name, value in os.environ.items() if name != "TOKENIZERS_PARALLELISM"}
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, env=env, capture_output=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


# ---- given tokens


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("the klein@@ e Hund@@ e , ein@@", "the kleine Hunde , ein"),
        ("the @-@ e", "the @-@ e"),
        ("the  e ", "the e"),  # a run of blanks parts like one
        ("", ""),
        ("cat Hund@@ the", "<unk> Hundthe"),
        ("</s> the <pad> <s> <unk>", "<unk> the <unk> <unk> <unk>"),
        ("the\u00a0e \u0085", "<unk> <unk>"),
    ],
)
def test_given_pieces_are_joined(britz: Tokenizer, line: str, text: str) -> None:
    ids = tokens(britz, line)
    assert ids[-1] == EOS
    assert not {PAD, EOS} & set(ids[:-1])
    assert britz.decode(ids) == text


@given(st.lists(st.sampled_from([*GIVEN[3:], "</s>", "<unk>", "cat", "\u00a0", "x" * 70])))
def test_each_given_piece_is_one_id(britz: Tokenizer, line: list[str]) -> None:
    ids = tokens(britz, " ".join(line))
    assert ids == [*(3 + GIVEN[3:].index(token) if token in GIVEN[3:] else 2 for token in line), EOS]
    assert n_unknown(britz, np.array(ids)) == sum(token not in GIVEN[3:] for token in line)


def test_pieces_that_can_never_be_met_are_left_out() -> None:
    assert given_tokenizer(["a", "", "b", "a"]).size == 3 + 2


@pytest.mark.parametrize(("lines", "message"), [(["a", "the 512"], "got 'the 512'"), (["<unk>", ""], "got none")])
def test_a_file_that_is_no_vocabulary_is_refused(lines: list[str], message: str) -> None:
    with pytest.raises(ValueError, match=f"one token a line, {message}"):
        given_tokenizer(lines)


# ---- for the data card


def test_tokens_of_single_bytes_are_counted(tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    # of the learned words, é and ä are in the text; 字 has three bytes and 👩 four
    ids, _ = tokenizer.encode(["the dog été", "字 the 👩"])
    assert n_lone_bytes(tokenizer, ids) == 3 + 4
    assert tokenizer.unknown is None
    assert n_unknown(tokenizer, ids) == 0
    monkeypatch.setattr(module, "IDS_AT_ONCE", 2)
    assert n_lone_bytes(tokenizer, ids) == 3 + 4
    assert n_lone_bytes(tokenizer, ids[:0]) == 0


def test_given_pieces_are_no_bytes() -> None:
    tokenizer = given_tokenizer(["é", "Ã", "\u203fÃ"])
    ids, _ = tokenizer.encode(["é Ã 字 \u203fÃ"])
    assert (n_lone_bytes(tokenizer, ids), n_unknown(tokenizer, ids), tokenizer.unknown) == (0, 1, 2)


# Words that are never cut ------------------------------------------------------------------------------------

WHOLE = ("(NP", ")NP", "NN", ".", "PRP$")


def test_words_that_are_kept_whole_are_one_token_each_wherever_they_stand() -> None:
    text = ["the dog sleeps .", "(NP NN )NP", "a NN . dog"] * 9
    tokenizer = train_tokenizer(text, Subwords("bpe", 300, whole=WHOLE))
    for word in WHOLE:
        ids, _ = tokenizer.encode([word, f"a {word} b"])
        assert len(tokenizer.encode([word])[0]) == 2  # and the end
        assert tokenizer.encode([word])[0][0] in ids[2:]
    for line in (*text, "unseen  words", " (NPNN )", "(NP(NN", "p.p. \u2009x", "a\tb", ""):
        assert tokenizer.decode(tokenizer.encode([line])[0].tolist()) == line


def test_words_that_are_kept_whole_count_among_the_tokens_and_are_not_learned_from() -> None:
    labels = [" ".join(WHOLE)] * 99
    words = ["low lower lowest"] * 9
    beside, alone = (train_tokenizer(text, Subwords("bpe", 275, whole=WHOLE)) for text in (labels + words, words))
    assert beside.sha256 == alone.sha256
    assert beside.size <= 275
    with pytest.raises(ValueError, match="5 words that are never cut need byte-pair merges and 263 tokens"):
        train_tokenizer(words, Subwords("bpe", 262, whole=WHOLE))


@pytest.mark.parametrize("name", SPECIAL)
def test_letters_that_spell_a_special_token_stay_letters_beside_words_that_are_kept_whole(name: str) -> None:
    words = [f"{before}{name}{behind}" for before in ascii_lowercase for behind in ascii_lowercase]
    tokenizer = train_tokenizer([" ".join(words)] * 3, Subwords("bpe", 300, whole=WHOLE))
    lines = [f"(NP Q{name}R )NP", f"{name} NN {name}{name}", *words[::50]]
    for line in lines:
        ids, _ = tokenizer.encode([line])
        assert [place for place, id in enumerate(ids) if id in (PAD, EOS)] == [len(ids) - 1], "but the end of the line"
        assert tokenizer.decode(ids.tolist()) == line
