"""Any line comes back from its pieces, and the same text always gives the same tokenizer."""

import hashlib
import json
import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from repro.data import tokenizer as module
from repro.data.tokenizer import MIN_SIZE, Tokenizer, train_tokenizer
from repro.symbols import EOS, PAD, SPECIAL

ROOT = Path(__file__).parents[2]
TEXT = [
    "the small dog runs",
    "the dog sees the small house",
    "der kleine Hund läuft",
    "der Hund sieht das kleine Haus",
    "l'été dernier, où était-il ?",
] * 3
LINES = st.text().filter(lambda line: "\n" not in line)


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return train_tokenizer(TEXT, 400)


def pieces(tokenizer: Tokenizer, line: str) -> list[int]:
    return tokenizer.encode([line])[0].tolist()


@given(LINES)
@example("")
@example(" ")
@example("  two before, two inside  and two after  ")
@example("👩‍👩‍👧 \U0001f1e9\U0001f1ea e\u0301 \ufb01 \u212b")  # joined, combined, compatible: no normal form
@example("a\x0bb\x0cc\x1cd\x85e\u2028f\u2029g\rh\ti\0j\ufeffk\u00a0l\u200bm")
@example("</s><pad> </s> Ġ ĊÂ")
def test_any_line_comes_back(tokenizer: Tokenizer, line: str) -> None:
    assert tokenizer.decode(pieces(tokenizer, line)) == line


@given(LINES)
def test_a_line_ends_once_and_is_never_padded(tokenizer: Tokenizer, line: str) -> None:
    *inside, end = pieces(tokenizer, line)
    assert end == EOS
    assert not {PAD, EOS} & set(inside)


def test_no_spelling_is_special() -> None:
    # even where the training text is full of it
    tokenizer = train_tokenizer(["a </s> b <pad> </s> </s>"] * 5, 400)
    assert pieces(tokenizer, "</s>").count(EOS) == 1
    assert PAD not in pieces(tokenizer, "<pad>")


def test_the_first_word_has_the_pieces_of_the_same_word_inside(tokenizer: Tokenizer) -> None:
    dog, the = pieces(tokenizer, "dog")[:-1], pieces(tokenizer, "the")[:-1]
    assert pieces(tokenizer, "the dog the") == [*the, *dog, *the, EOS]


def test_text_shrinks() -> None:
    # 13 + 11 letters; two words that occur often are two pieces
    tokenizer = train_tokenizer(["Donaudampfer Schifffahrt"] * 3, 600)
    assert len(pieces(tokenizer, "Donaudampfer Schifffahrt")) == 2 + 1


def test_encoding_many_lines_is_encoding_each(tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LINES_AT_ONCE", 3)  # 7 lines: 3, 3 and 1
    lines = ["", *TEXT[:5], "x"]
    ids, offsets = tokenizer.encode(lines)
    assert (ids.dtype, offsets.dtype) == (np.uint16, np.int64)
    assert [part.tolist() for part in np.split(ids, offsets[1:-1])] == [pieces(tokenizer, line) for line in lines]
    ids, offsets = tokenizer.encode([])
    assert (ids.tolist(), offsets.tolist()) == ([], [0])


def test_decoding_stops_at_the_end_and_skips_padding(tokenizer: Tokenizer) -> None:
    the, dog = pieces(tokenizer, "the")[:-1], pieces(tokenizer, "dog")[:-1]
    assert tokenizer.decode([PAD, *the, PAD, *dog, EOS, *the, PAD]) == "the dog"
    assert tokenizer.decode(np.array([*the, EOS])) == "the"
    assert tokenizer.decode([]) == tokenizer.decode([EOS]) == tokenizer.decode([PAD]) == ""


@given(st.lists(st.integers(0, 399)))
def test_whatever_a_model_writes_is_one_line(tokenizer: Tokenizer, ids: list[int]) -> None:
    assert "\n" not in tokenizer.decode(ids)


def test_the_line_feed_is_a_piece_that_decodes_to_a_blank(tokenizer: Tokenizer) -> None:
    assert tokenizer.decode(pieces(tokenizer, "the\ndog")) == "the dog"


@pytest.mark.parametrize("size", [MIN_SIZE, MIN_SIZE + 1, 300, 5_000])
def test_a_vocabulary_is_never_larger_than_asked(size: int) -> None:
    tokenizer = train_tokenizer(TEXT, size)
    assert tokenizer.size == size if size <= 300 else MIN_SIZE < tokenizer.size < size
    assert max(tokenizer.encode(TEXT)[0]) < tokenizer.size


def test_a_vocabulary_must_hold_the_bytes() -> None:
    with pytest.raises(ValueError, match=r"needs 258 pieces for the bytes and .*, got 257"):
        train_tokenizer(TEXT, 257)


def test_an_error_in_the_text_is_the_error_of_training() -> None:
    def broken() -> object:
        yield "a"
        raise ValueError("line 2 is empty")

    with pytest.raises(ValueError, match="line 2 is empty"):
        train_tokenizer(broken(), 300)  # type: ignore[arg-type]


def test_the_same_text_gives_the_same_bytes_in_every_process(tmp_path: Path, tokenizer: Tokenizer) -> None:
    # many ties in count, so that any order left to chance would show
    program = (
        "import itertools; from repro.data.tokenizer import train_tokenizer as t; "
        "words = map(''.join, itertools.product('abcdefghij', repeat=3)); "
        "print(t([' '.join(words)] * 2, 900).sha256)"
    )
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", program],
            cwd=ROOT,
            env={
                **os.environ,
                "PYTHONHASHSEED": seed,
                "RAYON_NUM_THREADS": n,
                "TOKENIZERS_PARALLELISM": many,
            },
            stdout=subprocess.PIPE,
        )
        for seed, n, many in (("0", "1", "true"), ("1", "2", "true"), ("2", "7", "true"), ("3", "2", "false"))
    ]
    hashes = {process.communicate(timeout=60)[0] for process in processes}
    assert len(hashes) == 1
    assert len(hashes.pop()) == 65


