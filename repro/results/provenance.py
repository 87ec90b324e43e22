"""Where a number comes from: the code that decided it, and the machine that ran it.

The deciding code is computed, not listed: it is every module behind the wall (`DECIDING`) that `ROOTS` import, directly
or not; of a parser also what `PARSING` imports. What counts of a file is what it does, not how it is written or where
it lies. Comments, docstrings and import statements do not count, but the meaning of each imported name does, where it
is used.
"""

import ast
import functools
import hashlib
import importlib.metadata
import importlib.util
import inspect
import json
import os
import platform
import re
import subprocess
import sys
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple, NotRequired, TypedDict

PACKAGE = Path(__file__).parents[1]
# The folders behind the wall. Whatever else an experiment, a task or a program imports decides nothing that the run's
# id does not record.
DECIDING = ("model", "data", "decoding", "training")
INSTALLED = ("site-packages", "dist-packages")  # folders whose modules are unrelated to each other
ROOTS = ("repro.training.stages", "repro.decoding.bleu")  # from ids to outputs; from outputs to scores
PARSING = "repro.decoding.evalb"  # what scores the outputs of a parser
RELEASE = "release.json"  # in an installed package: the commit it was built from and the fingerprint of its code
LIBRARIES = ("torch", "lightning", "tokenizers", "sacrebleu", "numpy")
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)  # syntax that may have a docstring
Imports = tuple[tuple[str, tuple[str, str | None]], ...]  # each name, its module and its name there; None: the module


class Provenance(TypedDict):
    """What a record says about its origin; it never names a user, a host or an absolute path."""

    fingerprint: str  # of the deciding code, see `fingerprint`
    shared_fingerprint: NotRequired[str]  # for a row with its own system: of the code that it shares with all rows
    system_fingerprint: NotRequired[str]  # for such a row: of its remaining code
    commit: str | None  # the commit of the deciding code, or the one that it was changed from; None: not known
    dirty: bool  # whether the deciding code cannot be restored from the commit alone
    why_dirty: str | None  # the changed files, or why there is no commit
    python: str
    platform: str
    cpu: str
    cpu_model: NotRequired[str | None]  # vendor, family, model, stepping; None where the system does not report it
    cpu_flags: NotRequired[list[str]]  # flags of its vector units
    device: str | None  # what the network ran on; None where torch was not imported
    n_threads: int
    instructions: NotRequired[str | None]  # the instruction set that PyTorch uses, which decides the last digits
    versions: dict[str, str | None]  # None: not installed
    started: str  # UTC, ISO 8601


@dataclass
class _Code:
    """Modules with what they import from behind the wall; with `own` ones also from files outside the package."""

    own: Mapping[str, Path] = field(default_factory=dict)  # modules of a system -> the folder each lies below
    digests: dict[str, str] = field(default_factory=dict)  # module -> SHA-256 of what it does, its imports included
    alone: dict[str, str] = field(default_factory=dict)  # module -> SHA-256 of its own text, whatever it imports
    files: dict[str, Path] = field(default_factory=dict)  # of these modules
    _begun: list[str] = field(default_factory=list)

    def digest(self, module: str) -> str:
        """SHA-256 of one module; its imports are digested first. Raises ValueError for circular imports."""
        if module in self._begun:
            raise ValueError(f"{' -> '.join([*self._begun, module])}: expected no circle of imports. Cut it.")
        if module not in self.digests:
            if (file := self._file(module)) is None:
                raise FileNotFoundError(f"expected the source {_path(module)}, found none. Install the package again.")
            self._begun.append(module)
            imports, text = _parsed(file, file.read_bytes(), module)
            meanings: dict[str, set[str]] = {}
            for name, origin in imports:
                meanings.setdefault(name, set()).add(self._meaning(*origin))
            linked = re.sub(r"Imported\((\w+)\)", lambda name: ",".join(sorted(meanings.get(name[1], ()))), text)
            self.files[module], self.alone[module], self.digests[module] = file, _sha256(text), _sha256(linked)
            self._begun.pop()
        return self.digests[module]

    def _meaning(self, module: str, name: str | None) -> str:
        """What an imported name stands for, independent of its alias and of its module's location."""
        target = self._target(module, name)
        if _is_ours(target) and not _decides(target):
            return f"{PACKAGE.name}:{name}"
        if not _is_ours(target) and self._file(target) is None:
            return f"{module}:{name}"
        return self.digest(target) if target != module else f"{self.digest(target)}:{name}"

    def _target(self, module: str, name: str | None) -> str:
        """The module that an import refers to: `from repro.data import order` means repro.data.order."""
        inner = f"{module}.{name}"
        return inner if name and self._file(inner) else module

    def _file(self, module: str) -> Path | None:
        """Where a module lies: in the package, or below the folder of an own one; for a package, its `__init__`."""
        top = module.partition(".")[0]
        is_own = top in {name.partition(".")[0] for name in self.own}
        beside = [folder for folder in self.own.values() if is_own or folder.name not in INSTALLED]
        places = [PACKAGE.parent] if _is_ours(module) else beside
        names = [module, *([f"{module}.__init__"] if self.own else [])]
        files = (folder / _path(name) for name in names for folder in places)
        return next((file for file in files if file.is_file()), None)


