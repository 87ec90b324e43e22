"""MLflow's store: where it may be, whether it answers, a client of it, and how long a process waits for it.

No work depends on the store: journals are the truth, and `tracking sync` sends what a thread did not.
"""

import http.client
import logging
import os
import secrets
import shlex
import sqlite3
import sys
import threading
import urllib.error
import urllib.request
import warnings
from collections.abc import Callable
from contextlib import closing, suppress
from functools import cache
from pathlib import Path
from typing import Any

from repro.storage import atomic
from repro.storage.lock import locked

DEFAULT_URI, RUNS = "sqlite:///mlflow.db", Path("runs")
MOST = 50_000  # runs that MLflow gives at once
LIMIT, IN_TROUBLE = 30.0, 5.0  # seconds to wait for a thread that sends, and once something went wrong
QUIET = {  # MLflow as a guest: no reports home, no chatter, no minutes of retries inside one call
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "DO_NOT_TRACK": "true",
    "MLFLOW_LOGGING_LEVEL": "WARNING",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "0",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "10",
}


def experiment_name(scale: str) -> str:
    """One MLflow experiment holds all runs of a scale."""
    return f"Attention Is All You Need / {scale}"


def repair(uri: str, runs: Path = RUNS) -> str:
    """What to type to bring MLflow in line with all runs of a folder."""
    where = "" if uri == DEFAULT_URI else f" --tracking-uri {shlex.quote(uri)}"
    return f"python -m repro tracking sync{where}" + ("" if runs == RUNS else f" --runs-dir {shlex.quote(str(runs))}")


def check_store(uri: str, runs: Path = RUNS) -> str | None:
    """Look at the address of a tracking store before work begins, without MLflow.

    Raises ValueError for an address that can never work. Returns a warning for a server that does not answer now:
    training goes on with its journal, and the runs in `runs` can be synced later.
    """
    if uri.startswith("sqlite:"):
        sqlite_path(uri)
        return None
    if not uri.startswith(("http://", "https://")) or {"@", "?"} & {*uri}:
        raise ValueError(  # the address is not repeated: it may hold a password
            f"--tracking-uri: expected sqlite:///FILE, as in {DEFAULT_URI}, or http(s)://SERVER. MLflow takes a user "
            "from MLFLOW_TRACKING_USERNAME and a password from MLFLOW_TRACKING_PASSWORD, as others see what is typed."
        )
    try:
        urllib.request.urlopen(f"{uri.rstrip('/')}/health", timeout=2).close()
        return None
    except urllib.error.HTTPError as error:
        if error.code < 500:  # 401 is an answer
            return None
        why = str(error)
    except (OSError, ValueError, http.client.HTTPException) as error:
        why = str(getattr(error, "reason", error)) or repr(error)
    return f"MLflow at {uri} does not answer ({why}). To catch up later, type: {repair(uri, runs)}"


def sqlite_path(uri: str) -> Path:
    """The file of sqlite:///relative or sqlite:////absolute, taken literally: ? and % have no meaning in it."""
    path = uri.removeprefix("sqlite:///")
    if not uri.startswith("sqlite:///") or path in ("", ":memory:"):
        raise ValueError(f"--tracking-uri {uri}: expected a file after sqlite:///, as in {DEFAULT_URI}.")
    return Path(path).absolute()


def sqlite_uri(path: Path) -> str:
    """The address by which MLflow finds a file, whatever characters its name has."""
    from sqlalchemy.engine import URL

    if not {"?", "%"} & {*str(path)}:
        return f"sqlite:///{path}"  # unchanged: MLflow makes an empty folder for another spelling
    return URL.create("sqlite", database=str(path)).render_as_string()


def connect(uri: str) -> Any:
    """MLflow's client, imported without its chatter; a SQLite file is made first."""
    for name, value in QUIET.items():
        os.environ.setdefault(name, value)
    # MLflow 3.17 uses deprecated parts of these libraries: nothing our users could mend
    warnings.filterwarnings("ignore", module=r"(mlflow|sqlalchemy|alembic|pydantic|starlette|fastapi)(\.|$)")
    from mlflow.tracking import MlflowClient

    for name in ("mlflow", "alembic"):
        logging.getLogger(name).setLevel(logging.WARNING)
    logging.getLogger("mlflow.store.db.utils").setLevel(logging.CRITICAL)  # it also raises what it logs
    return _opened(sqlite_path(uri)) if uri.startswith("sqlite:") else MlflowClient(uri)


