"""Each command in the documents is understood; each block of them says what runs it in CI, or why nothing does."""

import contextlib
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from repro.cli import commands
from repro.runs.options import Options, chosen_scale

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")] + sorted((ROOT / "docs").glob("*.md"))
BLOCK = re.compile(r"^( *)```\w*\n(.*?)^ *```\n\n?(?: *<!-- ((?:not )?in CI): (.*?) -->\n)?", re.MULTILINE | re.DOTALL)
STARTS = r"(?:[\w./-]*/)?(?:python3?|pip|repro|tox|ruff|pre-commit|mkdocs|ray|torchrun|srun|docker)"
TYPED = re.compile(rf"^\s*{STARTS}(?: |$)")
IN_LINE = re.compile(r"`((?:\.venv/bin/)?python (?:-m repro|experiments/)[^`]*)`")


class Block(NamedTuple):
    """A code block with commands in it."""

    page: str
    lines: list[str]
    says: str  # "in CI", "not in CI" or ""
    why: str


def blocks(page: Path) -> list[Block]:
    """The blocks of a page that hold a command, but those that other tests take from the page."""
    text = page.read_text("utf-8")
    found = []
    for match in BLOCK.finditer(text):
        lines = [line.split("  #")[0].strip() for line in match[2].split("\n") if TYPED.match(line)]
        if lines and not re.search(r"<!-- example: [^\n]* -->\n\Z", text[: match.start()]):
            found.append(Block(page.name, lines, match[3] or "", match[4] or ""))
    return found


BLOCKS = [block for page in PAGES for block in blocks(page)]
SPOKEN = [(page.name, typed) for page in PAGES for typed in IN_LINE.findall(page.read_text("utf-8"))]
LINES = [(block.page, line) for block in BLOCKS for line in block.lines] + SPOKEN


def steps(line: str) -> list[list[str]]:
    """The words of each command of a line: what stands between && and behind the name of the program."""
    filled = line.replace("$I/$N", "1/2").replace("...", "")
    return [shlex.split(step.split(" > ")[0].split(" < ")[0]) for step in filled.split("&&")]


def test_the_blocks_are_found() -> None:
    assert sum(len(block.lines) for block in BLOCKS) > 40


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: f"{block.page}: {block.lines[0]}")
def test_each_block_says_what_runs_it_in_ci_or_why_nothing_does(block: Block) -> None:
    assert block.says, (
        "expected <!-- in CI: `tests/...` --> or <!-- not in CI: the reason --> in the line below the block"
    )
    assert block.says == "in CI" or len(block.why.split()) > 2, "a reason is a sentence"
    references = re.findall(r"`([^`]+)`", block.why)
    assert references or block.says == "not in CI", "expected the test, or the environment of tox, that runs it"
    for reference in references:
        if environment := re.fullmatch(r"tox -e (\w+)", reference):
            settings = (ROOT / "tox.ini").read_text("utf-8")
            listed = re.findall(r"^env_list = (.*)$", settings, flags=re.MULTILINE)
            beside = re.findall(r'\{\[testenv:(\w+)\]commands\}"', settings)  # what `whole` runs
            assert environment[1] in {*listed[0].split(", "), *beside}, reference
        elif reference.startswith(("tests/", ".ci/")):
            file, _, test = reference.partition("::")
            assert (ROOT / file).exists(), reference
            assert not test or f"def {test}(" in (ROOT / file).read_text("utf-8"), reference


@pytest.mark.parametrize(("page", "line"), LINES)
def test_each_command_is_one_of_ours(page: str, line: str, capsys: pytest.CaptureFixture[str]) -> None:
    for words in steps(line):
        program, arguments = words[0].rpartition("/")[2], words[1:]
        if program.startswith("python") and arguments[:2] == ["-m", "repro"]:
            program, arguments = "repro", arguments[2:]
        if program == "repro" and arguments[:1] == ["run"] and len(arguments) > 1:
            program, arguments = "python", [f"experiments/{arguments[1]}.py", *arguments[2:]]
        if program == "repro" and arguments not in ([], ["--help"], ["--version"]):
            understood(arguments, capsys)
        elif program.startswith("python") and arguments and arguments[0].endswith(".py"):
            assert (ROOT / arguments[0]).is_file() or arguments[0].endswith("/feed_forward.py"), arguments[0]
            if arguments[0].startswith("experiments/") and "figures" not in arguments[0]:
                chosen_scale(Options.read(Path(arguments[0]).stem, arguments[1:]))


def understood(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """The command exists, and its --help has every option."""
    assert arguments[0] in commands.COMMANDS
    inner = arguments[:2] if arguments[0] in ("data", "tracking") else arguments[:1]
    with contextlib.suppress(SystemExit):  # argparse ends so
        commands.main([*inner, "--help"])
    told = capsys.readouterr().out
    assert told.startswith("usage: ")
    offered = set(re.findall(r"--[a-z][\w-]*", told))
    assert {word for word in arguments if word.startswith("--")} <= offered


def shows(line: str) -> bool:
    """Whether it trains, fetches and writes nothing."""
    return bool(re.search(r"--(dry-run|list)\b", line))


@pytest.mark.parametrize("line", sorted({line.removeprefix(".venv/bin/") for _, line in LINES if shows(line)}))
def test_what_only_shows_is_run(line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("REPRO_DATA", raising=False)
    [words] = steps(line)
    words = [str(ROOT / word) if word.startswith("experiments/") else word for word in words]
    done = subprocess.run([sys.executable, *words[1:]], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout
    assert list(tmp_path.iterdir()) == []


GPU = (ROOT / "docs/gpu.md").read_text("utf-8")


@pytest.mark.parametrize(("name", "cost"), re.findall(r"^\| `(\w+)` \| ([\d.]+ \| [\d.]+) \|$", GPU, re.MULTILINE))
def test_hours_of_a_card_are_those_of_the_forecast(name: str, cost: str) -> None:
    words = [f"experiments/{name}.py", "--scale=single_gpu", "--dry-run", "--hardware=h100", "--price=2.5"]
    told = subprocess.run([sys.executable, *words], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert re.findall(r": ([\d.]+) hours, .*, ([\d.]+) in money\.", told) == [tuple(cost.split(" | "))]
    assert told.partition("One h100: ")[2].partition(";")[0] in GPU
