"""The plan holds every sentence once, keeps the budget, and is a function of (data, seed, epoch) alone."""

import gzip
import itertools
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from repro.data.buckets import EpochPlan, Update, plan_epoch, share, updates, updates_per_epoch

Lengths = np.ndarray | list[int]
Corpus = tuple[np.ndarray, np.ndarray]

BUDGET = 23
lengths = st.integers(1, BUDGET)
corpora = st.lists(st.tuples(lengths, lengths), min_size=1, max_size=60).map(
    lambda pairs: tuple(np.array(side) for side in zip(*pairs, strict=True))
)


def plan(
    source: Lengths,
    target: Lengths,
    budget: int = BUDGET,
    data_hash: str = "data",
    seed: int = 1,
    epoch: int = 0,
) -> EpochPlan:
    return plan_epoch(np.array(source), np.array(target), budget=budget, data_hash=data_hash, seed=seed, epoch=epoch)


def batches(plan: EpochPlan) -> list[list[int]]:
    return [plan.batch(i).tolist() for i in range(len(plan))]


def text_like(n: int) -> Corpus:
    """Lengths like those of short real sentences: 13 pieces on average, the sides alike but not equal."""
    random = np.random.RandomState(0)
    source = 4 + random.binomial(30, 0.3, n)
    return source, source + random.binomial(6, 0.5, n) - 2


def written_out(source: list[int], target: list[int], budget: int) -> list[list[tuple[int, int]]]:
    """The batches before the shuffle as pairs of lengths, by plain loops."""

    def kind(pair: tuple[int, int]) -> tuple[int, int]:
        longest, difference = max(pair), pair[0] - pair[1]
        return longest, -difference if longest % 2 else difference

    batches: list[list[tuple[int, int]]] = []
    batch: list[tuple[int, int]] = []
    for pair in sorted(zip(source, target, strict=True), key=kind):
        if max(max(p) for p in [*batch, pair]) * (len(batch) + 1) > budget:
            batches.append(batch)
            batch = []
        batch.append(pair)
    return [*batches, batch]


def test_a_plan_made_by_hand() -> None:
    # sorted: 1 2 3 5.  two of 2 fit 6, three of 3 do not; one of 3 fits, two of 5 do not
    tiny = plan([3, 1, 2, 5], [3, 1, 2, 5], budget=6)
    assert sorted(batches(tiny)) == [[0], [1, 2], [3]]
    # real pieces 3 + 3, 3 + 3, 5 + 5; slots 3 + 3, 2 * 2 + 2 * 2, 5 + 5: two of 24 are padding
    assert sorted(tiny.source_tokens) == sorted(tiny.target_tokens) == [3, 3, 5]
    assert sorted(tiny.slots) == [6, 8, 10]
    assert tiny.padding == 2 / 24


def test_the_longer_side_decides() -> None:
    # target 4 4 4: three of them fill 12, though the source would leave room for six
    for made in (plan([2] * 4, [4] * 4, budget=12), plan([4] * 4, [2] * 4, budget=12)):
        assert sorted(len(batch) for batch in batches(made)) == [1, 3]


@given(corpora)
def test_each_sentence_once_and_the_budget_held(corpus: Corpus) -> None:
    source, target = corpus
    made = plan(source, target)
    assert sorted(made.order) == list(range(len(source)))
    assert made.starts[0] == 0
    assert made.starts[-1] == len(source)
    for i in range(len(made)):
        sentences = made.batch(i)
        assert len(sentences) > 0
        for side in (source, target):
            assert len(sentences) * side[sentences].max() <= BUDGET


@given(corpora)
def test_tokens_and_padding_are_known_beforehand(corpus: Corpus) -> None:
    source, target = corpus
    made = plan(source, target)
    for i in range(len(made)):
        rows = made.batch(i)
        assert made.source_tokens[i] == source[rows].sum()
        assert made.target_tokens[i] == target[rows].sum()
        assert made.slots[i] == len(rows) * (source[rows].max() + target[rows].max())
    assert made.padding == (made.slots.sum() - source.sum() - target.sum()) / made.slots.sum()


@given(corpora)
def test_the_plan_equals_the_plan_written_out(corpus: Corpus) -> None:
    source, target = corpus
    expected = written_out(source.tolist(), target.tolist(), BUDGET)
    found = [[(source[i], target[i]) for i in batch] for batch in batches(plan(source, target))]
    assert sorted(found) == sorted(expected)


def test_every_order_of_equal_sentences_is_as_likely() -> None:
    # 3! orders of three equal sentences, 1,200 plans: 200 each, give or take 13 (one standard deviation)
    orders = Counter(tuple(plan([2] * 3, [2] * 3, seed=seed).order) for seed in range(1200))
    assert len(orders) == 6
    assert max(abs(count - 200) for count in orders.values()) < 50


def test_new_batches_in_a_new_order_each_epoch() -> None:
    source, target = text_like(2000)
    made = {
        (seed, epoch, data): plan(source, target, 100, data_hash=data, seed=seed, epoch=epoch)
        for seed, epoch, data in [(1, 0, "a"), (1, 1, "a"), (1, 10, "a"), (11, 0, "a"), (1, 0, "b")]
    }
    assert len({p.digest for p in made.values()}) == len(made)
    for one, other in itertools.combinations(made.values(), 2):
        same_place = np.mean([set(a) == set(b) for a, b in zip(batches(one), batches(other), strict=True)])
        assert same_place < 0.05  # the order is another ...
        together = {frozenset(batch) for batch in batches(one)} & {frozenset(b) for b in batches(other)}
        assert len(together) < 0.3 * len(one)  # ... and so are the batches, but for sentences of rare lengths


