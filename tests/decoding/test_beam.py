"""Search on scripted models: greedy is lured, enumeration agrees, no sentence minds its neighbours."""

import math
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from repro.decoding.beam import Hypothesis, Step, beam_search
from repro.decoding.inside import Fate, Node, SearchTree, observe
from repro.decoding.search import PAPER_SEARCH, SEARCHES, LengthNormalised, Search
from repro.model.special_tokens import EOS, PAD

A, B, C, D = 2, 3, 4, 5
IMPOSSIBLE = -math.inf

# (sentence, tokens so far) -> log-probability of each token
Model = Callable[[int, tuple[int, ...]], tuple[float, ...]]


@dataclass
class Prefixes:
    """All that each row has read: after a wrong reorder or keep, the model answers for another hypothesis."""

    sentence: Tensor  # int64 [R]
    tokens: Tensor  # int64 [R, T]

    def reorder(self, rows: Tensor) -> "Prefixes":
        assert rows.dtype == torch.int64
        old, new = self._by_sentence(self.sentence), self._by_sentence(self.sentence[rows])
        assert torch.equal(old[:, 0], new[:, 0])  # same sentences, same order
        return Prefixes(self.sentence[rows], self.tokens[rows])

    def keep(self, sentences: Tensor) -> "Prefixes":
        n, kept = len(self._by_sentence(self.sentence)), len(sentences)
        assert 0 < kept < n
        assert len(sentences.unique()) == kept
        moved = sentences != torch.arange(kept)
        assert int(moved.sum()) <= n - kept  # no more than are done
        rows = self._by_sentence(torch.arange(len(self.sentence)))[sentences].flatten()
        return Prefixes(self.sentence[rows], self.tokens[rows])

    def _by_sentence(self, x: Tensor) -> Tensor:
        n = len(self.sentence.unique())
        assert bool((self.sentence.view(n, -1) == self.sentence.view(n, -1)[:, :1]).all())
        return x.view(n, -1)


def begun(sentences: Sequence[int] = (0,)) -> Prefixes:
    """Nothing is read yet."""
    numbers = torch.tensor(sentences, dtype=torch.int64)
    return Prefixes(numbers, numbers.new_zeros(len(numbers), 0))


def stepper(model: Model, dtype: torch.dtype = torch.float64, rows: list[int] | None = None) -> Step[Prefixes]:
    """The step function of a scripted model; `rows` collects how many hypotheses each step had to extend."""

    def step(last: Tensor, state: Prefixes, k: int) -> tuple[Tensor, Tensor, Prefixes]:
        state = Prefixes(state.sentence, torch.cat([state.tokens, last[:, None]], dim=1))
        assert bool((state.tokens[:, 0] == PAD).all())  # the first input of the decoder
        if rows is not None:
            rows.append(len(last))
        read = zip(state.sentence.tolist(), state.tokens[:, 1:].tolist(), strict=True)
        log_prob = torch.tensor([model(sentence, tuple(tokens)) for sentence, tokens in read], dtype=dtype)
        return *likeliest(log_prob, k), state  # parts of wider tensors, as a step may give them

    return step


def search(
    model: Model,
    limits: list[int],
    *,
    sentences: list[int] | None = None,
    dtype: torch.dtype = torch.float64,
    rows: list[int] | None = None,
    width: int = 4,
    alpha: float = 0.6,
    by: type[Search] = Search,
) -> list[Hypothesis]:
    """Beam search over a scripted model."""
    state = begun(range(len(limits)) if sentences is None else sentences)
    return beam_search(stepper(model, dtype, rows), state, torch.tensor(limits), by(width, alpha))


