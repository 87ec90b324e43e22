"""Which runs may settle a claim and which are exploration, with the reasons. Paper: none of it.

A verdict has a known chance of error only if the claim was written before the run, the number of seeds was declared
before the result, and the rows differ only in what they are said to differ in. Other runs stay in the tables but settle
nothing. The rules in words: docs/claims.md.
"""

import functools
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from repro.claims.catalogue import lists
from repro.claims.decisions import FIRST_SEED, SEEDS, Outcome
from repro.model.config import written
from repro.results.comparable import by_cell, differences, newest, seeds_of_rows
from repro.results.frame import NO_ROWS, Rows
from repro.results.record import SPLITS, PaperNumbers, Record, signature

FILE = "verdicts.json"  # the published verdicts of a scale, in its folder


class Apart(NamedTuple):
    """A run that settles nothing."""

    record: Record
    why: str  # worded so that it fits several such runs


@dataclass(frozen=True, kw_only=True)
class Published:
    """The verdicts of one scale that were published before the analysis treated seeds as blocks."""

    verdicts: Mapping[str, tuple[Outcome, str]] = field(default_factory=dict)  # by claim, with the reason; or void
    runs: frozenset[str] = frozenset()  # the ids of the runs that they rest on
    void: str = ""  # why they no longer hold, in words


NOTHING_PUBLISHED = Published()


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """The runs of one scale: those that may settle a claim, those behind published verdicts, and the others."""

    fresh: Sequence[Record] = ()  # begun under a kept list of claims, from the first declared seed on
    published: Sequence[Record] = ()  # the runs behind published verdicts
    apart: Sequence[Apart] = ()
    rows: Rows = field(default_factory=dict)  # of the experiments, whether they were run or not
    before: Published = NOTHING_PUBLISHED  # the published verdicts themselves

    @property
    def records(self) -> Sequence[Record]:
        """All runs that count."""
        return [*self.published, *self.fresh]

    @property
    def everything(self) -> Sequence[Record]:
        """All runs there are."""
        return [*self.records, *(record for record, _ in self.apart)]

    @property
    def is_exploration(self) -> bool:
        """Whether no run counts, so that there is no page of claims or of statements."""
        return not self.records and not self.before.void

    @functools.cached_property
    def printed(self) -> dict[str, PaperNumbers]:
        """The paper's numbers by "table/row", whether the row was run or not."""
        listed = {f"{table}/{row}": one.paper for (table, row), one in self.rows.items()}
        return listed | {f"{one.table}/{one.row}": one.paper for one in self.everything}

    @functools.cached_property
    def taken(self) -> dict[str, list[Record]]:
        """The fresh runs that are judged, by "table/row" and in the order of their seeds; only rows with enough."""
        return {row: of[:SEEDS] for row, of in _by_row(self.fresh).items() if len(of) >= SEEDS}

    @functools.cached_property
    def judged_before(self) -> dict[str, list[Record]]:
        """The runs behind published verdicts, by "table/row"."""
        return _by_row(self.published)

    @functools.cached_property
    def clean(self) -> dict[str, list[Record]]:
        """All runs of committed code that may be compared, by "table/row"."""
        return _by_row(newest([record for record in self.everything if not record.stamp["dirty"]])[0])

    @functools.cached_property
    def explored(self) -> dict[str, list[Record]]:
        """The runs for exploration, by "table/row": the published ones, and for other rows those of committed code."""
        return self.clean | self.judged_before


def _by_row(records: Iterable[Record]) -> dict[str, list[Record]]:
    return {
        f"{table}/{row}": sorted(of, key=lambda record: record.seed) for (table, row), of in by_cell(records).items()
    }


def evidence_of(records: Iterable[Record], rows: Rows = NO_ROWS, before: Published = NOTHING_PUBLISHED) -> Evidence:
    """Separate evidence from exploration. Evidence must have begun under a list of claims that is kept.

    Whether that list held a particular claim is checked later, claim by claim. `rows` are those of the experiments; a
    run must have its row's hyper-parameters.
    """
    everything = [*records]
    known = [one for one in everything if one.run in before.runs and one.claims not in lists()]
    others = [one for one in everything if one.run not in before.runs or one.claims in lists()]
    shared = _misplaced(everything) | _copies(others)
    why = {id(one): _set_apart(one, rows) or shared.get(id(one), "") for one in others}
    apart = [Apart(one, why[id(one)]) for one in others if why[id(one)]]
    kept, older = newest([one for one in others if not why[id(one)]])
    cells = by_cell(kept)
    for record in older:
        unlike_newest = ", ".join(differences(cells[record.table, record.row][0], record))
        apart.append(Apart(record, f"unlike the newest run of their row in {unlike_newest}"))
    fresh: list[Record] = []
    for of in cells.values():
        of.sort(key=lambda record: record.seed)  # kept: from the first declared seed to the last one before a gap
        unbroken = [record for place, record in enumerate(of) if record.seed == FIRST_SEED + place]
        fresh += unbroken
        after_gap = f"after a gap in the seeds, which count from {FIRST_SEED} on"
        apart += [Apart(record, after_gap) for record in of[len(unbroken) :]]
    return Evidence(fresh=fresh, published=known, apart=apart, rows=rows, before=before)


