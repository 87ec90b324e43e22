"""Labelled F1 of parsers, by the rules of EVALB with COLLINS.prm. Paper: section 6.3, Table 4.

A predicted bracket is right if the gold tree has one with the same label over the same words. Before the comparison,
both trees lose what treebanks do not agree on: punctuation, the outer bracket, function tags of labels.

EVALB takes the punctuation of each tree from that tree's own tags, and skips a sentence if the two trees disagree.
Here the gold tags decide for both trees, so every sentence counts; `docs/parsing.md` gives the difference.
"""

from collections import Counter
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

from repro.data.treebank import EMPTY_ELEMENT, OUTER, Mended, Tree, mended, tokens_of, without_empty_elements
from repro.decoding.search import Named

VERSION = 1  # raise it when the rules change
PUNCTUATION = frozenset({",", ":", "``", "''", "."})  # tags of words that are left out
SAME = {"PRT": "ADVP"}  # labels that count as the same
SHORT = 40  # the column for short sentences has those of at most so many words, punctuation counted


@dataclass(frozen=True)
class BracketCounts:
    """The counts that F1 is computed from, for one sentence or many; they can be added."""

    matched: int = 0
    found: int = 0  # brackets of the predicted tree
    gold: int = 0
    exact: int = 0  # sentences for which the three counts are equal
    sentences: int = 0

    def __add__(self, other: "BracketCounts") -> "BracketCounts":
        return BracketCounts(**{name: mine + getattr(other, name) for name, mine in vars(self).items()})

    @property
    def precision(self) -> float:
        """Per cent of the predicted brackets that are right; 0 if none was predicted."""
        return _percent(self.matched, self.found)

    @property
    def recall(self) -> float:
        """Per cent of the gold brackets that were found; 0 if there are none."""
        return _percent(self.matched, self.gold)

    @property
    def f1(self) -> float:
        """2 P R / (P + R), in per cent."""
        return _percent(2 * self.matched, self.found + self.gold)

    @property
    def exact_match(self) -> float:
        """Per cent of the sentences in which every bracket is right."""
        return _percent(self.exact, self.sentences)


@dataclass(frozen=True)
class F1Score:
    """The score of some trees, and how it was computed."""

    counts: BracketCounts
    mended: float  # per cent of the sentences
    scorer: str  # rules, version, number of sentences and their length


def count_brackets(gold: Tree, found: Tree) -> BracketCounts:
    """The counts of one sentence. Only the gold tags decide which words are punctuation."""
    wanted, had = (without_empty_elements(tree) for tree in (gold, found))  # each tree by its own tags
    if len(wanted.leaves) != len(had.leaves):
        raise ValueError(
            f"expected two trees of the same words, got one of {len(wanted.leaves)} and one of {len(had.leaves)}: "
            "the two must be parallel."
        )
    counted = [leaf.tag not in PUNCTUATION for leaf in wanted.leaves]
    of_gold, of_found = (Counter(_keys(tree, counted)) for tree in (wanted, had))
    matched, n_found, n_gold = (of_gold & of_found).total(), of_found.total(), of_gold.total()
    return BracketCounts(matched, n_found, n_gold, exact=matched == n_found == n_gold, sentences=1)


def score_trees(
    gold: Sequence[Tree], found: Sequence[Tree], *, mended: Container[int] = (), at_most: int | None = None
) -> "F1Score":
    """The score of many sentences, or only those of `at_most` words. Counts are summed first: a mean of F1 is not F1.

    `mended` holds the numbers, from 0, of the sentences whose output was no tree and had to be mended.
    """
    if len(gold) != len(found):
        raise ValueError(f"expected one tree for each gold one, got {len(found)} for {len(gold)}: not parallel.")
    taken = [i for i, tree in enumerate(gold) if at_most is None or n_words(tree) <= at_most]
    counts = sum((count_brackets(gold[i], found[i]) for i in taken), BracketCounts())
    share = _percent(sum(i in mended for i in taken), len(taken))
    length = "all" if at_most is None else f"{at_most}"
    scorer = f"F1|rules:evalb-COLLINS.prm|version:{VERSION}|length:{length}|sentences:{len(taken)}"
    return F1Score(counts, share, scorer)


def parse_scores(outputs: Sequence[str], references: Sequence[str]) -> Named:
    """The scores of lines of brackets and tags; F1 needs only the number of words, not the words.

    Besides F1, precision and recall: exact matches, F1 of short sentences, and the share of outputs that were no tree.
    """
    gold = [tree_of(line, n_leaves(line)) for line in references]
    found = [tree_of(line, len(one.tree.leaves)) for line, one in zip(outputs, gold, strict=True)]
    wrong = {i for i, one in enumerate(found) if one.kinds}
    trees = [one.tree for one in gold], [one.tree for one in found]
    score, short = score_trees(*trees, mended=wrong), score_trees(*trees, mended=wrong, at_most=SHORT)
    values: dict[str, float] = {
        "f1": score.counts.f1,
        "precision": score.counts.precision,
        "recall": score.counts.recall,
        "exact": score.counts.exact_match,
        "f1_short": short.counts.f1,
        "mended": score.mended,
    }
    scorers = dict.fromkeys(values, score.scorer) | {"f1_short": short.scorer}  # without the share mended
    return {**values, **{f"{name}_signature": scorer for name, scorer in scorers.items()}}


def n_leaves(line: str) -> int:
    """The number of words of a well-formed line of brackets and tags."""
    return sum(token[0] not in "()" for token in tokens_of(line))


def tree_of(line: str, n_words: int) -> Mended:
    """The tree that a line means, over placeholder words."""
    return mended(line, ["_"] * n_words)


def n_words(tree: Tree) -> int:
    """The length of a sentence as EVALB counts it: without empty elements, with punctuation."""
    return sum(leaf.tag != EMPTY_ELEMENT for leaf in tree.leaves)


def _keys(tree: Tree, counted: Sequence[bool]) -> Iterator[tuple[str, int, int]]:
    """The label of each bracket that counts, and its span over the words that count."""
    place = [0, *accumulate(counted)]
    for label, begin, end in tree.brackets:
        if place[begin] < place[end] and label not in OUTER:
            category = label.partition("-")[0].partition("=")[0]
            yield SAME.get(category, category), place[begin], place[end]


def _percent(part: int, whole: int) -> float:
    return 100 * part / whole if whole else 0.0
