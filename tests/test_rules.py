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
    ".write_text", ".write_bytes", ".touch", ".rename", ".symlink_to", ".hardlink_to", ".link_to",
    ".tofile", ".dump", ".savefig", ".imsave", ".to_pickle", ".to_parquet", ".to_feather", ".to_hdf", ".to_excel",
    ".to_sql", ".to_stata", ".to_orc", ".save_model", ".save_vocab", ".save_pretrained", ".save_to_disk",
)  # fmt: skip
WRITERS = {  # that may not even be named: who passes os.replace on writes as well
    f"{module}.{name}"
    for module, names in {
        "os": (
            "rename renames replace link symlink truncate ftruncate write pwrite writev pwritev sendfile "
            "copy_file_range splice creat mkfifo mknod fdopen posix_fallocate"
        ),
        "shutil": "move copy copy2 copyfile copytree make_archive",
        "np": "save savez savez_compressed savetxt",
        "numpy": "save savez savez_compressed savetxt",
        "tempfile": "NamedTemporaryFile TemporaryFile SpooledTemporaryFile TemporaryDirectory mkstemp mkdtemp",
        "safetensors": "serialize_file",
        "safetensors.torch": "save_file",
        "safetensors.numpy": "save_file",
        "sqlite3": "connect",
        "mmap": "mmap",
        "zipfile": "ZipFile",
        "dbm": "open",
        "logging": "FileHandler",
        "json": "dump",
        "plistlib": "dump",
        "torch": "save",
    }.items()
    for name in names.split()
}
WRITERS_ALLOWED = {  # module -> what it names, and why that is no half file
    "runs/streams.py": {"os.write"},  # a word to the terminal when the output's reader has gone
    "storage/atomic.py": {"os.replace", "os.write", "os.ftruncate"},  # the one place
    "decoding/ctranslate.py": {"tempfile.TemporaryDirectory"},  # what the library writes, before atomic.py copies it
    "decoding/backend.py": {"tempfile.TemporaryDirectory"},  # a model for as long as it is asked
    "claims/tested.py": {"tempfile.TemporaryDirectory"},  # what pytest reports, before it is read
    "runs/measure.py": {"tempfile.TemporaryDirectory"},  # where a run that is only timed would keep checkpoints
    "runs/executors/on_node.py": {"tempfile.TemporaryDirectory"},  # tables that nobody reads: the sweep makes its own
    "runs/executors/on_ray.py": {"tempfile.TemporaryDirectory"},  # code on its way to nodes, which Ray packs
    "runs/executors/pool.py": {"os.write"},  # lines to the process at the other end of a pipe
    "runs/signals.py": {"os.write"},  # the last words of a process, to its terminal
    "tracking/client.py": {"sqlite3.connect"},  # turns a switch of MLflow's own database
    "cli/ui.py": {"tempfile.TemporaryFile"},  # the last words of a server: no name, gone with it
}


class Rule(NamedTuple):
    """What is forbidden, why, who may do it all the same, and a line that breaks it."""

    reason: str
    breaks: Callable[[ast.Call], bool]
    planted: str
    allowed: tuple[str, ...] = ()


