"""The journal of a run, and its mirror in MLflow.

Training never waits for the tracker. What a step measured is one line of a local journal, and that file
is the truth of the run. A thread follows it and carries it to MLflow in batches; while the tracker is
away the journal waits. Either can be rebuilt from the other: `mirror` and `restore`.

    runs/<id>/run.json        what the run is: tags, parameters, the paper's numbers
    runs/<id>/journal.jsonl   what it measured: {"kind": "dev", "step": 200, "nll": 2.1, ...} is dev/nll
    runs/<id>/system.jsonl    what the machine did meanwhile

By hand: python -m repro.tracking [runs/<id> ...]
"""

import argparse
import base64
import fcntl
import json
import logging
import math
import os
import re
import sqlite3
import statistics
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
import warnings
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from repro import durable

DEFAULT_URI = "sqlite:///mlflow.db"
FRAME = ("kind", "step", "time", "attempt")  # stands in every line; the other fields are measured values
FINAL = "final"  # the kind of the run's last numbers
DERIVED = ("paper", "row")  # kinds made for MLflow alone: from run.json, and from the seeds of a row
JOURNALS = ("journal.jsonl", "system.jsonl")
BATCH = 1_000  # metrics in one call; MLflow takes no more

Line = dict[str, Any]


# ---------------------------------------------------------------------------------------------- the journal


class Journal:
    """Append-only JSON lines, one for each logged step, with a single writer.

    A line is with the operating system when `append` returns, so it survives the process; after `sync`
    it survives the machine. Opening a journal again cuts the line that a crash tore and begins the next
    attempt; steps that training then repeats stand twice in the file and once in `read`.
    """

    def __init__(self, path: Path, *, patience: float = 10.0) -> None:
        self._file = durable.Appended(path)
        try:
            # patience: workers of a killed process hold its lock until they notice
            if not _lock(self._file.file, patience):
                raise BlockingIOError(f"{path} has a writer: the same run is training. Wait, or stop it.")
            tail = _Tail(path)
            self.attempt = 1 + max((line["attempt"] for line in tail.lines()), default=0)
            self._file.cut(tail.offset)
        except BaseException:
            self._file.close()
            raise

    def append(self, kind: str, step: int, **values: float) -> None:
        """Write one line; `kind` and each name of a value make the metric kind/name."""
        for name in (kind, *values):
            if not re.fullmatch(r"[A-Za-z0-9_]+", name) or name in FRAME or name in DERIVED:
                taken = ", ".join(FRAME + DERIVED)
                raise ValueError(f"{name!r} cannot name a metric: expected letters, digits, _; not {taken}.")
        line: Line = {"kind": kind, "step": int(step), "time": round(time.time(), 3), "attempt": self.attempt}
        line |= {name: _plain(float(value)) for name, value in values.items()}
        self._file.append(json.dumps(line, allow_nan=False).encode() + b"\n")

    def sync(self) -> None:
        """Push what was appended to the disk: at checkpoints, validations and the end."""
        self._file.push()

    def close(self) -> None:
        """Sync and let go; a second call does nothing."""
        if self._file.file >= 0:
            self.sync()
            self._file.close()

    def __enter__(self) -> "Journal":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def read(path: Path) -> list[Line]:
    """The lines of a journal, each (kind, step) once: of steps repeated after a crash the last attempt."""
    return _once(_Tail(path).lines())


def _once(lines: Iterable[Line]) -> list[Line]:
    return list({(line["kind"], line["step"]): line for line in lines}.values())


def _plain(value: float) -> float | str:
    """JSON has no NaN and no infinity: they are written as strings that float() reads."""
    return value if math.isfinite(value) else str(value)


