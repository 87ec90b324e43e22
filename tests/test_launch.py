"""Several processes have one exit code, and it says what happened."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

LAUNCH = "import sys; from repro.launch import launch; sys.exit(launch(sys.argv[1:], 2))"
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
        environment = os.environ | {"PYTHONPATH": str(Path(__file__).parent.parent)}
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
