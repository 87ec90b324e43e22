"""Lines as tokens; lines that a model has no place for are refused before hours of work, not after them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from repro.runs.refused import SKETCHED

if TYPE_CHECKING:
    from repro.data.shards import Encoded, Side
    from repro.data.tokenizer import Tokenizer
    from repro.runs.run_dir import RunDir


def as_ids(tokenizer: "Tokenizer", lines: Sequence[str]) -> "Encoded":
    """Lines as ids, each with its end symbol."""
    from repro.data.shards import Encoded

    return Encoded(*tokenizer.encode(list(lines)))


def n_places(model: Any, backend: str = "torch") -> int | None:
    """Tokens of the longest line that a model can read or write in this backend; None: there is no limit.

    A system of one's own that has places, but none of our parts with places, states their number as `n_places`.
    """
    from repro.decoding.ctranslate import POSITIONS
    from repro.model.ablations.static import ByPlace
    from repro.model.embedding import LearnedPositions

    said: int | None = getattr(model, "n_places", None)
    found = [*([] if said is None else [said]), *([] if backend == "torch" else [POSITIONS])]
    for part in model.modules():
        if isinstance(part, LearnedPositions):
            found.append(len(part.weight))
        elif isinstance(part, ByPlace):
            found.append(part.places.shape[2])
    return min(found, default=None)


def refuse_long(side: "Side", most: int | None, where: str, numbers: Sequence[int] | None = None) -> None:
    """Raise ValueError for the longest line of `side` if it has more than `most` tokens, by its number in the text."""
    if most is None or not len(side.lengths):
        return
    longest = int(side.lengths.argmax())
    if (n := int(side.lengths[longest])) > most:
        raise ValueError(
            f"expected at most {most:,} tokens in a {where}, for which the model has places, got {n:,} in line "
            f"{numbers[longest] if numbers else longest + 1:,}. Split that line."
        )


def refuse_long_lines(runs: "Sequence[RunDir]") -> None:
    """Raise ValueError where a line of dev or test, or what a search may write for it, is too long for a run.

    Finished runs are not checked: their searches have stayed within the limit.
    """
    looked_at = set()
    for run in runs:
        spec, row = run.spec, (run.entry.table, run.entry.row)
        if spec.system is None and not spec.hyper.learned_positions and spec.backend == "torch":
            continue  # the usual case: nothing to check, and no torch to import
        if row in looked_at or run.finished():
            continue
        looked_at.add(row)
        from repro.model.build import sketched

        if (most := n_places(sketched(spec.system, spec.hyper, SKETCHED), spec.backend)) is None:
            continue
        for name, text in (("dev", run.prepared.dev), ("test", run.prepared.test)):
            where = f"line of {name} for row {row[1]!r} of {row[0]}"
            # a search may write so many tokens more than it reads
            refuse_long(text.source, max(0, most - run.task.search.extra), f"source {where}")
            refuse_long(text.target, most, f"target {where}")
