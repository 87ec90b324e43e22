"""`--on ray`: each run is a task of the Ray cluster that RAY_ADDRESS names, or of a Ray that is started here.

A task is this command with `--shard i/n`, in this folder and by this Python: all nodes see both at the same path, and
the folder of runs. So the run of a lost node resumes from its checkpoint on another node.
"""

import logging
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from repro.render.text import several
from repro.runs.command import FAILED, PARENT, STOPPING, Signals
from repro.runs.machine import processors
from repro.runs.options import Options
from repro.runs.pool import DIVERGED, Executor, JobResult, log_file, tail
from repro.runs.progress import Progress
from repro.runs.run_dir import RunDir

STORE = 100_000_000  # bytes of shared memory of a Ray that is started here: next to nothing passes through it
LOOK = 1.0  # seconds between two looks
LATE = 60.0  # seconds in which a shared folder may show the record of a run that has ended
LOST_AT_MOST = 5  # times that a run is begun again after its node, task or process was lost
QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # else Ray warns that it will not hide GPUs from tasks without one
    "GLOG_minloglevel": "3",
}
ON_LOOPBACK = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}  # what Ray does by itself where firewalls ask


def make_run(words: Sequence[str], folder: str, log: str, environment: Mapping[str, str]) -> int:
    """The task of Ray: run a command to its end and return its exit code. Cancelled, it asks the command to stop.

    Raises ChildProcessError where the command was killed, so that Ray starts the task again.
    """
    with tempfile.TemporaryDirectory(prefix="attention-repro-") as tables, open(log, "ab") as printed:
        process = subprocess.Popen(
            [*words, "--results-dir", tables],  # the tables are made where the sweep is
            cwd=folder,
            env=os.environ | environment | {PARENT: str(os.getpid())},
            stdin=subprocess.DEVNULL,
            stdout=printed,
            stderr=printed,
            start_new_session=True,  # signals of the terminal go to the sweep, which asks once
        )
        while process.poll() is None:
            try:
                time.sleep(0.5)
            except KeyboardInterrupt:
                process.terminate()
    if process.returncode < 0:
        raise ChildProcessError(f"the process of the run was ended by signal {-process.returncode}")
    return process.returncode


def joined() -> Any:
    """The module `ray`, connected to the cluster, or to a Ray that is started on this machine's loopback address.

    Ray's signal handlers are replaced by those from before, so that a sweep stops as it always does. Raises ValueError
    where there is no Ray.
    """
    address = os.environ.get("RAY_ADDRESS", "local")
    own: dict[str, Any] = {}
    if address == "local":
        own = {"num_cpus": processors(), "include_dashboard": False, "object_store_memory": STORE}
    os.environ.update(QUIET | (ON_LOOPBACK if address == "local" else {}))
    try:
        import ray
    except ImportError:
        raise ValueError("--on ray needs Ray. In a clone: pip install -c constraints.txt -e '.[ray]'.") from None
    before = {number: signal.getsignal(number) for number in STOPPING}
    try:
        ray.init(address=address, log_to_driver=False, logging_level=logging.CRITICAL, **own)
    except Exception as error:
        raise ValueError(f"--on ray: no Ray at the address {address}: {' '.join(str(error).split())}") from error
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])  # nodes need not import this package for a task
    return ray


class OnRay(Executor):
    """An executor that has Ray place `n_runs` of the `n_whole` of a sweep, of which each takes so much memory."""

    def __init__(
        self, options: Options, memory: int, n_runs: int, n_whole: int, again: Sequence[str], signals: Signals
    ) -> None:
        """Join the cluster, or start one. Raises ValueError where that fails or no node has room."""
        super().__init__()
        self.options, self.signals = options, signals
        self._n_whole, self._again = n_whole, again
        self._ray = joined()
        self.callback(self._ray.shutdown)
        nodes = [node["Resources"] for node in self._ray.nodes() if node["Alive"]]
        n = options.processes
        self._needs = {"CPU": n * options.threads, "memory": n * memory}
        if any(node.get("GPU", 0) >= 1 for node in nodes):
            self._needs["GPU"] = n
        n_fit = sum(int(min(node.get(name, 0) // of for name, of in self._needs.items())) for node in nodes)
        if not n_fit:
            self.close()
            raise ValueError(f"--on ray: no node has room for a run, {self._needs}. The nodes have {nodes}.")
        self.n_workers = min(options.jobs or n_fit, n_fit, n_runs)
        self.about = f"{several(self.n_workers, 'run')} at a time on Ray, {several(len(nodes), 'node')}."

    def make(self, runs: Sequence[RunDir], progress: Progress) -> Iterator[JobResult]:
        """Hand Ray the runs in the order given, `--jobs` at a time or all; yields the outcome of each as it ends."""
        waiting, going = deque(runs), dict[Any, RunDir]()
        self.signals.training, is_stopping = True, False
        while waiting or going:
            if self.signals.should_stop() and not is_stopping:
                is_stopping = True
                waiting.clear()
                for reference in going:
                    self._ray.cancel(reference)
            while waiting and len(going) < (self.options.jobs or len(runs)):
                run = waiting.popleft()
                going[self._task(run)] = run
            ended, _ = self._ray.wait([*going], timeout=LOOK) if going else ([], None)
            for reference in ended:
                yield self._outcome(going.pop(reference), reference, progress)
        self.signals.training = False

    def _task(self, run: RunDir) -> Any:
        """Submit a run to Ray."""
        words = [*self._again, "--on", "here", "--jobs", "1", "--shard", f"{run.number + 1}/{self._n_whole}"]
        data = {"REPRO_DATA": os.environ["REPRO_DATA"]} if "REPRO_DATA" in os.environ else {}
        task = self._ray.remote(make_run).options(
            num_cpus=self._needs["CPU"],
            memory=self._needs["memory"],
            num_gpus=self._needs.get("GPU", 0),
            max_retries=LOST_AT_MOST,
            retry_exceptions=[ChildProcessError],
            scheduling_strategy="SPREAD",
        )
        log = log_file(self.options.runs_dir, f"ray-{run.id}").absolute()
        return task.remote(words, os.getcwd(), str(log), data)

    def _outcome(self, run: RunDir, reference: Any, progress: Progress) -> JobResult:
        log = log_file(self.options.runs_dir, f"ray-{run.id}")
        try:
            code = self._ray.get(reference)
            why = f"its process ended with exit code {code}"
        except self._ray.exceptions.RayError as error:
            code, why = FAILED, f"{type(error).__name__}: {str(error).strip().rpartition(chr(10))[2]}"
        until = time.monotonic() + LATE
        while (record := run.finished()) is None and code in (0, DIVERGED) and time.monotonic() < until:
            time.sleep(LOOK)
        if record:
            log.unlink(missing_ok=True)
            return JobResult(run, record)
        if self.signals.received:
            return JobResult(run, None, 128 + self.signals.received)
        progress.say(f"{run.name} has no record: {why}. The end of {log}:\n{tail(log)}")
        return JobResult(run, None, code or FAILED)
