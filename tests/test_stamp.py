"""A stamp names the code that decides a number, sees what is not committed, and gives nobody away."""

import getpass
import json
import os
import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from repro import stamp

LAYER = b'''"""A layer."""

class Layer:
    """Holds a number."""

    def size(self) -> int:
        """Its size."""
        return 512
'''


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project of its own, committed, whose package is the one that gets stamped."""
    if not shutil.which("git"):
        pytest.skip("needs git, which is absent.")
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    root = tmp_path / "project"
    for name in ("repro/hyper.py", "experiments/table3_A.py", "results/table.md"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(b"1\n")
    git(root, "init", "-q")
    git(root, "add", ".")
    git(root, "-c", "user.name=A", "-c", "user.email=a@example.org", "commit", "-qm", "first")
    monkeypatch.setattr(stamp, "PACKAGE", root / "repro")
    monkeypatch.setattr(stamp, "fingerprint", lambda: "")  # of this project's files, which no test here is about
    return root


def git(root: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=root, check=True, capture_output=True).stdout.decode()


def package(folder: Path, layer: bytes = LAYER) -> Path:
    """The smallest package that has a fingerprint."""
    for name in ("symbols.py", "hyper.py", "data/a.py", "training/a.py", "decoding/a.py"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"")
    (folder / "model").mkdir(exist_ok=True)
    (folder / "model" / "layer.py").write_bytes(layer)
    return folder


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"""A layer."""', b'"""Another sentence."""'),
        (b'"""A layer."""\n', b""),
        (b'    """Holds a number."""\n\n', b""),
        (b'"""Its size."""', b"'''Its size, at length.'''"),
        (b"return 512", b"return (512)  # paper: Table 3"),
        (b"\n\nclass", b"\n# a comment\n\n\n\nclass"),
    ],
)
def test_words_and_layout_do_not_count(tmp_path: Path, old: bytes, new: bytes) -> None:
    assert old in LAYER
    changed = package(tmp_path / "changed", LAYER.replace(old, new))
    assert stamp.fingerprint(changed) == stamp.fingerprint(package(tmp_path / "as it was"))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"512", b"513"),
        (b"512", b"512.0"),
        (b"512", b"'512'"),
        (b"512", b"None"),
        (b"return 512", b"return -512"),
        (b"size", b"width"),
        (b"return 512", b"x = 'a text that is no docstring'\n        return 512"),
    ],
)
def test_what_decides_counts(tmp_path: Path, old: bytes, new: bytes) -> None:
    changed = package(tmp_path / "changed", LAYER.replace(old, new))
    assert stamp.fingerprint(changed) != stamp.fingerprint(package(tmp_path / "as it was"))


def test_the_fingerprint_covers_every_deciding_file_and_no_other(tmp_path: Path) -> None:
    folder = package(tmp_path)
    seen = {stamp.fingerprint(folder)}
    (folder / "report.py").write_bytes(b"1")
    assert stamp.fingerprint(folder) in seen
    for name in ("symbols.py", "hyper.py", "model/layer.py", "data/a.py", "training/a.py", "decoding/b/c.py"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(b"x = 1")
        seen.add(stamp.fingerprint(folder))
    (folder / "data" / "a.py").rename(folder / "data" / "b.py")
    seen.add(stamp.fingerprint(folder))
    assert len(seen) == 8


def test_a_package_without_sources_has_no_fingerprint(tmp_path: Path) -> None:
    shutil.rmtree(package(tmp_path) / "model")
    with pytest.raises(FileNotFoundError, match="should hold the source of model"):
        stamp.fingerprint(tmp_path)


def test_our_own_fingerprint() -> None:
    assert re.fullmatch("[0-9a-f]{64}", stamp.fingerprint())
    assert stamp.fingerprint() == stamp.provenance()["fingerprint"]


def test_a_clean_checkout(checkout: Path) -> None:
    (checkout / "results" / "table.md").write_bytes(b"2\n")  # a sweep writes its tables as it goes
    (checkout / "results" / "new.json").write_bytes(b"{}\n")
    found = stamp.provenance()
    assert (found["commit"], found["dirty"], found["why_dirty"]) == (
        git(checkout, "rev-parse", "HEAD").strip(),
        False,
        None,
    )


@pytest.mark.parametrize("name", ["repro/hyper.py", "repro/new.py", "experiments/table3_A.py", "experiments/b é.py"])
def test_uncommitted_code_is_dirty_and_named(checkout: Path, name: str) -> None:
    (checkout / name).write_bytes(b"2\n")
    found = stamp.provenance()
    assert found["dirty"]
    assert found["why_dirty"] == f"not committed: {name}"
    assert found["commit"] == git(checkout, "rev-parse", "HEAD").strip()


def test_a_git_hook_does_not_change_the_answer(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # git sets GIT_DIR for its hooks, and a test suite may run in one
    monkeypatch.setenv("GIT_DIR", str(checkout / "elsewhere"))
    assert not stamp.provenance()["dirty"]


@pytest.mark.parametrize("where", ["outside git", "in somebody else's checkout", "without git"])
def test_without_a_commit_a_stamp_is_dirty_and_says_why(
    where: str, checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if where == "without git":
        monkeypatch.setenv("PATH", "")
    else:
        installed = (tmp_path if where == "outside git" else checkout / "experiments") / "repro"
        installed.mkdir()
        monkeypatch.setattr(stamp, "PACKAGE", installed)
    found = stamp.provenance()
    assert (found["commit"], found["dirty"]) == (None, True)
    assert "git names no commit" in str(found["why_dirty"])


def test_it_gives_away_no_person_and_no_place() -> None:
    text = json.dumps(stamp.provenance())
    private = [str(Path.home()), str(Path.cwd()), getpass.getuser(), socket.gethostname()]
    assert [word for word in private if len(word) > 4 and word in text] == []
    assert re.findall(r"(?<!\w)/\w+/|[A-Z]:\\", text) == []


def test_versions_and_time() -> None:
    found = stamp.provenance()
    assert set(found["versions"]) == {"torch", "lightning", "tokenizers", "sacrebleu", "numpy"}
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", found["started"])
    assert found["cpu"]
    assert found["n_threads"] >= 1


def test_a_library_that_is_absent_has_no_version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stamp, "LIBRARIES", ("no-such-library",))
    assert stamp.provenance()["versions"] == {"no-such-library": None}


@pytest.mark.parametrize(("device_type", "name"), [(None, "H200"), ("cuda", "H200"), ("cpu", "a processor")])
def test_the_device_is_the_one_that_was_used(
    device_type: str | None, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch = SimpleNamespace(
        cuda=SimpleNamespace(is_available=lambda: True, get_device_name=lambda: "H200"),
        backends=SimpleNamespace(mps=SimpleNamespace(is_available=lambda: False)),
        get_num_threads=lambda: 3,
    )
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setattr(stamp, "_cpu", lambda: "a processor")
    found = stamp.provenance(device_type)
    assert (found["device"], found["n_threads"]) == (name, 3)


def test_a_stamp_costs_no_import() -> None:
    code = "import sys; from repro import stamp; print(stamp.provenance()['device'], 'torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=stamp.PACKAGE.parent, capture_output=True, check=True)
    assert done.stdout == b"None False\n"
