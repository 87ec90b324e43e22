"""A corpus is prepared once, whatever interrupts it; a damaged cache is noticed, an interrupted one never used."""

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from text_folders import put, text_folder

from repro.corpora import parallel_text
from repro.corpora import prepare as preparing
from repro.corpora.catalogue import Corpus, open_corpus
from repro.corpora.parallel_text import normalised
from repro.corpora.prepare import RUN_AGAIN, Encoder, looked_for, prepare, process_pool, seen_lines
from repro.data.shards import Prepared, Shards, Store, shard_folder
from repro.data.tokenizer import Tokenizer, train_tokenizer
from repro.data.vocabulary import Subwords
from repro.model.special_tokens import EOS
from repro.storage.folder_cache import verified

PLACE = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
TRAIN = [(f"the dog number {i} runs" + " far" * (i % 5), f"der Hund {i} rennt") for i in range(23)]
PIECES = Subwords("bpe", 300)
LONG = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"  # nothing to merge
HELD_OUT = [("the dog runs", "der Hund rennt"), ("  far ", "weit\u2028weg")]


def written(folder: Path, train: list[tuple[str, str]] = TRAIN) -> Path:
    return text_folder(folder, train=train, dev=HELD_OUT, test=HELD_OUT[:1])


def opened(folder: Path) -> Corpus:
    return open_corpus("folder", "en-de", data_dir=folder, cache=folder)


def prepared(folder: Path, subwords: Subwords = PIECES, max_length: int = 256, **choices: Any) -> Prepared:
    choices = {"workers": 1} | choices
    return prepare(opened(folder), subwords=subwords, cache=folder / "cache", max_length=max_length, **choices)


def cached(folder: Path) -> dict[str, bytes]:
    """Every file of the cache."""
    cache = folder / "cache"
    files = (path for path in cache.rglob("*") if path.is_file() and path.suffix != ".lock")
    return {str(path.relative_to(cache)): path.read_bytes() for path in files}