class _Tail:
    """Follow a journal: the whole lines that came since the last look."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.offset = 0
        self.n_lines = 0

    def lines(self) -> list[Line]:
        try:
            with open(self.path, "rb") as file:
                file.seek(self.offset)
                *whole, torn = file.read().split(b"\n")
                self.offset = file.tell() - len(torn)
        except FileNotFoundError:
            return []
        return [self._line(text) for text in whole]

    def _line(self, text: bytes) -> Line:
        self.n_lines += 1
        try:
            line = json.loads(text)
            frame = {name: line.pop(name) for name in FRAME}
            return frame | {name: float(value) for name, value in line.items()}
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise ValueError(
                f"{self.path}, line {self.n_lines}: expected an object of numbers with {', '.join(FRAME)}, "
                f"got {text[:60]!r}. Something else changed the file; remove that line."
            ) from error


def _lock(handle: int, patience: float) -> bool:
    """Lock an open file or folder until it is closed or the process dies; False if another keeps it."""
    deadline = time.monotonic() + patience
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                return False
            time.sleep(0.05)
        except OSError:  # a file system without locks: go on as if alone
            return True
        else:
            return True


@contextmanager
def _locked(path: Path, patience: float) -> Iterator[bool]:
    """Hold the lock of a file or folder; gives False where another keeps it."""
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        yield _lock(handle, patience)
    finally:
        os.close(handle)


# ------------------------------------------------------------------------- a run folder, as MLflow sees it


class Point(NamedTuple):
    """One value of one curve."""

    key: str
    step: int
    value: float
    time: int  # milliseconds


def write_run(
    folder: Path,
    run: str,
    *,
    tags: Mapping[str, object],
    params: Mapping[str, object],
    paper: Mapping[str, float | None],
    order: int = 0,
) -> None:
    """Write run.json, the description that `mirror` reads.

    `tags` has table, row, seed, scale, corpus and pair (and tables, where several tables show the row).
    `paper` is the row as printed, ppl and bleu; `order` its place in the table, the base row being 0.
    """
    value = {"run": run, "tags": dict(tags), "params": dict(params), "paper": dict(paper), "order": order}
    durable.write_json(folder / "run.json", value)


def describe(folder: Path) -> dict[str, Any]:
    """Read run.json."""
    path = folder / "run.json"
    try:
        run: dict[str, Any] = json.loads(path.read_bytes())
        if not re.fullmatch(r"[\w.-]+", run["run"]):
            raise ValueError(f"run is {run['run']!r}")
        return run | {"tags": {k: str(v) for k, v in run["tags"].items()}, "paper": {**run["paper"]}}
    except (FileNotFoundError, NotADirectoryError):
        raise FileNotFoundError(f"{path} is missing; expected a run's folder, runs/<id>.") from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{path}: expected run, tags, params and paper, got {error!r}.") from error


def points(folder: Path) -> list[Point]:
    """All that MLflow shows of a run folder, each (key, step) once.

    The paper's and the final numbers stand at step 0: there MLflow draws a bar with its value, anywhere
    else a lonely dot.
    """
    run, lines = describe(folder), [line for name in JOURNALS for line in read(folder / name)]
    began = round(lines[0]["time"] * 1000) if lines else 0
    printed = {**run["paper"], "row": run.get("order")}
    paper = [Point(f"paper/{name}", 0, float(v), began) for name, v in printed.items() if v is not None]
    return list({(point.key, point.step): point for point in [*paper, *_measured(lines)]}.values())


def _measured(lines: Iterable[Line]) -> Iterator[Point]:
    for line in lines:
        step = 0 if line["kind"] == FINAL else line["step"]
        for name, value in line.items():
            if name not in FRAME:
                yield Point(f"{line['kind']}/{name}", step, value, round(line["time"] * 1000))


# ------------------------------------------------------------------------------------------ MLflow's store

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


def repair(uri: str, folder: Path | None = None) -> str:
    """What to type to bring MLflow in line with one run folder, or with all."""
    where = "" if uri == DEFAULT_URI else f" --tracking-uri {uri}"
    return f"python -m repro.tracking{where}" + (f" {folder}" if folder else "")


def check_store(uri: str) -> str | None:
    """Look at a tracking store before work begins, without MLflow.

    Raises for a store that can never work. Returns a warning for a server that does not answer now:
    training goes on with its journal.
    """
    if uri.startswith("sqlite:"):
        _check_file(sqlite_path(uri))
        return None
    if uri.startswith(("http://", "https://")):
        why = _silence(uri)
        return why and f"MLflow at {uri} does not answer ({why}). To catch up later, type: {repair(uri)}"
    raise ValueError(
        f"--tracking-uri {uri}: expected sqlite:///FILE, as in {DEFAULT_URI}, or http(s)://SERVER. MLflow's "
        "file store is no longer kept up, and any other database belongs behind an MLflow server."
    )


def sqlite_path(uri: str) -> Path:
    """The file of sqlite:///relative or sqlite:////absolute."""
    path = uri.removeprefix("sqlite:///").partition("?")[0]
    if not uri.startswith("sqlite:///") or path in ("", ":memory:"):
        raise ValueError(f"--tracking-uri {uri}: expected a file after sqlite:///, as in {DEFAULT_URI}.")
    return Path(path).absolute()


