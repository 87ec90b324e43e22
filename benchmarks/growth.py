"""How the time of a training step grows with what a user can choose.

One knob is turned at a time, from the small model that toolkits are compared at: width, layers, vocabulary, `pieces`
(tokens of an update), length of the sentences at equal tokens. A point is the median of steps after two that warm up;
the points of a knob take turns. The operations of each are computed (`repro/model/cost.py`), so the rate says how well
the machine is used.

Run:  python benchmarks/growth.py --json growth.json         (about two minutes, one thread)
"""

import argparse
import statistics
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
from train import SIZES

from repro.model.cost import TextSizes, training_flops
from repro.model.loss import smoothed_cross_entropy
from repro.results.provenance import provenance
from repro.storage import atomic
from repro.training import cpu_tuning
from repro.training.module import TranslationModule


@dataclass(frozen=True, kw_only=True)
class Point:
    """The sizes of one step."""

    width: int = 128
    layers: int = 2
    vocabulary: int = 8_000
    pieces: int = 2_048  # of a side
    length: int = 32


KNOBS: dict[str, tuple[int, ...]] = {
    "width": (64, 128, 256, 512),
    "layers": (1, 2, 4, 8),
    "vocabulary": (1_000, 4_000, 16_000, 37_000),
    "pieces": (512, 1_024, 2_048, 4_096),
    "length": (8, 32, 128, 512),
}


class Step:
    """The training step of a point, ready to be repeated."""

    def __init__(self, point: Point) -> None:
        hyper = replace(
            SIZES["small"][0], n_layers=point.layers, d_model=point.width, d_ff=4 * point.width, n_heads=4,
            d_k=point.width // 4, d_v=point.width // 4,
        )  # fmt: skip
        self.module = TranslationModule(hyper, point.vocabulary, seed=1)
        self.optimizer = self.module.configure_optimizers()
        self.optimizer.param_groups[0]["lr"] = 1e-4
        shape = point.pieces // point.length, point.length
        self.source, self.target = (torch.randint(2, point.vocabulary, shape) for _ in range(2))
        self.flops = training_flops(
            hyper,
            point.vocabulary,
            TextSizes(sentences=shape[0], source_tokens=point.pieces, target_tokens=point.pieces),
        )

    def seconds(self) -> float:
        """Seconds of one step."""
        start, model = time.perf_counter(), self.module.model
        hidden = model.decode(self.target, model.encode(self.source), self.source)
        loss, _ = smoothed_cross_entropy(hidden.flatten(0, -2), model.embedding.weight, self.target.flatten(), 0.1)
        (loss / self.target.numel()).backward()
        self.optimizer.step()
        self.optimizer.zero_grad()
        return time.perf_counter() - start


def measured(times: int) -> Iterator[dict[str, Any]]:
    """One line for each value of each knob."""
    for knob, values in KNOBS.items():
        steps = {value: Step(replace(Point(), **{knob: value})) for value in values}
        seconds: dict[int, list[float]] = {value: [] for value in values}
        for turn in range(times + 2):
            for value, step in steps.items():
                spent = step.seconds()
                if turn >= 2:
                    seconds[value].append(spent)
        for value, step in steps.items():
            middle = statistics.median(seconds[value])
            yield {
                "knob": knob,
                "value": value,
                "milliseconds": 1e3 * middle,
                "gflops": step.flops / 1e9,
                "gflops_per_second": step.flops / middle / 1e9,
            }


def main() -> None:
    """Measure, print and write down."""
    parser = argparse.ArgumentParser(
        allow_abbrev=False, description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--steps", type=int, default=7, help="of each point")
    parser.add_argument("--json", type=Path, help="write the record there")
    options = parser.parse_args()
    torch.set_num_threads(1)
    point = Point()
    settings = cpu_tuning.tune(point.pieces * point.width**2)
    lines = []
    for line in measured(options.steps):
        lines.append(line)
        print(
            f"{line['knob']:<12}{line['value']:>8,}{line['milliseconds']:>10.1f} ms"
            f"{line['gflops_per_second']:>8.0f} GFLOP/s",
            flush=True,
        )
    if options.json:
        record = {"kind": "growth", "from": asdict(point), "settings": settings, "lines": lines}
        atomic.write_json(options.json, {**record, "stamp": provenance("cpu")})


if __name__ == "__main__":
    main()
