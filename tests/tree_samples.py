"""Trees for tests: any tree at all, and sentences of our own with their trees."""

import random

from hypothesis import strategies as st

from repro.data.treebank import Tree, cleaned, linearised, read_trees

LABELS = ("S", "NP", "VP", "PP", "SBAR", "ADVP", "PRT", "NN", "-X-")  # NN is a tag as well
TAGS = ("NN", "VBZ", "DT", ".", ",", "``", ":", "-LRB-", "PRP$")
WORDS = ("a", "sleeps", "NP", ".", "-LRB-", "thin\u2009space", "it's")


def _branch(label: str, inside: list[str]) -> str:
    return f"({label} {' '.join(inside)})"


_leaf = st.builds("({} {})".format, st.sampled_from(TAGS), st.sampled_from(WORDS))
_labels = st.sampled_from(LABELS)
_branches = st.recursive(_leaf, lambda inner: st.builds(_branch, _labels, st.lists(inner, min_size=1, max_size=4)))


def tree(text: str) -> Tree:
    """The one tree that is written there, as it stands."""
    [found] = read_trees(text)
    assert isinstance(found, Tree), found
    return found


def clean(text: str) -> Tree:
    """The same as parsers learn it."""
    found = cleaned(tree(text))
    assert found is not None
    return found


any_tree = st.lists(_branches, min_size=1, max_size=5).flatmap(
    lambda inside: st.builds(lambda label: clean(_branch(label, inside)), _labels)
)


def disturbed(one: Tree, chance: random.Random) -> Tree:
    """The tree with brackets dropped, doubled, renamed and moved by a word."""
    brackets = []
    for bracket in one.brackets:
        roll = chance.random()
        if roll < 0.1 and bracket.end - bracket.begin < len(one.leaves):
            continue
        if roll < 0.2:
            bracket = bracket._replace(label=chance.choice(LABELS[:6]))
        brackets += [bracket, bracket] if 0.2 < roll < 0.25 else [bracket]
    return Tree(one.leaves, tuple(brackets))


def whole(tree: Tree) -> str:
    """As it is learned from."""
    found = cleaned(tree)
    assert found is not None
    return linearised(found)
