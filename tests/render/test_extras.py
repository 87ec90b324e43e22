"""What is advised where something optional is missing can be typed: with a clone, beside it and without one."""

import re
import tomllib
from pathlib import Path

import pytest

from repro.render import extras

ROOT = Path(__file__).parents[2]


def test_the_command_can_be_typed_in_the_clone_beside_it_and_without_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    assert extras.install("fast") == "pip install -c constraints.txt -e '.[fast]'", "the versions that were tested"
    clone, work = tmp_path / "my clone", tmp_path / "work"
    for folder in (clone, work):
        folder.mkdir()
    (clone / "constraints.txt").touch()
    monkeypatch.chdir(work)
    monkeypatch.setattr(extras, "CLONE", clone)
    assert extras.install("ray") == "pip install -c '../my clone/constraints.txt' -e '../my clone[ray]'"
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
