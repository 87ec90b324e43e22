"""Ids come back from disk as they were written, from however many shards."""

import os
import pickle
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from repro.data import shards as module
from repro.data.batching import counted
from repro.data.shards import Shards, Store, pair_counts, shard_folder, write_shard

Sentences = list[list[int]]

SENTENCES = [[2 + i] * (i % 4) + [1] for i in range(11)]
OTHERS = [[50 + i] * (i * i % 3) + [1] for i in range(11)]
BOUNDS = (0, 4, 4, 5, 11)  # one of the shards is empty: all its pairs were dropped


def flat(sentences: Sentences) -> tuple[np.ndarray, np.ndarray]:
    """Ids and lengths."""
    ids = np.array([id for sentence in sentences for id in sentence], "<u2")
    return ids, np.array([len(sentence) for sentence in sentences], np.int64)


def written(folder: Path, source: Sentences, target: Sentences, bounds: tuple[int, ...] = BOUNDS) -> Shards:
    for shard, (begin, end) in enumerate(pairwise(bounds)):
        ids, lengths = zip(*(flat(side[begin:end]) for side in (source, target)), strict=True)
        shard_folder(folder, shard).mkdir(parents=True)
        write_shard(shard_folder(folder, shard), ids, lengths)
    return Shards(folder, n_shards=len(bounds) - 1, dtype=np.dtype("<u2"))


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> Shards:
    return written(tmp_path_factory.mktemp("train"), SENTENCES, OTHERS)


@pytest.fixture(scope="module")
def side(shards: Shards) -> Store:
    return Store(shards, "source")


def test_every_sentence_comes_back(shards: Shards) -> None:
    for side, sentences in (("source", SENTENCES), ("target", OTHERS)):
        found = Store(shards, side)
        assert len(found) == len(sentences)
        assert [found.sentence(i).tolist() for i in range(len(found))] == sentences
        assert found.lengths.tolist() == [len(sentence) for sentence in sentences]
        assert found.n_tokens == sum(map(len, sentences))
    assert shards.starts.tolist() == [*BOUNDS]


def test_a_shard_knows_how_many_pairs_have_which_lengths(shards: Shards) -> None:
    # sentences 5 to 10: sources of 2 3 4 1 2 3 tokens, targets of 2 1 2 2 1 2
    assert shards.opened(3).counts.tolist() == [[1, 2, 1], [2, 1, 1], [2, 2, 1], [3, 1, 1], [3, 2, 1], [4, 2, 1]]
    assert shards.opened(1).counts.tolist() == []
    source, target = (Store(shards, side) for side in ("source", "target"))
    np.testing.assert_array_equal(pair_counts(source, target), counted(source.lengths, target.lengths))
    assert pair_counts(target, source) is None, "counted the other way round"


@given(st.lists(st.integers(0, len(SENTENCES) - 1), max_size=40))
def test_gathering_is_joining_sentences(side: Store, wanted: list[int]) -> None:
    ids, lengths = side.gather(np.array(wanted, np.int64))
    assert ids.tolist() == [id for i in wanted for id in SENTENCES[i]]
    assert lengths.tolist() == [len(SENTENCES[i]) for i in wanted]
    assert (ids.dtype, lengths.dtype) == (np.uint16, np.int64)


@pytest.mark.parametrize("i", [-1, len(SENTENCES)])
def test_a_sentence_beyond_the_text_is_refused(side: Store, i: int) -> None:
    with pytest.raises(IndexError, match=f"{i}"):
        side.sentence(i)
    with pytest.raises(IndexError, match=f"{i}"):
        side.gather([0, i])


def test_a_pickled_store_holds_names_and_no_data(side: Store) -> None:
    assert len(side.lengths) == len(side)
    assert side.gather([3, 1])[0].size  # all that may be held is held
    pickled = pickle.dumps(side)
    assert len(pickled) < 600
    assert b"ids" not in pickled
    np.testing.assert_array_equal(pickle.loads(pickled).gather([3, 1])[0], side.gather([3, 1])[0])


def open_files(folder: Path) -> list[str]:
    """Of this process, those in the folder."""
    links = (f"/proc/self/fd/{number}" for number in os.listdir("/proc/self/fd"))
    return [path for link in links if os.path.exists(link) and (path := os.readlink(link)).startswith(str(folder))]


@pytest.mark.skipif(sys.platform != "linux", reason="asks /proc which files are open")
def test_few_files_are_open_however_many_there_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sentences = [[7] * (i % 5) + [1] for i in range(40)]
    monkeypatch.setattr(module, "MOST_OPEN", 3)
    shards = written(tmp_path, sentences, sentences, tuple(range(41)))
    source, target = (Store(shards, side) for side in ("source", "target"))
    assert (len(source), source.n_tokens) == (40, 120)
    assert open_files(tmp_path) == []  # sizes are read and files closed again
    everything = np.random.RandomState(0).permutation(40)
    for side in (source, target):
        assert side.gather(everything)[0].tolist() == [id for i in everything for id in sentences[i]]
        assert len(open_files(tmp_path)) == 3
    assert source.gather([5, 6, 5])[0].tolist() == [*sentences[5], *sentences[6], *sentences[5]]
    assert {path.split("/")[-2] for path in open_files(tmp_path)} >= {"00005", "00006"}


@pytest.mark.parametrize("n", [0, 31, 33, 100])
def test_half_a_shard_is_named(tmp_path: Path, n: int) -> None:
    shards = written(tmp_path, SENTENCES, OTHERS)
    path = shard_folder(tmp_path, 3) / module.SHARD
    path.write_bytes(path.read_bytes()[:n])
    with pytest.raises(ValueError, match=f"00003/pairs is not a whole shard: expected .*, got {n}. Delete"):
        len(Store(shards, "source"))
