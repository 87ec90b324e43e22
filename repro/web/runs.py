"""Every run of a scale: a list, and the details that a click opens."""

import json
import shlex
from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from markupsafe import Markup

from repro.pages.scale_data import ScaleData
from repro.render.page import Column, Table
from repro.results.comparable import BADGES, NO_BADGE, NOT_LOOKED_AT, SCORERS
from repro.results.departures import departures
from repro.results.labels import SYMBOLS, at_paper_size, label, setting
from repro.results.record import BASE, PROGRAM, TOGETHER, Record, path, signature
from repro.runs.command import command_line
from repro.runs.options import Options, Seeds, options_of
from repro.runs.scales import SCALES
from repro.web.report import Section, fold
from repro.web.tables import run_keys, table_html

KEY, LIST, SCRIPT = "runs", "all-runs", "runs.js"
DECIMALS = {"ppl": 2, "nll": 3, "accuracy": 3}  # of scores, as in tables; percentages have one
DIGITS = 3  # decimals of a loss in a curve: more cannot be seen on a screen


def runs_section(data: ScaleData) -> Section:
    """The list of all runs, and the values that a click on one shows."""
    runs = run_keys(data.result_set)
    values = {
        "runs": {key: _facts(record, data) for key, record in runs.items()},
        "base": next((key for key, record in runs.items() if record.table == BASE), None),
    }
    shown = [*runs.values()]
    table = table_html(
        Table(
            (
                Column("", "row", [label(one.row, one.hyper) for one in shown]),
                Column("", "table", [one.table for one in shown], is_words=True),
                Column("", "seed", [f"{one.seed}" for one in shown]),
                Column("", "PPL (dev)", [_text(one.score("dev", "ppl"), ".2f") for one in shown]),
                Column("", "BLEU (dev)", [_text(one.score("dev", "bleu"), ".1f") for one in shown]),
                Column("", "seconds", [f"{one.cost['train_seconds']:,.0f}" for one in shown]),
                Column("", "badge", [*map(_badge, shown)], is_words=True),
                Column("", "status", [one.status for one in shown], is_words=True),
            )
        ),
        links=[*runs],
        facets={"table": [one.table for one in shown], "status": [one.status for one in shown]},
    )
    said = Markup("<p>Every run behind the tables. Click one to open it, or press Enter on its name.</p>")
    if badges := sorted({*map(_badge, shown)} - {"none"}):
        earned = "; ".join(f"{badge}, {BADGES[badge]}" for badge in badges)
        said += Markup('<p class="small">A badge says how a run can be made again: {}.</p>').format(earned)
    return Section(
        key=KEY,
        title="Runs",
        body=said + fold(LIST, Markup("{} runs").format(len(runs))),
        folded={LIST: table},
        data=values,
        script=SCRIPT,
    )


def _badge(record: Record) -> str:
    return (record.determinism["badge"] if record.determinism else None) or "none"


def _text(value: float | None, form: str) -> str:
    return "" if value is None else format(value, form)


def _facts(record: Record, data: ScaleData) -> dict[str, Any]:
    """All that a reader sees of one run."""
    told, listed = record.determinism, data.result_set.rows.get((record.table, record.row))
    badge = (
        NOT_LOOKED_AT if told is None else f"{told['badge']}, {BADGES[told['badge']]}" if told["badge"] else NO_BADGE
    )
    paper_size = at_paper_size(listed.changes if listed else None)
    place = path(data.result_set.folder.parent, record)
    return {
        "table": record.table,
        "row": record.row,
        "label": label(record.row, record.hyper),
        "seed": record.seed,
        "status": record.status + ", of uncommitted code" * record.stamp["dirty"],
        "file": f"{record.table}/{place.name if place.exists() else TOGETHER}",
        "scores": [[*line] for line in _scores(record)],
        "hyper": [
            [SYMBOLS[name], setting(record.hyper[name], name), setting(paper_size[name], name)] for name in SYMBOLS
        ],
        "settings": [[name.replace("_", " "), _written(value)] for name, value in record.settings.items()],
        "world": _world(record),
        "made": _made(record),
        "badge": [badge, *(told["against"] if told else [])],
        "departures": [[one.name, next(iter(one.here)), one.paper] for one in departures([record])],
        "cost": [
            [name.replace("_", " "), _cost(value)] for name, value in vars(record)["cost"].items() if value is not None
        ],
        "again": again(record),
        "is_of_today": is_of_today(record),
        "curves": {kind: _curve(record, kind) for kind in ("train", "dev")},
    }


def _scores(record: Record) -> Iterable[tuple[str, str, str, str]]:
    """Each score: its name, its values on dev and on test, and the scorer's signature."""
    for name in record.scores["dev"]:
        if not name.endswith("_signature"):
            by, form = signature(record.scores["dev"], name) or "", f".{DECIMALS.get(name, 1)}f"
            dev, test = (_text(record.score(split, name), form) for split in ("dev", "test"))
            yield SCORERS.get(name, name), dev, test, by


def _written(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _cost(value: float) -> str:
    is_whole = value == int(value) or value >= 1000  # decimals of thousands of seconds say nothing
    return f"{value:,.0f}" if is_whole and value < 1e12 else f"{value:.4g}"


def _world(record: Record) -> list[list[str]]:
    """Facts about the text and its tokens."""
    corpus, tokens = record.corpus, record.tokenizer
    return [
        ["corpus", f"{corpus['name']} {record.pair}"],
        ["pairs of train, dev, test", f"{corpus['n_train']:,}, {corpus['n_dev']:,}, {corpus['n_test']:,}"],
        ["SHA-256 of the text", corpus["sha256"]],
        ["word-pieces", f"{tokens['size']:,}"],
        ["SHA-256 of the tokenizer", tokens["sha256"]],
    ]


def _made(record: Record) -> list[list[str]]:
    """The code that made the run, and the machine."""
    stamp = record.stamp
    on = stamp["device"] or stamp["cpu"]
    return [
        ["commit", stamp["commit"] or "none"],
        ["deciding code", stamp["fingerprint"]],
        ["processor", ", ".join(filter(None, [on, stamp.get("cpu_model"), stamp.get("instructions")]))],
        ["Python", stamp["python"]],
        *([name, version or "none"] for name, version in stamp["versions"].items()),
    ]


def _curve(record: Record, kind: str) -> list[Any]:
    curve = vars(record)["curves"][kind]
    return [curve["step"], [round(value, DIGITS) for value in curve["nll"]]]


OF_BASE = "table3_A"  # the experiment that is named to train the base: every table trains it


def again(record: Record) -> list[str]:
    """The commands that make a run again: the checkout of its commit, if any, then the experiment or the Python call.

    If today's options cannot describe the record's world, the command has its scale only, for the code that made it.
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
    """Whether today's options can make the world that a record names; if not, only its own code can."""
    return _named(record.scale) is not None


def asked(record: Record) -> Options:
    """The options that make a record's world, or only its scale if today's options cannot make that world."""
    of_name = max((name for name in SCALES if f"{record.scale}-".startswith(f"{name}-")), key=len, default=record.scale)
    return _named(record.scale) or Options(scale=of_name)


@cache  # all runs of a page have the same world
def _named(scale: str) -> Options | None:
    try:
        return options_of(scale)
    except ValueError:  # more threads than this machine has
        return None