def _check_file(path: Path) -> None:
    where = f"--tracking-uri: {path}"
    if path.exists():
        if not path.is_file():
            raise ValueError(f"{where} is a folder; expected a SQLite file.")
        if not os.access(path, os.R_OK | os.W_OK):
            raise PermissionError(f"{where} may not be read and written; name another file.")
        with open(path, "rb") as file:
            if (head := file.read(16)) not in (b"", b"SQLite format 3\0"):
                raise ValueError(f"{where} is no SQLite database, it begins with {head!r}; name another.")
    folder = path.parent
    while not folder.exists():
        folder = folder.parent
    if not folder.is_dir():
        raise NotADirectoryError(f"{where} cannot be made: {folder} is a file.")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise PermissionError(f"{where} cannot be made: {folder} is read-only.")


def _silence(uri: str, patience: float = 2.0) -> str | None:
    """Why a server does not answer; None if it does. In a thread, as names can take long to resolve."""
    why = [f"nothing within {patience:g} s"]

    def ask() -> None:
        try:
            urllib.request.urlopen(f"{uri.rstrip('/')}/health", timeout=patience).close()
            why.clear()
        except urllib.error.HTTPError as error:
            why[:] = [str(error)] if error.code >= 500 else []  # 401 is an answer
        except (OSError, ValueError) as error:
            why[:] = [str(getattr(error, "reason", error))]

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    thread.join(patience)
    return why[0] if why else None


def _client(uri: str) -> Any:
    """MLflow's client, imported and opened with care."""
    for name, value in QUIET.items():
        os.environ.setdefault(name, value)
    # what MLflow 3.17 uses is deprecated in the libraries below it: nothing our users could mend
    warnings.filterwarnings("ignore", module=r"(mlflow|sqlalchemy|alembic|pydantic|starlette|fastapi)(\.|$)")
    from mlflow.tracking import MlflowClient

    for name in ("mlflow", "alembic"):
        logging.getLogger(name).setLevel(logging.WARNING)
    if not uri.startswith("sqlite:"):
        return MlflowClient(uri)
    return _opened(sqlite_path(uri))


@lru_cache(maxsize=8)
def _opened(path: Path) -> Any:
    """A client of a SQLite file. One process at a time: of two that make the same new file, one dies."""
    from mlflow.tracking import MlflowClient

    path.parent.mkdir(parents=True, exist_ok=True)
    gate = path.with_name(f"{path.name}.lock")
    gate.touch()
    with _locked(gate, patience=60.0):
        client = MlflowClient(f"sqlite:///{path}")
        client.search_experiments(max_results=1)
        with closing(sqlite3.connect(path)) as connection:  # readers stop no writer: 104 -> 44 ms a call
            connection.execute("PRAGMA journal_mode=WAL")
    return client


def _experiment(client: Any, uri: str, scale: str) -> str:
    """The id of the experiment of a scale, made if need be."""
    from mlflow.exceptions import MlflowException

    name = experiment_name(scale)
    found = client.get_experiment_by_name(name)
    if found is None:
        # beside the database, not wherever the process that came first happened to stand
        beside = str(sqlite_path(uri).parent / "mlruns") if uri.startswith("sqlite:") else None
        try:
            return str(client.create_experiment(name, artifact_location=beside))
        except MlflowException:  # unless another process was faster
            if (found := client.get_experiment_by_name(name)) is None:
                raise
    return str(found.experiment_id)


def _words(*texts: str) -> str:
    """Table names as one tag, with spaces around each: a filter on table3_A must not find table3_AB."""
    return f" {' '.join(sorted({word for text in texts for word in text.split()}))} "


