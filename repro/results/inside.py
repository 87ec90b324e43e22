"""A model's attention weights on a few sentences, in a file beside its record: `<row>-seed<k>.inside.gz`.

A line of JSON, then the weights of all heads as bytes, round(255 w). For each sentence: first the encoder's weights,
then those of the decoder's self-attention, then those of its attention to the source, each [layers, heads, queries,
keys]. Entropies were computed before rounding. `repro/web/inside.py` shows it in a report. Paper: figures 3 to 5.
"""

import gzip
import hashlib
import math
import zlib
from collections.abc import Iterable, Iterator, Mapping
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from repro.results.record import Record, path
from repro.storage import atomic, signed_json

if TYPE_CHECKING:
    from numpy import float64
    from numpy.typing import NDArray

INSIDE_FORMAT = 1
LARGEST = 100_000  # bytes of such a file


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


def weights_of(content: Mapping[str, Any], weights: bytes) -> "list[dict[str, NDArray[float64]]]":
    """The weights of `read_inside` as numbers: for each sentence by kind, [L, H, Q, K], off by at most 1/510."""
    import numpy as np

    rest = BytesIO(weights)

    def numbers(shape: list[int]) -> "NDArray[float64]":
        return np.frombuffer(rest.read(math.prod(shape)), np.uint8).reshape(shape) / 255

    return [{told["kind"]: numbers(told["shape"]) for told in of["attention"]} for of in content["sentences"]]


def seen_sentences(
    records: Iterable[Record], results: Path
) -> "Iterator[tuple[Record, list[tuple[dict[str, Any], dict[str, NDArray[float64]]]]]]":
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


def has_glimpse(place: Path, run: str) -> bool:
    """Whether that file exists and holds a sentence; for most corpora the text may not be redistributed."""
    return is_inside_of(place, run) and bool(read_inside(place)[0]["sentences"])


def copy_inside(source: Path, target: Path, run: str) -> None:
    """Copy the run's file from beside the record at `source` to beside that at `target`; another run's file goes.

    A damaged file is not copied. A file of this run at `target` stays where `source` has none.
    """
    if is_inside_of(source, run):
        write_inside(target, inside_file(source).read_bytes())
    elif not is_inside_of(target, run):
        inside_file(target).unlink(missing_ok=True)
