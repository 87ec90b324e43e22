"""What a sweep shows below its table: sentences that the best run translates, where to read on, what to type next.

Ids, paths and commands stand on lines of their own: a terminal of 80 columns breaks no word of the others.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.cells import cell_len

from repro.claims.decisions import FIRST_SEED, SEEDS
from repro.render.escape import shown
from repro.results.latest import BEST
from repro.results.record import Record
from repro.results.sentences import has_sentences
from repro.runs import command
from repro.runs.options import USUAL
from repro.runs.task import Task

if TYPE_CHECKING:
    from repro.runs.run_dir import RunDir

SHOWN, LONGEST = 3, 74  # sentences, and the places that each takes at most: a line each
# options that do not belong to the next command
ONCE = ("fork", "dry_run", "hardware", "price", "traceback", "shard", "on")


def translations(finished: "Sequence[tuple[RunDir, Record]]") -> Iterator[str]:
    """The first short sentences of dev, each with what the best of these runs made of it, if one translates."""
    scored = [(run, record) for run, record in finished if has_sentences(record) and (run.folder / "dev.hyp").exists()]
    if not scored:
        return
    run, record = max(reversed(scored), key=lambda one: one[1].score("dev", "bleu") or 0.0)  # as `best` chooses
    pairs = (pair for text in run.prepared.dev.text for pair in text.pairs())
    lines = zip(pairs, (run.folder / "dev.hyp").read_bytes().decode().split("\n"), strict=False)
    short = [(source, made) for (source, _), made in lines if max(map(_places, (source, made))) <= LONGEST]
    if short:
        yield f"\nThe best of them, {record.row} seed {record.seed}, translates:"
    for source, made in short[:SHOWN]:
        yield f"  {source}\n    {made or '(nothing)'}"


def _places(line: str) -> int:
    """Columns that a line takes in a terminal, where control characters are shown by their names."""
    return cell_len(shown(line))


def pages(folder: Path | None, report: Path | None) -> list[str]:
    """Where to read what came out: of the tables in `folder`, and of the report where one was made."""
    if folder is None:
        return ["No table yet."]
    there = {"A report for the browser": report, "Tables and verdicts": folder / "README.md"}
    return ["", *(f"{what}:\n  {where}" for what, where in there.items() if where), ""]


def what_next(name: str, table: str, scale: str, typed: Mapping[str, Any], task: Task, *, is_file: bool) -> list[str]:
    """Commands to go on with, with the same settings and the same folders: the options that were typed are kept.

    `task` is that of the runs. Rows of a program (not `is_file`) have no command that makes or opens them.
    """
    again = {option: value for option, value in typed.items() if option not in ONCE}
    more = again | {"seeds": typed.get("seeds", USUAL.seeds).more(FIRST_SEED, SEEDS)}
    view = {"table": table, "scale": scale} | _kept(typed, "tracking_uri")
    use = f"{command.ours(task.command, BEST, 'FILE')} {command.command_line(_kept(typed, 'runs_dir'))}".rstrip()
    commands = {"compare the runs in MLflow": f"{command.ours('ui')} {command.command_line(view)}"}
    if is_file:
        seeds = f"intervals over seeds; those from {FIRST_SEED} on count as evidence"
        commands[f"{task.command} with the best run"] = use
        commands[seeds] = f"{command.experiment_command(name)} {command.command_line(more)}"
    return ["What next:", *(f"  {why}:\n    {line}" for why, line in commands.items())]


def _kept(typed: Mapping[str, Any], option: str) -> dict[str, Any]:
    """The typed option, if it was typed."""
    return {option: typed[option]} if option in typed else {}
