"""The mirror of a run in MLflow.

Training never waits for the tracker: it writes the journal, and a thread follows that file and sends it to
MLflow in batches. While the tracker is away, only that thread waits. `sync` sends what MLflow lacks of a journal.
"""

import math
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cache
from itertools import chain, islice
from pathlib import Path
from typing import Any

from repro.storage.journal import DERIVED, Journal, Tail
from repro.storage.lock import locked
from repro.tracking import run_folder
from repro.tracking.client import MOST, Tracker, connect, experiment_id
from repro.tracking.run_folder import APART, DIVERGED_TAG, JOURNALS, RECORD, UNKNOWN, Point

BATCH = 1_000  # metrics in one call; MLflow takes no more
CELL = ("table", "row", "published", *APART)  # tags: runs that differ in one are never compared as seeds of a row
PAUSE = 30.0  # seconds until a tracker in trouble is tried again


def table_names(*texts: str) -> str:
    """Table names as one tag, with spaces around each: a filter on table3_A must not find table3_AB."""
    return f" {' '.join(sorted({word for text in texts for word in text.split()}))} "


def settle(client: Any, experiment: str, tags: Mapping[str, str]) -> None:
    """Choose the run that counts for each seed of a row, by the tag `current`: views show only those.

    It is the newest run that has finished, or the newest if none has. Only runs of the same deciding code as the newest
    of the row count: a mean over two programs means nothing.
    """
    cell = {name: tags.get(name, UNKNOWN) for name in CELL}
    found = client.search_runs([experiment], f"tags.table = '{tags.get('table', UNKNOWN)}'", max_results=MOST)
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
        self.uri, self.client, self._folder = uri, connect(uri), folder
        from mlflow.entities import Param, RunTag  # after `connect`, which keeps MLflow from reporting home

        run = run_folder.describe(folder)
        tags: dict[str, str] = run["tags"]
        self._experiment = experiment_id(self.client, self.uri, tags.get("scale", "none"))
        found = self._find(run)
        self.run_id: str = found.info.run_id
        self.status: str = found.info.status
        have = found.data
        tags["tables"] = table_names(have.tags.get("tables", ""), tags.get("tables", ""), tags.get("table", ""))
        tags["repro.folder"] = str(folder)
        self.client.log_batch(
            self.run_id,
            params=[Param(k, str(v)[:6_000]) for k, v in run["params"].items() if k not in have.params],
            tags=[RunTag(k, v) for k, v in tags.items() if have.tags.get(k) != v],
        )
        self._tags, self._diverged = tags, DIVERGED_TAG in have.tags
        settle(self.client, self._experiment, tags)
        self._apart = run_folder.printed_points(run) + run_folder.further_points(folder / RECORD, run["run"])
        self._tails = [Tail(folder / name) for name in JOURNALS]
        self._stored = {  # what MLflow has: key -> step -> time
            key: {metric.step: metric.timestamp for metric in self.client.get_metric_history(self.run_id, key)}
            for key in have.metrics
        }
        self.latest = 0  # the latest time in the journals, in milliseconds

    def _find(self, run: Mapping[str, Any]) -> Any:
        """The run in MLflow, made if need be."""
        identity = {"repro.runs.run": run["run"], "repro.execution": run["execution"]}
        mine = " AND ".join(f"tags.`{tag}` = '{value}'" for tag, value in identity.items())
        if found := self.client.search_runs([self._experiment], mine):
            return found[0]
        began = next((line["time"] for line in Tail(self._folder / JOURNALS[0]).lines()), time.time())
        name = f"{run['tags'].get('row', run['run'])}, seed {run['tags'].get('seed', '?')}"
        return self.client.create_run(self._experiment, max(0, round(began * 1000)), identity, name)

    def catch_up(self) -> None:
        """Send what is new in the journals since the last call, a batch at a time."""
        from mlflow.entities import Metric

        missing = self._missing()
        while batch := list(islice(missing, BATCH)):
            self.client.log_batch(self.run_id, [Metric(p.key, p.value, p.time, p.step) for p in batch])
        if not self._diverged and run_folder.status(self._folder) == "diverged":
            self.client.set_tag(self.run_id, DIVERGED_TAG, "true")
            self._diverged = True

    def _missing(self) -> Iterator[Point]:
        of_lines = (p for tail in self._tails for line in tail.lines() for p in run_folder.measured(line))
        for point in chain(self._apart, of_lines):
            stored = self._stored.setdefault(point.key, {})
            is_measured = point.key.partition("/")[0] not in DERIVED
            if is_measured:
                self.latest = max(self.latest, point.time)
            if point.step in stored and (is_measured or stored[point.step] >= point.time):
                continue
            stored[point.step] = point.time
            if not math.isinf(point.value):  # MLflow would keep the largest float, and show 1.797e308
                yield point
        self._apart = []

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


class Mirror:
    """Sends a run folder to MLflow while training writes it, in a thread that training never waits for.

    If the tracker fails, the thread tries again after a `PAUSE`. It also records what the machine does.
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
        remote, sample_at, try_at = None, time.monotonic() + self._sample, 0.0
        measure_system()  # the first reading of the processors' use means nothing
        while True:
            closing = self._closing.is_set()  # asked before the files are read, so that the last lines are sent
            try:
                if time.monotonic() >= sample_at:
                    machine.append("system", len(machine), **measure_system())
                    sample_at = time.monotonic() + self._sample
                if remote is None and (closing or time.monotonic() >= try_at):
                    remote = Remote(self.tracker.uri, self.folder)
                    self.run_id = remote.run_id
                    remote.become("RUNNING")
                if remote:
                    remote.catch_up()
                    if closing:
                        remote.become(self._status)
                        self._complete = True
            except Exception as error:  # whatever the tracker does, training goes on
                remote, try_at = None, time.monotonic() + PAUSE
                self.tracker.fails(error)
            if closing:
                return
            self._closing.wait(self._every)


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
        import pynvml as nvml

        with suppress(Exception):  # a card, or a part of one, need not support each of them
            values[f"gpu_{i}_memory_usage_megabytes"] = nvml.nvmlDeviceGetMemoryInfo(gpu).used / 1e6
            values[f"gpu_{i}_utilization_percentage"] = nvml.nvmlDeviceGetUtilizationRates(gpu).gpu
            values[f"gpu_{i}_power_usage_watts"] = nvml.nvmlDeviceGetPowerUsage(gpu) / 1e3
    return values


@cache
def _gpus() -> list[Any]:
    """NVIDIA's GPUs, where there are any and the optional nvidia-ml-py is installed."""
    try:
        import pynvml

        pynvml.nvmlInit()
        return [pynvml.nvmlDeviceGetHandleByIndex(i) for i in range(pynvml.nvmlDeviceGetCount())]
    except Exception:  # the library's own errors where there is no driver
        return []
