"""MLflow's store: where it may be, whether it answers, and a client of it."""

import http.client
import logging
import os
import re
import secrets
import shlex
import sqlite3
import sys
import tempfile
import threading
import urllib.error
import urllib.request
import warnings
from collections.abc import Iterator
from contextlib import closing, suppress
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

from repro.storage import atomic
from repro.storage.lock import locked

DEFAULT_URI, RUNS = "sqlite:///mlflow.db", Path("runs")
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
    where = "" if uri == DEFAULT_URI else f" --tracking-uri {shlex.quote(hide(uri))}"
    return f"python -m repro tracking sync{where}" + ("" if runs == RUNS else f" --runs-dir {shlex.quote(str(runs))}")


def hide(text: str) -> str:
    """The text without what may be secret: users, passwords and queries of addresses, and MLflow's own password."""
    if text.startswith("sqlite:"):
        return text  # a file name, in which ? is a plain character
    for name in ("MLFLOW_TRACKING_PASSWORD", "MLFLOW_TRACKING_TOKEN"):
        if secret := os.environ.get(name):
            text = text.replace(secret, "***")
    return re.sub(r"(?<=://)\S*@|(?<=\?)\S+", "***", text)


def check_store(uri: str, runs: Path = RUNS) -> str | None:
    """Look at a tracking store before work begins, without MLflow.

    Raises for a store that can never work. Returns a warning for a server that does not answer now:
    training goes on with its journal, and the runs in `runs` can be synced later.
    """
    if uri.startswith("sqlite:"):
        _check_file(sqlite_path(uri))
        return None
    if uri.startswith(("http://", "https://")):
        if hide(uri) != uri:
            raise ValueError(
                f"--tracking-uri {hide(uri)}: expected http(s)://SERVER without user, password or query, because "
                "other users can see what is typed. MLflow takes the user from MLFLOW_TRACKING_USERNAME and the "
                "password from MLFLOW_TRACKING_PASSWORD."
            )
        why = _silence(uri)
        return why and f"MLflow at {uri} does not answer ({why}). To catch up later, type: {repair(uri, runs)}"
    raise ValueError(
        f"--tracking-uri {hide(uri)}: expected sqlite:///FILE, as in {DEFAULT_URI}, or http(s)://SERVER. MLflow's "
        "file store is no longer maintained, and any other database belongs behind an MLflow server."
    )


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
        return f"sqlite:///{path}"  # unchanged: for another spelling MLflow makes a folder, see `remove_twin`
    return URL.create("sqlite", database=str(path)).render_as_string()


def remove_twin(path: Path) -> None:
    """Remove the empty folder that MLflow makes if the address spells the name of the file's folder differently."""
    twin = Path(sqlite_uri(path).removeprefix("sqlite:///")).parent
    if twin != path.parent:
        with suppress(OSError):
            os.removedirs(twin)


def _check_file(path: Path) -> None:
    where = f"--tracking-uri: {path}"
    if path.exists():
        if not path.is_file():
            raise ValueError(f"{where} is a folder; expected a SQLite file.")
        if not os.access(path, os.R_OK | os.W_OK):
            raise PermissionError(f"{where} may not be read and written; name another file.")
        with open(path, "rb") as file:
            if (head := file.read(16)) not in (b"", b"SQLite format 3\0"):
                raise ValueError(f"{where} is not a SQLite database: it begins with {head!r}; name another.")
    folder = path.parent
    while not folder.exists():
        folder = folder.parent
    if not folder.is_dir():
        raise NotADirectoryError(f"{where} cannot be made: {folder} is a file.")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise PermissionError(f"{where} cannot be made: {folder} is read-only.")


def _silence(uri: str, patience: float = 2.0) -> str | None:
    """Why a server does not answer; None if it does. Asked in a thread, as names can take long to resolve."""
    why = [f"nothing within {patience:g} s"]

    def ask() -> None:
        try:
            urllib.request.urlopen(f"{uri.rstrip('/')}/health", timeout=patience).close()
            why.clear()
        except urllib.error.HTTPError as error:
            why[:] = [str(error)] if error.code >= 500 else []  # 401 is an answer
        except (OSError, ValueError, http.client.HTTPException) as error:
            why[:] = [str(getattr(error, "reason", error)) or repr(error)]

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    thread.join(patience)
    return why[0] if why else None


def guest() -> dict[str, str]:
    """The environment for MLflow: `QUIET`, and the HOME that it asks for: users of some containers have none."""
    try:
        Path.home()
    except RuntimeError:
        return QUIET | {"HOME": tempfile.gettempdir()}
    return QUIET


def connect(uri: str) -> Any:
    """MLflow's client, imported without its chatter, with a SQLite file checked or made first."""
    for name, value in guest().items():
        os.environ.setdefault(name, value)
    # MLflow 3.17 uses deprecated parts of these libraries: nothing our users could mend
    warnings.filterwarnings("ignore", module=r"(mlflow|sqlalchemy|alembic|pydantic|starlette|fastapi)(\.|$)")
    from mlflow.tracking import MlflowClient

    for name in ("mlflow", "alembic"):
        logging.getLogger(name).setLevel(logging.WARNING)
    logging.getLogger("mlflow.store.db.utils").setLevel(logging.CRITICAL)  # it also raises what it logs
    if not uri.startswith("sqlite:"):
        return MlflowClient(uri)
    return _opened(sqlite_path(uri))[0]


