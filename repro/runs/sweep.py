"""The runs of one table or several: finished runs are skipped, and an executor makes or resumes the others."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from signal import SIGTERM
from typing import TYPE_CHECKING, Any

from rich.cells import cell_len

from repro.claims.decisions import FIRST_SEED, SEEDS
from repro.pages.build import console, write_scale
from repro.pages.scale_data import check_beside
from repro.render.text import several, shown
from repro.results.frame import ResultSet, note_rows
from repro.results.places import BEST, PUBLISHED
from repro.results.provenance import is_committed
from repro.results.record import Record, path
from repro.results.sentences import has_sentences
from repro.runs import command
from repro.runs.executors.executor import BUSY, DIVERGED, Executor, InProcess, Job, JobResult, made_by
from repro.runs.executors.pool import Pool
from repro.runs.forecast import check_room, duration, estimates, memory_of, ordered, parallelism
from repro.runs.line_lengths import refuse_long_lines
from repro.runs.machine import refuse_cards
from repro.runs.options import USUAL, Options, refuse_published
from repro.runs.outputs import keep_beside, keep_outputs
from repro.runs.progress import Progress, overview
from repro.runs.refused import refuse_systems
from repro.runs.run_dir import RunDir, shard_of
from repro.runs.scales import Scale
from repro.runs.session import Session
from repro.runs.signals import Signals
from repro.runs.table import Table, listed
from repro.runs.task import Task
from repro.storage import atomic
from repro.storage.lock import locked
from repro.tracking.client import Tracker
from repro.tracking.views import View, install_views, view_of
from repro.training.run_spec import Peer

if TYPE_CHECKING:
    from repro.training.group import Group

# the answer to a signal that comes between two runs of a sweep
BETWEEN = b"Stopped between runs. What is finished is kept; the same command makes the rest."


class Sweep:
    """The runs of some tables at one scale, or the shard of them that the options ask for.

    `again` is the command line that starts this command again, if there is one. `report`, if given, makes a report for
    the browser from the folder of results and the cache of generated text, and returns its path.
    """

    def __init__(
        self,
        name: str,
        tables: Sequence[Table],
        whole: Sequence[RunDir],
        scale: Scale,
        options: Options,
        peer: Peer | None = None,
        again: Sequence[str] | None = None,
        report: Callable[[Path, Path], Path] | None = None,
    ) -> None:
        self.name, self.tables, self.options, self.again, self.report = name, tables, options, again, report
        self.asked = shard_of(whole, options.shard)  # whose text is not open
        self.results, self.runs, self.cache = options.results_dir, options.runs_dir, options.cache_dir
        self.peer, self.is_first = peer, peer is None or peer.is_first
        self.session = Session(scale, options, whole)

    def run(self, signals: Signals) -> int:
        """Make all runs, together with the processes that share each update; returns the exit code."""
        if self.peer is None or self.peer.processes == 1:
            return self._run_all(signals)
        from repro.training.group import Group

        with Group(self.peer) as group:
            return self._run_all(signals, group)

    def _run_all(self, signals: Signals, group: "Group | None" = None) -> int:
        self._refuse()
        started = time.monotonic()
        with ExitStack() as at_the_end:
            progress = at_the_end.enter_context(Progress(self.name, len(self.asked), quiet=not self.is_first))
            tracker = Tracker(self.options.tracking_uri, runs=self.runs, tell=progress.say)
            tracker.look()
            executor = chosen(self.session, self.asked, self.again, tracker, signals, group)
            at_the_end.enter_context(executor)
            if executor.about:
                progress.say(executor.about)
            self.session.open_texts(list(dict.fromkeys(run.task for run in self.asked)), progress.say)
            runs = [self.session.opened(run) for run in self.asked]
            work = [Job(number=number, run=run) for number, run in enumerate(runs)]
            self._refuse_runs(runs)
            expected, measured = estimates(runs, self.options)
            progress.say(overview(runs, expected, measured, executor.n_workers, self.options.shard))
            if self.is_first and (to_come := [run for run in runs if not run.finished()]):
                progress.say(check_room(to_come, self.runs))
                at_the_end.callback(install_views, tracker, self._views(to_come))
            signals.at_once = BETWEEN
            progress.expected = {
                one.number: seconds * one.run.to_train()
                for one, seconds in zip(work, expected, strict=True)
                if not one.run.finished()
            }
            order = ordered(runs, expected, executor.n_workers)
            outcomes = []
            for outcome in made_by(executor, [work[i] for i in order], progress, group):
                outcomes.append(outcome)
                self._keep(outcome, progress, tracker)
                progress.finish_run(next(one.number for one in work if one.run is outcome.run))
            not_begun = bool(signals.received) and len(outcomes) < len(work)
            if not_begun or any(outcome.code > 128 for outcome in outcomes):
                return 128 + (signals.received or SIGTERM)  # another process of this run may have received the signal
            if self.is_first:
                self._close(outcomes, time.monotonic() - started, progress)
        return exit_code(outcomes) if self.is_first else next((one.code for one in outcomes if one.code), 0)

    def _refuse(self) -> None:
        """Raise for what would fail after hours, and do so before the slow imports."""
        if self.options.backend != USUAL.backend:
            from repro.decoding.ctranslate import check_installed

            check_installed()
        if self.options.on == "here":
            refuse_cards(self.options.products)
        refuse_systems(self.asked)
        refuse_published(self.results)
        for folder in (self.results, self.runs, self.cache):
            atomic.check_folder(folder)
            atomic.sweep(folder, alone=False)

    def _refuse_runs(self, runs: Sequence[RunDir]) -> None:
        """Raise for a damaged record, a damaged file beside one, a run that changed, or lines too long for a row."""
        there = ResultSet.read_own(self.results / self.session.scale.name, PUBLISHED)
        made_again = {(run.entry.table, run.entry.row, run.spec.seed) for run in runs}  # with the files beside them
        others = [one for one in there.everything if (one.table, one.row, one.seed) not in made_again]
        check_beside(others, self.results)
        if self.is_first and not self.options.fork:
            for run in runs:
                run.refuse_if_changed()
        if self.is_first:
            refuse_long_lines(runs)

    def _keep(self, outcome: JobResult, progress: Progress, tracker: Tracker) -> None:
        """Save the record of a run where tables are made from, and note which rows the tables have."""
        if outcome.record and self.is_first:
            of_scale = self.session.scale  # noted after each run: a killed sweep can be published
            rows = listed(self.tables, of_scale.base, equal_updates=of_scale.equal_updates)
            note_rows(self.results / of_scale.name, rows)
            keep_outputs(outcome.run, outcome.record, self.results)
            outcome.record.save(path(self.results, outcome.record))  # last: where there is a record, there are both
            try:  # these are optional, and the next run may need less
                keep_beside(outcome.run, outcome.record, self.results, tracker, progress.say)
            except MemoryError as error:  # under `ulimit -v`, say
                progress.say(f"{outcome.run.name}: files beside its record are missing: out of memory ({error}).")
            progress.say(_summary(outcome.record))

    def _views(self, runs: Sequence[RunDir]) -> dict[View, None]:
        """The MLflow views that `python -m repro ui` opens, of the tables that show the runs, each once."""
        return {
            view_of(run.tags, table.name, table.title): None
            for run in runs
            for table in self.tables
            if table.name in run.entry.tables
        }

    def _close(self, outcomes: Sequence[JobResult], seconds: float, progress: Progress) -> None:
        records = [one.record for one in outcomes if one.record]
        folder, names = self.results / self.session.scale.name, [table.name for table in self.tables]
        uncommitted = [table.name for table in self.tables if table.file and is_committed(table.file) is False]
        atomic.make_folder(folder)
        with locked(folder):  # of several sweeps, the last to write pages has read all records
            mine = ResultSet.read_own(folder, PUBLISHED, uncommitted)
            written = write_scale(mine) if records else []
            report = self.report(self.results, self.cache) if written and self.report else None
        elsewhere = [one.run.name for one in outcomes if one.code == BUSY]
        failed = [one.run.name for one in outcomes if one.code not in (0, BUSY)]
        finished = [one for one in outcomes if one.record and one.record.status == "finished"]
        progress.show("\n" + console(mine, names))
        shard = self.options.shard
        of_shard = f" of shard {shard} (the tables show every record that is there)" if shard else ""
        said = [
            *([f"Left to other processes: {', '.join(elsewhere)}."] if elsewhere else []),
            *([f"Failed (see above): {', '.join(failed)}."] if failed else []),
            f"{several(len(records), 'run')}{of_shard} in {duration(seconds)}.",
            *translations([(one.run, one.record) for one in finished if one.record]),
            *pages(folder if written else None, report),
        ]
        if finished:
            scale, task, file = self.session.scale.name, self.asked[-1].task, self.tables[0].file
            typed, is_file = self.options.typed, file is not None
            said += what_next(self.name, names[0], scale, typed, task, is_file=is_file)
        progress.say("\n".join(said))


def chosen(
    session: Session,
    runs: Sequence[RunDir],
    again: Sequence[str] | None,
    tracker: Tracker,
    signals: Signals,
    group: "Group | None" = None,
) -> Executor:
    """Start the executor that the options ask for. Raises ValueError for impossible options.

    `again` is the command line that starts this command again, None where nothing can.
    """
    options = session.options
    in_process = InProcess(tracker, signals, group)
    on = options.on
    if on == "here":
        n_jobs, why = parallelism(runs, options)
        if n_jobs == 1 or (again is None and options.jobs is None):
            return in_process
    if again is None:
        raise ValueError(
            f"{f'--jobs {options.jobs}' if on == 'here' else f'--on {on}'}: each run starts the experiment's file "
            "again, but this was not started from one. Type: python FILE.py and the same options."
        )
    if on == "here":
        return Pool(again, options.runs_dir, n_jobs, signals, why)
    if group:
        raise ValueError(
            f"--on {on}: the processes of a run share one machine, and are started there. Type the command once; a run "
            "on several machines is started by torchrun or srun, without --on."
        )
    from repro.runs.executors.on_ray import OnRay

    numbers = [session.whole.index(run) + 1 for run in runs]
    return OnRay(options, max(map(memory_of, runs)), numbers, len(session.whole), again, signals)


def exit_code(outcomes: Sequence[JobResult]) -> int:
    """The exit code of a complete sweep: of the first run that failed, else BUSY, else DIVERGED, else 0."""
    codes = [outcome.code for outcome in outcomes]
    failed = [code for code in codes if code not in (0, BUSY)]
    diverged = any(outcome.record and outcome.record.status == "diverged" for outcome in outcomes)
    return failed[0] if failed else BUSY if BUSY in codes else DIVERGED if diverged else 0


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


# Below the table: sentences that the best run translates, where to read on, what to type next ---------------------
#
# Ids, paths and commands stand on lines of their own: a terminal of 80 columns breaks no word of the others.

SHOWN, LONGEST = 3, 74  # sentences, and the places that each takes at most: a line each
# options that do not belong to the next command
ONCE = ("fork", "dry_run", "hardware", "price", "traceback", "shard", "on")


def translations(finished: "Sequence[tuple[RunDir, Record]]") -> Iterator[str]:
    """The first short sentences of dev, each with what the best of these runs made of it, if one translates."""
    scored = [(run, record) for run, record in finished if has_sentences(record) and (run.folder / "dev.hyp").exists()]
    if not scored:
        return
    run, record = max(reversed(scored), key=lambda one: one[1].score("dev", "bleu") or 0.0)  # as `best` chooses
    pairs = (pair for text in run.prepared.dev.text for pair in text.pairs())
    lines = zip(pairs, (run.folder / "dev.hyp").read_bytes().decode().split("\n"), strict=False)
    short = [(source, made) for (source, _), made in lines if max(map(_places, (source, made))) <= LONGEST]
    if short:
        yield f"\nThe best of them, {record.row} seed {record.seed}, translates:"
    for source, made in short[:SHOWN]:
        yield f"  {source}\n    {made or '(nothing)'}"


def _places(line: str) -> int:
    """Columns that a line takes in a terminal, where control characters are shown by their names."""
    return cell_len(shown(line))


def pages(folder: Path | None, report: Path | None) -> list[str]:
    """Where to read what came out: of the tables in `folder`, and of the report where one was made."""
    if folder is None:
        return ["No table yet."]
    there = {"A report for the browser": report, "Tables and verdicts": folder / "README.md"}
    return ["", *(f"{what}:\n  {where}" for what, where in there.items() if where), ""]


def what_next(name: str, table: str, scale: str, typed: Mapping[str, Any], task: Task, *, is_file: bool) -> list[str]:
    """Commands to go on with, with the same settings and the same folders: the options that were typed are kept.

    `task` is that of the runs. Rows of a program (not `is_file`) have no command that makes or opens them.
    """
    again = {option: value for option, value in typed.items() if option not in ONCE}
    more = again | {"seeds": typed.get("seeds", USUAL.seeds).more(FIRST_SEED, SEEDS)}
    view = {"table": table, "scale": scale} | _kept(typed, "tracking_uri")
    use = f"{command.ours(task.command, BEST, 'FILE')} {command.command_line(_kept(typed, 'runs_dir'))}".rstrip()
    commands = {"compare the runs in MLflow": f"{command.ours('ui')} {command.command_line(view)}"}
    if is_file:
        seeds = f"intervals over seeds; those from {FIRST_SEED} on count as evidence"
        commands[f"{task.command} with the best run"] = use
        commands[seeds] = f"{command.experiment_command(name)} {command.command_line(more)}"
    return ["What next:", *(f"  {why}:\n    {line}" for why, line in commands.items())]


def _kept(typed: Mapping[str, Any], option: str) -> dict[str, Any]:
    """The typed option, if it was typed."""
    return {option: typed[option]} if option in typed else {}
