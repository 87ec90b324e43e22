"""Saved views: the page on which MLflow shows a table as the paper prints it.

A view is what MLflow's page stores when one presses "Share": an experiment tag with the state of the page.
MLflow 3.17 does not document it, so a failure costs the view and nothing else.
"""

import base64
import json
import math
import re
import time
import urllib.parse
import zlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from repro.results.frame import difference_over_common, interval
from repro.results.record import BASE
from repro.tracking.client import MOST, Tracker, connect, experiment_id
from repro.tracking.mirror import table_names
from repro.tracking.run_folder import APART

PUBLISHED_TAG = "published"
VIEW = "mlflow.sharedViewState."
ROW_MEAN = "row_mean"  # the kind of numbers computed from several runs: a run's own numbers have other kinds
CHARTS = "charts-"  # before the key of a view, for its page with charts
CURVES = ("dev/nll", "train/nll")
CURVE = {"scaleType": "log", "xAxisKey": "step", "lineSmoothness": 0, "useGlobalLineSmoothing": False}
ROW = {  # number of a row -> the metric that it comes from; on dev where no name says test
    f"{ROW_MEAN}/ppl": "final/dev_ppl",
    "paper_ppl": "paper/ppl",
    f"{ROW_MEAN}/bleu": "final/dev_bleu",
    "paper_bleu": "paper/bleu",
    f"{ROW_MEAN}/f1": "final/dev_f1",
    f"{ROW_MEAN}/test_f1": "final/test_f1",  # the paper's is of test
    "paper_f1": "paper/f1",
}
DECIMALS = 2
HALF, LESS_BASE = "_ci", "_diff"  # half of the 95 % interval over seeds, as in the tables; minus the base's
# columns that stand last
OUT_OF_SIGHT = {f"{ROW_MEAN}/ppl{HALF}", *(f"paper_{name}{LESS_BASE}" for name in ("ppl", "bleu", "f1"))}
ABOUT_NUMBERS = (
    "final: a run's own scores. row_mean: the mean over the seeds of a row, on dev where no name says test; it stands "
    "at one run of the row. paper: as printed. _ci: half of the 95 % interval over seeds. _diff: difference from the "
    "base, over the seeds that both rows have."
)
QUALITIES = ("bleu", "f1")  # what a table is scored by: the first if no run has finished
LETTER, AROUND = 6.3, 20  # pixels of a heading: the columns that judge a row fit into 1,400, names in full
NARROWEST = 69  # pixels: a number of five characters, and the dots of the word behind it
COLUMNS = {  # of every view, in this order, before those of its score
    "attributes.`Run Name`": 196,
    "runDateAndNestInfo": 70,  # "Created", which cannot be left out
}
SYSTEM = {"tags.`system`": 330}


@dataclass(frozen=True, kw_only=True)
class View:
    """Which runs a page shows: those of a table at a scale, one for each seed, your own or the published.

    It is narrowed to one value of each tag in `APART`: a mean over two texts means nothing.
    """

    scale: str
    table: str
    title: str
    narrowed: tuple[tuple[str, str], ...] = ()  # tag, value
    published: bool = False

    @property
    def key(self) -> str:
        """Its name in links."""
        return "-".join([*[PUBLISHED_TAG] * self.published, self.table, *(value for _, value in self.narrowed)])

    @property
    def name(self) -> str:
        """Its name for people: an experiment may have several views of one table."""
        facts = ([PUBLISHED_TAG] if self.published else []) + [
            f"{name} {value}" if name in ("text", "devices", "threads") else value for name, value in self.narrowed
        ]
        return f"{self.title} ({', '.join(facts)})" if facts else self.title

    @property
    def filter(self) -> str:
        """The filter by which MLflow finds its runs."""
        narrowed = [f" AND tags.{tag} = '{value}'" for tag, value in self.narrowed]
        whose = f" AND tags.current = 'true' AND tags.published = '{str(self.published).lower()}'"
        return _of(self.table) + whose + "".join(narrowed)


def view_of(tags: Mapping[str, object], table: str, title: str) -> View:
    """The view of a table that shows the run with these tags."""
    return View(
        scale=str(tags.get("scale", "none")),
        table=table,
        title=title,
        narrowed=tuple((name, str(tags[name])) for name in APART),
        published=tags.get("published") == "true",
    )


def encode_view(name: str, state: Mapping[str, Any], time: int) -> str:
    """A view as MLflow stores it; `time` in milliseconds."""
    packed = base64.b64encode(zlib.compress(json.dumps(state).encode())).decode()
    return json.dumps({"name": name, "createdAt": time, "updatedAt": time, "state": f"deflate;{packed}"})


