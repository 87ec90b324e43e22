"""Where a number comes from: the code that decided it, and the machine that ran it.

The deciding code is computed, not listed: it is every module behind the wall (`DECIDING`) that `ROOTS` import, directly
or not. What counts of a file is what it does, not how it is written or where it lies. Comments, docstrings and import
statements do not count, but the meaning of each imported name does, where it is used.
"""

import ast
import functools
import hashlib
import importlib.metadata
import json
import os
import platform
import re
import subprocess
import sys
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NotRequired, TypedDict, TypeVar

from repro.results.places import PACKAGE
from repro.results.processor import processor
from repro.results.systems import modules, named_parts

# The folders behind the wall. Whatever else an experiment, a task or a program imports decides nothing that the run's
# id does not record.
DECIDING = ("model", "data", "decoding", "training")
INSTALLED = ("site-packages", "dist-packages")  # folders whose modules are unrelated to each other
ROOTS = ("repro.training.trial", "repro.decoding.bleu")  # from ids to outputs; from outputs to scores
RELEASE = "release.json"  # in an installed package: the commit it was built from and the fingerprint of its code
LIBRARIES = ("torch", "lightning", "tokenizers", "sacrebleu", "numpy")
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)  # syntax that may have a docstring
Source = Callable[[str], bytes | None]  # content of a path such as "repro/model/config.py"; None: no such file


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
    """The modules that `ROOTS` reach, read from one source: the folder of the package, or a commit."""

    source: Source
    digests: dict[str, str] = field(default_factory=dict)  # module -> SHA-256 of what it does, its imports included
    alone: dict[str, str] = field(default_factory=dict)  # module -> SHA-256 of its own text, whatever it imports
    begun: list[str] = field(default_factory=list)
    follows: bool = False  # whether imports of files outside the package are followed, for a row's own system or task
    is_of_task: bool = False  # whether it is a task's: it may build on ours, outside the wall, with scores from behind
    _outside: dict[str, frozenset[str]] = field(default_factory=dict)  # module -> what it imports from behind the wall

    def digest(self, module: str) -> str:
        """SHA-256 of one module; its imports are digested first. Raises ValueError for circular imports."""
        if module in self.begun:
            raise ValueError(f"{' -> '.join([*self.begun, module])}: expected no circle of imports. Cut it.")
        if module not in self.digests:
            self.begun.append(module)
            imports, text = _parsed(self._text(module) or b"", self._package(module))
            meanings: dict[str, set[str]] = {}
            for name, origin in imports:
                meanings.setdefault(name, set()).add(self._meaning(*origin))
            linked = re.sub(r"Imported\((\w+)\)", lambda name: ",".join(sorted(meanings.get(name[1], ()))), text)
            self.alone[module] = hashlib.sha256(text.encode()).hexdigest()
            self.digests[module] = hashlib.sha256(linked.encode()).hexdigest()
            self.begun.pop()
        return self.digests[module]

    def _meaning(self, module: str, name: str | None) -> str:
        """What an imported name stands for, independent of its alias and of its module's location."""
        target = self._target(module, name)
        if not _is_ours(target) and not (self.follows and self._text(target) is not None):
            return f"{module}:{name}"
        if _is_ours(target) and not _decides(target):
            return f"{','.join(sorted(self.taken(target))) if self.is_of_task else PACKAGE.name}:{name}"
        if self._text(target) is None:
            raise FileNotFoundError(f"expected the source {_file(target)}, found none. Install the package again.")
        return self.digest(target) if target != module else f"{self.digest(target)}:{name}"

    def _target(self, module: str, name: str | None) -> str:
        """The module that an import refers to: `from repro.data import order` means repro.data.order."""
        inner = f"{module}.{name}"
        return inner if name and self._text(inner) is not None else module

    def taken(self, module: str) -> frozenset[str]:
        """Digests of the deciding modules that one outside the wall imports, directly or not, and not all rows use."""
        if module not in self._outside:
            self._outside[module] = frozenset()
            imports, _ = _parsed(self._text(module) or b"", self._package(module))
            targets = {self._target(*origin) for _, origin in imports}
            inside = {self.digest(one) for one in targets if _decides(one)} - {*_ours().digests.values()}
            beyond = [self.taken(one) for one in targets if _is_ours(one) and not _decides(one)]
            self._outside[module] = frozenset(inside.union(*beyond))
        return self._outside[module]

    def _text(self, module: str) -> bytes | None:
        """The source of a module; for a package of a row's own, that of its `__init__`."""
        text = self.source(_file(module))
        return self.source(_file(f"{module}.__init__")) if text is None and self.follows else text

    def _package(self, module: str) -> str:
        """The package that `from . import` refers to in a module."""
        is_package = self.source(_file(module)) is None
        return module if is_package else module.rpartition(".")[0]


