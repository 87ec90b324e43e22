"""The runs of one table or several, made one after the other; what is done is skipped, what was stopped goes on."""

import errno
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from signal import SIGTERM
from typing import TYPE_CHECKING, Any

from repro.data.corpora import CORPORA
from repro.model.config import BASE
from repro.pages.build import console, write_scale
from repro.results.frame import ResultSet, note_rows
from repro.results.latest import LATEST
from repro.results.places import PUBLISHED
from repro.results.provenance import is_committed
from repro.results.record import Record, path, short
from repro.runs import command
from repro.runs.forecast import duration, expected_flops, run_bytes, run_files, size, speed_here
from repro.runs.options import USUAL, Options
from repro.runs.progress import Progress
from repro.runs.scales import Scale
from repro.runs.signals import Signals
from repro.runs.speed.busy import BusyWatch
from repro.runs.table import Cell, Table, listed, shard_of
from repro.runs.task import Task, Translation
from repro.storage import atomic
from repro.storage.lease import NoProgress, Superseded
from repro.tracking.tracker import Tracker
from repro.tracking.views import View, install_views, view_of
from repro.training.peer import Peer

if TYPE_CHECKING:
    from repro.data.corpora import Corpus
    from repro.data.shards import Prepared
    from repro.runs.run import Run
    from repro.training.group import Group

SKETCHED = 11  # tokens of the vocabulary of a model that is only looked at
# exit codes; a signal gives 128 + its number
DIVERGED, OUT_OF_MEMORY, BUSY = 70, 71, 75

# options that say nothing of what comes next
ONCE = ("fork", "dry_run", "measure", "hardware", "price", "traceback", "shard")


@dataclass(frozen=True, kw_only=True)
class Made:
    """How one cell came out: with a record, or with none because another process has it or the run made no progress."""

    cell: Cell
    record: Record | None


