"""What is typed by hand."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from text_folders import put
from tracked_runs import eventful
from typed import typed
from waiting import until

from repro.cli import tracking
from repro.tracking.views import VIEW, View, encode_view, save_views, view_path, view_state


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return eventful(tmp_path / "runs", "0123456789abcdef")


def test_by_hand_all_folders_are_mirrored_and_the_broken_one_named(
    store: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    put(folder.parent / "broken" / "run.json", "{}")
    monkeypatch.chdir(folder.parent.parent)
    command = ("tracking", "sync", "--tracking-uri", store)
    said = typed(capsys, *command, code=1)
    assert f"runs/{folder.name}  h=1, seed 1: in {store}" in said
    assert "broken/run.json: edited by hand or damaged" in said
    for word in (folder, folder.name[:2]):
        assert f"runs/{folder.name}  h=1, seed 1: in {store}" in typed(capsys, *command, word)
    typed(capsys, "tracking", "sync", "--tracking-uri", "file:x", folder, code=2)


def test_the_runs_of_a_folder_of_ones_own_are_mirrored(
    store: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    own = folder.parent.rename(folder.parent.parent / "my runs")
    for beside in ("slurm", "killed before it had a run.json"):
        (own / beside).mkdir()
    monkeypatch.chdir(own.parent)
    command = ("tracking", "sync", "--tracking-uri", store)
    said = typed(capsys, *command, "--runs-dir", own.name)
    assert said.endswith(f"my runs/{folder.name}  h=1, seed 1: in {store}\n")  # and no error
    assert "runs/ holds no runs" in typed(capsys, *command, code=2)


# MLflow's page --------------------------------------------------------------------------------------------


Said = pytest.CaptureFixture[str]
Patch = pytest.MonkeyPatch


@pytest.fixture
def no_tables(tmp_path: Path) -> str:
    (tmp_path / "mlflow.db").touch()
    return f"sqlite:///{tmp_path}/mlflow.db"


def test_a_taken_port_gives_way_to_another() -> None:
    with socket.socket() as other:
        other.bind((tracking.LOOPBACK, 0))
        other.listen()
        taken = other.getsockname()[1]
        free = tracking.free_port(taken)
    assert tracking.free_port(free) == free != taken


# ------------------------------------------------------------------------------------- a server that answers


class Experiments(BaseHTTPRequestHandler):
    """The little of MLflow's server that is asked for: experiments by name."""

    known: dict[str, Any] = {}  # noqa: RUF012

    def do_GET(self) -> None:
        asked = urlsplit(self.path)
        name = parse_qs(asked.query).get("experiment_name", [""])[0]
        self.send_response(200 if asked.path == "/health" or name in self.known else 404)
        self.end_headers()
        missing = {"error_code": "RESOURCE_DOES_NOT_EXIST", "message": "none"}
        self.wfile.write(json.dumps({"experiment": self.known[name]} if name in self.known else missing).encode())

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def address() -> Iterator[str]:
    times = {"table3_A": 5, "table3_A-multi30k-en-de": 7, "table3_A-grammar-en-de": 6, "table3_AB": 9}
    times |= {"table3_A-b-grammar-en-de": 13}  # of a table "table3_A-b"
    times |= {"published-table3_A-grammar-en-de": 11, "published-table3_B-grammar-en-de": 12}
    tables = {"table3_AB": "table3_AB", "table3_A-b-grammar-en-de": "table3_A-b"}
    tags = [{"key": "x", "value": "y"}]
    for key, time_ in times.items():
        view = View(scale="laptop", table=tables.get(key, key.removeprefix("published-")[:8]), title="")
        tags.append({"key": VIEW + key, "value": encode_view(key, view_state(view.filter, []), time_)})
    Experiments.known = {"Attention Is All You Need / laptop": {"experiment_id": "3", "tags": tags}}
    server = ThreadingHTTPServer((tracking.LOOPBACK, 0), Experiments)
    with closing(server.socket):
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://{tracking.LOOPBACK}:{server.server_port}"
        server.shutdown()
        thread.join()