def _set_apart(record: Record, rows: Rows) -> str | None:
    """Why a run by itself settles nothing, regardless of the other runs; None if it may."""
    if record.stamp["dirty"]:
        return "of uncommitted code"
    if record.seed < FIRST_SEED:
        return f"of seeds below {FIRST_SEED}, whose runs were looked at when scales, claims and analysis were chosen"
    if record.claims not in lists():
        return "begun under a list of claims that is not kept" if record.claims else "begun before such lists were kept"
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


def _copies(records: Iterable[Record]) -> dict[int, str]:
    """Why records are copies, by `id`: they share the run or its weights with a record of another seed or setting.

    Two tables may show one run, if seed and setting are the same.
    """
    shared: dict[tuple[str, str], list[Record]] = {}
    for record in records:
        weights = record.determinism["weights"] if record.determinism else None
        for name, mark in (("run", record.run), ("weights", weights)):
            if mark:
                shared.setdefault((name, mark), []).append(record)
    return {
        id(one): f"with the same {name} {mark[:16]}, so copies of one run"
        for (name, mark), of in shared.items()
        if any((one.seed, one.hyper) != (of[0].seed, of[0].hyper) for one in of)
        for one in of
    }


def _misplaced(records: Iterable[Record]) -> dict[int, str]:
    """Why records have the wrong order of the data, by `id`: a seed gives the same order to all rows.

    This holds for rows with the same text, size of updates and number of updates. The most frequent order is taken as
    the seed's; if two are equally frequent, neither is.
    """
    placed: list[tuple[Record, str, str]] = []  # each with what else decides its order, and its order
    orders: dict[tuple[str, int], Counter[str]] = {}
    for record in records:
        if record.status == "finished" and record.determinism and (order := record.determinism["order"]):
            setting = [record.settings.get(name) for name in ("batch_tokens", "fill")], record.hyper["steps"]
            world = repr([record.pair, record.corpus["sha256"], record.tokenizer["sha256"], setting])
            placed.append((record, world, order))
            orders.setdefault((world, record.seed), Counter())[order] += 1
    usual: dict[tuple[str, int], str] = {}
    for place, counts in orders.items():
        (most, n), *others = counts.most_common(2)
        if not others or n > others[0][1]:
            usual[place] = most
    found: dict[int, str] = {}
    for record, world, order in placed:
        seeds = sorted(seed for (of, seed), most in usual.items() if (of, most) == (world, order))
        if record.seed not in seeds:
            found[id(record)] = "in another order than the other rows of their seed"
        elif len(seeds) > 1:
            found[id(record)] = f"of seeds that have one order of the data, {', '.join(map(str, seeds))}"
    return found


def why_apart(apart: Sequence[Apart]) -> list[str]:
    """A line for each reason: how many runs, and of which rows; of more than five rows only how many."""
    found: dict[str, list[Record]] = {}
    for record, why in apart:
        found.setdefault(why, []).append(record)
    lines = []
    for why, of in found.items():
        rows, seeds = {record.row for record in of}, sorted({record.seed for record in of})
        many = f"{len(rows)} rows, seed{'s' * (len(seeds) > 1)} {', '.join(map(str, seeds))}"
        lines.append(f"{len(of)} {why}: {seeds_of_rows(of) if len(rows) <= 5 else many}")
    return lines


# What rows have in common


def unlike(rows: Mapping[str, Sequence[Record]]) -> list[str]:
    """What the rows of one claim differ in apart from what a row may set: hyper-parameters, system, task.

    Where their tasks differ, their text may differ too: Table 4 compares little text with much.
    """
    first, *others = (of[0] for of in rows.values())
    names = dict.fromkeys(name for other in others for name in differences(first, other))
    said = {*first.hyper, "system", "code of its system"}
    if any(other.about["name"] != first.about["name"] for other in others):
        said |= {"text", "tokenizer"}
    beside = [name for name in names if name not in said]
    runs = [record for of in rows.values() for record in of]  # a single seed scored differently would spoil a mean
    alike: dict[str, set[Any]] = {
        "language pair": {record.pair for record in runs},
        **{f"sentences of {split}": {record.n_sentences(split) for record in runs} for split in SPLITS},
        "scorer": {  # Table 2 and F1 are judged on test
            tuple(signature(run.scores[split], name) for split in SPLITS for name in run.about["scores"])
            for run in runs
            if run.status == "finished"
        },
    }
    return [*beside, *(name for name, found in alike.items() if len(found) > 1)]


def read_published(folder: Path, records: Iterable[Record]) -> Published:
    """Read the verdicts in the folder of a scale; they are void if a run that they rest on is missing from `records`.

    A base run whose seed is judged again may be missing, if a fresh run has taken its place.
    """
    if not (file := folder / FILE).exists():
        return NOTHING_PUBLISHED
    records = list(records)
    there = {record.run for record in records}
    taken = {(f"{one.table}/{one.row}", str(one.seed)) for one in records if one.seed >= FIRST_SEED}
    content = json.loads(file.read_bytes())
    runs = [(row, seed, run) for row, seeds in content["runs"].items() for seed, run in seeds.items()]
    for row, seed, run in runs:
        if run not in there and (row, seed) not in taken:
            return Published(void=f"The verdicts in {FILE} are void: run {run} is missing (seed {seed} of {row})")
    verdicts = {claim: (one["verdict"], one["reason"]) for claim, one in content["verdicts"].items()}
    return Published(verdicts=verdicts, runs=frozenset(run for _, _, run in runs))
