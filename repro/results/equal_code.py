"""Codes that made the same numbers to the last digit: what was published or finished before the wall counts as today's.

`equal_code.json` lists fingerprints, and digests of systems and of tasks, in classes that count as one: their records
may stand in one cell, and a run that was finished under one is finished under the others. `shown` has the runs, one of
each kind of row, that the newest code was held against the one before by (`benchmarks/equal_code.py`).
"""

import functools
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

LIST = Path(__file__).with_name("equal_code.json")
OF_CODE = ("code", "task_code")  # which fields of what decides a run are digests of code


@functools.cache
def listed_classes() -> list[list[str]]:
    """The digests that count as one, the oldest of each class first."""
    classes: list[list[str]] = json.loads(LIST.read_bytes())["classes"]
    return classes


def equal_codes(fingerprint: str) -> list[str]:
    """All digests that count as this one, itself first."""
    found = next((one for one in listed_classes() if fingerprint in one), [])
    return [fingerprint, *(name for name in found if name != fingerprint)]


def code_name(fingerprint: str) -> str:
    """One digest for all that count as this one: the first that was listed."""
    return next((one[0] for one in listed_classes() if fingerprint in one), fingerprint)


def is_equal_code(there: Mapping[str, Any], decides: Mapping[str, Any]) -> bool:
    """Whether two runs, by what decides them, are of code that counts as one."""
    return all(there.get(name) in equal_codes(decides[name]) for name in OF_CODE if name in decides)