S = TypeVar("S", bound=Provenance)


def cleared(stamp: S, system: Any = None, task: Any = None) -> S:
    """The stamp of a run, no longer dirty if its code was uncommitted when it ran but has been committed since."""
    if not stamp["dirty"] or stamp["fingerprint"] != fingerprint(system):
        return stamp
    commit, why_dirty = _commit(system, task)
    if why_dirty:
        return stamp
    return {**stamp, "commit": commit, "dirty": False, "why_dirty": None}  # type: ignore[return-value]


def _file(module: str) -> str:
    return f"{module.replace('.', '/')}.py"


@functools.cache  # most files are shared by all rows
def _parsed(source: bytes, package: str) -> tuple[tuple[tuple[str, tuple[str, str | None]], ...], str]:
    """The imports of a module, and its syntax as text."""
    tree = ast.parse(source)
    imports = tuple(_imports(tree, package))
    names = {name for name, _ in imports}

    def told(node: ast.AST) -> str | None:
        if isinstance(node, ast.Name) and node.id in names:
            return f"Imported({node.id})"
        return "" if isinstance(node, ast.Import | ast.ImportFrom) else None

    return imports, syntax(tree, told)


def _imports(tree: ast.AST, package: str) -> Iterator[tuple[str, tuple[str, str | None]]]:
    """Each imported name, its module and its name there (None: the module itself); not under TYPE_CHECKING."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.asname or alias.name.partition(".")[0], (alias.name, None)
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                yield alias.asname or alias.name, (_absolute(node, package), alias.name)
        elif not (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)):
            yield from _imports(node, package)


def _absolute(node: ast.ImportFrom, package: str) -> str:
    """The module that a statement imports from: `from ..cells import GRU` in a module of a.b means a.cells."""
    parts = package.split(".")[: 1 - node.level or None] if node.level else []
    return ".".join([*parts, *([node.module] if node.module else [])])


def _here(path: str) -> bytes | None:
    file = PACKAGE.parent / path
    return file.read_bytes() if file.is_file() else None


def _read(source: Source, own: Iterable[str] = ()) -> _Code:
    """The deciding code in a source, with a row's `own` modules. Raises FileNotFoundError if a file is missing."""
    code = _Code(source, follows=bool(own))
    for module in (*ROOTS, *own):
        if code._text(module) is None:
            raise FileNotFoundError(f"expected the source {_file(module)}, found none. Install the package again.")
        code.digest(module)
    return code


_ours = functools.cache(lambda: _read(_here))  # read once: later edits are not what this process runs


@functools.cache
def _with(own: tuple[tuple[str, Path], ...], parts: tuple[Any, ...]) -> _Code:
    """The deciding code and these modules, each found below its folder, as they were when `parts` were made.

    A notebook that reloads a module gets new classes, so new `parts`; a module that is only edited is not what runs.
    """
    return _read(_beside(dict(own)), [module for module, _ in own])


