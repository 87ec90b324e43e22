"""Phrase-structure trees: read from brackets, cleaned, written as a line of tokens, and back. Paper: section 6.3.

A tree is its words and the brackets over them. A bracket is a label and a span; brackets are listed in the order in
which they open. So no function here is recursive, and a tree may have any depth:

    (TOP (S (NP-SBJ (NNP Anna)) (VP (VBZ sleeps)) (. .)))     as treebanks write it
    (S (NP NNP )NP (VP VBZ )VP . )S                           as the model reads and writes it, without words

The second form is that of Vinyals et al. (arXiv 1412.7449), with the tags kept. Opening tokens, closing tokens and tags
differ in their first character, since some treebanks use the same name as a label and as a tag.
"""

import functools
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, compress
from pathlib import Path
from typing import NamedTuple

EMPTY_ELEMENT = "-NONE-"  # the tag of empty elements, such as a trace or an omitted subject
OUTER = frozenset({"", "TOP", "ROOT", "S1"})  # labels of the bracket that treebanks put around a tree
UNTAGGED = "XX"  # the tag of a word for which none was written
FUNCTION = re.compile("([^-=|][^-=|]*)[-=|].*", re.DOTALL)  # NP-SBJ-1 is an NP, ADVP|PRT an ADVP; -LRB- stays
NO_TEXT = re.compile("[\0-\x08\x0b\x0c\x0e-\x1f\x7f\x80-\x9f\udc80-\udcff]")  # the last are bytes that are not UTF-8
# B is a blank between tokens and T is text; other white space may stand in a word
_TOKEN = r"\(B*(?P<tag>T+)B+(?P<word>T+)B*\)|\(B*(?P<label>T*)|(?P<close>\))|(?P<stray>T+)"
TOKEN = re.compile(_TOKEN.replace("B", r"[ \t\r\n]").replace("T", r"[^() \t\r\n]"))
TEXT = re.compile(r"[^ \t\r\n]+")
OPENED, CLOSED = re.compile(r"\(([^()]+)"), re.compile(r"\)([^()]*)")
NEXT_TREE = re.compile(r"\n\(")
DEPENDENCIES = re.compile(r"\s*(#.*\n\s*)*\d+\t\S+\t(\S+\t){3}")  # CoNLL: one numbered word a line, tab-separated
NOT_CLOSED = "a tree that is not closed"


class Leaf(NamedTuple):
    """A word and its part of speech."""

    tag: str
    word: str


class Bracket(NamedTuple):
    """A phrase: the words from `begin` up to, but not including, `end`."""

    label: str
    begin: int
    end: int


@dataclass(frozen=True, slots=True)
class Tree:
    """Words and the brackets over them: no bracket is empty, no two overlap without nesting."""

    leaves: tuple[Leaf, ...]
    brackets: tuple[Bracket, ...]  # in the order in which they open: by `begin`, the outer one first

    @property
    def words(self) -> list[str]:
        return [leaf.word for leaf in self.leaves]


class Bad(NamedTuple):
    """Text that is no tree, where a tree should be."""

    line: int  # from 1
    reason: str


# Brackets ----------------------------------------------------------------------------------------------------


def read_trees(text: str) -> Iterator[Tree | Bad]:
    """The trees of a text in order, whether one a line, several a line, or one over many lines.

    Where no tree can be read, a `Bad` comes in its place; reading resumes at the next line that begins with a bracket.
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
    """Trees from a place on; at the first error: where it is, where its tree began, and the reason. Then it ends."""
    leaves: list[Leaf] = []
    made: list[tuple[str, int, int]] = []
    around: list[int] = []  # indices in `made` of the open brackets
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
                yield begun, begun, NOT_CLOSED  # reported for the line in which the tree begins
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
    """The trees of a file. With `dropped`, bad trees are skipped and counted by reason; else they raise ValueError.

    No message quotes the text, which may be private.
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
    """The tree on one line, in the notation of treebanks; with `outer`, inside a bracket of that label."""
    parts = [f"({outer}"] if outer else []
    for kind, label, word in _walk(tree):
        parts.append(f"({label} {word})" if kind == "leaf" else f"({label}" if kind == "open" else ")")
    return " ".join([*parts, ")"] if outer else parts).replace(" )", ")")


