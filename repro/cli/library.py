"""The suite from Python: `load` a finished run, `run` a row, a `table` of records. See `docs/python.md`.

`import repro` costs nothing: heavy modules are imported when one of them is called.
"""

import threading
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from repro.decoding.search import PAPER_SEARCH, Search
from repro.model.config import Hyper
from repro.results.places import OWN, PUBLISHED
from repro.results.record import BASE, PROGRAM, Record
from repro.runs.command import experiments

if TYPE_CHECKING:
    from pandas import DataFrame

    from repro.runs.load import Attention, SentenceScores, Trained
    from repro.runs.table import Row, Table

# options of an experiment that apply to one run in this process
TAKEN = (
    "corpus", "pair", "data_dir", "steps", "batch_tokens", "device_tokens", "vocab_size", "clean", "batch_by",
    "threads", "precision", "backend", "tracking_uri", "results_dir", "runs_dir", "cache_dir", "fork",
)  # fmt: skip
ONE_AT_A_TIME = threading.RLock()  # a search rearranges the weights of its model: other threads wait


@dataclass(frozen=True, eq=False)  # compared by identity, so it can be a key of a cache
class Loaded:
    """A finished run, ready to be asked."""

    trained: "Trained"

    @property
    def record(self) -> Record:
        """All that is known of the run."""
        return self.trained.record

    @property
    def hyper(self) -> Hyper:
        """Its row, by the columns of Table 3."""
        return Hyper(**self.record.hyper)

    def translate(
        self, lines: Iterable[str], *, beam: int = PAPER_SEARCH.beam, alpha: float = PAPER_SEARCH.alpha
    ) -> list[str]:
        """The translation of each line; empty for a blank line.

        Raises ValueError for what is no line of text, an impossible search, and a run that parses.
        """
        from repro.runs.load import check_translates, outputs

        check_translates(self.record)
        with ONE_AT_A_TIME:
            return [text for _, text in outputs(self.trained, _lines(lines, "lines"), Search(beam, alpha))]

    def parse(self, sentences: Iterable[str]) -> list[str]:
        """The tree of each sentence, in brackets; words are separated by spaces. Empty for a blank sentence."""
        from repro.data.treebank import bracketed, tokens_of
        from repro.runs.load import check_parses, trees

        check_parses(self.record)
        words = [tokens_of(line) for line in _lines(sentences, "sentences")]
        with ONE_AT_A_TIME:
            found = trees(self.trained, words, Search.of(self.record.settings))
        return [bracketed(one.tree, "TOP") if one else "" for one in found]

    def score(self, sources: Iterable[str], targets: Iterable[str]) -> "SentenceScores":
        """How likely `targets` are as outputs for `sources`: log-probabilities in nats, of each and of all.

        Raises ValueError for what is no line of text, and for sides of unequal length.
        """
        from repro.runs.load import score_sentences

        with ONE_AT_A_TIME:
            return score_sentences(self.trained, _lines(sources, "sources"), _lines(targets, "targets"))

    def attention(self, source: str, target: str) -> "Attention":
        """Where each head looks while `target` is read as the output for `source`. Raises ValueError without heads."""
        from repro.runs.load import attention_of

        [read], [written] = _lines([source], "source"), _lines([target], "target")
        with ONE_AT_A_TIME:
            return attention_of(self.trained, read, written)

    def __repr__(self) -> str:
        return repr(self.record)


def load(run: str | Path, *, system: Any = None, runs_dir: Path | str = "runs") -> Loaded:
    """A finished run by "latest", its folder, its id or the beginning of that; or a folder exported to safetensors.

    `system` is that of its row, needed for a row of a program, which no experiment file has. Raises ValueError
    that says what is missing.
    """
    from repro.results.places import run_folder
    from repro.runs.load import open_run

    return Loaded(open_run(run_folder(str(run), Path(runs_dir)), system))


