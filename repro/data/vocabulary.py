"""Which vocabulary of sub-words is wanted, and the schemes by which text comes cut already. Paper: section 5.1."""

import re
from dataclasses import dataclass
from typing import Literal, get_args

SubwordKind = Literal["bpe", "wordpiece", "given"]


@dataclass(frozen=True)
class Subwords:
    """One vocabulary for both languages.

    "bpe" merges frequent neighbours, as the paper's English-German; "wordpiece" reads the longest token first, as
    its English-French; "given" takes text that is split into sub-words already, with the vocabulary that came with it.
    """

    kind: SubwordKind
    size: int  # tokens asked for; a small text may have fewer, and what is given has as many as it has
    whole: tuple[str, ...] = ()  # of "bpe": words that are one token each and are never cut, counted in `size`

    def __post_init__(self) -> None:
        """Raises ValueError for another kind, which would pass for word-pieces."""
        if self.kind not in get_args(SubwordKind):
            raise ValueError(f"Sub-words: expected one of {', '.join(get_args(SubwordKind))}, got {self.kind!r}.")


@dataclass(frozen=True)
class Scheme:
    """How words were cut into pieces."""

    mark: re.Pattern[str]
    joins: tuple[tuple[str, str], ...]  # pattern and replacement, one after the other; a blank stands before the line


SCHEMES = {
    "@@": Scheme(re.compile(r"\S@@(?= |$)"), ((r"@@( |$)", ""),)),  # subword-nmt, fastBPE
    "##": Scheme(re.compile(r"\S ##(?!AT##)\w"), ((r" ##(?!AT##)", ""),)),  # BERT; ##AT##-##AT## is a dash
    "\u2581": Scheme(re.compile("(?:^| )\u2581"), ((" ", ""), ("\u2581", " "))),  # sentencepiece
    "</w>": Scheme(re.compile(r"\S</w>(?= |$)"), ((" ", ""), ("</w>$", ""), ("</w>", " "))),  # subword-nmt 0.1
    "\uffed": Scheme(re.compile("\uffed"), ((" ?\uffed ?", ""),)),  # OpenNMT's tokenizer
}


def whole_words(line: str, pieces: str) -> str:
    """The words of a line that is cut by a scheme."""
    if not pieces:
        return line
    line = f" {line}"
    for pattern, replacement in SCHEMES[pieces].joins:
        line = re.sub(pattern, replacement, line)
    return line.removeprefix(" ")
