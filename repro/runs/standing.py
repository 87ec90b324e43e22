"""How far the runs of a sweep have come, before their text is opened: what a dry run counts as done.

A run is found by everything that decides it except the text, of which only the names of the corpus and the language
pair are compared. A sweep opens the text, and compares that as well. No torch.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from repro.results.kinds import OF_CODE, is_equal_code
from repro.runs.options import Options
from repro.runs.scales import Scale
from repro.runs.table import Cell
from repro.tracking.run_folder import RECORD, describe
from repro.training.checkpoint_files import checkpoints, step_of

OF_TEXT = ("data", "ids", "tokenizer", "in_tokens", "corpus", "test_subset")  # known only once the text is open


@dataclass(frozen=True, kw_only=True)
class Standing:
    """How far one run has come."""

    done: bool  # it has a record
    step: int  # of its newest checkpoint
    trained: float  # part of its training, from 0 to 1

    def told(self, steps: int) -> str:
        """In words."""
        return "done" if self.done else f"at step {self.step:,} of {steps:,}"


NOT_BEGUN = Standing(done=False, step=0, trained=0.0)


def standings(asked: Iterable[Cell], scale: Scale, options: Options) -> dict[Cell, Standing]:
    """The standing of each run that has begun; where several match, as with other text, that of the furthest."""
    there = [*_there(options.runs_dir)]
    found = {}
    for cell in asked if there else ():
        from repro.runs.run_dir import made_of, spec_of  # imports tokenizers, so only if a run has begun

        read = cell.task.at(scale)
        wanted = made_of(spec_of(cell, read, options))
        alike = [
            _standing(folder, cell)
            for folder, tags, decides in there
            if (tags.get("corpus"), tags.get("pair")) == (read.corpus, cell.task.name)
            and is_equal_code(decides, wanted)
            and _but_code(decides) == _but_code(wanted)
        ]
        if alike and (furthest := max(alike, key=lambda one: (one.done, one.step))) != NOT_BEGUN:
            found[cell] = furthest
    return found


def _there(runs: Path) -> Iterator[tuple[Path, Mapping[str, str], Mapping[str, Any]]]:
    """The folders of runs, their tags and what they are made of; the sweep reports damaged ones."""
    for file in sorted(runs.glob("*/run.json")):
        with suppress(ValueError):
            run = describe(file.parent)
            if decides := run.get("origin", {}).get("decides"):
                yield file.parent, run["tags"], decides


def _standing(folder: Path, cell: Cell) -> Standing:
    if (folder / RECORD).exists():
        return Standing(done=True, step=cell.hyper.steps, trained=1.0)
    saved = checkpoints(folder / "checkpoints")
    step = step_of(saved[-1]) if saved else 0
    return Standing(done=False, step=step, trained=step / cell.hyper.steps)


def _but_code(decides: Mapping[str, Any]) -> dict[str, Any]:
    """What decides a run, without its code and without what only an open text tells."""
    return {name: value for name, value in decides.items() if name not in (*OF_TEXT, *OF_CODE)}
