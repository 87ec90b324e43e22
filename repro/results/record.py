"""The record of a finished run: one JSON file. Every table is made from such records.

Writing is strict: every key, every type, finite numbers only. On reading, a key that an older file lacks takes its
default, and an unknown key is refused. A record says about its task which scores a run has and how the paper searched
for its outputs, so it can still be read when the code of its task is gone. Paper: sections 5.1, 6.1 and 6.3.
The file carries the SHA-256 of its own content, so later edits are detected.
"""

import functools
import hashlib
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import asdict, dataclass, fields, is_dataclass
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, NotRequired, TypedDict, get_args, get_origin, get_type_hints, is_typeddict

from repro.decoding.search import PAPER_SEARCH
from repro.decoding.search import Named as Named
from repro.model.config import Hyper, written
from repro.results.provenance import Provenance
from repro.storage import signed_json
from repro.storage.atomic import write_bytes

FORMAT: Literal[2] = 2
BASE = "base"  # the table of the base row, which is trained once and comes first in every other table
PROGRAM = "own"  # the table of the rows that a program passes to `repro.run` one by one; it has no experiment file
# keys that older records lack; they are not added when such a record is written again
OPTIONAL = ("determinism", "task", "system", "claims", "last_mean")
RESTORE = "Restore the file from git"
TOGETHER = "records.jsonl"  # the published records of a table of our own questions, which has many
POINTS = 100  # points of a curve that a record keeps; the journal has all of them
FOLDER = "[A-Za-z0-9][A-Za-z0-9._=-]{0,79}"  # names of tables and scales are used as folder names unchanged
PLAIN = "(?!.*--)[a-z0-9][a-z0-9._=-]{0,79}"  # names of rows that are used as file names unchanged, see `slug`
SPLITS: tuple[Literal["dev"], Literal["test"]] = ("dev", "test")
# For each split, the name in score columns of a run's other weights, the mean of its last checkpoints
LAST_MEAN = {"last_mean_dev": "dev", "last_mean_test": "test"}
# Scores of every task: nats per token, unsmoothed; exp(nll); the share of tokens that the model finds most probable.
OF_TOKENS = ("nll", "ppl", "accuracy")
LENGTH = "length"  # of translations by the mean of the last checkpoints, see `LastMean`
LATER_SCORES = frozenset({"accuracy"})  # older records lack them, and some backends give no value
PER_CENT = (0.0, 100.0)
RANGES = {  # of scores, and of what the paper prints
    "nll": (0.0, math.inf), "ppl": (1.0, math.inf), "accuracy": (0.0, 1.0), "params": (0.0, math.inf),
    "bleu": PER_CENT, "bleu_published": PER_CENT, "f1": PER_CENT,
}  # fmt: skip
SAME_PPL = 1e-6  # relative tolerance: PPL is exp(NLL), but may have been computed in another precision
ROUNDING = 1e-9  # sacreBLEU gives references against themselves 100.00000000000004


class Scores(TypedDict):
    """The scores of dev, by which choices are made, and of test, read once after all choices."""

    dev: Named
    test: Named


class TaskFacts(TypedDict):
    """A task in words."""

    name: str  # the value that it was, such as "repro.runs.task.Translation(pair='en-de')"
    # The scores besides those of tokens. A finished run has the first. The others may be undefined, in both splits
    # alike: the authors' script does not score translations into Chinese.
    scores: list[str]
    search: dict[str, int | float]  # the paper's for it


TRANSLATION = TaskFacts(name="translation", scores=["bleu", "bleu_published"], search=PAPER_SEARCH.settings)


class RepeatFacts(TypedDict):
    """Shares of repeated text, such as dev sentences in the training text, 0 to 1; lines are compared by words."""

    dev_sources: float  # source sentences of dev that are also in the training text
    dev_pairs: float  # the same, with the same target as well
    test_sources: float
    test_pairs: float
    same_sides: float  # training pairs whose source is their target


