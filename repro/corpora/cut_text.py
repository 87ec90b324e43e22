"""Text that comes cut into pieces: finds by which scheme of `repro/data/vocabulary.py`, from marks in its lines.

Scored as it is, such text would get another score: most pieces of a word are right if the word is. So the first lines
of a text are looked at. Pieces are joined to words before scoring, in translations by the tokenizer and in references
by `whole_words`; Moses tokens are left to the scorers (`repro/decoding/bleu.py`), which count them as they are cut.
"""

import functools
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from repro.corpora.parallel_text import Parallel
from repro.data.vocabulary import SCHEMES, whole_words

CUT = "cut"  # the file in a folder of your own text that says how it is cut
_LOOKED_AT = 10_000  # pairs at the head of a text
_MARKED_FROM = 0.01  # share of lines: rarer marks are chance, as the 2 "@@" in 29,000 German captions
_ESCAPED_FROM = 0.001  # the same for escapes, if full stops stand apart
_APART_FROM = 0.5  # share of the lines that end in a full stop
_EXPECTED = 20  # marked lines to expect in a text: if fewer are expected, none may be chance
_SIDES = ("source", "target")
_MOSES, _PLAIN = "moses", "plain"  # what that file may say beside the names of SCHEMES
_ESCAPED, _APART, _NFD, _BYTES = "escaped", "apart", "nfd", "bytes"  # what else is looked for

# what is told of lines with a mark, and what it means for those of the target
_TOLD = {
    name: (f"bear the marks of pieces of words ({name})", "they are joined before a score") for name in SCHEMES
} | {
    _MOSES: (
        "have escapes or joiners of Moses (&apos;, @-@, ##AT##)",
        "its tokens are scored as multi-bleu has them, and joined to plain text for sacreBLEU",
    ),
    _ESCAPED: ("have escapes (&amp;) although they are not cut", "each counts as three words, so undo them"),
    _APART: (
        "that end in a full stop have a blank before it",
        "the text looks tokenised and is scored as it stands, so its BLEU is not that of plain text",
    ),
}
_MOSES_MARK = re.compile(r"&(?:quot|apos|lt|gt|amp|bar|bra|ket|#9[13]|#124);|(?: |^)@[^\w\s]@(?: |$)|##AT##")


@dataclass(frozen=True, kw_only=True)
class Cut:
    """How a text is cut."""

    pieces: str = ""  # the scheme of the target's pieces; "": whole words
    in_tokens: bool = False  # the target is Moses tokens
    notes: tuple[str, ...] = ()  # a sentence for each mark that was found


def form_of(train: Sequence[Parallel], held_out: Mapping[str, Parallel], folder: Path, *, has_vocabulary: bool) -> Cut:
    """How a reader's own text is cut: as the file CUT says, else as its marks show.

    With a vocabulary, text without other marks counts as pieces of Moses tokens, as that of Britz et al. Raises
    ValueError if pieces cannot be joined, and if training and held-out text are not cut alike.
    """
    heads = _heads(train)
    _, target = heads
    stated = _stated(folder / CUT)
    notes = [f"A file {CUT!r} beside the text says how it is cut: {' '.join(sorted(stated or ()))}."]
    if stated is None:
        for head in heads:
            head.refuse_unknown()
        refuse_mixed(train, held_out)
        found = {*target.schemes, *([_MOSES] if target.is_moses else [])}
        stated = found | ({"@@", _MOSES} if has_vocabulary and not {*target.schemes} - {"@@"} else set())
        notes = [note for i, side in enumerate(_SIDES) for note in heads[i].notes(side)]
    splits = {"train": heads, **{split: _heads([text]) for split, text in held_out.items()}}
    notes += [
        note for split, of in splits.items() for i, side in enumerate(_SIDES) for note in of[i].decomposed(side, split)
    ]
    pieces = next((name for name in SCHEMES if name in stated), "")
    return Cut(pieces=pieces, in_tokens=_MOSES in stated, notes=tuple(notes))


def refuse_mixed(train: Sequence[Parallel], held_out: Mapping[str, Parallel]) -> None:
    """Raise ValueError if training and held-out text are not cut alike: the score would measure the cutting."""
    for text in held_out.values():
        for one, other in zip(_heads(train), _heads([text]), strict=True):
            for name in (*SCHEMES, _APART):
                fewer, more = sorted((one, other), key=lambda head: head.share(name))
                expected = more.share(name) * fewer.counts[name][1] if more.has(name) else 0
                if expected >= _EXPECTED and 10 * fewer.share(name) < more.share(name):
                    what = "full stops that stand apart" if name == _APART else f"pieces of words ({name})"
                    raise ValueError(
                        f"{more.path} has {what} in {more.share(name):.1%} of its lines, {fewer.path} in "
                        f"{fewer.share(name):.1%}: expected training and held-out text to be cut alike. Cut or join "
                        f"one of them. If the text is your own, a file {CUT!r} beside it can say how it is cut."
                    )