def _beside(own: Mapping[str, Path]) -> Source:
    """A source that reads from the package and from below the folders of these modules."""

    def source(path: str) -> bytes | None:
        top = path.partition("/")[0].removesuffix(".py")
        ours = {module.partition(".")[0] for module in own}
        beside = [folder for folder in own.values() if folder.name not in INSTALLED or top in ours]
        places = [PACKAGE.parent] if top == PACKAGE.name else beside
        return next(((place / path).read_bytes() for place in places if (place / path).is_file()), None)

    return functools.cache(source)


def _code_of(system: Any) -> _Code:
    """The deciding code of a row: the code that all rows share, and what its own system imports."""
    own = modules(system)
    return _with(tuple(sorted(own.items())), tuple(named_parts(system))) if own else _ours()


def fingerprints(system: Any = None) -> dict[str, str]:
    """SHA-256 of each file that decides a result, by its path such as "model/loss.py", to find which files differ."""
    found = sorted(_code_of(system).alone.items())
    return {_file(module).removeprefix(f"{PACKAGE.name}/"): digest for module, digest in found}


def fingerprint(system: Any = None, code: _Code | None = None) -> str:
    """SHA-256 of the code that decides a result: every file together with what it imports.

    For a row with its own `system` this includes that system's files, each whole, with any other rows in it.
    """
    digests = sorted({*(code or _code_of(system)).digests.values()})
    return hashlib.sha256("".join(f"{digest}\n" for digest in digests).encode()).hexdigest()


def _parts(system: Any) -> dict[str, str]:
    """For a row with its own system: the fingerprints of the code that all rows share and of its remaining code."""
    if system is None:
        return {}
    shared = _code_of(None).alone
    own = sorted(f"{module} {digest}\n" for module, digest in _code_of(system).alone.items() if module not in shared)
    return {
        "shared_fingerprint": fingerprint(),
        "system_fingerprint": hashlib.sha256("".join(own).encode()).hexdigest(),
    }


def task_digest(task: Any) -> str:
    """SHA-256 of the module of a task and what it imports, files beside it included.

    Our own tasks lie outside the wall; for them, SHA-256 of what they import from behind it.
    """
    [module] = modules(type(task))
    code = _code_of_task(task)
    if not _is_ours(module):
        return fingerprint(code=code)  # each file of its own: what a package only passes on is no part of its module
    return hashlib.sha256("".join(sorted(code.taken(module))).encode()).hexdigest()


def _code_of_task(task: Any) -> _Code:
    """The module of a task and all that it imports, as they were when its class was created."""
    kind: Any = type(task)
    return _code_of_class(kind)


@functools.cache
def _code_of_class(kind: Any) -> _Code:
    [module] = own = modules(kind)
    is_ours = _is_ours(module)
    code = _Code(_here if is_ours else _beside(own), follows=not is_ours, is_of_task=True)
    code.taken(module) if is_ours else code.digest(module)
    return code


def _is_ours(module: str) -> bool:
    return module.partition(".")[0] == PACKAGE.name


def _decides(module: str) -> bool:
    """Whether a module lies behind the wall."""
    package, _, inner = module.partition(".")
    return package == PACKAGE.name and inner.partition(".")[0] in DECIDING


