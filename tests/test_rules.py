"""What the package never does and a linter does not know, each rule with its reason and a planted line that breaks it.

What a linter knows (no pickle, no shell, no evaluated text, no global random numbers) stands in pyproject.toml.
"""

import ast
import functools
import re
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = {path.relative_to(ROOT / "repro").as_posix(): path for path in (ROOT / "repro").rglob("*.py")}
ALL = [path for name in ("repro", "experiments", "tests", "benchmarks") for path in (ROOT / name).rglob("*.py")]
OPENERS = {"open": "r", "io.open": "r", "os.fdopen": "r", "gzip.open": "rb", "bz2.open": "rb", "lzma.open": "rb"}


def dotted(node: ast.expr) -> str:
    """`a.b.c` for the expression a.b.c; `?` stands for what is not a name."""
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else "?"


def keyword(call: ast.Call, name: str) -> ast.expr | None:
    return next((word.value for word in call.keywords if word.arg == name), None)


def mode(call: ast.Call) -> str:
    """The mode in which the call opens a file: "" where it opens none, "w?" where it cannot be told."""
    name = dotted(call.func)
    if name not in OPENERS and (name.startswith(("os.", "webbrowser.", "tarfile.")) or not name.endswith(".open")):
        return ""
    position, default = (1, OPENERS[name]) if name in OPENERS else (0, "r")  # path.open(mode) has no path
    node = call.args[position] if len(call.args) > position else keyword(call, "mode")
    if node is None:
        return default
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else "w?"


def called(*names: str) -> Callable[[ast.Call], bool]:
    """Whether the call is one of `names`: `eval` means the built-in, `.load` any method of that name."""
    return lambda call: any(
        dotted(call.func).endswith(name) if name.startswith(".") else dotted(call.func) == name for name in names
    )


WRITES_BY_NAME = called(
    ".write_text", ".write_bytes", ".touch", ".rename", ".tofile", ".dump", ".savefig", ".to_pickle", ".to_parquet",
    ".save_model", ".save_pretrained",
)  # fmt: skip
WRITERS = {  # that may not even be named: who passes os.replace on writes as well
    f"{module}.{name}"
    for module, names in {
        "os": "rename replace link symlink truncate ftruncate write pwrite sendfile",
        "shutil": "move copy copy2 copyfile copytree",
        "np": "save savez savez_compressed savetxt",
        "tempfile": "NamedTemporaryFile TemporaryFile TemporaryDirectory mkstemp mkdtemp",
        "safetensors.torch": "save_file",
        "sqlite3": "connect",
        "json": "dump",
    }.items()
    for name in names.split()
}
WRITERS_ALLOWED = {  # module -> what it names, and why that is no half file
    "runs/command.py": {"os.write"},  # last words to the terminal: of a process, of output whose reader has gone
    "storage/atomic.py": {"os.replace", "os.write", "os.ftruncate"},  # the one place
    "decoding/ctranslate.py": {"tempfile.TemporaryDirectory"},  # what the library writes, before atomic.py copies it
    "decoding/backend.py": {"tempfile.TemporaryDirectory"},  # a model for as long as it is asked
    "claims/tested.py": {"tempfile.TemporaryDirectory"},  # what pytest reports, before it is read
    "runs/on_ray.py": {"tempfile.TemporaryDirectory"},  # tables that nobody reads: the sweep makes its own
    "tracking/client.py": {"sqlite3.connect"},  # turns a switch of MLflow's own database
    # the last words of a server: no name, gone with it; MLflow's own database, opened to be read
    "cli/tracking.py": {"tempfile.TemporaryFile", "sqlite3.connect"},
}


class Rule(NamedTuple):
    """What is forbidden, why, who may do it all the same, and a line that breaks it."""

    reason: str
    breaks: Callable[[ast.Call], bool]
    planted: str
    allowed: tuple[str, ...] = ()