class CorpusFacts(TypedDict):
    """The text a run learned from and was scored on."""

    name: str
    sha256: str
    n_train: int  # sentence pairs
    n_dev: int
    n_test: int
    dropped: dict[str, int]  # pairs left out, by reason
    repeats: NotRequired[RepeatFacts]  # absent from older records, made before this was checked
    notes: NotRequired[list[str]]  # what a reader of its scores must know, in sentences, if anything


class TokenizerFacts(TypedDict):
    """The word-pieces of a run."""

    sha256: str
    size: int  # word-pieces


class PaperNumbers(TypedDict):
    """What the paper prints for the row; None where it prints nothing."""

    ppl: float | None
    bleu: float | None
    params: float | None  # millions
    f1: NotRequired[float | None]  # only for rows that parse


class Params(TypedDict):
    """How many numbers the model learns."""

    here: int  # at this scale, with this tokenizer
    paper_size: int  # for the same row at the paper's size and vocabulary


class Cost(TypedDict):
    """What the run took."""

    steps: int
    source_tokens: int  # real tokens, no padding
    target_tokens: int
    train_seconds: float
    decode_seconds: float
    tokens_per_second: float
    padding: float  # share of the slots that held no token
    flops: float
    peak_memory_bytes: int | None  # None: the system does not report it
    gpu_hours: float


class Curve(TypedDict):
    """Unsmoothed loss along the training, at most `POINTS` points."""

    step: list[int]
    nll: list[float]  # nats per word-piece


class Curves(TypedDict):
    """How the run learned: the loss on the training text as seen, dropout included, and the loss on dev."""

    train: Curve
    dev: Curve


class LastMean(TypedDict):
    """Scores of the mean of the last checkpoints, beside those of the paper's weights, which may be the last one alone.

    Beside each BLEU stands `length`: tokens of all translations over those of the references, counted by sacreBLEU.
    """

    steps: list[int]  # the updates after which these checkpoints were written: ten, or as many as there were
    weights: str  # SHA-256 of the mean
    seconds: float  # time that averaging and scoring took
    dev: Named  # as in `Scores`, and "length" where there is a BLEU
    test: Named


class Determinism(TypedDict):
    """How reproducible this run was shown to be, and the digests that show it."""

    badge: str | None  # "L0" to "L3", see `determinism.py`; None: what was read is not what was planned
    against: list[str]  # what rules out a higher badge, in words
    order: str  # digest of the sentences that the updates read
    plan: str  # digest of the sentences that they should have read
    weights: str | None  # SHA-256 of the weights that were scored; None where the run diverged
    replayed: int  # micro-batches computed twice
    repeated_lines: int  # journal lines written again after a crash


class Stamp(Provenance):
    """Where the record comes from, and the MLflow run that has its curves."""

    mlflow_run: str | None