def provenance(device_type: str | None = None, system: Any = None, task: Any = None) -> Provenance:
    """The origin of a run that starts now on this type of device ("cpu", "cuda"; None: the best)."""
    commit, why_dirty = _commit(system, task)
    torch = sys.modules.get("torch")  # a stamp must not cost an import
    cpu = processor()
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
        "device": _device(torch, device_type, cpu.name) if torch else None,
        "n_threads": torch.get_num_threads() if torch else os.cpu_count() or 1,
        "instructions": torch.backends.cpu.get_cpu_capability() if torch else None,
        "versions": {name: importlib.metadata.version(name) for name in LIBRARIES},
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def syntax(node: Any, told: Callable[[ast.AST], str | None], without: Container[str] = ()) -> str:
    """`ast.dump` without docstrings and without empty fields, as these vary between versions of Python.

    `told` gives the text that replaces a node, "" to leave it out, None to dump it; `without` names fields to omit.
    """
    if isinstance(node, list):
        return f"[{','.join(filter(None, (syntax(item, told, without) for item in node)))}]"
    if not isinstance(node, ast.AST):
        return repr(node)
    if (text := told(node)) is not None:
        return text
    if isinstance(node, DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
        node.body = node.body[1:]
    fields = (
        f"{name}={syntax(value, told, without)}"
        for name, value in ast.iter_fields(node)
        if name not in without and value not in (None, [])
    )
    return f"{type(node).__name__}({','.join(fields)})"


def _commit(system: Any = None, task: Any = None) -> tuple[str | None, str | None]:
    """The commit of the deciding code, and why the code cannot be restored from it alone (None where it can)."""
    commit, why_dirty = _commit_of_package(system, task)
    if why_dirty is None and (new := sorted({file.name for file in _own(system, task) if not is_committed(file)})):
        return commit, f"not committed: {', '.join(new)}"
    return commit, why_dirty


def _own(system: Any, task: Any) -> Iterator[Path]:
    """The deciding files of a row's system and task outside the package, and those of ours that define its system."""
    found = [(modules(system), _code_of(system))] if system is not None else []
    found += [(modules(type(task)), _code_of_task(task))] if task is not None else []
    yield from (folder / _file(module) for module, folder in modules(system).items() if _is_ours(module))
    for own, code in found:
        for module in code.alone:
            places = [folder / _file(name) for folder in own.values() for name in (module, f"{module}.__init__")]
            if not _is_ours(module):
                yield next((file for file in places if file.is_file()), places[0])


def _commit_of_package(system: Any, task: Any) -> tuple[str | None, str | None]:
    root = PACKAGE.parent
    # a package installed into somebody else's checkout must not take that checkout's commit
    ours = _git(root, "ls-files", "--error-unmatch", "--", PACKAGE.name)
    commit = _git(root, "rev-parse", "--verify", "HEAD") if ours else None
    status = _git(root, "status", "--porcelain", "-z", "--no-renames", "--untracked-files", "--", PACKAGE.name)
    if commit is None or status is None:
        return _release()
    files = {f"{PACKAGE.name}/{file}" for file in fingerprints(system)}
    of_task = {_file(module) for module in _code_of_task(task).alone} - files if task is not None else set()
    changed = {entry[3:] for entry in status.split("\0") if entry} & (files | of_task)  # "XY path"
    if not changed or (system is None and not changed & of_task and _committed(root) == fingerprint()):
        return commit.strip(), None
    return commit.strip(), f"not committed: {', '.join(sorted(changed))}"


def _committed(root: Path) -> str | None:
    """The fingerprint of the code as committed; None where the commit lacks one of its files."""

    def source(path: str) -> bytes | None:
        text = _git(root, "show", f"HEAD:{path}")
        return None if text is None else text.encode("utf-8", "surrogateescape")

    try:
        return fingerprint(code=_read(functools.cache(source)))
    except FileNotFoundError:
        return None


def is_committed(file: Path) -> bool | None:
    """Whether a file is unchanged since its commit; None where git is not available."""
    if _git(file.parent, "rev-parse", "--git-dir") is None:
        return None
    tracked = _git(file.parent, "ls-files", "--error-unmatch", "--", file.name) is not None
    return tracked and not _git(file.parent, "status", "--porcelain", "--", file.name)


def _release() -> tuple[str | None, str | None]:
    """As `_commit`, for a package without git: the commit it was built from, and whether it was changed since."""
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


def _device(torch: Any, device_type: str | None, cpu: str) -> str:
    if device_type in (None, "cuda") and torch.cuda.is_available():
        return str(torch.cuda.get_device_name())
    return cpu