def test_batches_are_shuffled() -> None:
    source, target = text_like(20_000)
    made = plan(source, target, 2048)
    longest = np.maximum(source, target)
    by_batch = [longest[made.batch(i)].max() for i in range(len(made))]
    assert abs(np.corrcoef(by_batch, np.arange(len(made)))[0, 1]) < 0.2


def test_the_same_plan_in_any_process_for_ever() -> None:
    source, target = text_like(500)
    here = plan(source, target, 200, epoch=3).digest
    # pinned: if this changes, no old run can be resumed or repeated
    assert here == "efaba23f12b2c28448dc7a86ae8e9405cf068f19adc205f732454746534f8723"
    program = (
        "import sys, numpy as np; from repro.data.buckets import plan_epoch;"
        f"s, t = np.array({source.tolist()}), np.array({target.tolist()});"
        "print(plan_epoch(s, t, budget=200, data_hash='data', seed=1, epoch=3).digest)"
    )
    root = Path(__file__).parents[2]
    environment = {**os.environ, "PYTHONHASHSEED": "7", "PYTHONPATH": str(root)}
    there = subprocess.run(
        [sys.executable, "-c", program], env=environment, cwd=root, capture_output=True, check=True
    ).stdout
    assert there.strip().decode() == here


def test_the_type_of_the_lengths_changes_nothing() -> None:
    source, target = text_like(500)
    assert plan(source.astype(np.uint16), target.astype(np.int32)).digest == plan(source, target).digest


@given(corpora, st.integers(0, 200))
def test_starting_at_an_update_equals_skipping_to_it(corpus: Corpus, k: int) -> None:
    def take(start: int, n: int) -> list[Update]:
        stream = updates(*corpus, budget=BUDGET, data_hash="data", seed=1, start=start)
        return list(itertools.islice(stream, n))

    unbroken, resumed = take(0, k + 5)[k:], take(k, 5)
    assert [u.sentences.tolist() for u in resumed] == [u.sentences.tolist() for u in unbroken]
    assert [u.epoch for u in resumed] == [u.epoch for u in unbroken]
    assert [u.step for u in resumed] == list(range(k, k + 5))


@given(corpora)
def test_updates_are_the_epochs_one_after_the_other(corpus: Corpus) -> None:
    n = updates_per_epoch(*corpus, budget=BUDGET)
    stream = list(itertools.islice(updates(*corpus, budget=BUDGET, data_hash="data", seed=1), 3 * n))
    expected = [batch for epoch in range(3) for batch in batches(plan(*corpus, epoch=epoch))]
    assert [update.sentences.tolist() for update in stream] == expected
    assert [update.epoch for update in stream] == [0] * n + [1] * n + [2] * n
    for update in stream:
        assert update.source_tokens == corpus[0][update.sentences].sum()
        assert update.target_tokens == corpus[1][update.sentences].sum()


@given(st.integers(0, 40), st.integers(1, 8))
def test_shares_are_the_batch(n: int, n_parts: int) -> None:
    sentences = np.arange(n) * 7
    shares = [share(sentences, part, n_parts) for part in range(n_parts)]
    assert sorted(np.concatenate(shares)) == sentences.tolist()
    sizes = [len(part) for part in shares]
    assert max(sizes) - min(sizes) <= 1


def test_shares_hold_nearly_equal_tokens() -> None:
    source, target = text_like(20_000)
    made = plan(source, target, 2048)
    for sentences in (made.batch(i) for i in range(len(made)) if len(made.batch(i)) >= 80):
        for side in (source, target):
            tokens = [side[share(sentences, part, 4)].sum() for part in range(4)]
            assert max(tokens) <= 1.1 * min(tokens)


def test_padding_is_below_five_percent() -> None:
    source, target = text_like(20_000)
    assert plan(source, target, 2048).padding < 0.02
    assert plan(source, target, 4096).padding < 0.03


def test_padding_on_real_text(real_text: Path) -> None:
    def count(language: str) -> np.ndarray:
        with gzip.open(real_text / "multi30k" / f"train.{language}.gz") as file:
            return np.array([len(line.split()) + 1 for line in file])

    english, german, french = count("en"), count("de"), count("fr")
    for target in (german, french):
        assert plan(english, target, 2048).padding < 0.025
        assert plan(english, target, 4096).padding < 0.035


@pytest.mark.parametrize(
    ("source", "target", "message"),
    [
        (
            [2, 9, 2],
            [2, 2, 2],
            r"fit a batch of 8 tokens a side, but source sentence 1 has 9. Raise the budget",
        ),
        (
            [2, 2, 2],
            [2, 2, 9],
            r"fit a batch of 8 tokens a side, but target sentence 2 has 9. Raise the budget",
        ),
        ([2, 2], [2], r"parallel: got 2 source and 1 target sentences"),
        ([], [], r"at least one sentence pair, got none"),
        ([2, 0], [2, 2], r"expected lengths from 1, got 0 for source sentence 1"),
    ],
)
def test_errors_teach(source: list[int], target: list[int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        plan(source, target, budget=8)
    sides = np.array(source, np.int64), np.array(target, np.int64)
    with pytest.raises(ValueError, match=message):
        next(updates(*sides, budget=8, data_hash="data", seed=1))


def test_keys_that_would_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match="at most 64 bits, got 65"):
        plan([2**31 - 1, 1, 1], [1, 1, 1], budget=2**31)
