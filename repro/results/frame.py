"""Make tables from records, our numbers beside the paper's; no number in a table is typed by hand.

A table is a frame with one line per row, the base first, in full precision. The files and the terminal show a
selection of its columns. Paper: Table 3.
"""

import itertools
import json
import math
import statistics
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeVar

from repro.results import comparable
from repro.results.comparable import NO_COMMIT, NOT_COMMITTED
from repro.results.departures import departures
from repro.results.labels import AT_PAPER_SIZE, SYMBOLS, at_paper_size
from repro.results.record import (
    BASE,
    LAST_MEAN,
    PROGRAM,
    TOGETHER,
    TRANSLATION,
    PaperNumbers,
    Record,
    load_records,
    score_columns,
)
from repro.storage.atomic import make_folder, write_json
from repro.storage.lock import locked

if TYPE_CHECKING:
    from pandas import DataFrame as DataFrame
    from pandas import Series as Series
else:  # pandas is imported when a table is made
    DataFrame = Series = Any

T = TypeVar("T")


def common(ours: Mapping[int, T], theirs: Mapping[int, T]) -> list[tuple[T, T]]:
    """The values of two rows for each seed that both have, in the order of the seeds.

    A seed decides data order, dropout and first weights of every row; a difference over unlike seeds would mix them in.
    """
    return [(ours[seed], theirs[seed]) for seed in sorted(ours.keys() & theirs.keys())]


def difference_over_common(ours: Mapping[int, float], theirs: Mapping[int, float]) -> float | None:
    """The mean of one row minus the mean of another, over the seeds that both have; None if they share none."""
    means = [statistics.fmean(of) for of in zip(*common(ours, theirs), strict=True)]
    return means[0] - means[1] if means else None


CONFIDENCE = 0.95
FIGURES = "figures"  # the folder of the figures and of the measurements behind them
ROWS_FILE = "rows.json"  # beside the tables of a scale: the rows that its experiments have
COSTS = ["train_seconds", "decode_seconds", "tokens_per_second", "padding", "flops", "gpu_hours"]
# scores whose difference to the base has a column
TO_BASE = [f"{of}/{name}" for of in ("dev", "paper", "last_mean_dev") for name in ("ppl", "bleu", "length")]
N_BY_MEAN = "last_mean/n"  # of a row's runs, those scored by the mean of their last checkpoints: older ones are not
BESIDE = [  # the columns of a published table that are shown beside one's own
    "n",
    *(f"{score}{end}" for score in ("dev/ppl", "dev/bleu", "test/bleu") for end in ("", "_half_width", "_min", "_max")),
]


class Listed(NamedTuple):
    """A row that an experiment has, whether it was run or not."""

    position: int  # in its table; the base row has -1
    paper: PaperNumbers
    changes: Mapping[str, Any] | None = None  # the fields of Hyper that it changes at the paper's size; None: not known
    here: Mapping[str, Any] | None = None  # its Hyper at this scale, as `written` gives it; None: not known


Rows = Mapping[tuple[str, str], Listed]  # by (table, row)
NO_ROWS: Rows = MappingProxyType({})


# From records to a frame


def record_folders(folder: Path) -> list[Path]:
    """The folders of one scale that hold records: those of tables, not the figures' folder nor another scale's."""
    files = itertools.chain(folder.glob("*/*.json"), folder.glob(f"*/{TOGETHER}"))
    found = {file.parent for file in files if file.parent.name != FIGURES}
    return sorted(one for one in found if not (one / ROWS_FILE).exists())


def noted_rows(folder: Path) -> dict[tuple[str, str], Listed]:
    """The rows that the experiments of this scale have, from rows.json, so that missing rows can be named."""
    file, found = folder / ROWS_FILE, dict[tuple[str, str], Listed]()
    try:
        for table, row in ((of, row) for of, rows in json.loads(file.read_bytes()).items() for row in rows):
            paper: Any = {name: row[name] for name in PaperNumbers.__annotations__ if name in row}
            found[table, row["row"]] = Listed(row["position"], paper, row.get("paper_size"), row.get("here"))
        return found
    except FileNotFoundError:
        return {}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(
            f"{file}: expected tables and their rows, got {error!r}. Restore it from git; of your own results delete "
            "it, and type the command of each table again, which keeps finished runs."
        ) from error


