"""Runs as MLflow shows them: what tests write, read back and compare."""

import json
import math
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from repro.journal import FRAME
from repro.tracking.folder import JOURNALS, Point, write_run
from repro.tracking.store import connect

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
    tags = {
        "table": "table3_A",
        "row": "h=1",
        "seed": 1,
        "scale": "smoke",
        "corpus": "grammar",
        "pair": "en-de",
    }
    order = changes.pop("order", 1)
    paper = changes.pop("paper", {"ppl": 5.29, "bleu": 24.9})
    write_run(folder, run, tags=tags | changes, params={"n_heads": 1, "d_k": 512}, paper=paper, order=order)


def shown(folder: Path) -> list[Point]:
    """What MLflow should hold of a run folder, told without the code that brings it there.

    Of the lines of one kind and step the first counts; the paper's and the final numbers stand at step 0.
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
            points += [Point(f"{kind}/{name}", shown_at, float(x), round(time * 1000)) for name, x in line.items()]
        seen.add((kind, step))
    return sorted(points)


def stored(uri: str, run_id: str) -> list[Point]:
    """All that MLflow holds of a run, duplicates too."""
    client = connect(uri)
    keys = client.get_run(run_id).data.metrics
    history = [metric for key in keys for metric in client.get_metric_history(run_id, key)]
    return sorted(Point(metric.key, metric.step, metric.value, metric.timestamp) for metric in history)


def same(found: list[Point], wanted: list[Point]) -> bool:
    """Equal with NaN = NaN, and infinity = the largest float, as which MLflow keeps it."""
    largest = sys.float_info.max
    ready = [
        [(p.key, p.step, "nan" if math.isnan(p.value) else max(-largest, min(largest, p.value)), p.time) for p in side]
        for side in (sorted(found), sorted(wanted))
    ]
    return ready[0] == ready[1]


def run_of(uri: str, run_id: str) -> Any:
    return connect(uri).get_run(run_id)


def wait_for(done: Callable[[], bool], seconds: float = 30.0) -> None:
    deadline = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < deadline
        time.sleep(0.01)