def cleared(stamp: Provenance, system: Any = None) -> Any:
    """The stamp of a run, no longer dirty if its code was uncommitted when it ran but has been committed since."""
    if stamp["dirty"] and stamp["fingerprint"] == fingerprint(system):
        commit, why_dirty = committed(system)
        if not why_dirty:
            return {**stamp, "commit": commit, "dirty": False, "why_dirty": None}
    return stamp


def _path(module: str) -> str:
    return f"{module.replace('.', '/')}.py"


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


@functools.cache  # most files are shared by all rows
def _parsed(file: Path, source: bytes, module: str) -> tuple[Imports, str]:
    """The imports of a module, and its syntax as text."""
    tree = ast.parse(source)
    imports = tuple(_imports(tree, module if file.stem == "__init__" else module.rpartition(".")[0]))
    return imports, _syntax(tree, {name for name, _ in imports})


def _imports(tree: ast.AST, package: str) -> Iterator[tuple[str, tuple[str, str | None]]]:
    """The imports of a module of this package, except those under TYPE_CHECKING."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.asname or alias.name.partition(".")[0], (alias.name, None)
        elif isinstance(node, ast.ImportFrom):
            origin = importlib.util.resolve_name("." * node.level + (node.module or ""), package)
            for alias in node.names:
                yield alias.asname or alias.name, (origin, alias.name)
        elif not (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)):
            yield from _imports(node, package)


def _syntax(node: Any, imported: Container[str]) -> str:
    """`ast.dump` without docstrings, import statements and empty fields, which vary between versions of Python."""
    if isinstance(node, list):
        return f"[{','.join(filter(None, (_syntax(item, imported) for item in node)))}]"
    if not isinstance(node, ast.AST):
        return repr(node)
    if isinstance(node, ast.Name) and node.id in imported:
        return f"Imported({node.id})"
    if isinstance(node, ast.Import | ast.ImportFrom):
        return ""
    if isinstance(node, DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
        node.body = node.body[1:]
    fields = (f"{name}={_syntax(value, imported)}" for name, value in ast.iter_fields(node) if value not in (None, []))
    return f"{type(node).__name__}({','.join(fields)})"


def _is_ours(module: str) -> bool:
    return module.partition(".")[0] == PACKAGE.name


def _decides(module: str) -> bool:
    """Whether a module lies behind the wall."""
    package, _, inner = module.partition(".")
    return package == PACKAGE.name and inner.partition(".")[0] in DECIDING


# Codes are read once: what is edited later is not what this process runs. A notebook that reloads a module gets new
# classes, and so other parts.


@functools.cache
def _code(parts: tuple[Any, ...], roots: tuple[str, ...] = ROOTS) -> _Code:
    """The deciding code of these roots, with what these parts of a system import."""
    own = dict(sorted((name, folder) for part in parts for name, folder in _modules(part).items()))
    code = _Code(own)
    for module in (*roots, *own):
        code.digest(module)
    return code


def _code_of(system: Any) -> _Code:
    return _code(tuple(_named_parts(system)))


def fingerprints(system: Any = None) -> dict[str, str]:
    """SHA-256 of each file that decides a result, by its path such as "model/loss.py", to find which files differ."""
    found = sorted(_code_of(system).alone.items())
    return {_path(module).removeprefix(f"{PACKAGE.name}/"): digest for module, digest in found}


def fingerprint(system: Any = None) -> str:
    """SHA-256 of the code that decides a result: every file together with what it imports.

    For a row with its own `system` this includes that system's files, each whole, with any other rows in it.
    """
    return _sha256("".join(f"{digest}\n" for digest in sorted({*_code_of(system).digests.values()})))


def _parts(system: Any) -> dict[str, str]:
    """For a row with its own system: the fingerprints of the code that all rows share and of its remaining code."""
    if system is None:
        return {}
    own = sorted(f"{of} {digest}\n" for of, digest in _code_of(system).alone.items() if of not in _code(()).alone)
    return {"shared_fingerprint": fingerprint(), "system_fingerprint": _sha256("".join(own))}


def parsing_digest() -> str:
    """SHA-256 of the code that scores a parser, with what it imports; `fingerprint` has the rest of what decides."""
    return _code((), (PARSING,)).digests[PARSING]


def provenance(device_type: str | None = None, system: Any = None) -> Provenance:
    """The origin of a run that starts now on this type of device ("cpu", "cuda"; None: the best)."""
    commit, why_dirty = committed(system)
    torch = sys.modules.get("torch")  # a stamp must not cost an import
    cpu, on_gpu = processor(), torch and device_type in (None, "cuda") and torch.cuda.is_available()
    return {
        "fingerprint": fingerprint(system),
        **_parts(system),  # type: ignore[typeddict-item]
        "commit": commit,
        "dirty": why_dirty is not None,
        "why_dirty": why_dirty,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "cpu": cpu.name,
        "cpu_model": cpu.model,
        "cpu_flags": list(cpu.vectors),
        "device": None if torch is None else torch.cuda.get_device_name() if on_gpu else cpu.name,
        "n_threads": torch.get_num_threads() if torch else os.cpu_count() or 1,
        "instructions": torch.backends.cpu.get_cpu_capability() if torch else None,
        "versions": {name: importlib.metadata.version(name) for name in LIBRARIES},
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def committed(system: Any = None) -> tuple[str | None, str | None]:
    """The commit of the deciding code, and why the code cannot be restored from it alone (None where it can).

    What scores a parser counts for every run.
    """
    files, root = _code_of(system).files | _code((), (PARSING,)).files, PACKAGE.parent
    # a package installed into somebody else's checkout must not take that checkout's commit
    ours = _git(root, "ls-files", "--error-unmatch", "--", PACKAGE.name)
    commit = _git(root, "rev-parse", "--verify", "HEAD") if ours else None
    status = _git(root, "status", "--porcelain", "-z", "--no-renames", "--untracked-files", "--", PACKAGE.name)
    if commit is None or status is None:
        commit, why_dirty = _release()
    else:
        changed = {entry[3:] for entry in status.split("\0")} & {*map(_path, files)}  # "XY path"
        commit, why_dirty = commit.strip(), f"not committed: {', '.join(sorted(changed))}" if changed else None
    beside = [file for module, file in files.items() if not _is_ours(module)]
    if why_dirty is None and (new := sorted({file.name for file in beside if not is_committed(file)})):
        why_dirty = f"not committed: {', '.join(new)}"
    return commit, why_dirty


def is_committed(file: Path) -> bool | None:
    """Whether a file is unchanged since its commit; None where git is not available."""
    if _git(file.parent, "rev-parse", "--git-dir") is None:
        return None
    tracked = _git(file.parent, "ls-files", "--error-unmatch", "--", file.name) is not None
    return tracked and not _git(file.parent, "status", "--porcelain", "--", file.name)


def _release() -> tuple[str | None, str | None]:
    """As `committed`, for a package without git: the commit it was built from, and whether it was changed since."""
    file = PACKAGE / RELEASE
    if not file.is_file():
        return None, "git names no commit for this code, and it is no release: no checkout, no commit yet, or no git"
    release = json.loads(file.read_bytes())
    if release["fingerprint"] != fingerprint():
        return release["commit"], f"changed since release {release['version']} was built"
    return release["commit"], None


def _git(root: Path, *arguments: str) -> str | None:
    """What git prints, or None where it fails."""
    # inside a git hook GIT_DIR and GIT_INDEX_FILE are set, and git would answer for another checkout
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    command = ["git", "--no-optional-locks", *arguments]
    try:
        done = subprocess.run(command, cwd=root, env=environment, capture_output=True, check=True, timeout=60)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.decode("utf-8", "surrogateescape")


# A row's system: a class or a `functools.partial` of one; None is the Transformer


def system_text(system: Any) -> str:
    """The qualified name of a system with its arguments, "rivals.Recurrent(width=96)"; empty for None.

    Raises ValueError for anything without such a name: a lambda, a local class or function, an instance, a function
    instead of a class, arguments other than classes, functions and numbers.
    """
    called = system
    while isinstance(called, functools.partial):
        called = called.func
    if system is not None and not inspect.isclass(called):
        raise _refused(called)
    return "" if system is None else _value(system)


def _refused(value: Any) -> ValueError:
    expected = "a class at the top of a module, or functools.partial of one with classes, functions and numbers"
    return ValueError(f"A system: expected {expected}, got {value!r}.")


def _modules(system: Any) -> dict[str, Path]:
    """The modules of the system and of its arguments, with the folders below which they lie.

    Raises ValueError for classes and functions that were typed into a notebook or a shell.
    """
    found = {}
    for part in _named_parts(system):
        module = sys.modules.get(part.__module__)
        file = getattr(module, "__file__", None)
        if part.__module__ == "__main__" and not (file and Path(file).is_file()):
            raise ValueError(f"A system: {part.__qualname__} was typed in. Put it into a file and import it.")
        if file is not None:
            name = _module(part)
            found[name] = Path(file).resolve().parents[name.count(".") + (Path(file).name == "__init__.py")]
    return found


def _named_parts(value: Any) -> Iterator[Any]:
    """The classes and functions that a system is made of."""
    if isinstance(value, functools.partial):
        for part in (value.func, *value.args, *value.keywords.values()):
            yield from _named_parts(part)
    elif inspect.isclass(value) or inspect.isfunction(value):
        yield value


def _value(value: Any) -> str:
    if isinstance(value, functools.partial):
        named = [f"{name}={_value(value.keywords[name])}" for name in sorted(value.keywords)]
        return f"{_value(value.func)}({', '.join([*map(_value, value.args), *named])})"
    if (inspect.isclass(value) or inspect.isfunction(value)) and "<" not in value.__qualname__:
        return f"{_module(value)}.{value.__qualname__}"
    if value is None or isinstance(value, int | float):
        return repr(value)
    raise _refused(value)


def _module(part: Any) -> str:
    """The name of the part's module; if it is the running experiment file, the name of that file."""
    file = getattr(sys.modules["__main__"], "__file__", None)
    name: str = part.__module__
    return Path(file).stem if name == "__main__" and file else name