def program_place(folder: Path, row: str) -> int:
    """The position of a row that a program runs at this scale: its earlier one, or one after all earlier rows."""
    known = {name: listed.position for (of, name), listed in noted_rows(folder).items() if of == PROGRAM}
    return known.get(row, 1 + max(known.values(), default=-1))


def note_rows(folder: Path, rows: Rows) -> None:
    """Rewrite rows.json for the tables of `rows`; other tables keep their entries, even under concurrent writes.

    A program runs its rows one by one, so its earlier rows stay in its table.
    """
    make_folder(folder)
    renewed = {of for of, _ in rows if of != PROGRAM}
    with locked(folder):
        everything = {key: value for key, value in noted_rows(folder).items() if key[0] not in renewed} | dict(rows)
        listed: dict[str, list[dict[str, Any]]] = {}
        for (of, row), known in sorted(everything.items(), key=lambda item: (item[0][0], item[1].position)):
            here = {} if known.here is None else {"here": known.here}
            entry = {"row": row, "position": known.position, **known.paper, "paper_size": known.changes, **here}
            listed.setdefault(of, []).append(entry)
        write_json(folder / ROWS_FILE, listed)


@dataclass(frozen=True, kw_only=True)
class ResultSet:
    """The content of results/<scale>/, read once: the records by table, and the rows that there should be.

    Published results are strict: it is an error if the seeds of a cell are not repetitions of one experiment. One's own
    results show the runs that match the newest of a cell and list those left out. They mark rows that nobody else has,
    and are shown beside the published ones.
    """

    folder: Path
    tables: Mapping[str, Sequence[Record]]
    rows: Rows
    own: bool = False
    uncommitted: frozenset[str] = frozenset()  # tables whose experiment file differs from the commit
    published: "ResultSet | None" = None  # of the same scale, to be shown beside one's own
    notes: Mapping[str, Sequence[str]] = field(default_factory=dict)  # by table

    @classmethod
    def read(cls, folder: Path) -> "ResultSet":
        """Read a folder. Raises ValueError that names every invalid file of the first table that has one."""
        tables = {part.name: load_records(part) for part in record_folders(folder)}
        return cls(folder=folder, tables=tables, rows=noted_rows(folder))

    @classmethod
    def read_own(cls, folder: Path, published: Path, uncommitted: Iterable[str] = ()) -> "ResultSet":
        """Read one's own results, with those of the same scale under the folder `published` beside them."""
        found, beside = cls.read(folder), published / folder.name
        tables = {of for of, _ in found.rows}
        gone = [one for one in found.everything if one.table in tables and (one.table, one.row) not in found.rows]
        kept, left = comparable.newest([one for one in found.everything if one not in gone])
        notes = {name: comparable.left_out(one for one in left if one.table == name) for name in found.tables}
        for name in dict.fromkeys(one.table for one in gone):
            rows = comparable.seeds_of_rows(one for one in gone if one.table == name)
            notes[name].append(f"Left out: {rows}, which {name}.py has no more.")
        return replace(
            found,
            tables={name: [record for record in kept if record.table == name] for name in found.tables},
            own=True,
            uncommitted=frozenset(uncommitted),
            published=cls.read(beside) if record_folders(beside) else None,
            notes=notes,
        )

    @property
    def scale(self) -> str:
        """The name of the scale, with the options that change its data or settings."""
        return self.folder.name

    @property
    def everything(self) -> list[Record]:
        """All records, table by table in the order of `tables`."""
        return [record for records in self.tables.values() for record in records]

    def named(self, beginning: str) -> set[str]:
        """The tables whose names begin so, whether they have records or only rows without one."""
        return {name for name in {*self.tables, *(of for of, _ in self.rows)} if name.startswith(beginning)}

    def frame(self, tables: Iterable[str]) -> "DataFrame | None":
        """The base row and the rows of these tables; None where no named table has a record."""
        names = {*tables}
        records = [record for name in sorted(names - {BASE}) for record in self.tables.get(name, ())]
        alike = [record.about["scores"] for record in records]  # parsers are not compared with translation models
        base = [record for record in self.tables.get(BASE, ()) if not records or record.about["scores"] in alike]
        if not records and not (base and BASE in names):
            return None
        beside = {BASE} if not records or any(record.about == TRANSLATION for record in records) else set()
        rows = {key: row for key, row in self.rows.items() if key[0] in names | beside}
        others = [record for name, of in self.tables.items() if name not in names for record in of]
        published = self.published.frame(tables) if self.published else None
        frame = table(records, base=base, rows=rows, own=self.own, uncommitted=self.uncommitted, published=published)
        frame.attrs["notes"] += comparable.run_twice(records, others)
        frame.attrs["notes"] += [note for name in (BASE, *sorted(names - {BASE})) for note in self.notes.get(name, ())]
        return frame