@dataclass(frozen=True, kw_only=True)
class Record:
    """One run: its row and scale, its settings, its scores, its cost and its origin."""

    format: Literal[2] = FORMAT
    run: str  # 16 hexadecimal digits: the hash of all that decides the result
    table: str
    row: str
    position: int  # of the row in its table; the base row has -1
    scale: str
    seed: int
    pair: str  # "en-de"
    corpus: CorpusFacts
    tokenizer: TokenizerFacts
    hyper: dict[str, Any]  # the fields of Hyper
    settings: dict[str, Any]  # the other choices: batch, precision, search; and what the scale may show
    paper: PaperNumbers
    params: Params
    scores: Scores
    curves: Curves
    cost: Cost
    stamp: Stamp
    status: Literal["finished", "diverged"]
    determinism: Determinism | None = None  # None: the record is older than this check
    task: TaskFacts | None = None  # None: translation
    system: str | None = None  # what was trained, by its name and arguments; None: the Transformer
    claims: str | None = None  # digest of the list of claims when the run began; None: it was not recorded
    last_mean: LastMean | None = None  # None: the record is older than this score, or the run diverged

    def __post_init__(self) -> None:
        _check(vars(self), Record, "record")
        _check(self.hyper, Hyper, "record.hyper")
        for name, pattern in {"run": "[0-9a-f]{16}", "table": FOLDER, "scale": FOLDER}.items():
            if not re.fullmatch(pattern, getattr(self, name)):
                raise ValueError(f"record.{name}: expected text like {pattern}, got {getattr(self, name)!r}")
        hints = dict.fromkeys(OF_TOKENS, float | None) | _hints_of_scores(self.about["scores"])
        later = LATER_SCORES | {LENGTH}
        parts = {f"scores.{split}": (self.scores[split], hints, LATER_SCORES) for split in SPLITS}
        if means := self.last_mean:
            parts |= {f"last_mean.{split}": (means[split], hints | {LENGTH: float}, later) for split in SPLITS}
        for where, (part, of_part, optional) in parts.items():
            _check_fields(part, of_part, f"record.{where}", optional)
            _check_ranges(part, f"record.{where}")
        _check_ranges(vars(self)["paper"], "record.paper")
        if self.status == "finished" and not _is_whole(self.scores, self.about["scores"]):
            raise ValueError(f"record.scores: expected all of them from a finished run, got {self.scores}")
        for name, curve in vars(self)["curves"].items():
            if len(curve["step"]) != len(curve["nll"]):
                raise ValueError(f"record.curves.{name}: expected a number for each step, got {curve}")
        try:
            kept = json.loads(signed_json.canonical(vars(self)))  # no copy: a page reads a thousand records
        except TypeError as error:
            raise ValueError(f"record.settings: {error}") from error
        if kept != vars(self):
            raise ValueError("record.settings: expected values that JSON keeps: lists instead of tuples, text as keys")

    @property
    def about(self) -> TaskFacts:
        """The facts of its task."""
        return self.task or TRANSLATION

    def n_sentences(self, split: str) -> int:
        """How many pairs dev or test has."""
        return self.corpus["n_dev" if split == "dev" else "n_test"]

    def score(self, split: str, name: str) -> float | None:
        """A score by its name; None where it has no value or the run has no such score.

        `split` is dev or test, or one of the names in `LAST_MEAN` for the mean of the last checkpoints.
        """
        means: Mapping[str, Any] = self.last_mean or {}
        parts: dict[str, Any] = {**self.scores, **{part: means.get(of) for part, of in LAST_MEAN.items()}}
        return number(parts.get(split) or {}, name)

    def __repr__(self) -> str:
        """Which run it is, and its first score on dev, in one line: its content would fill pages."""
        score = self.score("dev", name := self.about["scores"][0])
        found = self.status if score is None else f"dev {name} {score:.2f}"
        of = f"{self.row} of {self.table}, seed {self.seed}, scale {self.scale}, {self.pair}"
        return f"<run {self.run}: {of}, {found}>"

    def save(self, path: Path) -> None:
        """Write the record together with the checksum of its content."""
        signed_json.write(path, self._content())

    def _content(self) -> dict[str, Any]:
        content = asdict(self) | {"hyper": written(self.hyper)}
        return {name: value for name, value in content.items() if name not in OPTIONAL or value}


def load(path: Path) -> Record:
    """Read a record; a ValueError names the file, what was expected, what was found and what to do."""
    try:
        older: dict[str, Any] = dict.fromkeys(OPTIONAL)
        content = older | signed_json.parsed(read_bytes(path), "a record", FORMAT)
        if isinstance(content.get("hyper"), dict):  # older than some field, which had its default then
            content["hyper"] = {field.name: field.default for field in fields(Hyper)} | content["hyper"]
        return Record(**content)  # this checks the values against their annotations
    except (RecursionError, TypeError, ValueError) as error:  # TypeError: of a name that is missing or unknown
        raise ValueError(
            f"{path}: {error}. {RESTORE}, update this package, or delete it and run the row again."
        ) from error


def path(results: Path, record: Record) -> Path:
    """The place of a record: results/<scale>/<table>/<row>-seed<k>.json, a file or a line of `TOGETHER` beside it."""
    return results / record.scale / record.table / f"{slug(record.row)}-seed{record.seed}.json"


def places(folder: Path) -> list[Path]:
    """The places of all records of a folder, sorted."""
    return sorted({*folder.glob("*.json"), *_lines(folder / TOGETHER)})


