"""What a row's own system, or the model of a row, cannot bear: said before anything is trained, not after hours.

All of it stands here and not beside the systems: what a class refuses is a part of the code that made its rows.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from repro.results.systems import system_text
from repro.runs.options import Options
from repro.runs.scales import Scale
from repro.runs.table import Cell

if TYPE_CHECKING:
    from repro.data.shards import Side, Split
    from repro.model.config import Hyper
    from repro.runs.run import Run

SKETCHED = 11  # tokens of the vocabulary of a model that is only looked at
N_SOURCE, N_TARGET = 5, 7  # tokens of the sentence that it reads: two numbers that nothing confuses


def refuse_systems(cells: Sequence[Cell], scale: Scale, options: Options) -> None:
    """Raise ValueError where a row's own system lacks something that its run would ask for."""
    own = {(cell.table, cell.row.name): cell for cell in cells if cell.row.system is not None}  # of all seeds once
    for cell in own.values():
        from repro.decoding import ctranslate
        from repro.model.build import sketched

        try:
            model = sketched(cell.row.system, cell.hyper, SKETCHED)
            if options.backend != "torch":
                ctranslate.refuse(model)
            refuse_parts_of_updates(model, options.processes * scale.micro_batches(options.processes))
            refuse_reach(model)
            _try_out(cell.row.system, replace(cell.hyper, lr_factor=1.0))
        except ValueError as error:
            raise ValueError(f"{_who(cell)}: {error}") from error
        except Exception as error:  # whatever somebody's class raises
            raise ValueError(
                f"{_who(cell)}: expected a system that can be made, read and searched, got {type(error).__name__}: "
                f"{' '.join(str(error).split())}. Mend the class or the arguments that the row gives it; --traceback "
                "shows where."
            ) from error


def _who(cell: Cell) -> str:
    return f"Row {cell.row.name!r} of {cell.table} ({system_text(cell.row.system)})"


@cache  # many rows are one system at several rates
def _try_out(system: Any, hyper: "Hyper") -> None:
    """Do with one short sentence what a run does: what its record counts, and two steps of its search.

    The search is a part of its own: cached keys stand in another order than those of a sentence, and some have no step.
    """
    import torch

    from repro.model.build import build
    from repro.model.counted import counted_flops

    counted_flops(system, hyper, SKETCHED, 1, N_SOURCE, N_TARGET)
    with torch.random.fork_rng(devices=[]), torch.no_grad():  # a run's first weights must not depend on this
        model = build(system, hyper, SKETCHED).eval()
        one, two = (torch.zeros(n, dtype=torch.int64) for n in (1, 2))
        _, state = model.advance(one, model.start(torch.full((1, N_SOURCE), SKETCHED - 1)))
        model.advance(two, state.reorder(two))


def refuse_parts_of_updates(model: Any, parts: int) -> None:
    """Raise ValueError for a model whose sentences meet all of their update, where that is shared out into parts."""
    if parts > 1 and getattr(model, "needs_whole_updates", False):
        raise ValueError(
            f"expected whole updates, got {parts} parts of each (processes or micro-batches): in this model "
            "the output for a sentence depends on all others of the update. Train it in one process, --devices 1, at a "
            "scale that reads an update at once."
        )


def refuse_reach(model: Any) -> None:
    """Raise ValueError for a restricted self-attention that sees nothing, or more in the encoder than in the decoder.

    The weights of a query that sees nothing are uniform, over the future as well.
    """
    from repro.model.ablations.reach import Restricted

    if isinstance(model, Restricted) and (model.r < 1 or model.r % 2 != 1):
        raise ValueError(
            f"expected an odd r of at least 1, got {model.r}: of r positions the encoder sees one and as many on each "
            "side of it. Choose another r."
        )


# Lines that are longer than a model has places -----------------------------------------------------------------


def n_places(model: Any) -> int | None:
    """Tokens of the longest line that a model can read or write; None: as many as there are.

    A system of one's own says it as `n_places`, where it has places without being made of ours.
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


def refuse_long_lines(runs: "Sequence[Run]") -> None:
    """Raise ValueError where a text has a line that a run has no place for, or its search might write one.

    Of the texts that are trained on, and of all that are translated afterwards. A search is given as many tokens as it
    reads and the task's `extra`, its end symbol counted, and may take them all. Nothing is asked of finished runs:
    their searches took fewer.
    """
    looked_at = set()
    for run in runs:
        row, prepared = run.settings, run.prepared
        if row.system is None and not row.hyper.learned_positions and row.backend == "torch":
            continue  # as most: nothing is to be looked at, and no torch to be imported
        if (row.table, row.row) in looked_at or run.finished():
            continue
        looked_at.add((row.table, row.row))
        from repro.model.build import sketched

        places = n_places(sketched(row.system, row.hyper, SKETCHED))
        try:
            if places is not None:
                otherwise = "ask with --rows for rows whose positions are not learned"
                _refuse_held_out(run, _Places(places, f"its model has {places} places", otherwise))
                if row.scale.max_length > places:  # else training lines of that length were left out
                    _refuse_trained(prepared.train, places)
            elif row.backend != "torch":
                from repro.decoding.ctranslate import POSITIONS

                otherwise = "translate with torch, --backend torch"
                _refuse_held_out(run, _Places(POSITIONS, f"CTranslate2 is given {POSITIONS:,} places", otherwise))
        except ValueError as error:
            raise ValueError(f"Row {row.row!r} of {row.table}: {error}") from None


class _Places(NamedTuple):
    """How many tokens a line may have, why, and what to do instead of mending the text."""

    n: int
    why: str
    otherwise: str


def _refuse_held_out(run: "Run", places: _Places) -> None:
    from repro.runs.use import as_ids

    texts: dict[str, tuple[Side, Side]] = {
        name: (text.source, text.target) for name, text in (("dev", run.prepared.dev), ("test", run.prepared.test))
    }
    for name, further in run.corpus.further.items():
        sources, targets = zip(*further.pairs(), strict=True)
        texts[name] = as_ids(run.prepared.tokenizer, sources), as_ids(run.prepared.tokenizer, targets)
    extra = run.settings.task.search.extra
    search = f" and a search may write {extra} more than it reads"
    for name, (source, target) in texts.items():
        _refuse_longer(source, places.n - extra, f"source line of {name}", places, search)
        _refuse_longer(target, places.n, f"target line of {name}", places)


def _refuse_longer(side: "Side", most: int, where: str, places: _Places, search: str = "") -> None:
    longest = int(side.lengths.argmax())
    if (n := int(side.lengths[longest])) > most:
        raise ValueError(
            f"expected at most {max(most, 0):,} tokens in a {where}, as {places.why}{search}, got {n:,} in line "
            f"{longest + 1:,}. Split that line or remove it on both sides, or {places.otherwise}."
        )


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