class _Remote:
    """One run in MLflow: found again by its tag, and given only what it lacks."""

    def __init__(self, uri: str, folder: Path) -> None:
        run = describe(folder)
        tags, text = run["tags"], (folder / "run.json").read_bytes().decode()
        self.client = client = _client(uri)
        from mlflow.entities import Param, RunTag  # after that, which keeps MLflow from reporting home

        self.database = sqlite_path(uri) if uri.startswith("sqlite:") else None
        experiment = _experiment(client, uri, tags.get("scale", "none"))
        found = client.search_runs([experiment], f"tags.`repro.run` = '{run['run']}'", max_results=1)
        if not found:
            began = next((line["time"] for line in read(folder / JOURNALS[0])), time.time())
            name = f"{tags.get('row', run['run'])}, seed {tags.get('seed', '?')}"
            found = [client.create_run(experiment, round(began * 1000), {"repro.run": run["run"]}, name)]
        self.run_id: str = found[0].info.run_id
        self.status: str = found[0].info.status
        have = found[0].data
        tags["tables"] = _words(have.tags.get("tables", ""), tags.get("tables", ""), tags.get("table", ""))
        tags["repro.folder"] = str(folder)
        if len(text) <= 8_000:  # MLflow's limit; a longer one costs `restore` alone
            tags["repro.json"] = text
        client.log_batch(
            self.run_id,
            params=[Param(k, str(v)[:6_000]) for k, v in run["params"].items() if k not in have.params],
            tags=[RunTag(k, v) for k, v in tags.items() if have.tags.get(k) != v],
        )
        histories = {key: client.get_metric_history(self.run_id, key) for key in have.metrics}
        self.pushed = {(key, metric.step) for key, history in histories.items() for metric in history}

    def push(self, points: Iterable[Point]) -> None:
        """Log the points that are missing, a batch at a time."""
        from mlflow.entities import Metric

        missing = [point for point in points if (point.key, point.step) not in self.pushed]
        if missing and self.database and not self.database.exists():  # SQLite would write to the deleted file
            raise FileNotFoundError(f"{self.database} was deleted while it was in use")
        for start in range(0, len(missing), BATCH):
            batch = missing[start : start + BATCH]
            self.client.log_batch(self.run_id, [Metric(p.key, p.value, p.time, p.step) for p in batch])
            self.pushed.update((point.key, point.step) for point in batch)

    def become(self, status: str, ended: int | None = None) -> None:
        """Set the run's status: RUNNING, FINISHED, FAILED or KILLED."""
        if status == "RUNNING" != self.status:
            self.client.update_run(self.run_id, status=status)
        elif status != self.status:
            self.client.set_terminated(self.run_id, status, ended)
        self.status = status


def mirror(uri: str, folder: Path) -> str:
    """Bring MLflow in line with a run folder, whatever its state; returns MLflow's id of the run.

    Only what is missing is sent, so this may be killed and repeated at will. A step that training
    repeated after a crash keeps the value that was shown first: the two differ in timings only.
    """
    everything = points(folder)
    with _locked(folder, patience=0.0) as mine:
        if not mine:
            raise BlockingIOError(f"{folder} is being mirrored by another process, likely its own training.")
        remote = _Remote(uri, folder)
        remote.push(everything)
        remote.become(_status(folder), ended=max((point.time for point in everything), default=0) or None)
    return remote.run_id


def is_training(folder: Path) -> bool:
    """Whether a process writes the journal of this run folder now."""
    journal = folder / JOURNALS[0]
    if not journal.exists():
        return False
    with _locked(journal, patience=0.0) as idle:
        return not idle


def _status(folder: Path) -> str:
    """What became of a run, told by its files: it has a record, or its journal has a writer, or neither."""
    if (folder / "record.json").exists():
        return "FINISHED"
    return "RUNNING" if is_training(folder) else "KILLED"


