"""Look at the runs: MLflow's page on the saved view of a table.

Run:   python -m repro ui --table table3_A --scale laptop

The server listens on this machine only, since whoever reaches it may change and delete runs; it is one
worker without MLflow's job runners (2 processes instead of 10), and Ctrl-C leaves none behind.
"""

import argparse
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

from repro.cli.run import unknown_experiment
from repro.results.places import PUBLISHED
from repro.runs.command import Parser, experiment_command, ours
from repro.runs.options import add_options
from repro.runs.scales import SCALES
from repro.tracking.client import QUIET, RUNS, check_store, experiment_name, repair, sqlite_path, sqlite_uri
from repro.tracking.views import PUBLISHED_TAG, VIEW, is_of_table, view_path

LOOPBACK = "127.0.0.1"
START_PATIENCE = 120.0  # seconds until the server answers; 5 to 7 are usual
STOP_PATIENCE = 5.0  # seconds to stop by itself before it is killed


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
    store = sqlite_path(uri)
    command = [sys.executable, "-m", "mlflow", "server", "--backend-store-uri", sqlite_uri(store), "--workers", "1"]
    command += ["--host", LOOPBACK, "--port", str(port), "--uvicorn-opts", "--log-level warning"]
    environment = {**os.environ, **QUIET}
    environment |= {"MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false", "PYTHONWARNINGS": "ignore"}
    address = f"http://{LOOPBACK}:{port}"
    with tempfile.TemporaryFile() as log:
        # a session of its own: Ctrl-C comes to us alone, and all it started can be stopped together
        process = subprocess.Popen(command, env=environment, stdout=log, stderr=log, start_new_session=True)
        try:
            deadline = time.monotonic() + START_PATIENCE
            while check_store(address):
                if process.poll() is not None or time.monotonic() > deadline:
                    log.seek(0)
                    last = log.read().decode(errors="replace").strip()[-2_000:]
                    raise ConnectionError(
                        f"MLflow's server did not start on {uri}. Its last output:\n{last}\n"
                        f"If the database is at fault, this command says what to do: {repair(uri)}"
                    )
                time.sleep(0.2)
            yield address, process
        finally:
            _stop(process)


