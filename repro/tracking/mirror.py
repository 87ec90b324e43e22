"""The mirror of a run in MLflow.

Training never waits for the tracker: it writes the journal, and a thread follows that file and sends it to
MLflow in batches. While the tracker is away, only that thread waits. `sync` rebuilds MLflow's run from the
journal, `restore` the journal from MLflow's run.
"""

import math
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import lru_cache, partial
from itertools import chain, islice
from pathlib import Path
from typing import Any

from repro.storage import atomic, lease
from repro.storage.journal import DERIVED, FINAL, Journal, Line, Tail, encoded, plain_values
from repro.storage.lock import locked
from repro.tracking import run_folder
from repro.tracking.client import check_in_place, connect, experiment_id, hide, reason
from repro.tracking.run_folder import APART, DIVERGED_TAG, INFINITE, JOURNALS, RECORD, UNKNOWN, Point
from repro.tracking.tracker import Tracker

BATCH = 1_000  # metrics in one call; MLflow takes no more
CELL = ("table", "row", "published", *APART)  # tags: runs that differ in one are never compared as seeds of a row
LONGEST_PAUSE = 60.0  # seconds between two tries of a tracker in trouble


def table_names(*texts: str) -> str:
    """Table names as one tag, with spaces around each: a filter on table3_A must not find table3_AB."""
    return f" {' '.join(sorted({word for text in texts for word in text.split()}))} "


def settle(client: Any, experiment: str, tags: Mapping[str, str]) -> None:
    """Choose the run that counts for each seed of a row, by the tag `current`: views show only those.

    It is the newest run that has finished, or the newest if none has. Only runs of the same deciding code as the newest
    of the row count: a mean over two programs means nothing.
    """
    cell = {name: tags.get(name, UNKNOWN) for name in CELL}
    found = client.search_runs([experiment], f"tags.table = '{tags.get('table', UNKNOWN)}'")
    settle_cell(client, [run for run in found if cell.items() <= run.data.tags.items()])


def settle_cell(client: Any, runs: list[Any]) -> None:
    """`settle` for runs given as MLflow has them: those of one row that can be compared."""
    runs.sort(key=lambda run: (run.info.status == "FINISHED", run.info.start_time, run.info.run_id))
    counts = {run.data.tags["seed"]: run for run in runs if run.data.tags.get("code") == runs[-1].data.tags.get("code")}
    for run in runs:
        current = str(counts.get(run.data.tags["seed"]) is run).lower()
        if run.data.tags.get("current") != current:
            client.set_tag(run.info.run_id, "current", current)


