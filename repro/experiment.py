"""An experiment file's engine: rows in, a table out; and the command line they all share.

    python experiments/table3_A.py --scale smoke

Nothing heavy is imported until a run begins, so `--help` and `--dry-run` answer at once.
"""

import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

from repro.data.corpora import CORPORA, find
from repro.data.filters import RULES, check_rules
from repro.results.record import short
from repro.runs import command
from repro.runs.forecast import forecast
from repro.runs.launch import launch, rank
from repro.runs.scales import SCALES, Scale
from repro.runs.signals import Signals
from repro.runs.table import Paper, Row, Table, cells, printed
from repro.storage.atomic import DiskError
from repro.tracking.client import DEFAULT_URI
from repro.training.processors import processors

__all__ = ["Paper", "Row", "main", "main_of", "printed"]  # what an experiment file needs
BAD_INPUT, DISK = 2, 74  # exit codes; `repro.runs.sweep` has those of runs


def main(table: str, rows: Sequence[Row], argv: Sequence[str] | None = None) -> None:
    """Run what is missing of a table and print it; the `__main__` of every experiment file."""
    title, file = _running(table)
    _main(table, [Table(name=table, rows=rows, title=title, file=file)], argv)


def main_of(*experiments: ModuleType, argv: Sequence[str] | None = None) -> None:
    """The same for several experiment files at once: their rows as if they stood in one."""
    tables = [
        Table(name=one.TABLE, rows=one.ROWS, title=_first_line(one.__doc__), file=_file(one)) for one in experiments
    ]
    _main("all_tables", tables, argv)


def _main(name: str, tables: Sequence[Table], argv: Sequence[str] | None) -> None:
    if code := command.ended(lambda: _run(name, tables, argv)):
        sys.exit(code)


def _run(name: str, tables: Sequence[Table], argv: Sequence[str] | None) -> int:
    signals = Signals()
    options, typed = _options(name, argv)
    try:
        scale = _scale(options)
        asked = cells(tables, scale.base, seeds=options.seeds, chosen=options.rows, pair=options.pair)
        data_dir = Path(options.data_dir) if options.data_dir else None
        pairs = list(dict.fromkeys(cell.pair for cell in asked))
        if options.dry_run:
            print(forecast(name, asked, scale, Path(options.runs_dir)))
            print(*(_whereabouts(scale.corpus, pair, data_dir) for pair in pairs), sep="\n")
            return 0
        for pair in pairs:
            find(scale.corpus, pair, data_dir)  # before anything takes time
        number = rank(options.devices, os.environ)
        if options.devices > 1 and number is None:
            print(f"{name} at scale {scale.name}: {options.devices} processes begin", flush=True)
            return launch(sys.argv, options.devices)
        command.outlive_reader()
        if not number:
            # before what takes seconds
            print(f"{name} at scale {scale.name}: {len(asked)} runs, {', '.join(pairs)}", flush=True)
        from repro.runs.sweep import Sweep

        return Sweep(name, tables, asked, scale, options, typed).run(signals)
    except BrokenPipeError:
        raise
    except (ValueError, OSError, ImportError) as error:
        if options.traceback:
            raise
        print(f"error: {error}", file=sys.stderr)
        return DISK if isinstance(error, DiskError) else BAD_INPUT


