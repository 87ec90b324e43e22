"""How far each row is from the base, by rows + seeds as for the verdicts, but for every row that has runs."""

import functools
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from repro.claims.blocks import Blocks
from repro.claims.catalogue import CLAIMS, STATEMENTS
from repro.claims.claim import B0, TABLE3, Endpoint, rows_scored
from repro.claims.evidence import Evidence, unlike
from repro.results.record import PaperNumbers, Record

Interval = tuple[float, float]


@dataclass(frozen=True, kw_only=True)
class ToBase:
    """A row minus the base by one score; positive where the row is better."""

    value: float
    over_seeds: Interval | None  # 95 %; None where the runs do not count, or cannot be compared
    runs: tuple[Sequence[Record], Sequence[Record]]  # the runs of the row and of the base behind the value
    counts: bool  # whether these runs settle, or have settled, a claim


class Agreement(NamedTuple):
    """How well our differences to the base agree with the printed ones."""

    rank_correlation: float
    rows: int


class Distances:
    """The differences of one scale's rows to its base."""

    def __init__(self, evidence: Evidence) -> None:
        self._sets = [evidence.taken(), evidence.explored()]
        self._counting = {*map(id, evidence.records)}
        self._blocks = functools.cache(self._fitted)

    def __call__(self, row: str, endpoint: Endpoint) -> ToBase | None:
        """The difference of "table/row"; None where it or the base has no finished run with this score."""
        for place, runs in enumerate(self._sets):
            ours, base = ([run for run in runs.get(one, ()) if endpoint.of(run) is not None] for one in (row, B0))
            if ours and base:
                estimate = (
                    None if unlike({row: ours, B0: base}) else self._blocks(place, row, endpoint).difference(row, B0)
                )
                means = [statistics.fmean(endpoint.of(run) or 0.0 for run in of) for of in (ours, base)]
                counts = all(id(run) in self._counting for run in (*ours, *base))
                return ToBase(
                    value=estimate.value if estimate else means[0] - means[1],
                    over_seeds=estimate.interval() if estimate and counts else None,
                    runs=(ours, base),
                    counts=counts,
                )
        return None

    def _fitted(self, place: int, row: str, endpoint: Endpoint) -> Blocks:
        pages = [rows_scored([one for one in of if one.is_trained], endpoint.split) for of in (CLAIMS, STATEMENTS)]
        page = next((rows for rows in pages if row in rows), set[str]()) | {row, B0}  # all rows judged on the same page
        return Blocks({name: endpoint.by_seed(of) for name, of in self._sets[place].items() if name in page})

    def agreement(self, printed: Mapping[str, PaperNumbers], endpoint: Endpoint) -> Agreement | None:
        """Spearman's rank correlation over the rows of Table 3 that have both numbers; None for fewer than three."""
        of_base = endpoint.printed(printed[B0]) if B0 in printed else None
        pairs = [
            (found.value, printed_here - of_base)
            for row in TABLE3
            if row != B0 and row in printed and of_base is not None
            if (printed_here := endpoint.printed(printed[row])) is not None and (found := self(row, endpoint))
        ]
        if len(pairs) < 3:
            return None
        import pandas as pd

        return Agreement(pd.DataFrame(pairs).round(9).corr("spearman").to_numpy()[0, 1], len(pairs))