@cache  # MLflow keeps each database open anyway
def _opened(path: Path) -> Any:
    """A client of a SQLite file.

    MLflow makes the 65 tables of a new file one by one; if it is killed meanwhile, no later start completes them. So
    the tables are made in memory, and the file gets its name when it is whole.
    """
    from mlflow.tracking import MlflowClient
    from sqlalchemy import Engine, event

    if not event.contains(Engine, "connect", _hasten):
        event.listen(Engine, "connect", _hasten)
    atomic.make_folder(path.parent)
    with locked(path.with_name(f"{path.name}.lock"), make=True):  # others wait instead of making the same tables
        if not path.exists() or not path.stat().st_size:
            for end in ("-journal", "-wal", "-shm"):  # of a deleted database: SQLite would mix it with the new one
                path.with_name(path.name + end).unlink(missing_ok=True)
            atomic.write_bytes(path, _tables())
        client = MlflowClient(uri := sqlite_uri(path))
        client.search_experiments(max_results=1)
        if uri != f"sqlite:///{path}":  # MLflow makes a folder of the escaped name, and does not use it
            with suppress(OSError):
                Path(uri.removeprefix("sqlite:///")).parent.rmdir()
    return client


def _hasten(connection: Any, _: object) -> None:
    """Have SQLite block no writer by a reader, and wait for the disk now and then instead of at each call.

    After a loss of power its last calls may be missing, but the file is whole, and a sync sends them again.
    """
    if isinstance(connection, sqlite3.Connection):
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=NORMAL")


@cache  # the same for every file, so made once per process
def _tables() -> bytes:
    """The bytes of a new MLflow database."""
    from mlflow.tracking import MlflowClient

    memory = f"file:{secrets.token_hex(8)}?mode=memory&cache=shared"
    with closing(sqlite3.connect(memory, uri=True)) as database:
        MlflowClient(f"sqlite:///{memory}&uri=true").search_experiments(max_results=1)
        return database.serialize()


def experiment_id(client: Any, uri: str, scale: str) -> str:
    """The id of a scale's experiment: made if absent, restored from MLflow's bin if deleted, as names are unique."""
    from mlflow.exceptions import MlflowException

    name = experiment_name(scale)
    if (found := client.get_experiment_by_name(name)) is None:
        # beside the database, not in the current folder of whichever process came first
        beside = str(sqlite_path(uri).parent / "mlruns") if uri.startswith("sqlite:") else None
        try:
            return str(client.create_experiment(name, artifact_location=beside))
        except MlflowException:  # fine if another process was faster
            if (found := client.get_experiment_by_name(name)) is None:
                raise
    if found.lifecycle_stage == "deleted":
        client.restore_experiment(found.experiment_id)
    return str(found.experiment_id)


def say(message: str) -> None:
    """Tell the user, on stderr."""
    print(message, file=sys.stderr, flush=True)


def reason(error: object) -> str:
    """The first line of an error's message."""
    return (str(error).strip() or repr(error)).partition("\n")[0][:200]


class Tracker:
    """The store at `uri`, for the runs in a folder: waited for so long; one message says that it is behind."""

    def __init__(self, uri: str, *, runs: Path = RUNS, tell: Callable[[str], None] = say) -> None:
        self.uri, self.runs, self._tell, self._told = uri, runs, tell, False
        self.limit = LIMIT

    def look(self) -> None:
        """Raise for an address that can never work, before work begins; tell of a server that does not answer now."""
        if warning := check_store(self.uri, self.runs):
            self.tell(warning)

    def tell(self, trouble: str) -> None:
        """Tell the user of a trouble; of the first one only, as one command mends them all."""
        self.limit = min(self.limit, IN_TROUBLE)
        if not self._told:
            self._told = True
            self._tell(trouble)

    def fails(self, error: object) -> None:
        """To be called when a request failed; tells the user what to type later."""
        self.tell(
            f"MLflow at {self.uri} is behind: {reason(error).rstrip('.')}. Nothing is lost: the journals in "
            f"{self.runs} have everything. To catch up, type: {repair(self.uri, self.runs)}"
        )

    def wait(self, thread: threading.Thread, limit: float | None = None) -> bool:
        """Wait for a thread that sends; tells, and returns False, if it is late. No later thread is waited for then."""
        limit = self.limit if limit is None else limit
        thread.join(limit)
        if thread.is_alive():
            self.fails(f"no answer within {limit:g} s")
            self.limit = 0.0
        return not thread.is_alive()

    def ask(self, work: Callable[[], object]) -> None:
        """Do `work` in a thread, and wait for it; not begun once a thread was late. Tells if it fails."""

        def tried() -> None:
            try:
                work()
            except Exception as error:  # whatever the tracker does, the work that it mirrors is done
                self.fails(error)

        if self.limit:
            thread = threading.Thread(target=tried, name="work with the tracker", daemon=True)
            thread.start()
            self.wait(thread)
