"""Bring MLflow in line with the journals of runs, or make a run's folder from MLflow.

    python -m repro.tracking sync [runs/<id> ...]          without folders: all in runs/
    python -m repro.tracking restore RUN runs/<id>         RUN as MLflow calls it

Runs of another machine: copy their folders into runs/ and sync.
"""

import sys
from pathlib import Path

from repro.command import Parser, ended
from repro.latest import run_folder
from repro.tracking.folder import describe
from repro.tracking.mirror import restore, sync
from repro.tracking.store import DEFAULT_URI, check_store, connect, reason, say
from repro.tracking.views import install_view, view_of


def main(argv: list[str] | None = None) -> int:
    """Bring MLflow in line with the journals of runs, or make a run's folder from MLflow."""
    parser = Parser(prog="python -m repro.tracking", description=main.__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    to_mlflow = commands.add_parser("sync", help="give MLflow what it lacks of the journals")
    to_mlflow.add_argument("folders", nargs="*", metavar="runs/<id>", help="default: all in runs/")
    from_mlflow = commands.add_parser("restore", help="make a run's folder from MLflow")
    from_mlflow.add_argument("run", metavar="RUN", help="the run as MLflow calls it")
    from_mlflow.add_argument("folder", type=Path, metavar="runs/<id>", help="where to: a new folder")
    for command in (to_mlflow, from_mlflow):
        command.add_argument("--tracking-uri", default=DEFAULT_URI, metavar="URI", help="default: %(default)s")
    wanted = parser.parse_args(argv)
    try:
        if warning := check_store(wanted.tracking_uri):
            raise ConnectionError(warning)
        if wanted.command == "sync":
            wanted.folders = [run_folder(typed, Path("runs")) for typed in wanted.folders]
        print(f"Opening {wanted.tracking_uri}", flush=True)  # before what takes seconds
        if wanted.command == "restore":
            restore(wanted.tracking_uri, wanted.run, wanted.folder)
            print(f"{wanted.folder} restored from {wanted.tracking_uri}")
            return 0
        folders = wanted.folders or sorted(path.parent for path in Path("runs").glob("*/run.json"))
        if not folders:
            raise FileNotFoundError("runs/ holds no runs; run an experiment first, or name the folders.")
        try:
            connect(wanted.tracking_uri)
        except Exception as error:  # it would fail for each of them
            raise ConnectionError(reason(error)) from error
        return _sync_all(wanted.tracking_uri, folders)
    except BrokenPipeError:
        raise
    except (OSError, ValueError) as error:
        say(str(error))
        return 1


def _sync_all(uri: str, folders: list[Path]) -> int:
    """Sync each folder, then the view of each table among them; 1 if a folder failed."""
    failed, views = 0, set()
    for folder in folders:
        try:
            tags = describe(folder)["tags"]
            sync(uri, folder)
            print(f"{folder}  {tags.get('row', '')}, seed {tags.get('seed', '?')}: in {uri}", flush=True)
            tables = tags.get("tables", tags.get("table", "")).split()
            views |= {view_of(tags, table, tags.get("title", table)) for table in tables if table != "base"}
        except Exception as error:  # the next folder may well be sound
            say(f"{folder}: {reason(error)}")
            failed = 1
    for view in sorted(views, key=lambda view: view.key):
        install_view(uri, view)
    return failed


if __name__ == "__main__":
    sys.exit(ended(main))
