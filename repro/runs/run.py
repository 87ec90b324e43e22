"""What a run is and how far it has come: one row, one seed, one scale, one corpus.

Its id is a hash of all that decides its result, so what is finished is recognised and what was interrupted goes on. To
look at runs takes no torch: `repro/runs/execution.py` makes them.
"""

import hashlib
import json
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from repro.corpora.catalogue import Corpus
from repro.data.batch_by import RECORDED
from repro.data.shards import Prepared
from repro.model.config import Hyper, written
from repro.model.cost import PAPER_VOCABULARY, n_parameters
from repro.results import record
from repro.results.equal_code import OF_CODE, code_name, equal_codes
from repro.results.provenance import cleared, fingerprint, task_digest
from repro.results.record import Record
from repro.results.systems import system_text
from repro.results.task import TRANSLATION
from repro.runs.changed import refuse_changed
from repro.runs.scales import Scale
from repro.runs.task import Task
from repro.tracking.run_folder import RECORD, is_training
from repro.training.checkpoint_files import checkpoints, step_of
from repro.training.recipe import Recipe

if TYPE_CHECKING:
    from repro.decoding import backend as backends
    from repro.training import loop


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What a run is: all that decides its result, and the names it goes by."""

    title: str  # of the table
    table: str
    tables: tuple[str, ...]  # all that show the row
    row: str
    position: int
    paper: record.PaperNumbers
    paper_hyper: Hyper  # the same row of the paper's own base, for its parameter count
    hyper: Hyper
    seed: int
    task: Task
    scale: Scale
    devices: int
    threads: int  # of each process
    precision: "loop.Precision"
    backend: "backends.Name"
    system: Any = None  # of the row; None: the Transformer

    @property
    def name(self) -> str:
        return f"{self.row} seed {self.seed}"

    @property
    def processes(self) -> int:
        """That share each update: as the options call it."""
        return self.devices

    @property
    def accumulate(self) -> int:
        """Micro-batches per update and device, so that each fits the scale's `device_tokens`."""
        return self.scale.micro_batches(self.devices)


def made_of_recipe(recipe: Recipe, task: Task) -> dict[str, Any]:
    """All that decides a result beside the code and the text itself, by fields."""
    return {
        **{f"hyper.{name}": value for name, value in written(vars(recipe.hyper)).items()},
        **({"system": system_text(recipe.system)} if recipe.system else {}),
        "seed": recipe.seed,
        "tokenizer": recipe.prepared.tokenizer.sha256,
        "data": recipe.prepared.data_hash,
        "ids": recipe.prepared.ids_hash,  # whatever code made them of the text
        "in_tokens": recipe.in_tokens,  # how it is scored
        "batch_tokens": recipe.batch_tokens,
        "fill": RECORDED[recipe.batch_by],
        "shares": recipe.shares,  # each has its own dropout
        "threads": recipe.threads,  # sums are made in other orders
        "precision": recipe.precision,
        **task.search.settings,
        **({} if task.facts == TRANSLATION else {"task": task.facts["name"], "task_code": task_digest(task)}),
        "engine": recipe.backend,
    }


@dataclass(frozen=True, kw_only=True)
class Run:
    """A run in its folder `runs/<id>/`."""

    settings: Settings
    corpus: Corpus
    prepared: Prepared
    runs: Path

    @cached_property
    def id(self) -> str:
        """16 hexadecimal digits: a hash of all that decides the result. What equal code has begun keeps its id."""
        names = [name for name in OF_CODE if name in self.decides]
        alike = product(*(equal_codes(self.decides[name]) for name in names))
        made_of = [{**self.decides, **dict(zip(names, codes, strict=True))} for codes in alike]
        made_of += [
            {name: value for name, value in one.items() if name != "ids"} for one in made_of
        ]  # of before the wall
        ids = [hashlib.sha256(json.dumps(one, sort_keys=True).encode()).hexdigest()[:16] for one in made_of]
        return next((one for one in ids if (self.runs / one / "run.json").exists()), ids[0])

    @cached_property
    def decides(self) -> dict[str, Any]:
        """All that decides the result, by fields."""
        subset = {"test_subset": self.corpus.subset.sha256} if self.corpus.subset else {}  # what the record will say
        made_of = made_of_recipe(self.recipe, self.settings.task)
        return {**made_of, "corpus": self.corpus.sha256, **subset, "code": fingerprint(self.settings.system)}

    @cached_property
    def recipe(self) -> Recipe:
        """What it is computed from."""
        settings = self.settings
        return Recipe(
            prepared=self.prepared,
            task=settings.task,
            in_tokens=self.corpus.in_tokens,
            hyper=settings.hyper,
            seed=settings.seed,
            batch_tokens=settings.scale.batch_tokens,
            batch_by=settings.scale.batch_by,
            devices=settings.devices,
            accumulate=settings.accumulate,
            threads=settings.threads,
            precision=settings.precision,
            backend=settings.backend,
            system=settings.system,
        )

    @property
    def folder(self) -> Path:
        return self.runs / self.id

    def finished(self) -> Record | None:
        """The record of this run, verified, if it is there; under the names of today, and the commit.

        What a run is called decides nothing: a row of another table, or one that was renamed, may be this very run. And
        code that was not committed when it ran may be by now.
        """
        path = self.folder / RECORD
        if not path.exists():
            return None
        found = record.load(path)
        return replace(
            found,
            table=self.settings.table,
            row=self.settings.row,
            position=self.settings.position,
            scale=self.settings.scale.name,
            paper=self.settings.paper,
            params=self.params,
            stamp=cleared(found.stamp, self.settings.system, self.settings.task),
        )

    @cached_property
    def params(self) -> record.Params:
        """How many numbers it learns, and how many the same row of the paper's own base would."""
        settings = self.settings
        return {
            "here": n_parameters(settings.hyper, self.prepared.tokenizer.size, settings.system),
            "paper_size": n_parameters(settings.paper_hyper, PAPER_VOCABULARY, settings.system),
        }

    def is_in_hand(self) -> bool:
        """Another process is making this run."""
        return is_training(self.folder)

    def last_step(self) -> int:
        """The optimizer step of its newest checkpoint, 0 if there is none."""
        paths = checkpoints(self.folder / "checkpoints")
        return step_of(paths[-1]) if paths else 0

    def held(self) -> int:
        """Bytes of its checkpoints that are on the disk already."""
        return sum(path.stat().st_size for path in checkpoints(self.folder / "checkpoints"))

    def refuse_if_changed(self) -> None:
        """Raise `Changed` where this run would silently start over what another folder holds half made."""
        refuse_changed(self.runs, self.id, self.tags, self.decides, self.settings.system)

    @property
    def tags(self) -> dict[str, str | int]:
        """The names that the run goes by."""
        settings = self.settings
        return {
            "title": settings.title,
            "table": settings.table,
            "tables": " ".join(settings.tables),
            "row": settings.row,
            "seed": settings.seed,
            "scale": settings.scale.name,
            "corpus": self.corpus.name,
            "pair": settings.task.name,
            "text": self.corpus.sha256[:8],
            "devices": settings.devices,
            "precision": settings.precision,
            "threads": settings.threads,
            "code": code_name(fingerprint(settings.system))[:8],
            **({"system": system_text(settings.system)} if settings.system else {}),
        }
