"""The embedded corpus `grammar`: English sentences with German and French sides, made by one grammar.

A tree is drawn first (`author`); then each language lays the same tree out by its own rules (`english`,
`german`, `french`). A translation is therefore right by construction, and it is a function of the whole
English sentence. What a word becomes often hangs on words far from it:

    Yesterday, the old man who helps my sister did not close the kitchen door because it was broken.
    Gestern hat der alte Mann, der meiner Schwester hilft, die Küchentür nicht zugemacht, weil sie kaputt war.
    Hier, le vieil homme qui aide ma sœur n'a pas fermé la porte de cuisine parce qu'elle était cassée.

The corpus is the same on every machine.
"""

import hashlib
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from repro.corpora.grammar.author import Author
from repro.corpora.grammar.english import english
from repro.corpora.grammar.french import french
from repro.corpora.grammar.german import german
from repro.storage.atomic import write_text

# SHA-256 of the first 1,000 triples of seed 0, as `sample_digest` takes it; a test compares. A change that
# shows in those sentences must change this line; a rare construction may change without touching it.
SAMPLE_DIGEST = "db4750323a569dd17dfda17c04852b93a480dd8eb13a40b7e180181f1062e243"


def sentences(seed: int) -> Iterator[tuple[str, str, str]]:
    """An endless stream of (English, German, French), no English sentence twice, 4 to 30 English words."""
    author, seen = Author(seed), set[str]()
    while True:
        tree = author.sentence()
        source = english(tree)
        if source not in seen and 4 <= source.count(" ") + 1 <= 30:
            seen.add(source)
            yield source, german(tree), french(tree)


def sample_digest() -> str:
    """SHA-256 of the first 1,000 triples of seed 0, one line for each language."""
    triples = islice(sentences(0), 1000)
    return hashlib.sha256("".join("\n".join(triple) + "\n" for triple in triples).encode()).hexdigest()


def write_grammar(folder: Path, *, n_train: int, n_dev: int, n_test: int, seed: int = 0) -> None:
    """Write train, dev and test as .en, .de and .fr into `folder`.

    Test is drawn first, then dev, then train, from one stream that never repeats an English sentence: the
    splits are disjoint by source, and the held-out sets are the same however much training text follows.
    """
    stream = sentences(seed)
    for split, n in (("test", n_test), ("dev", n_dev), ("train", n_train)):
        triples = [next(stream) for _ in range(n)]
        for column, language in enumerate(("en", "de", "fr")):
            write_text(folder / f"{split}.{language}", "".join(triple[column] + "\n" for triple in triples))
