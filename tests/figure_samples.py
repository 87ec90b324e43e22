"""What figures are tested with: weights of heads as runs leave them, and words of a picture with their places."""

import itertools
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from repro.decoding.heads import rounded_weights
from repro.results.inside import packed_inside, write_inside
from repro.results.record import Record, path

Weights = Mapping[str, Any]  # by kind of attention, [layers, heads, queries, keys]


def leave_inside(results: Path, record: Record, sentences: Iterable[tuple[Mapping[str, Any], Weights]]) -> Record:
    """Save a record, and beside it the weights of its heads on some sentences, each with what is said of it."""
    record.save(path(results, record))
    told, weights = [], []
    for about, of in sentences:
        told.append({**about, "attention": [{"kind": kind, "shape": [*one.shape]} for kind, one in of.items()]})
        weights += [rounded_weights(one).tobytes() for one in of.values()]
    write_inside(path(results, record), packed_inside({"run": record.run, "sentences": told}, b"".join(weights)))
    return record


def attention(random: np.random.Generator, shape: tuple[int, ...], keys: int) -> Any:
    """Weights of some heads; over the keys they sum to one."""
    return random.dirichlet(np.ones(keys), shape)


def assert_words_stand_apart(figure: Any, texts: Iterable[Any]) -> int:
    """No word of a picture touches another or the edge of the paper; returns how many are seen."""
    figure.draw_without_rendering()  # which puts names of axes in their places
    renderer = figure.canvas.get_renderer()
    seen = [(text.get_text(), text.get_window_extent(renderer)) for text in texts if text.get_text()]
    touching = [(one, other) for (one, box), (other, its) in itertools.combinations(seen, 2) if box.overlaps(its)]
    assert touching == []
    assert [text for text, box in seen if (box.min < 0).any() or (box.max > figure.bbox.max).any()] == []
    return len(seen)
