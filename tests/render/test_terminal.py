"""Whatever a name holds and wherever the output leads: it is shown as text, and nothing ends for it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from repro.render.terminal import Shown, beneath
from repro.render.text import shown

ROOT = Path(__file__).parents[2]
HOSTILE = "60.7 ± 1.3 Δ − ü \x1b]0;title\x07\x1b[31mred\x9b2J\r\x7f\u202e \udcff"
COMMAND = f"""
import os, sys
from repro.runs.command import ended
from repro.runs.progress import Progress

def main():
    journal = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT)
    text = {HOSTILE!a}
    print(text)
    print(text, file=sys.stderr)
    with Progress(text, 2) as progress:
        lane = progress.lane()
        lane.begin(text, 1)
        progress.say(text)
        lane.step(1, loss=2.5)
    os.write(2, b"a library's own words\\n")
    sys.stdout.flush()
    assert not os.fstat(journal).st_size, "another's words stand in our file"
    return 7

sys.exit(ended(main))
"""


def said(folder: Path, redirection: str = "", **surroundings: str) -> tuple[int, bytes]:
    """The exit code of the command, started by a shell, and all that it printed."""
    line = f'exec "$@" {redirection}'
    command = ["sh", "-c", line, "sh", sys.executable, "-c", COMMAND, str(folder / "journal")]
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONIOENCODING"}  # tox sets it
    environment = inherited | {"PYTHONPATH": str(ROOT), "PYTHONUTF8": "1"} | surroundings
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    return done.returncode, done.stdout


def controls(text: bytes) -> set[int]:
    return {byte for byte in text if byte < 32 or byte == 127} - {ord("\n")}


ASCII = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii"}


@pytest.mark.parametrize("surroundings", [{}, ASCII], ids=["utf-8", "ascii"])
def test_hostile_text_is_shown_as_text_on_any_console(tmp_path: Path, surroundings: dict[str, str]) -> None:
    code, output = said(tmp_path, **surroundings)
    assert code == 7, output.decode(errors="replace")
    assert controls(output) == set()
    assert (
        output.count(rb"\x1b[31mred\x9b2J\r\x7f\u202e \udcff") == 5
    )  # printed, warned, told, the table's name, the run's
    if surroundings:
        assert output.isascii()
        assert output.count(rb"60.7 \xb1 1.3 \u0394 \u2212 \xfc") == 5
    else:
        assert output.decode().count("60.7 ± 1.3 Δ − ü") == 5


@pytest.mark.parametrize("closed", [1, 2])
def test_a_closed_stream_does_no_harm(tmp_path: Path, closed: int) -> None:
    code, output = said(tmp_path, f"{closed}>&-")
    assert (code, bool(output)) == (7, True), output.decode(errors="replace")


def test_only_what_a_terminal_obeys_is_changed() -> None:
    kept = "".join(map(chr, (9, 10, *range(32, 127), 0xA0, 0xE4, 0x2028, 0x1F600)))
    assert shown(kept) == kept
    assert shown("\x1b[2J\x00\u2066") == r"\x1b[2J\x00\u2066"


def test_a_progress_bar_can_still_command_the_terminal() -> None:
    class Kept(list[str]):
        write = list.append

    stream = Shown(Kept())
    assert stream.write("\x1b[1m") == 4
    beneath(stream).write("\x1b[1m")
    assert list(beneath(stream)) == [r"\x1b[1m", "\x1b[1m"]