@dataclass(frozen=True)
class _Head:
    """What the first lines of one side of a text show."""

    path: Path
    counts: Mapping[str, tuple[int, int]]  # lines with a mark, and lines that could have it

    def share(self, name: str) -> float:
        n, of = self.counts[name]
        return n / of if of else 0.0

    def has(self, name: str) -> bool:
        return self.share(name) >= (_APART_FROM if name == _APART else _MARKED_FROM)

    @property
    def schemes(self) -> list[str]:
        return [name for name in SCHEMES if self.has(name)]

    @property
    def is_moses(self) -> bool:
        """Whether it has escapes or joiners; if full stops are attached to words, the text was only escaped."""
        if self.has(_APART):
            return self.share(_ESCAPED) >= _ESCAPED_FROM
        return self.has(_ESCAPED) and not self.counts[_APART][1]

    def notes(self, side: str) -> Iterator[str]:
        """What a reader is told of the cut, with the share of lines that show it."""
        kinds = [_MOSES] if self.is_moses else [name for name in (_ESCAPED, _APART) if self.has(name)]
        for name in (*self.schemes, *kinds):
            have, done = _TOLD[name]
            share = self.share(_ESCAPED if name == _MOSES else name)
            lines = f"{100 * share:.1f} % of the {side} lines of the training text {have}"
            yield f"{lines}: {done}." if side == "target" or name == _ESCAPED else f"{lines}."

    def decomposed(self, side: str, split: str) -> Iterator[str]:
        """What is told of letters that are spelled in two ways."""
        if self.has(_NFD):
            yield (
                f"{100 * self.share(_NFD):.1f} % of the {side} lines of {split} spell a letter and its accent as two "
                "characters where there is one (not Unicode's NFC): a word in both spellings is two to a model and to "
                "BLEU. Write all text in one: uconv -x any-nfc"
            )

    def refuse_unknown(self) -> None:
        """Raise ValueError if it is unknown how to join the pieces."""
        which = f"Say in a file {CUT!r} beside it which is meant: {', '.join((*SCHEMES, _MOSES, _PLAIN))}."
        if len(self.schemes) > 1:
            shares = " and ".join(f"{name} in {self.share(name):.1%}" for name in self.schemes)
            raise ValueError(f"{self.path}: expected pieces of words by one scheme, got {shares} of its lines. {which}")
        if self.share(_BYTES) >= _APART_FROM:
            raise ValueError(
                f"{self.path} holds byte-level tokens (\u0120 in {self.share(_BYTES):.1%} of its lines), whose letters "
                f"are bytes: expected text. Decode it with the tokenizer that cut it. If it is text: {which}"
            )


def _heads(texts: Sequence[Parallel]) -> tuple[_Head, _Head]:
    """The heads of source and target of a text in one or several parts."""
    parts = [_head(text, *(one.sha256 for one in text.fingerprints())) for text in texts]
    source, target = (
        _Head(of_side[0].path, {name: _sums([part.counts[name] for part in of_side]) for name in of_side[0].counts})
        for of_side in zip(*parts, strict=True)
    )
    return source, target


def _sums(counts: Sequence[tuple[int, int]]) -> tuple[int, int]:
    found, of = zip(*counts, strict=True)
    return sum(found), sum(of)


@functools.cache
def _head(text: Parallel, *_: str) -> tuple[_Head, _Head]:
    """The heads of one part, read once per process unless it changes."""
    pairs = list(islice(text.pairs(), _LOOKED_AT))
    sources, targets = ([pair[i] for pair in pairs] for i in range(2))
    return _Head(text.source, _counted(sources)), _Head(text.target, _counted(targets))


def _counted(lines: Sequence[str]) -> dict[str, tuple[int, int]]:
    n = len(lines)
    found = {name: sum(bool(scheme.mark.search(line)) for line in lines) for name, scheme in SCHEMES.items()}
    schemes = [name for name in SCHEMES if found[name] >= _MARKED_FROM * n]
    words = [whole_words(line, schemes[0]) for line in lines] if len(schemes) == 1 else lines
    stops = [line for line in words if line.endswith(".")]
    return {
        **{name: (count, n) for name, count in found.items()},
        _ESCAPED: (sum(bool(_MOSES_MARK.search(line)) for line in words), n),
        _APART: (sum(line.endswith(" .") for line in stops), len(stops)),
        _NFD: (sum(not unicodedata.is_normalized("NFC", line) for line in lines), n),
        _BYTES: (sum(" \u0120" in line for line in lines), n),
    }


def _stated(file: Path) -> set[str] | None:
    """What the file CUT says of the text; None if there is none."""
    if not file.is_file():
        return None
    said = file.read_bytes().decode("utf-8-sig").split()
    schemes = {*said} - {_MOSES}
    if not said or (said != [_PLAIN] and (len(schemes) > 1 or schemes - {*SCHEMES})):
        raise ValueError(
            f"{file}: expected {_PLAIN!r}, or one of {', '.join(SCHEMES)}, or {_MOSES!r}, or both of these, got "
            f"{' '.join(said)!r}. It says how the lines of the folder are cut."
        )
    return {*said}
