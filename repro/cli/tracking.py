"""Bring MLflow in line with the journals of runs, or show published records in it.

    python -m repro tracking sync [runs/<id> ...]          without folders: all in runs/, or in --runs-dir FOLDER
    python -m repro tracking sync --results results/laptop make runs of published records, to look at

Runs of another machine: copy their folders into runs/ and sync.
"""

import argparse
import gc
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from repro.render.text import several
from repro.results.frame import record_folders
from repro.results.places import run_folder
from repro.results.record import BASE, places
from repro.runs.command import Parser, ours
from repro.runs.options import add_options
from repro.tracking.client import check_store, connect, reason, say
from repro.tracking.mirror import sync
from repro.tracking.records import PublishedRuns
from repro.tracking.run_folder import describe
from repro.tracking.views import View, save_views, view_of

OWN = "own"  # the part of results/ that git ignores


def main(argv: Sequence[str] | None = None) -> int:
    """Bring MLflow up to date with the journals of runs."""
    parser = Parser(prog=ours("tracking"), description=main.__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    to_mlflow = commands.add_parser("sync", help="copy to MLflow what it lacks of the journals")
    to_mlflow.add_argument("folders", nargs="*", metavar="runs/<id>", help="default: all in --runs-dir")
    instead = "instead, make MLflow runs from the published records there"
    to_mlflow.add_argument("--results", type=Path, metavar="results/SCALE", help=instead)
    add_options(to_mlflow, "tracking_uri", "runs_dir")
    options = parser.parse_args(argv)
    if warning := check_store(options.tracking_uri, options.runs_dir):
        raise ConnectionError(warning)
    places = _records(options.results) if options.results else _folders(options)
    print(f"Opening {options.tracking_uri}", flush=True)  # before what takes seconds
    try:
        connect(options.tracking_uri)
    except Exception as error:  # it would fail for each of them
        raise ConnectionError(f"MLflow cannot use {options.tracking_uri}: {reason(error)}") from error
    gc.freeze()  # what was imported lives to the end: to look through it again takes a tenth of the time
    return _bring(options, places)


def _records(results: Path) -> list[Path]:
    """The published records of a scale."""
    if results.absolute().parent.name == OWN:
        raise ValueError(f"{results} holds your own records; leave out --results to sync the journals of their runs.")
    found = [place for folder in record_folders(results) for place in places(folder)]
    if not found:
        raise FileNotFoundError(f"{results} holds no records; expected the folder of a scale, such as results/laptop.")
    return found


def _folders(options: argparse.Namespace) -> list[Path]:
    """The folders of runs that were named, or all."""
    runs: Path = options.runs_dir
    found = [run_folder(typed, runs) for typed in options.folders]
    if not (found := found or sorted(path.parent for path in runs.glob("*/run.json"))):
        command = ours("tracking", "sync", "--results", "results/laptop")
        how = f"run an experiment first, or name the folders. To look at what is published type: {command}"
        raise FileNotFoundError(f"{runs}/ holds no runs; {how}")
    return found


def _bring(options: argparse.Namespace, places: Sequence[Path]) -> int:
    """Bring each run or record, then save the view of each table among them; 1 if one of these failed."""
    uri: str = options.tracking_uri
    published = PublishedRuns(uri) if options.results else None
    bring: Callable[[Path], Mapping[str, str]] = published.bring if published else lambda place: _mirrored(uri, place)
    n_failed, views, tables = 0, set[View](), dict[str, str]()  # tables by name, with a scale that has it
    for place in places:
        try:
            tags = bring(place)
        except Exception as error:  # the next one may well be sound
            say(f"{place}: {reason(error)}")
            n_failed += 1
            continue
        for table in tags.get("tables", tags.get("table", "")).split():
            if table != BASE:
                views.add(view := view_of(tags, table, tags.get("title", table)))
                tables[table] = view.scale
    if published:
        published.settle()
    try:
        save_views(uri, views)
    except Exception as error:
        say(f"The views of {', '.join(sorted(tables))} were not saved: {reason(error)}")
        n_failed += 1
    if published:
        print(f"{several(len(places) - n_failed, 'published run')} of {several(len(tables), 'table')} in {uri}.")
        for table, scale in sorted(tables.items(), key=lambda one: (not one[0].startswith("table3"), one))[:1]:
            print(f"To look at one:\n  {ours('ui', '--published', '--table', table, '--scale', scale)}")
    return int(n_failed > 0)


def _mirrored(uri: str, folder: Path) -> Mapping[str, str]:
    """Bring MLflow in line with a run's folder; returns its tags."""
    tags: dict[str, str] = describe(folder)["tags"]
    sync(uri, folder)
    print(f"{folder}  {tags.get('row', '')}, seed {tags.get('seed', '?')}: in {uri}", flush=True)
    return tags
