"""The runs of one table or several: finished runs are skipped, and an executor makes or resumes the others."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from signal import SIGTERM
from typing import TYPE_CHECKING, Any

from rich.cells import cell_len

from repro.claims.decisions import FIRST_SEED, SEEDS
from repro.pages.build import console, write_scale
from repro.pages.scale_data import check_beside
from repro.render.text import several, shown
from repro.results import artifacts
from repro.results.frame import ResultSet, note_rows
from repro.results.places import BEST, PUBLISHED
from repro.results.provenance import is_committed
from repro.results.record import Record, path
from repro.results.sentences import has_sentences
from repro.runs import command
from repro.runs.command import Signals
from repro.runs.forecast import check_room, duration, estimates, memory_of, ordered, parallelism
from repro.runs.machine import refuse_cards
from repro.runs.options import USUAL, Options, refuse_published
from repro.runs.outputs import note_beside
from repro.runs.pool import BUSY, DIVERGED, Executor, InProcess, JobResult, Pool
from repro.runs.progress import Progress, overview
from repro.runs.refused import refuse_long_lines, refuse_systems
from repro.runs.run_dir import RunDir, with_texts
from repro.runs.scales import Scale
from repro.runs.table import Table, Task, listed
from repro.storage import atomic
from repro.storage.lock import locked
from repro.tracking.client import Tracker
from repro.tracking.run_folder import RECORD
from repro.tracking.views import install_views, view_of
from repro.training.run_spec import Peer

if TYPE_CHECKING:
    from repro.training.group import Group

BETWEEN = b"Stopped between runs. What is finished is kept; the same command makes the rest."  # in answer to a signal


@dataclass
class Sweep:
    """The runs of some tables at one scale, or the shard of them that the options ask for."""

    name: str
    tables: Sequence[Table]
    whole: Sequence[RunDir]  # all runs of the tables
    runs: list[RunDir]  # those to be made, whose texts are opened here
    scale: Scale
    options: Options
    peer: Peer | None = None
    again: Sequence[str] | None = None  # the command line that starts this command again, if there is one
    report: Callable[[Path, Path], Path] | None = None  # makes one from the folder of results and the cache of text

    @property
    def is_first(self) -> bool:
        """Whether this process is the one that writes, of those that share each update."""
        return self.peer is None or self.peer.is_first

    @property
    def folder(self) -> Path:
        """Where the records of the open runs are kept."""
        return self.options.results_dir / self.runs[0].scale.name

    def run(self, signals: Signals) -> int:
        """Make all runs, together with the processes that share each update; returns the exit code."""
        options, started, outcomes, group = self.options, time.monotonic(), list[JobResult](), None
        with ExitStack() as at_the_end:
            if self.peer and self.peer.processes > 1:
                from repro.training.group import Group

                group = at_the_end.enter_context(Group(self.peer))
            self._refuse()
            progress = at_the_end.enter_context(Progress(self.name, len(self.runs), quiet=not self.is_first))
            tracker = Tracker(options.tracking_uri, runs=options.runs_dir, tell=progress.say)
            tracker.look()
            executor = at_the_end.enter_context(self._executor(tracker, signals, group))
            if executor.about:
                progress.say(executor.about)
            self.runs = runs = with_texts(self.runs, self.whole, self.scale, options, progress.say)
            self._refuse_runs()
            expected, measured = estimates(runs, options)
            progress.say(overview(runs, expected, measured, executor.n_workers, options.shard))
            to_come = [run for run in runs if not run.finished()]
            if self.is_first and to_come:
                progress.say(check_room(to_come, options.runs_dir))
                pairs = [(run, table) for run in to_come for table in self.tables if table.name in run.tables]
                views = dict.fromkeys(view_of(run.tags, table.name, table.title) for run, table in pairs)
                at_the_end.callback(install_views, tracker, views)
            signals.at_once = BETWEEN
            seconds = {run.number: of for run, of in zip(runs, expected, strict=True)}
            progress.expected = {run.number: seconds[run.number] * run.to_train() for run in to_come}
            left = []
            for run in (runs[i] for i in ordered(runs, expected, executor.n_workers)):
                # processes that share each update skip no run by themselves: they have to agree on it
                if group is None and (record := run.finished()):
                    progress.say(f"{run.name}: finished before, in {run.folder}")
                    self._keep(JobResult(run, record), outcomes, progress, tracker)
                else:
                    left.append(run)
            for outcome in executor.make(left, progress) if left else ():
                self._keep(outcome, outcomes, progress, tracker)
            not_begun = bool(signals.received) and len(outcomes) < len(runs)
            if not_begun or any(outcome.code > 128 for outcome in outcomes):
                return 128 + (signals.received or SIGTERM)  # another process of this run may have received the signal
            if self.is_first:
                self._close(outcomes, time.monotonic() - started, progress)
        return exit_code(outcomes) if self.is_first else next((one.code for one in outcomes if one.code), 0)

    def _refuse(self) -> None:
        """Raise for what would fail after hours, and do so before the slow imports."""
        options = self.options
        if options.backend != USUAL.backend:
            from repro.decoding.ctranslate import check_installed

            check_installed()
        if options.on == "here":
            refuse_cards(options.products)
        refuse_systems(self.runs)
        refuse_published(options.results_dir)
        for folder in (options.results_dir, options.runs_dir, options.cache_dir):
            atomic.check_folder(folder)
            atomic.sweep(folder, alone=False)

    def _executor(self, tracker: Tracker, signals: Signals, group: "Group | None") -> Executor:
        """Start what the options ask for. Raises ValueError for impossible options."""
        options, again = self.options, self.again
        if options.on == "here":
            n_jobs, why = parallelism(self.runs, options)
            if n_jobs == 1 or (again is None and options.jobs is None):
                return InProcess(tracker, signals, group)
        if again is None:
            raise ValueError(
                f"{f'--jobs {options.jobs}' if options.on == 'here' else f'--on {options.on}'}: each run starts the "
                "experiment's file again, but this was not started from one. Type: python FILE.py and the same options."
            )
        if options.on == "here":
            return Pool(again, options.runs_dir, n_jobs, signals, why)
        if group:
            raise ValueError(
                f"--on {options.on}: type this once. One run on several machines is torchrun's, without --on."
            )
        from repro.runs.on_ray import OnRay

        return OnRay(options, max(map(memory_of, self.runs)), len(self.runs), len(self.whole), again, signals)

    def _refuse_runs(self) -> None:
        """Raise for a damaged record, a damaged file beside one, a run that changed, or lines too long for a row."""
        made_again = {(run.table, run.row, run.spec.seed) for run in self.runs}  # and the files beside
        there = ResultSet.read_own(self.folder, PUBLISHED).everything
        others = [one for one in there if (one.table, one.row, one.seed) not in made_again]
        check_beside(others, self.options.results_dir)
        for run in self.runs if self.is_first and not self.options.fork else ():
            run.refuse_if_changed()
        if self.is_first:
            refuse_long_lines(self.runs)

    def _keep(self, outcome: JobResult, outcomes: list[JobResult], progress: Progress, tracker: Tracker) -> None:
        """Add it to the outcomes, save its record where tables are made from, and note which rows the tables have."""
        outcomes.append(outcome)
        run, record, results = *outcome[:2], self.options.results_dir
        if record and self.is_first:
            # noted after each run: a killed sweep can be published
            note_rows(self.folder, listed(self.tables, self.scale.base, equal_updates=self.scale.equal_updates))
            try:
                note_beside(run, record, tracker, progress.say, lambda text, n: lambda done: None)
            finally:  # what could be made: it is optional, but where there is a record, it is whole
                artifacts.copy(run.folder / RECORD, path(results, record), record.run)
                record.save(path(results, record))
            progress.say(_summary(record))
        progress.finish_run(run.number)

    def _close(self, outcomes: Sequence[JobResult], seconds: float, progress: Progress) -> None:
        records = [one.record for one in outcomes if one.record]
        folder, names, options = self.folder, [table.name for table in self.tables], self.options
        uncommitted = [table.name for table in self.tables if table.file and is_committed(table.file) is False]
        atomic.make_folder(folder)
        with locked(folder):  # of several sweeps, the last to write pages has read all records
            mine = ResultSet.read_own(folder, PUBLISHED, uncommitted)
            written = write_scale(mine) if records else []
            report = self.report(options.results_dir, options.cache_dir) if written and self.report else None
        elsewhere = [one.run.name for one in outcomes if one.code == BUSY]
        failed = [one.run.name for one in outcomes if one.code not in (0, BUSY)]
        finished = [(one.run, one.record) for one in outcomes if one.record and one.record.status == "finished"]
        progress.show("\n" + console(mine, names))
        of_shard = f" of shard {options.shard} (the tables show every record that is there)" if options.shard else ""
        said = [
            *([f"Left to other processes: {', '.join(elsewhere)}."] if elsewhere else []),
            *([f"Failed (see above): {', '.join(failed)}."] if failed else []),
            f"{several(len(records), 'run')}{of_shard} in {duration(seconds)}.",
            *translations(finished),
            f"\nA report for the browser:\n  {report}" if report else "",
            f"Tables and verdicts:\n  {folder / 'README.md'}\n" if written else "No table yet.",
        ]
        if finished:
            task, is_file = self.runs[-1].task, self.tables[0].file is not None
            said += what_next(self.name, names[0], folder.name, options.typed, task, is_file=is_file)
        progress.say("\n".join(said))


def exit_code(outcomes: Sequence[JobResult]) -> int:
    """The exit code of a complete sweep: of the first run that failed, else BUSY, else DIVERGED, else 0."""
    codes = [outcome.code for outcome in outcomes]
    failed = [code for code in codes if code not in (0, BUSY)]
    diverged = any(outcome.record and outcome.record.status == "diverged" for outcome in outcomes)
    return failed[0] if failed else BUSY if BUSY in codes else DIVERGED if diverged else 0


def _summary(done: Record) -> str:
    if done.status == "diverged":
        return f"{done.row} seed {done.seed}: run {done.run} diverged after step {done.cost['steps']}"
    [score, *_], cost = done.about["scores"], done.cost
    return (
        f"{done.row} seed {done.seed}: dev PPL {done.score('dev', 'ppl'):.2f}, {score.upper()} "
        f"{done.score('dev', score):.1f}, {cost['tokens_per_second']:,.0f} tokens/s, padding {cost['padding']:.1%}, "
        f"{duration(cost['train_seconds'] + cost['decode_seconds'])}, run {done.run}"
    )


# Below the table: sentences that the best run translates, where to read on, what to type next ---------------------

SHOWN, LONGEST = 3, 74  # sentences, and the places that each takes at most: a line each
ONCE = ("fork", "dry_run", "hardware", "price", "traceback", "shard", "on")  # do not belong to the next command


def translations(finished: Sequence[tuple[RunDir, Record]]) -> Iterator[str]:
    """The first short sentences of dev, each with what the best of these runs made of it, if one translates."""
    scored = [(run, record) for run, record in finished if has_sentences(record) and (run.folder / "dev.hyp").exists()]
    if not scored:
        return
    run, record = max(reversed(scored), key=lambda one: one[1].score("dev", "bleu") or 0.0)  # as `best` chooses
    pairs = (pair for text in run.prepared.dev.text for pair in text.pairs())
    lines = zip(pairs, (run.folder / "dev.hyp").read_bytes().decode().split("\n"), strict=False)
    # by the columns that a terminal takes, where control characters are shown by their names
    short = [(pair[0], made) for pair, made in lines if max(cell_len(shown(one)) for one in (pair[0], made)) <= LONGEST]
    if short:
        yield f"\nThe best of them, {record.row} seed {record.seed}, translates:"
    for source, made in short[:SHOWN]:
        yield f"  {source}\n    {made or '(nothing)'}"


def what_next(name: str, table: str, scale: str, typed: Mapping[str, Any], task: Task, *, is_file: bool) -> list[str]:
    """Commands to go on with, with the same settings and the same folders: the options that were typed are kept.

    `task` is that of the runs. Rows of a program (not `is_file`) have no command that makes or opens them.
    """
    again = {option: value for option, value in typed.items() if option not in ONCE}
    more = again | {"seeds": typed.get("seeds", USUAL.seeds).more(FIRST_SEED, SEEDS)}
    store, runs = ({of: typed[of]} if of in typed else {} for of in ("tracking_uri", "runs_dir"))
    view = {"table": table, "scale": scale} | store
    use = f"{command.ours(task.command, BEST, 'FILE')} {command.command_line(runs)}".rstrip()
    commands = {"compare the runs in MLflow": f"{command.ours('ui')} {command.command_line(view)}"}
    if is_file:
        seeds = f"intervals over seeds; those from {FIRST_SEED} on count as evidence"
        commands[f"{task.command} with the best run"] = use
        commands[seeds] = f"{command.experiment_command(name)} {command.command_line(more)}"
    return ["What next:", *(f"  {why}:\n    {line}" for why, line in commands.items())]
