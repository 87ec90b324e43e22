"""An experiment file's engine: rows in, a table out; and the command line they all share.

    python experiments/table3_A.py --scale smoke

Nothing heavy is imported until a run begins, so `--help` and `--dry-run` answer at once.
"""

import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from repro.cost import PAPER_VOCABULARY, Text, n_parameters, training_flops
from repro.data.corpus import CORPORA
from repro.hyper import BASE, Hyper
from repro.record import BASE as BASE_TABLE
from repro.record import Record, load, path
from repro.scales import SCALES, Scale
from repro.tracking import DEFAULT_URI

BAD_INPUT, DIVERGED = 2, 70  # exit codes; a signal gives 128 + its number
FLOPS_PER_CORE = 40e9  # sustained, for forecasts only, until a finished run on this machine gives a better figure


@dataclass(frozen=True, kw_only=True)
class Paper:
    """What the paper prints for a row of Table 3; params in millions."""

    ppl: float
    bleu: float
    params: float | None = None


@dataclass(frozen=True)
class Row:
    """One line of a table: a function from the base to the row, and the paper's numbers for it."""

    name: str
    change: Callable[[Hyper], Hyper]
    paper: Paper


BASE_ROW = Row(BASE_TABLE, lambda base: base, Paper(ppl=4.92, bleu=25.8, params=65))
"""The base model belongs to every table, and is trained once for all of them. Paper: Table 3, first line."""


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One run to be made: a row and a seed."""

    table: str
    position: int
    row: Row
    hyper: Hyper
    seed: int


def main(table: str, rows: Sequence[Row], argv: Sequence[str] | None = None) -> None:
    """Run what is missing of a table and print it; the `__main__` of every experiment file."""
    options = _options(table, argv)
    try:
        scale = _scale(options)
        cells = _cells(table, rows, scale, options)
        if options.dry_run:
            print(forecast(table, cells, scale, Path(options.runs_dir)))
            return
        if options.devices > 1 and "LOCAL_RANK" not in os.environ:
            _relaunch(options.devices)
        code = _Experiment(table, rows, cells, scale, options).run()
    except (ValueError, OSError) as error:
        if options.traceback:
            raise
        sys.exit(_bad_input(error))
    if code:
        sys.exit(code)


def _options(table: str, argv: Sequence[str] | None) -> Any:
    from jsonargparse import ArgumentParser

    parser = ArgumentParser(
        prog=f"{table}.py",
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
    add("--devices", type=int, default=1, help="processes that share each update (GPUs, or CPU processes)")
    add(
        "--precision",
        default="fp32",
        choices=["fp32", "bf16"],
        help="of matrix products; weights are kept in fp32",
    )
    add("--tracking-uri", default=DEFAULT_URI, help="MLflow store")
    add("--results-dir", default="results", help="where records and tables go")
    add("--runs-dir", default="runs", help="where checkpoints and journals are kept")
    add("--cache-dir", default="cache", help="where prepared text is kept")
    add("--dry-run", action="store_true", help="show rows, parameters, operations and time; train nothing")
    add("--traceback", action="store_true", help="show where in the code an error came from")
    return parser.parse_args(argv)


def _scale(options: Any) -> Scale:
    """The scale with the budget and the text that the command line asks for."""
    if options.scale not in SCALES:
        raise ValueError(f"Unknown scale {options.scale!r}; expected one of {', '.join(SCALES)}.")
    scale = SCALES[options.scale]
    corpus = options.corpus or ("folder" if options.data_dir and scale.corpus == "grammar" else scale.corpus)
    if corpus not in CORPORA:
        raise ValueError(f"Unknown corpus {corpus!r}; expected one of {', '.join(CORPORA)}.")
    for name in ("seeds", "devices", "steps"):
        if getattr(options, name) is not None and getattr(options, name) < 1:
            raise ValueError(f"--{name} must be at least 1, got {getattr(options, name)}.")
    base = replace(scale.base, steps=options.steps or scale.base.steps)
    # another world than the scale's own has a name of its own, so that its records never stand among the scale's
    departures = {
        corpus: corpus != scale.corpus,
        options.pair: options.pair != "en-de",
        f"{base.steps}-steps": base.steps != scale.base.steps,
        options.precision: options.precision != "fp32",
    }
    name = "-".join([scale.name, *(departure for departure, made in departures.items() if made)])
    return replace(scale, name=name, base=base, corpus=corpus)


def _cells(table: str, rows: Sequence[Row], scale: Scale, options: Any) -> list[Cell]:
    """Base and rows at this scale, seeds outer and rows inner: a stopped sweep has every row."""
    known = [BASE_ROW.name, *(row.name for row in rows)]
    for name in options.rows:
        if name not in known:
            raise ValueError(f"Unknown row {name!r} of {table}; expected some of {', '.join(known)}.")
    placed = [(BASE_TABLE, -1, BASE_ROW), *((table, i, row) for i, row in enumerate(rows))]
    return [
        Cell(table=of, position=i, row=row, hyper=row.change(scale.base), seed=seed)
        for seed in range(1, options.seeds + 1)
        for of, i, row in placed
        if not options.rows or row.name in options.rows
    ]


def forecast(table: str, cells: Sequence[Cell], scale: Scale, runs: Path) -> str:
    """Rows, parameters, operations and time before anything is trained."""
    speed, source = _measured_speed(runs)
    if not speed:
        speed, source = (
            FLOPS_PER_CORE * (os.cpu_count() or 1),
            "assumed for this processor; no finished run yet",
        )
    lines = [f"{'row':<10}{'seed':>5}{'steps':>9}{'params':>10}{'at paper size':>15}{'FLOPs':>10}{'time':>10}"]
    total = 0.0
    for cell in cells:
        tokens = float(cell.hyper.steps * scale.batch_tokens)
        text = Text(sentences=tokens / scale.sentence_tokens, source_tokens=tokens, target_tokens=tokens)
        flops = training_flops(cell.hyper, scale.vocab_size, text)
        total += flops / speed
        lines.append(
            f"{cell.row.name:<10}{cell.seed:>5}{cell.hyper.steps:>9,}"
            f"{n_parameters(cell.hyper, scale.vocab_size) / 1e6:>9.2f}M"
            f"{n_parameters(cell.row.change(BASE), PAPER_VOCABULARY) / 1e6:>14.1f}M"
            f"{flops:>10.1e}{_duration(flops / speed):>10}"
        )
    return "\n".join(
        [
            f"{table} at scale {scale.name}: {len(cells)} runs on {scale.corpus}; may claim {scale.claim}.",
            *lines,
            f"Training in all about {_duration(total)} at {speed:.1e} FLOP/s ({source}).",
        ]
    )


def _measured_speed(runs: Path) -> tuple[float, str]:
    """Floating-point operations per second of the newest finished run here; 0 if there is none."""
    records = sorted(runs.glob("*/record.json"), key=lambda found: found.stat().st_mtime)
    for newest in reversed(records):
        try:
            cost = load(newest).cost
        except ValueError:
            continue  # of another format or damaged; it is named when its run is asked for
        if cost["train_seconds"]:
            return cost["flops"] / cost["train_seconds"], f"measured in {newest.parent}"
    return 0.0, ""


def _duration(seconds: float) -> str:
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.0f} s"


def _relaunch(devices: int) -> NoReturn:
    """Start this very command once a device, under PyTorch's own launcher."""
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={devices}"]
    sys.stdout.flush()
    os.execv(sys.executable, [*launcher, *sys.argv])


