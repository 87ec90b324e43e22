"""Sweeps on Ray as a user starts them: a process of its own, in a folder of its own; and clusters of this machine.

All nodes of these clusters lie on one machine and see every folder of it.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from repro.storage.journal import read

ROOT = Path(__file__).parents[3]
TIMED = ("time", "attempt", "tokens_per_second", "seconds", "step_seconds", "data_seconds", "grad_seconds")


def begin(folder: Path, *options: str, **variables: str) -> "subprocess.Popen[bytes]":
    """Start a sweep of the base row, whose output goes to `said` in its folder."""
    folder.mkdir(exist_ok=True)
    words = [
        *("--scale", "smoke", "--rows", "base", "--tracking-uri", f"sqlite:///{folder / 'mlflow.db'}"),
        *(
            "--results-dir",
            str(folder / "own"),
            "--runs-dir",
            str(folder / "runs"),
            "--cache-dir",
            str(folder / "cache"),
        ),
        *options,
    ]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"} | variables
    with open(folder / "said", "ab") as said:
        return subprocess.Popen(
            [sys.executable, str(ROOT / "experiments" / "table3_A.py"), *words],
            cwd=folder, stdout=said, stderr=said, stdin=subprocess.DEVNULL, env=environment,
        )  # fmt: skip


def said(folder: Path) -> str:
    return (folder / "said").read_text("utf-8")


def finish(process: "subprocess.Popen[bytes]", folder: Path, patience: float = 240.0) -> str:
    """Wait for its good end; what it said."""
    try:
        code = process.wait(patience)
    finally:
        process.kill()
    assert code == 0, said(folder)
    return said(folder)


def came(folder: Path) -> dict[str, Any]:
    """What came out of each run, by row and seed: all that does not depend on the clock or the machine's mood."""
    found = {}
    for path in (folder / "runs").glob("*/record.json"):
        record = json.loads(path.read_bytes())
        counted = ["replayed", "repeated_lines"]  # how often it was begun, and what that made anew
        if record["settings"]["devices"] > 1:
            counted += [
                "badge",
                "against",
            ]  # of several processes shown by what was made anew alone
        for name in counted:
            record["determinism"].pop(name)
        lines = [
            {k: v for k, v in line.items() if not k.endswith(TIMED)} for line in read(path.parent / "journal.jsonl")
        ]
        found[f"{record['row']} {record['seed']}"] = (
            path.parent.name, record["scores"], record["determinism"], record["curves"], record["status"], lines,
            {name: (path.parent / name).read_bytes() for name in ("dev.hyp", "test.hyp", "tokenizer.json")},
            sorted(one.name for one in (path.parent / "checkpoints").iterdir()),
        )  # fmt: skip
    return found


def children(pid: int) -> list[int]:
    """The processes that a process has started, and those they have."""
    import psutil

    try:
        return [one.pid for one in psutil.Process(pid).children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def listening(pids: list[int]) -> set[str]:
    """The addresses on which these processes take connections."""
    import psutil

    found = set()
    for pid in pids:
        with suppress(psutil.NoSuchProcess):
            sockets = psutil.Process(pid).net_connections("inet")
            # ::ffff:127.0.0.1 is 127.0.0.1, heard on a socket of the sixth version
            found |= {one.laddr.ip.removeprefix("::ffff:") for one in sockets if one.status == psutil.CONN_LISTEN}
    return found


def workers_of(folder: Path) -> list[int]:
    """The processes that make runs of a sweep for a task of Ray's."""
    import psutil

    mine = []
    for process in psutil.process_iter():
        try:
            words = process.cmdline()
            if f"{folder}/runs" in words and "--shard" in words:
                mine.append(process.pid)
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            pass
    return mine


def kill(pids: list[int], number: int = signal.SIGKILL) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


@contextmanager
def cluster(n_nodes: int, **of_last: Any) -> Iterator[Any]:
    """Nodes of a core each on this machine, on its loopback address; `of_last` is of the last of them."""
    os.environ |= {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0", "RAY_USAGE_STATS_ENABLED": "0"}
    from ray.cluster_utils import Cluster

    usual = {"num_cpus": 1, "memory": 2 * 10**9, "object_store_memory": 80 * 2**20}
    found = Cluster(
        initialize_head=True, head_node_args={**usual, "include_dashboard": False} | (of_last if n_nodes == 1 else {})
    )
    try:
        for number in range(1, n_nodes):
            found.add_node(**usual | (of_last if number == n_nodes - 1 else {}))
        yield found
    finally:
        found.shutdown()
