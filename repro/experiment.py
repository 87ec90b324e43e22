"""What every experiment file calls: rows in, a table out; and the command line they all share.

    python experiments/table3_A.py --scale smoke

Nothing heavy is imported until a run begins, so `--help` and `--dry-run` answer at once.
"""

import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType

from repro.render.text import several
from repro.results.frame import program_place
from repro.results.record import PROGRAM, Record
from repro.runs import command
from repro.runs.command import Signals, code_of, hinted
from repro.runs.forecast import forecast
from repro.runs.launch import launch, membership, refuse_other_processes
from repro.runs.machine import HIDE, refuse_cards
from repro.runs.options import Options, chosen_scale, spelled_out
from repro.runs.pool import is_worker, serve, this_command
from repro.runs.refused import refuse_systems
from repro.runs.run_dir import RunDir, folder_name, planned, shard_of
from repro.runs.scales import Scale
from repro.runs.table import Paper, Parsing, Row, Table, Translation, printed, printed_f1

# what an experiment file needs
__all__ = ["Paper", "Parsing", "Row", "Translation", "main", "main_of", "printed", "printed_f1"]


def main(table: str, rows: Sequence[Row], argv: Sequence[str] | None = None) -> None:
    """Make the missing runs of a table and print it; the `__main__` of every experiment file."""
    title, file = _running(table)
    _main(table, [Table(name=table, rows=rows, title=title, file=file)], argv)


def main_of(*experiments: ModuleType, argv: Sequence[str] | None = None) -> None:
    """The same for several experiment files at once: their rows as if they stood in one."""
    tables = [
        Table(name=one.TABLE, rows=one.ROWS, title=_first_line(one.__doc__), file=_file(one)) for one in experiments
    ]
    _main("all_tables", tables, argv)


def made_here(table: Table, options: Options) -> Record:
    """Make one run of a table in this process, unless it is finished; returns its record. For programs, as `repro.run`.

    PyTorch's number of threads and precision are restored afterwards. Raises ValueError for impossible options,
    KeyboardInterrupt where it was stopped, and RuntimeError where the run failed, for a reason that it printed.
    """
    import torch

    from repro.runs.sweep import Sweep

    options = spelled_out(options)
    if options.processes > 1:
        raise ValueError(f"It says --devices {options.processes}: expected options of one run in this process alone.")
    scale = chosen_scale(options)
    [run] = planned([table], scale, options)
    run.task.find(run.scale.corpus, options.data_dir)  # before anything takes time
    if table.name == PROGRAM:
        folder = options.results_dir / folder_name([run], scale, options)
        table = replace(table, first=program_place(folder, run.row))
        [run] = planned([table], scale, options)
    sweep = Sweep(table.name, [table], [run], [run], scale, options)
    signals = Signals()
    threads, products = torch.get_num_threads(), torch.get_float32_matmul_precision()
    try:
        code = sweep.run(signals)
    except SystemExit as stopped:  # before training a signal ends a command
        raise KeyboardInterrupt from stopped
    finally:
        signals.leave()
        torch.set_num_threads(threads)
        torch.set_float32_matmul_precision(products)
    if signals.received:
        raise KeyboardInterrupt
    [run] = sweep.runs
    if (record := run.finished()) is None:
        raise RuntimeError(f"{table.name}, {run.name} failed with exit code {code}; see above.")
    return record


def _main(name: str, tables: Sequence[Table], argv: Sequence[str] | None) -> None:
    if code := command.ended(lambda: _run(name, tables, argv)):
        sys.exit(code)


def _run(name: str, tables: Sequence[Table], argv: Sequence[str] | None) -> int:
    serves = is_worker()
    options = Options.read(name, argv)
    if options.device == "cpu":
        os.environ.update(HIDE)  # before anybody asks CUDA
    try:
        signals = Signals()
        peer = None if options.dry_run else membership(os.environ)
        options = spelled_out(options).started_as(peer)
        refuse_other_processes(peer, options.processes)
        scale = chosen_scale(options)
        whole = planned(tables, scale, options)
        asked = shard_of(whole, options.shard)
        of = f", shard {options.shard}" if options.shard else ""
        if serves:
            return serve(asked, whole, scale, options, signals)
        if not asked:
            there = several(len(whole), "run")
            print(f"{name} at scale {scale.name}{of}: nothing to do, as the sweep has only {there}.")
            return 0
        tasks = dict.fromkeys((run.task, run.scale.corpus) for run in asked)
        if options.dry_run:
            _show(name, asked, scale, options)
            return 0
        for task, corpus in tasks:
            task.find(corpus, options.data_dir)  # before anything takes time
        if options.processes > 1 and peer is None and options.on == "here":
            refuse_cards(options.products, options.processes)  # once, and not by each process
            refuse_systems(asked)
            print(f"{name} at scale {scale.name}: {options.processes} processes begin", flush=True)
            return launch(sys.argv, options.processes)
        command.outlive_reader()
        if peer is None or peer.is_first:
            # before the slow imports
            they = ", ".join(dict.fromkeys(task.name for task, _ in tasks))
            print(
                f"{name} at scale {scale.name}{of}: {several(len(asked), 'run')}, {they}, {options.seeds.told}",
                flush=True,
            )
        from repro.runs.sweep import Sweep

        # for a program, no report is made
        again, report = (this_command(), _report) if argv is None else (None, None)
        return Sweep(name, tables, whole, asked, scale, options, peer, again, report).run(signals)
    except BrokenPipeError:
        raise
    except (ValueError, OSError, ImportError) as error:
        if options.traceback:
            raise
        print(f"error: {hinted(error)}", file=sys.stderr)
        return code_of(error)


def _report(results: Path, cache: Path) -> Path:
    """Write the reports of one's own results, and return the page that leads to them."""
    from repro.web.files import write_reports

    return write_reports(results, own=True, cache=cache)[-1]


def _show(name: str, asked: Sequence[RunDir], scale: Scale, options: Options) -> None:
    """What `--dry-run` prints: what the runs will take, and where their text is if they are made here."""
    said = []
    for corpus, task in dict.fromkeys((run.scale.corpus, run.task) for run in asked if not options.hardware):
        try:
            place = task.find(corpus, options.data_dir)
            said.append(f"Text: {corpus} {task.name} is {f'in {place}' if place else 'generated when it is wanted'}.")
        except FileNotFoundError as error:
            if options.data_dir and not options.data_dir.is_dir():
                raise
            said.append(f"Text: {hinted(error)}")
    print(forecast(name, asked, scale, options), *dict.fromkeys(said), sep="\n")


def _running(table: str) -> tuple[str, Path | None]:
    """The first line and the path of the experiment file if it is what runs; else the table's name and None."""
    running = sys.modules["__main__"]
    file, named = _file(running), getattr(running, "TABLE", None)
    is_running = file is not None and table in (file.stem, named)
    return (_first_line(running.__doc__) or table, file) if is_running else (table, None)


def _file(module: ModuleType) -> Path | None:
    """The path that a module was read from; None for one that was typed in."""
    file = getattr(module, "__file__", None)
    return Path(file) if file else None


def _first_line(text: str | None) -> str:
    return (text or "").partition("\n")[0].rstrip(".")
