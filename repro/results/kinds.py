"""Which records may stand in one cell: a mean is over seeds of one thing, each of them once.

Same row, same text, same deciding code or one that was shown to be equal (`equal_code.py`), same precision and number
of threads: else the seeds are not repetitions.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from repro.decoding.search import PAPER_SEARCH
from repro.results.equal_code import code_name
from repro.results.labels import seeds_option
from repro.results.record import Record

SETTINGS = ("batch_tokens", "fill", "precision", "engine", *PAPER_SEARCH.settings, "offset")
SHARES = ("devices", "accumulate")  # each part has its own dropout; whether processes or turns take them is no matter


def kind(record: Record) -> dict[str, Any]:
    """What the seeds of a cell have in common, by the names a reader is told."""
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


def shared_code(record: Record) -> str:
    """The name of the code that decides a run, but for what is its own system's."""
    return code_name(record.stamp.get("shared_fingerprint", record.stamp["fingerprint"]))


def differences(one: Record, other: Record) -> list[str]:
    """The names of what keeps two records out of one cell."""
    others = kind(other)
    return [name for name, value in kind(one).items() if others.get(name) != value]


def by_cell(records: Iterable[Record]) -> Mapping[tuple[str, str], list[Record]]:
    """The records of each (table, row)."""
    cells: dict[tuple[str, str], list[Record]] = {}
    for record in records:
        cells.setdefault((record.table, record.row), []).append(record)
    return cells


def mixtures(records: Iterable[Record]) -> Iterator[str]:
    """A sentence for each cell that would hold a seed twice, or seeds that are no repetitions of one thing."""
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
    """Of each cell the records that go with its newest, and those that do not: of other code, threads, text."""
    kept: list[Record] = []
    left: list[Record] = []
    for of in by_cell(records).values():
        last = max(of, key=lambda record: record.stamp["started"])
        for record in of:
            (left if differences(last, record) else kept).append(record)
    return kept, left


def left_out(records: Iterable[Record]) -> list[str]:
    """A sentence for each cell of which some seeds are left out."""
    return [
        f"Left out of {row}: seed {', '.join(str(record.seed) for record in of)}, made before with other code or "
        f"settings. The same command with {seeds_option(record.seed for record in of)} makes them again."
        for (_, row), of in by_cell(records).items()
    ]