def _options(table: str, argv: Sequence[str] | None) -> tuple[Any, dict[str, Any]]:
    """All options, and those that were given another value than the usual one."""
    from jsonargparse import ArgumentParser

    parser = ArgumentParser(
        prog=f"{table}.py",
        allow_abbrev=False,
        description=f"Train, decode and score the rows of {table}; finished runs are skipped, interrupted ones go on.",
    )
    add = parser.add_argument
    add("--scale", default="laptop", help=f"the world to run in: {', '.join(SCALES)}")
    add("--corpus", type=str | None, help=f"text to use instead of the scale's own: {', '.join(CORPORA)}")
    add("--pair", default="en-de", help="source and target language, such as en-de or en-fr")
    add(
        "--data-dir",
        type=str | None,
        help="folder of parallel files: train.en, train.de, dev.*, test.*; plain or .gz",
    )
    add(
        "--rows",
        nargs="+",
        type=str,
        default=[],
        help="only these rows, by name; the base row is called base",
    )
    add("--seeds", type=int, default=1, help="runs of each row, with seeds 1, 2, ...")
    add(
        "--steps",
        type=int | None,
        help="optimizer steps of the base instead of the scale's own; the warm-up stays",
    )
    add(
        "--vocab-size",
        type=int | None,
        help="shared tokens instead of the scale's or the corpus's own; the paper's first code: 40960",
    )
    add(
        "--clean",
        nargs="+",
        type=str,
        default=[],
        help=f"leave out training pairs by these rules (the paper: none): {', '.join(RULES)}",
    )
    add(
        "--fill",
        type=Literal["slots", "tokens"] | None,
        help="count what fits an update in slots, padding included, as the first code, or in tokens, as the paper",
    )
    add("--devices", type=int, default=1, help="processes that share each update (GPUs, or CPU processes)")
    add(
        "--threads",
        type=int,
        default=1,
        help="of each process, for its work on a CPU; another number sums in another order and is another run",
    )
    add(
        "--precision",
        default="fp32",
        choices=["fp32", "bf16"],
        help="of matrix products; weights are kept in fp32",
    )
    add(
        "--engine",
        default="torch",
        choices=command.ENGINES,
        help="what translates and scores in the end; those of CTranslate2 need the extra [fast]",
    )
    add("--tracking-uri", default=DEFAULT_URI, help="MLflow store")
    add("--results-dir", default="results/own", help="where your records and tables go; git ignores results/own")
    add("--runs-dir", default="runs", help="where checkpoints and journals are kept")
    add("--cache-dir", default="cache", help="where prepared text is kept")
    add("--fork", action="store_true", help="begin anew where an unfinished run has other settings, data or code")
    add("--dry-run", action="store_true", help="show rows, parameters, operations and time; train nothing")
    add("--traceback", action="store_true", help="show where in the code an error came from")
    words = sys.argv[1:] if argv is None else argv
    if wrong := command.unknown_option(words, parser._option_string_actions):
        parser.exit(BAD_INPUT, f"error: {wrong}\n")
    options = parser.parse_args(words)
    return options, command.typed(vars(options), vars(parser.get_defaults()))


def _scale(options: Any) -> Scale:
    """The scale with the budget and the text that the command line asks for."""
    if options.scale not in SCALES:
        raise ValueError(f"Unknown scale {options.scale!r}; expected one of {', '.join(SCALES)}.")
    scale = SCALES[options.scale]
    corpus = options.corpus or ("folder" if options.data_dir and scale.corpus == "grammar" else scale.corpus)
    if corpus not in CORPORA:
        raise ValueError(f"Unknown corpus {corpus!r}; expected one of {', '.join(CORPORA)}.")
    for name in ("seeds", "devices", "threads", "steps", "vocab_size"):
        if getattr(options, name) is not None and getattr(options, name) < 1:
            raise ValueError(f"--{name.replace('_', '-')} must be at least 1, got {getattr(options, name)}.")
    if options.threads > processors():
        raise ValueError(
            f"--threads {options.threads}: expected at most the {processors()} processors that this process may use, "
            "since more threads wait for each other."
        )
    rules, own = check_rules(options.clean), replace(scale, corpus=corpus).subwords(options.pair)
    if own.kind == "given" and options.vocab_size is not None:
        raise ValueError(
            f"--vocab-size {options.vocab_size}: the text of {corpus} comes in tokens of its own. Leave it out."
        )
    base = replace(scale.base, steps=options.steps or scale.base.steps)
    # another world than the scale's own has a name of its own, so that its records never stand among the scale's
    departures = {
        corpus: corpus != scale.corpus,
        options.pair: options.pair != "en-de",
        f"{base.steps}-steps": base.steps != scale.base.steps,
        f"{options.devices}-devices": options.devices != 1,
        f"{options.threads}-threads": options.threads != 1,
        options.precision: options.precision != "fp32",
        options.engine: options.engine != "torch",
        f"{options.vocab_size}-pieces": options.vocab_size not in (None, own.size),
        f"by-{options.fill}": options.fill not in (None, scale.fill),
        "-".join(["clean", *rules]): bool(rules),
    }
    name = short("-".join([scale.name, *(departure for departure, made in departures.items() if made)]))
    return replace(
        scale,
        name=name,
        base=base,
        corpus=corpus,
        vocab_size=options.vocab_size or scale.vocab_size,
        fill=options.fill or scale.fill,
        rules=rules,
    )


def _whereabouts(corpus: str, pair: str, data_dir: Path | None) -> str:
    """Whether the text is there."""
    try:
        place = find(corpus, pair, data_dir)
    except FileNotFoundError as error:
        return f"Text: {error}"
    return (
        f"Text: {corpus} {pair} is in {place}." if place else f"Text: {corpus} {pair} is generated when it is wanted."
    )


def _running(table: str) -> tuple[str, Path | None]:
    """The first line of the experiment file and its place, where it is what runs; else the table's name."""
    running = sys.modules["__main__"]
    file = _file(running)
    return (_first_line(running.__doc__) or table, file) if file and file.stem == table else (table, None)


def _file(module: ModuleType) -> Path | None:
    """Where a module was read from; None of one that was typed in."""
    file = getattr(module, "__file__", None)
    return Path(file) if file else None


def _first_line(text: str | None) -> str:
    return (text or "").partition("\n")[0].rstrip(".")
