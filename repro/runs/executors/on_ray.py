"""`--on ray`: each run is a task of an existing Ray cluster, or of one that is started here.

A task is this command with `--shard i/n`, on a node that has room for it (`on_node.py`). The nodes share a folder, as
Ray requires. Runs are made and leased there, so the run of a lost node resumes from its checkpoint on another node.
Code is sent as Ray's runtime environment.

Ray is told to stay quiet: no usage statistics, no dashboard, and no logs on the terminal, where it would report its
lost processes. A cluster that is started here listens on this machine's loopback address only. Ray's signal handlers
are replaced by those from before, so that a sweep stops as it always does.
"""

import hashlib
import json
import logging
import os
import secrets
import signal
import socket
import tempfile
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from repro.render.extras import install
from repro.render.several import several
from repro.results import provenance
from repro.results.places import EXPERIMENTS, PACKAGE
from repro.runs.executors.executor import BUSY, DIVERGED, FAILED, Job, JobResult
from repro.runs.executors.on_node import Ended, NodeCommand, make_run, versions
from repro.runs.executors.pool import LOGS
from repro.runs.executors.tail import LATE, Lanes, how_it_ended, late_record, tail
from repro.runs.options import Options
from repro.runs.processors import processors
from repro.runs.progress import Progress
from repro.runs.session import Session
from repro.runs.signals import STOPPING, Signals
from repro.runs.sizes import cell_memory, size
from repro.runs.table import Cell
from repro.storage import atomic

LOCAL, CLIENT = "ray", "ray://"
STORE = 100_000_000  # bytes of shared memory of a cluster that is started here: next to nothing passes through it
REACHED = 5.0  # seconds in which a head node must take a connection
LOOK = 1.0  # seconds between two looks at the cluster
TIDY_UP = 60.0  # seconds that runs have to stop with a checkpoint when the sweep fails
LOST_AT_MOST = 5  # times that a run is begun again after its node, task or process was lost
QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # else Ray warns that it will not hide GPUs from tasks without one
    "GLOG_minloglevel": "3",
}
ON_LOOPBACK = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}  # what Ray does by itself where firewalls ask