def test_a_tokenizer_is_its_file(tmp_path: Path, tokenizer: Tokenizer) -> None:
    path = tmp_path / "tokenizer.json"
    tokenizer.save(path)
    loaded = Tokenizer.load(path)
    assert loaded.sha256 == tokenizer.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    assert loaded.size == tokenizer.size == len(json.loads(path.read_bytes())["model"]["vocab"])
    for other in (loaded, pickle.loads(pickle.dumps(tokenizer))):
        np.testing.assert_array_equal(other.encode(TEXT)[0], tokenizer.encode(TEXT)[0])


def test_another_text_or_size_is_another_tokenizer(tokenizer: Tokenizer) -> None:
    others = {train_tokenizer(TEXT, 300).sha256, train_tokenizer([*TEXT, "more more"], 400).sha256}
    assert len({tokenizer.sha256, *others}) == 3


def test_a_file_that_is_no_tokenizer_is_refused(tmp_path: Path, tokenizer: Tokenizer) -> None:
    path = tmp_path / "tokenizer.json"
    tokenizer.save(path)
    content = path.read_bytes()
    path.write_bytes(content[:-30])
    with pytest.raises(ValueError, match=r"tokenizer\.json is no tokenizer"):
        Tokenizer.load(path)
    path.write_bytes(content.replace(SPECIAL[EOS].encode(), b"<end>"))
    with pytest.raises(ValueError, match="must have .* at ids 0 and 1, got"):
        Tokenizer.load(path)


@pytest.mark.parametrize(("size", "dtype"), [(65_536, "<u2"), (65_537, "<u4")])
def test_ids_are_as_wide_as_the_vocabulary_needs(tmp_path: Path, tokenizer: Tokenizer, size: int, dtype: str) -> None:
    tokenizer.save(tmp_path / "tokenizer.json")
    contents = json.loads((tmp_path / "tokenizer.json").read_bytes())
    for id in range(tokenizer.size, size):
        contents["model"]["vocab"][f"piece {id}"] = id
    wide = Tokenizer(json.dumps(contents).encode())
    assert (wide.size, wide.dtype) == (size, np.dtype(dtype))
    assert wide.encode(TEXT)[0].dtype == dtype


def test_a_forked_process_may_encode_and_says_nothing() -> None:
    # as a data worker: the threads of the library are not forked, and waiting for them would never end
    program = """
import os
from repro.data.tokenizer import train_tokenizer
text = ["some words"] * 1000
tokenizer = train_tokenizer(text, 300)
tokenizer.encode(text)
child = os.fork()
if not child:
    os._exit(len(tokenizer.encode(text)[1]) != 1001)
raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    env = {name: value for name, value in os.environ.items() if name != "TOKENIZERS_PARALLELISM"}
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, env=env, capture_output=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
