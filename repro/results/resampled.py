"""What scores would have been on other sentences of the same kind: sacreBLEU's bootstrap and its intervals.

The counts behind a score are summed over the sentences of a draw, and the sums are scored; the mean of sentence scores
would be another number. All runs see the same draws, so differences between runs are paired. The method is that of
Koehn (2004), with sacreBLEU's draws: 1,000 resamples, seed 12345.
"""

import functools
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

RESAMPLES, SEED = 1_000, 12_345  # sacreBLEU's
OUTSIDE = 40  # a 95 % interval leaves out one fortieth of the resamples at each end, as sacreBLEU counts them
Floats = NDArray[np.float64]


class Interval(NamedTuple):
    """A score, or a difference of two, on all sentences, with its 95 % interval over resampled sentences."""

    value: float
    low: float
    high: float
    n_sentences: int


@functools.lru_cache(maxsize=4)
def draws(n_sentences: int) -> Floats:
    """How often each sentence is drawn in each resample, [R, S], as sacreBLEU draws them."""
    chosen = np.random.default_rng(SEED).choice(n_sentences, size=(RESAMPLES, n_sentences), replace=True)
    return np.stack([np.bincount(one, minlength=n_sentences) for one in chosen]).astype(np.float64)


def resampled(summands: Floats, score: Callable[[Floats], Floats]) -> Floats:
    """The score of all sentences, then of each resample of them, [1 + R].

    `summands` [S, C] are the counts that the score sums; `score` maps sums [..., C] to scores [...].
    """
    return score(np.concatenate([summands.sum(axis=0, keepdims=True), draws(len(summands)) @ summands]))


def over_draws(row: Sequence[Floats], n_sentences: int, less: Sequence[Floats]) -> Interval:
    """The mean over the runs of a row, minus that over the runs of another row, `less`, if it is not empty.

    It is computed draw by draw. The runs are as `resampled` gives them; the row has at least one. With the same seeds
    in both rows this is the mean of the seeds' paired differences.
    """
    of_row = np.mean(row, axis=0)
    value, *drawn = (of_row - np.mean(less, axis=0) if less else of_row).tolist()
    outside = len(drawn) // OUTSIDE
    ordered = sorted(drawn)
    return Interval(value, ordered[outside], ordered[-outside - 1], n_sentences)
