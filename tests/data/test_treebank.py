"""Trees of phrases: what is read is what was written, and any output of a model comes back to a tree."""

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from repro.data.treebank import (
    Bad,
    Bracket,
    Leaf,
    Mended,
    Tree,
    bracketed,
    cleaned,
    linearised,
    mended,
    read_trees,
    tokens_of,
    trees_of,
)

ANNA = Tree(
    (Leaf("NNP", "Anna"), Leaf("VBZ", "sees"), Leaf("DT", "a"), Leaf("NN", "dog"), Leaf(".", ".")),
    (Bracket("S", 0, 5), Bracket("NP", 0, 1), Bracket("VP", 1, 4), Bracket("NP", 2, 4)),
)
ON_A_LINE = "(S (NP (NNP Anna)) (VP (VBZ sees) (NP (DT a) (NN dog))) (. .))"
TOKENS = "(S (NP NNP )NP (VP VBZ (NP DT NN )NP )VP . )S"
DEEP = 10_000
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


def whole(tree: Tree) -> str:
    """As it is learned from."""
    found = cleaned(tree)
    assert found is not None
    return linearised(found)


# Reading -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("outer", ["{}", "( {} )", "(TOP {})", "(ROOT\n  {})", "(S1 {})"])
def test_the_common_outer_brackets_go(outer: str) -> None:
    assert clean(outer.format(ON_A_LINE)) == ANNA


def test_a_tree_over_many_lines_and_several_on_one_are_read_alike() -> None:
    over_many = "( (S\n\t(NP (NNP Anna))\r\n\t(VP (VBZ sees)\r\n\t\t(NP (DT a)\n (NN\tdog) ) )\n (. .) ) )\n"
    text = f"{over_many}\n{ON_A_LINE}{ON_A_LINE} {over_many}"
    assert [cleaned(one) for one in read_trees(text) if isinstance(one, Tree)] == [ANNA] * 4


def test_cleaning_as_parsers_have_it() -> None:
    """Empty elements go with all that they leave empty, functions are cut, an NP over an NP stays."""
    raw = (
        "( (S-TPC-1 (NP-SBJ=2 (NP (-NONE- *-1)) (SBAR (WHNP (-NONE- 0)) (S (-NONE- T)))) "
        "(VP (MD can) (VP|X (NP (NP (-LRB- -LRB-) (NN|NNS dog)) ) (-NONE- *)))) )"
    )
    assert bracketed(clean(raw)) == "(S (VP (MD can) (VP (NP (NP (-LRB- -LRB-) (NN dog))))))"
    assert cleaned(tree("( (NP (-NONE- *)))")) is None


def test_several_roots_get_one_above_that_is_labelled_as_the_first() -> None:
    counted: Counter[str] = Counter()
    found = cleaned(tree("( (S (NN a)) (NP (NN b)) (. .))"), counted)
    assert found is not None
    assert bracketed(found) == "(S (S (NN a)) (NP (NN b)) (. .))"
    assert counted == {"several roots": 1}


@given(any_tree)
def test_what_is_read_is_what_was_written(one: Tree) -> None:
    assert tree(bracketed(one)) == one
    assert clean(bracketed(one, "TOP")) == one


@pytest.mark.parametrize(
    ("text", "bad"),
    [
        ("(S (NN a)\n", Bad(1, "a tree that is not closed")),
        (f"{ON_A_LINE}\n( (S (NN a))\n( {ON_A_LINE})\n", Bad(2, "a tree that is not closed")),
        (f"(TOP (S (NN a))\n(TOP {ON_A_LINE})\n", Bad(1, "a tree that is not closed")),
        (f"{ON_A_LINE})\n", Bad(1, "a bracket closed that was not opened")),
        ("(S (NP a dog))", Bad(1, "a word without a tag")),
        ("\n(S (NP SBJ (NN a)))", Bad(2, "a word without a tag")),
        ("(S (NN a) b)", Bad(1, "a word without a tag")),
        ("( )", Bad(1, "a bracket with nothing in it")),
        ("(S (NN a) (NP ))", Bad(1, "a bracket with nothing in it")),
        ("(S (-LRB- ())", Bad(1, "a tree that is not closed")),  # "(" is no word in brackets: -LRB- is
        ("no tree\n", Bad(1, "text outside of brackets")),
        ("\n(S (N\x07N a))", Bad(2, "characters that are no text (control characters, or bytes that are not UTF-8)")),
    ],
)
def test_what_is_no_tree_is_named_with_its_line(text: str, bad: Bad) -> None:
    assert next(found for found in read_trees(text) if isinstance(found, Bad)) == bad


@pytest.mark.parametrize("wrong", ["( (S (NN a))", "(S (NN a)))", "(NP a dog)", "stray", "(S (NN \udcff))"])
def test_reading_goes_on_after_what_is_no_tree(wrong: str) -> None:
    found = list(read_trees(f"( {ON_A_LINE})\n{wrong}\n( {ON_A_LINE})\n( {ON_A_LINE})\n"))
    assert sum(isinstance(one, Bad) for one in found) == 1
    assert sum(isinstance(one, Tree) and cleaned(one) == ANNA for one in found) == 3


