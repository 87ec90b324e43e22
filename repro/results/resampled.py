"""What scores would have been on other sentences of the kind: sacreBLEU's draws, and the intervals that they give.

Whatever a score is made of is summed over the sentences of a draw, and the sums are scored: a mean of scores of
sentences is another number. All runs see the same draws, so a difference between two is paired. Koehn (2004), as
sacreBLEU draws: 1,000 resamples, seed 12345.
"""

import functools
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

RESAMPLES, SEED = 1_000, 12_345  # sacreBLEU's
OUTSIDE = 40  # a 95 % interval leaves out one part in so many at each end, as sacreBLEU counts them
Floats = NDArray[np.float64]


class Interval(NamedTuple):
    """A score or a difference of two, over all sentences, and the 95 % interval over resampled ones."""

    value: float
    low: float
    high: float
    n_sentences: int


@functools.lru_cache(maxsize=4)
def draws(n_sentences: int) -> Floats:
    """[R, S] how often each sentence was drawn in each resample, as sacreBLEU draws them."""
    chosen = np.random.default_rng(SEED).choice(n_sentences, size=(RESAMPLES, n_sentences), replace=True)
    return np.stack([np.bincount(one, minlength=n_sentences) for one in chosen]).astype(np.float64)


def resampled(summands: Floats, score: Callable[[Floats], Floats]) -> Floats:
    """[1 + R] the score of all sentences, then of each resample of them.

    `summands` [S, C] is what the score sums; `score` makes sums [..., C] a number each [...].
    """
    return score(np.concatenate([summands.sum(axis=0, keepdims=True), draws(len(summands)) @ summands]))


def over_draws(row: Sequence[Floats], n_sentences: int, less: Sequence[Floats]) -> Interval:
    """The mean over the runs of a row, minus that over `less`, the runs of another row, if there are any, draw by draw.

    The runs are as `resampled` gives them, of at least one each; with the same seeds in both rows this is the mean of
    the seeds' paired differences.
    """
    of_row = np.mean(row, axis=0)
    value, *drawn = (of_row - np.mean(less, axis=0) if less else of_row).tolist()
    outside = len(drawn) // OUTSIDE
    ordered = sorted(drawn)
    return Interval(value, ordered[outside], ordered[-outside - 1], n_sentences)
