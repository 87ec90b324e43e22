"""Ids, data hash and order of a small text are those of the first layout of shards, to the bit.

How ids are stored and how an epoch is planned may change; what comes out may not, or no record could be made again. The
digests were written down from the code of commit fa4b58c, which kept four files a shard and planned every epoch whole.
"""

import hashlib
from itertools import islice

import numpy as np
import pytest

from repro.corpora import parallel_text
from repro.corpora.catalogue import open_corpus
from repro.corpora.prepare import prepare
from repro.data.batching import BATCH_BY, Plan, Update, share
from repro.data.datamodule import TranslationData
from repro.data.shards import Prepared
from repro.data.vocabulary import Subwords
from repro.training import replay_check

WORDS = [f"w{i}" for i in range(97)]  # a vocabulary that comes with the text: no library's learning is in the digests
SPLITS = {"train": 1_009, "dev": 31, "test": 29}
GOLDEN_IDS = {  # pairs, tokens, digest of ids and lengths
    "train source": (677, 7_196, "1870d849163045b7"),
    "train target": (677, 7_268, "86479e6d9e512804"),
    "dev source": (31, 380, "c9bb1dd446dc8fb8"),
    "dev target": (31, 413, "0d6bb0d33ee7ae68"),
    "test source": (29, 305, "74aeed8e506629bf"),
    "test target": (29, 341, "cfbf1559566cc417"),
}
GOLDEN_ORDER = {  # updates an epoch; digests of two epochs and a bit, of what a process reads, of held-out text
    ("padded_tokens", 64, 1): (163, "14ca3e8c8ca98b60", "dab0e052a4ad26d3", "557a37fef3282e24"),
    ("padded_tokens", 128, 4): (78, "48b7f196f20b5a49", "e9a41049a10f1516", "e84821dd7868ceff"),
    ("tokens", 101, 2): (98, "27c059f783cacbdf", "c927b587fd2974a6", "2ba0ba2444db35df"),
}


def pseudo_random(key: int, n: int, below: int) -> list[int]:
    """Numbers that are the same for ever, as the raw stream of a bit generator is."""
    raw = np.random.Philox(key=key).random_raw(n) & np.uint64(0xFFFF)
    return [int(one) % below for one in raw]


def lines(key: int, n: int) -> list[str]:
    """Sentences of 1 to 23 words."""
    words = iter(pseudo_random(key, 23 * n, 97))
    return [" ".join(WORDS[word] for word in islice(words, 1 + one)) for one in pseudo_random(key + 1, n, 23)]


@pytest.fixture(scope="module")
def ready(tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    """In eleven shards of the training text, where pairs of over 20 tokens are dropped."""
    folder = tmp_path_factory.mktemp("golden")
    (folder / "vocab").write_bytes("".join(f"{word}\n" for word in WORDS).encode())
    for key, (split, n) in enumerate(SPLITS.items()):
        for other, language in enumerate(("en", "de")):
            text = "".join(f"{line}\n" for line in lines(10 * key + 2 * other, n))
            (folder / f"{split}.{language}").write_bytes(text.encode())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parallel_text, "CHUNK", 97)
        corpus = open_corpus("folder", "en-de", data_dir=folder, cache=folder)
        return prepare(corpus, subwords=Subwords("given", 0), cache=folder / "cache", max_length=20)


def test_the_ids_are_as_they_were(ready: Prepared) -> None:
    found = {}
    for split in ("train", "dev", "test"):
        for name in ("source", "target"):
            side = getattr(getattr(ready, split), name)
            ids, lengths = side.gather(np.arange(len(side)))
            written = ids.astype("<u4").tobytes() + lengths.astype("<u4").tobytes()
            found[f"{split} {name}"] = len(side), side.n_tokens, hashlib.sha256(written).hexdigest()[:16]
    assert found == GOLDEN_IDS


@pytest.mark.parametrize(("way", "budget", "accumulate"), GOLDEN_ORDER)
def test_the_order_is_as_it_was(ready: Prepared, way: str, budget: int, accumulate: int) -> None:
    train, dev = ((split.source, split.target) for split in (ready.train, ready.dev))
    data = TranslationData(
        train, dev, budget=budget, batch_by=BATCH_BY[way], accumulate=accumulate, data_hash="data", seed=3
    )
    n = Plan(*(side.lengths for side in train), budget=budget, batch_by=BATCH_BY[way]).updates_per_epoch
    assert data.updates_per_epoch == n
    read = [batch.sentence.tolist() for batch in islice(data.batches(n - 5), 10 * accumulate)]  # into the next epoch
    held_out = [batch.sentence.tolist() for batch in data.val_dataloader()]
    digests = [hashlib.sha256(repr(one).encode()).hexdigest()[:16] for one in (read, held_out)]
    order = replay_check.planned_order(islice(data.plan.updates(), 2 * n + 3), accumulate)
    assert (n, order[:16], *digests) == GOLDEN_ORDER[way, budget, accumulate]


def test_the_hash_of_the_data_knows_nothing_of_shards(ready: Prepared) -> None:
    assert (ready.tokenizer.size, ready.data_hash[:16]) == (100, "0006f5082e91929a")


# The digest of an order: any change is seen, and how an update is split is not


LENGTHS = np.array([5, 1, 3, 2, 7, 4, 4, 6, 2, 3, 5])


def plan(n: int, seed: int = 1, start: int = 0) -> list[Update]:
    return list(islice(Plan(LENGTHS, LENGTHS, budget=11, data_hash="x", seed=seed).updates(start), n))


def read(updates: list[Update], n_shares: int) -> str:
    """As processes read that come in any order, an empty share standing for sentence -1."""
    words = replay_check.NOTHING
    for update in reversed(updates):
        for part in reversed(range(n_shares)):
            sentences = share(update.sentences, part, n_shares)
            words = replay_check.add(
                words, replay_check.of_share(update.step, part, sentences if len(sentences) else np.array([-1]))
            )
    return replay_check.order_digest(words)


@pytest.mark.parametrize("n_shares", [1, 2, 7])
def test_what_is_read_as_planned_has_the_digest_of_the_plan(n_shares: int) -> None:
    assert read(plan(13), n_shares) == replay_check.planned_order(plan(13), n_shares)


def test_any_other_order_has_another_digest() -> None:
    wrong = {
        "off by one after a resume": [*plan(6), *plan(7, start=7)],
        "from the start again": [*plan(6), *plan(7)],
        "an update twice": [*plan(6), *plan(8, start=5)],
        "one too few": plan(12),
        "another seed": plan(13, seed=2),
    }
    order = replay_check.planned_order(plan(13), 2)
    assert [name for name, found in wrong.items() if read(found, 2) == order] == []
    ids = plan(1)[0].sentences
    there, back = (replay_check.order_digest(replay_check.of_share(0, 0, one)) for one in (ids, ids[::-1]))
    assert there != back, "sentences that change places within an update"