def restore(uri: str, run_id: str, folder: Path) -> None:
    """The other direction: make a run folder from the run that MLflow calls `run_id`."""
    if (folder / "run.json").exists():
        raise FileExistsError(f"{folder} holds a run already; name a new folder.")
    client = _client(uri)
    data = client.get_run(run_id).data
    if "repro.json" not in data.tags:
        raise ValueError(f"Run {run_id} at {uri} has no tag repro.json: it is no mirror of a run folder.")
    journals: dict[str, dict[tuple[str, int], Line]] = {name: {} for name in JOURNALS}
    for key in data.metrics:
        kind, _, name = key.partition("/")
        if kind in DERIVED:
            continue
        lines = journals[JOURNALS[kind == "system"]]
        for metric in client.get_metric_history(run_id, key):
            frame = {"kind": kind, "step": metric.step, "time": metric.timestamp / 1000, "attempt": 1}
            # MLflow's databases keep an infinity as the largest float
            value = metric.value * math.inf if abs(metric.value) >= sys.float_info.max else metric.value
            lines.setdefault((kind, metric.step), frame)[name] = _plain(value)
    for file, lines in journals.items():
        if lines:
            ordered = sorted(lines.values(), key=lambda line: (line["kind"] == FINAL, line["step"]))
            text = "".join(f"{json.dumps(line, allow_nan=False)}\n" for line in ordered)
            durable.write_text(folder / file, text)
    durable.write_text(folder / "run.json", data.tags["repro.json"])  # last: it makes the folder a run


# ---------------------------------------------------------------------------------------------- the thread


def _say(message: str) -> None:
    print(message, file=sys.stderr, flush=True)


def _reason(error: object) -> str:
    return str(error).strip().partition("\n")[0][:200]


class Mirror:
    """Carries a run folder to MLflow while training writes it, in a thread that training never waits for.

    The tracker's troubles stay here: told once, with what to type to repair them, and tried again every
    few seconds. The thread also notes what the machine does.
    """

    def __init__(
        self,
        uri: str,
        folder: Path,
        *,
        tell: Callable[[str], None] = _say,
        every: float = 3.0,
        sample: float = 5.0,
    ) -> None:
        self.uri, self.folder = uri, folder
        self.run_id: str | None = None  # MLflow's, as soon as it is known
        self._tell, self._every, self._sample = tell, every, sample
        self._status = "KILLED"
        self._told = self._complete = False
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._follow, name=f"mirror of {folder.name}", daemon=True)
        self._thread.start()

    def close(self, status: str = "FINISHED", timeout: float = 30.0) -> bool:
        """Send the rest and the status, FINISHED, FAILED or KILLED; False, and told, if that failed."""
        self._status = status
        self._closing.set()
        self._thread.join(timeout)
        if not self._complete:
            self._complain(f"no answer within {timeout:g} s")
        return self._complete

    def _complain(self, error: object) -> None:
        if not self._told:
            self._told = True
            self._tell(
                f"MLflow at {self.uri} is behind: {_reason(error)}. Nothing is lost, {self.folder} has it "
                f"all; to catch up type: {repair(self.uri, self.folder)}"
            )

    def _follow(self) -> None:
        try:
            with _locked(self.folder, patience=60.0), Journal(self.folder / JOURNALS[1]) as machine:
                self._carry(machine)
        except Exception as error:
            self._complain(error)

    def _carry(self, machine: Journal) -> None:
        remote, tails, due = None, [], time.monotonic() + self._sample
        n_samples = len(read(self.folder / JOURNALS[1]))
        _machine()  # the first look at the processors tells nothing
        while True:
            closing = self._closing.is_set()  # asked before the files are read: nothing is left behind
            try:
                if time.monotonic() >= due:
                    machine.append("system", n_samples, **_machine())
                    n_samples, due = n_samples + 1, time.monotonic() + self._sample
                if remote is None:
                    remote = _Remote(self.uri, self.folder)
                    self.run_id = remote.run_id
                    remote.become("RUNNING")
                    tails = [_Tail(self.folder / name) for name in JOURNALS]
                    remote.push(points(self.folder))
                remote.push(_measured(_once(line for tail in tails for line in tail.lines())))
                if closing:
                    remote.become(self._status)
                    self._complete = True
            except Exception as error:  # whatever the tracker does, training goes on
                remote = None
                self._complain(error)
            if closing:
                return
            self._closing.wait(self._every)


