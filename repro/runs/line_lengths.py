"""Lines as tokens; lines that a model has no place for are refused before hours of work, not after them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from repro.runs.refused import SKETCHED

if TYPE_CHECKING:
    from repro.data.shards import Encoded, Side, Split
    from repro.data.tokenizer import Tokenizer
    from repro.runs.run_dir import RunDir


def as_ids(tokenizer: "Tokenizer", lines: Sequence[str]) -> "Encoded":
    """Lines as ids, each with its end symbol."""
    from repro.data.shards import Encoded

    return Encoded(*tokenizer.encode(list(lines)))


def n_places(model: Any) -> int | None:
    """Tokens of the longest line that a model can read or write; None: there is no limit.

    A system of one's own that has places, but none of our parts with places, states their number as `n_places`.
    """
    from repro.model.ablations.static import ByPlace
    from repro.model.embedding import LearnedPositions

    said: int | None = getattr(model, "n_places", None)
    found = [] if said is None else [said]
    for part in model.modules():
        if isinstance(part, LearnedPositions):
            found.append(len(part.weight))
        elif isinstance(part, ByPlace):
            found.append(part.places.shape[2])
    return min(found, default=None)


class LineLimit(NamedTuple):
    """How many tokens a line may have, why, and what else helps than a shorter line."""

    n: int
    why: str
    otherwise: str

    @classmethod
    def of(cls, model: Any, backend: str, otherwise: str) -> "LineLimit | None":
        """The limit of a model in this backend; None: no limit. `otherwise`: advice if it is the model's own."""
        if (n := n_places(model)) is not None:
            return cls(n, f"its model has {n:,} places", otherwise)
        if backend == "torch":
            return None
        from repro.decoding.ctranslate import POSITIONS

        return cls(POSITIONS, f"CTranslate2 is given {POSITIONS:,} places", ", or take torch, --backend torch")

    def refuse(
        self, side: "Side", where: str, *, remedy: str, extra: int = 0, numbers: Sequence[int] | None = None
    ) -> None:
        """Raise ValueError for the longest line of `side` if it is too long, by its number in the text.

        A search may write as many tokens as it reads and `extra` more, with the end symbol counted.
        """
        longest = int(side.lengths.argmax())
        if (n := int(side.lengths[longest])) > (most := max(self.n - extra, 0)):
            search = f" and a search may write {extra} more than it reads" if extra else ""
            raise ValueError(
                f"expected at most {most:,} tokens in a {where}, as {self.why}{search}, got {n:,} in line "
                f"{numbers[longest] if numbers else longest + 1:,}. {remedy}{self.otherwise}."
            )


def refuse_long_lines(runs: "Sequence[RunDir]") -> None:
    """Raise ValueError where a line of a text, or what a search may write for it, is too long for a run.

    This looks at the texts that are trained on, and at all that are translated afterwards. Finished runs are not
    checked: their searches have stayed within the limit.
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

        model = sketched(spec.system, spec.hyper, SKETCHED)
        others = ", or ask with --rows for rows whose positions are not learned"
        if (limit := LineLimit.of(model, spec.backend, others)) is None:
            continue
        try:
            _refuse_held_out(run, limit)
            places = n_places(model)
            if places is not None and run.entry.scale.max_length > places:  # else such lines were left out
                _refuse_trained(run.prepared.train, places)
        except ValueError as error:
            raise ValueError(f"Row {row[1]!r} of {row[0]}: {error}") from None


def _refuse_held_out(run: "RunDir", limit: LineLimit) -> None:
    texts: dict[str, tuple[Side, Side]] = {
        name: (text.source, text.target) for name, text in (("dev", run.prepared.dev), ("test", run.prepared.test))
    }
    for name, further in run.corpus.further.items():
        sources, targets = zip(*further.pairs(), strict=True)
        texts[name] = as_ids(run.prepared.tokenizer, sources), as_ids(run.prepared.tokenizer, targets)
    remedy = "Split that line or remove it on both sides"
    for name, (source, target) in texts.items():
        limit.refuse(source, f"source line of {name}", remedy=remedy, extra=run.task.search.extra)
        limit.refuse(target, f"target line of {name}", remedy=remedy)


def _refuse_trained(train: "Split", places: int) -> None:
    from repro.data.shards import pair_lengths

    lengths = pair_lengths(train.source, train.target)
    counts = [lengths.counts(shard) for shard in range(len(lengths.sizes))]
    for column, side in enumerate(("source", "target")):
        n = max((int(of_shard[:, column].max()) for of_shard in counts if len(of_shard)), default=0)
        if n > places:
            raise ValueError(
                f"expected at most {places} tokens in a {side} line of train, as its model has {places} places, got "
                f"{n} in a line. Choose a --scale that leaves such lines out, remove them on both sides, or ask with "
                "--rows for rows whose positions are not learned."
            )
