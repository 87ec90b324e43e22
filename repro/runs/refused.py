"""What a row's own system cannot bear, said before anything is trained: it would come up after hours."""

from collections.abc import Sequence
from typing import Any

from repro.results.systems import system_text
from repro.runs.options import Options
from repro.runs.scales import Scale
from repro.runs.table import Cell

SKETCHED = 11  # tokens of the vocabulary of a model that is only looked at


def refuse_systems(cells: Sequence[Cell], scale: Scale, options: Options) -> None:
    """Raise ValueError where a row's own system lacks something that its run would ask for."""
    for cell in (cell for cell in cells if cell.row.system is not None):
        from repro.decoding import ctranslate
        from repro.model.build import sketched

        try:
            model = sketched(cell.row.system, cell.hyper, SKETCHED)
            if options.backend != "torch":
                ctranslate.refuse(model)
            refuse_parts_of_updates(model, options.processes * scale.micro_batches(options.processes))
        except ValueError as error:
            raise ValueError(
                f"Row {cell.row.name!r} of {cell.table} ({system_text(cell.row.system)}): {error}"
            ) from error


def refuse_parts_of_updates(model: Any, parts: int) -> None:
    """Raise ValueError for a model whose sentences meet all of their update, where that is shared out into parts."""
    if parts > 1 and getattr(model, "needs_whole_updates", False):
        raise ValueError(
            f"expected whole updates, got {parts} parts of each (processes or micro-batches): in this model "
            "the output for a sentence depends on all others of the update. Train it in one process, --devices 1, at a "
            "scale that reads an update at once."
        )