def _machine() -> dict[str, float]:
    """What the machine does, under MLflow's own names, so that its page of system metrics shows them."""
    import psutil

    memory = psutil.virtual_memory()
    values = {
        "cpu_utilization_percentage": psutil.cpu_percent(),
        "system_memory_usage_megabytes": memory.used / 1e6,
        "system_memory_usage_percentage": memory.percent,
        "process_memory_megabytes": psutil.Process().memory_info().rss / 1e6,
    }
    for i, gpu in enumerate(_gpus()):
        import pynvml

        asked: dict[str, Callable[[Any], float]] = {
            "memory_usage_megabytes": lambda gpu: pynvml.nvmlDeviceGetMemoryInfo(gpu).used / 1e6,
            "utilization_percentage": lambda gpu: pynvml.nvmlDeviceGetUtilizationRates(gpu).gpu,
            "power_usage_watts": lambda gpu: pynvml.nvmlDeviceGetPowerUsage(gpu) / 1e3,
        }
        for name, ask in asked.items():
            with suppress(Exception):  # a card, or a part of one, need not support each of them
                values[f"gpu_{i}_{name}"] = ask(gpu)
    return values


@lru_cache(maxsize=1)
def _gpus() -> list[Any]:
    """NVIDIA's GPUs, where there are any and the optional nvidia-ml-py is installed."""
    try:
        import pynvml

        pynvml.nvmlInit()
        return [pynvml.nvmlDeviceGetHandleByIndex(i) for i in range(pynvml.nvmlDeviceGetCount())]
    except Exception:  # the library's own errors where there is no driver
        return []


# --------------------------------------------------------------------------------------------- saved views
#
# A view is what MLflow's page stores when one presses "Share": an experiment tag with the state of the page.
# MLflow 3.17 does not document it, so a failure costs the view and nothing else.

VIEW = "mlflow.sharedViewState."
NOTE = "repro.view."
ROW = {  # numbers of a row, the mean over its seeds as the paper would print it: from where, decimals
    "row/dev_ppl": ("final/dev_ppl", 2),
    "row/paper_ppl": ("paper/ppl", 2),
    "row/dev_bleu": ("final/dev_bleu", 1),
    "row/paper_bleu": ("paper/bleu", 1),
}
COLUMNS = {  # of a view, in this order: width in pixels
    "attributes.`Run Name`": 170,
    "runDateAndNestInfo": 90,  # "Created", which cannot be left out
    **{f"metrics.`{key}`": 125 for key in (*ROW, "row/dev_bleu_sd", "final/dev_ppl", "final/dev_bleu")},
}


def encode_view(name: str, state: Mapping[str, Any], time: int) -> str:
    """A view as MLflow stores it; `time` in milliseconds."""
    packed = base64.b64encode(zlib.compress(json.dumps(state).encode())).decode()
    return json.dumps({"name": name, "createdAt": time, "updatedAt": time, "state": f"deflate;{packed}"})


def decode_view(text: str) -> dict[str, Any]:
    """The state of the page in a view."""
    packed = json.loads(text)["state"].removeprefix("deflate;")
    state: dict[str, Any] = json.loads(zlib.decompress(base64.b64decode(packed)))
    return state


def view_key(table: str, corpus: str | None = None, pair: str | None = None) -> str:
    """The name of a view in links: its table, then the corpus and the pair it is narrowed to."""
    return "-".join(part for part in (table, corpus, pair) if part)


def view_path(experiment_id: str, key: str | None = None) -> str:
    """The part of MLflow's address that opens a view, on the page for training and not that for prompts."""
    share = f"&viewStateShareKey={urllib.parse.quote(key, safe='')}" if key else ""
    return f"/#/experiments/{experiment_id}/runs?workflowType=machine_learning{share}"


def view_filter(table: str, corpus: str | None = None, pair: str | None = None) -> str:
    """MLflow's filter for the runs of a table."""
    narrow = [f" AND tags.{tag} = '{value}'" for tag, value in (("corpus", corpus), ("pair", pair)) if value]
    return f"tags.tables LIKE '% {table} %'" + "".join(narrow)


