"""What an experiment can be asked for: every option with its default and its meaning, stated here and nowhere else."""
# ruff: noqa: RUF009 (_option makes a field; its defaults are immutable)

import argparse
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal, Self, get_args, get_origin, get_type_hints

from repro.corpora.catalogue import CORPORA
from repro.data.vocabulary import Subwords
from repro.results.frame import ROWS_FILE
from repro.results.places import OWN, PACKAGE, PUBLISHED
from repro.results.record import short
from repro.runs.command import Parser, folder_named, guess, ours
from repro.runs.machine import processors
from repro.runs.scales import SCALES, Scale
from repro.tracking.client import DEFAULT_URI, RUNS
from repro.training.run_spec import RECORDED, Peer

Device = Literal["auto", "cpu"]
Precision = Literal["fp32", "bf16"]
Backend = Literal["torch", "ctranslate2", "ctranslate2-int8"]  # `repro/decoding/backend.py`, which brings torch
CLEANING = ("length_ratio", "fairseq")  # `repro/corpora/filters.py`, which brings numpy
MOST_SEEDS = 10_000  # each is a run of every row, and all are listed before the first begins
AT_LEAST_1 = ("devices", "jobs", "steps", "batch_tokens", "device_tokens", "vocab_size")


@dataclass(frozen=True)
class Seeds:
    """The seeds of each row, as they are typed: "3" for 1 to 3, "4-11" for 4 to 11, "1,3" for these two."""

    chosen: tuple[int, ...]

    @classmethod
    def span(cls, first: int, last: int) -> Self:
        """All from the first to the last."""
        return cls(tuple(range(first, last + 1)))

    @classmethod
    def read(cls, typed: str) -> Self:
        """The seeds that were typed. Raises ArgumentTypeError for anything else."""
        found: set[int] = set()
        alone = None if "," in typed else "1"  # a single number is a count
        for part in typed.split(","):
            numbers = re.fullmatch(r"(?:([0-9]{1,9})-)?([0-9]{1,9})", part)
            first, last = (int(numbers[1] or alone or numbers[2]), int(numbers[2])) if numbers else (0, 0)
            if not 1 <= first <= last < first + MOST_SEEDS:
                raise argparse.ArgumentTypeError(
                    f"expected how many seeds, from 1 to {MOST_SEEDS:,}, or which, such as 4-11 or 1,3; got {typed}"
                )
            found |= {*range(first, last + 1)}
        return cls(tuple(sorted(found)))

    @classmethod
    def only(cls, typed: str) -> Self:
        """One seed. Raises ArgumentTypeError for anything else."""
        return cls.read(f"{typed}-{typed}")

    def __iter__(self) -> Iterator[int]:
        return iter(self.chosen)

    def __str__(self) -> str:
        """As `read` takes it."""
        first, last = self.chosen[0], self.chosen[-1]
        if last - first + 1 != len(self.chosen):
            return ",".join(map(str, self.chosen))
        return f"{last}" if first == 1 else f"{first}-{last}"

    @property
    def told(self) -> str:
        """For people: 7 seeds, 1 to 7."""
        seeds = [*map(str, self.chosen)]
        if len(seeds) == 1:
            return f"seed {seeds[0]}"
        which = ", ".join(seeds) if "," in str(self) else f"{seeds[0]} to {seeds[-1]}"
        return f"{len(seeds)} seeds: {which}"

    def more(self, first: int, fewest: int) -> "Seeds":
        """The `fewest` seeds from `first` on; where later ones than those were chosen, two beyond the last of them."""
        last = self.chosen[-1]
        return Seeds.span(first, max(first + fewest - 1, last + 2 if last >= first else 0))


def _option(default: Any, help: str, **settings: Any) -> Any:
    """A field with its text for `--help`; `settings` go to argparse."""
    return field(default=default, metadata={"help": help, **settings})


