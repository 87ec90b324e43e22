"""The files beside records: a run's outputs for each sentence, a file per text, and a look inside the model.

results/<scale>/<table>/<text>.parquet                      published: a table's runs
results/own/<scale>/<table>/<row>-seed<k>.<text>.parquet    one's own: a file for each run, written as it finishes
<row>-seed<k>.inside.gz                                     attention weights on a few sentences

A line of Parquet is a sentence of dev, test or a further set, and `pandas.read_parquet` opens each file: `row`, `seed`,
then what the task keeps of a sentence (`repro/results/sentences.py`; `FurtherTest` here). A table's runs stand side by
side, sentence after sentence: alike translations together take two thirds of the room. Facts about a whole run, such as
its id, are stored in the file's metadata. Parquet's pages carry checksums, and readers check what they read against the
record's scores.

A look inside is a line of JSON, then the weights of all heads as bytes, round(255 w). For each sentence: first the
encoder's weights, then those of the decoder's self-attention, then those of its attention to the source, each [layers,
heads, queries, keys]. Entropies were computed before rounding. `repro/web/sentences.py` shows it in a report. Paper:
figures 3 to 5.
"""

import functools
import gzip
import hashlib
import math
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from repro.results.record import SPLITS, Named, Record, path
from repro.storage import atomic, signed_json

if TYPE_CHECKING:  # imported late, so that `--help` waits for neither
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

FORMAT, INSIDE_FORMAT, SUFFIX = 2, 1, ".parquet"
LARGEST = 100_000  # bytes of a look inside
AGAIN = "Restore the file from git, or run the row again."
DEV = SPLITS[0]
_KEY = b"repro"  # the key of the facts about runs in the file's metadata
_OPTIONS = {"compression": "brotli", "compression_level": 11, "write_statistics": False, "write_page_checksum": True}
Column: TypeAlias = "NDArray[np.int64] | Sequence[str]"
_Run: TypeAlias = "tuple[tuple[int, ...], Mapping[str, Any], pa.Table]"  # the file's state, the facts, the run's lines


class Artifact(NamedTuple):
    """A run's outputs for one text."""

    about: Mapping[str, Any]  # said once: "run", its id, and what the task adds; plain data
    columns: Mapping[str, Column]  # [S] each, whole numbers or text


def own_file(place: Path, text: str) -> Path:
    """The file of one text of one's own run, beside its record at `place`."""
    return place.with_name(f"{place.stem}.{text}{SUFFIX}")


def write(place: Path, text: str, artifact: Artifact) -> None:
    """Write the file of one run beside the record at `place`; the same content gives the same bytes."""
    _write(own_file(place, text), {place.stem: artifact})


def state(place: Path, text: str) -> tuple[int, ...] | None:
    """A value that changes whenever the file with this text of the run at `place` does; None without a file."""
    found = _find(place, text)
    return found and found[0]


def read(
    place: Path, text: str, columns: Sequence[str] | None = None, *, run: str | None = None, n: int | None = None
) -> Artifact | None:
    """One text of the run whose record is at `place`, all columns or only `columns`; None where it has none.

    Raises ValueError for a damaged file, naming it and what to do, and for the text of another run than `run`, or of
    another length than `n`, where these are given.
    """
    if (found := _find(place, text)) is None:
        return None
    _, facts, sentences = found
    if run and facts["run"] != run:
        raise ValueError(f"{place}: expected {text} of run {run}, got that of run {facts['run']}. {AGAIN}")
    if n and len(sentences) != n:
        raise ValueError(f"{place}: {text}: expected {n:,} sentences, got {len(sentences):,}. {AGAIN}")
    kept: dict[str, Column] = {}
    for name in sentences.column_names:
        values = sentences[name]
        if (columns is None or name in columns) and values.null_count < len(values):  # else only other runs have it
            kept[name] = values.to_pylist() if str(values.type) == "string" else values.to_numpy().astype("int64")
    return Artifact(facts, kept)


def texts(place: Path) -> list[str]:
    """The texts for which the run at `place` has sentences, sorted by name."""
    own = {*place.parent.glob(own_file(place, "*").name)}
    shared = {*place.parent.glob(f"*{SUFFIX}")} - own
    names = {file.stem.removeprefix(f"{place.stem}.") for file in own}
    return sorted(names | {file.stem for file in shared if place.stem in _runs(file)})


def are_of(place: Path, run: str, texts: Iterable[str] = SPLITS) -> bool:
    """Whether the sentences of dev and test, or of `texts`, exist, are undamaged and belong to this run."""
    try:
        return all(read(place, text, run=run) for text in texts)
    except ValueError:
        return False


def copy(source: Path, target: Path, run: str) -> None:
    """Copy a run's files from beside the record at `source` to beside that at `target`; other runs' files go.

    Damaged files are not copied. Files of this run at `target` stay where `source` has none.
    """
    for text in texts(source):
        if are_of(source, run, [text]) and (found := read(source, text)):
            there = are_of(target, run, [text]) and read(target, text)
            if not there or there.about != found.about:
                write(target, text, found)
    for file in target.parent.glob(own_file(target, "*").name):
        if not are_of(target, run, [file.stem.removeprefix(f"{target.stem}.")]):
            file.unlink(missing_ok=True)
    if not is_inside_of(target, run):
        _copy_inside(source, target, run)


