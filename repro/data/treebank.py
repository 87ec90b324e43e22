"""Trees of phrases: read from brackets, cleaned, written as a line of tokens, and back. Paper: section 6.3.

A tree is its words and the brackets over them. Each bracket is a label and a span, in the order in which brackets are
opened, so nothing here calls itself, and a tree may be as deep as it likes:

    (TOP (S (NP-SBJ (NNP Anna)) (VP (VBZ sleeps)) (. .)))     as treebanks write it
    (S (NP NNP )NP (VP VBZ )VP . )S                           as the model reads and writes it: no word is in it

The second form is that of Vinyals et al. (arXiv 1412.7449), with the tags kept. Tokens that open a bracket, tokens that
close one and tags differ in their first character, since some treebanks have labels that are tags as well.
"""

import functools
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, compress
from pathlib import Path
from typing import NamedTuple

EMPTY_ELEMENT = "-NONE-"  # its tag: a trace, an omitted subject
OUTER = frozenset({"", "TOP", "ROOT", "S1"})  # labels of the bracket that treebanks put around a tree
UNTAGGED = "XX"  # the tag of a word for which nobody wrote one
FUNCTION = re.compile("([^-=|][^-=|]*)[-=|].*", re.DOTALL)  # NP-SBJ-1 is an NP, ADVP|PRT an ADVP; -LRB- stays
NO_TEXT = re.compile("[\0-\x08\x0b\x0c\x0e-\x1f\x7f\x80-\x9f\udc80-\udcff]")  # the last are bytes that are not UTF-8
# B is a blank between tokens and T is text; other white space may stand in a word
_TOKEN = r"\(B*(?P<tag>T+)B+(?P<word>T+)B*\)|\(B*(?P<label>T*)|(?P<close>\))|(?P<stray>T+)"
TOKEN = re.compile(_TOKEN.replace("B", r"[ \t\r\n]").replace("T", r"[^() \t\r\n]"))
TEXT = re.compile(r"[^ \t\r\n]+")
OPENED, CLOSED = re.compile(r"\(([^()]+)"), re.compile(r"\)([^()]*)")
NEXT_TREE = re.compile(r"\n\(")
DEPENDENCIES = re.compile(r"\s*(#.*\n\s*)*\d+\t\S+\t(\S+\t){3}")  # CoNLL: a numbered word a line, between tabs
NOT_CLOSED = "a tree that is not closed"


class Leaf(NamedTuple):
    """A word and its part of speech."""

    tag: str
    word: str


class Bracket(NamedTuple):
    """A phrase: the words from `begin` on, before `end`."""

    label: str
    begin: int
    end: int


@dataclass(frozen=True, slots=True)
class Tree:
    """Words and the brackets over them: none is empty, none cuts another."""

    leaves: tuple[Leaf, ...]
    brackets: tuple[Bracket, ...]  # as they are opened: by `begin`, the outer one first

    @property
    def words(self) -> list[str]:
        return [leaf.word for leaf in self.leaves]

    @property
    def depth(self) -> int:
        """The most brackets that stand around one word."""
        deepest, around = 0, list[int]()  # where those that are open end
        for bracket in self.brackets:
            while around and around[-1] <= bracket.begin:
                around.pop()
            around.append(bracket.end)
            deepest = max(deepest, len(around))
        return deepest


class Bad(NamedTuple):
    """What stands where a tree should."""

    line: int  # from 1
    reason: str


# Brackets ----------------------------------------------------------------------------------------------------


def read_trees(text: str) -> Iterator[Tree | Bad]:
    """The trees of a text, as they stand: one a line, several, or one over many lines.

    What cannot be read is told in its place, and reading goes on where the next line begins with a bracket.
    """
    place: int | None = 0
    while place is not None:
        for found in _trees(text, place):
            if isinstance(found, Tree):
                yield found
                continue
            where, begun, reason = found
            yield Bad(text.count("\n", 0, where) + 1, reason)
            after = NEXT_TREE.search(text, begun)
            place = after.end() - 1 if after else None
            break
        else:
            return


