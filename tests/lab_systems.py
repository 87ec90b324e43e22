"""Systems beside the Transformer, from the experiment files: variants of the lab, and those of the ladder."""

import runpy
from pathlib import Path
from typing import Any

from repro.results.provenance import system_text
from repro.runs.table import Row

EXPERIMENTS = Path(__file__).parents[1] / "experiments"
OF_TEXTS = "lab_text.py"  # it asks about texts: its only system is one of the ladder
LAB: list[Row] = [
    row
    for file in sorted({*EXPERIMENTS.glob("lab_*.py")} - {EXPERIMENTS / OF_TEXTS})
    for row in runpy.run_path(str(file), run_name=file.stem)["ROWS"]
]
_FIRST = {system_text(row.system): row.name for row in reversed(LAB) if row.system is not None}
VARIANTS: dict[str, Any] = {row.name: row.system for row in LAB if row.name in _FIRST.values()}  # each system once

NO_MASK = "no mask (PPL means nothing)"
NOT_CAUSAL = {NO_MASK}
NOT_CAUSAL_IN_TRAINING = {*NOT_CAUSAL, "batch norm"}
READ_ANEW = {"reach r=5", "static", "relative", "relative, clip 2", "relative, sinusoids", NO_MASK}

LADDER: list[Row] = runpy.run_path(str(EXPERIMENTS / "ladder.py"))["ROWS"]
LADDER_SYSTEMS: dict[str, Any] = {row.name: row.system for row in LADDER if row.system is not None}
