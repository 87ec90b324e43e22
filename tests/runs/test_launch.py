"""Several processes have one exit code, and it says what happened."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from repro import experiment
from repro.runs.launch import ALONE, rank

ROOT = Path(__file__).parents[2]
LAUNCH = "import sys; from repro.runs.launch import launch; sys.exit(launch(sys.argv[1:], 2))"
SCRIPT = """
import os, pathlib, signal, sys, time

rank, folder = int(os.environ["LOCAL_RANK"]), pathlib.Path(sys.argv[1])

def tidy_up(number, frame):
    (folder / f"asked {rank}").touch()
    sys.exit(128 + number)

for number in (signal.SIGTERM, signal.SIGUSR1):
    signal.signal(number, tidy_up)
(folder / f"begun {rank}").touch()
if rank == 1:
    exec(sys.argv[2])
while not (folder / "end").exists():
    time.sleep(0.01)
"""
Start = Callable[[str], "subprocess.Popen[bytes]"]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts two processes, of which one does something; whatever is left of them is ended."""
    started: list[subprocess.Popen[bytes]] = []

    def run(what: str) -> "subprocess.Popen[bytes]":
        (tmp_path / "script.py").write_text(SCRIPT)
        command = [sys.executable, "-c", LAUNCH, str(tmp_path / "script.py"), str(tmp_path), what]
        environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
        with open(tmp_path / "said", "wb") as said:
            started.append(subprocess.Popen(command, env=environment, stdout=said, stderr=said, start_new_session=True))
        return started[0]

    yield run
    for process in started:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@pytest.mark.parametrize(
    ("what", "code", "said"),
    [
        ("sys.exit(70)", 70, "Process 1 of 2 ended first, with exit code 70"),
        pytest.param(
            "os.kill(os.getpid(), signal.SIGKILL)", 137, "Process 1 of 2 ended first, with signal SIGKILL",
            marks=pytest.mark.faults,
        ),
        pytest.param("(folder / 'end').touch()", 0, "", marks=pytest.mark.faults),
    ],
    ids=["exit code", "killed", "well"],
)  # fmt: skip
def test_the_first_to_fail_decides(start: Start, tmp_path: Path, what: str, code: int, said: str) -> None:
    assert start(what).wait(timeout=120) == code, (tmp_path / "said").read_text()
    assert said in (tmp_path / "said").read_text()
    assert (tmp_path / "asked 0").exists() == (code != 0)  # the other was ended, and could tidy up


@pytest.mark.parametrize("number", [signal.SIGTERM, pytest.param(signal.SIGUSR1, marks=pytest.mark.faults)])
def test_a_signal_is_passed_on(start: Start, tmp_path: Path, number: signal.Signals) -> None:
    launcher = start("pass")
    deadline = time.monotonic() + 120
    while len(list(tmp_path.glob("begun *"))) < 2:
        assert time.monotonic() < deadline, (tmp_path / "said").read_text()
        time.sleep(0.01)
    launcher.send_signal(number)
    launcher.wait(timeout=60)
    assert launcher.returncode == 128 + number, (tmp_path / "said").read_text()
    assert len(list(tmp_path.glob("asked *"))) == 2  # by that signal, and given time to tidy up


TORCHRUN = {"TORCHELASTIC_RUN_ID": "none", "RANK": "1", "WORLD_SIZE": "2", "LOCAL_RANK": "1"}
SRUN = {"SLURM_NTASKS": "2", "SLURM_PROCID": "1", "SLURM_LOCALID": "1", "SLURM_JOB_NAME": "table3"}