def publish(folder: Path, own: Path, runs: Mapping[str, str], *, whole: bool = True) -> None:
    """Write the files of all runs of the published table at `folder`, taken from `own` where they are there.

    `runs` are all runs of the table, by the stem of their record; sentences of any other run are removed. Of a table
    that is not `whole`, sentences of dev alone are written, and of further sets the scores.
    """
    places = {stem: (folder / f"{stem}.json", own / f"{stem}.json") for stem in sorted(runs)}
    texts_there = {file.stem for file in folder.glob(f"*{SUFFIX}")}
    for text in sorted(texts_there | {text for _, place in places.values() for text in texts(place)}):
        content = dict[str, Artifact]()
        for stem, both in places.items():
            found = [one for place in both if (one := read(place, text)) and one.about["run"] == runs[stem]]
            if found and (whole or text == DEV):
                content[stem] = found[-1]
            elif found and text not in SPLITS:
                content[stem] = found[-1]._replace(columns={})
        _write(folder / f"{text}{SUFFIX}", content)
    for stem, (there, mine) in places.items():
        _copy_inside(mine, there, runs[stem])


# Other test sets than that of the corpus, such as the other two of Multi30k; they decide nothing


class FurtherTest(NamedTuple):
    """One run on one test set."""

    sha256: str  # of the text, both sides
    scores: Named  # as those of the record's own test set
    hypotheses: list[str]  # in the order of the text; empty where a published table does not keep them


def write_further(place: Path, run: str, tests: Mapping[str, FurtherTest]) -> None:
    """Write the further tests of a run beside its record at `place`."""
    for name, test in tests.items():
        about = {"run": run, "sha256": test.sha256, "scores": test.scores}
        write(place, name, Artifact(about, {"hypothesis": test.hypotheses}))


def read_further(place: Path, run: str) -> dict[str, FurtherTest]:
    """The run's further tests by name, from beside its record at `place`; empty where there are none.

    Raises ValueError for a file that is damaged or of another run.
    """
    made = {}
    for name in texts(place):
        if name not in SPLITS and (found := read(place, name, run=run)):
            hypotheses = [*map(str, found.columns.get("hypothesis", ()))]
            made[name] = FurtherTest(found.about["sha256"], found.about["scores"], hypotheses)
    return made


def _table(stem: str, artifact: Artifact) -> "pa.Table":
    import numpy as np
    import pyarrow as pa

    row, named, seed = stem.rpartition("-seed")  # the record in a run's own folder has no such name
    n = max(map(len, artifact.columns.values()), default=0)
    begin = {"row": pa.array([row] * n, pa.string()), "seed": np.full(n, int(seed) if named else 0)}
    return pa.table(begin | {name: pa.array(artifact.columns[name]) for name in sorted(artifact.columns)})


