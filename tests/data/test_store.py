"""Ids come back from disk as they were written; a damaged cache is noticed, an interrupted one never used."""

import json
import os
import pickle
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from repro.data import store
from repro.data.corpus import Corpus, open_corpus
from repro.data.store import Prepared, Store, prepare
from repro.data.tokenizer import Tokenizer, train_tokenizer
from repro.symbols import EOS

ROOT = Path(__file__).parents[2]
TRAIN = [(f"the dog number {i} runs" + " far" * (i % 5), f"der Hund {i} rennt") for i in range(23)]
LONG = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"  # nothing to merge
HELD_OUT = [("the dog runs", "der Hund rennt"), ("  far ", "weit\u2028weg")]


def written(folder: Path, train: list[tuple[str, str]] = TRAIN) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for split, pairs in (("train", train), ("dev", HELD_OUT), ("test", HELD_OUT[:1])):
        for language, text in zip(("en", "de"), zip(*pairs, strict=True), strict=True):
            (folder / f"{split}.{language}").write_bytes("".join(f"{line}\n" for line in text).encode())
    return folder


def opened(folder: Path) -> Corpus:
    return open_corpus("folder", "en-de", data_dir=folder, cache=folder)


def prepared(folder: Path, vocab_size: int = 300, max_length: int = 256) -> Prepared:
    return prepare(opened(folder), vocab_size=vocab_size, cache=folder / "cache", max_length=max_length)


