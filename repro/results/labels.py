"""What a row is called, what it sets and how large it is: here, and at the paper's own size. Paper: Table 3.

A row is a function of the base and bears the name that the paper gives it, "N=2": 2 layers of 6 there, and at a scale
whose base has 3 it is 1. Both numbers are shown wherever they differ.
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
AT_PAPER_SIZE = "/paper_size"  # ends the names of columns that hold the same row of the paper's own base


def label(row: str, here: Mapping[str, Any]) -> str:
    """N=2 (here 1): the name of a row, and the value at this scale of what it names, where that is another."""

    def told(named: re.Match[str]) -> str:
        value = here.get(FIELDS.get(named["field"], ""))
        is_other = isinstance(value, int | float) and not math.isnan(value) and float(named["value"]) != value
        return f"{named[0]} (here {setting(value)})" if is_other else named[0]

    return re.sub(r"(?<![\w.])(?P<field>[A-Za-z_]+)=(?P<value>\d+(?:\.\d+)?)(?![\w.])", told, row)


def at_paper_size(changes: Mapping[str, Any] | None) -> dict[str, Any]:
    """The row of the paper's own base that changes so much; None throughout where that is not known."""
    return dict.fromkeys(SYMBOLS) if changes is None else {**vars(PAPER_BASE), **changes}


def setting(value: Any, name: str = "") -> str:
    """One hyper-parameter as it is written; its name says what true and false are called."""
    if isinstance(value, bool):
        return CALLED[name][value]
    return "" if value is None else f"{value:,}"


def both(here: Any, paper: Any, name: str = "") -> str:
    """1 (2): a value here, and that at the paper's size where it is another."""
    texts = setting(here, name), setting(paper, name)
    return texts[0] if here is None or paper is None or here == paper else f"{texts[0]} ({texts[1]})"


def command_of(table: str, scale: str) -> str:
    """What makes the runs of a table: its experiment file, or a call in the program that brought the rows."""
    return "repro.run" if table == PROGRAM else f"python experiments/{table}.py --scale {scale}"


def seeds_option(seeds: Iterable[int]) -> str:
    """What is typed for exactly these seeds: --seed 4, --seeds 4,6."""
    which = sorted({*seeds})
    return f"--seed {which[0]}" if len(which) == 1 else f"--seeds {','.join(map(str, which))}"


def listed_rows(rows: Iterable[str]) -> str:
    """d_k=16, "hard, sampled": names that hold a comma stand in quotes, or nobody knows where one ends."""
    return ", ".join(f'"{row}"' if "," in row else row for row in rows)


def system_label(text: str | None) -> str:
    """Transformer(mix=UnscaledDot): the name of a system without its modules; nothing for the paper's."""
    return re.sub(r"(?:[A-Za-z_]\w*\.)+(?=[A-Za-z_])", "", text or "")


def relation(base: Mapping[str, Any], row: Mapping[str, Any]) -> str:
    """N 3 -> 1: what a row changes of its base, in one line."""
    changed = [name for name in SYMBOLS if row[name] != base[name]]
    told = [f"{SYMBOLS[name]} {setting(base[name], name)} -> {setting(row[name], name)}" for name in changed]
    return ", ".join(told) or "nothing"
