"""When two lines are the same sentence: one definition for all that compares text.

The reader of test sets and their parts, the shares that are drawn from training text, the cleaner's duplicates, and the
card's counts of repeated text all ask here.
"""

import re
from unicodedata import category, normalize

QUOTES = {"'": "‘’‚‛′‹›ʼ＇", '"': "“”„‟″«»＂"}
_UNSEEN = {" ": "\u200b\u2060\ufeff", "": "\ufe0e\ufe0f"}  # places to break or not; how an emoji is drawn
_PLAIN = str.maketrans({other: one for one, others in (QUOTES | _UNSEEN).items() for other in others})
_MARKS = ("Mn", "Mc", "Me")  # of letters: accents that no letter has by itself, and the vowels of Hindi
_WORD = re.compile(r"[^\W_]+")


def same_spelling(line: str) -> str:
    """The line in the one way that all its spellings share: Unicode's NFC, plain quotes, one blank between words.

    Two lines are the same sentence where this is the same.
    """
    if not line.isascii():
        line = normalize("NFC", line).translate(_PLAIN)
    return " ".join(line.split())


def normalised(line: str) -> str:
    """The words of the line in lower case, a blank between each two: its letters and digits with their marks."""
    line = same_spelling(line).casefold()
    if line.isascii():
        return " ".join(_WORD.findall(line))
    return " ".join("".join(one if one.isalnum() or category(one) in _MARKS else " " for one in line).split())
