"""When two lines are the same sentence: one definition for all that compares text.

The reader of test sets and their parts, the shares that are drawn from training text, the cleaner's duplicates, and the
card's counts of repeated text all ask here.
"""

import hashlib
import re
from dataclasses import dataclass
from unicodedata import category, normalize

from repro.corpora.parallel_text import Parallel

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


@dataclass(frozen=True, kw_only=True)
class Subset:
    """A part of a test set that is a test set of its own, as 2,737 of the 3,003 lines of newstest2014 en-de are.

    One translation of the whole gives the scores of both. Which lines are in the part is found by comparing the two
    texts and written nowhere: their orders differ, and the order in one archive says nothing about another's.
    """

    name: str
    places: tuple[int, ...]  # where each stands in the whole
    references: tuple[str, ...]
    sha256: str  # of its text


def subset_of(name: str, part: Parallel, whole: Parallel) -> Subset:
    """Where the source lines of `part` stand in `whole`. Raises ValueError that names one that does not.

    Of a line that stands there twice the first place is as good as the second: they are translated alike.
    """
    known: dict[str, int] = {}
    for i, (source, _) in enumerate(whole.pairs()):
        known.setdefault(same_spelling(source), i)
    places, references = [], []
    for number, (source, target) in enumerate(part.pairs(), 1):
        if (place := known.get(same_spelling(source))) is None:
            raise ValueError(
                f"{part.source}, line {number:,} is not in {whole.source}; expected each line of {name} to be one of "
                "the whole test set. Get both again, or move the files of the part away to go without its score."
            )
        places.append(place)
        references.append(target)
    digests = "".join(one.sha256 for one in part.fingerprints())
    sha256 = hashlib.sha256(digests.encode()).hexdigest()
    return Subset(name=name, places=tuple(places), references=tuple(references), sha256=sha256)