def _trees(text: str, place: int) -> Iterator[Tree | tuple[int, int, str]]:
    """Trees from a place on; at the first thing that is none where it stands, where its tree began, and the reason."""
    leaves: list[Leaf] = []
    made: list[tuple[str, int, int]] = []
    around: list[int] = []  # those of `made` that are open
    begun = place
    for token in TOKEN.finditer(text, place):
        kind, at = token.lastgroup, token.start()
        if not around:
            begun = at
        if kind == "word" and around:
            leaves.append(Leaf(token["tag"], token["word"]))
            continue
        if kind == "word":  # a tree of one word, without a phrase
            leaves.append(Leaf(token["tag"], token["word"]))
        elif kind == "label":
            if around and token["label"] in OUTER:
                yield begun, begun, NOT_CLOSED  # said of the line in which it begins
                return
            around.append(len(made))
            made.append((token["label"], len(leaves), -1))
            continue
        elif kind == "stray":
            yield at, begun, "a word without a tag" if around else "text outside of brackets"
            return
        elif not around:
            yield at, begun, "a bracket closed that was not opened"
            return
        else:
            last = around.pop()
            label, begin, _ = made[last]
            if begin == len(leaves):
                yield at, begun, "a bracket with nothing in it"
                return
            made[last] = label, begin, len(leaves)
        if not around:
            if NO_TEXT.search(text, begun, token.end()):
                yield begun, begun, "characters that are no text (control characters, or bytes that are not UTF-8)"
                return
            yield Tree(tuple(leaves), tuple(map(Bracket._make, made)))
            leaves, made = [], []
    if around:
        yield begun, begun, NOT_CLOSED


def trees_of(path: Path, dropped: Counter[str] | None = None) -> Iterator[Tree]:
    """The trees of a file. With `dropped`, what cannot be read is left out and counted by reason, else it is refused.

    No message has a word of the text: it may be somebody's who does not want that.
    """
    text = path.read_bytes().decode("utf-8-sig", "surrogateescape")
    if DEPENDENCIES.match(text):
        raise ValueError(
            f"{path} is a treebank of dependencies (CoNLL): expected one of phrases, in brackets. Nothing turns one "
            "into the other; get the treebank in Penn's form."
        )
    for found in read_trees(text):
        if isinstance(found, Tree):
            yield found
        elif dropped is None:
            raise ValueError(
                f"{path}, line {found.line:,}: expected a tree in brackets, got {found.reason}; held-out text must not "
                "shrink silently. Correct it, or take the tree out by hand."
            )
        else:
            dropped[found.reason] += 1


def bracketed(tree: Tree, outer: str = "") -> str:
    """The tree on a line, as treebanks have it; with `outer`, in a bracket of that label."""
    parts = [f"({outer}"] if outer else []
    for kind, label, word in _walk(tree):
        parts.append(f"({label} {word})" if kind == "leaf" else f"({label}" if kind == "open" else ")")
    return " ".join([*parts, ")"] if outer else parts).replace(" )", ")")


def _walk(tree: Tree) -> Iterator[tuple[str, str, str]]:
    """("open", label, "") and ("close", label, "") of each bracket, ("leaf", tag, word) of each word, as they stand."""
    around: list[Bracket] = []
    coming = 0
    for i, (tag, word) in enumerate(tree.leaves):
        while coming < len(tree.brackets) and tree.brackets[coming].begin == i:
            around.append(tree.brackets[coming])
            yield "open", around[-1].label, ""
            coming += 1
        yield "leaf", tag, word
        while around and around[-1].end == i + 1:
            yield "close", around.pop().label, ""


# What parsers learn ------------------------------------------------------------------------------------------


def without_empty_elements(tree: Tree) -> Tree:
    """The tree without its traces and without the brackets that they leave empty; where there are none, itself."""
    kept = [leaf.tag != EMPTY_ELEMENT for leaf in tree.leaves]
    if all(kept):
        return tree
    place = [0, *accumulate(kept)]
    leaves: tuple[Leaf, ...] = tuple(compress(tree.leaves, kept))
    brackets = (bracket._replace(begin=place[bracket.begin], end=place[bracket.end]) for bracket in tree.brackets)
    return Tree(leaves, tuple(bracket for bracket in brackets if bracket.begin < bracket.end))


