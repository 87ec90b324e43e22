"""Ids come back from disk as they were written, from however many shards."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from repro.data.shards import OFFSETS, Store, shard_folder

SENTENCES = [[2 + i] * (i % 4) + [1] for i in range(11)]
SHARDS = (SENTENCES[:4], [], SENTENCES[4:5], SENTENCES[5:])  # one of them empty: all its pairs were dropped


@pytest.fixture(scope="module")
def side(tmp_path_factory: pytest.TempPathFactory) -> Store:
    folder = tmp_path_factory.mktemp("train")
    for i, sentences in enumerate(SHARDS):
        shard_folder(folder, i).mkdir()
        flat = np.array([id for sentence in sentences for id in sentence], "<u2")
        (shard_folder(folder, i) / "source.ids").write_bytes(flat.tobytes())
        offsets = np.cumsum([0, *map(len, sentences)])
        (shard_folder(folder, i) / "source.offsets").write_bytes(offsets.astype(OFFSETS).tobytes())
    return Store(folder, "source", n_shards=len(SHARDS), dtype=np.dtype("<u2"))


def test_every_sentence_comes_back(side: Store) -> None:
    assert len(side) == len(SENTENCES)
    assert [side.sentence(i).tolist() for i in range(len(side))] == SENTENCES
    assert side.lengths.tolist() == [len(sentence) for sentence in SENTENCES]
    assert side.n_tokens == sum(map(len, SENTENCES))
    assert side.starts.tolist() == [0, 4, 4, 5, 11]


@given(st.lists(st.integers(0, len(SENTENCES) - 1), max_size=40))
def test_gathering_is_joining_sentences(side: Store, wanted: list[int]) -> None:
    ids, lengths = side.gather(np.array(wanted, np.int64))
    assert ids.tolist() == [id for i in wanted for id in SENTENCES[i]]
    assert lengths.tolist() == [len(SENTENCES[i]) for i in wanted]
    assert (ids.dtype, lengths.dtype) == (np.uint16, np.int64)


@pytest.mark.parametrize("i", [-1, len(SENTENCES)])
def test_there_are_no_other_sentences(side: Store, i: int) -> None:
    with pytest.raises(IndexError, match=f"{i}"):
        side.sentence(i)
    with pytest.raises(IndexError, match=f"{i}"):
        side.gather([0, i])


def test_a_pickled_store_holds_names_and_no_data(side: Store) -> None:
    assert len(side.lengths) == len(side)
    assert side.gather([3, 1])[0].size  # all that may be held is held
    pickled = pickle.dumps(side)
    assert len(pickled) < 600
    assert b"ids" not in pickled.replace(b"source.ids", b"")
    np.testing.assert_array_equal(pickle.loads(pickled).gather([3, 1])[0], side.gather([3, 1])[0])


def test_ids_cannot_be_written_over(side: Store) -> None:
    with pytest.raises(ValueError, match="read-only"):
        side.ids[0][0] = 5
