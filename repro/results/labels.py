"""What a row is called, what it sets and how large it is: here, and at the paper's own size. Paper: Table 3.

A row is a function of the base and has the paper's name, such as "N=2": 2 of 6 layers in the paper, 1 at a scale whose
base has 3. Both numbers are shown wherever they differ.
"""

import math
import re
from collections.abc import Iterable, Mapping
from typing import Any

from repro.model.config import BASE as PAPER_BASE
from repro.results.record import PROGRAM

SYMBOLS = {  # the fields of Hyper, as Table 3 heads its columns
    "n_layers": "N",
    "d_model": "d_model",
    "d_ff": "d_ff",
    "n_heads": "h",
    "d_k": "d_k",
    "d_v": "d_v",
    "dropout": "P_drop",
    "label_smoothing": "ε_ls",
    "learned_positions": "positions",
    "steps": "steps",
    "warmup": "warm-up",
    "average": "averaged",
    "average_every": "apart",  # updates between averaged checkpoints
    "attention_dropout": "attention dropout",
    "lr_factor": "rate factor",
    "warms_up": "rate rises",
}
CALLED = {"learned_positions": ("sinusoidal", "learned"), "warms_up": ("no", "yes")}  # false, and true
FIELDS = {name: name for name in SYMBOLS} | {symbol.replace("ε", "eps"): name for name, symbol in SYMBOLS.items()}
AT_PAPER_SIZE = "/paper_size"  # the suffix of columns that hold the same row at the paper's own size


def label(row: str, here: Mapping[str, Any]) -> str:
    """The name of a row, with the value at this scale where it differs: N=2 (here 1)."""

    def told(named: re.Match[str]) -> str:
        value = here.get(FIELDS.get(named["field"], ""))
        is_other = isinstance(value, int | float) and not math.isnan(value) and float(named["value"]) != value
        return f"{named[0]} (here {setting(value)})" if is_other else named[0]

    return re.sub(r"(?<![\w.])(?P<field>[A-Za-z_]+)=(?P<value>\d+(?:\.\d+)?)(?![\w.])", told, row)


def at_paper_size(changes: Mapping[str, Any] | None) -> dict[str, Any]:
    """The row with these changes to the paper's own base; all None where the changes are not known."""
    return dict.fromkeys(SYMBOLS) if changes is None else {**vars(PAPER_BASE), **changes}


def setting(value: Any, name: str = "") -> str:
    """One hyper-parameter as text; its `name` decides the words for true and false."""
    if isinstance(value, bool):
        return CALLED[name][value]
    return "" if value is None else f"{value:,}"


def both(here: Any, paper: Any, name: str = "") -> str:
    """A value here, with the value at the paper's size where it differs: 1 (2)."""
    texts = setting(here, name), setting(paper, name)
    return texts[0] if here is None or paper is None or here == paper else f"{texts[0]} ({texts[1]})"


def command_of(table: str, scale: str) -> str:
    """The command that makes the runs of a table: its experiment file, or the call in a program with its own rows."""
    return "repro.run" if table == PROGRAM else f"python experiments/{table}.py --scale {scale}"


def seeds_option(seeds: Iterable[int]) -> str:
    """The option for exactly these seeds: --seed 4, --seeds 4,6."""
    which = sorted({*seeds})
    return f"--seed {which[0]}" if len(which) == 1 else f"--seeds {','.join(map(str, which))}"


def listed_rows(rows: Iterable[str]) -> str:
    """The names in one line, quoted if they contain a comma: d_k=16, "hard, sampled"."""
    return ", ".join(f'"{row}"' if "," in row else row for row in rows)


def system_label(text: str | None) -> str:
    """A system's name without module names, Transformer(mix=UnscaledDot); empty for the paper's Transformer."""
    return re.sub(r"(?:[A-Za-z_]\w*\.)+(?=[A-Za-z_])", "", text or "")


def relation(base: Mapping[str, Any], row: Mapping[str, Any]) -> str:
    """What a row changes of its base, in one line: N 3 -> 1."""
    changed = [name for name in SYMBOLS if row[name] != base[name]]
    told = [f"{SYMBOLS[name]} {setting(base[name], name)} -> {setting(row[name], name)}" for name in changed]
    return ", ".join(told) or "nothing"
