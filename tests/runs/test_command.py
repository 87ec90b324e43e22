"""How options are read and written down, and how a command ends: by signals, or because its reader has gone."""

import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from own_signals import own_signals
from typed import ROOT, lines_until_heavy

from repro.runs import command
from repro.runs.command import PARENT, STOPPING, Signals, command_line


def test_an_installed_package_names_its_own_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "bin" / "repro"
    program.parent.mkdir()
    program.write_text("")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent))
    monkeypatch.setattr(sys, "argv", ["table3_A.py"])
    monkeypatch.setattr(sys, "executable", str(program.with_name("python")))
    assert command.ours("ui").endswith("python -m repro ui"), "a clone"
    (tmp_path / "experiments").mkdir()
    monkeypatch.setattr(command, "PACKAGE", tmp_path)
    assert command.ours("ui") == "repro ui"
    below = ValueError("Get it with: python -m repro data fetch craft. Here: bin/python -m repro runs")
    assert command.hinted(below) == "Get it with: repro data fetch craft. Here: bin/python -m repro runs"
    monkeypatch.setattr(sys, "executable", str(tmp_path / "other" / "python"))
    assert command.ours("ui").endswith("python -m repro ui"), "that repro is another's"


def test_the_interpreter_is_called_as_the_shell_finds_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ours, other = tmp_path / "an environment" / "bin" / "python", tmp_path / "usr" / "python"
    for file in (other, ours):
        file.parent.mkdir(parents=True)
    other.touch(0o755)
    ours.symlink_to(other)  # as an environment's is: the same file, and not the same packages
    monkeypatch.setattr(sys, "executable", str(ours))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{ours.parent}{os.pathsep}{other.parent}")
    assert command.python() == "python"
    monkeypatch.setenv("PATH", str(other.parent))
    assert command.python() == "'an environment/bin/python'"
    monkeypatch.chdir(other.parent)
    assert command.python() == f"'{ours}'"
    monkeypatch.setenv("PATH", str(tmp_path))  # none at all
    assert command.python() == f"'{ours}'"


def test_options_are_written_as_a_shell_reads_them() -> None:
    options: dict[str, Any] = {"data_dir": "my texts/$HOME", "rows": ["h=1", "a b"], "steps": 2, "fork": True}
    text = "--data-dir 'my texts/$HOME' --rows h=1 'a b' --steps 2 --fork"
    assert command_line(options) == text
    assert shlex.split(text)[1] == "my texts/$HOME"


# ---- a reader that has had enough

HERE = os.environ | {"PYTHONPATH": str(ROOT)}


def unread(program: str, n: int = 0, *, both: bool = False) -> tuple[int, str]:
    """Run a program whose output is read up to its n-th line; the exit code, and what it said elsewhere."""
    pipe, elsewhere = subprocess.PIPE, subprocess.STDOUT if both else subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", program], stdout=pipe, stderr=elsewhere, env=HERE) as process:
        assert process.stdout
        for _ in range(n):
            process.stdout.readline()
        process.stdout.close()
        said = process.stderr.read().decode() if process.stderr else ""
        return process.wait(), said


PRINTS = "import sys\nfrom repro.runs.command import ended\ndef main():\n{}sys.exit(ended(main))"
MANY = "    for i in range(100_000):\n        print(i)\n"


def test_a_command_ends_quietly_with_its_reader() -> None:
    assert unread(PRINTS.format(MANY), 20_000) == (141, "")


TRAINS = """
import sys
from repro.runs.command import ended
from repro.runs.command import outlive_reader
from repro.runs.progress import Progress
def main():
    outlive_reader()
    with Progress("table", 1) as progress:
        for i in range(1_000):
            progress.say("a line " * 100)
        print("x" * 100_000, flush=True)
    return 7
sys.exit(ended(main))
"""


@pytest.mark.parametrize("both", [False, True])
def test_training_goes_on_without_its_reader(both: bool) -> None:
    code, said = unread(TRAINS, 1, both=both)
    assert code == 7
    assert said == ("" if both else "Nobody reads the output any more; the runs continue and write their records.\n")


