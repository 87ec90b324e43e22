"""Records as short as a sentence, for figures that are made from records, and the words of a picture."""

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from paper_runs import paper_run, perplexity

from repro.decoding.inside import rounded_weights
from repro.figures import style
from repro.model.config import Hyper
from repro.results.artifacts import packed_inside, write_inside
from repro.results.record import Record, path

HYPER = Hyper(n_layers=3, d_model=16, d_ff=32, n_heads=2, d_k=8, d_v=8, steps=20, warmup=7, average_every=1)


def record(row: str = "base", seed: int = 1, **other: Any) -> Record:
    """A record of `base`, or of another row of table3_A; `bleu`, `ppl`, `flops`, `train`, `dev`, `dirty` by name."""
    usual, dirty = paper_run(), other.pop("dirty", False)
    score = {**usual.scores["dev"], **perplexity(math.log(other.pop("ppl", 2.0))), "bleu": float(other.pop("bleu", 60))}
    curves = {
        "train": other.pop("train", {"step": [10, 20], "nll": [3.0, 2.0]}),
        "dev": other.pop("dev", {"step": [20], "nll": [2.5]}),
    }
    content: dict[str, Any] = {
        "run": f"{seed:016x}",
        "position": -1 if row == "base" else 0,
        "scale": "laptop",
        "seed": seed,
        "corpus": {**usual.corpus, "name": "grammar", "n_train": 5, "n_dev": 3, "n_test": 2},
        "hyper": asdict(HYPER),
        "paper": dict.fromkeys(("ppl", "bleu", "params")),
        "scores": dict.fromkeys(("dev", "test"), score),
        "curves": curves,
        "cost": {**usual.cost, "steps": 20, "flops": float(other.pop("flops", 1e9))},
        "stamp": {**usual.stamp, "commit": "12" * 20, "dirty": dirty, "why_dirty": "a file" if dirty else None},
    }
    table = other.pop("table", "base" if row == "base" else "table3_A")
    return paper_run(row, table, **(content | other))


@pytest.fixture(scope="session")
def a_record() -> Callable[..., Record]:
    return record


@pytest.fixture(autouse=True, scope="module")
def house() -> Iterator[None]:
    with style.house():
        yield


@pytest.fixture
def notes(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The captions of the figures that a test draws."""
    texts: list[str] = []
    monkeypatch.setattr(style, "note", lambda figure, text: texts.append(" ".join(text.split())))
    return texts


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
