"""Which runs may settle a claim, and which are exploration, each with the reason. Paper: none of it.

A verdict has a known chance of error only where the claim was there before the run, the number of seeds was declared
before the result, and the rows differ in what they are said to differ in. Runs of which this cannot be said stay in the
tables, and settle nothing. The rules in words: docs/claims.md.
"""

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from repro.claims.claim import B0
from repro.claims.decisions import BASE_SEEDS, FIRST_SEED, Look
from repro.model.config import written
from repro.results.frame import NO_ROWS, Rows
from repro.results.kinds import by_cell, differences, newest
from repro.results.record import Record
from repro.results.task import SPLITS, signature


class Apart(NamedTuple):
    """A run that settles nothing."""

    record: Record
    why: str  # what holds of other such runs as well


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """The runs of one scale that may settle a claim, and the others."""

    records: Sequence[Record]
    apart: Sequence[Apart]

    def at(self, look: Look) -> dict[str, list[Record]]:
        """By "table/row" the runs that a look takes, in the order of their seeds; a row that lacks one is not there."""
        rows = {f"{table}/{row}": sorted(of, key=_seed) for (table, row), of in by_cell(self.records).items()}
        return {row: of[: needed(row, look)] for row, of in rows.items() if len(of) >= needed(row, look)}

    def count(self, row: str) -> int:
        """The runs of "table/row"."""
        return sum(f"{record.table}/{record.row}" == row for record in self.records)


def needed(row: str, look: Look) -> int:
    """The seeds of "table/row" that a look takes."""
    return BASE_SEEDS if row == B0 else look.seeds


def gather(records: Iterable[Record], lists: Container[str], rows: Rows = NO_ROWS) -> Evidence:
    """Tell evidence from exploration: runs that began under one of these lists of claims, by their digests.

    Whether that list held a claim is asked claim by claim. `rows` are those of the experiments, by which
    a run has the hyper-parameters that its row makes.
    """
    everything = [*records]
    copies = _copies(everything)
    looked_at = ((record, _set_apart(record, lists, rows) or copies.get(id(record))) for record in everything)
    apart = [Apart(record, why) for record, why in looked_at if why]
    left = {id(one.record) for one in apart}
    kept, others = newest([record for record in everything if id(record) not in left])
    apart += [Apart(record, _older(record, kept)) for record in others]
    judged: list[Record] = []
    for of in by_cell(kept).values():
        unbroken = _unbroken(of)
        judged += unbroken
        after_gap = f"after a gap in the seeds, which count from {FIRST_SEED} on"
        apart += [Apart(record, after_gap) for record in of[len(unbroken) :]]
    return Evidence(records=judged, apart=apart)


def _seed(record: Record) -> int:
    return record.seed


def _set_apart(record: Record, lists: Container[str], rows: Rows) -> str | None:
    """Why one run settles nothing, whatever the others are; None if it may."""
    if record.stamp["dirty"]:
        return "of uncommitted code"
    if record.claims not in lists:
        return "begun under a list of claims that is not kept" if record.claims else "begun before such lists were kept"
    if record.seed < FIRST_SEED:
        return f"of seeds below {FIRST_SEED}, whose runs were looked at when scales and claims were chosen"
    if record.determinism is None or record.determinism["badge"] is None:
        return "not shown to have read what was planned"
    finished = record.status == "finished"
    if finished and record.cost["steps"] != record.hyper["steps"]:
        return "of a different number of updates than planned"
    if finished and not record.determinism["weights"]:
        return "finished without a digest of their weights, by which copies are known"
    listed = rows.get((record.table, record.row))
    if rows and listed is None:
        return "of rows that their experiment does not have"
    if listed and listed.here is not None and dict(listed.here) != written(record.hyper):
        return "with hyper-parameters that differ from their row's"
    return None


def _older(record: Record, kept: Iterable[Record]) -> str:
    """Of a cell's seeds that are no repetitions of its newest run: what they differ in."""
    other = next(one for one in kept if (one.table, one.row) == (record.table, record.row))
    return f"unlike the newest run of their row in {', '.join(differences(other, record))}"


def _unbroken(of: list[Record]) -> list[Record]:
    """The runs of a row from the first declared seed to the last before a gap; puts the runs in order."""
    of.sort(key=_seed)
    return [record for place, record in enumerate(of) if record.seed == FIRST_SEED + place]


def _copies(records: Iterable[Record]) -> dict[int, str]:
    """By `id` the records that share a run or its weights with another, and with which: one of them is a copy.

    Two tables may show one run, of one seed and one setting.
    """
    shared: dict[tuple[str, str], list[Record]] = {}
    for record in records:
        weights = record.determinism["weights"] if record.determinism else None
        for name, mark in (("run", record.run), ("weights", weights)):
            if mark:
                shared.setdefault((name, mark), []).append(record)
    found: dict[int, str] = {}
    for (name, mark), of in shared.items():
        if any((one.seed, one.hyper) != (of[0].seed, of[0].hyper) for one in of):
            found |= {id(one): f"with the same {name} {mark[:16]}, so copies of one run" for one in of}
    return found


def why_apart(apart: Sequence[Apart]) -> list[str]:
    """A line for each reason: how many runs, and of which rows."""
    found: dict[str, list[Record]] = {}
    for record, why in apart:
        found.setdefault(why, []).append(record)
    return [f"{len(of)} {why}: {_rows(of)}" for why, of in found.items()]


def _rows(records: Iterable[Record]) -> str:
    """base (seeds 1 to 3), h=1 (seed 1); from six rows on their number."""
    seeds: dict[str, list[int]] = {}
    for record in records:
        seeds.setdefault(record.row, []).append(record.seed)
    if len(seeds) > 5:
        return f"{len(seeds)} rows, {_span(sorted({seed for of in seeds.values() for seed in of}))}"
    return ", ".join(f"{row} ({_span(sorted(of))})" for row, of in seeds.items())


def _span(seeds: Sequence[int]) -> str:
    """seed 1; seeds 1 to 3; seeds 1, 3"""
    if len(seeds) == 1:
        return f"seed {seeds[0]}"
    if [*seeds] == [*range(seeds[0], seeds[-1] + 1)]:
        return f"seeds {seeds[0]} to {seeds[-1]}"
    return f"seeds {', '.join(map(str, seeds))}"


# What rows have in common


def unlike(rows: Mapping[str, Sequence[Record]]) -> list[str]:
    """The names of what the rows of one claim differ in beside what a row says: hyper-parameters, system, task.

    Where their tasks differ, so does their text: Table 4 holds a little text against much.
    """
    first, *others = (of[0] for of in rows.values())
    names = dict.fromkeys(name for other in others for name in differences(first, other))
    said = {*first.hyper, "system", "code of its system"}
    if any(other.about["name"] != first.about["name"] for other in others):
        said |= {"text", "tokenizer"}
    beside = [name for name in names if name not in said]
    runs = [record for of in rows.values() for record in of]  # one seed scored otherwise is enough to spoil a mean
    alike: dict[str, set[Any]] = {
        "language pair": {record.pair for record in runs},
        **{f"sentences of {split}": {record.n_sentences(split) for record in runs} for split in SPLITS},
        "scorer": {_scorers(record) for record in runs if record.status == "finished"},
    }
    return [*beside, *(name for name, found in alike.items() if len(found) > 1)]


def _scorers(record: Record) -> tuple[str | None, ...]:
    """Of dev and of test, by which Table 2 and F1 are judged."""
    return tuple(signature(record.scores[split], name) for split in SPLITS for name in record.about["scores"])
