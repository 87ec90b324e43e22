"""Codes that make the same numbers to the last digit: a committed list, each entry with a run that shows it.

A change of the code that keeps every number still changes the fingerprint. `equal_code.json` says which fingerprints
count as one, so that a refactoring does not make the evidence old: their records may stand in one cell, and a run that
was finished under one is finished under the others. `benchmarks/equal_code.py` writes an entry after it has run the
same seed under both codes; `tests/results/test_equal_code.py` runs it again.
"""

import functools
import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NotRequired, TypedDict

LIST = Path(__file__).with_name("equal_code.json")


class Code(TypedDict):
    """A fingerprint and a commit that has it."""

    fingerprint: str
    commit: str


class Evidence(TypedDict):
    """The run that was made under both codes."""

    scale: str
    table: str
    row: str
    seed: int


class EqualCode(TypedDict):
    """Two codes found equal: same scores, curves, order and weights. The older stands first."""

    codes: list[Code]
    run: Evidence
    systems: NotRequired[list[str]]  # of a row with a system of its own: the fingerprints of what is its system's alone


@functools.cache
def listed_pairs() -> tuple[EqualCode, ...]:
    """The committed entries, the oldest first."""
    entries: list[EqualCode] = json.loads(LIST.read_bytes())
    return tuple(entries)


def classes(entries: Iterable[EqualCode]) -> list[list[str]]:
    """The fingerprints that count as one, each class in the order of the list: equality goes from entry to entry."""
    found: list[list[str]] = []
    for pair in _pairs(entries):
        touched = [one for one in found if {*one} & {*pair}]
        joined = list(dict.fromkeys([*(name for one in touched for name in one), *pair]))
        place = found.index(touched[0]) if touched else len(found)
        found = [one for one in found if one not in touched]
        found.insert(place, joined)
    return found


@functools.cache
def listed_classes() -> list[list[str]]:
    """Those of the committed entries."""
    return classes(listed_pairs())


def _pairs(entries: Iterable[EqualCode]) -> Iterator[list[str]]:
    for entry in entries:
        yield [code["fingerprint"] for code in entry["codes"]]
        if "systems" in entry:
            yield entry["systems"]


def equal_codes(fingerprint: str, entries: Sequence[EqualCode] | None = None) -> list[str]:
    """All fingerprints that count as this one, itself first."""
    for one in listed_classes() if entries is None else classes(entries):
        if fingerprint in one:
            return [fingerprint, *(name for name in one if name != fingerprint)]
    return [fingerprint]


def code_name(fingerprint: str, entries: Sequence[EqualCode] | None = None) -> str:
    """One fingerprint for all that count as this one: the first that was listed."""
    for one in listed_classes() if entries is None else classes(entries):
        if fingerprint in one:
            return one[0]
    return fingerprint
