"""What a run is and how far it has come: one row, one seed, one scale, one corpus.

The id of a run is a hash of everything that decides its result. It shows which runs are finished and which can be
resumed. This module imports no torch, so that runs can be listed without it; `repro/runs/run.py` makes them.
"""

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from repro.corpora.catalogue import CORPORA, Corpus
from repro.model.config import BASE, Hyper, written
from repro.model.cost import PAPER_VOCABULARY, n_parameters
from repro.results import record
from repro.results.comparable import OF_CODE, code_name, equal_codes, told_of
from repro.results.provenance import cleared, fingerprint, parsing_digest, system_text
from repro.results.record import TRANSLATION, Record
from repro.runs.options import USUAL, Options, refuse_small_updates
from repro.runs.scales import Scale
from repro.runs.table import Table, Task, Translation, rows_of, searching_at
from repro.tracking.run_folder import RECORD, describe
from repro.training.run_spec import RECORDED, UNOPENED, RunSpec, TextSpec, checkpoints, step_of

if TYPE_CHECKING:
    from repro.data.shards import Prepared

SAME = ("table", "row", "seed", "scale", "corpus", "pair")  # the tags by which a person knows a run
SHORT = 32  # characters of two values that a sentence has room for: no hashes


def planned(tables: Sequence[Table], scale: Scale, options: Options) -> "list[RunDir]":
    """The runs of a sweep, whose text is not open yet; seeds are the outer loop, so a stopped sweep has every row.

    Raises ValueError for impossible tables and rows, for a pair that no row translates, and for too small updates.
    """
    usual = Translation(options.pair)
    rows = rows_of(tables, scale.base, options.rows, usual, equal_updates=scale.equal_updates)
    if options.pair != USUAL.pair and all((row.task or usual) != usual for _, _, row, _ in rows):
        raise ValueError(f"--pair {options.pair}: no row of the table translates it. Leave the option out.")
    titles = {table.name: table.title for table in tables}
    found: list[RunDir] = []
    for seed in options.seeds:
        for table, position, row, hyper in rows:
            task = searching_at(row.task or usual, scale)
            read = task.at(scale)
            refuse_small_updates(read)  # trees are longer than sentences
            spec = RunSpec(
                text=UNOPENED,
                task=task,
                hyper=hyper,
                seed=seed,
                batch_tokens=read.batch_tokens,
                batch_by=read.batch_by,
                devices=options.processes,
                accumulate=read.micro_batches(options.processes),  # so that each fits the scale's `device_tokens`
                threads=options.threads,
                precision=options.products,
                backend=options.backend,
                system=row.system,
            )
            run = RunDir(
                number=len(found),
                spec=spec,
                runs=options.runs_dir,
                title=titles.get(table, tables[0].title if tables else table),
                table=table,
                tables=(table,) if table in titles else (table, *titles),
                row=row.name,
                position=position,
                paper=row.paper.numbers,
                paper_hyper=row.at(BASE),
                scale=read,
            )
            found.append(run)
    return found


def shard_of(asked: "Sequence[RunDir]", shard: str | None) -> "list[RunDir]":
    """Every n-th run of a sweep from the i-th on, for the shard "i/n"; all runs for None.

    Together the n shards hold each run once, and none depends on the others. A shard beyond the last run is empty.
    Raises ValueError for text that is no shard.
    """
    if shard is None:
        return list(asked)
    found = re.fullmatch(r"([0-9]{1,9})/([0-9]{1,9})", shard)
    i, n = map(int, found.groups()) if found else (0, 0)
    if not 1 <= i <= n:
        raise ValueError(f"--shard {shard[:40]!r}: expected I/N, two whole numbers with I from 1 to N, such as 1/3.")
    return list(asked[i - 1 :: n])


def with_texts(
    runs: "Sequence[RunDir]", whole: "Sequence[RunDir]", scale: Scale, options: Options, tell: Callable[[str], object]
) -> "list[RunDir]":
    """The runs with what they read, opened and prepared once for each task. `whole` is the sweep that they are of."""
    texts = {task: _prepared(task, scale, options, tell) for task in dict.fromkeys(run.task for run in runs)}
    name = folder_name(whole, scale, options, {task: corpus for task, (corpus, _) in texts.items()})
    return [run.opened(*texts[run.task], name) for run in runs]