def _walk(tree: Tree) -> Iterator[tuple[str, str, str]]:
    """In order: ("open", label, "") and ("close", label, "") for each bracket, ("leaf", tag, word) for each word."""
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
    """The tree without empty elements and without the brackets that become empty; the same tree if it has none."""
    kept = [leaf.tag != EMPTY_ELEMENT for leaf in tree.leaves]
    if all(kept):
        return tree
    place = [0, *accumulate(kept)]
    leaves: tuple[Leaf, ...] = tuple(compress(tree.leaves, kept))
    brackets = (bracket._replace(begin=place[bracket.begin], end=place[bracket.end]) for bracket in tree.brackets)
    return Tree(leaves, tuple(bracket for bracket in brackets if bracket.begin < bracket.end))


def cleaned(tree: Tree, mended: Counter[str] | None = None) -> Tree | None:
    """The tree as parsers learn it: no empty elements, no outer bracket, labels without functions, and one root.

    None if no word is left. `mended` counts the trees that had several roots.
    """
    # 1. remove empty elements    2. remove the brackets around the tree    3. give it one root
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
    """The label without its function tags: NP for NP-SBJ-1."""
    has_function = FUNCTION.fullmatch(label)
    return has_function[1] if has_function else label


def _rooted(brackets: Sequence[Bracket], written: int, n: int) -> list[Bracket]:
    """Give brackets over the first `written` of n words a root over all n; a new root copies the first label.

    Without any bracket there is no root either.
    """
    if not brackets:
        return []
    first = brackets[0]
    if (first.begin, first.end) == (0, written):
        return [first._replace(end=n), *brackets[1:]]
    return [Bracket(first.label, 0, n), *brackets]


def linearised(tree: Tree) -> str:
    """The tree as a line of tokens separated by blanks, without its words: what the model learns to write."""
    form = {"open": "({}", "close": "){}", "leaf": "{}"}
    return " ".join(form[kind].format(label) for kind, label, _ in _walk(tree))


def tokens_of(line: str) -> list[str]:
    """The tokens between the blanks of a line: the words of a sentence, or brackets and tags."""
    return TEXT.findall(line)


class Mended(NamedTuple):
    """A tree made from a model's output, and the repairs that this needed."""

    tree: Tree
    kinds: Counter[str]  # kind of repair -> how often; empty: the output was a tree


def mended(line: str, words: Sequence[str]) -> Mended:
    """Turn a model's output into a tree over these words. Any line gives one tree; a correct line is kept exactly.

    Each word gets the tag that was written for it.
    """
    kinds: Counter[str] = Counter()
    tags: list[str] = []
    made: list[Bracket] = []
    around: list[int] = []
    # 1. read the output: drop leaves beyond the last word and closing brackets without an opening one
    for token in tokens_of(line):
        # tokens of bytes may spell what no tree over words has: an empty element, an outer bracket
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
    # 2. close open brackets    3. remove brackets without leaves
    kinds["never closed"] += len(around)
    for last in around:
        made[last] = made[last]._replace(end=len(tags))
    brackets = [bracket for bracket in made if bracket.begin < bracket.end]
    kinds["a bracket without leaves"] += len(made) - len(brackets)
    # 4. add missing leaves at the end, under the root    5. put one root above several
    missing = len(words) - len(tags)
    kinds["a leaf missing"] += missing
    rooted = _rooted(brackets, len(tags), len(words))
    kinds["several roots"] += len(rooted) > len(brackets)
    leaves = map(Leaf, [*tags, *[UNTAGGED] * missing], words)
    return Mended(Tree(tuple(leaves), tuple(rooted)), +kinds)
