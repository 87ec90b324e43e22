"""Tables by their names, with the files that came with the code."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from typed import typed

from repro.cli import commands
from repro.results import places
from repro.runs import command

ROOT = Path(__file__).parents[2]


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
