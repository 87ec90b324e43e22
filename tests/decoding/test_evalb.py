"""Labelled F1: by hand, by properties, and against the C program where a user has it."""

import os
import random
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from data.test_treebank import LABELS, any_tree, tree
from hypothesis import given
from hypothesis import strategies as st

from repro.data.treebank import Tree, bracketed
from repro.decoding.evalb import BracketCounts, count_brackets, score_trees

GOLDEN = [  # gold, then found
    "(TOP (S (NP-SBJ (NNP John)) (VP (VBZ has) (NP (DT a) (NN dog))) (. .)))",
    "(TOP (S (NP (NNP John)) (VP (VBZ has) (NP (DT a) (NN dog)) (. .))))",
    "(TOP (S (NP (NP (PRP He))) (VP (VBD gave) (PRT (RP up))) (, ,) (NP (DT the) (NN day)) (. .)))",
    "(TOP (S (NP (PRP He)) (VP (VBD gave) (ADVP (RP up))) (, ,) (NP (DT the) (NN day)) (. .)))",
]
EVALB = Path(os.environ.get("REPRO_DATA", "no such folder")) / "evalb" / "evalb.c"
PARAMETERS = """DEBUG 0
MAX_ERROR 10
CUTOFF_LEN 40
LABELED 1
DELETE_LABEL TOP
DELETE_LABEL -NONE-
DELETE_LABEL ,
DELETE_LABEL :
DELETE_LABEL ``
DELETE_LABEL ''
DELETE_LABEL .
DELETE_LABEL_FOR_LENGTH -NONE-
EQ_LABEL ADVP PRT
"""


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


def counts(gold: str, found: str) -> tuple[int, int, int]:
    """Matched, gold, found."""
    one = count_brackets(tree(gold), tree(found))
    return one.matched, one.gold, one.found


def test_the_golden_example_to_the_last_count() -> None:
    trees = [tree(line) for line in GOLDEN]
    score = score_trees(trees[::2], trees[1::2], mended={1})
    assert score.counts == BracketCounts(matched=9, found=9, gold=10, exact=1, sentences=2)
    assert (score.counts.precision, score.counts.recall, score.counts.exact_match) == (100, 90, 50)
    assert round(score.counts.f1, 2) == 94.74
    assert (score.scorer, score.mended) == ("F1|rules:evalb-COLLINS.prm|version:1|length:all|sentences:2", 50)


@pytest.mark.parametrize(
    ("gold", "found", "wanted"),
    [
        # punctuation inside a bracket and at its edges: it stands nowhere
        ("(S (NP (NN a) (, ,) (NN b)) (. .))", "(S (NP (NN a) (, ,) (NN b) (. .)))", (2, 2, 2)),
        ("(S (`` ``) (NP (NN a)) ('' ''))", "(S (NP (`` ``) (NN a) ('' '')))", (2, 2, 2)),
        ("(S (NN a) (PRN (, ,) (: --)))", "(S (NN a) (, ,) (: --))", (1, 1, 1)),
        ("(S (NN a) (-LRB- -LRB-) (SYM ?))", "(S (NN a) (X (-LRB- -LRB-) (SYM ?)))", (1, 1, 2)),  # no punctuation here
        # which words are punctuation the gold tags say
        ("(S (NP (NN a)) (. .))", "(S (NP (NN a) (NN .)))", (2, 2, 2)),
        ("(S (NP (NN a)) (NN .))", "(S (NP (NN a) (. .)))", (1, 2, 2)),
        # chains of empty elements
        ("(S (NP (NP (-NONE- *T*)) (SBAR (-NONE- 0))) (VP (VB go)))", "(S (VP (VB go)))", (2, 2, 2)),
        # the same label twice on a span counts as often as both have it
        ("(S (NP (NP (NN a))) (VB b))", "(S (NP (NN a)) (VB b))", (2, 3, 2)),
        ("(S (NP (NN a)) (VB b))", "(S (NP (NP (NN a))) (VB b))", (2, 2, 3)),
        ("(S (NP (NP (NP (NN a)))) (VB b))", "(S (NP (NP (NN a))) (VB b))", (3, 4, 3)),
        # functions and indices are no part of a category
        ("(S (NP-SBJ=1 (NN a)) (VP=2 (VB b)))", "(S (NP (NN a)) (VP (VB b)))", (3, 3, 3)),
        # ADVP is PRT
        ("(S (PRT (RP up)) (ADVP (RB now)))", "(S (ADVP (RP up)) (PRT (RB now)))", (3, 3, 3)),
        # the outer bracket is none, under any name
        ("(TOP (S (NN a)))", "(S (NN a))", (1, 1, 1)),
        ("( (S (NN a)))", "(S1 (S (NN a)))", (1, 1, 1)),
        # functions on one side only
        ("(S-TPC (NP-SBJ=1 (NN a)) (VB b))", "(S (NP (NN a)) (VB b))", (2, 2, 2)),
        # nothing found; crossing; parts of speech are no brackets
        ("(S (NP (NN a)) (VB b))", "(TOP (NN a) (VB b))", (0, 2, 0)),
        ("(S (X (NN a) (NN b)) (NN c))", "(S (NN a) (X (NN b) (NN c)))", (1, 2, 2)),
        ("(S (NN a) (NN b))", "(S (VB a) (VB b))", (1, 1, 1)),
    ],
)
def test_by_hand(gold: str, found: str, wanted: tuple[int, int, int]) -> None:
    assert counts(gold, found) == wanted