def interval(values: Sequence[float]) -> tuple[float, float | None]:
    """The mean and the half-width of its 95 % t-interval, which is None for fewer than three values.

    It is a t-interval because a percentile bootstrap over 3 seeds covers only 80 % instead of 95 %.
    """
    from scipy.special import stdtrit

    n, mean = len(values), statistics.fmean(values)
    if n < 3:
        return mean, None
    return mean, float(stdtrit(n - 1, (1 + CONFIDENCE) / 2)) * statistics.stdev(values) / math.sqrt(n)


def half_shown(mean: float, half_width: float | None) -> float | None:
    """The half-width; None if there is none (or NaN), or if the interval would reach below zero, as no score can."""
    return half_width if half_width is not None and half_width <= mean else None


def ends_of(mean: float, half_width: float | None, low: float, high: float) -> tuple[float, float]:
    """The ends to show for a mean: those of its interval if it is shown, else the lowest and the highest seed."""
    half = half_shown(mean, half_width)
    return (low, high) if half is None else (mean - half, mean + half)


def table(
    records: Iterable[Record],
    *,
    base: Iterable[Record] = (),
    rows: Rows = NO_ROWS,
    own: bool = False,
    uncommitted: Container[str] = (),
    published: "DataFrame | None" = None,
) -> "DataFrame":
    """One line per row, base first, then the paper's order; `attrs` has the notes and what all runs share.

    `rows` are the rows that there should be; one without a record is shown with n = 0. Runs from uncommitted code are
    left out. In a table of one's `own` they are marked instead, as are rows of `uncommitted` experiments. `published`
    is a table of the same rows, shown beside it. Raises ValueError for records of several scales, or mixed cells.
    """
    import pandas as pd

    everything = [*base, *records]
    if len(scales := {record.scale for record in everything}) > 1:
        raise ValueError(f"A table: expected records of one scale, got {', '.join(sorted(scales))}.")
    if found := [*comparable.mixtures(everything)]:  # a mean is over the seeds of one experiment, each of them once
        raise ValueError("\n".join(found))
    known = {(record.table, record.row): Listed(record.position, record.paper) for record in everything} | dict(rows)
    if not known:
        raise ValueError("A table: expected records or the names of its rows, got neither.")
    order = sorted(known, key=lambda key: (key[0] != BASE, key[0], known[key].position, key[1]))
    shown = [record for record in everything if own or not record.stamp["dirty"]]
    runs = [[record for record in shown if (record.table, record.row) == key] for key in order]
    listed = [*itertools.chain(*runs)]
    scores = score_columns(shown)
    lines = [_line(key, known[key], of, scores) for key, of in zip(order, runs, strict=True)]
    frame = pd.DataFrame(lines, dtype=object)
    numbers = [column for column in frame.columns if "/" in column]
    frame[numbers] = frame[numbers].astype(float)
    bases = _bases(frame, runs)
    sizes = pd.DataFrame([at_paper_size(known[key].changes) for key in order], columns=[*SYMBOLS], dtype=object)
    frame = pd.concat([frame, sizes.add_suffix(AT_PAPER_SIZE), _to_base(frame, runs, bases)], axis="columns")
    if published is not None:
        frame = _beside(frame, published)
    others = [None if base == i else base for i, base in enumerate(bases)]
    facts = comparable.facts_of(listed)
    frame.attrs = {
        "own": own,
        "corpora": _List(dict.fromkeys(record.corpus["name"] for record in listed)),
        "marks": _List(
            (NOT_COMMITTED * (of in uncommitted) + NO_COMMIT * any(run.stamp["dirty"] for run in of_row)) * own
            for (of, _), of_row in zip(order, runs, strict=True)
        ),
        "shared": {fact: next(iter(values)) for fact, values in facts.items() if len(values) == 1},
        "departures": _List(departures(listed)),
        "repeatable": _List(comparable.repeatable(listed)),
        "averaged": _List(sorted({len(record.last_mean["steps"]) for record in listed if record.last_mean})),
        "bases": _List(bases),
        "bleu_to_base": _List(  # of each row its mean difference and half the width of its interval
            interval([a - b for a, b in common(*of)]) if common(*of) else None
            for of in _pairs(runs, others, "dev/bleu")
        ),
    }
    frame.attrs["notes"] = _List(comparable.notes_of(everything, shown, frame, facts))
    return frame