@dataclass(frozen=True, kw_only=True)
class Options:
    """The options of an experiment file, each with its usual value; the command line is made from these fields."""

    scale: str = _option("laptop", f"preset of model size, text and budget: {', '.join(SCALES)}")
    corpus: str | None = _option(None, f"text to use instead of the scale's own: {', '.join(CORPORA)}")
    pair: str = _option("en-de", "source and target language, such as en-de or en-fr")
    data_dir: Path | None = _option(None, "folder of train.en, train.de, dev.*, test.*; plain or .gz", metavar="FOLDER")
    rows: tuple[str, ...] = _option((), "only these rows, by name; the base row is called base", metavar="ROW")
    seeds: Seeds = _option(
        Seeds((1,)),
        "how many, such as 3 for 1 to 3, or which: 4-11 or 1,3; --seed 7: only 7",
        metavar="N|A-B|A,B",
    )
    shard: str | None = _option(
        None, "only every N-th run, from the I-th on; machines with one --runs-dir share a sweep", metavar="I/N"
    )
    steps: int | None = _option(None, "updates of the base row; the warm-up does not change", metavar="N")
    batch_tokens: int | None = _option(
        None, "most tokens of each side in an update, counted as --batch-by says; the rate does not change", metavar="N"
    )
    device_tokens: int | None = _option(
        None, "most of these that a device takes at once; updates in more parts are another run", metavar="N"
    )
    vocab_size: int | None = _option(None, "size of the vocabulary; in the paper's first code 40960", metavar="N")
    clean: tuple[str, ...] = _option(
        (), f"leave out training pairs by these rules (the paper uses none): {', '.join(CLEANING)}", metavar="RULE"
    )
    batch_by: Literal["padded_tokens", "tokens"] | None = _option(
        None, "how an update is counted: with padding, as in the paper's first code, or without, as in the paper"
    )
    device: Device = _option("auto", "where a run is trained: auto, on a GPU if there is one; cpu, on the processor")
    devices: int | None = _option(
        None,
        "processes that share each update, on GPUs or the CPU (default: as torchrun or srun say, or 1)",
        metavar="N",
    )
    threads: int = _option(1, "CPU threads of each process; another number is another run", metavar="N")
    jobs: int | None = _option(
        None, "runs at the same time (default: as many as processors and memory allow)", metavar="N"
    )
    on: Literal["here", "ray"] = _option(
        "here", "where runs are executed: on this machine, or on the cluster of RAY_ADDRESS or one that is started here"
    )
    precision: Precision | None = _option(
        None, "of matrix products (default: bf16 at single_gpu and paper, else fp32, five times as slow on a GPU)"
    )
    backend: Backend = _option("torch", "what translates and scores after training; CTranslate2 needs the extra [fast]")
    tracking_uri: str = _option(DEFAULT_URI, "MLflow store", metavar="URI")
    results_dir: Path = _option(OWN, "where your records and tables go; git ignores results/own", metavar="FOLDER")
    runs_dir: Path = _option(RUNS, "where checkpoints and journals are kept", metavar="FOLDER")
    cache_dir: Path = _option(Path("cache"), "where prepared text is kept", metavar="FOLDER")
    fork: bool = _option(False, "start a run over if its settings, data or code have changed since it was stopped")
    dry_run: bool = _option(False, "show rows, parameters, operations and time; train nothing")
    hardware: Literal["p100", "a100", "h100", "h200"] | None = _option(
        None, "with --dry-run: forecast the hours on GPUs you do not have, from published rates"
    )
    price: float | None = _option(None, "with --hardware: what one device costs per hour", metavar="MONEY")
    traceback: bool = _option(False, "show where in the code an error came from")

    @classmethod
    def read(cls, table: str, argv: Sequence[str] | None = None) -> Self:
        """The options of the experiment file `table`, as typed; exits with 2 where they cannot be understood."""
        does = f"Train, decode and score the rows of {table}; finished runs are skipped, interrupted ones resumed."
        parser = Parser(prog=f"{table}.py", description=does)
        add_options(parser, *(one.name for one in fields(cls) if one.name != "seeds"))
        either = parser.add_mutually_exclusive_group()
        add_options(either, "seeds")
        either.add_argument("--seed", dest="seeds", type=Seeds.only, help="this seed alone", metavar="K")
        return cls(**vars(parser.parse_args(sys.argv[1:] if argv is None else argv)))

    @property
    def processes(self) -> int:
        """Number of processes that share each update; it decides a result, how many machines they are on does not."""
        return self.devices or 1

    @property
    def products(self) -> Precision:
        """The precision of matrix products: as asked for, or the scale's own."""
        return self.precision or SCALES[self.scale].precision

    def started_as(self, peer: Peer | None) -> Self:
        """The options with the launcher's number of processes, unless another was typed."""
        return self if peer is None or peer.processes == 1 or self.devices else replace(self, devices=peer.processes)

    @property
    def typed(self) -> dict[str, Any]:
        """The options whose value is not the default."""
        return {one.name: value for one in fields(self) if (value := getattr(self, one.name)) != one.default}