def view_state(where: str, rows: Iterable[str]) -> dict[str, Any]:
    """The page of a table: runs grouped by row in the paper's order, the paper's numbers beside ours."""
    return {
        "searchFilter": where,
        "orderByKey": "metrics.`paper/row`",
        "orderByAsc": True,
        "startTime": "ALL",
        "lifecycleFilter": "Active",
        "datasetsFilter": [],
        "modelVersionFilter": "All Runs",
        "selectedColumns": list(COLUMNS),
        "columnOrder": list(COLUMNS),
        "columnWidths": COLUMNS,
        "runsHiddenMode": "SHOW_ALL",
        "groupBy": {"aggregateFunction": "average", "groupByKeys": [{"mode": "tag", "groupByData": "row"}]},
        "groupsExpanded": {f"tag.row.{row}": False for row in rows},
        "useGroupedValuesInCharts": True,
        "hideEmptyCharts": True,
        "autoRefreshEnabled": True,
    }


def install_view(
    uri: str,
    *,
    scale: str,
    table: str,
    title: str,
    note: str = "",
    corpus: str | None = None,
    pair: str | None = None,
    tell: Callable[[str], None] = _say,
) -> str | None:
    """Save the view of a table and bring its rows up to date; gives its path, or None (told) if that failed.

    To be called when runs were added. Name corpus and pair where the scale has runs of several: a mean
    over two corpora is the mean of nothing.
    """
    try:
        client = _client(uri)
        experiment = _experiment(client, uri, scale)
        for run in client.search_runs([experiment], "tags.table = 'base'"):  # the base row is in every table
            client.set_tag(run.info.run_id, "tables", _words(run.data.tags.get("tables", ""), table))
        key, where = view_key(table, corpus, pair), view_filter(table, corpus, pair)
        rows: dict[str, list[Any]] = {}
        for run in client.search_runs([experiment], where):
            rows.setdefault(run.data.tags.get("row", ""), []).append(run)
        for runs in rows.values():
            _log_row(client, runs)
        client.set_experiment_tag(
            experiment, VIEW + key, encode_view(title, view_state(where, rows), round(time.time() * 1000))
        )
        client.set_experiment_tag(experiment, NOTE + key, json.dumps({"title": title, "note": note}))
        client.set_experiment_tag(experiment, "mlflow.note.content", _notes(client, experiment))
        return view_path(experiment, key)
    except Exception as error:
        tell(f"MLflow at {uri} lacks the view of {table} ({_reason(error)}); try again by: {repair(uri)}")
        return None


def _log_row(client: Any, runs: list[Any]) -> None:
    """Log the numbers of a row to one of its runs.

    The page shows the mean of a group with all its digits, 24.9 of three seeds as 24.899999999999995. A
    number that a single run of the group has is shown as it is.
    """
    from mlflow.entities import Metric

    runs = sorted(runs, key=lambda run: (not run.data.metrics.keys() & ROW.keys(), run.info.start_time))
    values = {}
    for key, (source, decimals) in ROW.items():
        seeds = [run.data.metrics[source] for run in runs if source in run.data.metrics]
        if seeds:
            values[key] = round(statistics.fmean(seeds), decimals)
        if source == "final/dev_bleu" and len(seeds) > 1:
            values["row/dev_bleu_sd"] = round(statistics.stdev(seeds), 2)
    now = round(time.time() * 1000)
    changed = {k: v for k, v in values.items() if runs[0].data.metrics.get(k) != v}
    client.log_batch(runs[0].info.run_id, [Metric(key, value, now, 0) for key, value in changed.items()])


def _notes(client: Any, experiment: str) -> str:
    """The text above the runs: links to the views first, as only the first line is always in sight."""
    tags = client.get_experiment(experiment).tags
    views = {k.removeprefix(NOTE): json.loads(v) for k, v in sorted(tags.items()) if k.startswith(NOTE)}
    links = {key: f"[{view['title']}]({view_path(experiment, key)[1:]})" for key, view in views.items()}
    notes = [f"* {links[key]}: {view['note']}" for key, view in views.items() if view["note"]]
    return "\n".join([" · ".join(links.values()), "", *notes])


# ------------------------------------------------------------------------------------------------- by hand


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
        _say(str(error))
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
            _say(f"{folder}: {_reason(error)}")
            failed = 1
    for (table, scale, corpus, pair), title in views.items():
        if table != "base":
            install_view(uri, scale=scale, table=table, title=title, corpus=corpus, pair=pair)
    return failed


if __name__ == "__main__":
    sys.exit(main())