class Remote:
    """One run in MLflow: found again by its tags, and given only what it lacks.

    Points are sent in the order of the journal. If training repeated a step after a crash, its first line counts:
    MLflow keeps what it was given, so it gets the same points whether it was there all along or came later. The lines
    of a repeated step differ in timings only.
    """

    def __init__(self, uri: str, folder: Path) -> None:
        self.uri, self.client = uri, connect(uri)
        from mlflow.entities import Param, RunTag  # after `connect`, which keeps MLflow from reporting home

        run = run_folder.describe(folder)
        self._experiment = experiment_id(self.client, self.uri, run["tags"].get("scale", "none"))
        found = self._find(run, folder)
        self.run_id: str = found.info.run_id
        self.status: str = found.info.status
        have = found.data
        tags, text = run["tags"], (folder / "run.json").read_bytes().decode()
        tags["tables"] = table_names(have.tags.get("tables", ""), tags.get("tables", ""), tags.get("table", ""))
        tags["repro.folder"] = str(folder)
        if len(text) <= 8_000:  # MLflow's limit; without the tag only `restore` is impossible
            tags["repro.json"] = text
        self.client.log_batch(
            self.run_id,
            params=[Param(k, str(v)[:6_000]) for k, v in run["params"].items() if k not in have.params],
            tags=[RunTag(k, v) for k, v in tags.items() if have.tags.get(k) != v],
        )
        self._tags, self._told = tags, dict(have.tags)
        settle(self.client, self._experiment, tags)
        self._folder, self._infinite = folder, list[Point]()
        self._apart = run_folder.printed_points(run) + run_folder.further_points(folder / RECORD, run["run"])
        self._tails = [Tail(folder / name) for name in JOURNALS]
        self._steps: dict[str, set[int]] = {}  # steps read so far, by kind of line
        self._stored = {  # what MLflow had before: key -> step -> time
            key: {metric.step: metric.timestamp for metric in self.client.get_metric_history(self.run_id, key)}
            for key in have.metrics
        }
        self.latest = 0  # the latest time in the journals, in milliseconds

    def _find(self, run: Mapping[str, Any], folder: Path) -> Any:
        """The run in MLflow, made if need be.

        If several processes made it at once, all use the one that sorts first: the others go to MLflow's bin.
        """
        identity = {"repro.runs.run": run["run"], "repro.execution": run["execution"]}
        mine = " AND ".join(f"tags.`{tag}` = '{value}'" for tag, value in identity.items())
        if not (found := self.client.search_runs([self._experiment], mine)):
            began = next((line["time"] for line in Tail(folder / JOURNALS[0]).lines()), time.time())
            name = f"{run['tags'].get('row', run['run'])}, seed {run['tags'].get('seed', '?')}"
            self.client.create_run(self._experiment, max(0, round(began * 1000)), identity, name)
            found = self.client.search_runs([self._experiment], mine)
        first, *others = sorted(found, key=lambda one: one.info.run_id)
        for other in others:
            self.client.delete_run(other.info.run_id)
        return first

    def catch_up(self) -> None:
        """Send what is new in the journals since the last call, a batch at a time."""
        from mlflow.entities import Metric

        check_in_place(self.uri)
        missing = self._missing()
        while batch := list(islice(missing, BATCH)):
            self.client.log_batch(self.run_id, [Metric(p.key, p.value, p.time, p.step) for p in batch])
        self._tag_infinite()

    def _tag_infinite(self) -> None:
        """Tag the run if it diverged, and with the infinite values that are left out of its curves."""
        found = {DIVERGED_TAG: "true"} if run_folder.has_diverged(self._folder) else {}
        found |= {INFINITE: run_folder.infinite_tag(self._infinite)} if self._infinite else {}
        for tag, value in found.items():
            if self._told.get(tag) != value:
                self.client.set_tag(self.run_id, tag, value)
        self._told |= found

    def _missing(self) -> Iterator[Point]:
        lines = (line for tail in self._tails for line in tail.lines())
        for point in chain(self._apart, (point for line in lines for point in self._first(line))):
            stored = self._stored.get(point.key, {}).get(point.step)
            if math.isinf(point.value):
                self._infinite.append(point)
            elif stored is None or (stored < point.time and point in self._apart):
                yield point
            elif stored != point.time and point not in self._apart:
                raise ValueError(
                    f"run {self.run_id} in MLflow was written from another copy of this journal: its {point.key} at "
                    f"step {point.step} was measured at another time. Delete it in MLflow to show this one"
                )
        self._apart = []

    def _first(self, line: Line) -> list[Point]:
        """The points of a line, none if a line of its kind and step came before."""
        steps = self._steps.setdefault(line["kind"], set())
        self.latest = max(self.latest, round(line["time"] * 1000))
        if line["step"] in steps:
            return []
        steps.add(line["step"])
        return run_folder.measured(line)

    def become(self, status: str, ended: int | None = None) -> None:
        """Set the run's status: RUNNING, FINISHED, FAILED or KILLED."""
        if status == "RUNNING" != self.status:
            self.client.update_run(self.run_id, status=status)
        elif status != self.status:
            self.client.set_terminated(self.run_id, status, ended)
        else:
            return
        self.status = status
        settle(self.client, self._experiment, self._tags)


def sync(uri: str, folder: Path) -> str:
    """Bring MLflow in line with a run folder, whatever its state; returns MLflow's id of the run.

    Only what is missing is sent, so this may be killed and repeated at will. A run that has no record and is not
    being trained becomes KILLED, unless MLflow has it as FAILED: none stays RUNNING for ever.
    """
    with locked(folder, patience=0.0) as mine:
        if not mine:
            raise BlockingIOError(f"{folder} is being mirrored by another process, likely its own training.")
        remote = Remote(uri, folder)
        remote.catch_up()
        status = run_folder.outcome(folder)
        if (status, remote.status) != ("KILLED", "FAILED"):
            remote.become(status, ended=remote.latest or None)
    return remote.run_id


def sync_soon(tracker: Tracker, folder: Path, done: Callable[[], object] = lambda: None) -> None:
    """Like `sync`, but in a thread that is left behind if MLflow does not answer in time.

    A run that has ended keeps its status and its end, even if points came later. `done` is called when MLflow has all.
    """

    def work() -> None:
        try:
            sync(tracker.uri, folder)
            done()
        except Exception as error:  # whatever the tracker does, the run has its record
            tracker.fails(error)

    tracker.ask(work)