@dataclass(frozen=True, kw_only=True)
class Share:
    """What one run takes of a node."""

    processors: int
    memory: int  # bytes
    gpus: int = 0

    def __str__(self) -> str:
        gpus = f", {several(self.gpus, 'GPU')}" if self.gpus else ""
        return f"a run ({several(self.processors, 'processor')}, about {size(self.memory)} of memory{gpus})"

    def fit(self, has: Mapping[str, float]) -> int:
        """How many such runs a node with these resources takes at a time."""
        counts = [has.get("CPU", 0) // self.processors, has.get("memory", 0) // self.memory]
        counts += [has.get("GPU", 0) // self.gpus] if self.gpus else []
        return int(min(counts))


class OnRay(ExitStack):
    """An executor that has Ray place the runs. `again` is the command line that starts it again."""

    def __init__(self, session: Session, cells: Sequence[Cell], again: Sequence[str], signals: Signals) -> None:
        """Join the cluster, or start one. Raises ValueError where that fails or no node has room."""
        super().__init__()
        self.options, self.signals = session.options, signals
        self._numbers = [session.whole.index(cell) + 1 for cell in cells]
        self._n_whole = len(session.whole)
        script = Path(again[1]).absolute()
        self._words = [f"{EXPERIMENTS}/{script.name}", *again[2:], *_places(self.options)]
        self._logs = self.options.runs_dir.absolute() / LOGS
        try:
            self._ray = self._joined(script)
            self._needs = self._share(max(cell_memory(cell, session.scale) for cell in cells))
            n_fit = sum(self._needs.fit(node["Resources"]) for node in self._nodes())
            if not n_fit:
                raise ValueError(f"--on {self.options.on}: no node has room for {self._needs}. {self._resources()}")
            self.n_workers = min(self.options.jobs or n_fit, n_fit, len(cells))
            self.about = f"{several(self.n_workers, 'run')} at a time on Ray, {several(len(self._nodes()), 'node')}."
            self._wanted, self._sha256 = self._promise()
        except BaseException:
            self.close()
            raise

    def measure(self, work: Sequence[Job], progress: Progress) -> None:
        """Does nothing: the speed of this machine says nothing of the nodes."""

    def make(self, work: Sequence[Job], progress: Progress) -> Iterator[JobResult]:
        """Hand Ray the runs in the order given, `--jobs` at a time or all; yields the outcome of each as it ends."""
        waiting, going, lost = deque(work), dict[Any, Job](), Counter[int]()
        lanes, parallelism = Lanes(progress), self.options.jobs or len(work)
        self.signals.training = True
        try:
            while waiting or going:
                if self.signals.should_stop():
                    self._wanted.unlink(missing_ok=True)
                    for one in waiting:
                        yield JobResult(run=one.run, record=None, code=128 + self.signals.received)
                    waiting.clear()
                while waiting and len(going) < parallelism:
                    one = waiting.popleft()
                    going[self._task(one)] = one
                ready, _ = self._ray.wait(list(going), timeout=LOOK) if going else ([], [])
                lanes.show({one.cell: one.run for one in going.values() if one.run.is_in_hand()})
                for reference in ready:
                    one = going.pop(reference)
                    made = self._outcome(one, reference, lost, progress)
                    if made is None:
                        waiting.appendleft(one)
                    else:
                        yield made
        finally:
            self.signals.training = False
            self._wanted.unlink(missing_ok=True)
            if going:  # something went wrong here: the others stop with a checkpoint
                self._ray.wait(list(going), num_returns=len(going), timeout=TIDY_UP)

    def _outcome(self, work: Job, reference: Any, lost: Counter[int], progress: Progress) -> JobResult | None:
        """How a run ended; None where its process was lost and another one will resume it."""
        name, run, errors = work.run.name, work.run, self._ray.exceptions
        try:
            ended: Ended = self._ray.get(reference)
        except errors.RayTaskError as error:
            progress.say(f"{name} could not be started on its node: {_first(error)}")
            return JobResult(run=run, record=None, code=FAILED)
        except errors.RayError as error:
            return self._begun_again(work, f"its node or task was lost ({_first(error)})", lost, progress)
        if ended.refused and not self.signals.should_stop():
            raise ValueError(f"--on {self.options.on}: node {ended.host} {ended.refused}")
        code = ended.code if ended.code >= 0 else 128 - ended.code
        if self.signals.should_stop():
            record = run.finished()
            return JobResult(run=run, record=record, code=0 if record else 128 + self.signals.received)
        if record := late_record(run, LATE if code in (0, DIVERGED) else 0, self.signals.should_stop):
            Path(self._log(work)).unlink(missing_ok=True)
            return JobResult(run=run, record=record)
        if code > 128 or (code == BUSY and lost[work.cell]):  # a lost process may hold the lease for some seconds
            why = f"its process on {ended.host} ended {how_it_ended(ended.code)}"
            return self._begun_again(work, why, lost, progress)
        if code != BUSY:
            why = f"its process on {ended.host} ended with exit code {code}"
            progress.say(f"{name} has no record: {why}. The end of {self._log(work)}:\n{tail(self._log(work))}")
        return JobResult(run=run, record=None, code=code or FAILED)

    def _begun_again(self, work: Job, why: str, lost: Counter[int], progress: Progress) -> JobResult | None:
        lost[work.cell] += 1
        if lost[work.cell] > LOST_AT_MOST:
            progress.say(f"{work.run.name}: {why}, for the {lost[work.cell]}th time. It is skipped.")
            return JobResult(run=work.run, record=None, code=FAILED)
        progress.say(f"{work.run.name}: {why}. It goes on from its last checkpoint.")
        return None

    def _task(self, work: Job) -> Any:
        """Submit a run to Ray."""
        number = self._numbers[work.cell]
        data = {name: os.environ[name] for name in ("REPRO_DATA",) if name in os.environ}
        job = NodeCommand(
            words=[*self._words, "--on", "here", "--jobs", "1", "--shard", f"{number}/{self._n_whole}"],
            environment=data,
            wanted=str(self._wanted),
            sha256=self._sha256,
            log=self._log(work),
            versions=versions(),
        )
        needs = {"num_cpus": self._needs.processors, "memory": self._needs.memory, "num_gpus": self._needs.gpus}
        task = self._ray.remote(make_run).options(**needs, max_retries=0, scheduling_strategy="SPREAD")
        return task.remote(job)

    def _log(self, work: Job) -> str:
        return str(self._logs / f"ray-{work.run.id}.log")

    def _promise(self) -> tuple[Path, str]:
        """Write a file by which nodes know the folder of runs and that the sweep is alive; its path and hash."""
        atomic.make_folder(self._logs)
        path, text = atomic.beside(self._logs / "wanted", atomic.PARTIAL), secrets.token_hex(16)
        atomic.write_text(path, text)
        self.callback(path.unlink, missing_ok=True)
        return path, hashlib.sha256(text.encode()).hexdigest()

    def _joined(self, script: Path) -> Any:
        """The module `ray`, connected to the cluster."""
        where = self.options.on
        address = _address(where, os.environ)
        os.environ.update(QUIET | (ON_LOOPBACK if address == "local" else {}))
        try:
            import ray
            import ray.exceptions
        except ImportError:
            raise ValueError(
                f"--on {where} needs Ray, which is not installed here. Install the extra: {install('ray')}"
            ) from None
        staged = Path(self.enter_context(tempfile.TemporaryDirectory(prefix="attention-repro-code-")))
        stage_code(script, staged)
        own: dict[str, Any] = {}
        if address == "local":
            own = {"num_cpus": processors(), "include_dashboard": False, "object_store_memory": STORE}
        before = {number: signal.getsignal(number) for number in STOPPING}
        try:  # Ray takes what SIGTERM does here, and what is imported by its workers from this process's path
            ray.init(
                address=address,
                runtime_env={"working_dir": str(staged), "env_vars": {"PYTHONWARNINGS": "ignore"}},
                log_to_driver=False,
                logging_level=logging.CRITICAL,
                **own,
            )
        except Exception as error:
            raise ValueError(_why_not(where, address, error)) from error
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
        self.callback(ray.shutdown)
        return ray

    def _share(self, memory: int) -> Share:
        n = self.options.processes
        has_gpus = any(node["Resources"].get("GPU", 0) >= 1 for node in self._nodes())
        return Share(processors=n * self.options.threads, memory=n * memory, gpus=n if has_gpus else 0)

    def _nodes(self) -> list[dict[str, Any]]:
        return [node for node in self._ray.nodes() if node["Alive"]]

    def _resources(self) -> str:
        """The nodes in words."""
        nodes = [
            f"{node['NodeManagerHostname']}: {node['Resources'].get('CPU', 0):g} processors, "
            f"{size(node['Resources'].get('memory', 0))}"
            for node in self._nodes()
        ]
        return f"There are {'; '.join(nodes)}."


def stage_code(script: Path, folder: Path) -> None:
    """Fill a folder with all that a node needs to run `script`: the package, and what lies beside the script.

    If the deciding code is committed, the commit is noted there, as there is no git on a node.
    """
    code = [(path, path.relative_to(PACKAGE.parent)) for path in _code(PACKAGE)]
    code += [(path, EXPERIMENTS / path.relative_to(script.parent)) for path in _code(script.parent, PACKAGE)]
    for path, name in code:
        atomic.write_bytes(folder / name, path.read_bytes())
    origin = provenance.provenance()
    if not origin["dirty"]:
        release = {"version": "of a checkout", "commit": origin["commit"], "fingerprint": origin["fingerprint"]}
        atomic.write_text(folder / PACKAGE.name / provenance.RELEASE, json.dumps(release))


def _code(folder: Path, without: Path | None = None) -> Iterator[Path]:
    """The files of code in a folder and in the packages below it: no runs, caches or results."""
    for path in sorted(folder.iterdir()):
        if path.is_file() and path.suffix in (".py", ".json", ".toml"):
            yield path
        elif path.is_dir() and path != without and (path / "__init__.py").is_file():
            yield from _code(path)


def _places(options: Options) -> list[str]:
    """Options that name the folders of the sweep by absolute paths, for a process that runs elsewhere."""
    words = ["--runs-dir", str(options.runs_dir.absolute()), "--cache-dir", str(options.cache_dir.absolute())]
    if options.data_dir is not None:
        words += ["--data-dir", str(options.data_dir.absolute())]
    scheme, found, path = options.tracking_uri.partition("sqlite:///")
    store = f"{found}{Path(path).absolute()}" if found and not scheme else options.tracking_uri
    return [*words, "--tracking-uri", store]


def _address(where: str, environment: Mapping[str, str]) -> str:
    """The address that Ray takes for `where`. Raises ValueError for a bad one, or where nothing answers."""
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
            f"--on {where}: nothing answers at {host}:{port} ({error}). Is the head node up, and its port open to this "
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
    """The last line of an error of Ray's, which names the cause."""
    lines = [line.strip() for line in str(error).split("\n") if line.strip()]
    return f"{type(error).__name__}: {lines[-1][:300] if lines else ''}".rstrip(": .")
