"""A new MLflow database for each test that wants one, a run folder to put into it, and trackers that are dead."""

import math
import shutil
import socket
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tracked_runs import describe, python

from repro.journal import Journal


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new database (2 to 6 s), made by another process: all of it is in its file when that has ended."""
    path = tmp_path_factory.mktemp("mlflow") / "new" / "mlflow.db"
    code = "import sys; from repro.tracking.store import connect; connect(sys.argv[1])"
    process = python(code, f"sqlite:///{path}")
    said, _ = process.communicate()
    assert (process.returncode, said.decode()) == (0, "")
    return path


@pytest.fixture(scope="session")
def new_store(template: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[], str]:
    def make() -> str:
        path = tmp_path_factory.mktemp("store") / "mlflow.db"
        shutil.copy(template, path)
        return f"sqlite:///{path}"

    return make


@pytest.fixture(scope="session")
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


@pytest.fixture(params=["closed port", "a server that never answers"])
def dead(request: pytest.FixtureRequest) -> Iterator[str]:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        if request.param != "closed port":
            server.listen()
        yield f"http://127.0.0.1:{server.getsockname()[1]}"
