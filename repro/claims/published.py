"""The verdicts that were published before seeds were taken for blocks, with the runs that they are of.

They were judged at the looks and by the rules of their time, under lists of claims that were noted before the runs; the
analysis of today was chosen when they were known, so by it the same runs are exploration. `verdicts.json` in the folder
of a scale was written once, by the last commit that had those rules, and is edited by nobody.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from repro.claims.decisions import FIRST_SEED, Outcome
from repro.results.record import Record

FILE = "verdicts.json"


class OneVerdict(NamedTuple):
    """Of one claim."""

    verdict: Outcome
    reason: str


@dataclass(frozen=True, kw_only=True)
class Published:
    """Those of one scale."""

    verdicts: Mapping[str, OneVerdict] = field(default_factory=dict)  # by claim; none where they are void
    runs: frozenset[str] = frozenset()  # the ids of those that they are of
    void: str = ""  # in words, why they hold no longer


NOTHING_PUBLISHED = Published()


def read_published(folder: Path, records: Iterable[Record]) -> Published:
    """Those in the folder of a scale; void where a run that they are of is not among these records.

    The base had seeds that are judged anew: one whose place a fresh run has taken is not missed. A ValueError
    names the file, what was found and what to do.
    """
    if not (file := folder / FILE).exists():
        return NOTHING_PUBLISHED
    records = list(records)
    there = {record.run for record in records}
    taken = {(f"{one.table}/{one.row}", str(one.seed)) for one in records if one.seed >= FIRST_SEED}
    try:
        content = json.loads(file.read_bytes())
        for row, seeds in content["runs"].items():
            for seed, run in seeds.items():
                if run not in there and (row, seed) not in taken:
                    return Published(
                        void=f"The verdicts in {FILE} are void: run {run} is missing (seed {seed} of {row})"
                    )
        verdicts = {claim: OneVerdict(one["verdict"], one["reason"]) for claim, one in content["verdicts"].items()}
        runs = frozenset(run for seeds in content["runs"].values() for run in seeds.values())
        return Published(verdicts=verdicts, runs=runs)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(
            f"{file}: expected verdicts and the runs they are of, got {error!r}. Restore it from git."
        ) from error
