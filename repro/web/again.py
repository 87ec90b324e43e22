"""The command that makes a record again: read from its scale and settings, and held against today's options."""

import shlex
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from repro.results.record import BASE, PROGRAM, Record
from repro.runs.command import command_line
from repro.runs.options import Options, Seeds
from repro.runs.scales import SCALES
from repro.runs.world import options_of

OF_BASE = "table3_A"  # the experiment by which the base is asked for: every table trains it


def again(record: Record) -> list[str]:
    """What to type, a line each; of code that a commit has, first how to get it. Of a row of a program, its call.

    Where no option of today makes the world of the record, the command is that of its scale, for the code that made it.
    """
    lines = [f"git checkout {record.stamp['commit'][:12]}"] if record.stamp["commit"] else []
    options = asked(record)
    if record.table == PROGRAM:
        call = {"scale": options.scale, "seed": record.seed} | options.typed
        given = ", ".join(f"{name}={_in_python(value)}" for name, value in call.items())
        return [*lines, f"repro.run(row, {given})  # in Python, where row is your program's Row({record.row!r}, ...)"]
    name = OF_BASE if record.table == BASE else record.table
    options = replace(options, rows=(record.row,), seeds=Seeds((record.seed,)))
    typed = {"scale": options.scale} | options.typed
    return [*lines, f"{shlex.join(['python', f'experiments/{name}.py'])} {command_line(typed)}"]


def _in_python(value: Any) -> str:
    return repr(str(value)) if isinstance(value, Path) else repr(value)


def is_of_today(record: Record) -> bool:
    """Whether today's options make the world that a record names; if not, only its own code knows it."""
    return _named(record.scale) is not None


def asked(record: Record) -> Options:
    """The options of the world of a record, or of its scale alone if no options of today name it so."""
    of_name = max((name for name in SCALES if f"{record.scale}-".startswith(f"{name}-")), key=len, default=record.scale)
    return _named(record.scale) or Options(scale=of_name)


@cache  # all runs of a page have one world
def _named(scale: str) -> Options | None:
    try:
        return options_of(scale)
    except ValueError:  # more threads than this machine has
        return None