def likeliest(log_prob: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """What a search asks of each row: the k likeliest tokens but padding, of equals the first; -inf if none is left."""
    wide = F.pad(log_prob, (0, k), value=IMPOSSIBLE)
    wide[:, PAD] = IMPOSSIBLE
    value, token = wide.sort(dim=1, descending=True, stable=True)
    return value[:, :k], token.clamp(max=log_prob.shape[1] - 1)[:, :k]


def script(table: dict[tuple[int, ...], dict[int, float]], n_tokens: int = 6) -> Model:
    """A model from probabilities: prefix -> {token: probability}; a prefix not in the table must end."""

    def model(_: int, prefix: tuple[int, ...]) -> tuple[float, ...]:
        chances = table.get(prefix, {EOS: 1.0})
        return tuple(log(chances.get(token, 0.0)) for token in range(n_tokens))

    return model


def log(probability: float) -> float:
    return math.log(probability) if probability else IMPOSSIBLE


def random_model(seed: int, *, n_tokens: int, levels: int, memory: int, end: float) -> Model:
    """Chances from small whole numbers, so that few `levels` give many ties and zeros.

    It depends on the sentence and on the last `memory` tokens: 1 makes a Markov chain, many a tree. The end
    symbol has `end` times its share: where ends are rare, answers are long.
    """

    @cache
    def model(sentence: int, prefix: tuple[int, ...]) -> tuple[float, ...]:
        chance = random.Random(f"{seed} {sentence} {prefix[-memory:]}").random
        weights = [float(int(levels * chance())) for _ in range(n_tokens)]  # padding has its share as well
        weights[EOS] *= end
        return tuple(log(weight / (sum(weights) or 1)) for weight in weights)

    return model


models = st.builds(
    random_model,
    st.integers(0, 10**6),
    n_tokens=st.sampled_from([4, 5]),
    levels=st.sampled_from([2, 3, 1000]),
    memory=st.sampled_from([1, 9]),
    end=st.sampled_from([1.0, 0.1, 0.01]),
)
alphas = st.sampled_from([0.0, 0.6, 1.0, 2.5])


def penalty(length: int, alpha: float) -> float:
    return ((5 + length) / 6) ** alpha


# References: one sentence, plain loops.


def loop_search(model: Model, sentence: int, limit: int, width: int, alpha: float) -> Hypothesis:
    """Beam search to the very limit: no batch, no early stop."""
    live: list[tuple[float, tuple[int, ...]]] = [(0.0, ())]
    ended: list[Hypothesis] = []
    for length in range(1, limit + 1):
        candidates = [
            (-(log_prob + more), beam, token)
            for beam, (log_prob, ids) in enumerate(live)
            for token, more in enumerate(model(sentence, ids))
            if token != PAD and log_prob + more > IMPOSSIBLE
        ]
        others = []
        for minus, beam, token in sorted(candidates)[: 2 * width if width > 1 else 1]:
            if token == EOS:
                ended.append(Hypothesis(live[beam][1], -minus, -minus / penalty(length, alpha), True))
            else:
                others.append((-minus, (*live[beam][1], token)))
        live = others[:width]
    cut = [Hypothesis(ids, log_prob, log_prob / penalty(limit, alpha), False) for log_prob, ids in live]
    nothing = Hypothesis((), IMPOSSIBLE, IMPOSSIBLE, False)
    return max(ended or cut, key=lambda hypothesis: hypothesis.score, default=nothing)


def all_endings(model: Model, limit: int, ids: tuple[int, ...] = (), log_prob: float = 0.0) -> Iterator[Hypothesis]:
    """Every sequence that ends within the limit; scored under alpha = 0."""
    chances = model(0, ids)
    if chances[EOS] > IMPOSSIBLE:
        yield Hypothesis(ids, log_prob + chances[EOS], log_prob + chances[EOS], True)
    if limit > 1:
        for token in range(EOS + 1, len(chances)):
            if chances[token] > IMPOSSIBLE:
                yield from all_endings(model, limit - 1, (*ids, token), log_prob + chances[token])


def same(found: Hypothesis, expected: Hypothesis) -> bool:
    """The same tokens at the same log-probability, to the bit; penalties may differ in the last bit."""
    if found.score == expected.score == IMPOSSIBLE:
        return found == expected
    return found == replace(expected, score=pytest.approx(expected.score, rel=1e-12))


# After a come only halves, after b comes 0.9.
LURE = script({(): {A: 0.6, B: 0.4}, (A,): {C: 0.5, D: 0.5}, (B,): {D: 0.9, C: 0.1}})


def test_greedy_search_is_lured_and_two_beams_are_not() -> None:
    [one] = search(LURE, [9], width=1)
    [two] = search(LURE, [9], width=2)
    assert one.ids == (A, C)
    assert math.exp(one.log_prob) == pytest.approx(0.30)
    assert two.ids == (B, D)
    assert math.exp(two.log_prob) == pytest.approx(0.36)


def test_the_score_is_log_probability_over_penalty_with_the_end_symbol_counted() -> None:
    [two] = search(LURE, [9], width=2, alpha=0.6)
    assert two.score == pytest.approx(math.log(0.36) / (8 / 6) ** 0.6)  # b, d and the end: 3 tokens
    assert two.finished


# One token, or a long sentence that is less likely by a third: 0.6 against 0.4, lengths 1 and 7.
SHORT_OR_LONG = script({(): {EOS: 0.6, A: 0.4}, **{(A,) * n: {A: 1.0} for n in range(1, 6)}})


def test_search_stops_when_no_live_hypothesis_can_win() -> None:
    rows: list[int] = []
    hopeless = script({(): {EOS: 0.9, A: 0.1}, **{(A,) * n: {A: 1.0} for n in range(1, 50)}})
    [best] = search(hopeless, [50], rows=rows)
    assert best.ids == ()
    assert rows == [1]  # log 0.1 over the penalty of 50 tokens is -0.61, below log 0.9 = -0.11


def test_where_length_divides_the_longer_wins_and_the_search_waits_for_it() -> None:
    assert search(SHORT_OR_LONG, [9], width=2)[0].ids == ()  # at 0.6 ours takes 0.6 alone, -0.511 above -0.605
    [longer] = search(SHORT_OR_LONG, [9], width=2, by=LengthNormalised)
    assert (longer.ids, longer.score) == ((A,) * 6, pytest.approx(math.log(0.4) / 7**0.6))
    hopeless = script({(): {EOS: 0.9, A: 0.1}, **{(A,) * n: {A: 1.0} for n in range(1, 49)}})
    [best] = search(hopeless, [50], alpha=1.0, by=LengthNormalised)
    assert (best.ids, best.score) == ((A,) * 49, pytest.approx(math.log(0.1) / 50))  # above log 0.9


def test_sentences_that_are_done_leave_the_batch() -> None:
    rows: list[int] = []

    def after(n: int) -> Model:
        return script({(A,) * length: {A: 1.0} for length in range(n)})

    ends = [after(n) for n in (4, 1, 6, 1, 2)]
    found = search(lambda sentence, prefix: ends[sentence](sentence, prefix), [9] * 5, rows=rows, width=3)
    assert [hypothesis.ids for hypothesis in found] == [(A,) * n for n in (4, 1, 6, 1, 2)]
    assert rows == [5, 15, 9, 6, 6, 3, 3]


def test_a_live_hypothesis_counts_only_where_none_has_ended() -> None:
    # at the limit of 2: a a at 0.81 has not ended, b has at 0.1
    slow = script({(): {A: 0.9, B: 0.1}, (A,): {A: 0.9, D: 0.1}})
    assert [(h.ids, h.finished) for h in search(slow, [2], width=2)] == [((B,), True)]
    [cut] = search(slow, [1], width=2)
    assert cut == Hypothesis((A,), math.log(0.9), math.log(0.9), False)


@pytest.mark.parametrize("chances", [{}, {PAD: 1.0}, {A: 1.0}])
def test_where_nothing_is_possible_the_answer_is_empty_and_no_nan(chances: dict[int, float]) -> None:
    dead_end = script({(): chances, (A,): {}})
    assert search(dead_end, [4, 2], width=3) == [Hypothesis((), IMPOSSIBLE, IMPOSSIBLE, False)] * 2


@given(models, st.integers(1, 5), alphas)
def test_a_wide_beam_finds_the_optimum_of_all_sequences(model: Model, limit: int, alpha: float) -> None:
    limit = min(limit, 4) if len(model(0, ())) == 5 else limit
    [found] = search(model, [limit], width=60, alpha=alpha)  # 3^3 live x 4 tokens, or 2^4 x 3: all of them
    scores = [h.log_prob / penalty(len(h.ids) + 1, alpha) for h in all_endings(model, limit)]
    assert found.finished == bool(scores)
    if scores:
        assert found.score == pytest.approx(max(scores), rel=1e-12)
        again = sum(model(0, found.ids[:n])[token] for n, token in enumerate([*found.ids, EOS]))
        assert found.log_prob == pytest.approx(again, rel=1e-12)


@settings(max_examples=150)
@given(models, st.integers(1, 9), st.integers(1, 5), alphas)
def test_no_optimum_is_lost_by_stopping_early(model: Model, limit: int, width: int, alpha: float) -> None:
    [found] = search(model, [limit], width=width, alpha=alpha)
    assert same(found, loop_search(model, 0, limit, width, alpha))


@settings(max_examples=30)
@given(models, st.data(), st.integers(1, 5), alphas)
def test_batch_order_and_batch_size_change_nothing(model: Model, data: st.DataObject, width: int, alpha: float) -> None:
    limits = data.draw(st.lists(st.integers(1, 7), min_size=2, max_size=6))
    order = data.draw(st.permutations(range(len(limits))))
    cut = data.draw(st.integers(1, len(limits) - 1))

    def ask(sentences: list[int]) -> list[Hypothesis]:
        chosen = [limits[sentence] for sentence in sentences]
        return search(model, chosen, sentences=sentences, width=width, alpha=alpha)

    alone = [ask([sentence])[0] for sentence in range(len(limits))]
    assert ask(list(range(len(limits)))) == alone
    assert ask(order[:cut]) + ask(order[cut:]) == [alone[sentence] for sentence in order]


def test_half_precision_is_summed_in_single() -> None:
    # 0.75 a token over 40 tokens: the sum -11.5 would be off by 0.03 if it were kept in bfloat16
    steady = script({(A,) * n: {A: 0.75} for n in range(40)})
    [found] = search(steady, [60], dtype=torch.bfloat16)
    rounded = torch.tensor(math.log(0.75), dtype=torch.bfloat16).item()
    assert found.log_prob == pytest.approx(40 * rounded, rel=1e-6)


def test_limits_start_at_one_and_no_sentence_has_none() -> None:
    assert search(LURE, []) == []
    for limits in ([5, 0], [-1, 5]):
        with pytest.raises(ValueError, match=f"limits start at 1, got {min(limits)}"):
            search(LURE, limits)


def test_a_model_that_gives_nan_is_named() -> None:
    def diverged(sentence: int, prefix: tuple[int, ...]) -> tuple[float, ...]:
        return (0.0, 0.0, math.nan, -1.0) if (sentence, prefix) == (1, (B,)) else (0.0, -2.0, -3.0, -0.2)

    with pytest.raises(ValueError, match="got NaN from the step function at token 2"):
        search(diverged, [5, 5, 5], width=2)


# The search is a value: the paper's where nothing is said, refused where it could find nothing


def test_the_search_is_the_papers() -> None:
    # section 6.1: "a beam size of 4 and length penalty alpha = 0.6 ... maximum output length to input length + 50"
    assert Search() == PAPER_SEARCH == Search(4, 0.6, 50)


def test_a_record_keeps_it_under_the_names_it_always_had() -> None:
    parsing = Search(21, 0.3, 300)  # section 6.3
    assert parsing.settings == {"beam": 21, "alpha": 0.3, "extra_length": 300}
    assert Search.of(parsing.settings | {"precision": "fp32"}) == parsing
    assert str(parsing) == "beam 21, alpha 0.3, at most input + 300"
    assert Search(1, 0.0, 0).settings == {"beam": 1, "alpha": 0.0, "extra_length": 0}


def test_a_named_search_divides_by_length_and_comes_back_from_a_record() -> None:
    # Wu et al. (2021): beam 5, log p / length; ours at the same alpha: 1, 1.5, 2, 3
    other = SEARCHES["fairseq"]
    assert [other.penalty(n) for n in (1, 4, 7, 13)] == [1, 4, 7, 13]
    assert [Search(5, 1.0).penalty(n) for n in (1, 4, 7, 13)] == [1.0, 1.5, 2.0, 3.0]
    assert other.settings == {"beam": 5, "alpha": 1.0, "extra_length": 50, "offset": 0}
    assert Search.of(other.settings) == other != Search(5, 1.0)
    assert repr(other) == "LengthNormalised(beam=5, alpha=1.0, extra=50)", "a task in words tells it from the paper's"
    assert str(other) == "beam 5, alpha 1.0, at most input + 50, log p over length^alpha"


@pytest.mark.parametrize(
    "spoilt",
    [{"beam": 0}, {"alpha": -0.1}, {"alpha": math.nan}, {"alpha": math.inf}, {"alpha": 10**400}, {"extra": -1}],
)
def test_what_cannot_be_searched_is_refused_where_it_is_made(spoilt: dict[str, Any]) -> None:
    [value] = spoilt.values()
    with pytest.raises(ValueError, match="expected a beam of at least 1, an alpha that is finite") as error:
        Search(**spoilt)
    assert str(value) in str(error.value)
    assert "\n" not in str(error.value)


# The tree of a search is the search's own


def rounded(node: Node) -> Node:
    score = None if node.score is None else round(node.score, 9)
    return node._replace(log_prob=round(node.log_prob, 9), score=score)


def words_to(tree: SearchTree, place: int) -> list[int]:
    """The tokens of the hypothesis that ends in this node, without its end symbol."""
    ids: list[int] = []
    while place >= 0:
        node = tree.nodes[place]
        ids.append(node.token)
        place = node.parent
    return [id for id in reversed(ids) if id != EOS]


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
        step, read = stepper(model, dtype), []

        def reading(last: Tensor, state: Any, k: int, step: Any = step, read: list[list[int]] = read) -> Any:
            read.append(last.tolist())
            return step(last, state, k)

        found, tree = observe(reading, begun(), limit, search)
        assert [found] == beam_search(step, begun(), torch.tensor([limit]), search), "watching changes nothing"
        if tree.best is not None:
            end = tree.nodes[tree.best]
            told = (tuple(words_to(tree, tree.best)), end.log_prob, end.score, end.fate is Fate.ENDED)
            assert told == (found.ids, found.log_prob, found.score, found.finished)
        depth: list[int] = []
        for node in tree.nodes:
            depth.append(1 if node.parent == -1 else depth[node.parent] + 1)
        for length, last in enumerate(read[1:], 1):  # the search went on with those that lived, best first
            lived = [node.token for node, d in zip(tree.nodes, depth, strict=True) if (d, node.fate) == (length, 1)]
            assert last[: len(lived)] == lived
        for n, node in enumerate(tree.nodes):
            assert node.parent < n
            assert node.parent == -1 or tree.nodes[node.parent].fate is Fate.LIVED
        fates |= {node.fate for node in tree.nodes}
    assert {Fate.LIVED, Fate.ENDED, Fate.CUT} <= fates
