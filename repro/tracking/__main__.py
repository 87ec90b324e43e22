"""Bring MLflow in line with the journals of runs, or make a run's folder from MLflow.

By hand: python -m repro.tracking [runs/<id> ...]
"""

import argparse
import sys
from pathlib import Path

from repro.tracking.folder import describe
from repro.tracking.mirror import mirror, restore
from repro.tracking.store import DEFAULT_URI, check_store, reason, say
from repro.tracking.views import install_view


def main(argv: list[str] | None = None) -> int:
    """Bring MLflow in line with run folders, or, with --restore, make a run folder from MLflow."""
    parser = argparse.ArgumentParser(prog="python -m repro.tracking", description=main.__doc__)
    parser.add_argument("folders", nargs="*", type=Path, metavar="runs/<id>", help="default: all in runs/")
    parser.add_argument("--tracking-uri", default=DEFAULT_URI, metavar="URI", help="default: %(default)s")
    parser.add_argument("--restore", metavar="RUN", help="make the one folder from this run of MLflow's")
    wanted = parser.parse_args(argv)
    uri: str = wanted.tracking_uri
    folders: list[Path] = wanted.folders or sorted(path.parent for path in Path("runs").glob("*/run.json"))
    try:
        if warning := check_store(uri):
            raise ConnectionError(warning)
        if wanted.restore:
            if len(wanted.folders) != 1:
                raise ValueError("--restore needs one folder to write, for example runs/<id>.")
            restore(uri, wanted.restore, folders[0])
            print(f"{folders[0]} restored from {uri}")
            return 0
        if not folders:
            raise FileNotFoundError("runs/ holds no runs; run an experiment first, or name the folders.")
        return _mirror_all(uri, folders)
    except (OSError, ValueError) as error:
        say(str(error))
        return 1


def _mirror_all(uri: str, folders: list[Path]) -> int:
    """Mirror each folder, then the view of each table among them; 1 if a folder failed."""
    failed, views = 0, {}
    for folder in folders:
        try:
            tags = describe(folder)["tags"]
            mirror(uri, folder)
            print(f"{folder}  {tags.get('row', '')}, seed {tags.get('seed', '?')}: in {uri}", flush=True)
            for table in tags.get("tables", tags.get("table", "")).split():
                view = table, tags.get("scale", "none"), tags.get("corpus"), tags.get("pair")
                views[view] = tags.get("title", table)
        except Exception as error:  # the next folder may well be sound
            say(f"{folder}: {reason(error)}")
            failed = 1
    for (table, scale, corpus, pair), title in views.items():
        if table != "base":
            install_view(uri, scale=scale, table=table, title=title, corpus=corpus, pair=pair)
    return failed


if __name__ == "__main__":
    sys.exit(main())
