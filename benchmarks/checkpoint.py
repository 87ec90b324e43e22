"""Seconds and memory of a checkpoint: weights and both moments of Adam, written, read back, compared, on the disk.

The base model at the paper's vocabulary, 65 million parameters, is about 780 MB. It prints, of each
turn, the seconds of writing and of loading, the processor time of writing (which other work does not change), and the
memory of writing beyond the state itself. Each turn has a process of its own. `--folder` says which disk.

Run:  python benchmarks/checkpoint.py --json checkpoint.json
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from command import new_parser, save, show

from repro.model.config import BASE
from repro.model.cost import PAPER_VOCABULARY
from repro.training import checkpoint, cpu_tuning
from repro.training.module import TranslationModule

RUN = "0123456789abcdef"


def state_of_base() -> dict[str, Any]:
    """What Lightning hands over: the model's weights and an Adam that has made a step."""
    module = TranslationModule(BASE, PAPER_VOCABULARY, seed=1)
    optimizer = torch.optim.Adam(module.parameters())
    for parameter in module.parameters():
        parameter.grad = torch.full_like(parameter, 1e-3)
    optimizer.step()
    for parameter in module.parameters():
        parameter.grad = None
    return {"state_dict": module.state_dict(), "optimizer_states": [optimizer.state_dict()], "global_step": 1}


def seconds(work: Callable[[], object]) -> float:
    """Seconds on the clock that `work` takes."""
    started = time.monotonic()
    work()
    return time.monotonic() - started


def turn(folder: Path) -> dict[str, float]:
    """One checkpoint of the base model, in this process."""
    torch.set_num_threads(1)
    path, state = checkpoint.path_of(folder, 1), state_of_base()
    peak = cpu_tuning.PeakMemory()
    before, spent = peak.bytes() or 0, time.process_time()
    found = {"save": seconds(lambda: checkpoint.save(path, state, RUN)), "memory": (peak.bytes() or 0) - before}
    found["cpu of save"] = time.process_time() - spent
    found["bytes"] = path.stat().st_size
    found["load"] = seconds(lambda: checkpoint.load(path, RUN))
    return found


def main() -> None:
    """Print a line for each part."""
    parser = new_parser(__doc__)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()), help="on the disk to be measured")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        with tempfile.TemporaryDirectory(dir=options.folder) as folder:
            print(json.dumps(turn(Path(folder))))
        return
    command = [sys.executable, __file__, "--one", "--folder", str(options.folder)]
    turns = [
        json.loads(subprocess.run(command, check=True, capture_output=True).stdout.split(b"\n")[-2])
        for _ in range(options.turns)
    ]
    show(turns)
    save(options.json, {"turns": turns})


if __name__ == "__main__":
    main()
