"""What every test stands on: no network, small hypothesis examples that repeat, real text, a database of MLflow."""

import ipaddress
import os
import shutil
import sqlite3
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import chain, islice
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from own_signals import own_signals

from repro.storage.lock import WORK, locked
from repro.tracking.client import connect

os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"  # before anything imports mlflow

settings.register_profile("repeatable", deadline=None, derandomize=True, max_examples=50)
settings.load_profile("repeatable")


def is_this_machine(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def refuse_network(event: str, args: tuple[Any, ...]) -> None:
    """Stop a test that would connect to another machine. Loopback is allowed: ranks talk over it."""
    if event == "socket.connect" and isinstance(args[1], tuple) and not is_this_machine(args[1][0]):
        raise PermissionError(f"a test tried to reach {args[1][0]}: tests run without a network.")


sys.addaudithook(refuse_network)


def no_wait(handle: int) -> None:
    """In place of `os.fsync`: no test cuts the power, and a disk takes some milliseconds each of ten thousand times."""
    os.fstat(handle)  # an error where it is closed


os.fsync = no_wait

# the files that take longest, in order of it: none of them is begun when the others have ended
LONGEST = (
    "runs/test_pool.py", "test_library.py", "web/test_mlflow.py", "model/test_variants.py",
    "web/test_charts.py", "runs/test_sweep.py", "faults/test_training.py", "training/test_group.py",
    "training/test_loop.py", "runs/test_run.py", "test_pretrained.py", "training/test_lightning.py",
    "faults/test_full_disks.py", "test_experiment.py", "cli/test_data.py",
)  # fmt: skip


@pytest.hookimpl(trylast=True)  # after what is left out
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Each process of xdist is given as many tests of the list, in its order: let the longest stand first in each."""
    n = getattr(config, "workerinput", {"workercount": 1})["workercount"]
    longest = [[item for item in items if item.path.as_posix().endswith(f"tests/{name}")] for name in LONGEST]
    first = [[*chain(*longest[i::n])] for i in range(n)]
    early = {*chain(*first)}
    rest = iter([item for item in items if item not in early])
    shares = [[*share, *islice(rest, max(0, len(items) // n - len(share)))] for share in first]
    items[:] = [*chain(*shares), *rest]


@pytest.fixture(name="own_signals")
def _own_signals() -> Iterator[None]:
    with own_signals():
        yield


@pytest.fixture(scope="session")
def real_text() -> Path:
    """The folder of real text that REPRO_DATA names; without one the test is skipped."""
    folder = os.environ.get("REPRO_DATA", "")
    if not folder or not Path(folder).is_dir():
        pytest.skip("needs the real text: set REPRO_DATA to a folder that holds it.")
    return Path(folder)


@pytest.fixture(scope="session")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, Callable[[Path], object]], Path]:
    """made_once(name, fill) -> a folder that one of pytest's processes fills; the others find it, and all only read."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base

    def made(name: str, fill: Callable[[Path], object]) -> Path:
        folder, done = shared / name, shared / f"{name}.done"
        done.touch()
        with locked(done, patience=WORK):
            if not done.read_bytes():
                folder.mkdir(exist_ok=True)
                fill(folder)
                done.write_bytes(b"done")
        return folder

    return made


@pytest.fixture(scope="session")
def template(made_once: Callable[[str, Callable[[Path], object]], Path]) -> Path:
    """A new database: all of it is in its file, which nobody has opened."""

    def fill(folder: Path) -> None:
        connect(f"sqlite:///{folder / 'first.db'}")
        with closing(sqlite3.connect(folder / "first.db")) as database:
            (folder / "mlflow.db").write_bytes(database.serialize())

    return made_once("mlflow", fill) / "mlflow.db"


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
