"""When two lines are the same sentence: one definition for all that compares text.

It is used to find a part in its test set, to draw shares of the training text, to clean duplicates, and to count
repeated text for the data card.
"""

import hashlib
import re
from dataclasses import dataclass
from unicodedata import category, normalize

from repro.corpora.parallel_text import Parallel

QUOTES = {"'": "‘’‚‛′‹›ʼ＇", '"': "“”„‟″«»＂"}
_UNSEEN = {" ": "\u200b\u2060\ufeff", "": "\ufe0e\ufe0f"}  # marks of where a line may break; how an emoji is drawn
_PLAIN = str.maketrans({other: one for one, others in (QUOTES | _UNSEEN).items() for other in others})
_MARKS = ("Mn", "Mc", "Me")  # marks on letters: accents without a letter of their own, and the vowels of Hindi
_WORD = re.compile(r"[^\W_]+")


def same_spelling(line: str) -> str:
    """The line in one standard spelling: Unicode's NFC, plain quotes, one blank between words.

    Two lines are the same sentence if their standard spellings are equal.
    """
    if not line.isascii():
        line = normalize("NFC", line).translate(_PLAIN)
    return " ".join(line.split())


def normalised(line: str) -> str:
    """The words of the line in lower case with blanks between them: only letters and digits, with their marks."""
    line = same_spelling(line).casefold()
    if line.isascii():
        return " ".join(_WORD.findall(line))
    return " ".join("".join(one if one.isalnum() or category(one) in _MARKS else " " for one in line).split())


@dataclass(frozen=True, kw_only=True)
class Subset:
    """A part of a test set that is a test set of its own, as 2,737 of the 3,003 lines of newstest2014 en-de are.

    One translation of the whole gives the scores of both. Which lines are in the part is found by comparing the two
    texts and is not written down: their orders differ, and may differ between archives.
    """

    name: str
    places: tuple[int, ...]  # where each stands in the whole
    references: tuple[str, ...]
    sha256: str  # of its text


def subset_of(name: str, part: Parallel, whole: Parallel) -> Subset:
    """Finds the source lines of `part` in `whole`. Raises ValueError that names a line that is not there.

    If a line is there twice, its first place is as good as the second: both are translated alike.
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
