"""The journal survives every kind of end, and MLflow shows exactly what it holds."""

import errno
import json
import math
import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from repro import tracking
from repro.durable import DiskError
from repro.tracking import Journal, Mirror, Point, mirror, points, read

ROOT = Path(__file__).parent.parent


def values(line: dict[str, Any]) -> dict[str, float]:
    return {name: value for name, value in line.items() if name not in tracking.FRAME}


def strict(text: bytes) -> Any:
    """JSON as the standard has it: NaN and Infinity are refused."""

    def refuse(name: str) -> float:
        raise AssertionError(f"{name} is not JSON")

    return json.loads(text, parse_constant=refuse)


def python(code: str, *arguments: object, **more: Any) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-W", "error", "-c", code, *map(str, arguments)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **more)


# ---------------------------------------------------------------------------------------------- the journal


def test_a_line_is_in_the_file_when_append_returns(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "run" / "journal.jsonl")
    journal.append("train", 50, loss=5.5, nll=5.25)
    (line,) = read(tmp_path / "run" / "journal.jsonl")
    assert (line["kind"], line["step"], line["attempt"]) == ("train", 50, 1)
    assert values(line) == {"loss": 5.5, "nll": 5.25}
    journal.close()
    journal.close()


def test_a_torn_line_is_cut_and_earlier_lines_are_kept(tmp_path: Path) -> None:
    """K5: the file ends at any byte of its last two lines."""
    path = tmp_path / "journal.jsonl"
    with Journal(path) as journal:
        for step in (10, 20, 30):
            journal.append("dev", step, nll=step / 7)
    whole = path.read_bytes()
    first, second = (i + 1 for i, byte in enumerate(whole[:-1]) if byte == ord("\n"))
    for end in range(first, len(whole) + 1):
        path.write_bytes(whole[:end])
        kept = [10, 20, 30][: 1 + (end >= second) + (end == len(whole))]
        assert [line["step"] for line in read(path)] == kept
        with Journal(path) as journal:
            assert journal.attempt == 2
            journal.append("dev", 40, nll=4.0)
        assert [(line["step"], line["attempt"]) for line in read(path)] == [*((s, 1) for s in kept), (40, 2)]


