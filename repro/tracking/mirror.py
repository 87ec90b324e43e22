"""The mirror of a run in MLflow.

Training never waits for the tracker: it writes the journal, and a thread follows that file and carries it to
MLflow in batches; while the tracker is away the journal waits. Either can be rebuilt from the other: `mirror`
and `restore`.
"""

import json
import math
import sys
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from repro import durable
from repro.journal import DERIVED, FINAL, Journal, Line, Tail, locked, once, plain, read
from repro.tracking.folder import JOURNALS, Point, describe, measured, outcome, points
from repro.tracking.store import connect, experiment_id, reason, repair, say, sqlite_path
from repro.tracking.system import measure

BATCH = 1_000  # metrics in one call; MLflow takes no more


def table_names(*texts: str) -> str:
    """Table names as one tag, with spaces around each: a filter on table3_A must not find table3_AB."""
    return f" {' '.join(sorted({word for text in texts for word in text.split()}))} "


class Remote:
    """One run in MLflow: found again by its tag, and given only what it lacks."""

    def __init__(self, uri: str, folder: Path) -> None:
        from mlflow.entities import Param, RunTag

        run = describe(folder)
        tags, text = run["tags"], (folder / "run.json").read_bytes().decode()
        self.client = client = connect(uri)
        self.database = sqlite_path(uri) if uri.startswith("sqlite:") else None
        experiment = experiment_id(client, uri, tags.get("scale", "none"))
        found = client.search_runs([experiment], f"tags.`repro.run` = '{run['run']}'", max_results=1)
        if not found:
            began = next((line["time"] for line in read(folder / JOURNALS[0])), time.time())
            name = f"{tags.get('row', run['run'])}, seed {tags.get('seed', '?')}"
            found = [client.create_run(experiment, round(began * 1000), {"repro.run": run["run"]}, name)]
        self.run_id: str = found[0].info.run_id
        self.status: str = found[0].info.status
        have = found[0].data
        tags["tables"] = table_names(have.tags.get("tables", ""), tags.get("tables", ""), tags.get("table", ""))
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
    with locked(folder, patience=0.0) as mine:
        if not mine:
            raise BlockingIOError(f"{folder} is being mirrored by another process, likely its own training.")
        remote = Remote(uri, folder)
        remote.push(everything)
        remote.become(outcome(folder), ended=max((point.time for point in everything), default=0) or None)
    return remote.run_id


def restore(uri: str, run_id: str, folder: Path) -> None:
    """The other direction: make a run folder from the run that MLflow calls `run_id`."""
    if (folder / "run.json").exists():
        raise FileExistsError(f"{folder} holds a run already; name a new folder.")
    client = connect(uri)
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
            lines.setdefault((kind, metric.step), frame)[name] = plain(value)
    for file, lines in journals.items():
        if lines:
            ordered = sorted(lines.values(), key=lambda line: (line["kind"] == FINAL, line["step"]))
            text = "".join(f"{json.dumps(line, allow_nan=False)}\n" for line in ordered)
            durable.write_text(folder / file, text)
    durable.write_text(folder / "run.json", data.tags["repro.json"])  # last: it makes the folder a run


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
        tell: Callable[[str], None] = say,
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
                f"MLflow at {self.uri} is behind: {reason(error)}. Nothing is lost, {self.folder} has it "
                f"all; to catch up type: {repair(self.uri, self.folder)}"
            )

    def _follow(self) -> None:
        try:
            with locked(self.folder, patience=60.0), Journal(self.folder / JOURNALS[1]) as machine:
                self._carry(machine)
        except Exception as error:
            self._complain(error)

    def _carry(self, machine: Journal) -> None:
        remote, tails, due = None, [], time.monotonic() + self._sample
        n_samples = len(read(self.folder / JOURNALS[1]))
        measure()  # the first look at the processors tells nothing
        while True:
            closing = self._closing.is_set()  # asked before the files are read: nothing is left behind
            try:
                if time.monotonic() >= due:
                    machine.append("system", n_samples, **measure())
                    n_samples, due = n_samples + 1, time.monotonic() + self._sample
                if remote is None:
                    remote = Remote(self.uri, self.folder)
                    self.run_id = remote.run_id
                    remote.become("RUNNING")
                    tails = [Tail(self.folder / name) for name in JOURNALS]
                    remote.push(points(self.folder))
                remote.push(measured(once(line for tail in tails for line in tail.lines())))
                if closing:
                    remote.become(self._status)
                    self._complete = True
            except Exception as error:  # whatever the tracker does, training goes on
                remote = None
                self._complain(error)
            if closing:
                return
            self._closing.wait(self._every)
