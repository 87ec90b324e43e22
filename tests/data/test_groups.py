"""A text too large for one plan: groups of shards, one after the other, and every promise of a smaller text's plan."""

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace
from unittest import mock

import numpy as np
import pytest
from data.test_shards import written
from hypothesis import given, settings
from hypothesis import strategies as st

from repro.data import batching
from repro.data import datamodule as module
from repro.data.batching import BatchBy, Plan, Update, by_padded_tokens, counted, plan_of, share
from repro.data.datamodule import TranslationData
from repro.data.shards import Store, StoredLengths, pair_lengths

BUDGET = 23
Pairs = list[tuple[int, int]]  # lengths of source and target
ways = st.sampled_from(list(batching.BATCH_BY.values()))
texts = st.lists(
    st.lists(st.tuples(st.integers(1, BUDGET), st.integers(1, BUDGET)), max_size=12), min_size=1, max_size=9
)
texts = texts.filter(any)  # some shards may be empty, not all


@dataclass
class InShards:
    """Lengths by shard; notes which were asked for one by one."""

    shards: list[Pairs]
    read: list[int] = field(default_factory=list)

    @property
    def sizes(self) -> list[int]:
        return [len(shard) for shard in self.shards]

    def counts(self, shard: int) -> batching.Counts:
        return counted(*self._sides(shard))

    def of(self, shard: int) -> tuple[np.ndarray, np.ndarray]:
        self.read.append(shard)
        return self._sides(shard)

    def _sides(self, shard: int) -> tuple[np.ndarray, np.ndarray]:
        source, target = np.array(self.shards[shard], np.uint16).reshape(-1, 2).T
        return source, target


@contextmanager
def groups_of(pairs: int) -> Iterator[None]:
    """Plan every text in groups of about so many pairs."""
    with mock.patch.multiple(batching, GROUPS_FROM=0, GROUP=pairs):
        yield


def plan(shards: list[Pairs], batch_by: BatchBy = by_padded_tokens, data_hash: str = "data", seed: int = 1) -> Plan:
    return Plan(lengths=InShards(shards), budget=BUDGET, batch_by=batch_by, data_hash=data_hash, seed=seed)


def text(n_shards: int = 7, pairs: int = 40) -> list[Pairs]:
    """Lengths like those of short sentences, each shard of another size."""
    random = np.random.RandomState(0)
    shards = [2 + random.binomial([10, 10], 0.4, (pairs + shard, 2)) for shard in range(n_shards)]
    return [[(int(a), int(b)) for a, b in shard] for shard in shards]


def take(plan: Plan, start: int, n: int) -> list[Update]:
    return list(itertools.islice(plan.updates(start), n))


def facts(updates: list[Update]) -> list[tuple[int, list[int], int]]:
    return [(u.step, u.sentences.tolist(), u.target_tokens) for u in updates]


@settings(max_examples=25)
@given(texts, ways, st.integers(1, 30), st.integers(0, 200))
def test_starting_anywhere_equals_skipping_there(shards: list[Pairs], batch_by: BatchBy, size: int, k: int) -> None:
    with groups_of(size):
        n = plan(shards, batch_by).updates_per_epoch
        start = k % (2 * n + 1)
        assert facts(take(plan(shards, batch_by), start, n)) == facts(
            take(plan(shards, batch_by), 0, start + n)[start:]
        )


@settings(max_examples=25)
@given(texts, ways, st.integers(1, 30))
def test_the_plan_equals_the_plan_written_out(shards: list[Pairs], batch_by: BatchBy, size: int) -> None:
    starts, flat = list(itertools.accumulate(map(len, shards), initial=0)), [pair for shard in shards for pair in shard]
    with groups_of(size):
        made = plan(shards, batch_by)
        updates = take(made, 0, made.updates_per_epoch)
    assert [update.step for update in updates] == list(range(len(updates)))
    assert [update.target_tokens for update in updates] == [sum(flat[i][1] for i in u.sentences) for u in updates]
    found = [update.sentences.tolist() for update in updates]
    # each group as a text of its own, by the plan of a small text; then sentences as the whole text numbers them
    groups = []
    for number, group in enumerate(made.groups):
        numbers = [i for shard in group.shards for i in range(starts[shard], starts[shard + 1])]
        sides = np.array([pair for shard in group.shards for pair in shards[shard]]).T
        name = "0" if group.shards == list(range(len(shards))) else f"0/{number}"
        whole = plan_of(*sides, budget=BUDGET, batch_by=batch_by, data_hash="data", seed=1).planned(name)
        groups.append([[numbers[i] for i in whole.batch(b)] for b in range(len(whole))])
    of = {i: number for number, group in enumerate(groups) for batch in group for i in batch}
    order = [number for number, _ in itertools.groupby(of[batch[0]] for batch in found)]
    assert sorted(order) == list(range(len(groups)))
    assert found == [batch for number in order for batch in groups[number]]


@settings(max_examples=25)
@given(texts, ways)
def test_below_the_threshold_shards_are_not_seen(shards: list[Pairs], batch_by: BatchBy) -> None:
    sides = np.array([pair for shard in shards for pair in shard]).T
    whole = plan_of(*sides, budget=BUDGET, batch_by=batch_by, data_hash="data", seed=1).planned(3)
    made = plan(shards, batch_by)
    assert made.planned(3).digest == whole.digest
    assert made.updates_per_epoch == len(whole)