def check_in_place(uri: str) -> None:
    """Raise FileNotFoundError if an open database was deleted or replaced: SQLite would go on with the lost file."""
    if uri.startswith("sqlite:"):
        path = sqlite_path(uri)
        if not path.exists() or _opened(path)[1] != _identity(path):
            raise FileNotFoundError(f"{path} was deleted or replaced while it was in use")


def _identity(path: Path) -> tuple[int, int]:
    """Device and inode: they identify the file itself, whatever its name."""
    return path.stat().st_dev, path.stat().st_ino


@cache  # MLflow keeps each database open anyway
def _opened(path: Path) -> tuple[Any, tuple[int, int]]:
    """A client of a SQLite file, and the file's identity. Raises `Broken` if MLflow cannot work with it.

    MLflow makes the 65 tables of a new file one by one; if it is killed meanwhile, no later start completes them. So
    the tables are made in memory, and the file gets its name when it is whole.
    """
    from mlflow.tracking import MlflowClient

    atomic.make_folder(path.parent)
    gate = path.with_name(f"{path.name}.lock")
    with atomic.named(gate):
        gate.touch()
    with locked(gate):  # others wait instead of making the same tables
        for left in atomic.left_beside(path, atomic.PARTIAL):
            left.unlink(missing_ok=True)
        if not path.exists() or not path.stat().st_size:
            for lost in _beside(path):  # left by a deleted database: SQLite would mix it with the new one
                lost.unlink(missing_ok=True)
            atomic.write_bytes(path, _tables())
        try:
            client = MlflowClient(sqlite_uri(path))
            client.search_experiments(max_results=1)
            remove_twin(path)
        except Exception as error:
            if _is_of_the_surroundings(error):
                raise
            raise Broken(path, error) from error
        with closing(sqlite3.connect(path)) as connection:  # in WAL mode readers block no writer: 104 -> 44 ms a call
            connection.execute("PRAGMA journal_mode=WAL")
        return client, _identity(path)


@cache  # the same for every file, so made once per process
def _tables() -> bytes:
    """The bytes of a new MLflow database."""
    from mlflow.tracking import MlflowClient

    memory = f"file:{secrets.token_hex(8)}?mode=memory&cache=shared"
    with closing(sqlite3.connect(memory, uri=True)) as database:
        MlflowClient(f"sqlite:///{memory}&uri=true").search_experiments(max_results=1)
        return database.serialize()


def _beside(path: Path) -> list[Path]:
    """The files that SQLite keeps beside a database."""
    return [found for end in ("-journal", "-wal", "-shm") if (found := path.with_name(path.name + end)).exists()]


class Broken(Exception):
    """A SQLite file with which MLflow cannot work: half made, damaged, or of another version of MLflow."""

    def __init__(self, path: Path, error: object) -> None:
        super().__init__(path, reason(error))
        self._path, self._why = path, reason(error)

    def __str__(self) -> str:
        return self.remedy(RUNS)

    def remedy(self, runs: Path) -> str:
        """What to type to rebuild it from the journals in `runs`."""
        path = self._path
        aside = next(free for i in count(1) if not (free := path.with_name(f"{path.name}.broken{i}")).exists())
        there, *files = (shlex.quote(os.path.relpath(one)) for one in (aside, path, *_beside(path)))
        uri = DEFAULT_URI if path == sqlite_path(DEFAULT_URI) else f"sqlite:///{path}"
        return (
            f"{path} is incomplete, damaged or of another version of MLflow ({self._why}). Move it away and "
            f"rebuild it from the journals: mkdir {there} && mv {' '.join(files)} {there} && {repair(uri, runs)}"
        )


SURROUNDINGS = ("SQLITE_BUSY", "SQLITE_LOCKED", "SQLITE_FULL", "SQLITE_READONLY", "SQLITE_IOERR", "SQLITE_CANTOPEN")


def _is_of_the_surroundings(error: BaseException) -> bool:
    """Whether a database failed for a reason outside it: another program, a full disk, a missing right."""
    return any(isinstance(one, OSError) or _sqlite_name(one).startswith(SURROUNDINGS) for one in _all_of(error))


def _all_of(error: BaseException | None) -> Iterator[BaseException]:
    """An error and its causes: MLflow and SQLAlchemy each raise an error of their own from that of SQLite."""
    while error:
        yield error
        error = error.__cause__ or error.__context__


def _sqlite_name(error: BaseException) -> str:
    return str(getattr(error, "sqlite_errorname", ""))


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


def reason(error: object, runs: Path = RUNS) -> str:
    """The first line of an error's message, without secrets; of a database error, SQLite's own message."""
    if isinstance(error, Broken):
        return error.remedy(runs)  # not cut: it ends with what to type
    if isinstance(error, BaseException):
        error = next(filter(_sqlite_name, _all_of(error)), error)
    return hide(str(error).strip() or repr(error)).partition("\n")[0][:200]
