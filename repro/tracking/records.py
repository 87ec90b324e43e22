"""Published records as runs of MLflow, to be looked at beside your own runs.

A record has the scores, the settings and points of each curve, so its run in MLflow has those. It is tagged
`published`, and views show either your own runs or the published ones.
"""

import hashlib
from datetime import datetime
from pathlib import Path
from typing import Any

from repro.model.config import written
from repro.results.comparable import code_name
from repro.results.record import Record, load, read_bytes
from repro.tracking.client import MOST, connect, experiment_id
from repro.tracking.mirror import CELL, settle_cell, table_names
from repro.tracking.run_folder import DIVERGED_TAG, PRINTED_SCORES, UNKNOWN, Point, further_points, printed_points

IDENTITY = ("repro.runs.run", "repro.execution")  # tags by which a run is found again
CURVE_POINTS = 25  # at most, of a curve: MLflow takes as long for a point as for a score


class PublishedRuns:
    """The published records of a scale in MLflow, which is asked once which it has; `settle` chooses which count."""

    def __init__(self, uri: str, scale: str) -> None:
        self.client, self.scale = connect(uri), scale
        self._experiment = experiment_id(self.client, uri, scale)
        self._known = {_identity(run): run for run in self._runs()}

    def bring(self, file: Path) -> dict[str, str]:
        """Put a record into MLflow, or what MLflow lacks of it; returns the tags of its run."""
        record = load(file)
        if record.scale != self.scale:
            raise ValueError(
                f"of scale {record.scale}: its folder is called {self.scale}. Name the folder as the scale."
            )
        from mlflow.entities import Metric, Param

        tags, began = tags_of(record), round(datetime.fromisoformat(record.stamp["started"]).timestamp() * 1000)
        identity = record.run, hashlib.sha256(read_bytes(file)).hexdigest()[:32]
        run = self._known.get(identity)
        if run is None:
            tagged = {**dict(zip(IDENTITY, identity, strict=True)), **tags, "current": "true"}
            name = f"{record.row}, seed {record.seed} (published)"
            run = self.client.create_run(self._experiment, began, tagged, name)
        if run.info.status == "RUNNING":  # before it has numbers: MLflow reads all that a run has when it ends
            took = record.cost["train_seconds"] + record.cost["decode_seconds"]
            status = "FINISHED" if record.status == "finished" else "FAILED"
            self.client.set_terminated(run.info.run_id, status, began + round(took * 1000))
        points = [one._replace(time=one.time or began) for one in points_of(record)] + further_points(file, record.run)
        params = {**written(record.hyper), **record.settings}
        self.client.log_batch(
            run.info.run_id,
            metrics=[Metric(p.key, p.value, p.time, p.step) for p in points if p.key not in run.data.metrics],
            params=[Param(k, str(v)[:6_000]) for k, v in params.items() if k not in run.data.params],
        )
        return tags

    def settle(self) -> None:
        """Choose the run that counts for each seed of a row."""
        cells: dict[tuple[str, ...], list[Any]] = {}
        for run in self._runs():
            cells.setdefault(tuple(run.data.tags.get(name, UNKNOWN) for name in CELL), []).append(run)
        for runs in cells.values():
            settle_cell(self.client, runs)

    def _runs(self) -> list[Any]:
        return list(self.client.search_runs([self._experiment], "tags.published = 'true'", max_results=MOST))


def _identity(run: Any) -> tuple[str, ...]:
    """Which record it is, and the hash of its file."""
    return tuple(run.data.tags.get(name, "") for name in IDENTITY)


def tags_of(record: Record) -> dict[str, str]:
    """The tags of the record's run, named like those of your own runs."""
    return {
        "title": record.table,
        "table": record.table,
        "tables": table_names(record.table),
        "row": record.row,
        "seed": str(record.seed),
        "scale": record.scale,
        "corpus": record.corpus["name"],
        "pair": record.pair,
        "text": record.corpus["sha256"][:8],
        "devices": str(record.settings.get("devices", UNKNOWN)),
        "precision": str(record.settings.get("precision", UNKNOWN)),
        "threads": str(record.stamp["n_threads"]),
        "code": code_name(record.stamp["fingerprint"])[:8],
        "commit": str(record.stamp["commit"]),
        "published": "true",
        **({"system": record.system} if record.system else {}),
        **({DIVERGED_TAG: "true"} if record.status == "diverged" else {}),
    }


def points_of(record: Record) -> list[Point]:
    """The numbers of a record for MLflow, named as in a run's own journal."""
    curves: dict[str, Any] = dict(record.curves)
    scores: dict[str, Any] = dict(record.scores)
    thin = {kind: slice(None, None, -max(1, -(-len(curve["step"]) // CURVE_POINTS))) for kind, curve in curves.items()}
    return [
        *printed_points({"paper": {name: record.paper.get(name) for name in PRINTED_SCORES}, "order": record.position}),
        *(
            Point(f"{kind}/nll", step, nll, 0)
            for kind, curve in curves.items()
            for step, nll in zip(curve["step"][thin[kind]], curve["nll"][thin[kind]], strict=True)  # the last is in
        ),
        *(
            Point(f"final/{split}_{name}", 0, value, 0)
            for split, score in scores.items()
            for name, value in score.items()
            if isinstance(value, float)
        ),
    ]
