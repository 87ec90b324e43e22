"""Runs as MLflow shows them: what tests write, read back and compare."""

import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

from repro.storage.journal import FRAME, Journal
from repro.tracking.client import connect
from repro.tracking.run_folder import JOURNALS, Point, write_run

ROOT = Path(__file__).parent.parent


def strict(text: bytes) -> Any:
    """JSON as the standard has it: NaN and Infinity are refused."""

    def refuse(name: str) -> float:
        raise AssertionError(f"{name} is not JSON")

    return json.loads(text, parse_constant=refuse)


def python(code: str, *arguments: object, **more: Any) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-W", "error", "-c", code, *map(str, arguments)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **more)


def describe(folder: Path, run: str, **changes: Any) -> None:
    tags = {"table": "table3_A", "row": "h=1", "seed": 1, "scale": "smoke", "corpus": "grammar", "pair": "en-de"}
    order = changes.pop("order", 1)
    paper = changes.pop("paper", {"ppl": 5.29, "bleu": 24.9})
    write_run(folder, run, tags=tags | changes, params={"n_heads": 1, "d_k": 512}, paper=paper, order=order)


def shown(folder: Path) -> list[Point]:
    """What MLflow should hold of a run folder, told without the code that brings it there.

    Of the lines of one kind and step the first counts; the paper's and the final numbers stand at step 0. What is
    infinite is a tag, and no point of a curve.
    """
    run = json.loads((folder / "run.json").read_bytes())
    found = {"row": run["order"], **run["paper"]}
    points = [Point(f"paper/{name}", 0, value, 0) for name, value in found.items() if value is not None]
    seen = set()
    for text in b"".join((folder / name).read_bytes() for name in JOURNALS if (folder / name).exists()).split(b"\n"):
        line = json.loads(text or b'{"kind": "none", "step": 0, "time": 0, "attempt": 0}')
        line.pop("crc32", None)
        kind, step, time, _ = (line.pop(name) for name in FRAME)
        if (kind, step) not in seen:
            shown_at = 0 if kind == "final" else step
            numbers = {name: float(x) for name, x in line.items()}
            points += [Point(f"{kind}/{name}", shown_at, x, round(time * 1000)) for name, x in numbers.items()]
        seen.add((kind, step))
    return sorted(points)


def stored(uri: str, run_id: str) -> list[Point]:
    """All that MLflow holds of a run, duplicates too."""
    client = connect(uri)
    keys = client.get_run(run_id).data.metrics
    history = [metric for key in keys for metric in client.get_metric_history(run_id, key)]
    return sorted(Point(metric.key, metric.step, metric.value, metric.timestamp) for metric in history)


def same(found: list[Point], wanted: list[Point]) -> bool:
    """Equal with NaN = NaN; what is wanted to be infinite is not there."""
    finite = [point for point in wanted if not math.isinf(point.value)]
    ready = [
        [(p.key, p.step, "nan" if math.isnan(p.value) else p.value, p.time) for p in side]
        for side in (sorted(found), sorted(finite))
    ]
    return ready[0] == ready[1]


def run_of(uri: str, run_id: str) -> Any:
    return connect(uri).get_run(run_id)


def eventful(runs: Path, run: str) -> Path:
    """A run folder with curves, a crash, a NaN and infinities."""
    folder = runs / run
    describe(folder, run)
    with Journal(folder / "journal.jsonl") as journal:
        for step in range(1, 41):
            journal.append("train", step, loss=10 / step, lr=step / 1e6, tokens_per_second=20_000.5)
        journal.append("train", 41, loss=math.nan, lr=math.inf, tokens_per_second=-math.inf)
    with Journal(folder / "journal.jsonl") as journal:
        for step in (40, 41, 42):
            journal.append("train", step, loss=step / 3, lr=step / 1e6, tokens_per_second=1.25)
        journal.append("dev", 42, nll=math.nan, ppl=math.inf)
        journal.append("final", 0, dev_ppl=3.1415926535, dev_bleu=57.25)
    with Journal(folder / "system.jsonl") as journal:
        journal.append("system", 0, cpu_utilization_percentage=50.0)
    return folder