HALF = "never half a file: repro/storage/atomic.py writes"
RULES = {
    "splitlines": Rule(
        "a line ends at \\n only; splitlines also splits at U+2028, U+0085, VT and FF",
        called(".splitlines"),
        "text.splitlines()",
    ),
    "text mode": Rule(
        "a text file is bytes split at \\n: text mode also ends lines at \\r",
        lambda call: "b" not in (mode(call) or "b") or called(".read_text")(call),
        "open(path, encoding='utf-8')",
    ),
    "hash": Rule("hash() of text differs in every process", called("hash"), "hash('x')"),
    "folders": Rule(
        "a disk that refuses is a DiskError with the folder's name: make_folder of repro/storage/atomic.py",
        called(".mkdir", "os.mkdir", "os.makedirs"),
        "Path('runs').mkdir(parents=True)",
        allowed=("storage/atomic.py", "storage/folder_cache.py", "storage/lease.py"),  # the others: where it is absent
    ),
    "open for writing": Rule(
        HALF,
        lambda call: bool(set(mode(call)) & set("wax+")),
        "open(path, 'w')",
        allowed=("runs/pool.py", "runs/on_ray.py"),  # what a process prints, which only grows
    ),
    "os.open for writing": Rule(
        HALF,
        lambda call: dotted(call.func) == "os.open" and "O_RDONLY" not in ast.unparse(call),
        "os.open(path, os.O_WRONLY)",
        allowed=("storage/atomic.py", "runs/command.py", "render/terminal.py"),  # the others: /dev/null
    ),
    "write by name": Rule(
        HALF,
        lambda call: WRITES_BY_NAME(call) and not dotted(call.func).startswith("atomic."),
        "Path('x').write_text('y')",
        allowed=(
            "training/cpu_tuning.py",  # turns a switch of the kernel under /proc
            "storage/folder_cache.py",  # a whole folder that takes its name in one step
            "training/checkpoint.py",  # a damaged checkpoint loses its name
            "figures/style.py",  # into a file that atomic.py has opened
        ),
    ),
    "Path.replace": Rule(
        HALF,  # with two arguments it is of a text
        lambda call: called(".replace")(call) and len(call.args) == 1 and not call.keywords,
        "path.replace(other)",
        # an archive takes its name when its hash is known
        allowed=("corpora/fetch.py",),
    ),
    "to_csv": Rule(
        HALF,
        lambda call: called(".to_csv", ".to_json", ".to_latex", ".to_html")(call) and bool(call.args),
        "frame.to_csv(path)",
    ),
    "memmap": Rule(
        HALF,
        lambda call: called("np.memmap", "np.lib.format.open_memmap")(call) and "mode='r'" not in ast.unparse(call),
        "np.memmap(path, np.uint16)",
    ),
}
HARMLESS = """
open(path, 'rb')
gzip.open(path)
path.open('rb')
os.open(folder, os.O_RDONLY)
np.memmap(path, dtype, mode='r')
frame.to_csv(index=False)
text.replace('a', 'b')
replace(settings, seed=2)
"""


@functools.cache
def nodes(source: bytes | str) -> list[ast.Call | ast.Attribute | ast.ImportFrom]:
    return [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call | ast.Attribute | ast.ImportFrom)]


def calls(source: bytes | str) -> list[ast.Call]:
    return [node for node in nodes(source) if isinstance(node, ast.Call)]


def test_the_package_keeps_the_rules() -> None:
    found = [
        f"repro/{file}:{call.lineno}: {ast.unparse(call)}: {name}: {rule.reason}"
        for file, path in PACKAGE.items()
        for call in calls(path.read_bytes())
        for name, rule in RULES.items()
        if file not in rule.allowed and rule.breaks(call)
    ]
    assert found == []


@pytest.mark.parametrize("name", RULES)
def test_a_rule_can_be_broken_and_allows_what_is_harmless(name: str) -> None:
    assert any(RULES[name].breaks(call) for call in calls(RULES[name].planted))
    assert [ast.unparse(call) for call in calls(HARMLESS) if RULES[name].breaks(call)] == []


def writers(source: bytes | str) -> set[str]:
    """The names of `WRITERS` that stand in a source, called or not, imported or not."""
    found: set[str] = set()
    for node in nodes(source):
        if isinstance(node, ast.Attribute):
            found.add(dotted(node))
        elif isinstance(node, ast.ImportFrom):
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found & WRITERS


def test_one_module_writes() -> None:
    found = {file: writers(path.read_bytes()) for file, path in PACKAGE.items()}
    assert {file: names for file, names in found.items() if names} == WRITERS_ALLOWED
    assert writers("again(os.write, file, data)\nfrom shutil import copytree") == {"os.write", "shutil.copytree"}


def test_what_is_opened_for_writing_is_new_or_only_grows() -> None:
    opened = [
        call for call in calls(PACKAGE["storage/atomic.py"].read_bytes()) if RULES["os.open for writing"].breaks(call)
    ]
    flags = [set(re.findall(r"O_([A-Z]+)", ast.unparse(call))) - {"CLOEXEC"} for call in opened]
    assert flags == [{"WRONLY", "CREAT", "EXCL"}, {"RDWR", "CREAT", "APPEND"}]


def test_no_command_takes_abbreviations() -> None:
    # an abbreviation means another option as soon as there is one
    naming = [source for path in ALL if b"ArgumentParser" in (source := path.read_bytes())]
    making = [call for source in naming for call in calls(source) if called(".ArgumentParser")(call)]
    assert making
    assert [ast.unparse(call) for call in making if "allow_abbrev=False" not in ast.unparse(call)] == []


def test_every_file_has_a_name_of_its_own() -> None:
    vague = {"util", "utils", "helper", "helpers", "common", "misc", "tools"}
    assert [path for path in ALL if {path.stem, *path.parent.parts[-1:]} & vague] == []


def test_nothing_is_left_for_later() -> None:
    marks = [word.encode() for word in ("TO" + "DO", "FIX" + "ME", "XX" + "X:")]
    assert [path for path in ALL if any(mark in path.read_bytes() for mark in marks)] == []
