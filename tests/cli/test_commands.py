"""The one command: it lists what there is, answers at once, and takes no half words."""

import re
import subprocess
import sys
import tomllib

import pytest
from typed import ROOT, typed

import repro
from repro.cli import commands
from repro.cli.commands import COMMANDS, overview
from repro.results.provenance import fingerprint

PARTS = ("data fetch", "data import", "data prepare", "tracking sync")


def test_without_a_word_it_lists_what_there_is(capsys: pytest.CaptureFixture[str]) -> None:
    for words in ([], ["-h"], ["--help"]):
        assert typed(capsys, *words) == overview() + "\n"
    assert [line.split()[0] for line in overview().split("\n") if line.startswith("  ")][:13] == list(COMMANDS)


def test_it_says_which_code_it_is(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    assert repro.__version__ == version
    assert typed(capsys, "--version") == f"attention-repro {version}, code {fingerprint()[:12]}\n"
    monkeypatch.setattr("repro.runs.command.DISTRIBUTION", "nothing-that-pip-knows")
    assert typed(capsys, "--version").startswith("attention-repro not installed, code ")


HELP = """
import sys
from repro.cli.commands import main

for words in sys.argv[1:]:
    try:
        main([*words.split(), "--help"])
    except SystemExit as stopped:
        assert not stopped.code, (words, stopped.code)
    heavy = {"torch", "lightning", "mlflow", "pandas", "scipy", "tokenizers", "requests"} & {*sys.modules}
    assert not heavy, (words, heavy)
"""


def test_help_answers_at_once() -> None:
    # torch alone costs three seconds, SciPy half a one
    words = sorted({"", *COMMANDS, *PARTS})
    done = subprocess.run([sys.executable, "-c", HELP, *words], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("words", ["data prepare grammar-en-de", "translate latest"])
def test_no_option_may_be_cut_short(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    options = {*re.findall(r"--[a-z][a-z-]+", typed(capsys, *words.split(), "--help"))} - {"--help"}
    for short in sorted(option[:-1] for option in options):
        said = typed(capsys, *words.split(), short, "1", code=2)
        assert said.startswith(f"error: unrecognized arguments: {short} 1;"), said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("traslate", "error: traslate is not a command; did you mean translate? Commands are run, data, runs,"),
        ("--check", "error: --check is not a command. Commands are"),
        ("translate", "error: the following arguments are required: run; --help says what is expected\n"),
        ("data prepare grammar-en-de --clean", "error: argument --clean: expected at least one argument; --help says"),
        ("translate latest --backend=other", "error: argument --backend: invalid choice: 'other'"),
        ("tracking snyc", "error: argument command: invalid choice: 'snyc'"),
        ("report publish", "error: unrecognized arguments: publish; --help says what is expected\n"),
    ],
)
def test_what_cannot_be_understood_is_said_in_one_line(
    words: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    error = typed(capsys, *words.split(), code=2)
    assert error.startswith(said)
    assert error.count("\n") == 1


def test_the_console_command_is_the_same(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert project["scripts"] == {"repro": f"{commands.console.__module__}:{commands.console.__name__}"}
    monkeypatch.setattr(sys, "argv", ["/somewhere/bin/repro"])
    with pytest.raises(SystemExit) as stopped:
        commands.console()
    assert not stopped.value.code
    assert capsys.readouterr().out.startswith("usage: repro COMMAND ...\n")