def test_held_out_text_refuses_what_training_text_drops(tmp_path: Path) -> None:
    file = tmp_path / "a.mrg"
    file.write_bytes(f"\ufeff{ON_A_LINE}\n".encode() + b"(S (NN \xff))\n(S (NP a dog))\n" + ON_A_LINE.encode())
    dropped: Counter[str] = Counter()
    assert len(list(trees_of(file, dropped))) == 2
    assert dropped == {
        "a word without a tag": 1,
        "characters that are no text (control characters, or bytes that are not UTF-8)": 1,
    }
    with pytest.raises(ValueError, match=r"a\.mrg, line 2: expected a tree in brackets, got characters") as refused:
        list(trees_of(file))
    assert "dog" not in str(refused.value)


def test_a_treebank_of_dependencies_is_refused_by_name(tmp_path: Path) -> None:
    file = tmp_path / "a.conllu"
    file.write_text("# sent_id = 1\n1\tAnna\tAnna\tPROPN\tNNP\t_\t2\tnsubj\t_\t_\n")
    with pytest.raises(ValueError, match="treebank of dependencies"):
        list(trees_of(file, Counter()))


# Lines of tokens ---------------------------------------------------------------------------------------------


def test_a_line_by_hand() -> None:
    assert linearised(ANNA) == TOKENS
    assert mended(TOKENS, ANNA.words) == (ANNA, {})


@given(any_tree)
def test_a_true_line_comes_back_exactly(one: Tree) -> None:
    assert mended(linearised(one), one.words) == (one, {})


@pytest.mark.parametrize("inside", ["\u00a0", "\u2009", "\u202f", "\u3000", "\u2028"])
def test_other_white_space_stands_in_words_and_tags(inside: str) -> None:
    words = tokens_of(f" in 10{inside}000  years\t, {inside} perhaps\r")
    assert words == ["in", f"10{inside}000", "years", ",", inside, "perhaps"]
    tree = Tree(tuple(Leaf("NN", word) for word in words), (Bracket("S", 0, len(words)),))
    [found] = read_trees(bracketed(tree, "TOP"))
    assert isinstance(found, Tree)
    assert found.words == words
    tags = Tree((Leaf(f"N{inside}N", "a"),), (Bracket(f"S{inside}B", 0, 1),))
    assert mended(linearised(tags), ["a"]) == Mended(tags, Counter())


def test_ten_thousand_deep() -> None:
    one = tree("(S " * DEEP + "(NN a)" + ")" * DEEP)
    assert len(one.brackets) == DEEP
    assert cleaned(one) == one
    assert tree(bracketed(one)) == one
    assert mended(linearised(one), ["a"]).tree == one
    assert mended("(S " * DEEP, ["a"]).tree.words == ["a"]


# Mending -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "wanted", "kinds"),
    [
        ("", "(XX a) (XX b)", {"a leaf missing": 2}),
        (")S )NP", "(XX a) (XX b)", {"a close without an open": 2, "a leaf missing": 2}),
        ("NN VB", "(NN a) (VB b)", {}),
        ("(S NN VB CD CD )S", "(S (NN a) (VB b))", {"a leaf too many": 2}),
        ("(S (NP NN )NP )S", "(S (NP (NN a)) (XX b))", {"a leaf missing": 1}),
        ("(S (NP NN )VP VB )S", "(S (NP (NN a)) (VB b))", {"a close of another name": 1}),
        ("(S NN (VP VB", "(S (NN a) (VP (VB b)))", {"never closed": 2}),
        ("(S NN (NP )NP VB )S", "(S (NN a) (VB b))", {"a bracket without leaves": 1}),
        ("(NP NN )NP (VP VB )VP", "(NP (NP (NN a)) (VP (VB b)))", {"several roots": 1}),
        ("NN (VP VB )VP", "(VP (NN a) (VP (VB b)))", {"several roots": 1}),
        ("(S (N(P NN VB ( )S", "(S (NN a) (VB b))", {"no token of trees": 2}),
        ("(S -NONE- NN VB )S", "(S (NN a) (VB b))", {"no token of trees": 1}),  # a tag that would drop the word
        ("(TOP (S NN (ROOT VB )ROOT )S )TOP", "(S (NN a) (VB b))", {"no token of trees": 4}),
        ("(S " * 300, "(XX a) (XX b)", {"never closed": 300, "a bracket without leaves": 300, "a leaf missing": 2}),
    ],
    ids=lambda value: value[:20] if isinstance(value, str) else "",
)
def test_mending_by_hand(line: str, wanted: str, kinds: dict[str, int]) -> None:
    found = mended(line, ["a", "b"])
    assert bracketed(found.tree) == wanted
    assert found.kinds == kinds


tokens = st.one_of(
    st.sampled_from([form.format(label) for label in LABELS for form in ("({}", "){}")] + list(TAGS)),
    st.text("()ab-\u2028 \n\x00\x17\x9f\udc80", max_size=4),
)


@given(st.lists(tokens, max_size=30), st.lists(st.sampled_from(("a", "b", ")")), min_size=1, max_size=9))
def test_any_tokens_give_a_tree_whose_leaves_are_the_words(line: list[str], words: list[str]) -> None:
    one, kinds = mended(" ".join(line), words)
    assert one.words == words
    assert mended(" ".join(line), words) == (one, kinds), "it is always the same"
    if not {"(", ")"} & {*words}:
        readable = bracketed(one) if one.brackets else f"(S {bracketed(one)})"
        assert tree(readable).words == words
    if one.brackets:
        assert mended(linearised(one), words) == (one, {}), "what was mended is a tree"