def test_steps_repeated_after_a_crash_appear_once_and_the_last_attempt_wins(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    for attempt, steps in ((1, (10, 20, 30)), (2, (20, 30, 40)), (3, (30, 40, 50))):
        with Journal(path) as journal:
            assert journal.attempt == attempt
            for step in steps:
                journal.append("train", step, loss=step + attempt / 10)
                journal.append("dev", step, nll=attempt)
    train = [line for line in read(path) if line["kind"] == "train"]
    assert [(line["step"], line["loss"]) for line in train] == [
        (10, 10.1), (20, 20.2), (30, 30.3), (40, 40.3), (50, 50.3),
    ]  # fmt: skip
    assert [line["nll"] for line in read(path) if line["kind"] == "dev"] == [1, 2, 3, 3, 3]


@given(st.dictionaries(st.from_regex(r"[a-z][a-z0-9_]{0,9}", fullmatch=True), st.floats(), max_size=5))
def test_any_float_is_strict_json_and_reads_back(tmp_path_factory: pytest.TempPathFactory, drawn: Any) -> None:
    wanted = {name: value for name, value in drawn.items() if name not in tracking.FRAME + tracking.DERIVED}
    path = tmp_path_factory.mktemp("any") / "journal.jsonl"
    with Journal(path) as journal:
        journal.append("train", 1, **wanted)
    strict(path.read_bytes())
    (line,) = read(path)
    assert {k: repr(v) for k, v in values(line).items()} == {k: repr(v) for k, v in wanted.items()}


@pytest.mark.parametrize("name", ["a b", "", "ä", "a/b", "time", "attempt", "paper", "row"])
def test_a_name_that_mlflow_or_the_journal_needs_otherwise_is_refused(tmp_path: Path, name: str) -> None:
    with Journal(tmp_path / "journal.jsonl") as journal:
        with pytest.raises(ValueError, match="cannot name a metric"):
            journal.append("train", 1, **{name: 1.0})
        with pytest.raises(ValueError, match="cannot name a metric"):
            journal.append(name, 1, loss=1.0)
    assert read(tmp_path / "journal.jsonl") == []


def test_a_full_disk_leaves_no_half_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Journal(tmp_path / "journal.jsonl") as journal:
        journal.append("train", 1, loss=1.0)
        write, room = os.write, [9]
        with monkeypatch.context() as patch:

            def until_full(file: int, data: bytes) -> int:
                if not room:
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                return write(file, data[: room.pop()])

            patch.setattr(os, "write", until_full)
            with pytest.raises(DiskError, match="journal.jsonl cannot be written to: No space left"):
                journal.append("train", 2, loss=2.0)
        journal.append("train", 3, loss=3.0)
    assert [line["step"] for line in read(tmp_path / "journal.jsonl")] == [1, 3]


def test_a_journal_has_one_writer(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    with Journal(path), pytest.raises(BlockingIOError, match="same run is training"):
        Journal(path, patience=0.1)
    with Journal(path, patience=0.0):
        pass


def test_a_changed_line_is_named(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    with Journal(path) as journal:
        journal.append("train", 1, loss=1.0)
    for wrong in (b"oops", b"[]", b"{}", b"\0\0", b'{"kind":"a","step":1,"time":1,"attempt":1,"x":[]}'):
        path.write_bytes(path.read_bytes().split(b"\n")[0] + b"\n" + wrong + b"\n")
        with pytest.raises(ValueError, match=r"journal\.jsonl, line 2: expected"):
            read(path)


def test_importing_brings_no_heavy_library() -> None:
    process = python("import sys, repro.tracking, repro.ui; print({'mlflow', 'torch', 'pandas'} & {*sys.modules})")
    assert process.communicate()[0] == b"set()\n"


# -------------------------------------------------------------------------------------------------- MLflow


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new database (2 to 6 s), made by two processes at once: without a lock one of them dies."""
    path = tmp_path_factory.mktemp("mlflow") / "new" / "mlflow.db"
    code = "import sys; from repro import tracking; tracking._client(sys.argv[1])"
    for process in [python(code, f"sqlite:///{path}") for _ in range(2)]:
        said, _ = process.communicate()
        assert (process.returncode, said.decode()) == (0, "")
    return path


@pytest.fixture(scope="module")
def new_store(template: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[], str]:
    def make() -> str:
        path = tmp_path_factory.mktemp("store") / "mlflow.db"
        shutil.copy(template, path)
        return f"sqlite:///{path}"

    return make


@pytest.fixture(scope="module")
def store(new_store: Callable[[], str]) -> str:
    return new_store()


@pytest.fixture
def folder(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """A run folder with curves, a crash, a NaN and infinities."""
    run = f"{zlib.crc32(request.node.name.encode()):016x}"
    folder = tmp_path / "runs" / run
    describe(folder, run)
    with Journal(folder / "journal.jsonl") as journal:
        for step in range(1, 41):
            journal.append("train", step, loss=10 / step, lr=step / 1e6, tokens_per_second=20_000.5)
        journal.append("train", 41, loss=math.nan, lr=math.inf, tokens_per_second=-math.inf)
    with Journal(folder / "journal.jsonl") as journal:
        for step in (40, 41, 42):
            journal.append("train", step, loss=step / 3, lr=step / 1e6, tokens_per_second=1.25)
        journal.append("dev", 42, nll=math.nan, ppl=math.inf)
        journal.append("final", 0, dev_ppl=3.1415926535, dev_bleu=57.25)
    with Journal(folder / "system.jsonl") as journal:
        journal.append("system", 0, cpu_utilization_percentage=50.0)
    return folder


def describe(folder: Path, run: str, **changes: Any) -> None:
    tags = {
        "table": "table3_A",
        "row": "h=1",
        "seed": 1,
        "scale": "smoke",
        "corpus": "grammar",
        "pair": "en-de",
    }
    order = changes.pop("order", 1)
    paper = changes.pop("paper", {"ppl": 5.29, "bleu": 24.9})
    tracking.write_run(folder, run, tags=tags | changes, params={"n_heads": 1, "d_k": 512}, paper=paper, order=order)


def stored(uri: str, run_id: str) -> list[Point]:
    """All that MLflow holds of a run, duplicates too."""
    client = tracking._client(uri)
    keys = client.get_run(run_id).data.metrics
    history = [metric for key in keys for metric in client.get_metric_history(run_id, key)]
    return sorted(Point(metric.key, metric.step, metric.value, metric.timestamp) for metric in history)


def same(found: list[Point], wanted: list[Point]) -> bool:
    """Equal with NaN = NaN, and infinity = the largest float, as which MLflow keeps it."""
    largest = sys.float_info.max
    ready = [
        [(p.key, p.step, "nan" if math.isnan(p.value) else max(-largest, min(largest, p.value)), p.time) for p in side]
        for side in (sorted(found), sorted(wanted))
    ]
    return ready[0] == ready[1]


def run_of(uri: str, run_id: str) -> Any:
    return tracking._client(uri).get_run(run_id)


def test_mlflow_shows_exactly_the_folder_and_twice_is_once(store: str, folder: Path) -> None:
    run_id = mirror(store, folder)
    assert same(stored(store, run_id), points(folder))
    run = run_of(store, run_id)
    assert run.info.run_name == "h=1, seed 1"
    assert run.info.status == "KILLED"  # no record, and nobody writes the journal
    assert run.data.params == {"n_heads": "1", "d_k": "512"}
    assert {tag: run.data.tags[tag] for tag in ("table", "row", "seed", "tables")} == {
        "table": "table3_A", "row": "h=1", "seed": "1", "tables": " table3_A ",
    }  # fmt: skip
    assert [p[:3] for p in stored(store, run_id) if p.key.startswith(("paper/", "final/"))] == [
        ("final/dev_bleu", 0, 57.25), ("final/dev_ppl", 0, 3.1415926535),
        ("paper/bleu", 0, 24.9), ("paper/ppl", 0, 5.29), ("paper/row", 0, 1),
    ]  # fmt: skip

    (folder / "record.json").write_bytes(b"{}")
    describe(folder, folder.name)
    assert mirror(store, folder) == run_id
    assert same(stored(store, run_id), points(folder))
    assert run_of(store, run_id).info.status == "FINISHED"


def test_a_repeated_step_keeps_the_value_that_was_shown(store: str, folder: Path) -> None:
    run_id = mirror(store, folder)
    before = stored(store, run_id)
    with Journal(folder / "journal.jsonl") as journal:
        journal.append("train", 42, loss=14.0, lr=42e-6, tokens_per_second=9.0)
        journal.append("train", 43, loss=13.0)
    assert mirror(store, folder) == run_id
    after = stored(store, run_id)
    assert [point for point in after if point not in before and point.value == point.value] == [
        next(point for point in points(folder) if point.step == 43)
    ]


def test_killed_half_way_and_repeated_it_is_exactly_the_journal(store: str, folder: Path) -> None:
    """K6: kill -9 while it writes one metric after the other."""
    with Journal(folder / "journal.jsonl") as journal:
        for step in range(100, 700):
            journal.append("train", step, loss=1 / step, lr=1.0, tokens_per_second=2.0)
    code = (
        "import sys; from pathlib import Path; from repro import tracking; tracking.BATCH = 1;"
        "tracking.mirror(sys.argv[1], Path(sys.argv[2]))"
    )
    process = python(code, store, folder)
    count = "SELECT count(*) FROM metrics JOIN tags USING (run_uuid) WHERE tags.key = 'repro.run' AND tags.value = ?"
    with closing(sqlite3.connect(tracking.sqlite_path(store))) as database:
        while database.execute(count, (folder.name,)).fetchone()[0] < 20:
            assert process.poll() is None, process.communicate()
            time.sleep(0.002)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    found = tracking._client(store).search_runs(
        [tracking._experiment(tracking._client(store), store, "smoke")], f"tags.`repro.run` = '{folder.name}'"
    )
    assert 20 <= len(stored(store, found[0].info.run_id)) < len(points(folder))
    assert mirror(store, folder) == found[0].info.run_id
    assert same(stored(store, found[0].info.run_id), points(folder))


def test_a_lost_database_is_rebuilt_and_a_lost_folder_restored(
    store: str, new_store: Callable[[], str], folder: Path, tmp_path: Path
) -> None:
    mirror(store, folder)
    rebuilt = new_store()
    run_id = mirror(rebuilt, folder)
    assert same(stored(rebuilt, run_id), points(folder))

    copy = tmp_path / "restored"
    tracking.restore(rebuilt, run_id, copy)
    assert (copy / "run.json").read_bytes() == (folder / "run.json").read_bytes()
    exact = [[(p.key, p.step, repr(p.value), p.time) for p in sorted(points(f))] for f in (copy, folder)]
    assert exact[0] == exact[1]
    for name in tracking.JOURNALS:
        assert {line["kind"] for line in read(copy / name)} == {line["kind"] for line in read(folder / name)}
        strict(b"[%s]" % (copy / name).read_bytes().strip().replace(b"\n", b","))
    assert mirror(rebuilt, copy) == run_id
    assert same(stored(rebuilt, run_id), points(folder))
    with pytest.raises(FileExistsError, match="holds a run already"):
        tracking.restore(rebuilt, run_id, copy)


def test_a_database_deleted_in_use_is_told(new_store: Callable[[], str], folder: Path) -> None:
    uri = new_store()
    told: list[str] = []
    thread = Mirror(uri, folder, tell=told.append, every=0.02)
    wait_for(lambda: thread.run_id is not None)
    for path in tracking.sqlite_path(uri).parent.glob("mlflow.db*"):
        path.unlink()
    with Journal(folder / "journal.jsonl") as journal:
        journal.append("train", 50, loss=1.0)
    assert not thread.close()
    assert len(told) == 1
    assert "deleted" in told[0]


def wait_for(done: Callable[[], bool], seconds: float = 120.0) -> None:
    deadline = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_the_thread_carries_a_run_while_it_is_written(store: str, folder: Path) -> None:
    told: list[str] = []
    for outcome, first in (("KILLED", 100), ("FINISHED", 200)):  # stopped, then gone on with
        with Journal(folder / "journal.jsonl") as journal:
            thread = Mirror(store, folder, tell=told.append, every=0.02, sample=0.05)
            for step in range(first, first + 20):
                journal.append("train", step, loss=1 / step)
            wait_for(lambda thread=thread: thread.run_id is not None)  # type: ignore[misc]
            wait_for(lambda thread=thread: run_of(store, thread.run_id).info.status == "RUNNING")  # type: ignore[misc]
            with pytest.raises(BlockingIOError, match="being mirrored"):
                mirror(store, folder)
            wait_for(lambda: len(read(folder / "system.jsonl")) > 2)
            journal.append("train", first + 50, loss=0.5)  # the last line before the end
            assert thread.close(outcome)
        assert thread.run_id is not None
        assert run_of(store, thread.run_id).info.status == outcome
        assert same(stored(store, thread.run_id), points(folder))
    assert told == []
    assert {"system/cpu_utilization_percentage", "system/process_memory_megabytes"} <= {p.key for p in points(folder)}


def test_gpus_are_measured_where_there_are_any(monkeypatch: pytest.MonkeyPatch) -> None:
    library = SimpleNamespace(
        nvmlInit=lambda: None,
        nvmlDeviceGetCount=lambda: 2,
        nvmlDeviceGetHandleByIndex=lambda i: i,
        nvmlDeviceGetMemoryInfo=lambda gpu: SimpleNamespace(used=3e9 + gpu),
        nvmlDeviceGetUtilizationRates=lambda gpu: SimpleNamespace(gpu=90 + gpu),
        nvmlDeviceGetPowerUsage=lambda gpu: 350_000 + gpu,
    )
    monkeypatch.setitem(sys.modules, "pynvml", library)
    tracking._gpus.cache_clear()
    found = tracking._machine()
    assert (found["gpu_0_memory_usage_megabytes"], found["gpu_0_power_usage_watts"]) == (3000, 350)
    assert found["gpu_1_utilization_percentage"] == 91
    monkeypatch.setattr(library, "nvmlDeviceGetPowerUsage", lambda gpu: 1 / 0)  # not supported
    assert found.keys() - tracking._machine().keys() == {"gpu_0_power_usage_watts", "gpu_1_power_usage_watts"}

    monkeypatch.setattr(library, "nvmlInit", lambda: 1 / 0)  # no driver
    tracking._gpus.cache_clear()
    assert not any("gpu" in name for name in tracking._machine())
    tracking._gpus.cache_clear()


def test_what_was_missed_while_the_tracker_was_away_follows(
    store: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """V2: calls fail, some of them after the data has arrived."""
    client = tracking._client(store)
    n_calls, log_batch = 0, client.log_batch

    def unsteady(*arguments: Any, **more: Any) -> None:
        nonlocal n_calls
        n_calls += 1
        if n_calls % 3 == 1:
            raise ConnectionError("503")
        log_batch(*arguments, **more)
        if n_calls % 3 == 2:
            raise ConnectionError("reply lost")

    monkeypatch.setattr(client, "log_batch", unsteady)
    monkeypatch.setattr(tracking, "BATCH", 20)
    told: list[str] = []
    thread = Mirror(store, folder, tell=told.append, every=0.01)
    wait_for(lambda: n_calls > 30)
    monkeypatch.undo()
    assert thread.close()
    assert thread.run_id is not None
    assert same(stored(store, thread.run_id), points(folder))
    assert len(told) == 1
    assert f"python -m repro.tracking --tracking-uri {store} {folder}" in told[0]


@pytest.fixture(params=["closed port", "a server that never answers"])
def dead(request: pytest.FixtureRequest) -> Iterator[str]:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        if request.param != "closed port":
            server.listen()
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


def test_a_dead_tracker_costs_the_caller_nothing(dead: str, folder: Path) -> None:
    """V1, F7: there MLflow's own client blocks for four minutes, then stops the training."""
    told: list[str] = []
    began = time.monotonic()
    thread = Mirror(dead, folder, tell=told.append, every=0.05)
    here = threading.get_ident()
    with Journal(folder / "journal.jsonl") as journal:
        for step in range(100, 200):
            journal.append("train", step, loss=1.0)
    assert thread._thread.ident != here
    assert time.monotonic() - began < 5.0
    began = time.monotonic()
    assert not thread.close(timeout=0.5)
    assert time.monotonic() - began < 5.0
    assert len(told) == 1
    assert f"python -m repro.tracking --tracking-uri {dead} {folder}" in told[0]
    assert len([line for line in read(folder / "journal.jsonl") if line["step"] >= 100]) == 100


def test_appending_reaches_for_no_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "socket", None)
    monkeypatch.setattr(sqlite3, "connect", None)
    with Journal(tmp_path / "journal.jsonl") as journal:
        journal.append("train", 1, loss=1.0)
        journal.sync()


# ----------------------------------------------------------------------------------------------- the store


def test_a_store_that_can_never_work_is_refused_in_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_bytes(b"Dear reviewer, it is not a database")
    (tmp_path / "empty.db").touch()
    for uri, said in {
        f"sqlite:///{tmp_path}": "is a folder",
        f"sqlite:///{tmp_path}/letter.txt": "no SQLite database, it begins with b'Dear reviewer, i'",
        f"sqlite:///{tmp_path}/letter.txt/mlflow.db": "is a file",
        "sqlite:///": "expected a file",
        "sqlite://": "expected a file",
        "sqlite:///:memory:": "expected a file",
        "file:./mlruns": "file store is no longer kept up",
        "./mlruns": "file store",
        "postgresql://host/db": "behind an MLflow server",
        "databricks": "expected sqlite:///FILE",
        "": "expected sqlite:///FILE",
    }.items():
        with pytest.raises((ValueError, OSError)) as caught:
            tracking.check_store(uri)
        assert said in str(caught.value), uri
        assert "\n" not in str(caught.value)
    for fine in ("empty.db", "new.db", "new/folder/mlflow.db"):
        assert tracking.check_store(f"sqlite:///{tmp_path}/{fine}") is None
    assert not (tmp_path / "new").exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_folder_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(PermissionError, match="read-only"):
        tracking.check_store(f"sqlite:///{tmp_path}/mlflow.db")


def test_a_silent_server_is_a_warning_within_two_seconds(dead: str, monkeypatch: pytest.MonkeyPatch) -> None:
    began = time.monotonic()
    warning = tracking.check_store(dead)
    assert time.monotonic() - began < 5.0
    assert warning is not None
    assert f"python -m repro.tracking --tracking-uri {dead}" in warning


# ------------------------------------------------------------------------------------------- by hand, views


def test_by_hand_all_folders_are_mirrored_and_the_broken_one_named(
    store: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = folder.parent / "broken"
    broken.mkdir()
    (broken / "run.json").write_bytes(b"{}")
    monkeypatch.chdir(folder.parent.parent)
    assert tracking.main(["--tracking-uri", store]) == 1
    said = capsys.readouterr()
    assert f"runs/{folder.name}  h=1, seed 1: in {store}" in said.out
    assert "broken/run.json: expected run, tags, params and paper" in said.err
    assert tracking.main(["--tracking-uri", store, str(folder)]) == 0
    assert tracking.main(["--tracking-uri", "file:x", str(folder)]) == 1
    assert tracking.main(["--tracking-uri", store, "--restore", "none"]) == 1


def test_a_view_shows_a_table_as_the_paper_prints_it(new_store: Callable[[], str], tmp_path: Path) -> None:
    uri = new_store()
    for i, (table, row, seed, ppl, bleu) in enumerate(
        [
            ("base", "base", 1, 3.0, 60.0),
            ("table3_A", "h=1", 1, 4.004, 50.0),
            ("table3_A", "h=1", 2, 4.016, 51.5),
            ("table3_AB", "h=1", 1, 9.0, 9.0),
        ]
    ):
        folder = tmp_path / f"run{i}"
        paper = {"ppl": 4.92, "bleu": 25.8} if table == "base" else {"ppl": 5.29, "bleu": 24.9}
        describe(folder, folder.name, table=table, row=row, seed=seed, paper=paper, order=int(table != "base"))
        with Journal(folder / "journal.jsonl") as journal:
            journal.append("final", 0, dev_ppl=ppl, dev_bleu=bleu)
        mirror(uri, folder)
    told: list[str] = []
    for _ in range(2):  # the second time changes nothing
        path = tracking.install_view(
            uri, scale="smoke", table="table3_A", title="Table 3 (A): heads", note="One head loses 0.9 BLEU.",
            corpus="grammar", pair="en-de", tell=told.append,
        )  # fmt: skip
    assert told == []
    client = tracking._client(uri)
    experiment = client.get_experiment_by_name("Attention Is All You Need / smoke")
    assert path == (
        f"/#/experiments/{experiment.experiment_id}/runs?workflowType=machine_learning"
        "&viewStateShareKey=table3_A-grammar-en-de"
    )
    tag = experiment.tags["mlflow.sharedViewState.table3_A-grammar-en-de"]
    assert json.loads(tag)["name"] == "Table 3 (A): heads"
    state = tracking.decode_view(tag)
    assert state["searchFilter"] == (
        "tags.tables LIKE '% table3_A %' AND tags.corpus = 'grammar' AND tags.pair = 'en-de'"
    )
    assert state["groupBy"] == {
        "aggregateFunction": "average", "groupByKeys": [{"mode": "tag", "groupByData": "row"}],
    }  # fmt: skip
    assert (state["orderByKey"], state["orderByAsc"]) == ("metrics.`paper/row`", True)
    assert state["groupsExpanded"] == {"tag.row.base": False, "tag.row.h=1": False}
    assert [column for column in state["selectedColumns"] if "/" in column][:4] == [
        "metrics.`row/dev_ppl`", "metrics.`row/paper_ppl`", "metrics.`row/dev_bleu`", "metrics.`row/paper_bleu`",
    ]  # fmt: skip
    assert experiment.tags["mlflow.note.content"] == (
        f"[Table 3 (A): heads]({path[1:]})\n\n* [Table 3 (A): heads]({path[1:]}): One head loses 0.9 BLEU."
    )
    runs = client.search_runs([experiment.experiment_id], state["searchFilter"])
    shown = sorted((run.data.tags["row"], run.data.tags["seed"], numbers_of_the_row(run)) for run in runs)
    assert [(row, seed) for row, seed, _ in shown] == [("base", "1"), ("h=1", "1"), ("h=1", "2")]
    assert shown[0][2] == [("dev_bleu", 60.0), ("dev_ppl", 3.0), ("paper_bleu", 25.8), ("paper_ppl", 4.92)]
    assert shown[1][2] == [
        ("dev_bleu", 50.8), ("dev_bleu_sd", 1.06), ("dev_ppl", 4.01), ("paper_bleu", 24.9), ("paper_ppl", 5.29),
    ]  # fmt: skip
    assert shown[2][2] == []  # a number of one run of a group is shown as it is


def numbers_of_the_row(run: Any) -> list[tuple[str, float]]:
    return sorted((k.removeprefix("row/"), v) for k, v in run.data.metrics.items() if k.startswith("row/"))


def test_a_view_that_fails_costs_the_view_only(store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracking, "encode_view", lambda *_: 1 / 0)
    told: list[str] = []
    assert tracking.install_view(store, scale="smoke", table="table2", title="Table 2", tell=told.append) is None
    assert len(told) == 1
    assert "lacks the view of table2 (division by zero)" in told[0]


def test_a_view_without_runs_or_limits_is_the_plain_table() -> None:
    assert tracking.view_key("table3_A") == "table3_A"
    assert tracking.view_filter("table3_A") == "tags.tables LIKE '% table3_A %'"
    assert tracking.view_path("7") == "/#/experiments/7/runs?workflowType=machine_learning"
    state = tracking.view_state("x", [])
    assert tracking.decode_view(tracking.encode_view("t", state, 5)) == state
    assert json.loads(tracking.encode_view("t", state, 5))["updatedAt"] == 5
