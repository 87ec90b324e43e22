"""Sub-word tokens: one vocabulary for both languages. Paper: section 5.1.

Two kinds are learned: byte-pair merges, as in the paper's English-German, and word-pieces, as in its English-French.
With both, decoding gives back exactly the line that was encoded, blanks and control characters included. Three choices
ensure this and keep the vocabulary small:

- tokens are made of bytes, so no character is unknown;
- each line is read with one blank before it, which decoding removes; so the first word of a line has the same
  tokens as inside a line;
- "<pad>" and "</s>" have ids but no spelling: a line that contains the letters "</s>" does not end there.

With merges, some words can be kept whole: the labels of trees are one token each.

The third kind is given: the text is already tokens and brings its vocabulary. Tokens not in it are unknown.

A tokenizer of any kind is defined by its file, which says how lines are cut, looked up and joined again.
"""

import hashlib
import json
import struct
import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, cached_property
from itertools import chain, islice
from pathlib import Path
from unicodedata import category

import numpy as np
import tokenizers
from numpy.typing import NDArray
from tokenizers import decoders, models, normalizers, pre_tokenizers, trainers

from repro.data.vocabulary import SCHEMES, Subwords
from repro.model.special_tokens import EOS, PAD, SPECIAL
from repro.storage import atomic

MIN_SIZE = len(SPECIAL) + 256  # every byte is a token
MIN_WORD_PIECES = MIN_SIZE + 256  # every byte is two tokens: one that begins a word, one that continues it
GOES_ON = "\u203f"  # stands before a word-piece inside a word; no byte is spelled so, so no text is mistaken for it
LONGEST_PART = 64  # bytes cut into word-pieces at once: the time grows with the square
UNKNOWN = " <unk>"  # in a given vocabulary; like its tokens, and unlike PAD and EOS, it starts with a blank
SYMBOLS = {*SPECIAL, "<unk>", "<s>"}  # a given vocabulary may list them, but they are no tokens of text

# The byte-level cut of GPT-2, except that letters and digits keep the marks that follow, and letters keep joiners.
# Otherwise a Hindi word of six characters would be six parts, and no token could span two of them.
WITH_MARKS = (
    r"'(?:s|t|re|ve|m|ll|d)(?!\p{M})| ?\p{L}[\p{L}\p{M}\x{200C}\x{200D}]*| ?\p{N}[\p{N}\p{M}]*"
    r"| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
)

LINES_AT_ONCE = 1_000  # few enough that their words stay in the processor's cache
MOST_KNOWN = 1 << 20  # words whose ids are cached: about 160 MB
LONGEST_KNOWN = 64  # characters of the longest word that is cached
IDS_AT_ONCE = 1 << 24  # ids counted at a time, as a corpus has more than fit into memory


