"""What the package never does, each rule with its reason and a planted line that breaks it."""

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


def dotted(node: ast.expr) -> str:
    """`a.b.c` for the expression a.b.c; `?` stands for what is not a name."""
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else "?"


def keyword(call: ast.Call, name: str) -> ast.expr | None:
    return next((word.value for word in call.keywords if word.arg == name), None)


def is_true(node: ast.expr | None) -> bool:
    """Anything but an absent argument or the literal False: a variable may be true."""
    return node is not None and not (isinstance(node, ast.Constant) and not node.value)


OPENERS = {
    "open": "r",
    "io.open": "r",
    "os.fdopen": "r",
    "gzip.open": "rb",
    "bz2.open": "rb",
    "lzma.open": "rb",
}


def mode(call: ast.Call) -> str:
    """The mode in which the call opens a file: "" where it opens none, "w?" where it cannot be told."""
    name = dotted(call.func)
    if name not in OPENERS and (name.startswith(("os.", "webbrowser.")) or not name.endswith(".open")):
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
    ".write_text",
    ".write_bytes",
    "os.rename",
    "os.replace",
    "shutil.move",
    "json.dump",
    "np.save",
    "np.savez",
)


class Rule(NamedTuple):
    """What is forbidden, why, who may do it all the same, and a line that breaks it."""

    reason: str
    breaks: Callable[[ast.Call], bool]
    planted: str
    allowed: tuple[str, ...] = ()


RULES = {
    "torch.load": Rule(
        "nothing that is read is code: tensors are safetensors with a manifest",
        called("torch.load", "torch.save", ".load_from_checkpoint", "torch.jit.load", "torch.hub.load"),
        "torch.save(model, 'x')",
    ),
    "allow_pickle": Rule(
        "an object array is a pickle",
        lambda call: is_true(keyword(call, "allow_pickle")),
        "np.load(x, allow_pickle=True)",
    ),
    "yaml.load": Rule("a YAML tag can call anything", called("yaml.load", "yaml.unsafe_load"), "yaml.load(text)"),
    "eval": Rule("text is data", called("eval", "exec", "compile", "builtins.eval", "builtins.exec"), "eval('1')"),
    "shell": Rule(
        "a shell reads names as programs; use an argument list",
        lambda call: is_true(keyword(call, "shell")) or called("os.system", "os.popen", "subprocess.getoutput")(call),
        "subprocess.run('ls', shell=True)",
    ),
    "extract": Rule(
        "an archive's own names may lead anywhere; open the member that is wanted",
        called(".extractall", ".extract", "shutil.unpack_archive"),
        "tarfile.open(p).extractall()",
    ),
    "splitlines": Rule(
        "a line ends at \\n only; splitlines also splits at U+2028, U+0085, VT and FF",
        called(".splitlines"),
        "text.splitlines()",
    ),
    "open for writing": Rule(
        "never half a file: repro/durable.py writes",
        lambda call: bool(set(mode(call)) & set("wax+")),
        "open(path, 'w')",
        allowed=("durable.py",),
    ),
    "os.open for writing": Rule(
        "never half a file: repro/durable.py writes",
        lambda call: dotted(call.func) == "os.open" and bool(re.search("WR|CREAT|APPEND", ast.unparse(call))),
        "os.open(path, os.O_WRONLY)",
        allowed=("durable.py",),
    ),
    "write by name": Rule(
        "never half a file: repro/durable.py writes",
        lambda call: WRITES_BY_NAME(call) and not dotted(call.func).startswith("durable."),
        "Path('x').write_text('y')",
        allowed=("durable.py", "machine.py"),  # machine.py turns a switch of the kernel under /proc
    ),
    "text mode": Rule(
        "a text file is bytes split at \\n: text mode also ends lines at \\r",
        lambda call: "b" not in (mode(call) or "b") or called(".read_text")(call),
        "open(path, encoding='utf-8')",
    ),
    "time.time": Rule(
        "a wall clock jumps: durations are monotonic; only a stamp says what day it is",
        called("time.time", "time.time_ns", "datetime.now", "datetime.datetime.now"),
        "time.time()",
        allowed=("stamp.py", "journal.py", "tracking/mirror.py", "tracking/views.py"),
    ),
    "hash": Rule("hash() of text differs in every process", called("hash"), "hash('x')"),
    "global random": Rule(
        "random numbers are a function of the seed: no generator that others share",
        called(
            *(f"random.{name}" for name in ("random", "seed", "shuffle", "choice", "choices", "sample", "randint")),
            *(f"np.random.{name}" for name in ("seed", "rand", "randn", "random", "shuffle", "permutation", "choice")),
        ),
        "random.shuffle(x)",
    ),
}
FORBIDDEN_IMPORTS = {
    "pickle",
    "cPickle",
    "dill",
    "joblib",
    "shelve",
    "marshal",
    "cloudpickle",
    "pytorch_lightning",
}


@functools.cache
def calls(source: bytes | str) -> list[ast.Call]:
    return [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]


@pytest.mark.parametrize("name", RULES)
def test_the_package_keeps_the_rule(name: str) -> None:
    rule = RULES[name]
    found = [
        f"repro/{file}:{call.lineno}: {ast.unparse(call)}"
        for file, path in PACKAGE.items()
        if file not in rule.allowed
        for call in calls(path.read_bytes())
        if rule.breaks(call)
    ]
    assert found == [], f"{name}: {rule.reason}"


@pytest.mark.parametrize("name", RULES)
def test_the_rule_can_be_broken(name: str) -> None:
    assert any(RULES[name].breaks(call) for call in calls(RULES[name].planted))


@pytest.mark.parametrize(
    "harmless",
    [
        "model.eval()",
        "re.compile('x')",
        "open(path, 'rb')",
        "gzip.open(path)",
        "path.open('rb')",
        "os.open(folder, os.O_RDONLY)",
        "np.load(path, mmap_mode='r')",
        "text.split('\\n')",
        "random.Random(7)",
        "generator.random()",
        "time.monotonic()",
        "safetensors.torch.load_file(path)",
    ],
)
def test_no_rule_catches_what_is_harmless(harmless: str) -> None:
    assert [name for name, rule in RULES.items() for call in calls(harmless) if rule.breaks(call)] == []


def test_the_journal_only_appends() -> None:
    openings = [
        ast.unparse(call) for call in calls(PACKAGE["durable.py"].read_bytes()) if "os.open" in ast.unparse(call)
    ]
    assert sum("O_APPEND" in opening for opening in openings) == 1
    assert not any("O_TRUNC" in opening for opening in openings)


def test_nothing_that_runs_code_is_imported() -> None:
    found = []
    for file, path in PACKAGE.items():
        for node in ast.walk(ast.parse(path.read_bytes())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [str(node.module)] if isinstance(node, ast.ImportFrom) else []
            found += [f"repro/{file}:{name}" for name in names if name.split(".")[0] in FORBIDDEN_IMPORTS]
    assert found == []


def test_every_file_has_a_name_of_its_own() -> None:
    vague = {"util", "utils", "helper", "helpers", "common", "misc", "tools"}
    assert [path for path in ALL if {path.stem, *path.parent.parts[-1:]} & vague] == []


def test_nothing_is_left_for_later() -> None:
    marks = [word.encode() for word in ("TO" + "DO", "FIX" + "ME", "XX" + "X:")]
    assert [path for path in ALL if any(mark in path.read_bytes() for mark in marks)] == []
