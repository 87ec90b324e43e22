"""BLEU of parts of a text: of short and long sources, of the beginnings and ends of translations. Paper: section 1.

What a system forgets shows there: a vector for a whole sentence has less room for a long one, a state has lost more of
it the more was written. Parts are thirds: of sentences, by the length of their source, as many in each; of each
translation, by its tokens, each third held against the same third of its reference.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from repro.results.brackets import read_brackets, shares_of_mendings
from repro.results.frame import spread
from repro.results.record import Record
from repro.results.sentences import SMOOTHED, NgramCounts, bleu, read_counts, read_places

if TYPE_CHECKING:
    from pandas import DataFrame

SPLIT, SCORER = "dev", "bleu"  # sacreBLEU's
LENGTHS, POSITIONS = ("shortest", "middle", "longest"), ("first", "second", "last")
F1_THIRDS = tuple(f"{SPLIT}/f1/{part}" for part in LENGTHS)
MENDED = f"{SPLIT}/mended/"  # begins the name of a column, the kind ends it
THIRDS = tuple(f"{SPLIT}/{SCORER}/{part}" for part in (*LENGTHS, *POSITIONS))


def by_length(counts: NgramCounts, source: Sequence[int], n: int = 3) -> list[float]:
    """BLEU of the n parts of a text by the length of its sources, the shortest first; of equals the earlier."""
    order = np.argsort(np.asarray(source), kind="stable")
    return [_bleu(counts.summands[part]) for part in np.array_split(order, n)]


def by_position(thirds: Iterable[NgramCounts]) -> list[float]:
    """BLEU of the first, the second and the last third of translations."""
    return [_bleu(third.summands) for third in thirds]


def with_parts(frame: "DataFrame", records: Iterable[Record], results: Path) -> "DataFrame":
    """The frame with the parts of each row, mean and interval over its runs; nothing where a run has no counts."""
    import pandas as pd

    runs = {(one.table, one.row, one.seed): one for one in records}
    lines = []
    for table, row, seeds in zip(frame["table"], frame["row"], frame["seeds"], strict=True):
        found = [bleu_of_parts(runs[table, row, int(seed)], results) for seed in seeds.split()]
        whole = [one for one in found if one is not None]
        values: Mapping[str, list[float]] = {name: [one[name] for one in whole] for name in THIRDS}
        complete = len(whole) == len(found)
        lines.append({key: x for name in THIRDS for key, x in spread(name, values[name] if complete else []).items()})
    made = frame.join(pd.DataFrame(lines, index=frame.index, dtype=float))
    made.attrs = frame.attrs
    return made


def with_brackets(frame: "DataFrame", records: Iterable[Record], results: Path) -> "DataFrame":
    """The frame of a table of parsers with F1 by sentence length and what was mended, of dev; as `with_parts`."""
    import pandas as pd

    runs = {(one.table, one.row, one.seed): one for one in records}
    lines = []
    for table, row, seeds in zip(frame["table"], frame["row"], frame["seeds"], strict=True):
        found = [read_brackets(results, runs[table, row, int(seed)]) for seed in seeds.split()]
        whole = [one[SPLIT] for one in found if one is not None]
        parts = [of.by_length() for of in whole] if len(whole) == len(found) else []
        thirds = {name: [of[i] for of in parts] for i, name in enumerate(F1_THIRDS)}
        line = {key: x for name, values in thirds.items() for key, x in spread(name, values).items()}
        lines.append(line | {f"{MENDED}{kind}": share for kind, share in shares_of_mendings(whole).items()})
    made = frame.join(pd.DataFrame(lines, index=frame.index, dtype=float))
    made.attrs = frame.attrs
    return made


def bleu_of_parts(record: Record, results: Path) -> dict[str, float] | None:
    """Of one run by the names in `THIRDS`; None where its counts, or the lengths of its sources, are not there."""
    counts, places = read_counts(results, record), read_places(results, record, SPLIT)
    if counts is None or places is None:
        return None
    parts = [*by_length(counts[SPLIT][SCORER], places.source), *by_position(places.thirds)]
    return dict(zip(THIRDS, parts, strict=True))


def _bleu(summands: "np.ndarray[tuple[int, ...], np.dtype[np.float64]]") -> float:
    return float(bleu(summands.sum(axis=0), smoothed=SMOOTHED[SCORER]))
