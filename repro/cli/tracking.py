"""Bring MLflow in line with the journals of runs, or make a run's folder from MLflow.

    python -m repro tracking sync [runs/<id> ...]          without folders: all in runs/, or in --runs-dir FOLDER
    python -m repro tracking sync --results results/laptop make runs of published records, to look at
    python -m repro tracking restore RUN runs/<id>         RUN as MLflow calls it

Runs of another machine: copy their folders into runs/ and sync.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from repro.render.several import several
from repro.results.frame import record_folders
from repro.results.latest import run_folder
from repro.results.record import BASE
from repro.runs.command import Parser, code_of, hinted, ours
from repro.runs.options import add_options
from repro.tracking.client import RUNS, check_store, connect, reason, say
from repro.tracking.mirror import restore, sync
from repro.tracking.records import PublishedRuns
from repro.tracking.run_folder import describe
from repro.tracking.views import View, install_view, view_of

OWN = "own"  # the part of results/ that git ignores


def main(argv: Sequence[str] | None = None) -> int:
    """Bring MLflow up to date with the journals of runs, or restore a run's folder from MLflow."""
    parser = Parser(prog=ours("tracking"), description=main.__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    to_mlflow = commands.add_parser("sync", help="copy to MLflow what it lacks of the journals")
    to_mlflow.add_argument("folders", nargs="*", metavar="runs/<id>", help="default: all in --runs-dir")
    to_mlflow.add_argument(
        "--results",
        type=Path,
        metavar="results/SCALE",
        help="instead, make MLflow runs from the published records there",
    )
    from_mlflow = commands.add_parser("restore", help="restore a run's folder from MLflow")
    from_mlflow.add_argument("run", metavar="RUN", help="the run's id in MLflow")
    from_mlflow.add_argument("folder", type=Path, metavar="runs/<id>", help="where to: a new folder")
    for command in (to_mlflow, from_mlflow):
        add_options(command, "tracking_uri")
    add_options(to_mlflow, "runs_dir")
    wanted = parser.parse_args(argv)
    try:
        runs: Path = getattr(wanted, "runs_dir", RUNS)
        if warning := check_store(wanted.tracking_uri, runs):
            raise ConnectionError(warning)
        if wanted.command == "sync":
            wanted.folders = [run_folder(typed, runs) for typed in wanted.folders]
        print(f"Opening {wanted.tracking_uri}", flush=True)  # before what takes seconds
        if wanted.command == "restore":
            restore(wanted.tracking_uri, wanted.run, wanted.folder)
            print(f"{wanted.folder} restored from {wanted.tracking_uri}")
            return 0
        if wanted.results:
            places = published(wanted.results, wanted.folders, runs)
        else:
            places = wanted.folders or sorted(path.parent for path in runs.glob("*/run.json"))
        if not places:
            raise FileNotFoundError(
                f"{runs}/ holds no runs; run an experiment first, or name the folders. To look at what is published "
                f"type: {ours('tracking', 'sync', '--results', 'results/laptop')}"
            )
        try:
            connect(wanted.tracking_uri)
        except Exception as error:  # it would fail for each of them
            raise ConnectionError(reason(error, runs)) from error
        if wanted.results:
            return _bring_published(wanted.tracking_uri, places, runs)
        return _bring_all(wanted.tracking_uri, places, runs)
    except BrokenPipeError:
        raise
    except (OSError, ValueError) as error:
        say(hinted(error))
        return code_of(error)


def published(results: Path, folders: list[Path], runs: Path) -> list[Path]:
    """The records of a scale."""
    if folders or runs != RUNS:
        raise ValueError("--results makes runs from records, not from run folders: name one or the other.")
    if results.absolute().parent.name == OWN:
        raise ValueError(f"{results} holds your own records; leave out --results to sync the journals of their runs.")
    found = [file for folder in record_folders(results) for file in sorted(folder.glob("*.json"))]
    if not found:
        raise FileNotFoundError(f"{results} holds no records; expected the folder of a scale, such as results/laptop.")
    return found


def mirrored(uri: str, folder: Path) -> dict[str, str]:
    """Bring MLflow in line with a run's folder; returns its tags."""
    tags: dict[str, str] = describe(folder)["tags"]
    sync(uri, folder)
    return tags


def _bring_all(uri: str, places: list[Path], runs: Path) -> int:
    """Bring each run folder, then save the view of each table among them; 1 if one of these failed."""
    failed, views = 0, Views()
    for place in places:
        try:
            tags = mirrored(uri, place)
            print(f"{place}  {tags.get('row', '')}, seed {tags.get('seed', '?')}: in {uri}", flush=True)
            views.add(tags)
        except Exception as error:  # the next one may well be sound
            say(f"{place}: {reason(error, runs)}")
            failed = 1
    return views.install(uri, runs) or failed


def _bring_published(uri: str, files: list[Path], runs: Path) -> int:
    """Bring each record, then save the view of each table among them, and say how to look; 1 if one of these failed."""
    there, failed, views = PublishedRuns(uri), 0, Views()
    for file in files:
        try:
            views.add(there.bring(file))
        except Exception as error:  # the next one may well be sound
            say(f"{file}: {reason(error, runs)}")
            failed += 1
    there.settle()
    failed_view = views.install(uri, runs)
    print(f"{several(len(files) - failed, 'published run')} of {several(len(views.tables), 'table')} in {uri}.")
    for table, scale in sorted(views.tables.items(), key=lambda one: (not one[0].startswith("table3"), one))[:1]:
        print(f"To look at one:\n  {ours('ui', '--published', '--table', table, '--scale', scale)}")
    return 1 if failed else failed_view


class Views:
    """The views of the tables that some runs are of, each once."""

    def __init__(self) -> None:
        self.views: dict[str, View] = {}
        self.tables: dict[str, str] = {}  # by name, with a scale that has it

    def add(self, tags: Mapping[str, str]) -> None:
        """Take those of a run with these tags."""
        for table in tags.get("tables", tags.get("table", "")).split():
            if table != BASE:
                view = view_of(tags, table, tags.get("title", table))
                self.views[view.key], self.tables[table] = view, view.scale

    def install(self, uri: str, runs: Path) -> int:
        """Save them; 1 if one could not be saved."""
        installed = [install_view(uri, view, runs=runs) for _, view in sorted(self.views.items())]
        return int(None in installed)