def folder_name(
    whole: "Sequence[RunDir]", scale: Scale, options: Options, opened: Mapping[Task, Corpus] | None = None
) -> str:
    """What the folder of records is called: as the scale; a hash is added of a text of one's own and its vocabulary.

    The text is one of the whole sweep, so that all shards put their records into one folder.
    """
    if CORPORA[scale.corpus].folders:
        return scale.name
    usual = Translation(options.pair)
    namesake = usual if usual in [run.task for run in whole] else whole[0].task
    corpus = (opened or {}).get(namesake) or _corpus(namesake, scale, options)
    known_by = corpus.sha256
    if corpus.vocabulary:
        known_by = hashlib.sha256(known_by.encode() + corpus.vocabulary.read_bytes()).hexdigest()
    elif corpus.pieces or corpus.in_tokens:
        known_by = hashlib.sha256(f"{known_by} {corpus.pieces} {corpus.in_tokens}".encode()).hexdigest()
    return record.short(f"{scale.name}-{known_by[:8]}")


def _corpus(task: Task, scale: Scale, options: Options) -> Corpus:
    read = task.at(scale)
    return task.open_corpus(read.corpus, sizes=read.grammar, data_dir=options.data_dir, cache=options.cache_dir)


def _prepared(task: Task, scale: Scale, options: Options, tell: Callable[[str], object]) -> "tuple[Corpus, Prepared]":
    from repro.corpora.prepare import prepare

    read, corpus = task.at(scale), _corpus(task, scale, options)
    subwords = corpus.subwords(read.subwords(task.name), asked=options.vocab_size)
    how: dict[str, Any] = {"cache": options.cache_dir, "max_length": read.max_length, "rules": read.rules, "tell": tell}
    prepared = prepare(corpus, subwords=subwords, **how)
    for line in told_of(f"{corpus.name} {corpus.pair}", prepared):
        tell(line)
    return corpus, prepared


def made_of(spec: RunSpec) -> dict[str, Any]:
    """Everything that decides a result, the code included, by field: the id is its hash, and `run.json` keeps it."""
    text, task = spec.text, cast("Task", spec.task)
    return {
        **{f"hyper.{name}": value for name, value in written(vars(spec.hyper)).items()},
        **({"system": system_text(spec.system)} if spec.system else {}),
        "seed": spec.seed,
        **{name: getattr(text, name) for name in ("corpus", "data", "ids", "tokenizer", "in_tokens")},
        "batch_tokens": spec.batch_tokens,
        "fill": RECORDED[spec.batch_by],
        "shares": spec.shares,
        "threads": spec.threads,  # another number adds in another order
        "precision": spec.precision,
        **task.search.settings,
        **({} if task.facts == TRANSLATION else {"task": task.facts["name"], "task_code": parsing_digest()}),
        "engine": spec.backend,
        "code": fingerprint(spec.system),
    }