def test_the_latest_view_of_the_table_is_found(address: str) -> None:
    for table, key in (("table3_A", "table3_A-multi30k-en-de"), ("table3_A-b", "table3_A-b-grammar-en-de")):
        assert tracking.find_view(address, "laptop", table) == (view_path("3", key), "")
    assert tracking.find_view(address, "laptop", "table2")[0] == view_path("3")
    assert tracking.find_view(address, "paper", "table2")[0] == "/"


def test_what_is_published_is_shown_where_it_is_asked_for_or_nothing_else_is_there(address: str, capsys: Said) -> None:
    def said(table: str, *more: str, code: int = 0) -> str:
        return typed(capsys, "ui", "--tracking-uri", address, "--table", table, "--no-browser", *more, code=code)

    assert said("table3_A", "--published").endswith("viewStateShareKey=published-table3_A-grammar-en-de\n")
    instead = said("table3_B")
    assert instead.startswith(
        "You have no runs of table3_B at scale laptop in MLflow yet; this is what is published.\n"
    )
    assert instead.endswith("viewStateShareKey=published-table3_B-grammar-en-de\n")
    assert " -m repro tracking sync --results results/laptop" in said("table2", "--published")
    assert "laptop, and table9 is not an experiment; did you mean table" in said("table9", code=2)


def test_a_server_of_others_is_shown_not_started(address: str, capsys: Said, monkeypatch: Patch) -> None:
    opened: list[str] = []
    monkeypatch.setattr(tracking.webbrowser, "open", opened.append)
    monkeypatch.setattr(subprocess, "Popen", None)
    monkeypatch.setenv("DISPLAY", ":0")
    link = f"{address}/#/experiments/3/runs?workflowType=machine_learning&viewStateShareKey=table3_AB"
    assert typed(capsys, "ui", "--tracking-uri", f"{address}/", "--table", "table3_AB") == f"{link}\n"
    assert opened == [link]
    said = typed(capsys, "ui", "--tracking-uri", address, "--scale", "paper", "--no-browser")
    assert " experiments/table3_A.py --scale paper" in said
    assert "tracking sync" not in said, "nothing is published of it"
    assert opened == [link]


# ----------------------------------------------------------------------------------------- our own server

# Stands for `mlflow server`: a parent that starts a child; the child answers and cannot be asked to stop.
STUBBORN = """
import subprocess, sys
child = "import http.server, signal, sys; signal.signal(signal.SIGTERM, signal.SIG_IGN);"
child += "answer = lambda self: (self.send_response(200), self.end_headers());"
child += "handler = type('Handler', (http.server.BaseHTTPRequestHandler,), {'do_GET': answer});"
child += "http.server.HTTPServer(('127.0.0.1', int(sys.argv[1])), handler).serve_forever()"
subprocess.Popen([sys.executable, "-c", child, sys.argv[sys.argv.index("--port") + 1]]).wait()
"""


def stand_in(monkeypatch: Patch, code: str) -> list[list[str]]:
    commands: list[list[str]] = []
    popen = subprocess.Popen

    def start(command: list[str], **more: Any) -> Any:
        commands.append(command)
        return popen([sys.executable, "-c", code, *command[3:]], **more)

    monkeypatch.setattr(subprocess, "Popen", start)
    return commands


