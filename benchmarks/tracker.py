"""What does the tracker cost a step of training, when it works, hangs, is dead or not used at all?

A step is one update of a small network, about 3 ms on one core, and one line of the journal. Real runs write a line
only every few steps, so their steps cost less. The trackers take turns in one process that has imported MLflow already.
`none` writes the journal and has no mirror; `dead` is a closed port; `hanging` accepts and never answers; `sqlite` is
the usual store, working. Step times include the append. Each figure is the median over the turns, of the median or of
the 99th centile of a turn; the ratios compare a turn with `none` of the same turn, and the range is over turns. `none
again` is a second turn without a mirror: it shows by how much two equal turns differ on this machine.

Run:  OMP_NUM_THREADS=1 python benchmarks/tracker.py          (about three minutes, one core)
"""

import socket
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from command import new_parser, save, show

from repro.storage.journal import Journal
from repro.tracking.client import Tracker, connect
from repro.tracking.mirror import Mirror
from repro.tracking.run_folder import write_run

NONE, AGAIN = "none", "none again"


@contextmanager
def trackers(folder: Path) -> Iterator[dict[str, str | None]]:
    """The address of each tracker; they run within this context."""
    with socket.socket() as closed, socket.socket() as hanging:
        for one in (closed, hanging):
            one.bind(("127.0.0.1", 0))
        hanging.listen(1_000)
        sqlite = f"sqlite:///{folder / 'mlflow.db'}"
        connect(sqlite)  # imports MLflow and makes the database
        yield {
            NONE: None,
            "dead": f"http://127.0.0.1:{closed.getsockname()[1]}",
            "hanging": f"http://127.0.0.1:{hanging.getsockname()[1]}",
            "sqlite": sqlite,
            AGAIN: None,
        }


def step_times(folder: Path, uri: str | None, n_steps: int) -> list[float]:
    """Seconds of each step of a new run in `folder`."""
    torch.manual_seed(1)
    model = torch.nn.Sequential(*(torch.nn.Linear(256, 256) for _ in range(4)))
    optimizer = torch.optim.Adam(model.parameters())
    batch = torch.randn(128, 256)
    write_run(folder, folder.name, tags={"table": "none", "scale": "benchmark"}, params={}, paper={})
    seconds = []
    with Journal(folder / "journal.jsonl") as journal:
        mirror = Mirror(Tracker(uri, tell=lambda _: None), folder) if uri else None
        for step in range(n_steps):
            began = time.perf_counter()
            loss = (model(batch) - batch).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            journal.append("train", step, loss=loss.item(), nll=loss.item(), lr=1e-3, tokens_per_second=1.0)
            seconds.append(time.perf_counter() - began)
    if mirror:
        threading.Thread(target=mirror.close, daemon=True).start()  # sending the rest must not delay the steps
    return seconds


def main() -> None:
    """Measure and print, in turns."""
    parser = new_parser(__doc__)
    parser.add_argument("--steps", type=int, default=2_000, help="of one turn of one tracker; default: %(default)s")
    parser.add_argument("--turns", type=int, default=5, help="default: %(default)s")
    options = parser.parse_args()
    turns: dict[str, list[tuple[float, float]]] = {}  # tracker -> median and 99th centile of each turn, ms
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder, trackers(Path(folder)) as found:
        step_times(Path(folder) / "warm", None, 200)
        for turn in range(options.turns):
            for name, uri in found.items():
                times = step_times(Path(folder) / f"{turn}{name.replace(' ', '-')}", uri, options.steps)
                cut = statistics.quantiles(times, n=100)
                turns.setdefault(name, []).append((1e3 * cut[49], 1e3 * cut[98]))
                time.sleep(1)  # lets the threads of the turn end
    made = {}
    for name, of in turns.items():
        medians, tails = ([pair[i] / none[i] for pair, none in zip(of, turns[NONE], strict=True)] for i in (0, 1))
        made[name] = {
            "median_ms": statistics.median(median for median, _ in of),
            "p99_ms": statistics.median(tail for _, tail in of),
            "median_ratio": statistics.median(medians),
            "p99_ratio": statistics.median(tails),
            "p99_ratio_range": [min(tails), max(tails)],
        }
    show([{"tracker": name, **of} for name, of in made.items()])
    save(options.json, {"steps": options.steps, "turns": options.turns, "trackers": made})


if __name__ == "__main__":
    main()
