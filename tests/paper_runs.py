"""Records of runs that were never made: exactly what the paper describes, and what a test changes in it."""

import hashlib
import math
from dataclasses import asdict, replace
from typing import Any

from repro.claims.catalogue import Claim, catalogue_digest
from repro.claims.decisions import FIRST_SEED, SEEDS
from repro.model.config import BASE
from repro.results.record import Record

PAPER_SETTINGS = {
    "batch_tokens": 25_000, "beam": 4, "alpha": 0.6, "extra_length": 50, "precision": "fp32", "claim": "the numbers",
}  # fmt: skip


def paper_run(row: str = "base", table: str = "base", **other: Any) -> Record:
    """A run exactly as the paper describes it."""
    score = perplexity(math.log(1.5)) | dict.fromkeys(("bleu", "bleu_published"), 1.5)
    score |= dict.fromkeys(("bleu_signature", "bleu_published_signature"), "tok:13a")  # type: ignore[arg-type]
    fields: dict[str, Any] = {
        "run": "0123456789abcdef",
        "table": table,
        "row": row,
        "position": -1,
        "scale": "paper",
        "seed": 1,
        "pair": "en-de",
        "corpus": {
            "name": "wmt14", "sha256": "ab", "n_train": 4_508_785, "n_dev": 3_000, "n_test": 3_003, "dropped": {},
        },
        "tokenizer": {"sha256": "cd", "size": 37_000},
        "hyper": asdict(BASE),
        "settings": PAPER_SETTINGS,
        "paper": {"ppl": 4.92, "bleu": 25.8, "params": 65.0},
        "params": {"here": 63_000_000, "paper_size": 65_111_040},
        "scores": {"dev": score, "test": score},
        "curves": {"train": {"step": [], "nll": []}, "dev": {"step": [], "nll": []}},
        "cost": {
            "steps": 100_000, "source_tokens": 1, "target_tokens": 1, "train_seconds": 1.0, "decode_seconds": 1.0,
            "tokens_per_second": 1.0, "padding": 0.0, "flops": 1.0, "peak_memory_bytes": None, "gpu_hours": 0.0,
        },
        "stamp": {
            "fingerprint": "ef", "commit": None, "dirty": False, "why_dirty": None, "python": "3.11", "platform": "x",
            "cpu": "x", "device": "x", "n_threads": 1, "versions": {}, "started": "now", "mlflow_run": None,
        },
        "status": "finished",
    }  # fmt: skip
    return Record(**{**fields, **other})


def perplexity(nll: float) -> dict[str, float]:
    """The two scores that say the same."""
    return {"nll": nll, "ppl": math.exp(nll)}


def changed(**hyper: Any) -> dict[str, Any]:
    return asdict(replace(BASE, **hyper))


def told_apart(row: str, table: str, seed: int = 1, **other: Any) -> Record:
    """A run no two of whose numbers are alike, so that each is seen in the column where it belongs and in no other."""
    signatures = {"bleu_signature": "tok:13a", "bleu_published_signature": "tok:moses"}
    scores = {
        "dev": {**perplexity(1.25), "bleu": 21.1, "bleu_published": 22.2, **signatures},
        "test": {**perplexity(1.5), "bleu": 33.3, "bleu_published": 34.4, **signatures},
    }
    cost = paper_run().cost | {"train_seconds": 711.0, "decode_seconds": 722.0, "flops": 7.3e17, "gpu_hours": 7.4}
    params = {"here": 51_500_000, "paper_size": 52_600_000}
    numbers: dict[str, Any] = {"scores": scores, "cost": cost, "params": params}
    return paper_run(row, table, seed=seed, **{**numbers, **other})


def that_counts(record: Record, claims: str | None = None) -> Record:
    """The same as evidence: begun under this list of claims, all updates made as planned, a run of its own."""
    own = hashlib.sha256(f"{record.table} {record.row} {record.seed}".encode()).hexdigest()
    order = f"order of seed {record.seed}"
    badge = {"badge": "L2", "against": [], "order": order, "plan": order, "replayed": 0, "repeated_lines": 0}
    made: Any = {
        "run": own[:16],
        "claims": claims or catalogue_digest(),
        "determinism": {**badge, "weights": own},
        "cost": {**record.cost, "steps": record.hyper["steps"]},
    }
    return replace(record, **made)


def around(table: str, row: str, bleu: float, position: int = 0, **other: Any) -> list[Record]:
    """Runs around a BLEU, as many as count, and the better the lower is their perplexity."""
    runs = []
    for seed in range(FIRST_SEED, FIRST_SEED + SEEDS):
        found = bleu + 0.1 * (seed % 3 - 1) + 0.01 * (len(row) * seed % 7)
        score = paper_run().scores["dev"] | {"bleu": found, **perplexity(2 - found / 100)}
        scores = {"dev": score, "test": score}
        runs.append(that_counts(paper_run(row, table, seed=seed, position=position, scores=scores, **other)))
    return runs


def direction(id: str, where: str, says: str, better: str, worse: str, *, scale: str, **other: Any) -> Claim:
    """A claim that one row is better than another."""
    return Claim(id=id, where=where, says=says, kind="direction", rows=(better, worse), scale=scale, **other)
