"""The plan holds every sentence once, keeps the budget, and is a function of (data, seed, epoch) alone."""

import itertools
import tracemalloc
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from repro.data import batching
from repro.data.batching import BATCH_BY, BatchBy, EpochPlan, Plan, Update, by_padded_tokens, by_tokens, share

Lengths = np.ndarray | list[int]
Corpus = tuple[np.ndarray, np.ndarray]
Pair = tuple[int, int]

BUDGET = 23
each_way = pytest.mark.parametrize("batch_by", BATCH_BY.values(), ids=BATCH_BY)
ways = st.sampled_from(list(BATCH_BY.values()))
lengths = st.integers(1, BUDGET)
corpora = st.lists(st.tuples(lengths, lengths), min_size=1, max_size=60).map(
    lambda pairs: tuple(np.array(side) for side in zip(*pairs, strict=True))
)


def plan(
    source: Lengths,
    target: Lengths,
    budget: int = BUDGET,
    batch_by: BatchBy = by_padded_tokens,
    data_hash: str = "data",
    seed: int = 1,
    epoch: int = 0,
) -> EpochPlan:
    sides = np.array(source), np.array(target)
    return Plan(*sides, budget=budget, batch_by=batch_by, data_hash=data_hash, seed=seed).planned(epoch)


def batches(plan: EpochPlan) -> list[list[int]]:
    return [plan.batch(i).tolist() for i in range(len(plan))]


def text_like(n: int) -> Corpus:
    """Lengths like those of short real sentences: 13 tokens on average, the sides alike but not equal."""
    random = np.random.RandomState(0)
    source = 4 + random.binomial(30, 0.3, n)
    return source, source + random.binomial(6, 0.5, n) - 2


def pinned_lengths(n: int, longest: int) -> Corpus:
    """Lengths that are the same for ever, as the raw stream of a bit generator is."""
    raw = np.random.Philox(key=n).random_raw(2 * n).astype(np.int64) & 0xFFFF
    source = 1 + raw[:n] % longest
    return source, np.clip(source + raw[n:] % 7 - 3, 1, longest)


def kind(pair: Pair) -> Pair:
    """What pairs are sorted by."""
    longest, difference = max(pair), pair[0] - pair[1]
    return longest, -difference if longest % 2 else difference


def fits(batch: list[Pair], budget: int, batch_by: BatchBy) -> bool:
    """The batch keeps the budget on both sides."""
    if batch_by is by_padded_tokens:
        return len(batch) * max(max(pair) for pair in batch) <= budget
    return max(sum(side) for side in zip(*batch, strict=True)) <= budget


def written_out(source: list[int], target: list[int], budget: int, batch_by: BatchBy) -> list[list[Pair]]:
    """The batches before the shuffle as pairs of lengths, by plain loops."""
    batches: list[list[Pair]] = []
    batch: list[Pair] = []
    for pair in sorted(zip(source, target, strict=True), key=kind):
        if not fits([*batch, pair], budget, batch_by):
            batches.append(batch)
            batch = []
        batch.append(pair)
    return [*batches, batch]


@given(corpora, ways)
def test_each_sentence_once_and_the_budget_held(corpus: Corpus, batch_by: BatchBy) -> None:
    source, target = corpus
    made = plan(source, target, batch_by=batch_by)
    assert sorted(made.order) == list(range(len(source)))
    assert made.starts[0] == 0
    assert made.starts[-1] == len(source)
    for i in range(len(made)):
        sentences = made.batch(i)
        assert len(sentences) > 0
        for side in (source, target):
            if batch_by is by_padded_tokens:
                assert len(sentences) * side[sentences].max() <= BUDGET
            else:
                assert side[sentences].sum() <= BUDGET


@given(corpora, ways)
def test_the_plan_equals_the_plan_written_out(corpus: Corpus, batch_by: BatchBy) -> None:
    source, target = corpus
    expected = written_out(source.tolist(), target.tolist(), BUDGET, batch_by)
    found = [[(source[i], target[i]) for i in batch] for batch in batches(plan(source, target, batch_by=batch_by))]
    assert sorted(found) == sorted(expected)


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


