"""Versions of the code that gave the same numbers to the last digit, so that older runs count as runs of today's code.

`equal_code.json` lists fingerprints, and digests of systems and of tasks, in classes that count as equal. Their records
may stand in one cell, and a run finished under one is finished under the others. `shown` lists the runs, one of each
kind of row, by which the newest code was compared with the one before (`benchmarks/equal_code.py`).
"""

import functools
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

LIST = Path(__file__).with_name("equal_code.json")
OF_CODE = ("code", "task_code")  # the fields that are digests of code, among those that decide a run


@functools.cache
def listed_classes() -> list[list[str]]:
    """The classes of digests that count as equal, the oldest of each class first."""
    classes: list[list[str]] = json.loads(LIST.read_bytes())["classes"]
    return classes


def equal_codes(fingerprint: str) -> list[str]:
    """All digests that count as equal to this one, itself first."""
    found = next((one for one in listed_classes() if fingerprint in one), [])
    return [fingerprint, *(name for name in found if name != fingerprint)]


def code_name(fingerprint: str) -> str:
    """The representative of this digest's class: the first that was listed."""
    return next((one[0] for one in listed_classes() if fingerprint in one), fingerprint)


def is_equal_code(there: Mapping[str, Any], decides: Mapping[str, Any]) -> bool:
    """Whether two runs, by what decides them, are of code that counts as equal."""
    return all(there.get(name) in equal_codes(decides[name]) for name in OF_CODE if name in decides)
