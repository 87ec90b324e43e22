"""The embedded corpora `grammar` and `grammar_trees`: English sentences with German and French sides, or with trees.

A tree is drawn first (`author`); then each language lays the same tree out by its own rules (`english`,
`german`, `french`). A translation is therefore right by construction, and it is a function of the whole
English sentence. How a word is translated often depends on words far from it:

    Yesterday, the old man who helps my sister did not close the kitchen door because it was broken.
    Gestern hat der alte Mann, der meiner Schwester hilft, die Küchentür nicht zugemacht, weil sie kaputt war.
    Hier, le vieil homme qui aide ma sœur n'a pas fermé la porte de cuisine parce qu'elle était cassée.

Both corpora are the same on every machine, and have the same English sentences in the same order.
"""

from collections.abc import Iterator
from pathlib import Path
from random import Random

from repro.corpora.grammar.author import Author
from repro.corpora.grammar.english import english, english_tree
from repro.corpora.grammar.french import french
from repro.corpora.grammar.german import german
from repro.corpora.grammar.tree import Sentence
from repro.data.treebank import Bracket, Tree, bracketed, read_trees
from repro.storage.atomic import write_text

DISTURBED = 0.1  # share of wrong brackets in a silver tree: about that of the parsers behind the paper's corpora
OTHERS = ("NP", "VP", "PP", "S", "SBAR", "ADVP", "ADJP")  # the labels that a wrong bracket may get


def _drawn(seed: int) -> Iterator[tuple[Sentence, str]]:
    """An endless stream of sentences with their English, none twice, 4 to 30 English words."""
    author, seen = Author(seed), set[str]()
    while True:
        sentence = author.sentence()
        line = english(sentence)
        if line not in seen and 4 <= line.count(" ") + 1 <= 30:
            seen.add(line)
            yield sentence, line


def sentences(seed: int) -> Iterator[tuple[str, str, str]]:
    """An endless stream of (English, German, French), no English sentence twice, 4 to 30 English words."""
    for sentence, line in _drawn(seed):
        yield line, german(sentence), french(sentence)


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


# Trees -----------------------------------------------------------------------------------------------------


def gold_trees(seed: int) -> Iterator[Tree]:
    """An endless stream of trees, no sentence twice, 4 to 30 words before punctuation is split off."""
    for sentence, _ in _drawn(seed):
        [tree] = read_trees(english_tree(sentence))
        assert isinstance(tree, Tree)
        yield tree


def silver_tree(tree: Tree, chance: Random, share: float = DISTURBED) -> Tree:
    """The tree with errors like a parser's in this share of its brackets; the root is kept.

    One in three is left out, one has another label, and one loses its last word to the bracket around it.
    """
    root, *others = tree.brackets
    kept = [root]
    for bracket in others:
        roll = chance.random() / share
        if roll < 1 / 3:
            continue
        if roll < 2 / 3:
            bracket = bracket._replace(label=OTHERS[int(chance.random() * len(OTHERS))])
        elif roll < 1 and bracket.end - bracket.begin > 1:
            bracket = bracket._replace(end=bracket.end - 1)
        kept.append(bracket)
    return Tree(tree.leaves, tuple(_nested(kept)))


def _nested(brackets: list[Bracket]) -> Iterator[Bracket]:
    """The brackets, each cut where it would end after the one around it."""
    around: list[Bracket] = []
    for bracket in brackets:
        while around and around[-1].end <= bracket.begin:
            around.pop()
        end = min(bracket.end, around[-1].end) if around else bracket.end
        if bracket.begin < end:
            around.append(bracket._replace(end=end))
            yield around[-1]


def write_grammar_trees(folder: Path, *, n_train: int, n_dev: int, n_test: int, n_silver: int, seed: int = 0) -> None:
    """Write test, dev, train and silver as files of trees, drawn in this order from one stream that repeats nothing.

    The held-out trees are the same however much training text follows.
    """
    stream, chance = gold_trees(seed), Random(f"silver {seed}")
    for split, n in (("test", n_test), ("dev", n_dev), ("train", n_train), ("silver", n_silver)):
        trees = (next(stream) for _ in range(n))
        lines = (bracketed(silver_tree(tree, chance) if split == "silver" else tree, "TOP") for tree in trees)
        if n:
            write_text(folder / f"{split}.mrg", "".join(f"{line}\n" for line in lines))
