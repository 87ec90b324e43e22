"""The tree of a search is the search's own: by hand on a small model, and on random ones down to the last bit."""

import math
from dataclasses import replace

import pytest
import torch
from decoding.test_beam import LURE, A, B, C, D, begun, random_model, script, stepper

from repro.decoding import observed
from repro.decoding.beam import beam_search
from repro.decoding.observed import Fate, Node, observe, words_to
from repro.decoding.search import Search
from repro.model.special_tokens import EOS


def rounded(node: Node) -> Node:
    score = None if node.score is None else round(node.score, 9)
    return node._replace(log_prob=round(node.log_prob, 9), score=score)


def test_the_tree_by_hand() -> None:
    found, tree = observe(stepper(LURE), begun(), 3, Search(2, 0.0))
    assert found.ids == (B, D)
    expected = [
        *(Node(-1, A, math.log(0.6), None, Fate.LIVED), Node(-1, B, math.log(0.4), None, Fate.LIVED)),
        *(Node(1, D, math.log(0.36), None, Fate.LIVED), Node(0, C, math.log(0.3), None, Fate.LIVED)),
        *(Node(0, D, math.log(0.3), None, Fate.DROPPED), Node(1, C, math.log(0.04), None, Fate.DROPPED)),
        *(Node(2, EOS, math.log(0.36), math.log(0.36), Fate.ENDED),),
        *(Node(3, EOS, math.log(0.3), math.log(0.3), Fate.ENDED),),
    ]
    assert [rounded(node) for node in tree.nodes] == [rounded(node) for node in expected]
    assert tree.best == 6
    assert words_to(tree, 6) == [B, D]
    assert [step.best for step in tree.steps] == [None, None, pytest.approx(math.log(0.36))]


def test_a_search_that_is_cut_says_so() -> None:
    found, tree = observe(stepper(LURE), begun(), 2, Search(2, 1.0))
    assert not found.finished
    assert tree.best is not None
    end = tree.nodes[tree.best]
    assert (end.fate, end.score) == (Fate.CUT, found.score)
    assert tree.steps[-1].penalty == pytest.approx(7 / 6)
    assert [step.hope for step in tree.steps] == pytest.approx([math.log(0.6) / (7 / 6), math.log(0.36) / (7 / 6)])


def test_where_nothing_is_possible_the_tree_leads_nowhere() -> None:
    found, tree = observe(stepper(script({(): {}})), begun(), 2, Search(2, 0.6))
    assert (found.ids, tree.best, tree.nodes) == ((), None, [])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("width", [1, 2, 4])
def test_the_tree_is_that_of_the_search_to_the_bit(width: int, dtype: torch.dtype) -> None:
    fates = set()
    for seed in range(42):
        search, limit = Search(width, (0.0, 0.6, 2.5)[seed % 3]), 1 + seed % 7
        model = random_model(seed, n_tokens=5, levels=(2, 3, 1000)[seed % 3], memory=2, end=(1.0, 0.1)[seed % 2])
        step = stepper(model, dtype)
        found, tree = observe(step, begun(), limit, search)  # refuses a tree that the search does not go along
        assert [found] == beam_search(step, begun(), torch.tensor([limit]), search), "watching changes nothing"
        for n, node in enumerate(tree.nodes):
            assert node.parent < n
            assert node.parent == -1 or tree.nodes[node.parent].fate is Fate.LIVED
        fates |= {node.fate for node in tree.nodes}
    assert {Fate.LIVED, Fate.ENDED, Fate.CUT} <= fates


def test_a_tree_of_another_search_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = observed._tree
    monkeypatch.setattr(observed, "_tree", lambda seen, limit, search: replace(whole(seen, limit, search), best=0))
    with pytest.raises(RuntimeError, match="expected a tree that leads to"):
        observe(stepper(LURE), begun(), 3, Search(2, 0.0))
    monkeypatch.setattr(observed, "_tree", lambda seen, limit, search: whole(seen[:1] + seen[:1], limit, search))
    with pytest.raises(RuntimeError, match="token 1: expected the search to go on with"):
        observe(stepper(LURE), begun(), 3, Search(2, 0.0))
