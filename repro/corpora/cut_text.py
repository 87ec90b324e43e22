"""Text that comes cut into pieces: finds by which scheme of `repro/data/vocabulary.py`, from marks in its lines.

Scored as it is, such text would get another score: most pieces of a word are right if the word is. So the first lines
of a text are looked at. Pieces are joined to words before scoring, in translations by the tokenizer and in references
by `whole_words`; Moses tokens are left to the scorers (`repro/decoding/bleu.py`), which count them as they are cut.
"""

import functools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from repro.corpora.parallel_text import Parallel
from repro.data.vocabulary import SCHEMES, whole_words

_LOOKED_AT = 10_000  # pairs at the head of a text
_MARKED_FROM = 0.01  # share of lines: rarer marks are chance, as the 2 "@@" in 29,000 German captions
_ESCAPED_FROM = 0.001  # the same for escapes, if full stops stand apart
_APART_FROM = 0.5  # share of the lines that end in a full stop
_EXPECTED = 20  # marked lines to expect in a text: if fewer are expected, none may be chance
_MOSES, _APART = "moses", "apart"  # what is looked for beside the names of SCHEMES

# what is told of lines with a mark of the target
_TOLD = {name: f"bear the marks of pieces of words ({name}): they are joined before a score" for name in SCHEMES} | {
    _MOSES: "have escapes or joiners of Moses (&apos;, @-@, ##AT##): its tokens are scored as multi-bleu has them, and "
    "joined to plain text for sacreBLEU",
    _APART: "that end in a full stop have a blank before it: the text looks tokenised and is scored as it stands, so "
    "its BLEU is not that of plain text",
}
_MOSES_MARK = re.compile(r"&(?:quot|apos|lt|gt|amp|bar|bra|ket|#9[13]|#124);|(?: |^)@[^\w\s]@(?: |$)|##AT##")


@dataclass(frozen=True, kw_only=True)
class Cut:
    """How a text is cut."""

    pieces: str = ""  # the scheme of the target's pieces; "": whole words
    in_tokens: bool = False  # the target is Moses tokens
    notes: tuple[str, ...] = ()  # a sentence for each mark that was found


def form_of(train: Sequence[Parallel], held_out: Sequence[Parallel], *, has_vocabulary: bool) -> Cut:
    """How a reader's own text is cut, as its marks show.

    With a vocabulary, text without other marks counts as pieces of Moses tokens, as that of Britz et al. Raises
    ValueError if pieces cannot be joined, and if training and held-out text are not cut alike.
    """
    target = _heads(train[0])[1]
    if len(target.schemes) > 1:
        shares = " and ".join(f"{name} in {target.share(name):.1%}" for name in target.schemes)
        raise ValueError(
            f"{target.path}: expected pieces by one scheme, got {shares} of its lines. Cut it by one of them."
        )
    refuse_mixed(train, held_out)
    found = [*target.schemes, *([_MOSES] if target.is_moses else [_APART] if target.has(_APART) else [])]
    said = {*found} | ({"@@", _MOSES} if has_vocabulary and not {*target.schemes} - {"@@"} else set())
    notes = [
        f"{100 * target.share(name):.1f} % of the target lines of the training text {_TOLD[name]}." for name in found
    ]
    pieces = next((name for name in SCHEMES if name in said), "")
    return Cut(pieces=pieces, in_tokens=_MOSES in said, notes=tuple(notes))


def refuse_mixed(train: Sequence[Parallel], held_out: Sequence[Parallel]) -> None:
    """Raise ValueError if training and held-out text are not cut alike: the score would measure the cutting."""
    for text in held_out:
        for one, other in zip(_heads(train[0]), _heads(text), strict=True):
            for name in (*SCHEMES, _APART):
                fewer, more = sorted((one, other), key=lambda head: head.share(name))
                expected = more.share(name) * fewer.counts[name][1] if more.has(name) else 0
                if expected >= _EXPECTED and 10 * fewer.share(name) < more.share(name):
                    what = "full stops that stand apart" if name == _APART else f"pieces of words ({name})"
                    differ = f"in {more.share(name):.1%} of its lines, {fewer.path} in {fewer.share(name):.1%}"
                    how = "expected training and held-out text to be cut alike. Cut or join one of them."
                    raise ValueError(f"{more.path} has {what} {differ}: {how}")


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
            return self.share(_MOSES) >= _ESCAPED_FROM
        return self.has(_MOSES) and not self.counts[_APART][1]


def _heads(text: Parallel) -> tuple[_Head, _Head]:
    """The heads of source and target of a text, or of a part of one."""
    return _read(text, *(one.sha256 for one in text.fingerprints()))


@functools.cache
def _read(text: Parallel, *_: str) -> tuple[_Head, _Head]:
    """The heads, read once per process unless the text changes."""
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
        _MOSES: (sum(bool(_MOSES_MARK.search(line)) for line in words), n),
        _APART: (sum(line.endswith(" .") for line in stops), len(stops)),
    }
