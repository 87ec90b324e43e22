"""Bring MLflow in line with the journals of runs, show published records in it, or open it on the view of a table.

Its server listens on this machine only, since whoever reaches it may change and delete runs; it is one worker without
MLflow's job runners (2 processes instead of 10), and Ctrl-C leaves none behind.
"""

import argparse
import gc
import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
import webbrowser
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from repro.render.text import several
from repro.results.frame import record_folders
from repro.results.places import OWN, PUBLISHED, run_folder
from repro.results.record import BASE, places
from repro.runs.command import Parser, experiment_command, ours, unknown_experiment
from repro.runs.options import add_options
from repro.tracking import client
from repro.tracking.mirror import sync
from repro.tracking.records import PublishedRuns
from repro.tracking.run_folder import describe
from repro.tracking.views import PUBLISHED_TAG, VIEW, View, is_of_table, save_views, view_of, view_path

LOOPBACK = "127.0.0.1"
START_PATIENCE = 120.0  # seconds until the server answers; 5 to 7 are usual
STOP_PATIENCE = 5.0  # seconds to stop by itself before it is killed


def tracking(argv: Sequence[str] | None = None) -> int:
    """Bring MLflow up to date with the journals of runs."""
    parser = Parser(prog=ours("tracking"), description=tracking.__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    to_mlflow = commands.add_parser("sync", help="copy to MLflow what it lacks of the journals")
    to_mlflow.add_argument("folders", nargs="*", metavar="runs/<id>", help="default: all in --runs-dir")
    to_mlflow.add_argument("--results", type=Path, metavar="results/SCALE", help="instead, its published records")
    add_options(to_mlflow, "tracking_uri", "runs_dir")
    options = parser.parse_args(argv)
    uri: str = options.tracking_uri
    if warning := client.check_store(uri, options.runs_dir):
        raise ConnectionError(warning)
    found = _places(options)
    print(f"Opening {uri}", flush=True)  # before what takes seconds
    try:
        client.connect(uri)
        published = PublishedRuns(uri, options.results.absolute().name) if options.results else None
    except Exception as error:  # it would fail for each of them
        raise ConnectionError(f"MLflow cannot use {uri}: {client.reason(error)}") from error
    gc.freeze()  # what was imported lives to the end: to look through it again takes a tenth of the time
    n_failed, views = 0, set[View]()
    for place in found:
        try:
            tags = published.bring(place) if published else describe(place)["tags"]
            if not published:
                sync(uri, place)
                print(f"{place}  {tags.get('row', '')}, seed {tags.get('seed', '?')}: in {uri}", flush=True)
        except Exception as error:  # the next one may well be sound
            client.say(f"{place}: {client.reason(error)}")
            n_failed += 1
            continue
        for table in tags.get("tables", tags.get("table", "")).split():
            if table != BASE:
                views.add(view_of(tags, table, tags.get("title", table)))
    if published:
        published.settle()
    save_views(uri, views)
    if published:
        tables = {view.table: view.scale for view in views}
        print(f"{several(len(found) - n_failed, 'published run')} of {several(len(tables), 'table')} in {uri}.")
        for table, scale in sorted(tables.items(), key=lambda one: (not one[0].startswith("table3"), one))[:1]:
            print(f"To look at one:\n  {ours('ui', '--published', '--table', table, '--scale', scale)}")
    return int(n_failed > 0)


def _places(options: argparse.Namespace) -> list[Path]:
    """The published records of a scale, or the folders of the named runs, else of all."""
    results: Path | None = options.results
    if results is None:
        named = [run_folder(typed, options.runs_dir) for typed in options.folders]
        found = named or sorted(path.parent for path in options.runs_dir.glob("*/run.json"))
        command = ours("tracking", "sync", "--results", "results/laptop")
        lacks = f"{options.runs_dir}/ holds no runs; run an experiment first. To look at what is published: {command}"
    elif results.absolute().parent.name == OWN.name:
        raise ValueError(f"{results} holds your own records; leave out --results to sync the journals of their runs.")
    else:
        found = [place for folder in record_folders(results) for place in places(folder)]
        lacks = f"{results} holds no records; expected the folder of a scale, such as results/laptop."
    if not found:
        raise FileNotFoundError(lacks)
    return found


# MLflow's page -------------------------------------------------------------------------------------------


def free_port(wanted: int) -> int:
    """The port that is wanted, or another one where it is taken."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, wanted))
        except OSError:
            probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])


@contextmanager
def server(uri: str, port: int) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """Run MLflow's server on a SQLite store while the block lasts; yields its address once it answers."""
    store = client.sqlite_uri(client.sqlite_path(uri))
    command = [sys.executable, "-m", "mlflow", "server", "--backend-store-uri", store, "--workers", "1"]
    command += ["--host", LOOPBACK, "--port", str(port), "--uvicorn-opts", "--log-level warning"]
    environment = {**os.environ, **client.QUIET}
    environment |= {"MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false", "PYTHONWARNINGS": "ignore"}
    address = f"http://{LOOPBACK}:{port}"
    with tempfile.TemporaryFile() as log:
        # a session of its own: Ctrl-C comes to us alone, and all it started can be stopped together
        process = subprocess.Popen(command, env=environment, stdout=log, stderr=log, start_new_session=True)
        try:
            deadline = time.monotonic() + START_PATIENCE
            while client.check_store(address):
                if process.poll() is not None or time.monotonic() > deadline:
                    log.seek(0)
                    last = log.read().decode(errors="replace").strip()[-2_000:]
                    raise ConnectionError(
                        f"MLflow's server did not start on {uri}. Its last output:\n{last}\n"
                        f"If the database is at fault, this command says what to do: {client.repair(uri)}"
                    )
                time.sleep(0.2)
            yield address, process
        finally:  # stop it and all that it started
            with suppress(ProcessLookupError, PermissionError):  # the second on macOS, where they have only just ended
                os.killpg(process.pid, signal.SIGTERM)
                with suppress(subprocess.TimeoutExpired):
                    process.wait(STOP_PATIENCE)
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _experiment(uri: str, scale: str) -> tuple[str, dict[str, str]]:
    """The id and the tags of a scale's experiment, of a file without MLflow, which takes seconds; "" without runs."""
    name = client.experiment_name(scale)
    if not uri.startswith("sqlite:"):
        found = client.connect(uri).get_experiment_by_name(name)
        return (found.experiment_id, found.tags) if found else ("", {})
    asked = "SELECT experiment_id, key, value FROM experiments LEFT JOIN experiment_tags USING (experiment_id)"
    try:
        with closing(sqlite3.connect(f"{client.sqlite_path(uri).as_uri()}?mode=ro", uri=True)) as store:
            rows = store.execute(f"{asked} WHERE name = ?", [name]).fetchall()
    except sqlite3.Error:  # no store of this MLflow: its server says what is wrong with the file
        rows = []
    return (str(rows[0][0]) if rows else "", {key: value for _, key, value in rows if key})


def find_view(uri: str, scale: str, table: str, published: bool = False) -> tuple[str, str]:
    """The path to the table's latest view, or to the published one where you have none, and what to say of it.

    Raises ValueError for an unknown table of which there are no runs.
    """
    experiment, tags = _experiment(uri, scale)
    keys = []
    for begin in (VIEW, f"{VIEW}{PUBLISHED_TAG}-"):
        views = {key: of for key, of in tags.items() if key.startswith(begin + table) and is_of_table(of, table)}
        keys.append(max(views, key=lambda key: json.loads(views[key])["updatedAt"], default="").removeprefix(VIEW))
    own, theirs = keys
    note, key = "", theirs if published else own or theirs
    if not key:
        if unknown := unknown_experiment(table):
            raise ValueError(f"There are no runs of {table} at scale {scale}, and {unknown}")
        note = f"There are no runs of {table} at scale {scale} yet. {_way_to_runs(table, scale)}"
    elif not published and not own:
        note = f"You have no runs of {table} at scale {scale} in MLflow yet; this is what is published."
    return view_path(experiment, key) if experiment else "/", note


def _way_to_runs(table: str, scale: str) -> str:
    """How to make runs of a table, and how to see the published ones."""
    sync = ours("tracking", "sync", "--results", f"results/{scale}")
    published = f"\nTo bring in the published runs, type: {sync}" * (PUBLISHED / scale).is_dir()
    return f"Type: {experiment_command(table)} --scale {scale}{published}"


def ui(argv: Sequence[str] | None = None) -> int:
    """Open MLflow on the saved view of a table."""
    parser = Parser(prog=ours("ui"), description=ui.__doc__)
    parser.add_argument("--table", default="table3_A", help="the table whose saved view to open (default: %(default)s)")
    add_options(parser, "scale", "tracking_uri", scale="the scale of the runs")
    parser.add_argument("--published", action="store_true", help="show the published runs, not your own")
    parser.add_argument("--port", type=int, default=5000, help="or another if it is taken (default: %(default)s)")
    parser.add_argument("--no-browser", action="store_true", help="print the link only")
    options = parser.parse_args(argv)
    uri: str = options.tracking_uri
    if warning := client.check_store(uri):
        raise ConnectionError(warning)
    is_file = uri.startswith("sqlite:")
    if is_file and not client.sqlite_path(uri).exists():
        how = unknown_experiment(options.table) or _way_to_runs(options.table, options.scale)
        if any(client.RUNS.glob("*/run.json")):
            how = f"To bring in the runs of {client.RUNS}, type: {client.repair(uri)}"
        raise FileNotFoundError(f"{client.sqlite_path(uri)} does not exist yet. {how}")
    path, note = find_view(uri, options.scale, options.table, options.published)

    def show(address: str) -> None:
        print(*filter(None, [note, address + path]), sep="\n", flush=True)
        # without a desktop, a text browser would open in this terminal
        is_desktop = sys.platform == "darwin" or {"DISPLAY", "WAYLAND_DISPLAY"} & os.environ.keys()
        if is_desktop and not options.no_browser:
            webbrowser.open(address + path)

    if not is_file:
        show(uri.rstrip("/"))
        return 0
    if (free := free_port(options.port)) != options.port:
        print(f"Port {options.port} is taken; using {free}.")
    # SIGINT as well, since a shell starts its background jobs with it ignored
    for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(name, signal.default_int_handler)
    print("Starting MLflow ...", flush=True)
    try:
        with server(uri, free) as (address, process):
            show(address)
            print("Ctrl-C stops it.", flush=True)
            process.wait()
    except KeyboardInterrupt:
        print("\nStopped.")
        return 0
    raise ConnectionError("MLflow's server has stopped by itself.")