@pytest.mark.parametrize(
    ("n", "longest", "budget", "data_hash", "seed", "epoch", "n_batches", "digest"),
    [
        (1, 1, 1, "data", 0, 0, 1, "87d82d155685fda42f606911efa50ac195bef4be188fcd1ecdb773d60e88ae5f"),
        (2, 5, 7, "data", 1, 1, 2, "6e3ada058bd0030f215d5489c9dce8784c97cb980da8d448b5f9385005b0faa1"),
        (997, 50, 128, "data", 1, 0, 242, "42f991e683ec1addc93bda1e48fa57f53fd314443a4f254c8bf2cd972f43a640"),
        (997, 50, 128, "other", 1, 0, 242, "61a8036e17ceb721726e2c597a37d32aee42fc2a2b37ef14fd255c4a3b05b4a8"),
        (997, 50, 128, "data", 2, 11, 242, "2feb5ceb4438af9140579ac014e97a22e4907b61d0336c5575e6cf7d41be3531"),
        (1000, 5000, 25000, "data", 1, 3, 106, "b173aa6f51c5ae424d6099a3509ddc407b3c5b387326b54704819d17016f53c6"),
        (20011, 100, 2048, "data", 3, 2, 513, "3a2fa7da11e5fdcad11a48b4a50824d1f6dffb88d23902b11f71025c7a51a276"),
        (300007, 250, 25000, "data", 1, 7, 1525, "c2c75c153ba85ec8fe16f74fbdb681352dd76033764a18e8386e8a783ccb1425"),
    ],
)
def test_plans_by_slots_are_pinned(
    n: int, longest: int, budget: int, data_hash: str, seed: int, epoch: int, n_batches: int, digest: str
) -> None:
    # the plans of the first committed records: with others, those could not be made again
    made = plan(*pinned_lengths(n, longest), budget, by_padded_tokens, data_hash, seed, epoch)
    assert (len(made), made.digest) == (n_batches, digest)


def test_a_plan_by_tokens_is_pinned() -> None:
    made = plan(*pinned_lengths(997, 50), 128, by_tokens, seed=2, epoch=11)
    assert (len(made), made.digest) == (240, "ab49c05b24ce9b6107f66fdd4a6fe60d5c38465347be4fe8e37c4445170ba776")


@given(corpora, ways)
def test_the_type_of_the_lengths_changes_nothing(corpus: Corpus, batch_by: BatchBy) -> None:
    source, target = corpus
    expected = plan(source, target, batch_by=batch_by).digest
    for one, other in [("u1", "u1"), ("u2", "i4"), ("u2", "u8"), ("i1", "i8")]:
        assert plan(source.astype(one), target.astype(other), batch_by=batch_by).digest == expected


def test_a_plan_takes_twelve_bytes_a_pair() -> None:
    # 36 million pairs: 290 MB of keys while they are sorted, 145 MB of sentence numbers that stay
    source, target = (side.astype(np.uint16) for side in text_like(300_000))
    with mock.patch.object(batching, "NUMBERS_AT_ONCE", 4096):
        tracemalloc.start()
        made = Plan(source, target, budget=25_000, data_hash="data", seed=1).planned(0)
        left, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert made.order.dtype == np.uint32
    assert left < 4.5 * len(source)
    assert peak < 13 * len(source)


@each_way
def test_a_start_sorts_one_epoch_and_the_number_of_updates_none(batch_by: BatchBy) -> None:
    corpus = text_like(500)
    with mock.patch.object(batching, "_sort", wraps=batching._sort) as sort:
        n = Plan(*corpus, budget=200, batch_by=batch_by).updates_per_epoch
        assert sort.call_count == 0
        for start in (0, 7 * n - 1, 7 * n):
            sort.reset_mock()
            next(Plan(*corpus, budget=200, batch_by=batch_by, data_hash="data", seed=1).updates(start))
            assert sort.call_count == 1


@given(corpora, ways)
def test_updates_are_the_epochs_one_after_the_other(corpus: Corpus, batch_by: BatchBy) -> None:
    n = Plan(*corpus, budget=BUDGET, batch_by=batch_by).updates_per_epoch

    def take(start: int) -> list[Update]:
        stream = Plan(*corpus, budget=BUDGET, batch_by=batch_by, data_hash="data", seed=1).updates(start)
        return list(itertools.islice(stream, 3 * n - start))

    stream = take(0)
    expected = [batch for epoch in range(3) for batch in batches(plan(*corpus, batch_by=batch_by, epoch=epoch))]
    assert [update.sentences.tolist() for update in stream] == expected
    assert [update.sentences.tolist() for update in take(n + 1)] == expected[n + 1 :]
    for update in stream:
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


@pytest.mark.parametrize(
    ("source", "target", "message"),
    [
        ([2, 9, 2], [2, 2, 2], "fit a batch of 8 tokens a side, but source sentence 1 has 9. Raise the budget"),
        ([2, 2, 2], [2, 2, 9], "fit a batch of 8 tokens a side, but target sentence 2 has 9. Raise the budget"),
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
        next(Plan(*sides, budget=8, data_hash="data", seed=1).updates())


def test_keys_that_would_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match="at most 64 bits, got 65"):
        plan([2**31 - 1, 1, 1], [1, 1, 1], budget=2**31)
