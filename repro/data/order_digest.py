"""The order in which sentences were read, as one digest that does not depend on how updates are split over processes.

Every micro-batch of an update adds a SHA-256 of its number and its sentences, word by word. Unlike the state of a
hash, such a sum can be kept in a checkpoint and added up over processes. Equal digests mean that each update read the
same sentences.
"""

import hashlib
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from repro.data.batching import Ints, Update, share

Words = NDArray[np.int64]  # [8], each below 2^32

NOTHING: Words = np.zeros(8, np.int64)


def of_share(step: int, part: int, sentences: Ints) -> Words:
    """What micro-batch number `part` of update `step` adds; an empty one counts as sentence -1."""
    ids = np.asarray(sentences, "<i8") if len(sentences) else np.array([-1], "<i8")
    order_digest = hashlib.sha256(f"{step}/{part}/".encode() + ids.tobytes()).digest()
    return np.frombuffer(order_digest, "<u4").astype(np.int64)


def add(one: Words, other: Words) -> Words:
    """The sum, word by word."""
    return (one + other) % 2**32


def order_digest(words: Words) -> str:
    """The digest as 64 hexadecimal digits."""
    return np.asarray(words, "<u4").tobytes().hex()


def planned(updates: Iterable[Update], n_shares: int) -> str:
    """The digest that the plan expects for these updates, each cut into `n_shares` micro-batches."""
    words = NOTHING
    for update in updates:
        for part in range(n_shares):
            words = add(words, of_share(update.step, part, share(update.sentences, part, n_shares)))
    return order_digest(words)
