"""Where a number comes from: the code that decided it, and the machine that ran it."""

import ast
import hashlib
import importlib.metadata
import os
import platform
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypedDict

PACKAGE = Path(__file__).parent
DECIDING = ("symbols.py", "hyper.py", "model", "data", "training", "decoding")  # the rest watches and reports
RELEVANT = ("repro", "experiments")  # uncommitted changes elsewhere (results, docs) change no number
LIBRARIES = ("torch", "lightning", "tokenizers", "sacrebleu", "numpy")
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)  # syntax that has a docstring


class Provenance(TypedDict):
    """What a record says about its origin. Never a user, a host name or an absolute path."""

    fingerprint: str  # of the deciding code, see `fingerprint`
    commit: str | None  # None outside a git checkout
    dirty: bool  # the commit alone does not give back the code that ran
    why_dirty: str | None  # the changed files, or why there is no commit
    python: str
    platform: str
    cpu: str
    device: str | None  # what the network ran on; None where torch was not imported
    n_threads: int
    versions: dict[str, str | None]  # None: not installed
    started: str  # UTC, ISO 8601


def fingerprints(package: Path = PACKAGE) -> dict[str, str]:
    """SHA-256 of each file that decides a result: of its syntax, so neither comments nor docstrings count."""
    files: list[Path] = []
    for name in DECIDING:
        found = [package / name] if name.endswith(".py") else sorted((package / name).rglob("*.py"))
        if not found or not found[0].is_file():
            raise FileNotFoundError(f"{package} should hold the source of {name}. Install it again.")
        files += found
    named = sorted((path.relative_to(package).as_posix(), path) for path in files)
    return {name: hashlib.sha256(_syntax(ast.parse(path.read_bytes())).encode()).hexdigest() for name, path in named}


def fingerprint(package: Path = PACKAGE) -> str:
    """SHA-256 of the code that decides a result, all files together."""
    lines = "".join(f"{name}\n{digest}\n" for name, digest in fingerprints(package).items())
    return hashlib.sha256(lines.encode()).hexdigest()


def provenance(device_type: str | None = None) -> Provenance:
    """The origin of a run that starts now, on this type of device ("cpu", "cuda", "mps"; None: the best)."""
    commit, why_dirty = _commit(PACKAGE.parent)
    torch = sys.modules.get("torch")  # a stamp must not cost an import
    return {
        "fingerprint": fingerprint(),
        "commit": commit,
        "dirty": why_dirty is not None,
        "why_dirty": why_dirty,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "cpu": _cpu(),
        "device": _device(torch, device_type) if torch else None,
        "n_threads": torch.get_num_threads() if torch else os.cpu_count() or 1,
        "versions": {name: _version(name) for name in LIBRARIES},
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _syntax(node: Any) -> str:
    """`ast.dump` without docstrings and empty fields: the latter come and go between versions of Python."""
    if isinstance(node, list):
        return f"[{','.join(map(_syntax, node))}]"
    if not isinstance(node, ast.AST):
        return repr(node)
    if isinstance(node, DOCUMENTED) and ast.get_docstring(node) is not None:
        node.body = node.body[1:]
    fields = (f"{name}={_syntax(value)}" for name, value in ast.iter_fields(node) if value not in (None, []))
    return f"{type(node).__name__}({','.join(fields)})"


def _commit(root: Path) -> tuple[str | None, str | None]:
    """The commit of `root`, and why it does not tell the whole story (None where it does)."""
    # a package installed into somebody else's checkout must not take that checkout's commit
    ours = _git(root, "ls-files", "--error-unmatch", "--", PACKAGE.name)
    commit = _git(root, "rev-parse", "--verify", "HEAD") if ours else None
    status = _git(root, "status", "--porcelain", "-z", "--no-renames", "--untracked-files", "--", *RELEVANT)
    if commit is None or status is None:
        return None, "git names no commit for this code: no checkout, no commit yet, or no git"
    changed = [entry[3:] for entry in status.split("\0") if entry]  # "XY path"
    return commit.strip(), f"not committed: {', '.join(changed)}" if changed else None


def _git(root: Path, *arguments: str) -> str | None:
    """What git prints, or None where it fails."""
    # a hook of git's sets GIT_DIR and GIT_INDEX_FILE, which would answer for another checkout
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    command = ["git", "--no-optional-locks", *arguments]
    try:
        done = subprocess.run(command, cwd=root, env=environment, capture_output=True, check=True, timeout=60)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.decode("utf-8", "backslashreplace")


def _cpu() -> str:
    """The processor's name as it calls itself, where the system tells."""
    cpuinfo = Path("/proc/cpuinfo")
    for line in cpuinfo.read_bytes().split(b"\n") if cpuinfo.exists() else []:
        if line.startswith(b"model name"):
            return line.partition(b":")[2].decode("ascii", "replace").strip()
    return platform.processor() or platform.machine()


def _device(torch: Any, device_type: str | None) -> str:
    if device_type in (None, "cuda") and torch.cuda.is_available():
        return str(torch.cuda.get_device_name())
    if device_type in (None, "mps") and torch.backends.mps.is_available():
        return f"{_cpu()} (mps)"
    return _cpu()


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None
