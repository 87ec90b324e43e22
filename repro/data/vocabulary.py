"""How text is cut: the choice of sub-word vocabulary, schemes that mark already split text, and scoring without blanks.

Paper: section 5.1.
"""

import re
from dataclasses import dataclass
from typing import Literal, get_args

SubwordKind = Literal["bpe", "wordpiece", "given"]


@dataclass(frozen=True)
class Subwords:
    """One vocabulary for both languages.

    "bpe" merges frequent neighbours, as for the paper's English-German; "wordpiece" takes the longest token first, as
    for its English-French; "given" takes text that is already split into sub-words, with the vocabulary that it brings.
    """

    kind: SubwordKind
    size: int  # tokens to learn; a small text may give fewer, and "given" has the size of its own vocabulary
    whole: tuple[str, ...] = ()  # for "bpe": words that are one token each, never split, and counted in `size`

    def __post_init__(self) -> None:
        """Raises ValueError for an unknown kind, which would otherwise be treated as word-pieces."""
        if self.kind not in get_args(SubwordKind):
            raise ValueError(f"Sub-words: expected one of {', '.join(get_args(SubwordKind))}, got {self.kind!r}.")


@dataclass(frozen=True)
class Scheme:
    """How words were cut into pieces."""

    mark: re.Pattern[str]
    joins: tuple[tuple[str, str], ...]  # (pattern, replacement), applied in order to the line with a blank before it


SCHEMES = {
    "@@": Scheme(re.compile(r"\S@@(?= |$)"), ((r"@@( |$)", ""),)),  # subword-nmt, fastBPE
    "##": Scheme(re.compile(r"\S ##(?!AT##)\w"), ((r" ##(?!AT##)", ""),)),  # BERT; ##AT##-##AT## is a dash
    "\u2581": Scheme(re.compile("(?:^| )\u2581"), ((" ", ""), ("\u2581", " "))),  # sentencepiece
    "</w>": Scheme(re.compile(r"\S</w>(?= |$)"), ((" ", ""), ("</w>$", ""), ("</w>", " "))),  # subword-nmt 0.1
    "\uffed": Scheme(re.compile("\uffed"), ((" ?\uffed ?", ""),)),  # OpenNMT's tokenizer
}


def whole_words(line: str, pieces: str) -> str:
    """Join the pieces of a line that was cut by this scheme ("": none) into whole words."""
    if not pieces:
        return line
    line = f" {line}"
    for pattern, replacement in SCHEMES[pieces].joins:
        line = re.sub(pattern, replacement, line)
    return line.removeprefix(" ")


# Languages written without blanks between words need a tokeniser of their own for scoring: ISO 639 tags and common
# spellings of them, grouped by sacreBLEU tokeniser. `zh` separates Chinese characters, `char` separates all characters.
# `ja-mecab` would need a dictionary that few have installed.
CHINESE = ["zh", "zho", "chi", "cmn", "yue", "wuu", "lzh", "cn"]
OTHERS = ["ja", "jpn", "jp", "th", "tha", "lo", "lao", "km", "khm", "my", "mya", "bur", "shn", "bo", "bod", "dz", "dzo"]
TOKENISERS = dict.fromkeys(CHINESE, "zh") | dict.fromkeys(OTHERS, "char")


def tokeniser_of(language: str) -> str | None:
    """sacreBLEU's tokeniser for a language (zh, zh-Hans, zh_CN, ZH, zho_Hans are one); None if it writes blanks."""
    return TOKENISERS.get(re.split("[-_]", language.casefold())[0])