@pytest.fixture(scope="module")
def ready(tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    return prepared(written(tmp_path_factory.mktemp("corpus")))


# What is prepared ------------------------------------------------------------------------------------------


def test_every_line_comes_back(ready: Prepared) -> None:
    for split, pairs in ((ready.train, TRAIN), (ready.dev, HELD_OUT), (ready.test, HELD_OUT[:1])):
        for side, lines in zip((split.source, split.target), zip(*pairs, strict=True), strict=True):
            assert [ready.tokenizer.decode(side.sentence(i)) for i in range(len(side))] == list(lines)
            assert all(side.sentence(i)[-1] == EOS for i in range(len(side)))
            assert side.sentence(0).dtype == np.uint16
    assert ready.dev.references == [target for _, target in HELD_OUT]
    source = ready.test.source
    assert (len(ready.test), source.n_tokens, ready.test.dropped) == (1, len(source.sentence(0)), {})


def test_long_and_bad_training_pairs_are_dropped_and_counted(tmp_path: Path) -> None:
    bad = [("", "leer"), (LONG, "kurz"), ("short", LONG)]
    folder = written(tmp_path, [*TRAIN[:2], *bad, *TRAIN[2:]])
    put(folder / "dev.en", f"{LONG}\nlong\n")
    made = prepared(folder, max_length=30)
    assert made.train.dropped == {"source is empty": 1, "longer than 30 pieces": 2}
    assert max(made.train.source.lengths.max(), made.train.target.lengths.max()) <= 30
    decoded = [made.tokenizer.decode(made.train.target.sentence(i)) for i in range(len(TRAIN))]
    assert decoded == [target for _, target in TRAIN]
    assert (len(made.train), len(made.dev), made.dev.dropped) == (len(TRAIN), 2, {})
    assert made.dev.source.lengths[0] > 30  # held-out text is kept whole
    [shard] = (tmp_path / "cache").glob("*/encoded-*/train/00000")
    facts = verified(shard)
    assert facts["lines"] == facts["pairs"] + 3 == len(TRAIN) + 3
    for lengths, tokens in zip(facts["lengths"], facts["pieces"], strict=True):
        assert (sum(lengths), sum(i * n for i, n in enumerate(lengths))) == (len(TRAIN), tokens)


def test_the_longest_pair_is_kept_and_one_at_least_must_be(tmp_path: Path) -> None:
    lengths = prepared(written(tmp_path)).train.source.lengths
    longest = int(lengths.max())
    assert prepared(tmp_path, max_length=longest).train.dropped == {}
    dropped = prepared(tmp_path, max_length=longest - 1).train.dropped
    assert dropped == {f"longer than {longest - 1} pieces": int((lengths == longest).sum())}
    with pytest.raises(ValueError, match=r"No pair of .*train\.en .*longer than 2 pieces': 23"):
        prepared(tmp_path, max_length=2)


def test_pairs_are_left_out_by_rules_that_are_named(tmp_path: Path) -> None:
    folder = written(tmp_path, [*TRAIN[:3], ("a b c d", "x y"), ("one " * 30, "eins"), *TRAIN[3:]])
    plain, clean = prepared(folder), prepared(folder, rules=["fairseq", "length_ratio"])
    assert plain.train.dropped == {}
    assert clean.train.dropped == {
        "sides differ in length by more than 3 times": 1,
        "sides differ in length by more than 1.5 times": 14,  # with those of TRAIN that say "far" more than once
    }
    decoded = [clean.tokenizer.decode(clean.train.source.sentence(i)) for i in range(len(clean.train))]
    assert decoded == [source for source, _ in TRAIN if len(source.split()) <= 6]
    assert clean.data_hash != plain.data_hash
    assert prepared(folder, rules=["length_ratio", "fairseq"]).data_hash == clean.data_hash


# Repeated text ---------------------------------------------------------------------------------------------

REPEATING = [
    ("The dog runs!", "Der Hund rennt."),  # a pair of dev and of test, but for case and marks
    ("far", "fern"),  # a source of dev with another target
    ("a  new line", "a  new line"),
    *TRAIN[:6],
    ("the dog runs", "der Hund rennt" + " weit" * 99),  # too long, so it is not trained on
    ("again" + " again" * 99,) * 2,
]


def test_held_out_text_in_the_training_text_is_counted(tmp_path: Path) -> None:
    found = prepared(written(tmp_path / "repeating", REPEATING), max_length=60)
    assert len(found.train) == 9
    shares = {"dev_sources": 1.0, "dev_pairs": 1 / 2, "test_sources": 1.0, "test_pairs": 1.0}
    assert found.repeats == shares | {"same_sides": 1 / 9}
    card = json.loads((found.card / "data_card.json").read_bytes())
    seen = {"sources seen": 2, "share": 1.0, "pairs seen": 1, "share of pairs": 0.5, "first lines": [1, 2]}
    assert card["overlap"]["dev"] == {"lines": 2} | seen
    # what is left out is not trained on, so it gives nothing away
    left_out = prepared(written(tmp_path / "long", REPEATING[-2:] + TRAIN[:6]), max_length=60)
    assert left_out.repeats == dict.fromkeys(found.repeats, 0.0)


line = st.text(st.sampled_from("aAbéÉß ſK1_-.\u2028ж"), max_size=4)
texts = st.lists(st.tuples(line, line), max_size=8)


@given(texts, texts, texts)
@settings(max_examples=50)
def test_what_is_seen_equals_comparing_all_lines(
    dev: list[tuple[str, str]], test: list[tuple[str, str]], train: list[tuple[str, str]]
) -> None:
    def is_there(pair: tuple[str, str], sides: int) -> bool:
        wanted = [normalised(one) for one in pair[:sides]]
        return all(wanted) and any([normalised(one) for one in other[:sides]] == wanted for other in train)

    held_out = {"dev": dev, "test": test}
    expected = {
        (what, split, n)
        for what, sides in (("seen", 1), ("seen_pairs", 2))
        for split, pairs in held_out.items()
        for n, pair in enumerate(pairs, 1)
        if is_there(pair, sides)
    }
    assert {*seen_lines(looked_for(held_out), *([pair[side] for pair in train] for side in (0, 1)))} == expected


# Shards ----------------------------------------------------------------------------------------------------


def test_shards_hold_what_one_shard_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rules = ["fairseq"]
    train = [*REPEATING[:3], *TRAIN[:9], ("", "leer"), *REPEATING[:2], *TRAIN[5:]]
    whole = prepared(written(tmp_path / "whole", train), rules=rules)
    monkeypatch.setattr(parallel_text, "CHUNK", 7)
    monkeypatch.setattr(preparing, "PAIRS_AT_ONCE", 3)
    shards = prepared(written(tmp_path / "shards", train), rules=rules)
    assert [len(made.train.source.shards.heads) for made in (whole, shards)] == [1, 5]
    for side, other in ((whole.train.source, shards.train.source), (whole.train.target, shards.train.target)):
        for one, found in zip(*(one.gather(np.arange(len(one))) for one in (side, other)), strict=True):
            np.testing.assert_array_equal(one, found)
        np.testing.assert_array_equal(side.lengths, other.lengths)
    assert shards.train.dropped == whole.train.dropped
    assert shards.data_hash == whole.data_hash  # shards are how it is stored, not what it is
    assert shards.repeats == whole.repeats
    assert whole.repeats["dev_pairs"] == 1 / 2  # a line that several shards repeat counts once


def test_only_what_is_lost_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel_text, "CHUNK", 7)
    first = prepared(written(tmp_path))
    before = cached(tmp_path)
    [lost] = (tmp_path / "cache").glob("*/encoded-*/train/00002")
    (lost / "pairs").unlink()
    made: list[int] = []
    encode = Encoder.shard
    monkeypatch.setattr(
        Encoder, "shard", lambda self, one, *rest: made.append(one.first_line) or encode(self, one, *rest)
    )
    assert prepared(tmp_path).manifest_hash == first.manifest_hash
    assert made == [14]
    assert cached(tmp_path) == before


