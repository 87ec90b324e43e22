"""What is advised where something optional is missing can be typed: with a clone, beside it and without one."""

import re
import tomllib
from pathlib import Path

import pytest

from repro.render import extras

ROOT = Path(__file__).parents[2]


def test_in_the_clone_the_versions_are_those_that_were_tested(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    assert extras.install("fast") == "pip install -c constraints.txt -e '.[fast]'"


def test_from_elsewhere_the_clone_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clone = tmp_path / "my clone"
    clone.mkdir()
    (clone / "constraints.txt").touch()
    (tmp_path / "work").mkdir()
    monkeypatch.setattr(extras, "CLONE", clone)
    monkeypatch.chdir(tmp_path / "work")
    assert extras.install("ray") == "pip install -c '../my clone/constraints.txt' -e '../my clone[ray]'"


def test_without_a_clone_the_project_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extras, "CLONE", tmp_path)
    assert extras.install("fast") == "pip install 'attention-repro[fast]'"


def test_every_extra_that_is_advised_exists() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    advised = {
        extra
        for file in (ROOT / "repro").rglob("*.py")
        for extra in re.findall(r"""\b(?:install\(["']|attention-repro\[)(\w+)""", file.read_text("utf-8"))
    }
    assert project["name"] == extras.PROJECT
    assert {"fast", "ray", "test"} <= advised <= set(project["optional-dependencies"])