USUAL = Options()


class _More(argparse.Action):
    """Values that are added to those named before, as in `--rows base --rows h=1`."""

    def __call__(self, _: Any, namespace: argparse.Namespace, values: Any, option: str | None = None) -> None:
        setattr(namespace, self.dest, (*getattr(namespace, self.dest), *values))


def add_options(parser: argparse._ActionsContainer, *names: str, **help: str) -> None:
    """Add these options of an experiment to a command, with the same defaults; `help` replaces their help texts."""
    types, by_name = get_type_hints(Options), {one.name: one for one in fields(Options)}
    for name in names:
        settings = dict(by_name[name].metadata)
        settings["help"] = help.get(name, settings["help"])
        default = by_name[name].default
        [kind, *_] = [one for one in get_args(types[name]) or [types[name]] if one is not type(None)]
        if types[name] is bool:
            settings["action"] = "store_true"
        else:
            if get_origin(types[name]) is tuple:
                settings |= {"nargs": "+", "action": _More}
            elif default is not None:
                settings["help"] += " (default: %(default)s)"
            if choices := _choices(types[name]):
                settings["choices"] = choices
            else:
                settings["type"] = folder_named if kind is Path else getattr(kind, "read", kind)
            settings["default"] = default
        parser.add_argument(f"--{name.replace('_', '-')}", **settings)


def _choices(annotation: Any) -> tuple[Any, ...]:
    """The values of a Literal, also of an optional one; empty for other types."""
    for one in (annotation, *get_args(annotation)):
        if get_origin(one) is Literal:
            return get_args(one)
    return ()


def chosen_scale(options: Options) -> Scale:
    """The scale with the budget and the text that the options ask for. Raises ValueError for impossible options."""
    if (name := options.scale) not in SCALES:
        raise ValueError(f"Unknown scale {name!r}; expected one of {', '.join(SCALES)}{guess(name, SCALES)}")
    scale = SCALES[name]
    corpus = options.corpus or ("folder" if options.data_dir and scale.corpus == "grammar" else scale.corpus)
    if corpus not in CORPORA:
        raise ValueError(f"Unknown corpus {corpus!r}; expected one of {', '.join(CORPORA)}{guess(corpus, CORPORA)}")
    _refuse_what_no_run_can_be(options)
    own, rules = replace(scale, corpus=corpus).subwords(options.pair), options.clean
    if rules:
        from repro.corpora.filters import check_rules

        rules = check_rules(rules)  # in the order in which they are applied
    chosen = replace(
        scale,
        base=replace(scale.base, steps=options.steps or scale.base.steps),
        corpus=corpus,
        vocab_size=options.vocab_size or scale.vocab_size,
        trees=replace(
            scale.trees,
            corpus=options.corpus or scale.trees.corpus,
            vocab_size=options.vocab_size or scale.trees.vocab_size,
            silver_vocab_size=options.vocab_size or scale.trees.silver_vocab_size,
        ),
        batch_tokens=options.batch_tokens or scale.batch_tokens,
        device_tokens=options.device_tokens or scale.device_tokens,
        batch_by=options.batch_by or scale.batch_by,
        rules=rules,
        precision=options.precision or scale.precision,
    )
    refuse_small_updates(chosen)
    return replace(chosen, name=_name(chosen, scale, own, options))


