"""A Ray cluster as a sweep meets it: joined or started here, looked at node by node before anything is begun.

Ray is told to stay quiet: no usage statistics, no dashboard, nothing on the terminal; one that is started here listens
on this machine's loopback address only. Its own signal handlers are taken back: a sweep stops as it always does.
"""

import logging
import os
import secrets
import signal
import socket
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from repro.render.extras import install
from repro.runs.executors import luggage
from repro.runs.executors.on_node import NodeFacts, Token, node_facts, token, versions
from repro.runs.forecast import size
from repro.runs.processors import processors
from repro.runs.signals import STOPPING
from repro.storage import atomic

LOCAL, CLIENT = "ray", "ray://"
STORE = 200_000_000  # bytes of shared memory of a cluster that is started here: the runs of one machine share its disk
REACHED = 5.0  # seconds in which a head node must take a connection
LOOKED_AT = 60.0  # seconds in which a node must say what it is
THREADS = 8  # calls of an actor that may wait at the same time
QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # else Ray warns that it will not hide GPUs from who asks for none
    "GLOG_minloglevel": "3",
}
ON_LOOPBACK = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}  # what Ray does by itself where firewalls ask


@dataclass(frozen=True, kw_only=True)
class Share:
    """What one run takes of a node."""

    processors: int
    memory: int  # bytes
    devices: int = 1  # processes, each with a GPU where the cluster has some

    def __str__(self) -> str:
        together = f"of {self.devices} processes, " if self.devices > 1 else ""
        return f"a run ({together}{self.processors} processors, about {size(self.memory)} of memory)"

    def fit(self, has: Mapping[str, float], gpus: int) -> int:
        """How many at a time a node of these resources takes, each with so many GPUs."""
        counts = [has.get("CPU", 0) // self.processors, has.get("memory", 0) // self.memory]
        counts += [has.get("GPU", 0) // gpus] if gpus else []
        return int(min(counts))


@dataclass(kw_only=True)
class Cluster(ExitStack):
    """The cluster at `where`, joined. Use as a context.

    Raises ValueError for an address that is none or that nobody answers at, for another version of Ray or Python there,
    and for a node that could not make runs as this machine does.
    """

    where: str  # "ray": the one that RAY_ADDRESS names, or one that is started here; "ray://host:port"
    script: Path
    runs: Path
    tokens: Mapping[str, Token]  # of folders: by these files a node tells whether it sees them
    needs: Share
    needs_on_disk: int = 0  # bytes of the largest run
    gpus: int = 0  # of a run; known when the cluster is
    files: luggage.SentText = field(default_factory=lambda: luggage.SentText({}))
    _put: tuple[Any, Any] | None = None

    def __post_init__(self) -> None:
        super().__init__()
        address = _address(self.where, os.environ)
        os.environ.update(QUIET | (ON_LOOPBACK if address == "local" else {}))
        try:
            import ray
            import ray.exceptions
            import ray.util.scheduling_strategies
        except ImportError:
            raise ValueError(
                f"--on {self.where} needs Ray, which is not installed here. Install the extra: {install('ray')}"
            ) from None
        self.ray: Any = ray
        self.errors: tuple[type[BaseException], ...] = (ray.exceptions.RayError, ConnectionError, TimeoutError)
        staged = Path(tempfile.gettempdir()) / f"attention-repro-code-{secrets.token_hex(8)}"
        self.callback(luggage.clear, staged)
        try:
            luggage.stage_code(self.script, staged)
            self._join(address, staged)
            self.callback(ray.shutdown)
            self._look()
        except BaseException:
            self.close()
            raise

    def _join(self, address: str, staged: Path) -> None:
        before = {number: signal.getsignal(number) for number in STOPPING}
        own: dict[str, Any] = {}
        if address == "local":
            own = {"num_cpus": processors(), "include_dashboard": False, "object_store_memory": STORE}
        # Ray takes what SIGTERM does here, and what is imported by its workers from this process's path
        try:
            self.ray.init(
                address=address,
                runtime_env={"working_dir": str(staged), "env_vars": {"PYTHONWARNINGS": "ignore"}},
                log_to_driver=False,
                logging_level=logging.CRITICAL,
                **own,
            )
        except Exception as error:
            raise ValueError(_why_not(self.where, address, error)) from error
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _look(self) -> None:
        """Ask every node what it is, and refuse the cluster where one would make other numbers, or none."""
        ray, alive = self.ray, self._alive()
        self.gpus = self.needs.devices if any(node["Resources"].get("GPU", 0) >= 1 for node in alive) else 0
        at = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy
        ask = ray.remote(node_facts)
        asked = {
            node["NodeID"]: ask.options(num_cpus=0, scheduling_strategy=at(node["NodeID"], soft=False)).remote(
                dict(self.tokens)
            )
            for node in alive
            if self.needs.fit(node["Resources"], self.gpus)
        }
        if not asked:
            raise ValueError(f"--on {self.where}: no node has room for {self.needs}. {self.resources()}")
        self.nodes: list[NodeFacts] = []
        for node, answer in asked.items():
            try:
                self.nodes.append(self.get(answer, timeout=LOOKED_AT))
            except self.errors as error:
                raise ValueError(
                    f"--on {self.where}: node {node[:8]} does not run this package: {_first(error)}. Install the same "
                    "Python and constraints.txt there as here."
                ) from error
        for facts in self.nodes:
            self.refuse(facts)

    def refuse(self, facts: NodeFacts) -> None:
        """Raise ValueError for a node that would make other numbers than this machine, or has no room for a run."""
        here, there = versions(), facts["versions"]
        if other := [f"{name} {there[name]} there, {here[name]} here" for name in here if there[name] != here[name]]:
            raise ValueError(
                f"--on {self.where}: node {facts['host']} has other versions: {'; '.join(other)}. Install the same "
                "Python and constraints.txt on all machines."
            )
        if "runs" not in facts["sees"] and facts["room"] is not None and facts["room"] < self.needs_on_disk:
            raise atomic.DiskError(
                28,
                f"--on {self.where}: node {facts['host']} has {size(facts['room'])} free in {facts['place']}, where a "
                f"run takes {size(self.needs_on_disk)}. Free space there, or set TMPDIR on it to a folder with more.",
            )

    @property
    def sees_text(self) -> bool:
        """Whether every node sees the text of this machine."""
        return all(self.tokens.keys() - {"runs"} <= {*facts["sees"]} for facts in self.nodes)

    def capacity(self) -> int:
        """How many runs at a time the cluster's nodes take, were they empty."""
        try:
            return sum(self.needs.fit(node["Resources"], self.gpus) for node in self._alive())
        except self.errors:
            return 0

    def about(self) -> str:
        """The cluster in words."""
        hosts = ", ".join(dict.fromkeys(facts["host"] for facts in self.nodes))
        return f"Ray, {len(self.nodes)} nodes ({hosts})" if len(self.nodes) > 1 else f"Ray on {hosts}"

    def _alive(self) -> list[dict[str, Any]]:
        return [node for node in self.ray.nodes() if node["Alive"]]

    def resources(self) -> str:
        """Its nodes in words."""
        nodes = [
            f"{node['NodeManagerHostname']}: {node['Resources'].get('CPU', 0):g} processors, "
            f"{size(node['Resources'].get('memory', 0))}"
            for node in self._alive()
        ]
        return f"There are {'; '.join(nodes)}."

    def actor(self, kind: type) -> Any:
        """A new actor with what one run needs, on the emptiest node."""
        options = {"num_cpus": self.needs.processors, "memory": self.needs.memory, "num_gpus": self.gpus}
        return (
            self.ray.remote(kind)
            .options(**options, max_concurrency=THREADS, max_restarts=0, scheduling_strategy="SPREAD")
            .remote()
        )

    def get(self, reference: Any, timeout: float | None = None) -> Any:
        """What a call gives; one of `errors` where the node or the cluster is gone."""
        return self.ray.get(reference, timeout=timeout)

    def wait(self, reference: Any, seconds: float) -> Any:
        """The same, None where it takes longer."""
        ready, _ = self.ray.wait([reference], timeout=seconds)
        return self.get(reference) if ready else None

    def kill(self, actor: Any) -> None:
        """End an actor and its worker process."""
        with suppress(*self.errors):
            self.ray.kill(actor)

    def text(self) -> tuple[Mapping[str, luggage.Described], Mapping[str, Sequence[Any]]]:
        """The text, which each node takes from here once: what its files are, and Ray's names for their blocks."""
        if self._put is None:
            named = {name: [self.ray.put(block) for block in self.files.blocks(name)] for name in self.files.files}
            self._put = self.files.described(), named
        return self._put


def tokens(runs: Path, cache: Path, data: Sequence[Path], at_the_end: ExitStack) -> dict[str, Token]:
    """By which a node knows that it sees these folders: two files that are written now, and one that lies there."""
    found = {}
    for name, folder in (("runs", runs), ("cache", cache)):
        path = atomic.beside(folder.absolute() / name, atomic.PARTIAL)
        atomic.write_text(path, secrets.token_hex(16))
        at_the_end.callback(path.unlink, missing_ok=True)
        found[name] = token(path)
    for number, folder in enumerate(data):
        some = min(path for path in folder.rglob("*") if path.is_file())
        found[f"data {number}"] = token(some.absolute())
    return found


def _address(where: str, environment: Mapping[str, str]) -> str:
    """What Ray calls the cluster at `where`. Raises ValueError for what is none, or where nobody answers."""
    address = where if where != LOCAL else environment.get("RAY_ADDRESS", "local")
    host, _, port = address.removeprefix(CLIENT).rpartition(":")
    if address in ("local", "auto"):
        return address
    if not host or not port.isdecimal() or (where != LOCAL and not where.startswith(CLIENT)):
        raise ValueError(f"--on {where}: expected ray, or ray://HOST:PORT like ray://10.0.0.7:10001; got {address!r}.")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=REACHED).close()
    except (OSError, OverflowError) as error:
        raise ValueError(
            f"--on {where}: nobody answers at {host}:{port} ({error}). Is the head node up, and its port open to this "
            "machine? Its client server listens on 10001 unless told otherwise."
        ) from error
    return address


def _why_not(where: str, address: str, error: Exception) -> str:
    if "ersion" in str(error):  # Ray names both versions, of itself or of Python, in a sentence or two
        return f"--on {where}: {' '.join(str(error).split())[:600]} Install the same versions on all machines."
    if address == "local":
        return f"--on {where}: Ray does not start here: {_first(error)}"
    return (
        f"--on {where}: no Ray cluster accepts this program at {address}: {_first(error)}. ray:// wants the port of "
        "its client server, 10001, not that of its own nodes, 6379; on one of its nodes type --on ray with "
        "RAY_ADDRESS=auto."
    )


def _first(error: BaseException) -> str:
    """The last line of what Ray says, which is the one that says it."""
    lines = [line.strip() for line in str(error).split("\n") if line.strip()]
    return f"{type(error).__name__}: {lines[-1][:300] if lines else ''}".rstrip(": .")