def group(process: Any) -> list[int]:
    """The living processes of a process group."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_bytes().rpartition(b")")[2].split()
        except OSError:
            continue
        if int(fields[2]) == process.pid and fields[0] != b"Z":
            found.append(int(path.parent.name))
    return found


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs Linux's /proc")
def test_no_process_is_left_behind(no_tables: str, monkeypatch: Patch) -> None:
    commands = stand_in(monkeypatch, STUBBORN)
    monkeypatch.setattr(tracking, "STOP_PATIENCE", 0.3)
    port = tracking.free_port(21_000 + os.getpid() % 10_000)
    with tracking.server(no_tables, port) as (address, process):
        assert address == f"http://127.0.0.1:{port}"
        assert len(group(process)) == 2
    until(lambda: group(process) == [])
    assert commands[0][commands[0].index("--host") + 1] == "127.0.0.1"
    assert commands[0][commands[0].index("--workers") + 1] == "1"


def test_a_server_that_does_not_start_tells_why(no_tables: str, monkeypatch: Patch, capsys: Said) -> None:
    stand_in(monkeypatch, "raise SystemExit('the database is from the future')")
    said = typed(capsys, "ui", "--tracking-uri", no_tables, "--no-browser", code=1)
    assert "Its last output:\nthe database is from the future\n" in said
    assert f"python -m repro tracking sync --tracking-uri {no_tables}" in said


def test_an_unknown_table_is_refused_before_the_server_is_started(
    tmp_path: Path, template: Path, monkeypatch: Patch, capsys: Said
) -> None:
    """Unless there are runs of it, of a program or a file of one's own: the views in the store say so."""
    shutil.copy(template, tmp_path / "mlflow.db")
    commands, store = stand_in(monkeypatch, "raise SystemExit('it was started')"), f"sqlite:///{tmp_path}/mlflow.db"
    asked = ["ui", "--tracking-uri", store, "--table", "table9", "--no-browser"]
    assert "table9 is not an experiment; did you mean table" in typed(capsys, *asked, code=2)
    assert commands == []
    save_views(store, [View(scale="laptop", table="table9", title="")])
    assert tracking.find_view(store, "laptop", "table9") == (view_path("1", "table9"), "")
    typed(capsys, *asked, code=1)
    assert len(commands) == 1


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_stops_it_also_where_the_shell_ignores_it(no_tables: str, how: signal.Signals) -> None:
    """A shell starts its background jobs with SIGINT ignored."""
    code = (
        "import subprocess, sys, time; from repro.cli import commands, tracking; popen = subprocess.Popen;"
        "subprocess.Popen = lambda c, **k: popen([sys.executable, '-c', 'import time; time.sleep(99)'], **k);"
        "tracking.client.check_store = lambda address: None; tracking.find_view = lambda *_: ('/', '');"
        "sys.exit(commands.main(['ui', '--tracking-uri', sys.argv[1], '--no-browser']))"
    )
    process = subprocess.Popen(
        [sys.executable, "-W", "error", "-c", code, no_tables], cwd=Path(__file__).parents[2], stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
    )  # fmt: skip
    assert process.stdout is not None
    while b"Ctrl-C" not in (line := process.stdout.readline()):
        assert line, "it ended"
    time.sleep(0.05)
    process.send_signal(how)
    said, _ = process.communicate(timeout=60)
    assert (process.returncode, said) == (0, b"\nStopped.\n")


@pytest.mark.parametrize("runs", [False, True])
def test_where_there_is_no_store_the_way_to_one_is_told(
    tmp_path: Path, capsys: Said, monkeypatch: Patch, runs: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    if runs:
        put(tmp_path / "runs/a/run.json", "")
    store = ["--tracking-uri", f"sqlite:///{tmp_path}/new.db", "--no-browser"]
    said = typed(capsys, "ui", *store, "--table", "table2", code=2)
    assert (f"tracking sync --tracking-uri sqlite:///{tmp_path}/new.db" in said) == runs
    assert ("experiments/table2.py --scale laptop" in said) != runs, "nothing is made again by it"
    assert not (tmp_path / "new.db").exists()
    if not runs:
        said = typed(capsys, "ui", *store, "--table", "table3_Z", code=2)
        assert "table3_Z is not an experiment; did you mean table3_" in said
        assert "table3_Z.py" not in said, "a file that is not there"
        assert "expected sqlite:///FILE" in typed(capsys, "ui", "--tracking-uri", "file:./mlruns", code=2)
