"""Sides of a text in memory."""

from collections.abc import Iterable, Sequence

import numpy as np

from repro.data.shards import Encoded
from repro.model.special_tokens import EOS


def encoded(sentences: Iterable[Sequence[int]]) -> Encoded:
    """These sentences, each with its end behind it, stored as text on disk is: 16 bits a token."""
    ended = [np.array([*sentence, EOS], np.uint16) for sentence in sentences]
    return Encoded(np.concatenate([np.empty(0, np.uint16), *ended]), np.cumsum([0, *map(len, ended)]))


def numbered(lengths: Iterable[int]) -> Encoded:
    """Sentence i is made of its own number, plus 2."""
    return encoded([i + 2] * (length - 1) for i, length in enumerate(lengths))
