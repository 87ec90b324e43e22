"""Records of a small world, for the tests of tables and pages, and the texts of what is made of them."""

import math
import re
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from paper_runs import PAPER_SETTINGS, paper_run

from repro.model.config import Hyper
from repro.pages import columns as of_frame
from repro.pages import tables
from repro.render.markup import markdown
from repro.render.page import Column, plain
from repro.render.terminal import terminal
from repro.results import frame as frames
from repro.results.record import PaperNumbers, Record, path

BASE = Hyper(n_layers=3, d_model=128, d_ff=512, d_k=16, d_v=16, steps=600, warmup=24)
PRINTED = {
    "base": PaperNumbers(ppl=4.92, bleu=25.8, params=65.0),
    "h=1": PaperNumbers(ppl=5.29, bleu=24.9, params=None),
    "h=4": PaperNumbers(ppl=5.00, bleu=25.5, params=None),
    "h=16": PaperNumbers(ppl=4.91, bleu=25.8, params=None),
}
EXPECTED = {
    ("base" if row == "base" else "table3_A", row): frames.Listed(position, paper)
    for position, (row, paper) in enumerate(PRINTED.items(), start=-1)
}
SIGNATURE = "nrefs:1|case:mixed|tok:13a"


PAPER = paper_run()


def run(row: str, seed: int = 1, *, bleu: float = 60.0, ppl: float = 2.0, dirty: bool = False, **other: Any) -> Record:
    """A record of `base`, or of a row `h=...`."""
    hyper = BASE
    if found := re.fullmatch(r"h=(\d+)", row):
        n_heads = int(found[1])
        hyper = replace(BASE, n_heads=n_heads, d_k=128 // n_heads, d_v=128 // n_heads)
    dev: Any = {
        "nll": math.log(ppl), "ppl": float(ppl), "bleu": float(bleu), "bleu_signature": SIGNATURE,
        "bleu_published": bleu + 1, "bleu_published_signature": "tok:moses",
    }  # fmt: skip
    stamp = {
        "fingerprint": "ef" * 32, "commit": "12" * 20, "dirty": dirty, "cpu": "a processor", "device": "a processor",
        "why_dirty": "not committed: repro/paper.py" if dirty else None, "n_threads": 2,
        "versions": {"torch": "2.13.0"}, "started": "2026-11-21T01:13:21+00:00",
    }  # fmt: skip
    content: dict[str, Any] = {
        "run": f"{seed:016x}",
        "position": -1 if row == "base" else list(PRINTED).index(row) - 1 if row in PRINTED else 0,
        "scale": "laptop",
        "seed": seed,
        "corpus": {"name": "grammar", "sha256": "ab" * 32, "n_train": 9, "n_dev": 5, "n_test": 7, "dropped": {}},
        "tokenizer": {"sha256": "cd" * 32, "size": 1_009},
        "hyper": asdict(hyper),
        "settings": PAPER_SETTINGS | {"batch_tokens": 512, "claim": "the sign of large effects"},
        "paper": PRINTED.get(row, PaperNumbers(ppl=None, bleu=None, params=None)),
        "params": {"here": 1_234_567, "paper_size": 65_111_040},
        "scores": {"dev": dev, "test": {**dev, "bleu": max(bleu - 1, 0.0), "bleu_published": bleu}},
        "curves": {"train": {"step": [20, 40], "nll": [4.5, 3.25]}, "dev": {"step": [40], "nll": [3.5]}},
        "cost": PAPER.cost | {"steps": 600, "train_seconds": 48.0, "decode_seconds": 7.0},
        "stamp": PAPER.stamp | stamp,
    }  # fmt: skip
    return paper_run(row, **{"table": "base" if row == "base" else "table3_A", **content, **other})


def both(
    row: str,
    seed: int,
    bleu: float,
    mean: float,
    *,
    ppl: float = 1.5,
    length: float = 1.0,
    n: int = 10,
    last_ppl: float = 2.0,
) -> Record:
    """A run of a row, and by the mean of n checkpoints another BLEU, perplexity and length."""
    plain = run(row, seed, bleu=bleu, ppl=last_ppl)
    dev: Any = {**plain.scores["dev"], "nll": math.log(ppl), "ppl": ppl, "bleu": mean, "length": length}
    last_mean: Any = {
        "steps": [*range(600 - n, 600)],
        "weights": "ab" * 32,
        "seconds": 1.5,
        "dev": dev,
        "test": {**dev},
    }
    return replace(plain, last_mean=last_mean)


def diverged(row: str, seed: int) -> Record:
    nothing: Any = dict.fromkeys(run("base").scores["dev"])
    return run(row, seed, scores={"dev": nothing, "test": nothing}, status="diverged")


def stamped(record: Record, **changes: Any) -> Record:
    stamp: Any = {**record.stamp, **changes}
    return replace(record, stamp=stamp)


FULL = [run(row, seed, bleu=60 + i + seed, ppl=2 - i / 10) for i, row in enumerate(PRINTED) for seed in (1, 2, 3)]


def save(results: Path, records: Sequence[Record] = FULL) -> Path:
    for record in records:
        record.save(path(results, record))
    return results


def laptop(results: Path) -> frames.ResultSet:
    """What is published at `laptop`."""
    return frames.ResultSet.read(results / "laptop")


def own(results: Path, published: Path, *uncommitted: str) -> frames.ResultSet:
    """One's own results at `laptop`, with the rows there should be."""
    frames.note_rows(results / "laptop", EXPECTED)
    return frames.ResultSet.read_own(results / "laptop", published, uncommitted)


def columns(frame: Any) -> list[Column]:
    """All columns that pages show of a table like most."""
    makers = ("setting_columns", "columns_of_dev", "columns_of_last_mean", "columns_of_test", "size_columns")
    return [
        of_frame.row_column(frame),
        *(column for name in (*makers, "cost_columns") for column in getattr(of_frame, name)(frame)),
    ]


def cell(frame: Any, group: str, heading: str, *, nth: int = 0) -> dict[str, str]:
    """The texts of a column, by row."""
    found = [column.texts for column in columns(frame) if column[:2] == (group, heading)]
    return dict(zip(frame["row"], map(plain, found[nth]), strict=True))


def page_of(frame: Any, scale: str, name: str) -> str:
    """The page of a table in Markdown."""
    return markdown(tables.page_of_table(frame, scale, name))


def at_the_end(frame: Any) -> str:
    """What an experiment shows of a table at its end."""
    return terminal(tables.at_the_end(frame))
