"""What simulations of whole pages found of the error rate that a page of verdicts promises.

`simulated.json` is written by `benchmarks/verdicts.py`, from its record.
"""

import functools
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from repro.claims.lists import catalogue_digest

FILE = Path(__file__).with_name("simulated.json")


class Worst(NamedTuple):
    """The supposed truth under which most pages of a scale held a wrong verdict, drawn anew on other pages."""

    share: float  # of these
    pages: int
    truth: str


def worst(scale: str) -> Worst | None:
    """Of "captions-bf16" the first part counts. None where it was not simulated, or not with the claims of today."""
    found = _simulated()
    of = found["worst"].get(scale.split("-")[0])
    return None if of is None or found["claims"] != catalogue_digest() else Worst(**of)


@functools.cache
def _simulated() -> Mapping[str, Any]:
    read: Mapping[str, Any] = json.loads(FILE.read_bytes())
    return read