# The processor, on whose model and vector units the last digits of a sum depend

CPUINFO = Path("/proc/cpuinfo")
MODEL = {"vendor_id": "", "cpu family": "family ", "model": "model ", "stepping": "stepping "}  # of x86
MODEL_OF_ARM = {"CPU implementer": "implementer ", "CPU variant": "variant ", "CPU part": "part "}
OF_VECTORS = r"sse4\w*|avx\w*|fma\w*|f16c|amx\w*|asimd\w*|sve\w*|bf16|i8mm"  # by which a library picks its products


class Processor(NamedTuple):
    """The first processor of a machine."""

    name: str  # as the system reports it, if it does
    model: str | None  # rented machines often share a name; None where the system does not report it
    vectors: tuple[str, ...]  # the flags of its vector units, sorted; empty where the system does not report them


@functools.cache
def processor(cpuinfo: Path = CPUINFO) -> Processor:
    """The processor of this machine, as Linux describes it in `cpuinfo`, else only its name."""
    text = cpuinfo.read_bytes().decode("ascii", "replace") if cpuinfo.exists() else ""
    lines = (line.partition(":") for line in text.partition("\n\n")[0].split("\n"))
    told = {key.strip(): value.strip() for key, _, value in lines}
    named = (
        ", ".join(word + told[key] for key, word in keys.items())
        for keys in (MODEL, MODEL_OF_ARM)
        if keys.keys() <= told.keys()
    )
    flags = told.get("flags", told.get("Features", "")).split()
    return Processor(
        name=told.get("model name") or platform.processor() or platform.machine(),
        model=next(named, None),
        vectors=tuple(sorted(flag for flag in flags if re.fullmatch(OF_VECTORS, flag))),
    )