class Sweep:
    """The cells of some tables at one scale, or the shard of them that the options ask for."""

    def __init__(
        self,
        name: str,
        tables: Sequence[Table],
        cells: Sequence[Cell],
        scale: Scale,
        options: Options,
        peer: Peer | None = None,
    ) -> None:
        self.name, self.tables, self.scale, self.options = name, tables, scale, options
        self.whole, self.cells = cells, shard_of(cells, options.shard)
        self.results, self.runs, self.cache = options.results_dir, options.runs_dir, options.cache_dir
        self.peer, self.is_first = peer, peer is None or peer.is_first
        self.group: Group | None = None
        self.texts: dict[Task, tuple[Corpus, Prepared]] = {}

    def run(self, signals: Signals) -> int:
        """All cells, with the other processes that make them; gives the exit code."""
        if self.peer is None or self.peer.processes == 1:
            return self._run_all(signals)
        from repro.training.group import Group
        from repro.training.talk import OthersGone

        try:
            with Group(self.peer) as self.group:
                return self._run_all(signals)
        except OthersGone as gone:
            print(gone, file=sys.stderr)
            return BUSY

    def _run_all(self, signals: Signals) -> int:
        if self.options.backend != USUAL.backend:
            from repro.decoding.ctranslate import check_installed

            check_installed()
        self._refuse_systems()
        if self.results.resolve() == PUBLISHED.resolve():
            raise ValueError(
                f"--results-dir {self.results}: these are the published results; yours get there by "
                f"`{command.ours('publish')}`. Leave the option out, or name another folder."
            )
        for folder in (self.results, self.runs, self.cache):
            atomic.check_folder(folder)  # before the imports that take seconds, too
            atomic.sweep(folder, alone=False)
        from repro.runs.run import Stopped
        from repro.training.loop import OutOfMemory

        started = time.monotonic()
        with Progress(self.name, len(self.cells), quiet=not self.is_first) as progress, ExitStack() as at_the_end:
            tracker = Tracker(self.options.tracking_uri, runs=self.runs, tell=progress.say)
            tracker.look()
            for task in dict.fromkeys(cell.task for cell in self.cells):
                self.texts[task] = self._prepare(task, progress)
            self.scale = self._named_after_text()
            ResultSet.read_own(
                self.results / self.scale.name, PUBLISHED
            )  # names what is damaged before the work begins
            busy = BusyWatch(progress.say, threads=self.options.threads)
            runs = [self._run(cell, tracker, progress, signals, busy) for cell in self.cells]
            if self.is_first and not self.options.fork:
                for run in runs:
                    run.refuse_if_changed()
            progress.say(board(runs, self.runs, self.options.shard))
            if self.is_first and (to_come := [run for run in runs if not run.finished()]):
                progress.say(check_room(to_come, self.runs))
                at_the_end.callback(install_views, tracker, self._views(to_come))
            made: list[Made] = []
            for cell, run in zip(self.cells, runs, strict=True):
                signals.training = True
                try:
                    made.append(Made(cell=cell, record=self._make(run, progress)))
                except Stopped as stopped:
                    progress.say(f"{stopped}. The same command resumes there.")
                    return 128 + (signals.received or SIGTERM)  # another process of this run may have had the signal
                except OutOfMemory as error:
                    progress.say(f"{run.settings.name}: {error}")
                    if self.group:
                        self.group.talk.fail(str(error))
                    return OUT_OF_MEMORY
                signals.training = False
                progress.finish_run()
            if self.is_first:
                progress.say(self._closing(made, time.monotonic() - started))
        if self.is_first and not all(one.record for one in made):
            return BUSY
        return DIVERGED if any(one.record and one.record.status == "diverged" for one in made) else 0

    def _refuse_systems(self) -> None:
        """Raise ValueError where a row's own system lacks something that its run would ask for after hours."""
        for cell in (cell for cell in self.cells if cell.row.system is not None):
            from repro.decoding import ctranslate
            from repro.model.build import sketched

            try:
                model = sketched(cell.row.system, cell.hyper, SKETCHED)
                if self.options.backend != "torch":
                    ctranslate.refuse(model)
            except ValueError as error:
                raise ValueError(f"Row {cell.row.name!r} of {cell.table}: {error}") from error

    def _open(self, task: Task, tell: Callable[[str], object]) -> "Corpus":
        return task.open_corpus(
            self.scale.corpus,
            data_dir=self.options.data_dir,
            cache=self.cache,
            sizes=self.scale.grammar,
            tell=tell,
        )

    def _prepare(self, task: Task, progress: Progress) -> "tuple[Corpus, Prepared]":
        from repro.results.repeats import repeated

        corpus = self._open(task, progress.say)
        prepared = task.prepare(
            corpus,
            subwords=corpus.subwords(self.scale.subwords(task.name), asked=self.options.vocab_size),
            cache=self.cache,
            max_length=self.scale.max_length,
            rules=self.scale.rules,
            tell=progress.say,
        )
        sizes = ", ".join(f"{name} {len(getattr(prepared, name)):,}" for name in ("train", "dev", "test"))
        dropped = f"; left out: {prepared.train.dropped}" if prepared.train.dropped else ""
        progress.say(
            f"{corpus.name} {corpus.pair}: {sizes} pairs, {prepared.tokenizer.size:,} tokens, "
            f"prepared in {prepared.seconds:.1f} s{dropped}"
        )
        for sentence in repeated(prepared.repeats):
            progress.say(f"Note on {corpus.name} {corpus.pair}: {sentence}")
        return corpus, prepared

    def _named_after_text(self) -> Scale:
        """The scale under a name that tells one's own texts apart; those of named corpora are known by their hashes.

        The text is one of the whole sweep's: all shards put their records into one folder.
        """
        if CORPORA[self.scale.corpus].folders or self.scale.corpus == "grammar":
            return self.scale
        tasks = dict.fromkeys(cell.task for cell in self.whole)
        usual = Translation(self.options.pair)
        namesake = usual if usual in tasks else next(iter(tasks))
        corpus = self.texts[namesake][0] if namesake in self.texts else self._open(namesake, lambda text: None)
        return replace(self.scale, name=short(f"{self.scale.name}-{corpus.sha256[:8]}"))

    def _run(self, cell: Cell, tracker: Tracker, progress: Progress, signals: Signals, busy: BusyWatch) -> "Run":
        from repro.runs.run import Run, Settings

        corpus, prepared = self.texts[cell.task]
        titles = {table.name: table.title for table in self.tables}
        return Run(
            settings=Settings(
                title=titles.get(cell.table, self.tables[0].title),
                table=cell.table,
                tables=(cell.table,) if cell.table in titles else (cell.table, *titles),
                row=cell.row.name,
                position=cell.position,
                paper=cell.row.paper.numbers,
                paper_hyper=cell.row.change(BASE),
                hyper=cell.hyper,
                seed=cell.seed,
                task=cell.task,
                scale=self.scale,
                devices=self.options.processes,
                threads=self.options.threads,
                precision=self.options.precision,
                backend=self.options.backend,
                system=cell.row.system,
            ),
            corpus=corpus,
            prepared=prepared,
            runs=self.runs,
            tracker=tracker,
            progress=progress,
            should_stop=signals.should_stop,
            group=self.group,
            busy=busy,
        )

    def _make(self, run: "Run", progress: Progress) -> Record | None:
        """The record of one run, made now or before; None where another process makes it."""
        done = run.agreed_finished()
        if done:
            progress.say(f"{run.settings.name}: finished before, in {run.folder}")
        else:
            try:
                if self.is_first:
                    check_room([run], self.runs)  # others may have filled the disk meanwhile
                done = run.execute()
            except (BlockingIOError, Superseded, NoProgress) as error:
                if self.group:
                    raise  # the other processes of this run wait for this one: end them all
                progress.say(f"{run.settings.name} is skipped. {error}")
        if done and self.is_first:
            done.save(path(self.results, done))
            progress.say(_summary(done))
        return done

    def _views(self, runs: "Sequence[Run]") -> dict[View, None]:
        """What `repro.cli.ui` opens: the views of the tables that show the runs, each once."""
        return {
            view_of(run.tags, table.name, table.title): None
            for run in runs
            for table in self.tables
            if table.name in run.settings.tables
        }

    def _closing(self, made: Sequence[Made], seconds: float) -> str:
        records = [one.record for one in made if one.record]
        folder, names = self.results / self.scale.name, [table.name for table in self.tables]
        note_rows(folder, listed(self.tables))
        uncommitted = [table.name for table in self.tables if table.file and is_committed(table.file) is False]
        mine = ResultSet.read_own(folder, PUBLISHED, uncommitted)
        written = write_scale(mine) if records else []
        elsewhere = [f"{one.cell.row.name} seed {one.cell.seed}" for one in made if not one.record]
        return "\n".join(
            [
                "",
                console(mine, names),
                "",
                *([f"Left to other processes: {', '.join(elsewhere)}."] if elsewhere else []),
                f"{len(records)} runs{self._of_shard()} in {duration(seconds)}. {self._page(written)}",
                *what_next(self.name, self.tables[0].name, self.scale.name, self.options.typed),
            ]
        )

    def _of_shard(self) -> str:
        """What the tables above rest on, where this was a part of the sweep."""
        if not self.options.shard:
            return ""
        return f" of shard {self.options.shard} (the tables show every record that is there)"

    def _page(self, written: Sequence[Path]) -> str:
        """Where to read what came out."""
        folder = self.results / self.scale.name
        return f"Read {folder / 'README.md'}; tables and verdicts stand beside it." if written else "No table yet."


