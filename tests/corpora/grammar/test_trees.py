"""Generated trees: their leaves are the line of the translation corpus, and they are of the Penn treebank's kind."""

import hashlib
from collections import Counter
from itertools import islice
from pathlib import Path
from random import Random

import pytest

from repro.corpora.grammar.english import TAG_OF
from repro.corpora.grammar.generate import DISTURBED, gold_trees, sentences, silver_tree, write_grammar_trees
from repro.data.treebank import Tree, bracketed, cleaned, linearised, mended, trees_of
from repro.decoding.evalb import score_trees

N = 3_000
LINES = "eb421f2c8d858ef1c5308456dfef955e0c19e0c5166d28743f4ba0b87393a664"
LABELS = {"S", "NP", "VP", "PP", "SBAR", "WHNP", "ADJP", "ADVP", "SQ", "SBARQ", "WHADVP", "PRT"}
OPEN_TAGS = {"NN", "NNS", "NNP", "JJ", "JJR", "RBR", "CD", "VB", "VBZ", "VBP", "VBD", "VBN", "MD", "RP", "PRP", "PDT"}


@pytest.fixture(scope="module")
def trees() -> list[Tree]:
    return list(islice(gold_trees(0), N))


def test_the_leaves_of_each_tree_are_its_line(trees: list[Tree]) -> None:
    lines = [english for english, _, _ in islice(sentences(0), N)]
    assert ["".join(tree.words) for tree in trees] == [line.replace(" ", "") for line in lines]
    # as they were laid out by code of their own, word by word, before they were read off the trees
    assert hashlib.sha256("".join(f"{line}\n" for line in lines).encode()).hexdigest() == LINES


def test_every_label_occurs_and_no_tag_is_left_over(trees: list[Tree]) -> None:
    assert {bracket.label for tree in trees for bracket in tree.brackets} == LABELS
    tags = {leaf.tag for tree in trees for leaf in tree.leaves}
    assert tags == OPEN_TAGS | {*TAG_OF.values()} | {"POS", "WP$", ",", "."}


def test_they_are_clean_have_one_root_and_come_back(trees: list[Tree]) -> None:
    for tree in trees[:2_000]:
        assert cleaned(tree) == tree
        assert mended(linearised(tree), tree.words) == (tree, {})


@pytest.mark.parametrize(
    "wanted",
    [
        "(S (NP (PRP$ Our) (NNS children)) (VP (VBD said) (SBAR (IN that) (S (NP (DT the) (NN plastic) (NN train)) "
        "(VP (VBD was) (ADJP (JJ green)))))) (. .))",
        "(SBARQ (WHNP (WP What)) (SQ (VBD did) (NP (DT the) (CD two) (NNS mothers)) (VP (VB buy) (NP (JJ last) "
        "(NN week)))) (. ?))",
    ],
)
def test_trees_by_hand(trees: list[Tree], wanted: str) -> None:
    assert wanted in {bracketed(tree) for tree in trees[:20]}


def test_silver_trees_err_in_the_stated_share_and_are_trees(trees: list[Tree]) -> None:
    random = Random(1)
    silver = [silver_tree(tree, random) for tree in trees[:2_000]]
    assert [tree.leaves for tree in silver] == [tree.leaves for tree in trees[:2_000]]
    assert all(mended(linearised(tree), tree.words) == (tree, {}) for tree in silver)
    right = score_trees(trees[:2_000], silver).counts
    assert 100 - right.recall == pytest.approx(100 * DISTURBED, abs=4)
    assert silver_tree(trees[0], Random(1), share=1e-9) == trees[0]


def test_held_out_trees_do_not_depend_on_how_much_is_learned_from(tmp_path: Path) -> None:
    for n in (7, 11):
        write_grammar_trees(tmp_path / f"{n}", n_train=n, n_dev=3, n_test=2, n_silver=n - 7)
    small, large = (
        {split: (tmp_path / f"{n}" / f"{split}.mrg") for split in ("train", "dev", "test")} for n in (7, 11)
    )
    for split in ("dev", "test"):
        assert small[split].read_bytes() == large[split].read_bytes()
    assert large["train"].read_bytes().startswith(small["train"].read_bytes())
    assert not (tmp_path / "7" / "silver.mrg").exists()
    words = Counter(
        " ".join(tree.words) for split in ("train", "dev", "test", "silver")
        for tree in trees_of(tmp_path / "11" / f"{split}.mrg")
    )  # fmt: skip
    assert words.total() == len(words) == 20, "no sentence stands twice"