def test_pieces_are_learned_on_a_stated_part_of_a_large_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    learned: list[str] = []

    def noted(lines: Any, subwords: Subwords, **how: Any) -> Tokenizer:
        learned.extend(lines)
        return train_tokenizer(iter(learned), subwords, **how)

    monkeypatch.setattr(parallel_text, "CHUNK", 10)
    monkeypatch.setattr(preparing, "LEARN_FROM", 8)  # of 23 lines: a part in 3
    monkeypatch.setattr(preparing, "train_tokenizer", noted)
    made = prepared(written(tmp_path))
    chosen = [*TRAIN[0:4], *TRAIN[10:14], *TRAIN[20:21]]
    assert learned == [line for pair in chosen for line in pair]
    assert "a part in 3" in (made.card / "data_card.json").read_text("utf-8")


def test_a_large_vocabulary_takes_four_bytes(tmp_path: Path, ready: Prepared) -> None:
    ready.tokenizer.save(tmp_path / "tokenizer.json")
    contents = json.loads((tmp_path / "tokenizer.json").read_bytes())
    for id in range(ready.tokenizer.size, 70_000):
        contents["model"]["vocab"][f"token {id}"] = id
    (tmp_path / "tokenizer.json").write_bytes(json.dumps(contents).encode())
    sha256 = Tokenizer.load(tmp_path / "tokenizer.json").sha256
    encoder = Encoder(tokenizer=tmp_path / "tokenizer.json", sha256=sha256, pair="en-de")
    [chunk] = opened(written(tmp_path)).dev.chunks()
    facts = encoder.shard(chunk, "", shard_folder(tmp_path, 0))
    assert facts["dtype"] == "<u4"
    source = Store(Shards(tmp_path, n_shards=1, dtype=np.dtype("<u4")), "source")
    assert source.gather([0, 1])[0].tolist() == ready.dev.source.gather([0, 1])[0].tolist()


# The cache -------------------------------------------------------------------------------------------------


def test_the_data_hash_tells_all_that_changes_the_ids(tmp_path: Path) -> None:
    def version(folder: Path, size: int = 300, kind: Any = "bpe", max_length: int = 256, *rules: str) -> str:
        return preparing._version(opened(folder), Subwords(kind, size), max_length, rules)

    one, again, fewer, turned = (
        written(tmp_path / f"{n}", train) for n, train in enumerate((TRAIN, TRAIN, TRAIN[1:], TRAIN[::-1]))
    )
    others = [version(one, 290), version(one, 300, "wordpiece"), version(one, 300, "bpe", 200)]
    others += [version(one, 300, "bpe", 256, "fairseq"), version(fewer), version(turned)]
    assert version(one) == version(again)
    assert len({version(one), *others}) == 1 + len(others)