def run(row: "str | Row", *, scale: str = "laptop", seed: int = 1, **options: Any) -> Record:
    """Train, decode and score one row in this process; returns its record. A finished run is not repeated.

    `row` is its table and name, such as "table3_A/h=4", or "base", or a `repro.experiment.Row` of your own. `options`
    are those of an experiment file by their names, such as `runs_dir` or `corpus`. Ctrl-C stops at the next update,
    with a checkpoint, and raises KeyboardInterrupt: the same call resumes from there.

    Raises ValueError for an unknown row, scale or option, FileNotFoundError for text that is not here, and RuntimeError
    where the run failed.
    """
    from repro.experiment import made_here
    from repro.runs.options import Options, Seeds

    table, name = _meant(row)
    if unknown := sorted(options.keys() - {*TAKEN}):
        raise ValueError(f"{', '.join(unknown)}: expected options of one run, which are {', '.join(TAKEN)}.")
    if seed < 1:
        raise ValueError(f"expected a whole number from 1 on as seed, got {seed}.")
    folders = {option: Path(value) for option, value in options.items() if option.endswith("_dir")}
    lists = {option: tuple(value) for option, value in options.items() if isinstance(value, list)}
    return made_here(table, Options(scale=scale, seeds=Seeds((seed,)), rows=(name,), **options | folders | lists))


def table(
    name: str, *, scale: str = "laptop", results_dir: Path | str | None = None, every_column: bool = False
) -> "DataFrame":
    """A table with a line per row: runs, means of dev and test over seeds, 95 % half-widths, the paper's numbers.

    `name` is that of an experiment, "own" for the rows of your programs, or "table3" for all of Table 3. Columns and
    numbers are those of `results/<scale>/<name>.csv`; `every_column` gives all of them. It is made from your own
    records of the scale where there are some, else from the published ones, or from those under `results_dir`. Raises
    ValueError where there is no record.
    """
    from repro.pages.columns import PARTS, TABLE_3
    from repro.results.frame import ResultSet

    places = [OWN, PUBLISHED] if results_dir is None else [Path(results_dir)]
    for place in (place for place in places if (place / scale).is_dir()):
        own = place.resolve() != PUBLISHED.resolve()
        results = ResultSet.read_own(place / scale, PUBLISHED) if own else ResultSet.read(place / scale)
        found = results.frame(results.named(PARTS) if name == TABLE_3 else [name])
        if found is not None:
            return found.set_index("row") if every_column else _readable(found)
    where = " or ".join(str(place / scale) for place in places)
    how = "Run the table first, or name its results_dir; runs with other settings have a folder, which is a scale here."
    raise ValueError(f"expected records of {name} in {where}, found none. {how}")


def _meant(row: "str | Row") -> "tuple[Table, str]":
    """The table of a row, and its name there."""
    from repro.runs.load import experiment
    from repro.runs.table import Row, Table

    if isinstance(row, Row):
        return Table(name=PROGRAM, rows=[row], title=row.name), row.name
    of, _, name = (f"table3_A/{BASE}" if row == BASE else row).partition("/")  # the base stands in every table
    files = experiments()
    if of not in files or not name:
        raise ValueError(f"expected a row as TABLE/ROW, such as table3_A/h=4, or base, or a Row; got {row!r}.")
    found = experiment(files[of])
    if "ROWS" not in found:
        raise ValueError(f"{of} trains no rows of its own; expected another table.")
    return Table(name=of, rows=found["ROWS"], title=of, file=files[of]), name


def _lines(lines: Iterable[str], name: str) -> list[str]:
    """The lines, blank ones as "". Raises ValueError for one text instead of a list, and for what no file may hold."""
    from repro.corpora.parallel_text import as_text

    if isinstance(lines, str):
        raise ValueError(f"{name}: expected a list of lines, got one text. Write [text], or text.split('\\n').")
    made = []
    for number, line in enumerate(lines, start=1):
        if "\n" in line:
            raise ValueError(f"{name}: expected lines of text, got {line!r} as number {number}.")
        try:
            made.append(as_text(line.encode()) if line.strip() else "")
        except ValueError as reason:
            raise ValueError(f"{name}: number {number} {reason}. Correct it.") from None
    return made


def _readable(frame: "DataFrame") -> "DataFrame":
    """The columns that a person compares, for those scores that the paper prints for some row, else for perplexity."""
    printed = [name.removeprefix("paper/") for name in frame.columns if name.startswith("paper/")]
    scores = [name for name in ("ppl", "bleu", "f1") if name in printed] or ["ppl"]
    of_each = ("dev/{}", "dev/{}_half_width", "test/{}", "test/{}_half_width", "paper/{}")
    columns = [name.format(score) for score in scores for name in of_each]
    return frame.set_index("row")[["n", *(name for name in columns if name in frame.columns)]]