def _bases(frame: "DataFrame", runs: Sequence[Sequence[Record]]) -> list[int | None]:
    """For each row, the index of the row it is compared with: the base, or the base model trained on the same text.

    Such base rows have their own index. None on a text on which no base was trained. `runs` are those of each row.
    """
    is_base = [*(frame["table"] == BASE)]
    first = is_base.index(True) if any(is_base) else None
    base = runs[first][0] if first is not None and runs[first] else None
    likes = dict[str, int]()
    for i, of in enumerate(runs):
        if base and of and (of[0].hyper, of[0].system) == (base.hyper, base.system):
            likes.setdefault(of[0].corpus["sha256"], i)
    return [likes.get(of[0].corpus["sha256"]) if base and of else first for of in runs]


def _to_base(frame: "DataFrame", runs: Sequence[Sequence[Record]], bases: Sequence[int | None]) -> "DataFrame":
    """The difference of each row to its base, ours over the seeds that both have; `runs` are those of each row.

    NaN where they share no seed, and where the paper has no number.
    """
    import pandas as pd

    found: dict[str, Any] = {}
    for score in (score for score in TO_BASE if score in frame):
        if score.startswith("paper/"):
            printed = [math.nan if base is None else frame[score].iloc[base] for base in bases]
            found[score] = frame[score] - pd.Series(printed, dtype=float)
        else:
            found[score] = pd.Series([difference_over_common(*of) for of in _pairs(runs, bases, score)], dtype=float)
    return pd.DataFrame({f"{score}_to_base": of for score, of in found.items()})


def _pairs(
    runs: Sequence[Sequence[Record]], bases: Sequence[int | None], score: str
) -> list[tuple[dict[int, float], dict[int, float]]]:
    """For each row, the scores by seed of itself and of its base, of the runs that have this score."""
    by_seed = [{run.seed: x for run in of if (x := run.score(*score.split("/"))) is not None} for of in runs]
    return [(ours, {} if base is None else by_seed[base]) for ours, base in zip(by_seed, bases, strict=True)]


