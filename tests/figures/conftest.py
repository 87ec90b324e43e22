"""Records as short as a sentence, for figures that are made from records."""

import math
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import pytest

from repro.model.config import Hyper
from repro.results.record import Curve, Record

HYPER = Hyper(n_layers=3, d_model=16, d_ff=32, n_heads=2, d_k=8, d_v=8, steps=20, warmup=7, average_every=1)


def record(row: str = "base", seed: int = 1, **other: Any) -> Record:
    """A record of `base`, or of another row of table3_A; `bleu`, `ppl`, `flops`, `train`, `dev`, `dirty` by name."""
    is_base = row == "base"
    ppl = float(other.pop("ppl", 2.0))
    score: Any = {
        "nll": math.log(ppl),
        "ppl": ppl,
        "bleu": float(other.pop("bleu", 60.0)),
        "bleu_signature": "nrefs:1",
        "bleu_published": 61.0,
        "bleu_published_signature": "tok:moses",
    }
    train: Curve = {"step": [10, 20], "nll": [3.0, 2.0]}
    dirty = other.pop("dirty", False)
    content: dict[str, Any] = {
        "run": f"{seed:016x}",
        "table": "base" if is_base else "table3_A",
        "row": row,
        "position": -1 if is_base else 0,
        "scale": "laptop",
        "seed": seed,
        "pair": "en-de",
        "corpus": {"name": "grammar", "sha256": "ab" * 32, "n_train": 5, "n_dev": 3, "n_test": 2, "dropped": {}},
        "tokenizer": {"sha256": "cd" * 32, "size": 300},
        "hyper": asdict(HYPER),
        "settings": {"claim": "the sign of large effects"},
        "paper": {"ppl": None, "bleu": None, "params": None},
        "params": {"here": 1, "paper_size": 1},
        "scores": {"dev": score, "test": score},
        "curves": {"train": other.pop("train", train), "dev": other.pop("dev", {"step": [20], "nll": [2.5]})},
        "cost": {
            "steps": 20,
            "source_tokens": 100,
            "target_tokens": 100,
            "train_seconds": 1.0,
            "decode_seconds": 1.0,
            "tokens_per_second": 200.0,
            "padding": 0.0,
            "flops": float(other.pop("flops", 1e9)),
            "peak_memory_bytes": None,
            "gpu_hours": 0.0,
        },
        "stamp": {
            "fingerprint": "ef" * 32,
            "commit": "12" * 20,
            "dirty": dirty,
            "why_dirty": "not committed: repro/model/config.py" if dirty else None,
            "python": "3.11.7",
            "platform": "Linux",
            "cpu": "a processor",
            "device": "a processor",
            "n_threads": 1,
            "versions": {"torch": "2.13.0"},
            "started": "2026-11-21T01:13:21+00:00",
            "mlflow_run": None,
        },
        "status": "finished",
    }
    return Record(**(content | other))


@pytest.fixture(scope="session")
def a_record() -> Callable[..., Record]:
    return record
