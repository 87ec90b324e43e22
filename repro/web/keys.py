"""Keys of runs, by which tables, charts and verdicts link to them: report.html#run=KEY."""

import itertools

from repro.results.frame import ResultSet
from repro.results.record import BASE, Record

FirstRuns = dict[tuple[str, str], str]  # (table, row) -> the key of the first run of it


def run_keys(result_set: ResultSet) -> dict[str, Record]:
    """Every record by its key: the name of its run, with "-2" if it is a second one; the paper's tables first."""
    found: dict[str, Record] = {}
    ordered = sorted(
        result_set.everything,
        key=lambda one: (one.table != BASE, not one.table.startswith("table"), one.table, one.position, one.seed),
    )
    for record in ordered:
        names = itertools.chain([record.run], (f"{record.run}-{n}" for n in itertools.count(2)))
        found[next(name for name in names if name not in found)] = record
    return found


def first_runs(result_set: ResultSet) -> FirstRuns:
    """The run to which each row of tables, charts and verdicts links: its first."""
    found: FirstRuns = {}
    for key, record in run_keys(result_set).items():
        found.setdefault((record.table, record.row), key)
    return found
