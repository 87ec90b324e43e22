"""What runs will cost, before they are made: by arithmetic and the speed of runs made here before."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from repro.data.download.sources import COLLECTIONS
from repro.model.config import BASE, Hyper
from repro.model.cost import PAPER_VOCABULARY, TextSizes, n_parameters, training_flops
from repro.results.labels import label
from repro.results.record import load
from repro.runs.scales import Scale
from repro.runs.table import Cell

BYTES_A_PARAMETER = 12  # in a checkpoint: the weight and Adam's two moments
SPARE_CHECKPOINTS = 2  # beside those that the row averages
OTHER_FILES = 16  # its description, journals, translations and record, an attempt at it, and one that is being written
BYTES_A_CHECKPOINT, BYTES_A_LINE = 64_000, 250  # at most: names and counters of a checkpoint; a line of the journal
BYTES_A_TOKEN, BYTES_AN_OFFSET = 2, 4
FLOPS_PER_CORE = 40e9  # sustained, until a finished run on this machine gives a better figure


def forecast(table: str, asked: Sequence[Cell], scale: Scale, runs: Path) -> str:
    """Rows, parameters, tokens, operations, time and disk before anything is trained."""
    speed, source = speed_here(runs)
    names = [label(cell.row.name, vars(cell.hyper)) for cell in asked]
    width = max(map(len, names)) + 2
    lines = [
        f"{'row':<{width}}{'seed':>5}{'steps':>9}{'params here':>13}{'at paper size':>15}"
        f"{'tokens':>10}{'FLOPs':>10}{'time':>10}"
    ]
    total = 0.0
    for name, cell in zip(names, asked, strict=True):
        flops = expected_flops(cell.hyper, scale, cell.task.name, cell.row.system)
        total += flops / speed
        lines.append(
            f"{name:<{width}}{cell.seed:>5}{cell.hyper.steps:>9,}"
            f"{n_parameters(cell.hyper, expected_vocabulary(scale, cell.task.name), cell.row.system) / 1e6:>12.2f}M"
            f"{n_parameters(cell.row.change(BASE), PAPER_VOCABULARY, cell.row.system) / 1e6:>14.1f}M"
            f"{2 * cell.hyper.steps * scale.batch_tokens:>10.1e}"
            f"{flops:>10.1e}{duration(flops / speed):>10}"
        )
    return "\n".join(
        [
            f"{table} at scale {scale.name}: {len(asked)} runs on {scale.corpus}; shows {scale.claim}.",
            *lines,
            f"Training in all about {duration(total)} at {speed:.1e} FLOP/s ({source}).",
            f"Tokens are source and target tokens read in training. Disk: {_disk(asked, scale)}.",
        ]
    )


def expected_vocabulary(scale: Scale, pair: str) -> int:
    """The size of the vocabulary; of one that comes with the text it is known when that is here."""
    return scale.subwords(pair).size or PAPER_VOCABULARY


def expected_flops(hyper: Hyper, scale: Scale, pair: str, system: Any = None) -> float:
    """Floating-point operations of training one run, as if no slot were padding."""
    tokens = float(hyper.steps * scale.batch_tokens)
    text = TextSizes(sentences=tokens / scale.sentence_tokens, source_tokens=tokens, target_tokens=tokens)
    return training_flops(hyper, expected_vocabulary(scale, pair), text, system)


def run_bytes(hyper: Hyper, scale: Scale, pair: str, system: Any = None) -> int:
    """What a run keeps on the disk: its checkpoints and its journal."""
    n = n_parameters(hyper, expected_vocabulary(scale, pair), system)
    checkpoint = BYTES_A_PARAMETER * n + BYTES_A_CHECKPOINT
    lines = hyper.steps // scale.log_every + hyper.steps // scale.validate_every + 1
    return checkpoint * (SPARE_CHECKPOINTS + hyper.average) + lines * BYTES_A_LINE


def run_files(hyper: Hyper) -> int:
    """How many files and folders a run makes, at most."""
    return SPARE_CHECKPOINTS + hyper.average + OTHER_FILES


def _disk(asked: Sequence[Cell], scale: Scale) -> str:
    """What the runs and their text will take."""
    checkpoints = sum(run_bytes(cell.hyper, scale, cell.task.name, cell.row.system) for cell in asked)
    parts = [f"checkpoints at most {size(checkpoints)}"]
    archives: dict[str, int] = {}  # two pairs may share some
    for pair in dict.fromkeys(cell.task.name for cell in asked):
        if collection := COLLECTIONS.get(f"{scale.corpus}-{pair}"):
            archives |= {source.archive: source.size_at_most for source in collection.sources}
            ids = 2 * collection.n_train * (BYTES_A_TOKEN * scale.sentence_tokens + BYTES_AN_OFFSET)
            parts.append(f"{scale.corpus} {pair} {size(collection.text_bytes)} of text, {size(ids)} of ids")
    return "; ".join(parts + ([f"archives at most {size(sum(archives.values()))}"] if archives else []))


def speed_here(runs: Path) -> tuple[float, str]:
    """Floating-point operations per second of the newest finished run here, or a guess; and which it is."""
    records = sorted(runs.glob("*/record.json"), key=lambda found: found.stat().st_mtime)
    for newest in reversed(records):
        try:
            cost = load(newest).cost
        except ValueError:
            continue  # of another format or damaged; it is named when its run is asked for
        if cost["train_seconds"]:
            return cost["flops"] / cost["train_seconds"], f"measured in {newest.parent}"
    return FLOPS_PER_CORE * (os.cpu_count() or 1), "assumed for this processor; no finished run yet"


def duration(seconds: float) -> str:
    """Seconds as a person says them."""
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.0f} s"


def size(n_bytes: float) -> str:
    """Bytes as a person says them."""
    for unit, name in ((1e9, "GB"), (1e6, "MB")):
        if n_bytes >= unit:
            return f"{n_bytes / unit:.1f} {name}"
    return f"{n_bytes / 1e3:.0f} kB"