RULES = {
    "torch.load": Rule(
        "nothing that is read is code: tensors are safetensors with a manifest",
        called(
            "torch.load",
            "torch.save",
            ".load_from_checkpoint",
            "torch.jit.load",
            "torch.jit.save",
            "torch.hub.load",
            "torch.package.PackageImporter",
            "torch.export.load",
            ".read_pickle",
            ".to_pickle",
        ),
        "torch.save(model, 'x')",
    ),
    "allow_pickle": Rule(
        "an object array is a pickle",
        lambda call: is_true(keyword(call, "allow_pickle")),
        "np.load(x, allow_pickle=True)",
    ),
    "yaml.load": Rule(
        "a YAML tag can call anything",
        called("yaml.load", "yaml.load_all", "yaml.unsafe_load", "yaml.unsafe_load_all", "yaml.full_load"),
        "yaml.load(text)",
    ),
    "eval": Rule(
        "text is data",
        called(
            "eval",
            "exec",
            "compile",
            "builtins.eval",
            "builtins.exec",
            "__import__",
            "runpy.run_path",
            "importlib.import_module",
            ".query",
        ),
        "eval('1')",
        ("runs/load.py",),  # one's own experiment file, whose row says what the system is: found by its table's name
    ),
    "shell": Rule(
        "a shell reads names as programs; use an argument list",
        lambda call: (
            is_true(keyword(call, "shell"))
            or called("os.system", "os.popen", "subprocess.getoutput", "subprocess.getstatusoutput", "pty.spawn")(call)
        ),
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
        "never half a file: repro/storage/atomic.py writes",
        lambda call: bool(set(mode(call)) & set("wax+")),
        "open(path, 'w')",
        allowed=("runs/executors/pool.py", "runs/executors/on_node.py"),  # what a process prints, which only grows
    ),
    "os.open for writing": Rule(
        "never half a file: repro/storage/atomic.py writes",
        lambda call: (
            dotted(call.func) == "os.open"
            and bool(
                re.search("WR|CREAT|APPEND|TRUNC|TMPFILE", ast.unparse(call)) or "O_RDONLY" not in ast.unparse(call)
            )
        ),
        "os.open(path, os.O_WRONLY)",
        allowed=("storage/atomic.py", "runs/streams.py", "render/console.py"),  # the others: /dev/null
    ),
    "folders": Rule(
        "a disk that refuses is a DiskError with the folder's name: make_folder of repro/storage/atomic.py",
        called(".mkdir", "os.mkdir", "os.makedirs"),
        "Path('runs').mkdir(parents=True)",
        allowed=("storage/atomic.py", "storage/folder_cache.py", "storage/lease.py"),  # the others: where it is absent
    ),
    "users": Rule(
        "in some containers a user has no entry in the system's list, and no home",
        called("getpass.getuser", "os.getlogin", "pwd.getpwuid", "os.path.expanduser", ".expanduser", "Path.home"),
        "getpass.getuser()",
        allowed=("tracking/client.py",),  # which asks whether there is a home
    ),
    "locks": Rule(
        "nobody waits without end: repro/storage/lock.py",
        called("fcntl.flock", "fcntl.lockf"),
        "fcntl.flock(handle, fcntl.LOCK_EX)",
        allowed=("storage/lock.py",),
    ),
    "write by name": Rule(
        "never half a file: repro/storage/atomic.py writes",
        lambda call: WRITES_BY_NAME(call) and not dotted(call.func).startswith("atomic."),
        "Path('x').write_text('y')",
        allowed=(
            "training/cpu_tuning.py",  # turns a switch of the kernel under /proc
            "storage/folder_cache.py",  # a lock, which holds nothing; a whole folder that takes its name in one step
            "tracking/client.py",  # a lock, which holds nothing
            "training/checkpoint.py",  # a damaged checkpoint loses its name
            "figures/style.py",  # into a file that atomic.py has opened
        ),
    ),
    "Path.replace": Rule(
        "never half a file: repro/storage/atomic.py writes",  # with two arguments it is of a text
        lambda call: (
            isinstance(call.func, ast.Attribute)
            and call.func.attr == "replace"
            and len(call.args) == 1
            and not call.keywords
        ),
        "path.replace(other)",
        # an archive takes its name when its hash is known
        allowed=("corpora/download/fetch.py", "corpora/download/transfer.py"),
    ),
    "to_csv": Rule(
        "never half a file: repro/storage/atomic.py writes",
        lambda call: (
            called(".to_csv", ".to_json", ".to_latex", ".to_html", ".to_markdown", ".to_string", ".to_xml")(call)
            and bool(call.args or keyword(call, "path_or_buf") or keyword(call, "buf"))
        ),
        "frame.to_csv(path)",
    ),
    "memmap": Rule(
        "never half a file: a map is for reading",
        lambda call: (
            called("np.memmap", "numpy.memmap", "np.lib.format.open_memmap")(call)
            and ast.unparse(keyword(call, "mode") or ast.Constant("r+")) not in ("'r'", "'c'")
        ),
        "np.memmap(path, np.uint16)",
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
        allowed=(
            "results/provenance.py",
            "runs/measure.py",
            "storage/journal.py",
            "tracking/mirror.py",
            "tracking/views.py",
        ),
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
    "_pickle",
    "pickletools",
    "jsonpickle",
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


def takes_abbreviations(call: ast.Call) -> bool:
    """Whether the call makes a command line on which an option may be cut short."""
    names = called("argparse.ArgumentParser", "ArgumentParser")
    return names(call) and ast.unparse(keyword(call, "allow_abbrev") or ast.Constant(True)) != "False"


def test_no_command_takes_abbreviations() -> None:
    # an abbreviation means another option as soon as there is one
    assert takes_abbreviations(calls("argparse.ArgumentParser(description='x')")[0])
    assert not takes_abbreviations(calls("ArgumentParser(allow_abbrev=False)")[0])
    making = {path: text for path in ALL if b"ArgumentParser" in (text := path.read_bytes())}
    assert [path for path, text in making.items() if any(map(takes_abbreviations, calls(text)))] == []


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
        "np.memmap(path, dtype, mode='r')",
        "frame.to_csv(index=False)",
        "text.replace('a', 'b')",
        "replace(settings, seed=2)",
        "text.split('\\n')",
        "random.Random(7)",
        "generator.random()",
        "time.monotonic()",
        "safetensors.torch.load_file(path)",
    ],
)
def test_no_rule_catches_what_is_harmless(harmless: str) -> None:
    assert [name for name, rule in RULES.items() for call in calls(harmless) if rule.breaks(call)] == []


def writers(source: bytes | str) -> list[str]:
    """The names of `WRITERS` that stand in a source, called or not, imported or not."""
    found: list[str] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute):
            found.append(dotted(node))
        elif isinstance(node, ast.ImportFrom):
            found += [f"{node.module}.{alias.name}" for alias in node.names]
    return [name for name in found if name in WRITERS]


def test_one_module_writes() -> None:
    found = {file: set(writers(path.read_bytes())) for file, path in PACKAGE.items()}
    assert {file: names for file, names in found.items() if names} == WRITERS_ALLOWED


@pytest.mark.parametrize("planted", ["os.replace(a, b)", "again(os.write, file, data)", "from shutil import copytree"])
def test_a_writer_is_found_however_it_is_named(planted: str) -> None:
    assert len(writers(planted)) == 1


def test_what_is_opened_for_writing_is_new_or_only_grows() -> None:
    opened = [
        call for call in calls(PACKAGE["storage/atomic.py"].read_bytes()) if RULES["os.open for writing"].breaks(call)
    ]
    flags = [set(re.findall(r"O_([A-Z]+)", ast.unparse(call))) - {"CLOEXEC"} for call in opened]
    assert flags == [{"WRONLY", "CREAT", "EXCL"}, {"RDWR", "CREAT", "APPEND"}]


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
