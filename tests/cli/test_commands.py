"""The one command: it lists what there is, answers at once, and takes no half words."""

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from typed import ROOT, typed

import repro
from repro.cli import commands
from repro.cli.commands import COMMANDS, overview
from repro.results import places
from repro.results.provenance import fingerprint
from repro.runs import command

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


# Tables by their names ------------------------------------------------------------------------------------


def test_it_lists_every_experiment_with_its_question(capsys: pytest.CaptureFixture[str]) -> None:
    lines = typed(capsys, "run").split("\n")
    listed = [line.split()[0] for line in lines if line.startswith("  ")]
    assert listed == sorted(file.stem for file in (ROOT / "experiments").glob("*.py"))
    [of_b] = [line for line in lines if line.startswith("  table3_B ")]
    assert of_b.endswith("  Table 3 (B): narrower keys.")


def test_an_unknown_table_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    said = typed(capsys, "run", "table3_a", "--dry-run", code=2)
    assert said.startswith("error: table3_a is not an experiment; did you mean table3_A?")
    assert "table4" in said


def test_it_does_what_the_file_does(tmp_path: Path) -> None:
    """Where no checkout is."""
    words = ["table3_E", "--scale", "smoke", "--dry-run", "--rows", "learned positions"]
    ran = subprocess.run([sys.executable, "-m", "repro", "run", *words], cwd=tmp_path, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert "table3_E at scale smoke: 1 run on grammar" in ran.stdout


def test_the_files_of_an_installed_package_are_inside_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(places, "PACKAGE", tmp_path / "site-packages" / "repro")
    (tmp_path / "site-packages" / "experiments").mkdir(parents=True)  # of somebody else
    (tmp_path / "site-packages" / "repro" / "experiments").mkdir(parents=True)
    assert places.experiment_files() == tmp_path / "site-packages" / "repro" / "experiments"
    (tmp_path / "site-packages" / "repro" / "experiments").rmdir()
    assert places.experiment_files() == tmp_path / "site-packages" / "experiments"


def test_the_next_command_of_an_installed_table_is_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "PACKAGE", tmp_path)
    file = tmp_path / "experiments" / "table3_A.py"
    monkeypatch.setattr(sys.modules["__main__"], "__file__", str(file), raising=False)
    file.parent.mkdir()
    monkeypatch.setattr(shutil, "which", lambda _: None)
    for called, words in (("/usr/bin/repro", "repro"), ("__main__.py", f"{command.python()} -m repro")):
        monkeypatch.setattr(sys, "argv", [called])
        assert command.experiment_command("table3_A") == f"{words} run table3_A"
        assert f"{words} run table3_A --help" in commands.overview()
    monkeypatch.setattr(sys.modules["__main__"], "__file__", str(tmp_path / "of_mine.py"))
    assert command.experiment_command("table3_A").endswith("repro run table3_A"), "a program of one's own"


def test_the_next_command_in_a_checkout_names_the_file_from_where_one_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(command.PACKAGE.parent)
    assert command.experiment_command("table3_A") == f"{command.python()} experiments/table3_A.py"
    monkeypatch.chdir(tmp_path)
    file = command.experiment_command("table3_A").split()[-1]
    assert Path(file).samefile(command.PACKAGE.parent / "experiments" / "table3_A.py")
