"""A part of a test set that is a test set of its own, as 2,737 of the 3,003 lines of newstest2014 en-de are.

One translation of the whole gives the scores of both. Which lines are in the part is found by comparing the two texts
and written nowhere: their orders differ, and the order in one archive says nothing about another's.
"""

import hashlib
from dataclasses import dataclass

from repro.corpora.parallel_text import Parallel
from repro.corpora.same_sentence import same_spelling


@dataclass(frozen=True, kw_only=True)
class Subset:
    """The lines of a part, in its own order."""

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