def _stop(process: subprocess.Popen[bytes]) -> None:
    """Stop a process and all that it started."""
    with suppress(ProcessLookupError, PermissionError):  # the second: on macOS, for those that have only just ended
        os.killpg(process.pid, signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            process.wait(STOP_PATIENCE)
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _experiment(uri: str, scale: str) -> tuple[str, dict[str, str]] | None:
    """The id and the tags of a scale's experiment, without MLflow, which takes seconds; None if there are no runs."""
    name = experiment_name(scale)
    if uri.startswith("sqlite:"):
        asked = "SELECT experiment_id, key, value FROM experiments LEFT JOIN experiment_tags USING (experiment_id)"
        try:
            with closing(sqlite3.connect(f"{sqlite_path(uri).as_uri()}?mode=ro", uri=True)) as store:
                rows = store.execute(f"{asked} WHERE name = ?", [name]).fetchall()
        except sqlite3.Error:  # no store of this MLflow: its server says what is wrong with the file
            return None
        return (str(rows[0][0]), {key: value for _, key, value in rows if key}) if rows else None
    import requests

    ask = f"{uri.rstrip('/')}/api/2.0/mlflow/experiments/get-by-name"
    reply = requests.get(ask, params={"experiment_name": name}, timeout=10)
    if reply.status_code == 404:
        return None
    reply.raise_for_status()
    experiment = reply.json()["experiment"]
    return experiment["experiment_id"], {tag["key"]: tag["value"] for tag in experiment.get("tags", [])}


def find_view(uri: str, scale: str, table: str, published: bool = False) -> tuple[str, str | None] | None:
    """The experiment of a scale and the key of the table's latest view, if any; None if there are no runs."""
    if (found := _experiment(uri, scale)) is None:
        return None
    begin = VIEW + (f"{PUBLISHED_TAG}-{table}" if published else table)
    views = {key: view for key, view in found[1].items() if key.startswith(begin) and is_of_table(view, table)}
    latest = max(views, key=lambda key: json.loads(views[key])["updatedAt"], default=None)
    return found[0], latest and latest.removeprefix(VIEW)


def _path_and_note(uri: str, scale: str, table: str, published: bool) -> tuple[str, str]:
    """What to open, and what to say of it. Raises ValueError for an unknown table of which there are no runs."""
    found, note = find_view(uri, scale, table, published), ""
    if found and found[1] is None and not published:
        found = find_view(uri, scale, table, published=True)
        note = f"You have no runs of {table} at scale {scale} in MLflow yet; this is what is published."
    if found is None or found[1] is None:
        if unknown := unknown_experiment(table):
            raise ValueError(unknown)
        note = f"There are no runs of {table} at scale {scale} yet. {_way_to_runs(table, scale)}"
    return view_path(*found) if found else "/", note


def _show(address: str, path: str, note: str, browser: bool) -> None:
    """Print the note and the link, and open it where there is a desktop."""
    print(*filter(None, [note, address + path]), sep="\n", flush=True)
    # without a desktop, a text browser would open in this terminal
    if browser and (sys.platform == "darwin" or {"DISPLAY", "WAYLAND_DISPLAY"} & os.environ.keys()):
        webbrowser.open(address + path)


def _way_to_runs(table: str, scale: str) -> str:
    """How to make runs of a table, and how to see the published ones."""
    ways = [f"Type: {experiment_command(table)} --scale {scale}"] if scale in SCALES else []
    if (PUBLISHED / scale).is_dir():
        sync = ours("tracking", "sync", "--results", f"results/{scale}")
        ways.append(f"To bring in the published runs, type: {sync}")
    return "\n".join(ways) or f"Scales are {', '.join(SCALES)}, and those of runs with other options."


def main(argv: Sequence[str] | None = None) -> int:
    """Open MLflow on the saved view of a table."""
    parser = Parser(prog=ours("ui"), description=main.__doc__)
    parser.add_argument("--table", default="table3_A", help="the table whose saved view to open (default: %(default)s)")
    add_options(parser, "scale", "tracking_uri", scale="the scale of the runs")
    parser.add_argument("--published", action="store_true", help="show the published runs, not your own")
    port = "port of the server, or another if it is taken (default: %(default)s)"
    parser.add_argument("--port", type=int, default=5000, help=port)
    parser.add_argument("--no-browser", action="store_true", help="print the link only")
    options = parser.parse_args(argv)
    try:
        _open(options.tracking_uri, options)
    except KeyboardInterrupt:
        print("\nStopped.")
    return 0


def _open(uri: str, options: argparse.Namespace) -> None:
    if warning := check_store(uri):
        raise ConnectionError(warning)
    is_file = uri.startswith("sqlite:")
    if is_file and not sqlite_path(uri).exists():
        how = unknown_experiment(options.table) or _way_to_runs(options.table, options.scale)
        if any(RUNS.glob("*/run.json")):
            how = f"To bring in the runs of {RUNS}, type: {repair(uri)}"
        raise FileNotFoundError(f"{sqlite_path(uri)} does not exist yet. {how}")
    path, note = _path_and_note(uri, options.scale, options.table, options.published)
    if not is_file:
        return _show(uri.rstrip("/"), path, note, not options.no_browser)
    if (port := free_port(options.port)) != options.port:
        print(f"Port {options.port} is taken; using {port}.")
    # SIGINT as well, since a shell starts its background jobs with it ignored
    for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(name, signal.default_int_handler)
    print("Starting MLflow ...", flush=True)
    with server(uri, port) as (address, process):
        _show(address, path, note, not options.no_browser)
        print("Ctrl-C stops it.", flush=True)
        process.wait()
    raise ConnectionError("MLflow's server has stopped by itself.")
