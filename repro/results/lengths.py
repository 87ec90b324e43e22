"""How long translations are beside their references, and how many are empty: what BLEU's brevity penalty stands on.

Nothing in the paper's search (section 6.1) forbids a hypothesis that ends at once, and a row whose model ends some
sentences so is behind in BLEU by more than its words are worse. Beside each other both show which it is.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from repro.results.frame import runs_in, spread, widened
from repro.results.parts import SCORER, SPLIT
from repro.results.record import Record
from repro.results.sentences import read_counts

if TYPE_CHECKING:
    from pandas import DataFrame

EMPTY, RATIO = f"{SPLIT}/translations/empty", f"{SPLIT}/translations/length"  # no score of a task is called so


def with_lengths(frame: "DataFrame", records: Iterable[Record], results: Path) -> "DataFrame":
    """The frame with both of each row: empty translations in per cent, tokens of all over those of the references.

    Mean and interval over its runs; nothing where a run has no counts, and no column where no row has any.
    """
    lines = []
    for runs in runs_in(frame, records):
        counts = [read_counts(results, record) for record in runs]
        whole = [of[SPLIT][SCORER] for of in counts if of is not None]
        kept = whole if len(whole) == len(counts) else []
        values = {
            EMPTY: [100 * float((of.hypothesis == 0).mean()) for of in kept],
            RATIO: [float(of.hypothesis.sum() / of.reference.sum()) for of in kept],
        }
        lines.append({key: x for name, each in values.items() for key, x in spread(name, each).items()})
    return widened(frame, lines, dtype=float) if any(line[RATIO] is not None for line in lines) else frame