def is_of_table(view: str, table: str) -> bool:
    """Whether a view, as MLflow stores it, shows a table: keys cannot tell, as names of tables may have a "-"."""
    state = json.loads(zlib.decompress(base64.b64decode(json.loads(view)["state"].removeprefix("deflate;"))))
    return _of(table) in state["searchFilter"]


def _of(table: str) -> str:
    """The filter for the runs of a table, in MLflow's syntax."""
    return f"tags.tables LIKE '% {table} %'"


def view_path(experiment_id: str, key: str | None = None, *, charts: bool = False) -> str:
    """The part of MLflow's address that opens a view, on the page for training and not that for prompts."""
    share = f"&viewStateShareKey={urllib.parse.quote(CHARTS * charts + key, safe='')}" if key else ""
    mode = "&compareRunsMode=CHART" if charts else ""
    return f"/#/experiments/{experiment_id}/runs?workflowType=machine_learning{share}{mode}"


def view_state(
    where: str, rows: Collection[str], *, qualities: Sequence[str] = QUALITIES[:1], systems: bool = False
) -> dict[str, Any]:
    """The page of a table: runs grouped by row in the paper's order, the paper's numbers beside ours.

    `qualities` are the scores shown beside perplexity; `systems` adds the system's column, for tables where some are
    not the Transformer. Differences from the base are shown if there is a base.
    """
    of_rows = []
    for key, source in ROW.items():
        if re.split("[/_]", key)[-1] in ("ppl", *qualities):
            of_rows += [key, *([key + HALF] if _is_ours(source) else []), *([key + LESS_BASE] if BASE in rows else [])]
    of_rows.sort(key=lambda key: key in OUT_OF_SIGHT)
    of_seeds = [f"final/dev_{name}" for name in ("ppl", *qualities)]
    scores = {f"metrics.`{key}`": max(NARROWEST, AROUND + round(LETTER * len(key))) for key in (*of_rows, *of_seeds)}
    columns = {**COLUMNS, **scores, **(SYSTEM if systems else {})}
    return {
        "searchFilter": where,
        "orderByKey": "metrics.`paper/row`",
        "orderByAsc": True,
        "startTime": "ALL",
        "lifecycleFilter": "Active",
        "datasetsFilter": [],
        "modelVersionFilter": "All Runs",
        "selectedColumns": list(columns),
        "columnOrder": list(columns),
        "columnWidths": columns,
        "runsHiddenMode": "SHOW_ALL",
        "groupBy": {"aggregateFunction": "average", "groupByKeys": [{"mode": "tag", "groupByData": "row"}]},
        "groupsExpanded": {f"tag.row.{row}": True for row in rows},  # so that runs of two rows can be ticked
        "useGroupedValuesInCharts": True,
        "hideEmptyCharts": True,
        "autoRefreshEnabled": True,
    }


def charts_state(state: Mapping[str, Any], qualities: Sequence[str]) -> dict[str, Any]:
    """The page of a table with its charts: each score on dev, and both losses on a log scale, by row."""
    section = {"uuid": "first", "name": "BLEU and loss", "display": True, "isReordered": False, "deleted": False}
    kinds: dict[str, dict[str, Any]] = {f"final/dev_{name}": {"type": "BAR"} for name in qualities}
    kinds |= {name: {"type": "LINE", "selectedMetricKeys": [name], **CURVE} for name in CURVES}
    shown = {"metricSectionId": section["uuid"], "deleted": False, "isGenerated": False, "runsCountToCompare": 100}
    charts = [
        {**of, **shown, **dict.fromkeys(("uuid", "metricKey", "displayName"), name)} for name, of in kinds.items()
    ]
    # sections are sorted by name, and MLflow adds one for each other kind of number
    return {**state, "compareRunCharts": charts, "compareRunSections": [section]}


def save_views(uri: str, views: Collection[View]) -> None:
    """Save views, and bring the numbers of their rows up to date. To be called when runs were added."""
    client = connect(uri)
    for scale in sorted({view.scale for view in views}):
        of_scale = sorted((view for view in views if view.scale == scale), key=lambda view: view.key)
        experiment = experiment_id(client, uri, scale)
        of_base = f"tags.current = 'true' AND tags.table = '{BASE}'"  # the base row is in every table
        for run in client.search_runs([experiment], of_base, max_results=MOST):
            tables = table_names(had := run.data.tags["tables"], *(view.table for view in of_scale))
            if tables != had:
                client.set_tag(run.info.run_id, "tables", tables)
        for view in of_scale:
            _save(client, experiment, view, client.search_runs([experiment], view.filter, max_results=MOST))
        client.set_experiment_tag(experiment, "mlflow.note.content", _notes(client, experiment))