def what_next(name: str, table: str, scale: str, typed: Mapping[str, Any]) -> list[str]:
    """Commands to go on with, with the same settings and the same folders: the options that were typed are kept."""
    again = {option: value for option, value in typed.items() if option not in ONCE}
    more = again | {"seeds": max(3, typed.get("seeds", 1) + 2)}
    view = _with({"table": table, "scale": scale}, typed, "tracking_uri")
    translate = _with({}, typed, "runs_dir")
    commands = {
        f"{command.ours('ui')} {view}": "compare the runs in MLflow",
        f"{command.ours('translate', LATEST, 'TEXT')} {translate}".rstrip(): "translate with the newest run",
        f"{command.python()} {command.script(name)} {command.command_line(more)}": "intervals over seeds",
    }
    width = max(map(len, commands))
    return ["What next:", *(f"  {line:<{width}}   {why}" for line, why in commands.items())]


def _with(options: Mapping[str, Any], typed: Mapping[str, Any], *kept: str) -> str:
    """These options, and of those that were typed what another command knows as well."""
    return command.command_line({**options, **{name: typed[name] for name in kept if name in typed}})


@dataclass(frozen=True, kw_only=True)
class State:
    """Where one run stands."""

    seed: int
    what: str
    spent: float = 0.0  # seconds
    to_come: float = 0.0  # seconds


