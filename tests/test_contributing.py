"""The worked example is right: blocks of CONTRIBUTING.md and docs/extending.md, put where they say, make the table."""

import inspect
import os
import re
import shutil
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import NamedTuple

import pytest

from repro.model.config import Hyper
from repro.model.transformer import Transformer
from repro.results import record

ROOT = Path(__file__).parent.parent


class Block(NamedTuple):
    """A block of the page, and what to do with it."""

    do: str
    text: str


def blocks() -> list[Block]:
    """All blocks with a mark, in order."""
    page = "".join((ROOT / name).read_text("utf-8") for name in ("CONTRIBUTING.md", "docs/extending.md"))
    found = re.findall(r"^<!-- example: ([^\n]*) -->\n```\w+\n(.*?)^```$", page, flags=re.MULTILINE | re.DOTALL)
    assert len(found) == page.count("<!-- example:"), "a mark stands on the line before its block"
    return [Block(*one) for one in found]


def follow(block: Block, checkout: Path) -> None:
    """Do with a block what the page says."""
    environment = {**os.environ, "PYTHONPATH": str(checkout), "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin"}
    environment.pop("REPRO_DATA", None)
    if file := re.fullmatch("new file (.*)", block.do):
        assert not (checkout / file[1]).exists()
        (checkout / file[1]).write_text(block.text, "utf-8")
    elif place := re.fullmatch('in (.*) after "(.*)"', block.do):
        before = (checkout / place[1]).read_text("utf-8")
        assert before.count(f"\n{place[2]}\n") == 1, block.do
        after = before.replace(f"\n{place[2]}\n", f"\n{place[2]}\n{block.text}")
        (checkout / place[1]).write_text(after, "utf-8")
    else:
        command = {"python": ["python", "-c", block.text], "shell": ["sh", "-ec", block.text]}[block.do]
        done = subprocess.run(command, cwd=checkout, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the sources in which the whole page was followed."""
    folder = tmp_path_factory.mktemp("checkout")
    for name in ("repro", "experiments", "tests"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", folder)
    for block in blocks():
        follow(block, folder)
    return folder


def test_the_readme_has_the_same_file() -> None:
    [shown] = re.findall(r"^```python\n(.*?)^```$", (ROOT / "README.md").read_text("utf-8"), re.MULTILINE | re.DOTALL)
    assert shown == blocks()[0].text


def test_each_field_of_a_row_and_each_seam_is_named() -> None:
    page = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    wanted = [field.name for field in fields(Hyper)] + [
        name for name, one in inspect.signature(Transformer).parameters.items() if one.kind is one.KEYWORD_ONLY
    ]
    assert [name for name in wanted if f"`{name}`" not in page] == []


@pytest.mark.slow
def test_the_example_makes_its_table(checkout: Path) -> None:
    results = checkout / "results" / "own" / "counting"
    records = [record.load(file) for file in sorted(results.glob("*/*.json"))]
    assert sorted(one.row for one in records) == ["base", "d_ff / 2", "d_ff x 2", "no attention"]
    assert {one.status for one in records} == {"finished"}
    assert {(one.scale, one.corpus["name"], one.cost["steps"]) for one in records} == {("counting", "counting", 4)}
    d_ff = {one.row: one.hyper["d_ff"] for one in records}
    assert d_ff == {"base": 256, "d_ff x 2": 512, "d_ff / 2": 128, "no attention": 256}
    systems = {one.row: one.system or "" for one in records}
    assert [row for row, system in systems.items() if "LastWord" in system] == ["no attention"]
    table = (results / "feed_forward.md").read_text("utf-8")
    assert "d_ff / 2" in table
    assert "25.4" in table  # the paper's number, beside ours


@pytest.mark.slow
def test_other_text_under_the_name_is_refused(checkout: Path) -> None:
    file = checkout / "data" / "counting" / "test.de"
    file.write_text(file.read_text("utf-8").replace("Birnen", "Beeren"), "utf-8")
    with pytest.raises(AssertionError, match="SHA-256"):
        follow(Block("shell", "python experiments/feed_forward.py --scale counting\n"), checkout)