def _write(file: Path, content: Mapping[str, Artifact]) -> None:
    """Write the runs, by the stem of their record, sentence after sentence; without runs, no file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not content:
        file.unlink(missing_ok=True)
        return
    tables = {stem: _table(stem, of) for stem, of in content.items()}
    runs = {stem: {"n": len(of), "about": content[stem].about} for stem, of in tables.items()}
    head = signed_json.signed({"format": FORMAT, "runs": runs})
    order = _order([len(of) for of in tables.values()])
    whole = pa.concat_tables([*tables.values()], promote_options="default").take(order).combine_chunks()
    # a dictionary would only add to text that rarely repeats
    lines = [
        field.name
        for field, column in zip(whole.schema, whole.columns, strict=True)
        if pa.types.is_string(field.type) and 4 * len(column.unique()) > len(column)
    ]
    data = BytesIO()
    with pq.ParquetWriter(
        data,
        whole.schema,
        store_schema=False,
        use_dictionary=[name for name in whole.column_names if name not in lines],
        column_encoding=dict.fromkeys(lines, "DELTA_LENGTH_BYTE_ARRAY"),
        **_OPTIONS,
    ) as writer:
        writer.add_key_value_metadata({_KEY: head})
        writer.write_table(whole, row_group_size=max(1, len(whole)))
    atomic.write_bytes(file, data.getvalue())


def _order(sizes: Sequence[int]) -> "NDArray[np.int64]":
    """The lines of runs, one run after the other, in the order of a file: by sentence, then by run."""
    import numpy as np

    return np.argsort(np.concatenate([np.arange(n) for n in sizes]), kind="stable")


def _find(place: Path, text: str) -> "_Run | None":
    return _runs(own_file(place, text)).get(place.stem) or _runs(place.with_name(f"{text}{SUFFIX}")).get(place.stem)


def _runs(file: Path) -> Mapping[str, _Run]:
    """The runs in a file, by the stem of their record; empty where there is no file."""
    try:
        seen = file.stat()
    except FileNotFoundError:
        return {}
    return _runs_once(file, (seen.st_mtime_ns, seen.st_size, seen.st_ino))


@functools.lru_cache(maxsize=256)  # the runs of a table are read one after the other
def _runs_once(file: Path, state: tuple[int, ...]) -> Mapping[str, _Run]:
    import numpy as np
    import pyarrow.parquet as pq

    try:
        whole = pq.read_table(file, page_checksum_verification=True, memory_map=False)
        runs = signed_json.parsed(whole.schema.metadata[_KEY], "sentences", FORMAT)["runs"]
        sizes = [run["n"] for run in runs.values()]
        lines = np.split(np.argsort(_order(sizes)), np.cumsum(sizes)[:-1])
        return {
            stem: (state, run["about"], whole.take(of).drop_columns(["row", "seed"]))
            for (stem, run), of in zip(runs.items(), lines, strict=True)
        }
    except (ValueError, LookupError, TypeError, AttributeError, OSError) as error:  # pyarrow's own are of these kinds
        raise ValueError(f"{file} is damaged: {error}. {AGAIN}") from error


# A look inside


def inside_file(place: Path) -> Path:
    """The file beside the record at `place`."""
    return place.with_name(f"{place.stem}.inside.gz")


def packed_inside(content: Mapping[str, Any], weights: bytes) -> bytes:
    """The bytes of a file; the same content gives the same bytes."""
    about = {"format": INSIDE_FORMAT, "weights": hashlib.sha256(weights).hexdigest()}
    head = signed_json.signed({**content, **about})
    return gzip.compress(head + b"\n" + weights, mtime=0)  # neither time nor name


def write_inside(place: Path, data: bytes) -> None:
    """Write the packed bytes beside the record at `place`."""
    atomic.write_bytes(inside_file(place), data)


def read_inside(place: Path) -> tuple[dict[str, Any], bytes]:
    """Read the content and the weights. Raises ValueError for a file that is damaged or missing."""
    file = inside_file(place)
    try:
        head, _, weights = gzip.decompress(file.read_bytes()).partition(b"\n")
        content = signed_json.parsed(head, "weights", INSIDE_FORMAT)
        if content["weights"] != hashlib.sha256(weights).hexdigest():
            raise ValueError("its checksum differs from that of its weights")
    except (OSError, EOFError, zlib.error, ValueError) as error:
        raise ValueError(f"{file}: {error}. Delete it and type the command of the run again.") from error
    return content, weights


def first_sentences(place: Path, n: int) -> bytes:
    """The packed file with only its first `n` sentences; unchanged where it has no more."""
    content, weights = read_inside(place)
    if n >= len(content["sentences"]):
        return inside_file(place).read_bytes()
    kept = content["sentences"][:n]
    size = sum(math.prod(told["shape"]) for sentence in kept for told in sentence["attention"])
    return packed_inside({**content, "sentences": kept}, weights[:size])


def weights_of(content: Mapping[str, Any], weights: bytes) -> "list[dict[str, NDArray[np.float64]]]":
    """The weights of `read_inside` as numbers: for each sentence by kind, [L, H, Q, K], off by at most 1/510."""
    import numpy as np

    shapes = [told["shape"] for of in content["sentences"] for told in of["attention"]]
    parts = iter(np.split(np.frombuffer(weights, np.uint8) / 255, np.cumsum([math.prod(shape) for shape in shapes])))
    return [
        {told["kind"]: next(parts).reshape(told["shape"]) for told in of["attention"]} for of in content["sentences"]
    ]


def seen_sentences(
    records: Iterable[Record], results: Path
) -> "Iterator[tuple[Record, list[tuple[dict[str, Any], dict[str, NDArray[np.float64]]]]]]":
    """The finished runs of committed code that have such a file, lowest seed first, each with its sentences.

    A sentence comes as the facts about it, and its weights as `weights_of` gives them.
    """
    for record in sorted(records, key=lambda one: one.seed):
        place = path(results, record)
        if record.status == "finished" and not record.stamp["dirty"] and is_inside_of(place, record.run):
            content, weights = read_inside(place)
            yield record, list(zip(content["sentences"], weights_of(content, weights), strict=True))


def is_inside_of(place: Path, run: str) -> bool:
    """Whether the file beside the record at `place` exists, is undamaged and belongs to this run."""
    try:
        return inside_file(place).exists() and bool(read_inside(place)[0]["run"] == run)
    except ValueError:
        return False


def _copy_inside(source: Path, target: Path, run: str) -> None:
    if is_inside_of(source, run):
        write_inside(target, inside_file(source).read_bytes())
    elif not is_inside_of(target, run):
        inside_file(target).unlink(missing_ok=True)


def has_glimpse(place: Path, run: str) -> bool:
    """Whether that file exists and holds a sentence; for most corpora the text may not be redistributed."""
    return is_inside_of(place, run) and bool(read_inside(place)[0]["sentences"])
