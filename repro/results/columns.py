"""Whole numbers, one a sentence, as a line of text: what the files beside a record are made of."""

from typing import Any

import numpy as np
from numpy.typing import NDArray


def column_of(numbers: NDArray[np.integer[Any]]) -> str:
    """[S] as text; packed, it is as small as in binary, and a person can read it."""
    return " ".join(map(str, numbers.tolist()))


def numbers_in(column: str) -> NDArray[np.int64]:
    """[S] as they were: a thousand files are read for a page, so NumPy takes them apart and no loop."""
    return np.fromstring(column, np.int64, sep=" ")