def _bad_input(error: Exception) -> int:
    print(f"error: {error}", file=sys.stderr)
    return BAD_INPUT


class _Signals:
    """Ctrl-C and SIGTERM stop the run at its next step boundary, with a checkpoint; a second one at once."""

    def __init__(self) -> None:
        self.received = 0
        self.training = False
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._handle)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.received or not self.training:
            sys.exit(128 + number)
        self.received = number

    def should_stop(self) -> bool:
        return bool(self.received)


class _Experiment:
    """The runs of one table, made one after the other."""

    def __init__(self, table: str, rows: Sequence[Row], cells: Sequence[Cell], scale: Scale, options: Any) -> None:
        self.table, self.rows, self.cells, self.scale, self.options = table, rows, cells, scale, options
        self.results, self.runs = Path(options.results_dir), Path(options.runs_dir)
        self.is_first = int(os.environ.get("RANK", "0")) == 0
        self.title = _title(table)

    def run(self) -> int:
        """All cells; gives the exit code."""
        from repro.progress import Progress
        from repro.tracking import check_store

        signals = _Signals()
        started = time.monotonic()
        with Progress(self.table, len(self.cells), quiet=not self.is_first) as progress:
            for folder in (self.results, self.runs, Path(self.options.cache_dir)):
                _check_writable(folder)
            if warning := check_store(self.options.tracking_uri):
                progress.say(warning)
            progress.say(f"{self.table} at scale {self.scale.name}: {len(self.cells)} runs, {self.options.pair}")
            corpus, prepared = self._prepare(progress)
            records: list[Record] = []
            for cell in self.cells:
                signals.training = True
                code = self._make(cell, corpus, prepared, progress, signals, records)
                signals.training = False
                if code:
                    return code
            if self.is_first:
                progress.say(self._closing(records, time.monotonic() - started))
        return DIVERGED if any(record.status == "diverged" for record in records) else 0

    def _prepare(self, progress: Any) -> tuple[Any, Any]:
        from repro.data.corpus import open_corpus
        from repro.data.store import prepare

        cache = Path(self.options.cache_dir)
        data_dir = Path(self.options.data_dir) if self.options.data_dir else None
        corpus = open_corpus(
            self.scale.corpus, self.options.pair, data_dir=data_dir, cache=cache, sizes=self.scale.grammar
        )
        prepared = prepare(corpus, vocab_size=self.scale.vocab_size, cache=cache, max_length=self.scale.max_length)
        sizes = ", ".join(f"{name} {len(getattr(prepared, name)):,}" for name in ("train", "dev", "test"))
        dropped = f"; left out: {prepared.train.dropped}" if prepared.train.dropped else ""
        progress.say(
            f"{corpus.name} {corpus.pair}: {sizes} pairs, {prepared.tokenizer.size:,} pieces, "
            f"prepared in {prepared.seconds:.1f} s{dropped}"
        )
        return corpus, prepared

    def _make(
        self, cell: Cell, corpus: Any, prepared: Any, progress: Any, signals: _Signals, records: list[Record]
    ) -> int:
        from repro.run import Run, Settings, Stopped

        run = Run(
            settings=Settings(
                title=self.title,
                table=cell.table,
                tables=(self.table,) if cell.table == self.table else (cell.table, self.table),
                row=cell.row.name,
                position=cell.position,
                paper=asdict(cell.row.paper),  # type: ignore[arg-type]
                paper_hyper=cell.row.change(BASE),
                hyper=cell.hyper,
                seed=cell.seed,
                scale=self.scale,
                devices=self.options.devices,
                precision=self.options.precision,
            ),
            corpus=corpus,
            prepared=prepared,
            runs=self.runs,
            tracking_uri=self.options.tracking_uri,
            progress=progress,
            should_stop=signals.should_stop,
            is_first=self.is_first,
        )
        done = run.finished()
        if done:
            progress.say(f"{run.settings.name}: finished before, in {run.folder}")
        else:
            try:
                done = run.execute()
            except Stopped as stopped:
                progress.say(f"{stopped}. The same command goes on from there.")
                return 128 + signals.received
        progress.finish_run()
        if done:
            done.save(path(self.results, done))
            records.append(done)
            self._install_view(corpus, progress)
            progress.say(_summary(done))
        return 0

    def _asked(self) -> str:
        """The options that say which world was asked for, as they were typed."""
        typed = {name: getattr(self.options, name) for name in ("scale", "corpus", "pair", "data_dir", "steps")}
        usual = {"scale": None, "corpus": None, "pair": "en-de", "data_dir": None, "steps": None}
        return " ".join(f"--{name.replace('_', '-')} {value}" for name, value in typed.items() if value != usual[name])

    def _install_view(self, corpus: Any, progress: Any) -> None:
        """Save the table's view in MLflow, so that `repro.ui` opens on it; a tracker in trouble costs the view only."""
        from repro.tracking import install_view

        install_view(
            self.options.tracking_uri,
            scale=self.scale.name,
            table=self.table,
            title=self.title,
            corpus=corpus.name,
            pair=corpus.pair,
            tell=progress.say,
        )

    def _closing(self, records: Sequence[Record], seconds: float) -> str:
        from repro.report import write_tables
        from repro.tables import console_table

        known: Any = [(row.name, asdict(row.paper)) for row in (BASE_ROW, *self.rows)]
        has_rows = any((self.results / self.scale.name / self.table).glob("*.json"))  # beside the base row
        written = write_tables(self.results, self.scale.name, self.table) if has_rows else []
        view = f"--table {self.table} --scale {self.scale.name}"
        return "\n".join(
            [
                "",
                console_table(records, known),
                "",
                f"{len(records)} runs in {_duration(seconds)}. Tables: {', '.join(map(str, written)) or 'none yet'}",
                "What next:",
                f"  {_python()} -m repro.ui {view}   compare the runs in MLflow",
                f"  {_python()} experiments/{self.table}.py {self._asked()} --seeds 3   intervals over seeds",
            ]
        )