def test_a_tree_without_brackets_scores_zero() -> None:
    score = score_trees([tree("(S (NN a))")], [tree("(TOP (NN a))")]).counts
    assert (score.precision, score.recall, score.f1, score.exact_match) == (0, 0, 0, 0)


def test_f1_is_of_summed_counts_and_no_mean_of_sentences() -> None:
    """3 of 4 and 0 of 1, 3 of 4 and 0 of 1: not the mean of 75 and 0."""
    gold = [tree("(S (NP (NN a)) (VP (VB b) (NP (NN c))))"), tree("(S (NN a))")]
    found = [tree("(S (NP (NN a)) (PP (VB b) (NP (NN c))))"), tree("(X (NN a))")]
    assert score_trees(gold, found).counts.f1 == pytest.approx(60)


def test_a_bracket_too_many_is_no_exact_match() -> None:
    gold, more = tree("(S (NP (NN a)) (VB b))"), tree("(S (NP (NP (NN a))) (VB b))")
    assert [count_brackets(*pair).exact for pair in ((gold, gold), (gold, more), (more, gold))] == [1, 0, 0]


def test_short_sentences_have_a_column_of_their_own() -> None:
    gold = [tree(f"(S {'(NN a) ' * n}(-NONE- *) (. .))") for n in (39, 40)]
    score = score_trees(gold, gold, at_most=40, mended={1})
    assert score.counts.sentences == 1  # 39 words and a full stop; empty elements are no words
    assert score.scorer.endswith("|length:40|sentences:1")
    assert (score.mended, score_trees(gold, gold, at_most=40, mended={0}).mended) == (0, 100), "of these sentences"


def test_trees_of_other_words_are_refused() -> None:
    with pytest.raises(ValueError, match="one of 2 and one of 1"):
        count_brackets(tree("(S (NN a) (NN b))"), tree("(S (NN a))"))
    with pytest.raises(ValueError, match="got 0 for 1"):
        score_trees([tree("(S (NN a))")], [])


@given(st.lists(any_tree, min_size=1, max_size=4), st.randoms(use_true_random=False))
def test_properties(trees: list[Tree], chance: random.Random) -> None:
    others = [disturbed(one, chance) for one in trees]
    same = score_trees(trees, trees).counts
    assert same.matched == same.gold == same.found
    assert same.exact == same.sentences == len(trees)
    assert same.f1 == (100 if same.gold else 0)
    one, other = score_trees(trees, others).counts, score_trees(others, trees).counts
    assert (one.precision, one.recall, one.f1) == (other.recall, other.precision, other.f1)
    assert score_trees(trees[::-1], others[::-1]).counts == one, "order"
    assert score_trees(trees[:1], others[:1]).counts + score_trees(trees[1:], others[1:]).counts == one, "adds up"


def test_the_c_program_counts_the_same(tmp_path: Path) -> None:
    compiler = shutil.which("cc") or shutil.which("gcc")
    if not EVALB.exists() or not compiler:
        pytest.skip(f"needs the source of EVALB at REPRO_DATA/evalb/{EVALB.name}, and a C compiler")
    chance = random.Random(3)
    words = ["(NP (DT the) (NN dog))", "(PP (IN of) (NP (NN day)))", "(, ,)", "(PRT (RP up))", "(. .)", "(`` ``)"]
    gold, found = [], []
    for _ in range(3_000):
        inside = [f"({chance.choice(('VP', 'NP', 'NP-SBJ'))} {chance.choice(words)} (NN x))" for _ in range(9)]
        gold.append(tree(f"(TOP (S {' '.join(inside)} {chance.choice(words)}))"))
        found.append(disturbed(gold[-1], chance))
    for name, trees in (("gold", gold), ("found", found)):
        (tmp_path / name).write_text("".join(f"{bracketed(one)}\n" for one in trees))
    (tmp_path / "COLLINS.prm").write_text(PARAMETERS)
    subprocess.run([compiler, "-w", "-O1", "-o", tmp_path / "evalb", EVALB], check=True)
    command = [tmp_path / "evalb", "-p", tmp_path / "COLLINS.prm", tmp_path / "gold", tmp_path / "found"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    # ID  length  status  recall  precision  matched  gold  found ...
    lines = re.findall(r"^ *\d+ +\d+ +0 +[\d.]+ +[\d.]+ +(\d+) +(\d+) +(\d+) ", printed, re.MULTILINE)
    ours = [count_brackets(*pair) for pair in zip(gold, found, strict=True)]
    assert [tuple(map(int, line)) for line in lines] == [(one.matched, one.gold, one.found) for one in ours]