def _state(run: "Run", speed: float) -> State:
    seed, steps = run.settings.seed, run.settings.hyper.steps
    if done := run.finished():
        return State(seed=seed, what="done", spent=done.cost["train_seconds"] + done.cost["decode_seconds"])
    if run.is_in_hand():
        return State(seed=seed, what="running")
    step = run.last_step()
    to_come = (
        expected_flops(run.settings.hyper, run.settings.scale, run.settings.task.name, run.settings.system)
        / speed
        * (1 - step / steps)
    )
    return State(seed=seed, what=f"at step {step:,} of {steps:,}" if step else "missing", to_come=to_come)


def board(runs: "Sequence[Run]", folder: Path, shard: str | None = None) -> str:
    """What is done, running, begun and missing, row by row, with what it took and what it will take.

    Of a shard it says that there is more to the sweep than these runs.
    """
    speed, _ = speed_here(folder)
    rows: dict[str, list[State]] = {}
    for run in runs:
        rows.setdefault(run.settings.row, []).append(_state(run, speed))
    width = max(len(row) for row in rows) + 2
    lines = [f"{'row':<{width}}{'spent':>9}{'to come':>9}  seeds"]
    everything = [state for states in rows.values() for state in states]
    for row, states in [*rows.items(), ("in all", everything)]:
        spent, to_come = sum(state.spent for state in states), sum(state.to_come for state in states)
        seeds = _by_state(states) if row in rows else ""
        lines.append(f"{row:<{width}}{duration(spent):>9}{duration(to_come):>9}  {seeds}".rstrip())
    return "\n".join([*([f"Shard {shard}: these runs of the sweep, and no others."] if shard else []), *lines])


def check_room(runs: "Sequence[Run]", folder: Path) -> str:
    """What the runs still need on the disk and what is free there; DiskError where it does not suffice.

    Needed is what each keeps, and the largest once more: a file is written whole before it takes the place of another.
    """
    kept = [
        run_bytes(run.settings.hyper, run.settings.scale, run.settings.task.name, run.settings.system) for run in runs
    ]
    held = sum(run.held() for run in runs)
    needed = max(0, sum(kept) - held) + max(kept, default=0)
    there = atomic.free(folder)
    room = f"Disk: {size(needed)} needed in {folder}, {'unknown' if there is None else size(there)} free"
    if there is not None and there < needed:
        raise atomic.DiskError(
            errno.ENOSPC,
            f"{room}: checkpoints and journals of {len(runs)} runs, the largest twice. Free space there, name another "
            f"folder with --runs-dir, or ask for fewer --rows or --seeds. Nothing was begun.",
        )
    files, inodes = sum(run_files(run.settings.hyper) for run in runs), atomic.free_files(folder)
    if inodes is not None and inodes < files:
        raise atomic.DiskError(
            errno.ENOSPC,
            f"Disk: {files:,} files to be made in {folder}, {inodes:,} inodes free, however many bytes are. Delete "
            f"files there, name another folder with --runs-dir, or ask for fewer --rows or --seeds. Nothing was begun.",
        )
    return f"{room}."


def _by_state(states: Sequence[State]) -> str:
    """1 2 done, 3 missing"""
    seeds: dict[str, list[str]] = {}
    for state in states:
        seeds.setdefault(state.what, []).append(str(state.seed))
    return ", ".join(f"{' '.join(of)} {what}" for what, of in seeds.items())


def _summary(done: Record) -> str:
    if done.status == "diverged":
        return f"{done.row} seed {done.seed}: run {done.run} diverged after step {done.cost['steps']}"
    [score, *_] = done.about["scores"]
    return (
        f"{done.row} seed {done.seed}: dev PPL {done.score('dev', 'ppl'):.2f}, "
        f"{score.upper()} {done.score('dev', score):.1f}, "
        f"{done.cost['tokens_per_second']:,.0f} tokens/s, padding {done.cost['padding']:.1%}, "
        f"{duration(done.cost['train_seconds'] + done.cost['decode_seconds'])}, run {done.run}"
    )