@pytest.mark.parametrize(
    ("devices", "environment", "found"),
    [
        (1, {}, None),
        (2, {}, None),  # launched by us, and then as by torchrun
        (2, TORCHRUN, 1),
        (2, TORCHRUN | {"RANK": "0"}, 0),
        (1, TORCHRUN | {"RANK": "0", "WORLD_SIZE": "1"}, 0),
        (2, SRUN, 1),
        (2, SRUN | TORCHRUN | {"RANK": "0"}, 0),  # torchrun within a job
        (2, SRUN | {"SLURM_NTASKS": "1", "SLURM_PROCID": "0"}, None),  # one task, which starts its own
        (1, SRUN | {"SLURM_JOB_NAME": "interactive"}, None),  # a shell of salloc's
        (2, {"RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0"}, None),  # a container for one process says so too
    ],
)
def test_a_process_knows_its_number(devices: int, environment: dict[str, str], found: int | None) -> None:
    assert rank(devices, environment) == found


@pytest.mark.parametrize(
    ("devices", "environment", "said"),
    [
        (1, {"RANK": "1"}, r"^RANK=1 stands in the environment, .* unset RANK\. "),
        (1, {"WORLD_SIZE": "2"}, "^WORLD_SIZE=2 stands .* unset WORLD_SIZE"),
        (2, {"LOCAL_RANK": "1", "RANK": "x"}, "^RANK=x and LOCAL_RANK=1 stands .* unset RANK LOCAL_RANK"),
        (1, {"RANK": ""}, "^RANK= stands"),
        (1, TORCHRUN, r"^torchrun started 2 processes \(WORLD_SIZE=2, RANK=1\), but --devices is 1\. .* --devices 2"),
        (4, TORCHRUN, "^torchrun started 2 processes .* --devices is 4"),
        (2, TORCHRUN | {"RANK": "2"}, "RANK=2"),
        (1, SRUN, r"^srun started 2 processes .* a job array"),
        (2, TORCHRUN | {"RANK": "x"}, "^torchrun sets RANK and WORLD_SIZE to whole numbers"),
        (2, {"TORCHELASTIC_RUN_ID": "none"}, "RANK"),
    ],
)
def test_what_is_left_of_a_launcher_is_named(devices: int, environment: dict[str, str], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        rank(devices, environment)


@pytest.mark.parametrize("name", ["RANK", "LOCAL_RANK", "WORLD_SIZE"])
def test_an_experiment_does_not_wait_for_processes_that_nobody_starts(tmp_path: Path, name: str) -> None:
    command = [sys.executable, str(ROOT / "experiments" / "table3_A.py"), "--scale=smoke", "--devices=2"]
    environment = os.environ | {"PYTHONPATH": str(ROOT), name: "1" if name != "WORLD_SIZE" else "2"}
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"error: {name}=")
    assert list(tmp_path.iterdir()) == []


def test_zero_of_one_starts_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As containers for one process say of themselves."""
    started: list[int] = []
    monkeypatch.setattr(experiment, "launch", lambda command, devices: started.append(devices))
    monkeypatch.setattr(experiment, "Signals", lambda: None)
    for name, value in ALONE.items():
        monkeypatch.setenv(name, value)
    experiment.main("table3_A", [], ["--scale=smoke", "--devices=2", f"--runs-dir={tmp_path}"])
    assert started == [2]


@pytest.mark.faults
def test_srun_starts_the_processes_of_a_run(tmp_path: Path) -> None:
    """Two tasks of one node, as Slurm describes them; neither starts others."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    job = SRUN | {
        "SLURM_NTASKS_PER_NODE": "2", "SLURM_NNODES": "1", "SLURM_NODEID": "0", "SLURM_JOB_ID": "12345",
        "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1",
    }  # fmt: skip
    options = ("--scale=smoke", "--rows", "base", "--steps=4", "--devices=2")
    command = [sys.executable, str(ROOT / "experiments" / "table3_A.py"), *options]
    tasks = [
        subprocess.Popen(
            command, cwd=tmp_path, env=os.environ | job | {"SLURM_PROCID": number, "SLURM_LOCALID": number},
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )
        for number in "01"
    ]  # fmt: skip
    said = [task.communicate(timeout=300)[0] for task in tasks]
    assert [task.returncode for task in tasks] == [0, 0], said
    assert len(list(tmp_path.glob("runs/*/record.json"))) == 1
    assert "1 runs in" in said[0]
    assert "base seed 1" not in said[1]
