"""The systems that stand beside the Transformer, from the experiment files themselves."""

import runpy
from pathlib import Path
from typing import Any

from repro.model.rivals.attention_rnn import AskedByNewState, AskedByToken
from repro.runs.table import Row

LADDER: list[Row] = runpy.run_path(str(Path(__file__).parents[1] / "experiments" / "ladder.py"))["ROWS"]
SYSTEMS: dict[str, Any] = {row.name: row.system for row in LADDER if row.system is not None} | {
    "asked by token": AskedByToken,
    "asked by new state": AskedByNewState,
}