def test_other_ids_of_the_same_choices_have_another_hash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # the code of the preparation is outside the wall: a run is told by what it reads
    base, same = (prepared(written(tmp_path / name)) for name in ("base", "same"))
    monkeypatch.setattr(preparing, "reasons", lambda _, __, lines, ___: ["a bug" * ("far far" in one) for one in lines])
    other = prepared(written(tmp_path / "other"))
    assert same.ids_hash == base.ids_hash != other.ids_hash
    assert same.data_hash == base.data_hash == other.data_hash


def test_the_data_hash_is_for_ever(tmp_path: Path) -> None:
    # Every plan is a function of it: a change here changes all numbers. Raise FORMAT, and name the rows.
    same = [("a", "a"), ("b", "b")]
    corpus = opened(text_folder(tmp_path / "a", train=same, dev=same, test=same))
    assert preparing._version(corpus, Subwords("bpe", 300), 256, ()) == (
        "43b7371f356f393cd5cf0136d82a940eecae6d141bbfeab1e0c9b06bc8967726"
    )


def test_damage_is_noticed_and_mended(tmp_path: Path) -> None:
    prepared(written(tmp_path))
    whole = cached(tmp_path)
    for name, content in whole.items():
        path, middle = tmp_path / "cache" / name, len(content) // 2
        path.write_bytes(content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :])
        with pytest.raises(ValueError, match=r"Delete the folder; it is made again"):
            verified(path.parent)
        prepared(tmp_path)
        assert cached(tmp_path) == whole


def test_ids_are_never_read_with_another_tokenizer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # the tokenizer is lost, and another release of the library learns another one from the same text
    prepared(written(tmp_path))
    next((tmp_path / "cache").glob("*/tokenizer/manifest.json")).unlink()
    monkeypatch.setattr(
        preparing, "train_tokenizer", lambda _, subwords, **how: train_tokenizer(["other"] * 3, subwords)
    )
    again = prepared(tmp_path)
    assert again.tokenizer.decode(again.dev.target.sentence(0)) == HELD_OUT[0][1]


# Many processes --------------------------------------------------------------------------------------------

PROGRAM = """
import sys, time
from pathlib import Path
from repro.corpora import parallel_text as text
from repro.corpora.catalogue import open_corpus
from repro.data.vocabulary import Subwords
from repro.corpora.prepare import Encoder, prepare

if __name__ == "__main__":
    folder, workers = Path(sys.argv[1]), int(sys.argv[2])
    text.CHUNK = 100
    corpus = open_corpus("folder", "en-de", data_dir=folder, cache=folder / "cache")
    calls, shard = [], Encoder.shard
    if workers == 1:  # other processes would not know of it
        Encoder.shard = lambda self, *rest: calls.append(1) or shard(self, *rest)
    print("ready", flush=True)
    while not (folder / "go").exists():
        time.sleep(0.001)
    made = prepare(corpus, subwords=Subwords("bpe", 300), cache=folder / "cache", max_length=256, workers=workers)
    print(made.manifest_hash, len(calls))
"""