def test_the_threshold_is_fifty_million_pairs() -> None:
    # the order of every text below is promised for ever
    assert batching._grouped([49_999_999, 0], "x") == [[0, 1]]
    assert len(batching._grouped([25_000_000, 25_000_000], "x")) == 2
    many = batching._grouped([2**18] * 3_815, "x")
    assert sorted(itertools.chain(*many)) == list(range(3_815))
    assert len(many) == 30  # 3,815 / 128 groups of 2^25 pairs


def test_a_plan_in_groups_is_pinned() -> None:
    # if this changes, no run on such a text can be resumed or repeated
    with groups_of(100):
        made = plan(text())
        assert [group.shards for group in made.groups] == [[4], [1, 2], [6, 3], [0, 5]]
        assert made.updates_per_epoch == 115
        assert made.digest(5) == "e010821055515b5c3ab8d11d0c4cea180aff78569a323bf12f4f6b79fa22ce95"
        assert made.digest(115) == "a51bd87aa2086cd4d94b17ae0cb016e6afdb8f3d3c0f69eefa23c05b3031e2e1"


def test_a_start_reads_the_shards_of_one_group_and_the_number_of_updates_none() -> None:
    with groups_of(100):
        made = plan(text())
        n, lengths = made.updates_per_epoch, made.lengths
        assert lengths.read == []
        for start in (0, n // 2, 5 * n - 1, 5 * n):
            lengths.read.clear()
            update = next(made.updates(start))
            [group] = [one for one in made.groups if {*one.shards} & {*lengths.read}]
            assert lengths.read == [*group.shards]
            assert {*update.sentences.tolist()} <= {*made._sentences(group).tolist()}


def test_processes_agree_on_a_plan_by_its_digest() -> None:
    shards = text()
    with groups_of(100):
        digest = plan(shards).digest(3)
        assert plan(shards).digest(3) == digest
        assert plan(shards, seed=2).digest(3) != digest
        _, number, _ = next(plan(shards)._groups_from(3))
        elsewhere = next(i for i, group in enumerate(plan(shards).groups) if i != number)
        [shard, *_] = plan(shards).groups[elsewhere].shards
        others = [*shards[:shard], [(BUDGET, BUDGET)] * len(shards[shard]), *shards[shard + 1 :]]
        assert plan(others).digest(3) != digest  # lengths in a group that is read later


# From disk, by processes -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> tuple[Store, Store]:
    """`text()` in shards; the ids of sentence i are its number and ones."""
    lengths = zip(*itertools.chain(*text()), strict=True)
    source, target = ([[i + 2] * (n - 1) + [1] for i, n in enumerate(side)] for side in lengths)
    bounds = tuple(itertools.accumulate(map(len, text()), initial=0))
    shards = written(tmp_path_factory.mktemp("train"), source, target, bounds)
    return Store(shards, "source"), Store(shards, "target")


def test_a_text_on_disk_is_planned_from_its_shards(stored: tuple[Store, Store]) -> None:
    lengths = pair_lengths(*stored)
    assert isinstance(lengths, StoredLengths)
    assert lengths.sizes == [len(shard) for shard in text()]
    for shard, pairs in enumerate(text()):
        np.testing.assert_array_equal(np.array(pairs).T, lengths.of(shard))
        np.testing.assert_array_equal(lengths.counts(shard), counted(*lengths.of(shard)))
    source, target = stored
    other_way = pair_lengths(target, source)
    assert isinstance(other_way, batching.Whole)
    np.testing.assert_array_equal(other_way.source, target.lengths)


def data(stored: tuple[Store, Store], accumulate: int = 1) -> TranslationData:
    return TranslationData(stored, stored, budget=60, data_hash="data", seed=1, accumulate=accumulate)


def read(
    stored: tuple[Store, Store], rank: int, world: int, *, start: int, n: int, **options: int
) -> list[SimpleNamespace]:
    """What one of several processes reads of `n` micro-batches, from update `start` on."""
    with mock.patch.object(module, "place", return_value=(rank, world)):
        batches = itertools.islice(data(stored, **options).batches(start), n)
        return [
            SimpleNamespace(step=b.step, n_update=b.n_update, ids=[i for i in b.sentence.tolist() if i >= 0], read=b)
            for b in batches
        ]


@pytest.mark.parametrize(("world", "accumulate"), [(1, 1), (3, 1), (2, 4)])
@pytest.mark.parametrize("start", [0, 40])
def test_all_processes_together_read_the_plan(
    stored: tuple[Store, Store], world: int, accumulate: int, start: int
) -> None:
    n, parts = 25, world * accumulate
    with groups_of(100):
        assert len(data(stored).plan.groups) == 4
        plan = list(itertools.islice(data(stored).plan.updates(start), n))
        ranks = [read(stored, r, world, start=start, n=n * accumulate, accumulate=accumulate) for r in range(world)]
    for i, update in enumerate(plan):
        shares = [ranks[part % world][i * accumulate + part // world] for part in range(parts)]
        assert [one.ids for one in shares] == [share(update.sentences, p, parts).tolist() for p in range(parts)]
        assert {(one.step, one.n_update) for one in shares} == {(update.step, update.target_tokens)}
        assert sum(one.read.n_target for one in shares) == update.target_tokens
        assert sum(one.read.n_source for one in shares) == stored[0].gather(update.sentences)[1].sum()
        for one in shares:
            assert [row[0] for row in one.read.source.tolist() if row[0] > 1] == [
                i + 2 for i, length in zip(one.ids, stored[0].gather(one.ids)[1], strict=True) if length > 1
            ]