def cleaned(tree: Tree, mended: Counter[str] | None = None) -> Tree | None:
    """The tree as parsers learn it: no empty elements, no outer bracket, labels without functions, and one root.

    None where no word is left. `mended` counts the trees that had several roots.
    """
    # 1. leave out the empty elements    2. and the brackets around the tree    3. have one root
    spoken = without_empty_elements(tree)
    if not spoken.leaves:
        return None
    leaves = tuple(Leaf(_plain(leaf.tag), leaf.word) for leaf in spoken.leaves)
    brackets = [
        bracket._replace(label=_plain(bracket.label)) for bracket in spoken.brackets if bracket.label not in OUTER
    ]
    rooted = _rooted(brackets, len(leaves), len(leaves))
    if mended is not None and len(rooted) > len(brackets):
        mended["several roots"] += 1
    return Tree(leaves, tuple(rooted))


@functools.cache
def _plain(label: str) -> str:
    """The category alone."""
    has_function = FUNCTION.fullmatch(label)
    return has_function[1] if has_function else label


def _rooted(brackets: Sequence[Bracket], written: int, n: int) -> list[Bracket]:
    """Brackets over the first `written` of n words, with one around all: where it is missing, it is as the first.

    Words without any bracket keep none.
    """
    if not brackets:
        return []
    first = brackets[0]
    if (first.begin, first.end) == (0, written):
        return [first._replace(end=n), *brackets[1:]]
    return [Bracket(first.label, 0, n), *brackets]


def linearised(tree: Tree) -> str:
    """The tree as a line of tokens between blanks, without its words: what the model learns to write."""
    form = {"open": "({}", "close": "){}", "leaf": "{}"}
    return " ".join(form[kind].format(label) for kind, label, _ in _walk(tree))


def tokens_of(line: str) -> list[str]:
    """What stands between the blanks of treebanks: the words of a sentence, or the brackets and tags of a line."""
    return TEXT.findall(line)


class Mended(NamedTuple):
    """A tree made of what a model wrote, and what had to be done to it."""

    tree: Tree
    kinds: Counter[str]  # of mending -> how often; empty: it was a tree


def mended(line: str, words: Sequence[str]) -> Mended:
    """The tree over these words that a model meant. Any line gives one, always the same; a true one comes back exactly.

    A word takes the tag that was written for it.
    """
    kinds: Counter[str] = Counter()
    tags: list[str] = []
    made: list[Bracket] = []
    around: list[int] = []
    # 1. read what was written: leaves beyond the last word and closes without an open are dropped
    for token in tokens_of(line):
        # bytes are tokens too, and may spell what no tree over words has: an empty element, a bracket around all
        if NO_TEXT.search(token) or token == EMPTY_ELEMENT or token.strip("()") in OUTER:
            kinds["no token of trees"] += 1
        elif token[0] not in "()" and not {"(", ")"} & {*token}:
            if len(tags) < len(words):
                tags.append(token)
            else:
                kinds["a leaf too many"] += 1
        elif opened := OPENED.fullmatch(token):
            around.append(len(made))
            made.append(Bracket(opened[1], len(tags), -1))
        elif not (closed := CLOSED.fullmatch(token)):
            kinds["no token of trees"] += 1
        elif not around:
            kinds["a close without an open"] += 1
        else:
            last = around.pop()
            kinds["a close of another name"] += closed[1] != made[last].label
            made[last] = made[last]._replace(end=len(tags))
    # 2. close what is open    3. leave out brackets without leaves
    kinds["never closed"] += len(around)
    for last in around:
        made[last] = made[last]._replace(end=len(tags))
    brackets = [bracket for bracket in made if bracket.begin < bracket.end]
    kinds["a bracket without leaves"] += len(made) - len(brackets)
    # 4. missing leaves hang under the root, at the end    5. several roots get one above them
    missing = len(words) - len(tags)
    kinds["a leaf missing"] += missing
    rooted = _rooted(brackets, len(tags), len(words))
    kinds["several roots"] += len(rooted) > len(brackets)
    leaves = map(Leaf, [*tags, *[UNTAGGED] * missing], words)
    return Mended(Tree(tuple(leaves), tuple(rooted)), +kinds)
