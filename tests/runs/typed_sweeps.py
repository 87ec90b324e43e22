"""Sweeps as a user starts them: a process of its own, in a folder of its own; and clusters of Ray on this machine.

All nodes of these clusters lie on one machine and see every folder of it.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil

from repro.storage.journal import read

ROOT = Path(__file__).parents[2]
TIMED = ("time", "attempt", "tokens_per_second", "seconds", "step_seconds", "data_seconds", "grad_seconds")
OF_CLOCK = ("train_seconds", "decode_seconds", "tokens_per_second", "peak_memory_bytes", "gpu_hours")  # in the cost


def begin(folder: Path, *options: str, rows: Sequence[str] = ("base",), **variables: str) -> "subprocess.Popen[bytes]":
    """Start a sweep, whose output goes to `said` in its folder."""
    folder.mkdir(exist_ok=True)
    places = [f"--{name}-dir={folder / to}" for name, to in (("results", "own"), ("runs", "runs"), ("cache", "cache"))]
    words = [*places, f"--tracking-uri=sqlite:///{folder / 'mlflow.db'}", "--scale=smoke", "--rows", *rows, *options]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"} | variables
    with open(folder / "said", "ab") as said:
        return subprocess.Popen(
            [sys.executable, str(ROOT / "experiments" / "table3_A.py"), *words],
            cwd=folder, stdout=said, stderr=said, stdin=subprocess.DEVNULL, env=environment,
        )  # fmt: skip


def said(folder: Path) -> str:
    return (folder / "said").read_text("utf-8")


def finish(process: "subprocess.Popen[bytes]", folder: Path, patience: float = 600.0) -> str:
    """Wait for its good end; what it said."""
    try:
        code = process.wait(patience)
    finally:
        process.kill()
    assert code == 0, said(folder)
    return said(folder)


def came(folder: Path) -> dict[str, Any]:
    """What came out of each run, by its id: all that does not depend on the clock or on what was made anew."""
    found = {}
    for path in (folder / "runs").glob("*/record.json"):
        record = json.loads(path.read_bytes())
        for name in ("stamp", "sha256"):
            del record[name]
        made_anew = ["replayed", "repeated_lines"]
        if record["settings"]["devices"] > 1:
            made_anew += ["badge", "against"]  # of several processes shown by what was made anew alone
        for part, names in (("cost", OF_CLOCK), ("last_mean", ["seconds"]), ("determinism", made_anew)):
            record[part] = {name: value for name, value in record[part].items() if name not in names}
        lines = [
            {k: v for k, v in line.items() if not k.endswith(TIMED)} for line in read(path.parent / "journal.jsonl")
        ]
        found[path.parent.name] = (
            record, lines,
            {name: (path.parent / name).read_bytes() for name in ("dev.hyp", "test.hyp", "tokenizer.json")},
            sorted(one.name for one in (path.parent / "checkpoints").iterdir()),
        )  # fmt: skip
    return found


def checkpointed(folder: Path) -> list[Path]:
    return list((folder / "runs").glob("*/checkpoints/step-*.safetensors"))


def children(pid: int) -> list[int]:
    """The processes that a process has started, and those they have."""
    try:
        return [one.pid for one in psutil.Process(pid).children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def listening(pids: list[int]) -> set[str]:
    """The addresses on which these processes take connections."""
    found = set()
    for pid in pids:
        with suppress(psutil.NoSuchProcess):
            sockets = psutil.Process(pid).net_connections("inet")
            # ::ffff:127.0.0.1 is 127.0.0.1, heard on a socket of the sixth version
            found |= {one.laddr.ip.removeprefix("::ffff:") for one in sockets if one.status == psutil.CONN_LISTEN}
    return found


def workers_of(folder: Path) -> list[int]:
    """The processes that make runs of a sweep for a task of Ray's."""
    words = {f"--runs-dir={folder / 'runs'}", "--shard"}
    return [one.pid for one in psutil.process_iter(["cmdline"]) if words <= {*(one.info["cmdline"] or ())}]


def kill(pids: list[int], number: int = signal.SIGKILL) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


@contextmanager
def cluster(n_nodes: int, **of_last: Any) -> Iterator[Any]:
    """Nodes of a core each on this machine, on its loopback address; `of_last` is of the last of them."""
    os.environ |= {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0", "RAY_USAGE_STATS_ENABLED": "0"}
    from ray.cluster_utils import Cluster

    usual = {"num_cpus": 1, "memory": 4 * 10**9, "object_store_memory": 80 * 2**20}
    found = Cluster(
        initialize_head=True, head_node_args={**usual, "include_dashboard": False} | (of_last if n_nodes == 1 else {})
    )
    try:
        for number in range(1, n_nodes):
            found.add_node(**usual | (of_last if number == n_nodes - 1 else {}))
        yield found
    finally:
        found.shutdown()
