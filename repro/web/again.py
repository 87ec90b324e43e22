"""The command that makes a record again: read from its scale and settings, and held against today's options."""

import re
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

from repro.data.batch_by import RECORDED
from repro.results.record import BASE, Record
from repro.runs.command import command_line
from repro.runs.options import CLEANING, Options, Seeds, chosen_scale
from repro.runs.scales import SCALES

OF_BASE = "table3_A"  # the experiment by which the base is asked for: every table trains it
PLACE = Path("FOLDER")  # of a text of one's own, which a record does not name


def again(record: Record) -> list[str]:
    """What to type, a line each; of code that a commit has, first how to get it.

    Where no option of today makes the world of the record, the command is that of its scale, for the code that made it.
    """
    lines = [f"git checkout {record.stamp['commit'][:12]}"] if record.stamp["commit"] else []
    name = OF_BASE if record.table == BASE else record.table
    options = replace(asked(record), rows=(record.row,), seeds=Seeds(record.seed, record.seed))
    typed = {"scale": options.scale} | options.typed
    return [*lines, f"{shlex.join(['python', f'experiments/{name}.py'])} {command_line(typed)}"]


def is_of_today(record: Record) -> bool:
    """Whether today's options make the world that a record names; if not, only its own code knows it."""
    options = asked(record)
    return options.scale in SCALES and chosen_scale(options).name == record.scale


def asked(record: Record) -> Options:
    """The options of the world of a record: of its scale "laptop-en-fr-3000-steps" the scale, the pair, the steps.

    The scale itself, if no options of today name it so.
    """
    of_name = max((name for name in SCALES if f"{record.scale}-".startswith(f"{name}-")), key=len, default=record.scale)
    plain = Options(scale=of_name)
    if of_name not in SCALES:
        return plain
    with_departures = replace(plain, **_departures(record, record.scale.removeprefix(of_name)))
    try:
        return with_departures if chosen_scale(with_departures).name == record.scale else plain
    except ValueError:  # what the name seems to say is nothing that can be asked for
        return plain


def _departures(record: Record, rest: str) -> dict[str, Any]:
    """What the end of a scale's name says was chosen otherwise."""
    found: dict[str, Any] = {}
    corpus = record.corpus["name"]
    if rest.startswith("-folder"):
        found["data_dir"] = PLACE
    elif rest.startswith(f"-{corpus}"):
        found["corpus"] = corpus
    if f"-{record.pair}" in rest:
        found["pair"] = record.pair
    for option, unit in {"steps": "steps", "devices": "devices", "threads": "threads", "vocab_size": "pieces"}.items():
        if number := re.search(rf"-(\d+)-{unit}(?=-|$)", rest):
            found[option] = int(number[1])
    if re.search("-fsdp(?=-|$)", rest):
        found["strategy"] = "fsdp"
    if re.search(f"-{record.settings['precision']}(?=-|$)", rest):
        found["precision"] = record.settings["precision"]
    if backend := re.search("-(ctranslate2(?:-int8)?)(?=-|$)", rest):
        found["backend"] = backend[1]
    if named := [option for option, called in RECORDED.items() if f"-by-{called}" in rest]:
        found["batch_by"] = named[0]
    if "-clean-" in rest:
        found["clean"] = tuple(rule for rule in CLEANING if f"-{rule}" in rest.partition("-clean")[2])
    return found