class Tokenizer:
    """Converts lines to ids and back; the same file gives the same tokenizer on every machine."""

    def __init__(self, contents: bytes) -> None:
        self._contents = contents
        self._engine = tokenizers.Tokenizer.from_buffer(contents)
        found = tuple(self._engine.id_to_token(id) for id in (PAD, EOS))
        if found != SPECIAL:
            raise ValueError(f"A tokenizer must have {SPECIAL} at ids {PAD} and {EOS}, got {found}.")
        self.size = self._engine.get_vocab_size()
        self.sha256 = hashlib.sha256(contents).hexdigest()
        self.dtype = np.dtype("<u2" if self.size <= 1 << 16 else "<u4")
        self.unknown: int | None = self._engine.token_to_id(UNKNOWN)  # None: every text has tokens
        self._known: dict[str, bytes] = {}

    def __reduce__(self) -> tuple[type["Tokenizer"], tuple[bytes]]:
        return Tokenizer, (self._contents,)

    def encode(self, lines: Sequence[str]) -> tuple[NDArray[np.unsignedinteger], NDArray[np.int64]]:
        """The ids [tokens] of all lines, each ending in EOS, and the offsets [lines + 1] where the lines begin."""
        starts = range(0, len(lines), LINES_AT_ONCE)
        ids = np.frombuffer(b"".join(self._read(lines[i : i + LINES_AT_ONCE]) for i in starts), self.dtype)
        return ids, np.append(0, np.flatnonzero(ids == EOS) + 1)

    def _read(self, lines: Sequence[str]) -> bytes:
        """The ids of some lines, concatenated. The engine encodes each word once; later it is looked up.

        No token spans a blank unless white space stands before that blank, and no token depends on what follows such a
        blank. So the tokens of a line are those of its words, each read with the blank before it.
        """
        # 1. cut all lines into words    2. let the engine encode new words    3. look every word up
        words = [line.split(" ") for line in lines]
        if len(self._known) > MOST_KNOWN:
            self._known = dict(islice(self._known.items(), MOST_KNOWN // 2))  # the first half: frequent words are early
        new = set(chain.from_iterable(words)).difference(self._known)
        apart: dict[str, bytes] = {}
        if leaning := {word for word in new if not _stands_alone(word)}:  # never cached, so always among the new words
            cut = zip(lines, words, strict=True)
            apart = self._spelled([line for line, parts in cut if not leaning.isdisjoint(parts)])
        self._known.update(self._spelled(list(new - leaning)))
        ids = (
            apart[line] if line in apart else b"".join(map(self._known.__getitem__, parts))
            for line, parts in zip(lines, words, strict=True)
        )
        return self._packed([EOS]).join([*ids, b""])

    def _spelled(self, texts: list[str]) -> dict[str, bytes]:
        """Words or lines with their ids from the engine, which reads each with one blank before it."""
        encodings = self._engine.encode_batch_fast(texts)
        return {text: self._packed(encoding.ids) for text, encoding in zip(texts, encodings, strict=True)}

    def _packed(self, ids: Sequence[int]) -> bytes:
        return struct.pack(f"<{len(ids)}{self.dtype.char}", *ids)

    def decode(self, ids: Iterable[int]) -> str:
        """The text of the ids up to EOS, without PAD. Always a single line, whatever the ids."""
        tokens = []
        for id in ids:
            if id == EOS:
                break
            if id != PAD:
                tokens.append(int(id))
        # An untrained model may write a line feed, which would add a line to a file.
        return self._engine.decode(tokens).replace("\n", " ")

    @cached_property
    def is_lone_byte(self) -> NDArray[np.bool_]:
        """Whether a token is one byte of a character with several bytes: [size]."""
        one_byte = "".join(map(chr, range(128)))
        [(letters, _)] = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False).pre_tokenize_str(one_byte)
        parts = set(pre_tokenizers.ByteLevel.alphabet()).difference(letters)
        table = np.zeros(self.size, np.bool_)
        table[[id for token, id in self._engine.get_vocab().items() if token.removeprefix(GOES_ON) in parts]] = True
        return table

    def save(self, path: Path) -> None:
        atomic.write_bytes(path, self._contents)

    @classmethod
    def load(cls, path: Path) -> "Tokenizer":
        contents = path.read_bytes()
        try:
            return cls(contents)
        except Exception as error:  # the library raises bare Exception
            raise ValueError(f"{path} is not a tokenizer ({error}). Delete its folder.") from None


def _stands_alone(word: str) -> bool:
    """Whether the blank after a word certainly ends a token, and the word is short enough to be cached.

    `isspace` stands for the engine's definition of white space; it is true for four more characters.
    """
    return 0 < len(word) <= LONGEST_KNOWN and not word[-1].isspace()


def n_unknown(tokenizer: Tokenizer, ids: NDArray[np.unsignedinteger]) -> int:
    """How many of the ids are the unknown token."""
    return 0 if tokenizer.unknown is None else int(np.count_nonzero(ids == tokenizer.unknown))


def n_lone_bytes(tokenizer: Tokenizer, ids: NDArray[np.unsignedinteger]) -> int:
    """How many of the ids are single bytes of multi-byte characters, as in text that the vocabulary is not made for."""
    parts = (ids[i : i + IDS_AT_ONCE] for i in range(0, len(ids), IDS_AT_ONCE))
    return sum(int(np.count_nonzero(tokenizer.is_lone_byte[part])) for part in parts)


def train_tokenizer(lines: Iterable[str], subwords: Subwords, *, pieces: str = "") -> Tokenizer:
    """Learn at most `subwords.size` tokens; fewer if no pair of tokens occurs twice any more.

    If the words of the text were already cut, `pieces` is the scheme (`vocabulary.py`): decoding gives whole words.
    """
    if subwords.kind == "given":
        raise ValueError(f"{subwords} come with their text and are not learned; make them with given_tokenizer.")
    smallest = MIN_SIZE if subwords.kind == "bpe" else MIN_WORD_PIECES
    if subwords.size < smallest:
        raise ValueError(f"A vocabulary needs {smallest} tokens for the bytes and {SPECIAL}, got {subwords.size}.")
    if subwords.whole:
        return _merges_beside(subwords.whole, lines, subwords)
    learn = _merges if subwords.kind == "bpe" else _word_pieces
    return _finished(learn(lines, subwords.size, pieces))


def _merges(lines: Iterable[str], size: int, pieces: str) -> tokenizers.Tokenizer:
    """Byte-pair encoding: repeatedly, the most frequent pair of neighbouring tokens becomes one token."""
    marks = _Marks(lines)
    engine = _learned(_bytes(with_marks=True), marks, size, pieces)
    engine.pre_tokenizer = _bytes(with_marks=marks.found)
    return engine


class _Marks:
    """Passes training lines on, and records whether one of them had a combining mark or a joiner.

    Without any, both cuts give the same parts, and the tokenizer's file names the usual one. So the file, and every run
    made with it, is the same as before marks were kept with their letters.
    """

    def __init__(self, lines: Iterable[str]) -> None:
        self._lines = lines
        self.found = False

    def __iter__(self) -> Iterator[str]:
        for line in self._lines:
            self.found = self.found or not (line.isascii() or _marks().isdisjoint(line))
            yield line


@cache
def _marks() -> frozenset[str]:
    """All combining marks, and the characters that join letters or keep them apart."""
    return frozenset(one for one in map(chr, range(sys.maxunicode + 1)) if category(one)[0] == "M") | {*"\u200c\u200d"}


def _bytes(*, with_marks: bool) -> pre_tokenizers.PreTokenizer:
    """A pre-tokenizer that cuts text into words, each with the blank before it, and spells them in bytes."""
    if not with_marks:
        return pre_tokenizers.ByteLevel(add_prefix_space=False)
    words = pre_tokenizers.Split(tokenizers.Regex(WITH_MARKS), "isolated")
    return pre_tokenizers.Sequence([words, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


def _joining(pieces: str) -> list[decoders.Decoder]:
    """The decoders that join pieces to words and remove the blank before the line."""
    joins = SCHEMES[pieces].joins if pieces else ()
    return [*(decoders.Replace(tokenizers.Regex(cut), whole) for cut, whole in joins), decoders.Strip(" ", 1, 0)]


def _learned(
    cut: pre_tokenizers.PreTokenizer, lines: Iterable[str], size: int, pieces: str = ""
) -> tokenizers.Tokenizer:
    """Learn merges of text that is first split by the pre-tokenizer `cut`."""
    engine = tokenizers.Tokenizer(models.BPE())
    engine.normalizer = normalizers.Prepend(" ")
    engine.pre_tokenizer = cut
    engine.decoder = decoders.Sequence([decoders.ByteLevel(), *_joining(pieces)])
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        min_frequency=2,
        special_tokens=list(SPECIAL),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    engine.train_from_iterator(lines, trainer)
    return engine


def _merges_beside(whole: Sequence[str], lines: Iterable[str], subwords: Subwords) -> Tokenizer:
    """Byte-pair encoding of text that is split into words at its blanks, beside words that are never split.

    The words that are never split are left out of the training text, on both sides.
    """
    if subwords.kind != "bpe" or subwords.size - len(whole) < MIN_SIZE:
        raise ValueError(
            f"{len(whole)} words that are never cut need byte-pair merges and {MIN_SIZE + len(whole)} tokens at least, "
            f"got {subwords.kind} and {subwords.size}."
        )
    kept = {*whole}
    learned_from = (" ".join(word for word in line.split(" ") if word not in kept) for line in lines)
    spelling = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    apart = pre_tokenizers.Split(tokenizers.Regex(" ?[^ ]+| "), "isolated")
    engine = _learned(pre_tokenizers.Sequence([apart, spelling]), learned_from, subwords.size - len(whole))
    contents = json.loads(engine.to_str())
    vocabulary = contents["model"]["vocab"]
    # no merge may spell a special token: its letters must stay letters, and between blanks nothing else splits them
    contents["model"]["merges"] = [pair for pair in contents["model"]["merges"] if "".join(pair) not in SPECIAL]
    for word in whole:
        [(spelled, _)] = spelling.pre_tokenize_str(f" {word}")
        vocabulary.setdefault(spelled, len(vocabulary))
    contents["model"]["ignore_merges"] = True  # a word in the vocabulary is taken whole
    return _finished(tokenizers.Tokenizer.from_str(json.dumps(contents)))


def _word_pieces(lines: Iterable[str], size: int, pieces: str) -> tokenizers.Tokenizer:
    """Word-pieces: learned like merges, but a word is split greedily, taking the longest token that fits each time."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    engine = tokenizers.Tokenizer(models.WordPiece(unk_token=UNKNOWN))  # not in the vocabulary, and never needed
    engine.normalizer = normalizers.Prepend(" ")
    parts = pre_tokenizers.FixedLength(LONGEST_PART)
    engine.pre_tokenizer = pre_tokenizers.Sequence([_bytes(with_marks=True), parts])
    engine.decoder = decoders.Sequence([decoders.Replace(GOES_ON, ""), decoders.ByteLevel(), *_joining(pieces)])
    trainer = trainers.WordPieceTrainer(
        vocab_size=size,
        min_frequency=2,
        # Continuing bytes are listed as special tokens; otherwise only those that occur would get a token.
        special_tokens=[*SPECIAL, *(GOES_ON + letter for letter in alphabet)],
        initial_alphabet=alphabet,
        continuing_subword_prefix=GOES_ON,
        show_progress=False,
    )
    marks = _Marks(lines)
    engine.train_from_iterator(marks, trainer)
    engine.pre_tokenizer = pre_tokenizers.Sequence([_bytes(with_marks=marks.found), parts])
    return engine


def given_tokenizer(vocabulary_lines: Iterable[str], *, pieces: str = "@@") -> Tokenizer:
    """A tokenizer from the vocabulary of pre-tokenised text: one token a line, with the marks of `pieces`.

    An example is the pre-processed English-German of Britz et al. (2017), which the paper cites and its first code
    reads: there "@@" at the end of a token says that the next token continues the word.
    The tokens keep their order. Lines that name symbols are left out, as the symbols already have ids here.
    """
    tokens = [token for token in dict.fromkeys(vocabulary_lines) if token and token not in SYMBOLS]
    if broken := [token for token in tokens if " " in token]:
        raise ValueError(f"A vocabulary has one token a line, got {broken[0]!r}. Cut counts and translations off.")
    if not tokens:
        raise ValueError("A vocabulary has one token a line, got none. Is the file empty?")
    names = [*SPECIAL, UNKNOWN, *(f" {token}" for token in tokens)]
    vocabulary = {name: id for id, name in enumerate(names)}
    engine = tokenizers.Tokenizer(models.WordLevel(vocabulary, unk_token=UNKNOWN))
    engine.normalizer = normalizers.Prepend(" ")
    engine.pre_tokenizer = pre_tokenizers.Split(tokenizers.Regex(" [^ ]+"), "removed", invert=True)
    engine.decoder = decoders.Sequence([decoders.Fuse(), *_joining(pieces)])
    return _finished(engine)


def _finished(engine: tokenizers.Tokenizer) -> Tokenizer:
    contents = json.loads(engine.to_str())
    contents["added_tokens"] = []  # otherwise the library recognises "</s>" in text
    return Tokenizer(json.dumps(contents, ensure_ascii=False, indent=0).encode())
