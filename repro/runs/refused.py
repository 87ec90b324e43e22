"""What no run could end with is refused before anything is trained: faults of a row's own system, and too long lines.

The checks stand here and not beside the systems, where they would be part of the code that decides a row.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

from repro.results.provenance import system_text
from repro.runs.run_dir import RunDir

if TYPE_CHECKING:
    from repro.data.shards import Encoded, Side
    from repro.data.tokenizer import Tokenizer
    from repro.model.config import Hyper

SKETCHED = 11  # tokens in the vocabulary of a model that is only inspected
N_SOURCE, N_TARGET = 5, 7  # tokens of the sentence that it reads: two numbers that cannot be confused
TOLERANCE = 1e-3  # of the largest number of a hidden row: float32 and another order of sums differ by less


def refuse_systems(runs: Sequence[RunDir]) -> None:
    """Raise ValueError where a row's own system lacks something that its run would ask for."""
    own = {(run.table, run.row): run.spec for run in runs if run.spec.system is not None}  # of all seeds
    for (table, row), spec in own.items():
        from repro.decoding import ctranslate
        from repro.model.build import sketched
        from repro.model.protocol import refuse_parts

        try:
            model = sketched(spec.system, spec.hyper, SKETCHED)
            if spec.backend != "torch":
                ctranslate.refuse(model)
            refuse_parts(model, spec.shares)
            refuse_reach(model)
            _try_out(spec.system, replace(spec.hyper, lr_factor=1.0))
        except Exception as error:  # whatever somebody's class raises
            kind = "" if isinstance(error, ValueError) else f"{type(error).__name__}: "
            who = f"Row {row!r} of {table} ({system_text(spec.system)})"
            raise ValueError(f"{who}: {kind}{' '.join(str(error).split())}") from error


@cache  # many rows are one system at several rates
def _try_out(system: Any, hyper: "Hyper") -> None:
    """Do with one short sentence what a run does: count its operations, and search."""
    import torch

    from repro.model.build import build
    from repro.model.counted import counted_flops

    counted_flops(system, hyper, SKETCHED, 1, N_SOURCE, N_TARGET)
    with torch.random.fork_rng(devices=[]), torch.no_grad():  # a run's first weights must not depend on this
        refuse_search(build(system, hyper, SKETCHED).eval())


def refuse_search(model: Any) -> None:
    """Raise ValueError for a model whose search reads another prefix than it wrote, which would spoil BLEU alone.

    Two hypotheses change places at each step. What the model computes from its own state is compared with what it
    computes from the whole prefix. Cached keys stand in another order than those of a sentence.
    """
    import torch

    from repro.model.protocol import PlainState

    # two hypotheses change places at each step
    source = torch.arange(2, 2 + N_SOURCE)[None]
    state, plain = model.start(source), PlainState.begun(model, source)
    ids, rows = torch.zeros(1, dtype=torch.int64), torch.tensor([0, 0])
    for length in range(1, N_TARGET + 1):
        found, state = model.advance(ids, state)
        wanted, plain = plain.advance(model, ids)
        difference, size = (found - wanted).abs().max().item(), max(1.0, wanted.abs().max().item())
        if difference > TOLERANCE * size:
            raise ValueError(
                f"expected a search that reads what training reads, but after {length} tokens its state differs by "
                f"{difference:.2g} from the whole prefix read anew. Keys of a state are not in a sentence's order; "
                "if the model depends on their order, derive it from repro.model.protocol.Plain as well."
            )
        state, plain = state.reorder(rows), plain.reorder(rows)
        ids, rows = torch.tensor([2 + length, SKETCHED - length]), torch.tensor([1, 0])


def refuse_reach(model: Any) -> None:
    """Raise ValueError for a restricted self-attention that sees nothing, or more in the encoder than in the decoder.

    The weights of a query that sees nothing are uniform, over the future as well.
    """
    from repro.model.ablations.reach import Restricted

    if isinstance(model, Restricted) and (model.r < 1 or model.r % 2 != 1):
        raise ValueError(f"expected an odd r of at least 1, got {model.r}: a place and as many on each side are seen.")


# Lines -------------------------------------------------------------------------------------------


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


def refuse_long_lines(runs: Sequence[RunDir]) -> None:
    """Raise ValueError where a line of dev or test, or what a search may write for it, is too long for a run.

    Finished runs are not checked: their searches have stayed within the limit.
    """
    looked_at = set()
    for run in runs:
        spec, row = run.spec, (run.table, run.row)
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
