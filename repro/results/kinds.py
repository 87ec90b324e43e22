"""Which records may stand in one cell: a mean is over the seeds of one experiment, each of them once.

Runs are repetitions only if they share the row, the text, the deciding code, the precision and the number of threads.
`equal_code.json` lists digests of code in classes that count as equal: runs under two of them gave the same numbers to
the last digit. `shown` names such runs; an entry is added by hand.
"""

import functools
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from repro.decoding.search import PAPER_SEARCH
from repro.results.labels import seeds_option
from repro.results.record import Record

EQUAL_CODE = Path(__file__).with_name("equal_code.json")
OF_CODE = ("code", "task_code")  # the fields that are digests of code, among those that decide a run
SETTINGS = ("batch_tokens", "fill", "precision", "engine", *PAPER_SEARCH.settings, "offset")
SHARES = ("devices", "accumulate")  # only the product matters: each part has its own dropout, in parallel or in turn


@functools.cache
def listed_classes() -> list[list[str]]:
    """The classes of digests that count as equal, the oldest of each class first."""
    classes: list[list[str]] = json.loads(EQUAL_CODE.read_bytes())["classes"]
    return classes


def equal_codes(fingerprint: str) -> list[str]:
    """All digests that count as equal to this one, itself first."""
    found = next((one for one in listed_classes() if fingerprint in one), [])
    return [fingerprint, *(name for name in found if name != fingerprint)]


def code_name(fingerprint: str) -> str:
    """The representative of this digest's class: the first that was listed."""
    return next((one[0] for one in listed_classes() if fingerprint in one), fingerprint)


def shared_code(record: Record) -> str:
    """The name of the code that decides a run, without the code of its own system."""
    return code_name(record.stamp.get("shared_fingerprint", record.stamp["fingerprint"]))


def kind(record: Record) -> dict[str, Any]:
    """What the seeds of a cell must have in common, by the names that readers see."""
    return {
        "deciding code": shared_code(record),
        "code of its system": code_name(record.stamp.get("system_fingerprint", "")),
        "text": record.corpus["sha256"],
        "tokenizer": record.tokenizer["sha256"],
        "threads": record.stamp["n_threads"],
        **{name.replace("_", " "): record.settings.get(name) for name in SETTINGS},
        "parts of an update": math.prod(record.settings.get(name, 1) for name in SHARES),
        "system": record.system,
        **record.hyper,
    }


def differences(one: Record, other: Record) -> list[str]:
    """The names of the differences that keep two records out of one cell."""
    others = kind(other)
    return [name for name, value in kind(one).items() if others.get(name) != value]


def by_cell(records: Iterable[Record]) -> Mapping[tuple[str, str], list[Record]]:
    """The records of each (table, row)."""
    cells: dict[tuple[str, str], list[Record]] = {}
    for record in records:
        cells.setdefault((record.table, record.row), []).append(record)
    return cells


def mixtures(records: Iterable[Record]) -> Iterator[str]:
    """A sentence for each cell that would hold a seed twice, or seeds that are not repetitions of one experiment."""
    for (table, row), of in by_cell(records).items():
        seeds: dict[int, Record] = {}
        for record in of:
            if other := seeds.get(record.seed):
                yield f"{table}, row {row!r}: runs {other.run} and {record.run} have seed {record.seed}. Delete one."
            elif changed := differences(of[0], record):
                yield (
                    f"{table}, row {row!r}: seeds {of[0].seed} and {record.seed} differ in {', '.join(changed)}, so "
                    "they have no mean. Delete the older records and run those seeds again."
                )
            seeds.setdefault(record.seed, record)


def newest(records: Sequence[Record]) -> tuple[list[Record], list[Record]]:
    """The records that match the newest of their cell, and those that do not: with other code, threads or text."""
    kept: list[Record] = []
    left: list[Record] = []
    for of in by_cell(records).values():
        last = max(of, key=lambda record: record.stamp["started"])
        for record in of:
            (left if differences(last, record) else kept).append(record)
    return kept, left


def left_out(records: Iterable[Record]) -> list[str]:
    """A sentence for each cell from which seeds are left out."""
    return [
        f"Left out of {row}: seed {', '.join(str(record.seed) for record in of)}, made before with other code or "
        f"settings. The same command with {seeds_option(record.seed for record in of)} makes them again."
        for (_, row), of in by_cell(records).items()
    ]
