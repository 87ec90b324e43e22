"""The weights of heads, prepared for viewing: by word, by entropy, one byte each. Paper: figures 3 to 5.

Q queries    K keys
"""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from repro.model.special_tokens import EOS, SPECIAL

if TYPE_CHECKING:
    from repro.data.tokenizer import Tokenizer


def rounded_weights(weights: NDArray[np.float64]) -> NDArray[np.uint8]:
    """A byte for each weight in [0, 1]: off by 1/510 at most."""
    return np.asarray((255 * weights).round().clip(0, 255), np.uint8)


def entropies(weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """The entropy of each row of weights, [..., Q, K] -> [..., Q], in nats: 0 for one key, ln K for equal weights."""
    return np.asarray(-(weights * np.log(np.where(weights > 0, weights, 1.0))).sum(-1))


# Words


def split_words(sentence: str) -> list[tuple[str, int]]:
    """Words and marks, each with the place where it ends: [("Law", 3), (",", 4)] for "Law,"."""
    return [(found[0], found.end()) for found in re.finditer(r"\w+|[^\w\s]", sentence)]


def by_words(ids: Sequence[int], tokenizer: "Tokenizer") -> dict[str, list[Any]]:
    """The tokens as text, the words that they make up, and for each token the number of its word.

    If a token spans several words, as a model may write, they count as one word.
    """
    text = [tokenizer.decode(ids[:n]) for n in range(len(ids) + 1)]
    ends = [end for _, end in split_words(text[-1])] or [len(text[-1])]
    tokens: list[str] = []
    marks: list[int] = []
    for n, id in enumerate(ids, 1):
        ended = id == EOS
        tokens.append(SPECIAL[EOS] if ended else text[n][len(text[n - 1]) :])
        word = len(ends) if ended else min(int(np.searchsorted(ends, len(text[n].rstrip()))), len(ends) - 1)
        marks.append(max(word, marks[-1] if marks else 0))
    numbers = {mark: n for n, mark in enumerate(dict.fromkeys(marks))}
    of = [numbers[mark] for mark in marks]
    words = [
        "".join(token for token, n in zip(tokens, of, strict=True) if n == word).strip() for word in numbers.values()
    ]
    return {"tokens": tokens, "words": words, "of": of}
