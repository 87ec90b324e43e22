"""The measurements of the layers of Table 1, and the one file that keeps them. Paper: section 4.

`repro/complexity/measure.py` measures, `repro/pages/table1.py` makes the table; this file is between them
and needs no torch.
"""

import json
from dataclasses import asdict, dataclass
from pathlib import Path as FilePath
from typing import Any

from repro.results.provenance import Provenance
from repro.storage import signed_json

FORMAT = 1
LAYER_COSTS_FOLDER, FILE = "table1", "measured.json"  # under results/


@dataclass(frozen=True, kw_only=True)
class Grid:
    """The sizes at which the layers are built, and how often they are timed."""

    n: tuple[int, ...]  # lengths at which operations and memory are counted
    n_odd: tuple[int, ...]  # odd lengths, which a kernel can have as well: k = n
    d: tuple[int, ...]
    windows: tuple[int, ...]  # kernels k and neighbourhoods r; time is measured at the first
    n_paths: tuple[int, ...]  # lengths at which steps are counted and gradients followed
    n_timed: tuple[int, ...]
    d_timed: tuple[int, ...]
    n_scored: tuple[int, ...]  # additive against dot-product attention
    d_k: tuple[int, ...]
    rounds: int


@dataclass(frozen=True)
class Count:
    """Operations and memory of one layer for one sequence."""

    layer: str
    n: int
    d: int
    window: int | None  # kernel k or neighbourhood r
    flops: int  # multiplications and additions of the forward pass, the whole layer
    mixing_flops: int  # those that combine positions
    saved_bytes: int  # kept for the backward pass, parameters left out


@dataclass(frozen=True)
class Steps:
    """Matrix products that must run one after another in the mixing of one layer."""

    layer: str
    n: int
    window: int | None
    steps: int


@dataclass(frozen=True)
class Path:
    """Layers, or steps of a recurrence, between the positions that are furthest apart."""

    layer: str
    n: int
    window: int | None
    path: int


@dataclass(frozen=True)
class Time:
    """Seconds of a forward and backward pass of one layer, one number for each round."""

    layer: str
    n: int
    d: int
    window: int | None
    seconds: list[float]


@dataclass(frozen=True)
class ScoringCount:
    """Operations and kept bytes of the heads of one sequence with dot-product or additive scores."""

    scoring: str
    n: int
    d_k: int
    flops: int
    saved_bytes: int


@dataclass(frozen=True)
class ScoringTime:
    """Seconds of a forward and backward pass of the heads of one sequence, one number for each round."""

    scoring: str
    n: int
    d_k: int
    seconds: list[float]


@dataclass(frozen=True, kw_only=True)
class Measured:
    """All measurements of one call, and where they come from."""

    grid: dict[str, Any]
    settings: dict[str, Any]
    counts: list[Count]
    steps: list[Steps]
    paths: list[Path]
    times: list[Time]
    scoring_counts: list[ScoringCount]
    scoring_times: list[ScoringTime]
    stamp: Provenance


KINDS: dict[str, Any] = {"counts": Count, "steps": Steps, "paths": Path, "times": Time}
KINDS |= {"scoring_counts": ScoringCount, "scoring_times": ScoringTime}


def save(file: FilePath, measured: Measured) -> None:
    """Write the measurements together with the checksum of their content."""
    content = json.loads(json.dumps({"format": FORMAT, **asdict(measured)}))  # tuples become lists, as they are read
    signed_json.write(file, content)


def load(file: FilePath) -> Measured:
    """Read measurements. Raises ValueError that names the file, what was expected, what was found and what to do."""
    advice = "Restore the file from git, or delete it and run experiments/table1.py again."
    content = signed_json.read(file, "measurements", FORMAT, advice)
    del content["format"]
    return Measured(**content | {name: [kind(**line) for line in content[name]] for name, kind in KINDS.items()})