def load_records(folder: Path) -> list[Record]:
    """The records of one folder. Raises ValueError that names every invalid file and says what is wrong."""
    found, faults = [], []
    for file in places(folder):
        try:
            record = load(file)
        except ValueError as error:
            faults.append(str(error))
            continue
        found.append(record)
        if file != (place := path(folder.parent.parent, record)):
            faults.append(f"{file} holds the record that belongs at {place}. Move it there or delete it.")
    if faults:
        raise ValueError("\n".join(faults))
    return found


def read_bytes(place: Path) -> bytes:
    """The JSON of the record at this place, from its file or its line."""
    lines = {} if place.exists() else _lines(place.with_name(TOGETHER))
    return lines[place] if place in lines else place.read_bytes()


def save_together(folder: Path, records: Iterable[Record] = ()) -> None:
    """Write these records and all that the folder of their table has as lines of one file."""
    lines = {place: signed_json.canonical(json.loads(read_bytes(place))) for place in places(folder)}
    lines |= {path(folder.parent.parent, record): signed_json.signed(record._content()) for record in records}
    write_bytes(folder / TOGETHER, b"".join(lines[place] + b"\n" for place in sorted(lines)))
    for file in folder.glob("*.json"):
        file.unlink()


def _lines(file: Path) -> dict[Path, bytes]:
    """The lines of such a file by the place of their record; empty where there is none."""
    seen = file.stat() if file.exists() else None
    return _lines_once(file, seen.st_mtime_ns, seen.st_size) if seen else {}


@functools.lru_cache(maxsize=64)  # its records are loaded one by one
def _lines_once(file: Path, _changed: int, _size: int) -> dict[Path, bytes]:
    found = {}
    for number, line in enumerate(file.read_bytes().rstrip(b"\n").split(b"\n"), 1):
        try:
            content = json.loads(line)
            found[file.with_name(f"{slug(content['row'])}-seed{content['seed']}.json")] = line
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(f"{file}: line {number} is no record: {error!r}. {RESTORE}.") from error
    return found


def thinned(curve: Curve) -> Curve:
    """At most `POINTS` points of a curve, evenly spaced, the last one included."""
    n = len(curve["step"])
    m = min(n, POINTS)
    chosen = [n - 1 - i * n // m for i in reversed(range(m))]
    return {"step": [curve["step"][i] for i in chosen], "nll": [round(curve["nll"][i], 5) for i in chosen]}


def short(name: str) -> str:
    """A folder's name unchanged; beyond 80 characters its beginning and eight digits of its SHA-256."""
    return name if len(name) <= 80 else f"{name[:70]}--{_digits(name)}"


def slug(name: str) -> str:
    """A file name for any text, [a-z0-9._=-]{1,80}: "h=16" stays, "N=2" becomes "n=2--" and a hash.

    Two names never share a file name, not even on a disk that ignores case. A name is kept only if it matches
    `PLAIN`, which excludes "--"; any other ends in "--" and eight digits of its SHA-256.
    """
    if re.fullmatch(PLAIN, name):
        return name
    readable = re.sub("[^a-z0-9._=]+", "-", name.lower())[:70].strip("-._=") or "row"
    return f"{readable}--{_digits(name)}"


def _digits(name: str) -> str:
    return hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]


# Scores


def number(named: Mapping[str, Any], name: str) -> float | None:
    """A score of a split; None where it has no value or there is no such score."""
    value = named.get(name)
    return None if isinstance(value, str) else value


def signature_of(name: str) -> str:
    """The key under which the signature of a score is stored."""
    return f"{name}_signature"


def signature(named: Named, name: str) -> str | None:
    """The signature of a score, which says how it was computed; None where there is none."""
    value = named.get(signature_of(name))
    return value if isinstance(value, str) else None


def without_value(task: TaskFacts) -> Named:
    """The scores of one split of a diverged run, all without a value."""
    return dict.fromkeys([*OF_TOKENS, *_hints_of_scores(task["scores"])])


