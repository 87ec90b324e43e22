"""The order in which sentences were read, as one digest: the same however an update is split among processes.

Every micro-batch of an update adds a SHA-256 of its number and its sentences, word by word: sums can be kept in a
checkpoint and added up over processes, where the state of a hash cannot. Equal digests mean that each update read what
it should.
"""

import hashlib
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from repro.data.batching import Ints, Update, share

Words = NDArray[np.int64]  # [8] below 2^32

NOTHING: Words = np.zeros(8, np.int64)


def of_share(step: int, part: int, sentences: Ints) -> Words:
    """What micro-batch number `part` of update `step` adds; an empty one reads sentence -1."""
    ids = np.asarray(sentences, "<i8") if len(sentences) else np.array([-1], "<i8")
    order_digest = hashlib.sha256(f"{step}/{part}/".encode() + ids.tobytes()).digest()
    return np.frombuffer(order_digest, "<u4").astype(np.int64)


def add(one: Words, other: Words) -> Words:
    """The sum, word by word."""
    return (one + other) % 2**32


def order_digest(words: Words) -> str:
    """As 64 hexadecimal digits."""
    return np.asarray(words, "<u4").tobytes().hex()


def planned(updates: Iterable[Update], n_shares: int) -> str:
    """The digest of these updates, each cut into `n_shares`, as the plan has them."""
    words = NOTHING
    for update in updates:
        for part in range(n_shares):
            words = add(words, of_share(update.step, part, share(update.sentences, part, n_shares)))
    return order_digest(words)