def refuse_small_updates(scale: Scale) -> None:
    """Raise ValueError where an update, or a part of it, has no room for the longest pair that a text may keep."""
    for name in ("batch_tokens", "device_tokens"):
        if getattr(scale, name) < scale.max_length:
            raise ValueError(
                f"--{name.replace('_', '-')} {getattr(scale, name)}: expected at least {scale.max_length}, since "
                f"training pairs of up to that many tokens a side are kept in the text of {scale.name}."
            )


def _refuse_what_no_run_can_be(options: Options) -> None:
    for name, annotation in get_type_hints(Options).items():
        value, choices, option = getattr(options, name), _choices(annotation), f"--{name.replace('_', '-')}"
        if choices and value not in (*choices, None):  # as a program may give
            raise ValueError(f"{option}: expected one of {', '.join(choices)}, got {value!r}.")
        if name in AT_LEAST_1 and value is not None and value < 1:
            raise ValueError(f"{option} must be at least 1, got {value}.")
    check_threads(options.threads)
    if options.hardware and not options.dry_run:
        raise ValueError("--hardware is of a forecast: expected --dry-run as well.")
    if options.price is not None and not 0 <= options.price < float("inf"):
        raise ValueError(f"--price must be a number of at least 0, money for an hour of a device, got {options.price}.")
    if options.price is not None and not options.hardware:
        raise ValueError("--price is of one device of --hardware: expected --hardware as well.")


def check_threads(threads: int) -> None:
    """Raise ValueError for fewer threads than 1, or more than there are processors to use."""
    if not 1 <= threads <= (most := processors()):
        raise ValueError(f"--threads {threads}: expected 1 to {most}, the processors that this process may use.")


def refuse_published(results: Path) -> None:
    """Raise ValueError for the published results, which only `publish` changes, and for the folder of one scale."""
    place = results.resolve()
    if (place / ROWS_FILE).exists():
        raise ValueError(f"--results-dir {results}: this is the folder of one scale. Name {results.parent}.")
    published = [folder.resolve() for folder in (PUBLISHED, PACKAGE.parent / PUBLISHED)]  # here, and beside this code
    if any(place.is_relative_to(folder) and not place.is_relative_to(folder / OWN.name) for folder in published):
        raise ValueError(f"--results-dir {results}: these are the published results; `{ours('publish')}` adds yours.")


# The name of a scale with other options ---------------------------------------------------------------------------
#
# It keeps their records apart. A folder of results is called so, and can be typed as a scale.