def score_columns(records: Sequence[Record]) -> list[str]:
    """The score columns of a table, "dev/bleu": of tokens, of all tasks; newer scores only if a record has them."""
    tasks = [TRANSLATION, *(record.task for record in records if record.task)]
    absent = {name for name in LATER_SCORES if all(record.score("dev", name) is None for record in records)}
    of_tokens = [name for name in OF_TOKENS if name not in absent]
    names = dict.fromkeys([*of_tokens, *(name for task in tasks for name in task["scores"])])
    more = [*LAST_MEAN] if any(record.last_mean for record in records) else []
    of_mean = [LENGTH] if more and any(record.score(more[0], LENGTH) for record in records) else []
    return [f"{split}/{name}" for split in (*SPLITS, *more) for name in [*names, *(of_mean if split in more else [])]]


def _hints_of_scores(names: Iterable[str]) -> dict[str, Any]:
    """The keys and types by which a record stores these scores and their signatures."""
    return {key: kind | None for name in names for key, kind in ((name, float), (signature_of(name), str))}


def _is_whole(scores: Scores, names: Sequence[str]) -> bool:
    """Whether a finished run's scores are complete; undefined ones are so in both splits and have no signature."""
    dev, test = ({key for key, value in scores[split].items() if value is None} for split in SPLITS)
    undefined = _hints_of_scores(name for name in names[1:] if name in dev)
    return scores["dev"].keys() == scores["test"].keys() and dev == test and dev - LATER_SCORES == undefined.keys()


# Checks


def _check_ranges(part: Mapping[str, Any], where: str) -> None:
    """Check that numbers lie in their ranges and that PPL is exp(NLL). Raises ValueError."""
    for name, (low, high) in RANGES.items():
        if (value := number(part, name)) is not None and not low <= value <= high * (1 + ROUNDING):
            raise ValueError(f"{where}.{name}: expected a number from {low:g} to {high:g}, got {value}")
    nll, ppl = number(part, "nll"), number(part, "ppl")
    if nll is not None and ppl is not None and abs(math.log(ppl) - nll) > SAME_PPL:
        raise ValueError(f"{where}.ppl: expected exp(nll), whose logarithm is {nll}, got {ppl}")


_hints = functools.cache(get_type_hints)


def _check(value: Any, kind: Any, where: str) -> None:
    """Check a value against its annotation, down to the last key. Raises ValueError."""
    kinds = get_args(kind) if isinstance(kind, UnionType) else (kind,)  # X | None
    if kind is Any or (value is None and NoneType in kinds):
        return
    kind, origin = kinds[0], get_origin(kinds[0])
    if is_typeddict(kind) or is_dataclass(kind) or origin is dict:
        if not isinstance(value, dict):
            raise ValueError(f"{where}: expected a dictionary, got {value!r:.80}")
        hints = dict.fromkeys(value, get_args(kind)[1]) if origin is dict else _hints(kind)
        _check_fields(value, hints, where, getattr(kind, "__optional_keys__", frozenset()))
    elif origin is list:
        if not isinstance(value, list):
            raise ValueError(f"{where}: expected a list, got {value!r:.80}")
        for i, item in enumerate(value):
            _check(item, get_args(kind)[0], f"{where}[{i}]")
    elif origin is Literal:
        if value not in get_args(kind):
            raise ValueError(f"{where}: expected one of {get_args(kind)}, got {value!r:.80}")
    elif not isinstance(value, (*kinds, int) if float in kinds else kinds) or isinstance(value, bool) != (kind is bool):
        one_of = " or ".join(one.__name__ for one in kinds)
        raise ValueError(f"{where}: expected {one_of}, got {value!r:.80}")
    elif isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{where}: expected a finite number, got {value}")


def _check_fields(
    value: Mapping[str, Any], hints: Mapping[str, Any], where: str, optional: Set[str] = frozenset()
) -> None:
    """Check each value against the annotation of its name, and that no name is missing or unknown."""
    missing, unknown = sorted(hints.keys() - optional - value.keys()), sorted(value.keys() - hints.keys())
    if missing or unknown:
        raise ValueError(f"{where}: missing {missing}, unknown {unknown}")
    for name, item in value.items():
        _check(item, hints[name], f"{where}.{name}")