@dataclass(frozen=True, kw_only=True)
class RunDir:
    """A run, its place in the results, and its folder `runs/<id>/`, which may not exist yet."""

    number: int  # its place in the whole sweep, by which the same command finds it again
    spec: RunSpec
    runs: Path
    title: str  # of the table
    table: str
    tables: tuple[str, ...]  # all that show the row
    row: str
    position: int
    paper: record.PaperNumbers
    paper_hyper: Hyper  # the same row at the paper's own base, for its parameter count
    scale: Scale  # as the task of the run reads it
    text: Any = None  # (Corpus, Prepared), once it is open

    def opened(self, corpus: Corpus, prepared: "Prepared", scale: str) -> "RunDir":
        """The run with its text, at the scale that is called so."""
        text = TextSpec(
            corpus=corpus.sha256,
            data=prepared.data_hash,
            ids=prepared.ids_hash,
            tokenizer=prepared.tokenizer.sha256,
            in_tokens=corpus.in_tokens,
        )
        named = replace(self.scale, name=scale)
        return replace(self, spec=replace(self.spec, text=text), scale=named, text=(corpus, prepared))

    @property
    def corpus(self) -> Corpus:
        """The text that the run reads, once it is open."""
        return cast("Corpus", self.text[0])

    @property
    def prepared(self) -> "Prepared":
        """The text as ids."""
        return cast("Prepared", self.text[1])

    @property
    def name(self) -> str:
        """How messages name the run."""
        return f"{self.row} seed {self.spec.seed}"

    @property
    def task(self) -> Task:
        """What is read and scored, and what it is called. The spec knows only how it scores."""
        return cast("Task", self.spec.task)

    @cached_property
    def id(self) -> str:
        """16 hexadecimal digits: a hash of all that decides the result. A run that equal code began keeps its id."""
        names = [name for name in OF_CODE if name in self.decides]
        alike = product(*(equal_codes(self.decides[name]) for name in names))
        named = [{**self.decides, **dict(zip(names, codes, strict=True))} for codes in alike]
        ids = [hashlib.sha256(json.dumps(one, sort_keys=True).encode()).hexdigest()[:16] for one in named]
        return next((one for one in ids if (self.runs / one / "run.json").exists()), ids[0])

    @cached_property
    def decides(self) -> dict[str, Any]:
        """Everything that decides the result, by field."""
        return made_of(self.spec)

    @property
    def folder(self) -> Path:
        return self.runs / self.id

    def finished(self) -> Record | None:
        """The verified record of this run, with the current names and commit; None if there is no record.

        Names do not decide a result: this run may have been made for another table, or before the row was renamed. Code
        that was not committed when it ran may have been committed since.
        """
        path = self.folder / RECORD
        if not path.exists():
            return None
        found = record.load(path)
        return replace(found, **self.names, stamp=cleared(found.stamp, self.spec.system))

    @cached_property
    def names(self) -> dict[str, Any]:
        """What its record says of its row, and of the row at the paper's own base: fields that decide no result."""
        spec = self.spec
        params: record.Params = {
            "here": n_parameters(spec.hyper, self.prepared.tokenizer.size, spec.system),
            "paper_size": n_parameters(self.paper_hyper, PAPER_VOCABULARY, spec.system),
        }
        of_row = {name: getattr(self, name) for name in ("table", "row", "position", "paper")}
        return {**of_row, "scale": self.scale.name, "params": params}

    def to_train(self) -> float:
        """The part of its updates that its newest checkpoint has not made."""
        return 1 - self.last_step() / self.spec.hyper.steps

    def last_step(self) -> int:
        """The optimizer step of its newest checkpoint, 0 if there is none."""
        paths = checkpoints(self.folder / "checkpoints")
        return step_of(paths[-1]) if paths else 0

    def held(self) -> int:
        """Bytes of its checkpoints that are on the disk already."""
        return sum(path.stat().st_size for path in checkpoints(self.folder / "checkpoints"))

    def refuse_if_changed(self) -> None:
        """Raise ValueError where this run would start over although another folder holds it half made."""
        if (self.folder / "run.json").exists():
            return  # it has begun before: with --fork beside the other one, or it is the other one
        for folder in sorted(path.parent for path in self.runs.glob("*/run.json")):
            saved = checkpoints(folder / "checkpoints")
            if not saved or (folder / RECORD).exists():
                continue
            found = describe(folder)
            if all(found["tags"].get(name) == str(self.tags[name]) for name in SAME):
                before, commit = found["origin"]["decides"], found["origin"]["commit"]
                changed = changes(before, self.decides)
                of = f" It was made by commit {commit[:12]}." if commit and "code" in changed else ""
                raise ValueError(
                    f"{self.name} is not finished: {folder} holds it up to step {step_of(saved[-1]):,}, made with "
                    f"something else: {changed}.{of} Undo that to resume it, or start over beside it with --fork."
                )

    @property
    def tags(self) -> dict[str, str | int]:
        """The names by which the run is found."""
        spec = self.spec
        return {
            "title": self.title,
            "table": self.table,
            "tables": " ".join(self.tables),
            "row": self.row,
            "seed": spec.seed,
            "scale": self.scale.name,
            "corpus": self.corpus.name,
            "pair": self.task.name,
            "text": self.corpus.sha256[:8],
            "devices": spec.devices,
            "precision": spec.precision,
            "threads": spec.threads,
            "code": code_name(fingerprint(spec.system))[:8],
            **({"system": system_text(spec.system)} if spec.system else {}),
        }


def changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """The fields that differ, with both values where these are short; codes that count as equal do not differ."""

    def told(name: str) -> str:
        values = before.get(name), now.get(name)
        return f"{name} ({values[0]} there, {values[1]} here)" if len(f"{values[0]}{values[1]}") < SHORT else name

    def alike(name: str) -> list[Any]:
        return [*equal_codes(now[name])] if name in OF_CODE and name in now else [now.get(name)]

    return ", ".join(told(name) for name in sorted(before.keys() | now.keys()) if before.get(name) not in alike(name))
