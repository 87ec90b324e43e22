"""Seconds and memory of a checkpoint: weights and both moments of Adam, written, read back, compared, on the disk.

The base model at the paper's vocabulary, 65 million parameters, is about 780 MB. It prints median and extremes of
writing and of loading, the processor time of writing (which other work does not change), and the most memory beyond
the state itself. Each turn has a process of its own. `--folder` says which disk.

Run:  python benchmarks/checkpoint.py --json checkpoint.json
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from repro.model.config import BASE
from repro.model.cost import PAPER_VOCABULARY
from repro.results.provenance import provenance
from repro.storage import atomic
from repro.training import checkpoint
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


def memory(what: str) -> int:
    """A memory figure of this process from the kernel, in bytes; VmHWM is the peak since it was last reset."""
    status = Path("/proc/self/status").read_bytes().decode()
    return int(status.partition(f"{what}:")[2].split()[0]) * 1_024


def turn(folder: Path) -> dict[str, float]:
    """One checkpoint of the base model, in this process."""
    torch.set_num_threads(1)
    path, state = checkpoint.path_of(folder, 1), state_of_base()
    with open("/proc/self/clear_refs", "wb") as file:
        file.write(b"5")  # reset the peak of memory
    before, spent = memory("VmHWM"), time.process_time()
    found = {"save": seconds(lambda: checkpoint.save(path, state, RUN)), "memory": memory("VmHWM") - before}
    found["cpu of save"] = time.process_time() - spent
    found["bytes"] = path.stat().st_size
    found["load"] = seconds(lambda: checkpoint.load(path, RUN))
    return found


def main() -> None:
    """Print a line for each part."""
    parser = argparse.ArgumentParser(allow_abbrev=False, description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()), help="on the disk to be measured")
    parser.add_argument("--json", type=Path, help="write what was found there as well")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        if options.one:
            print(json.dumps(turn(Path(folder))))
            return
    command = [sys.executable, __file__, "--one", "--folder", str(options.folder)]
    turns = [
        json.loads(subprocess.run(command, check=True, capture_output=True).stdout.split(b"\n")[-2])
        for _ in range(options.turns)
    ]
    print(f"{turns[0]['bytes'] / 1e6:.0f} MB, {options.turns} turns; seconds: median, least, most")
    for part in ("save", "cpu of save", "load"):
        found = [one[part] for one in turns]
        print(f"{part:<12}{statistics.median(found):>8.2f}{min(found):>8.2f}{max(found):>8.2f}")
    print(f"most memory beyond the state while saving: {max(one['memory'] for one in turns) / 1e6:.0f} MB")
    if options.json:
        atomic.write_json(options.json, {"turns": turns, "stamp": provenance("cpu")})


if __name__ == "__main__":
    main()