def install_views(tracker: Tracker, views: Collection[View]) -> None:
    """Save views if MLflow answers in time; tells if they were not saved."""
    tracker.ask(lambda: save_views(tracker.uri, views))


def _save(client: Any, experiment: str, view: View, runs: Iterable[Any]) -> None:
    rows: dict[str, list[Any]] = {}
    for run in runs:
        rows.setdefault(run.data.tags["row"], []).append(run)
    for of_row in rows.values():
        _log_row(client, of_row, rows.get(BASE, []))
    every = [run.data for of_row in rows.values() for run in of_row]
    systems, had = any("system" in of.tags for of in every), {key for of in every for key in of.metrics}
    qualities = [name for name in QUALITIES if f"final/dev_{name}" in had] or QUALITIES[:1]
    state, now = view_state(view.filter, rows, qualities=qualities, systems=systems), round(time.time() * 1000)
    charts = encode_view(f"{view.name}: charts", charts_state(state, qualities), now)
    client.set_experiment_tag(experiment, VIEW + CHARTS + view.key, charts)
    client.set_experiment_tag(experiment, VIEW + view.key, encode_view(view.name, state, now))


def _log_row(client: Any, runs: list[Any], base: list[Any]) -> None:
    """Log the numbers of a row to one of its runs, and update every other run that was given them earlier.

    The page shows the mean of a group with all its digits, 24.9 of three seeds as 24.899999999999995. A number that
    only one run of the group has is shown as it is. A number that no longer holds becomes NaN: MLflow deletes none.
    """
    from mlflow.entities import Metric

    runs = sorted(runs, key=lambda run: (not any(map(_is_of_row, run.data.metrics)), run.info.start_time))
    values = {key: round(value, DECIMALS) for key, value in _numbers(runs, base).items()}
    now = max(0, round(time.time() * 1000))  # MLflow takes no time before 1970
    for n, run in enumerate(runs):
        before = {key: value for key, value in run.data.metrics.items() if _is_of_row(key)}
        if n == 0 or before:
            gone = {key: math.nan for key, value in before.items() if key not in values and not math.isnan(value)}
            changed = {key: value for key, value in values.items() if before.get(key) != value} | gone
            client.log_batch(run.info.run_id, [Metric(key, value, now, 0) for key, value in changed.items()])


def _is_of_row(key: str) -> bool:
    """Whether a metric belongs to a row, and not to a run."""
    return key.removesuffix(HALF).removesuffix(LESS_BASE) in ROW


def _numbers(runs: list[Any], base: list[Any]) -> dict[str, float]:
    """For each score of a row: its mean over seeds, half of its interval, and its difference from the base."""
    values = {}
    for key, source in ROW.items():
        ours, theirs = (
            {int(run.data.tags["seed"]): run.data.metrics[source] for run in of if source in run.data.metrics}
            for of in (runs, base)
        )
        if not ours:
            continue
        values[key], half = interval([*ours.values()])
        if half is not None and _is_ours(source):
            values[key + HALF] = half
        if runs[0].data.tags.get("row") != BASE:
            # the paper's numbers of two rows differ by the same at every seed
            printed = next(iter(ours.values())) - next(iter(theirs.values())) if theirs else None
            less = difference_over_common(ours, theirs) if _is_ours(source) else printed
            values |= {} if less is None else {key + LESS_BASE: less}
    return values


def _is_ours(source: str) -> bool:
    """Whether a number comes from our runs, and not from the paper."""
    return source.startswith("final/")


def _notes(client: Any, experiment: str) -> str:
    """The text above the runs: links to the views first, as only the first line is always in sight."""
    tags = sorted(client.get_experiment(experiment).tags.items())
    names = {key.removeprefix(VIEW): json.loads(value)["name"] for key, value in tags if key.startswith(VIEW)}
    links = [
        f"[{name}]({view_path(experiment, key)[1:]}) ([charts]({view_path(experiment, key, charts=True)[1:]}))"
        for key, name in names.items()
        if not key.startswith(CHARTS)
    ]
    return "\n\n".join([" · ".join(links), ABOUT_NUMBERS])