def started(folder: Path, workers: int) -> "subprocess.Popen[bytes]":
    command = [sys.executable, str(put(folder / "program.py", PROGRAM)), str(folder), f"{workers}"]
    process = subprocess.Popen(command, cwd=folder, env=PLACE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    return process


UNGUARDED = """
from pathlib import Path
from repro.corpora import prepare as preparing
from repro.corpora.catalogue import open_corpus
from repro.data.vocabulary import Subwords

preparing.APART_FROM = 1
corpus = open_corpus("folder", "en-de", data_dir=Path(), cache=Path("cache"))
preparing.prepare(corpus, subwords=Subwords("bpe", 300), cache=Path("cache"), max_length=256, workers=1)
"""


def test_a_file_that_starts_processes_without_a_guard_is_told_so(tmp_path: Path) -> None:
    command = [sys.executable, str(put(written(tmp_path) / "program.py", UNGUARDED))]
    done = subprocess.run(command, cwd=tmp_path, env=PLACE, capture_output=True, text=True, timeout=100)
    assert (done.returncode, RUN_AGAIN in done.stderr) == (1, True)


def test_processes_that_prepare_at_once_share_the_work(tmp_path: Path) -> None:
    folder = written(tmp_path, TRAIN * 100)  # 23 shards
    processes = [started(folder, workers=1) for _ in range(3)]
    (folder / "go").touch()
    said = [process.communicate(timeout=120) for process in processes]
    assert [process.returncode for process in processes] == [0] * 3, said
    assert len({out.split()[0] for out, _ in said}) == 1
    assert not [path for path in (folder / "cache").rglob("*") if path.name.endswith(".making")]
    assert sum(int(out.split()[1]) for out, _ in said) == 25  # of 23 + 2 shards: one worked


def test_killed_at_any_moment_it_goes_on(tmp_path: Path) -> None:
    folder = written(tmp_path / "killed", TRAIN * 50)
    (folder / "go").touch()
    process = started(folder, workers=2)
    while process.poll() is None and len(list(folder.glob("cache/*/encoded-*/train/*"))) < 3:  # of 12 shards
        time.sleep(0.001)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=60)  # until the processes that it asked for help have ended as well
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parallel_text, "CHUNK", 100)
        found = [prepared(written(tmp_path / name, TRAIN * 50)).manifest_hash for name in ("killed", "unbroken")]
    assert found[0] == found[1]
    assert not [path for path in (folder / "cache").rglob(".*") if path.name.endswith(".making")]
    assert cached(tmp_path / "killed") == cached(tmp_path / "unbroken")  # by one process, not by two


def test_what_does_not_fit_is_refused_before_any_work(tmp_path: Path) -> None:
    written(tmp_path)
    for name, wrong in (("max_length", {"max_length": 0}), ("workers", {"workers": 0})):
        with pytest.raises(ValueError, match=f"^{name} must be at least 1, got 0"):
            prepared(tmp_path, **wrong)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"came without sub-words; Subwords\(kind='given'.* do not fit"):
        prepared(tmp_path, subwords=Subwords("given", 0))
    put(tmp_path / "vocab", "eins\nzwei\n")
    with pytest.raises(ValueError, match=r"came with sub-words, those of .*vocab; Subwords.* do not fit"):
        prepared(tmp_path)
    assert cached(tmp_path) == {}


def test_a_worker_that_is_ended_is_named_and_only_one_alone_has_threads() -> None:
    for n, threads in ((1, "true"), (2, "false")):
        with process_pool(n) as pool:
            assert pool.submit(os.getenv, "TOKENIZERS_PARALLELISM").result() == threads
    with pytest.raises(OSError, match="was killed, perhaps for lack of memory"), process_pool(1) as pool:
        pool.submit(os._exit, 1).result()


def interrupted() -> None:
    with process_pool(2) as pool:
        pool.submit(os.getpid).result()  # one has begun
        for _ in range(5):
            pool.submit(time.sleep, 600)
        raise KeyboardInterrupt


def test_an_interrupt_ends_all_workers() -> None:
    before = multiprocessing.active_children()
    with pytest.raises(KeyboardInterrupt):
        interrupted()
    for one in multiprocessing.active_children():
        if one not in before:
            one.join(60)
            assert one.exitcode == -signal.SIGTERM


KILLED = """
import os, time
from repro.corpora.prepare import process_pool

if __name__ == "__main__":
    with process_pool(2) as pool:
        print(pool.submit(os.getpid).result(), flush=True)
        pool.submit(time.sleep, 600)
        os._exit(9)
"""


def test_no_worker_outlives_a_killed_command(tmp_path: Path) -> None:
    command = [sys.executable, str(put(tmp_path / "killed.py", KILLED))]
    done = subprocess.run(command, stdout=subprocess.PIPE, env=PLACE, check=False, timeout=120)
    assert done.returncode == 9
    helper, ends = int(done.stdout), time.monotonic() + 60
    while psutil.pid_exists(helper) and psutil.Process(helper).status() != psutil.STATUS_ZOMBIE:
        assert time.monotonic() < ends, "it is still there"
        time.sleep(0.05)


def test_of_several_processes_each_has_its_share_of_the_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {*range(4)}, raising=False)
    for together, share in (("2", 2), ("99", 1)):
        monkeypatch.setenv("LOCAL_WORLD_SIZE", together)
        assert preparing.usable_cores() == share
