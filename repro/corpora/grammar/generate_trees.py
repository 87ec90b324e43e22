"""The embedded corpus `grammar_trees`: the English sentences of `grammar` with the trees that they were drawn from.

The corpus is the same on every machine. Its sentences are those of `grammar`, in the same order.
"""

from collections.abc import Iterator
from pathlib import Path
from random import Random

from repro.corpora.grammar.author import Author
from repro.corpora.grammar.english import english
from repro.corpora.grammar.english_trees import english_tree
from repro.data.treebank import Bracket, Tree, bracketed, read_trees
from repro.storage.atomic import write_text

DISTURBED = 0.1  # of the brackets of a silver tree: about what the parsers miss that made the paper's large corpora
OTHERS = ("NP", "VP", "PP", "S", "SBAR", "ADVP", "ADJP")  # what a renamed bracket is called


def gold_trees(seed: int) -> Iterator[Tree]:
    """An endless stream of trees, no sentence twice, 4 to 30 words before punctuation is split off."""
    author, seen = Author(seed), set[str]()
    while True:
        sentence = author.sentence()
        line = english(sentence)
        if line not in seen and 4 <= line.count(" ") + 1 <= 30:
            seen.add(line)
            [tree] = read_trees(english_tree(sentence))
            assert isinstance(tree, Tree)
            yield tree


def silver_tree(tree: Tree, chance: Random, share: float = DISTURBED) -> Tree:
    """The tree as a parser may have it that errs in this share of its brackets, the root aside.

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
    """The brackets with those that end after the one around them cut to its end."""
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