# ---- a disk that has had enough


def on_a_full_disk(program: str, unbuffered: str, *, both: bool = False) -> tuple[int, str]:
    """Run a program whose output goes to a file that takes nothing more; the exit code, and what it said elsewhere."""
    with open("/dev/full", "wb") as full:
        elsewhere, environment = full if both else subprocess.PIPE, HERE | {"PYTHONUNBUFFERED": unbuffered}
        words = [sys.executable, "-c", program]
        done = subprocess.run(words, stdout=full, stderr=elsewhere, env=environment, check=False)
    return done.returncode, "" if both else done.stderr.decode()


@pytest.mark.parametrize(("lines", "unbuffered"), [(1, ""), (100_000, "1")])
def test_a_command_whose_output_has_no_room_says_so_once(lines: int, unbuffered: str) -> None:
    code, said = on_a_full_disk(PRINTS.format(MANY.replace("100_000", str(lines))), unbuffered)
    assert code == 74
    assert said.startswith("error: /dev/stdout cannot be written to: No space left on device (")
    assert said.count("\n") == 1


@pytest.mark.parametrize(("both", "unbuffered"), [(False, "1"), (True, "")])
def test_training_goes_on_without_room_for_its_output(both: bool, unbuffered: str) -> None:
    complaint = 'print("a warning", file=sys.stderr, flush=True)\n    return 7'
    code, said = on_a_full_disk(TRAINS.replace("return 7", complaint), unbuffered, both=both)
    assert code == 7
    told = "The output cannot be written (No space left on device): it has gaps from here on; the runs continue and "
    assert said == ("" if both else f"{told}write their records.\na warning\n")


SHORT_OF_ROOM = """    import resource
    from repro.runs.command import outlive_reader
    outlive_reader()
    for limit, word in ((100, "before"), (5, "lost"), (100, "after")):
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
        print(word, flush=True)
"""


def test_the_output_of_training_goes_on_where_there_is_room_again(tmp_path: Path) -> None:
    command = [sys.executable, "-c", PRINTS.format(SHORT_OF_ROOM)]
    with open(tmp_path / "log", "wb") as log:
        done = subprocess.run(command, stdout=log, stderr=subprocess.PIPE, check=False, env=HERE)
    assert (done.returncode, (tmp_path / "log").read_text()) == (0, "before\nafter\n")
    assert done.stderr.startswith(b"The output cannot be written (File too large)")


