"""How long translations are beside their references, and how many are empty: what BLEU's brevity penalty stands on.

Nothing in the paper's search (section 6.1) forbids a hypothesis that ends at once, and a row whose model ends some
sentences so is behind in BLEU by more than its words are worse. Beside each other both show which it is.
"""

import math
import statistics
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from repro.results.common_seeds import common
from repro.results.frame import runs_in, spread, widened
from repro.results.parts import SCORER, SPLIT
from repro.results.record import BASE, Record
from repro.results.sentences import read_counts

if TYPE_CHECKING:
    from pandas import DataFrame

EMPTY, RATIO = f"{SPLIT}/translations/empty", f"{SPLIT}/translations/length"  # no score of a task is called so
RATIO_TO_BASE, DECIDES = f"{RATIO}_to_base", f"{RATIO}_decides"
Scored = Mapping[int, tuple[float, float]]  # by seed BLEU and length


def with_lengths(frame: "DataFrame", records: Iterable[Record], results: Path) -> "DataFrame":
    """The frame with both of each row: empty translations in per cent, tokens of all over those of the references.

    Mean and interval over its runs; nothing where a run has no counts, and no column where no row has any. With a base,
    the difference of lengths to it over the seeds that both have, and 1 where that decides (`length_decides`).
    """
    lines: list[dict[str, float | None]] = []
    scored: list[Scored] = []
    for runs in runs_in(frame, records):
        counts = [read_counts(results, record) for record in runs]
        whole = [of[SPLIT][SCORER] for of in counts if of is not None]
        kept = whole if len(whole) == len(counts) else []
        values = {
            EMPTY: [100 * float((of.hypothesis == 0).mean()) for of in kept],
            RATIO: [float(of.hypothesis.sum() / of.reference.sum()) for of in kept],
        }
        lines.append({key: x for name, each in values.items() for key, x in spread(name, each).items()})
        lengths = zip(runs, values[RATIO], strict=True) if kept else ()
        scored.append({run.seed: (bleu, of) for run, of in lengths if (bleu := run.score(SPLIT, SCORER)) is not None})
    base = next((of for of, name in zip(scored, frame["table"], strict=True) if name == BASE), {})
    if base:
        for line, of in zip(lines, scored, strict=True):
            line |= _to_base(of, base if of is not base else {})
    return widened(frame, lines, dtype=float) if any(line[RATIO] is not None for line in lines) else frame


def _to_base(ours: Scored, base: Scored) -> dict[str, float | None]:
    """The difference of lengths over the seeds that both have, and whether it decides; None where they share none."""
    if not (pairs := common(ours, base)):
        return {RATIO_TO_BASE: None, DECIDES: None}
    of_ours, of_base = (
        [statistics.fmean(column) for column in zip(*of, strict=True)] for of in zip(*pairs, strict=True)
    )
    (bleu, length), (other, of_other) = of_ours, of_base
    return {
        RATIO_TO_BASE: length - of_other,
        DECIDES: float(length_decides(bleu - other, (bleu, other), (length, of_other))),
    }


def length_decides(difference: float, bleus: tuple[float, float], lengths: tuple[float, float]) -> bool:
    """Whether BLEU without its penalty for brevity, exp(1 - 1 / length) below 1, has the other sign.

    Of a difference of logarithms, so not where a BLEU is 0.
    """
    if min(bleus) <= 0:
        return False
    ours, other = (math.log(bleu) - min(0.0, 1 - 1 / length) for bleu, length in zip(bleus, lengths, strict=True))
    return (ours - other) * difference < 0