OWN_TEXT = Path("FOLDER")  # stands for a text of one's own, of which the name has only a hash
PAIRS = {pair for corpus in CORPORA.values() for pair in corpus.folders}
OPTIONS_OF = {recorded: option for option, recorded in RECORDED.items()}
_NUMBER, _RULE = r"\d{1,9}", f"(?:{'|'.join(CLEANING)})"
NAMED = {  # in this order, what stands for an option that is not the scale's own, and what its value looks like
    "corpus": ("{}", "|".join(CORPORA)),
    "pair": ("{}", r"(?!by-)[a-z]{2,3}(?:-\w+){1,5}?"),
    "steps": ("{}-steps", _NUMBER),
    "batch_tokens": ("{}-tokens", _NUMBER),
    "device_tokens": ("{}-device-tokens", _NUMBER),
    "devices": ("{}-devices", _NUMBER),
    "threads": ("{}-threads", _NUMBER),
    "precision": ("{}", "fp32|bf16"),
    "backend": ("{}", "ctranslate2(?:-int8)?"),
    "vocab_size": ("{}-pieces", _NUMBER),
    "batch_by": ("by-{}", "|".join(OPTIONS_OF)),
    "clean": ("clean-{}", f"{_RULE}(?:-{_RULE})*"),
}
NAME = re.compile(
    rf"(?P<scale>{'|'.join(SCALES)})"
    + "".join(f"(?:-{form.format(f'(?P<{name}>{looks})')})?" for name, (form, looks) in NAMED.items())
    + r"(?:-(?P<text>[0-9a-f]{8}))?",  # that `run_dir.folder_name` adds
    re.ASCII,
)


def _name(chosen: Scale, scale: Scale, own: Subwords, options: Options) -> str:
    sizes = {own.size, scale.trees.vocab_size, scale.trees.silver_vocab_size}  # trees have vocabularies of their own
    differs = {name: getattr(chosen, name) != getattr(scale, name) for name in ("batch_tokens", "device_tokens")}
    differs |= {
        "corpus": chosen.corpus not in (scale.corpus, options.corpus and scale.trees.corpus),
        "steps": chosen.base.steps != scale.base.steps,
        "precision": chosen.precision != scale.precision,
        "vocab_size": options.vocab_size is not None and {options.vocab_size} != sizes,
        "batch_by": chosen.batch_by != scale.batch_by,
    }
    values = {name: getattr(options, name) for name in NAMED} | {
        "corpus": chosen.corpus,
        "devices": options.processes,
        "batch_by": RECORDED[chosen.batch_by],
        "clean": "-".join(chosen.rules),
    }
    usual = {"pair": USUAL.pair, "devices": 1, "threads": USUAL.threads, "backend": USUAL.backend, "clean": ""}
    shown = (name for name in NAMED if differs.get(name, values[name] != usual.get(name)))
    return short("-".join([scale.name, *(NAMED[name][0].format(values[name]) for name in shown)]))


def options_of(name: str) -> Options | None:
    """The options that the name of a folder stands for; None for a name that no options make, as in older code.

    For a text of one's own, `data_dir` is `OWN_TEXT`. Raises ValueError for options that this machine cannot have.
    """
    if (found := NAME.fullmatch(name)) is None:
        return None
    said: dict[str, Any] = {part: value for part, value in found.groupdict().items() if value is not None}
    said |= {part: int(value) for part, value in said.items() if part in NAMED and NAMED[part][1] == _NUMBER}
    if "batch_by" in said:
        said["batch_by"] = OPTIONS_OF[said["batch_by"]]
    if "clean" in said:
        said["clean"] = tuple(said["clean"].split("-"))
    text = said.pop("text", None)
    if said.get("corpus") == "folder":
        said["data_dir"] = OWN_TEXT
    elif text or said.get("pair") not in (None, *PAIRS):
        return None  # another hash, or two words that look like languages
    options = Options(**said)
    made = chosen_scale(options).name
    return options if name == (f"{made}-{text}" if text else made) else None


def spelled_out(options: Options) -> Options:
    """The options, with those that the scale's name stands for written out; unchanged if it is a plain scale.

    What was typed beside the name counts. Raises ValueError for the name of a text of one's own, which does not say
    where the text is.
    """
    if options.scale in SCALES or (named := options_of(options.scale)) is None:
        return options
    if named.data_dir:
        raise ValueError(
            f"--scale {options.scale} stands for a text of your own, and does not say where it is. Expected --scale "
            f"{named.scale} --corpus folder --data-dir {OWN_TEXT}."
        )
    return replace(options, **named.typed | options.typed | {"scale": named.scale})