def _python() -> str:
    """How the user calls the interpreter that runs this."""
    interpreter = os.path.relpath(sys.executable)
    return "python" if interpreter.startswith("..") else interpreter


def _title(table: str) -> str:
    """The first line of the experiment file, where it is what runs; else the table's name."""
    running = sys.modules["__main__"]
    if Path(getattr(running, "__file__", None) or "").stem != table or not running.__doc__:
        return table
    return running.__doc__.partition("\n")[0].rstrip(".")


def _summary(done: Record) -> str:
    if done.status == "diverged":
        return f"{done.row} seed {done.seed}: diverged after step {done.cost['steps']}"
    dev = done.scores["dev"]
    return (
        f"{done.row} seed {done.seed}: dev PPL {dev['ppl']:.2f}, BLEU {dev['bleu']:.1f}, "
        f"{done.cost['tokens_per_second']:,.0f} tokens/s, padding {done.cost['padding']:.1%}, "
        f"{_duration(done.cost['train_seconds'] + done.cost['decode_seconds'])}"
    )


def _check_writable(folder: Path) -> None:
    """Refuse now what would fail after hours of training."""
    probe = folder / f".probe.{os.getpid()}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise OSError(
            f"{folder} cannot be written to ({error.strerror}). Name another folder with --results-dir, --runs-dir "
            f"or --cache-dir, or free this one."
        ) from error