def _beside(frame: "DataFrame", published: "DataFrame") -> "DataFrame":
    """A frame with the published scores of its rows."""
    import pandas as pd

    beside = published.set_index(["table", "row"]).reindex(pd.MultiIndex.from_frame(frame[["table", "row"]]))
    columns = beside[BESIDE].add_prefix("published/").set_axis(frame.index)
    columns["published/n"] = columns["published/n"].fillna(0).astype(int)
    found = pd.concat([frame, columns], axis=1)  # all at once: pandas warns about columns added one by one
    found.attrs = frame.attrs
    return found


class _List(list[Any]):
    """Not copied in the `attrs` of a frame, which pandas copies to the last item at every access to a column."""

    def __deepcopy__(self, _: object) -> Self:
        return self


def _line(key: tuple[str, str], row: Listed, runs: Sequence[Record], scores: Sequence[str]) -> dict[str, Any]:
    """The columns of one row; means and intervals are over its finished runs. Without a run, what is listed of it."""
    finished = sorted((run for run in runs if run.status == "finished"), key=lambda run: run.seed)
    line: dict[str, Any] = {"table": key[0], "row": key[1], "n": len(finished)}
    line["diverged"] = len(runs) - len(finished)
    line["seeds"] = " ".join(str(run.seed) for run in finished)
    hyper = runs[0].hyper if runs else row.here or {}
    line |= {name: hyper.get(name) for name in SYMBOLS} | {"system": runs[0].system if runs else None}
    if line["average"] == 1:
        line["average_every"] = None  # nothing is averaged, so it has no effect
    line |= {f"params/{name}": vars(runs[0])["params"][name] if runs else None for name in ("here", "paper_size")}
    line |= {f"paper/{name}": value for name, value in row.paper.items()}
    by_mean = [run for run in finished if run.last_mean]
    line |= {N_BY_MEAN: len(by_mean)} if {score.split("/")[0] for score in scores} & LAST_MEAN.keys() else {}
    for score in scores:
        split, name = score.split("/")
        line |= spread(score, whole(run.score(split, name) for run in (by_mean if split in LAST_MEAN else finished)))
    for name in COSTS:
        values = [vars(run)["cost"][name] for run in finished]
        line[f"cost/{name}"] = statistics.fmean(values) if values else None
    return line


def whole(found: Iterable[T | None]) -> list[T]:
    """All values, or an empty list if one is missing: a mean is over all seeds of a cell or none.

    Values are missing because some languages lack a published protocol, and some records an accuracy or sentences.
    """
    every = list(found)
    known = [one for one in every if one is not None]
    return known if len(known) == len(every) else []


def spread_each(values: Mapping[str, Sequence[float]]) -> dict[str, float | None]:
    """The columns of `spread` of each score of one row."""
    return {column: value for score, of in values.items() for column, value in spread(score, of).items()}


def spread(score: str, values: Sequence[float]) -> dict[str, float | None]:
    """The columns of one score of one row: mean, half-width of its interval, minimum, maximum; None if missing."""
    mean, half_width = interval(values) if values else (None, None)
    ends = {f"{score}_min": min(values, default=None), f"{score}_max": max(values, default=None)}
    return {score: mean, f"{score}_half_width": half_width, **ends}


# More columns for a frame


def runs_in(frame: "DataFrame", records: Iterable[Record]) -> list[list[Record]]:
    """For each line of a frame, the finished runs that it was made from, by seed; empty if there are none."""
    runs = {(one.table, one.row, one.seed): one for one in records}
    lines = zip(frame["table"], frame["row"], frame["seeds"], strict=True)
    return [[runs[table, row, int(seed)] for seed in seeds.split()] for table, row, seeds in lines]


def widened(frame: "DataFrame", lines: Sequence[Mapping[str, Any]], **how: Any) -> "DataFrame":
    """The frame with more columns, one mapping per line; `how` goes to pandas. Keeps `attrs`, which pandas drops."""
    import pandas as pd

    made = frame.join(pd.DataFrame(lines, index=frame.index, **how))
    made.attrs = frame.attrs
    return made