def cached(folder: Path) -> dict[str, bytes]:
    """Every file of the cache."""
    cache = folder / "cache"
    return {str(path.relative_to(cache)): path.read_bytes() for path in cache.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def ready(tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    return prepared(written(tmp_path_factory.mktemp("corpus")))


# Store -----------------------------------------------------------------------------------------------------


def test_every_sentence_comes_back(ready: Prepared) -> None:
    for split, pairs in ((ready.train, TRAIN), (ready.dev, HELD_OUT), (ready.test, HELD_OUT[:1])):
        for side, text in zip((split.source, split.target), zip(*pairs, strict=True), strict=True):
            assert len(side) == len(pairs)
            assert [ready.tokenizer.decode(side.sentence(i)) for i in range(len(side))] == list(text)
            assert all(side.sentence(i)[-1] == EOS for i in range(len(side)))
            assert side.lengths.tolist() == [len(side.sentence(i)) for i in range(len(side))]
            assert (side.ids.dtype, side.offsets.dtype, side.lengths.dtype) == (np.uint16, np.int64, np.int64)


@given(st.lists(st.integers(0, len(TRAIN) - 1), max_size=40))
def test_gathering_is_joining_sentences(ready: Prepared, wanted: list[int]) -> None:
    side = ready.train.source
    ids, lengths = side.gather(np.array(wanted, np.int64))
    assert ids.tolist() == [id for i in wanted for id in side.sentence(i).tolist()]
    assert lengths.tolist() == [len(side.sentence(i)) for i in wanted]


@pytest.mark.parametrize("i", [-1, len(TRAIN)])
def test_there_are_no_other_sentences(ready: Prepared, i: int) -> None:
    with pytest.raises(IndexError, match=f"{i}"):
        ready.train.source.sentence(i)
    with pytest.raises(IndexError, match=f"{i}"):
        ready.train.source.gather([0, i])


def test_a_pickled_store_holds_names_and_no_data(ready: Prepared) -> None:
    side = ready.train.source
    assert len(side.lengths) == len(side.ids[side.offsets[:-1]]) == len(TRAIN)  # all that may be held is held
    pickled = pickle.dumps(side)
    assert len(pickled) < 500 < side.offsets.nbytes + side.ids.nbytes
    np.testing.assert_array_equal(pickle.loads(pickled).gather([3, 1])[0], side.gather([3, 1])[0])


def test_ids_cannot_be_written_over(ready: Prepared) -> None:
    with pytest.raises(ValueError, match="read-only"):
        ready.train.source.sentence(0)[0] = 5


# What is prepared ------------------------------------------------------------------------------------------


def test_references_are_the_text_of_the_targets(ready: Prepared) -> None:
    assert ready.dev.references == [target for _, target in HELD_OUT]


def test_counts(ready: Prepared) -> None:
    assert ready.counts["test"] == {
        "pairs": 1,
        "source_pieces": len(ready.test.source.sentence(0)),
        "target_pieces": len(ready.test.target.sentence(0)),
        "dropped": {},
    }
    assert ready.seconds > 0
    json.dumps(ready.counts)


def test_long_and_bad_training_pairs_are_dropped_and_counted(tmp_path: Path) -> None:
    bad = [("", "leer"), (LONG, "kurz"), ("short", LONG)]
    folder = written(tmp_path, [*TRAIN[:2], *bad, *TRAIN[2:]])
    (folder / "dev.en").write_bytes(f"{LONG}\nlong\n".encode())
    made = prepared(folder, max_length=30)
    assert made.train.dropped == {"source is empty": 1, "longer than 30 pieces": 2}
    assert max(made.train.source.lengths.max(), made.train.target.lengths.max()) <= 30
    decoded = [made.tokenizer.decode(made.train.target.sentence(i)) for i in range(len(TRAIN))]
    assert decoded == [target for _, target in TRAIN]
    assert (len(made.train), len(made.dev), made.dev.dropped) == (len(TRAIN), 2, {})
    assert made.dev.source.lengths[0] > 30  # held-out text is kept whole


def test_the_longest_pair_that_is_kept(tmp_path: Path) -> None:
    lengths = prepared(written(tmp_path)).train.source.lengths
    longest = int(lengths.max())
    n_longest = int((lengths == longest).sum())
    assert prepared(tmp_path, max_length=longest).train.dropped == {}
    dropped = prepared(tmp_path, max_length=longest - 1).train.dropped
    assert dropped == {f"longer than {longest - 1} pieces": n_longest}


def test_training_text_without_a_good_pair_is_refused(tmp_path: Path) -> None:
    folder = written(tmp_path)
    with pytest.raises(ValueError, match=r"No pair of .*train\.en .*longer than 2 pieces': 23"):
        prepared(folder, max_length=2)
    assert not [name for name in cached(folder) if "train" in name]


def test_chunks_leave_no_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = cached(prepared_in(tmp_path / "whole", max_length=40))
    monkeypatch.setattr(store, "PAIRS_AT_ONCE", 5)  # 23 pairs: the last chunk is short
    assert cached(prepared_in(tmp_path / "chunks", max_length=40)) == whole


def prepared_in(folder: Path, max_length: int) -> Path:
    prepared(written(folder), max_length=max_length)
    return folder


def test_a_large_vocabulary_takes_four_bytes(tmp_path: Path, ready: Prepared) -> None:
    ready.tokenizer.save(tmp_path / "tokenizer.json")
    contents = json.loads((tmp_path / "tokenizer.json").read_bytes())
    for id in range(ready.tokenizer.size, 70_000):
        contents["model"]["vocab"][f"piece {id}"] = id
    wide = Tokenizer(json.dumps(contents).encode())
    facts = store._encode(opened(written(tmp_path)).dev, wide, None, tmp_path)
    ids = np.fromfile(tmp_path / "source.ids", facts["dtype"])
    assert (facts["dtype"], ids.tolist()) == ("<u4", ready.dev.source.ids.tolist())


# The cache -------------------------------------------------------------------------------------------------


def test_what_is_done_is_not_done_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = prepared(written(tmp_path))
    before = cached(tmp_path)
    monkeypatch.setattr(store, "train_tokenizer", None)
    monkeypatch.setattr(store, "_encode", None)
    second = prepared(tmp_path)
    assert cached(tmp_path) == before
    assert (second.data_hash, second.counts) == (first.data_hash, first.counts)


def test_the_data_hash_tells_all_that_changes_the_ids(tmp_path: Path) -> None:
    base = prepared(written(tmp_path / "a"))
    same = prepared(written(tmp_path / "b"))
    others = [
        prepared(tmp_path / "a", vocab_size=290),
        prepared(tmp_path / "a", max_length=200),
        prepared(written(tmp_path / "c", TRAIN[1:])),
        prepared(written(tmp_path / "d", TRAIN[::-1])),
    ]
    assert same.data_hash == base.data_hash
    assert len({base.data_hash, *(other.data_hash for other in others)}) == 5
    int(base.data_hash, 16)


def test_an_interrupted_preparation_goes_on_where_it_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = written(tmp_path)
    encode, calls = Tokenizer.encode, 0

    def interrupted(self: Tokenizer, lines: list[str]) -> object:
        nonlocal calls
        calls += 1
        if calls == 4:  # the second chunk of the training text: source and target of the first are written
            raise KeyboardInterrupt
        return encode(self, lines)

    with monkeypatch.context() as patch:
        patch.setattr(store, "PAIRS_AT_ONCE", 12)
        patch.setattr(Tokenizer, "encode", interrupted)
        with pytest.raises(KeyboardInterrupt):
            prepared(folder)
    assert {Path(name).name for name in cached(folder)} == {"tokenizer.json", "manifest.json"}
    monkeypatch.setattr(store, "train_tokenizer", None)  # that step is done
    assert len(prepared(folder).train) == len(TRAIN)


def damage(path: Path, how: str) -> None:
    content = path.read_bytes()
    place = {"first": 0, "middle": len(content) // 2, "last": len(content) - 1}
    if how == "truncated":
        content = content[:-1]
    else:
        content = content[: place[how]] + bytes([content[place[how]] ^ 1]) + content[place[how] + 1 :]
    changed = path.stat().st_mtime_ns + 1
    path.write_bytes(content)
    os.utime(path, ns=(changed, changed))  # a clock that ticks in milliseconds may not have moved


@pytest.mark.parametrize("how", ["truncated", "first", "middle", "last"])
def test_damage_is_noticed_and_mended(tmp_path: Path, how: str) -> None:
    prepared(written(tmp_path))
    whole = cached(tmp_path)
    for name in whole:
        path = tmp_path / "cache" / name
        damage(path, how)
        is_text_around_json = path.name == "manifest.json" and how in ("truncated", "last")  # its line feed
        if path.parent.name.startswith("train") and not is_text_around_json:
            with pytest.raises(ValueError, match=r"Delete the folder; it is made again"):
                Store(path.parent, "source")
        prepared(tmp_path)
        assert cached(tmp_path).keys() == whole.keys()
        if not is_text_around_json:
            assert path.read_bytes() == whole[name]


def test_ids_are_never_read_with_another_tokenizer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # the tokenizer is lost, and another release of the library learns another one from the same text
    prepared(written(tmp_path))
    next((tmp_path / "cache").glob("*/tokenizer/manifest.json")).unlink()
    monkeypatch.setattr(store, "train_tokenizer", lambda lines, size: train_tokenizer(["other"] * 3, size))
    again = prepared(tmp_path)
    assert again.tokenizer.decode(again.dev.target.sentence(0)) == HELD_OUT[0][1]


def test_two_processes_may_prepare_at_once(tmp_path: Path) -> None:
    folder = written(tmp_path, TRAIN * 50)
    program = f"""
import time
from pathlib import Path
from repro.data.corpus import open_corpus
from repro.data.store import prepare
folder = Path({str(folder)!r})
corpus = open_corpus("folder", "en-de", data_dir=folder, cache=folder)
print("ready", flush=True)
while not (folder / "go").exists():
    time.sleep(0.001)
made = prepare(corpus, vocab_size=300, cache=folder / "cache", max_length=256)
print(made.data_hash, made.train.source.ids.sum(), made.tokenizer.decode(made.test.target.sentence(0)))
"""
    processes = [subprocess.Popen([sys.executable, "-c", program], cwd=ROOT, stdout=subprocess.PIPE) for _ in range(3)]
    for process in processes:
        assert process.stdout is not None
        process.stdout.readline()
    (folder / "go").touch()
    said = {process.communicate(timeout=60)[0] for process in processes}
    assert [process.returncode for process in processes] == [0, 0, 0]
    assert len(said) == 1
    assert not [path for path in (folder / "cache").rglob("*") if path.name.startswith(".")]


# Real text -------------------------------------------------------------------------------------------------


def test_multi30k_is_ready_within_20_seconds(real_text: Path, tmp_path: Path) -> None:
    if not (real_text / "multi30k").is_dir():
        pytest.skip(f"needs the real text: {real_text / 'multi30k'} is absent.")
    started = time.process_time()  # of both cores; a wall clock would also measure the neighbours
    corpus = open_corpus("multi30k", "en-de", data_dir=real_text, cache=tmp_path)
    made = prepare(corpus, vocab_size=10_000, cache=tmp_path, max_length=256)
    seconds = time.process_time() - started
    assert made.tokenizer.size == 10_000
    assert made.counts["train"]["dropped"] == {}
    assert (len(made.train), len(made.dev), len(made.test)) == (29_000, 1_014, 1_000)
    decoded = [made.tokenizer.decode(made.test.target.sentence(i)) for i in range(1_000)]
    assert decoded == made.test.references
    assert seconds < 20