@pytest.mark.parametrize("lasting", ["", "command.outlive_reader()"])
def test_a_pipe_that_does_not_wait_gets_every_line(lasting: str) -> None:
    program = PRINTS.format(f"""    import os
    from repro.runs import command
    os.set_blocking(1, False)
    {lasting}
    for number in range(2_000):
        print(f"{{number:0100}}")
""")
    with subprocess.Popen([sys.executable, "-c", program], cwd=ROOT, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        time.sleep(1.0)  # the pipe is full by now, as 200 kB are more than it holds
        lines = process.stdout.read().split()
    assert (process.returncode, len(lines), len({*lines})) == (0, 2_000, 2_000)


# ---- the first line


@pytest.mark.parametrize(
    ("command", "first"),
    [
        (["experiments/table3_A.py", "--scale=smoke"], "table3_A at scale smoke: 5 runs, en-de, seed 1"),
        (["experiments/table3_A.py", "--devices=2"], "table3_A at scale laptop-2-devices: 2 processes begin"),
        (["experiments/figures.py", "--scale=smoke"], "Figures of results/own/smoke"),
        (["repro", "data", "prepare", "grammar-en-de"], "grammar-en-de: tokens and ids go to cache"),
        (["repro", "tracking", "sync", "."], "Opening sqlite:///mlflow.db"),
        (["experiments/table1.py"], "Table 1: layers are built, counted and timed for results/own/table1"),
    ],
)
def test_the_first_line_comes_before_slow_imports(command: list[str], first: str) -> None:
    assert lines_until_heavy(*command)[0] == first


# ---- real signals to this process: the first asks, the second ends, and before training the first does


class Ended(BaseException):
    """Stands for the end of the process."""


@pytest.fixture
def signals(monkeypatch: pytest.MonkeyPatch) -> Iterator[Signals]:
    def end(code: int) -> None:
        raise Ended(code)

    monkeypatch.delenv("TORCHELASTIC_RUN_ID", raising=False)
    monkeypatch.setattr(os, "_exit", end)
    with own_signals():
        yield Signals()


def test_before_training_it_ends_the_process(signals: Signals, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        os.kill(os.getpid(), signal.SIGTERM)
    assert stopped.value.code == 128 + signal.SIGTERM
    assert capfd.readouterr().err == "\nStopped before training.\n"


@pytest.mark.parametrize("number", STOPPING)
def test_in_training_it_asks_and_the_second_ends_it_at_once(
    signals: Signals, number: signal.Signals, capfd: pytest.CaptureFixture[str]
) -> None:
    signals.training = True
    assert not signals.should_stop()
    os.kill(os.getpid(), number)
    assert signals.should_stop()
    assert signals.received == number
    # the answer is there before anybody has looked at the flag
    assert capfd.readouterr().err == "\nStopping after this step, with a checkpoint. A second signal stops at once.\n"
    with pytest.raises(Ended) as ended:
        os.kill(os.getpid(), signal.SIGTERM)
    assert ended.value.args == (143,)
    assert capfd.readouterr().err.startswith("\nStopped at once; ")


def test_a_signal_is_obeyed_though_nobody_reads_the_answer(signals: Signals, monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(*_: Any) -> int:
        raise BrokenPipeError

    signals.training = True
    with monkeypatch.context() as then:
        then.setattr(os, "write", gone)
        os.kill(os.getpid(), signal.SIGTERM)
    assert signals.should_stop()


@pytest.mark.parametrize(("rank", "end"), [("0", "A second signal stops at once.\n\n"), ("1", "")])
def test_the_first_of_several_processes_answers_on_a_terminal_above_lines_that_move(
    signals: Signals, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, rank: str, end: str
) -> None:
    signals.training = True
    monkeypatch.setenv("RANK", rank)
    monkeypatch.setattr(os, "isatty", lambda number: number == 2)
    os.kill(os.getpid(), signal.SIGINT)
    assert signals.should_stop()
    assert (said := capfd.readouterr().err).endswith(end)
    assert bool(said) == bool(end)


def test_an_echo_of_the_launcher_is_not_a_second_signal(signals: Signals, monkeypatch: pytest.MonkeyPatch) -> None:
    # Ctrl-C reaches the processes from the terminal, and again from the launcher that had it too
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "1")
    signals.training = True
    for _ in range(2):
        os.kill(os.getpid(), signal.SIGINT)
    assert signals.received == signal.SIGINT
    signals.since -= 6.0
    with pytest.raises(Ended):
        os.kill(os.getpid(), signal.SIGINT)


def test_what_is_ignored_stays_ignored(signals: Signals) -> None:
    signals.leave()
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup does
    Signals()
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN


def test_signals_need_the_main_thread() -> None:
    # others get no signals
    with ThreadPoolExecutor(1) as pool, pytest.raises(ValueError, match="Start the experiment's file as a process of"):
        pool.submit(Signals).result()


def test_a_process_stops_with_its_launcher_or_the_one_that_was_named(
    signals: Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as then:
        then.setenv("TORCHELASTIC_RUN_ID", "none")
        one_of_several = Signals()
        assert not one_of_several.should_stop()
        then.setattr(os, "getppid", lambda: -1)
        assert one_of_several.should_stop()
        assert not signals.should_stop()  # of a shell that has ended nothing is concluded
    for parent, stops in ((os.getppid(), False), (os.getpid(), True)):
        monkeypatch.setenv(PARENT, str(parent))
        assert Signals().should_stop() is stops
        assert PARENT not in os.environ  # a process that this one starts has another parent