def finish_mirror(tracker: Tracker, folder: Path) -> None:
    """Send MLflow the end of a run whose process was killed after writing the record, before its mirror was done."""
    if lease.was_killed(folder) and not run_folder.is_training(folder):
        sync_soon(tracker, folder, done=partial(lease.let_go, folder))


def restore(uri: str, run_id: str, folder: Path) -> None:
    """The reverse of `sync`: make a run folder from the run that MLflow calls `run_id`."""
    if (folder / "run.json").exists():
        raise FileExistsError(f"{folder} holds a run already; name a new folder.")
    from mlflow.exceptions import MlflowException

    client = connect(uri)
    try:
        data = client.get_run(run_id).data
    except MlflowException as error:
        raise ValueError(f"MLflow at {hide(uri)} cannot read run {run_id}: {reason(error)}") from error
    if "repro.json" not in data.tags:
        raise ValueError(f"Run {run_id} at {hide(uri)} has no tag repro.json: it does not mirror a run folder.")
    journals: dict[str, dict[tuple[str, int], Line]] = {name: {} for name in JOURNALS}
    of_run = [key for key in data.metrics if "/" in key and key.partition("/")[0] not in DERIVED]
    points = [
        Point(key, m.step, m.value, m.timestamp) for key in of_run for m in client.get_metric_history(run_id, key)
    ]
    for point in [*points, *run_folder.infinite_points(data.tags.get(INFINITE, "[]"))]:
        kind, _, name = point.key.partition("/")
        frame = {"kind": kind, "step": point.step, "time": point.time / 1000, "attempt": 1}
        lines = journals[JOURNALS[kind == "system"]]
        lines.setdefault((kind, point.step), frame)[name] = plain_values(point.value)
    for file, lines in journals.items():
        if lines:
            ordered = sorted(lines.values(), key=lambda line: (line["kind"] == FINAL, line["step"]))
            atomic.write_bytes(folder / file, b"".join(map(encoded, ordered)))
    atomic.write_text(folder / "run.json", data.tags["repro.json"])  # last: it makes the folder a run


class Mirror:
    """Sends a run folder to MLflow while training writes it, in a thread that training never waits for.

    If the tracker fails, the thread tries again after a pause, up to `LONGEST_PAUSE`. It also records what the
    machine does.
    """

    def __init__(self, tracker: Tracker, folder: Path, *, every: float = 3.0, sample: float = 5.0) -> None:
        self.tracker, self.folder = tracker, folder
        self.run_id: str | None = None  # MLflow's, as soon as it is known
        self._every, self._sample = every, sample
        self._status = "KILLED"
        self._complete = False
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._follow, name=f"mirror of {folder.name}", daemon=True)
        self._thread.start()

    def close(self, status: str = "FINISHED", timeout: float | None = None) -> bool:
        """Send the rest and the status: FINISHED, FAILED or KILLED. Tells, and returns False, if it fails or is late.

        Save what does not need MLflow before this call.
        """
        self._status = status
        self._closing.set()
        return self.tracker.wait(self._thread, timeout) and self._complete

    def _follow(self) -> None:
        try:
            with locked(self.folder), Journal(self.folder / JOURNALS[1]) as machine:
                self._carry(machine)
        except Exception as error:
            self.tracker.fails(error)

    def _carry(self, machine: Journal) -> None:
        remote, sample_at, n_failures, try_at = None, time.monotonic() + self._sample, 0, 0.0
        n_samples = sum(1 for _ in Tail(self.folder / JOURNALS[1]).lines())
        measure_system()  # the first reading of the processors' use means nothing
        while True:
            closing = self._closing.is_set()  # asked before the files are read, so that the last lines are sent
            try:
                if time.monotonic() >= sample_at:
                    machine.append("system", n_samples, **measure_system())
                    n_samples, sample_at = n_samples + 1, time.monotonic() + self._sample
                if remote is None and (closing or time.monotonic() >= try_at):
                    remote = Remote(self.tracker.uri, self.folder)
                    self.run_id = remote.run_id
                    remote.become("RUNNING")
                if remote:
                    remote.catch_up()
                    n_failures = 0
                    self.tracker.answers()
                    if closing:
                        remote.become(self._status)
                        self._complete = True
                        self.tracker.has_all()
            except Exception as error:  # whatever the tracker does, training goes on
                remote, n_failures = None, n_failures + 1
                try_at = time.monotonic() + min(LONGEST_PAUSE, self._every * 2 ** min(n_failures, 10))
                self.tracker.fails(error)
            if closing:
                return
            self._closing.wait(self._every)


# What the machine does while it trains


def measure_system() -> dict[str, float]:
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
