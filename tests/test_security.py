"""What the package never does, seen while it runs: no shell, no pickle, no network, nothing written elsewhere."""

import importlib.metadata
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import matplotlib
import pytest
from text_folders import put

from repro.data.tokenizer import Tokenizer
from repro.results import record
from repro.storage import folder_cache, journal
from repro.training import checkpoint

ROOT = Path(__file__).parent.parent
COMMAND = "import sys; from repro.cli.commands import main; sys.exit(main())"


def audited(
    folder: Path, *program: str, allowed: tuple[Path, ...] = (), package: Path = ROOT
) -> tuple[int, list[str], str]:
    """The exit code of a program, what it did that it may not, and all it said; home and TMPDIR are in `folder`."""
    home, tmp = folder / "home", folder / "tmp"
    for one in (home, tmp, folder / "here"):
        one.mkdir(exist_ok=True)
    fonts = matplotlib.get_cachedir()  # torchmetrics imports matplotlib, which keeps its list of fonts somewhere
    places = os.pathsep.join(str(place) for place in (tmp, fonts, *allowed))
    environment = {name: os.environ[name] for name in ("PATH", "LANG", "LD_LIBRARY_PATH") if name in os.environ}
    environment |= {"PYTHONPATH": str(package), "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1"}
    environment |= {"HOME": str(home), "TMPDIR": str(tmp), "MPLCONFIGDIR": fonts}
    done = subprocess.run(
        [sys.executable, str(ROOT / "tests" / "audited.py"), places, *program],
        cwd=folder / "here", env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    said = done.stdout + done.stderr
    return done.returncode, [line for line in said.split("\n") if line.startswith("VIOLATION")], said


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of packages with what a wheel holds, but no experiments: no tests, no documents, no checkout."""
    pytest.importorskip("setuptools")
    source, site = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("site")
    for name in ("repro", "pretrained"):
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    git = ["git", "-c", "user.name=A", "-c", "user.email=a@example.org"]
    build = "from setuptools import build_meta; build_meta.build_wheel('.')"
    for command in (
        [*git, "init", "-q"],
        [*git, "add", "."],
        [*git, "commit", "-qm", "1"],
        [sys.executable, "-c", build],
    ):
        subprocess.run(command, cwd=source, check=True, capture_output=True)
    [wheel] = source.glob("*.whl")
    zipfile.ZipFile(wheel).extractall(site)
    return site


def facts(folder: Path) -> list[tuple[str, int, int]]:
    """All that is in a folder: names, sizes, times."""
    found = sorted(folder.rglob("*"))
    return [(str(path), path.stat().st_size, path.stat().st_mtime_ns) for path in found]


def test_the_page_of_the_package_is_the_readme_without_a_link_to_nowhere(installed: Path) -> None:
    [folder] = installed.glob("*.dist-info")
    told = importlib.metadata.PathDistribution(folder).metadata
    assert told["Description-Content-Type"] == "text/markdown"
    page = str(told.get_payload() or told["Description"])
    assert page.startswith("# Attention Is All You Need, reproduced\n")
    assert re.findall(r"\]\((?!https?://|#)[^)]*\)", page) == []


def test_a_wheel_holds_every_file_of_the_package(installed: Path) -> None:
    ours, theirs = ({file.relative_to(root) for file in (root / "repro").rglob("*.*")} for root in (ROOT, installed))
    assert {file for file in ours - theirs if file.suffix != ".pyc"} == set()


@pytest.mark.slow
def test_the_whole_way_of_a_row(tmp_path: Path, installed: Path) -> None:
    # from an installed wheel and a copy of the experiment, in folders whose names a shell would take for commands
    before = facts(installed)
    assert {path.name.partition("-")[0] for path in installed.iterdir()} == {"repro", "attention_repro"}
    tmp_path = tmp_path / "a b; touch here && $(touch here) `touch here` | touch here > here"
    tmp_path.mkdir()
    names = ("results", "runs", "cache")
    places = [f"--{name}-dir={tmp_path / name}" for name in names]
    experiment = shutil.copy(ROOT / "experiments" / "table3_A.py", tmp_path)
    places.append(f"--tracking-uri=sqlite:///{tmp_path}/db/mlflow.db")
    allowed = tuple(tmp_path / name for name in (*names, "db"))
    command = (str(experiment), "--scale=smoke", "--rows", "base", "--steps=1", *places)
    code, wrong, said = audited(tmp_path, *command, allowed=allowed, package=installed)
    assert (code, wrong) == (0, []), said
    assert facts(installed) == before
    assert "1 run in" in said
    [one] = [record.load(file) for file in (tmp_path / "results").rglob("*-seed1.json")]
    release = json.loads((installed / "repro" / "release.json").read_bytes())
    assert (one.stamp["dirty"], one.stamp["commit"]) == (False, release["commit"])  # without git
    assert list((tmp_path / "here").iterdir()) == []
    assert list((tmp_path / "home").iterdir()) == []


def test_an_installed_package_keeps_nothing_in_its_own_folder(tmp_path: Path, installed: Path) -> None:
    # where text is looked for and stored if nobody says where: beside the person, not beside the package
    program = put(tmp_path / "program.py", COMMAND)
    for command, code in ((("fetch", "wmt14-en-de", "--dry-run"), 0), (("prepare", "wmt14-en-de"), 2)):
        found, wrong, said = audited(tmp_path, str(program), "data", *command, package=installed)
        assert (found, wrong) == (code, []), said
        assert str(installed) not in said
        assert "data" in said


def test_the_trained_model_of_an_installed_package_translates(tmp_path: Path, installed: Path) -> None:
    before = facts(installed)
    kept, source = (folder / "pretrained" / "laptop-base" for folder in (installed / "repro", ROOT))
    first, second = ({file.name: file.read_bytes() for file in place.iterdir()} for place in (kept, source))
    assert first == second
    text, program = put(tmp_path / "news.en", "The old house is big.\n"), put(tmp_path / "program.py", COMMAND)
    words = ("translate", "--model", "laptop-base", str(text))
    code, wrong, said = audited(tmp_path, str(program), *words, package=installed)
    assert (code, wrong) == (0, []), said
    assert f"{kept}: base, base, seed 4, scale laptop, en-de" in said
    assert facts(installed) == before
    assert list((tmp_path / "here").iterdir()) == []


class Runs:
    """What a pickle of it does when it is read: make a file."""

    def __init__(self, canary: Path) -> None:
        self.canary = canary

    def __reduce__(self) -> tuple[Callable[[str], object], tuple[str]]:
        return os.system, (f"touch {self.canary}",)


def test_a_pickle_in_the_place_of_anything_is_never_read(tmp_path: Path) -> None:
    import pickle

    canary = tmp_path / "canary"
    content = pickle.dumps({"state_dict": [Runs(canary)]})
    pickle.loads(content)
    assert canary.exists(), "it would have done nothing anyway"
    canary.unlink()
    readers: dict[str, Callable[[Path], object]] = {
        "step-000000001.safetensors": lambda path: checkpoint.load(path, "0" * 16),
        "record.json": record.load,
        "journal.jsonl": lambda path: list(journal.read(path)) or pytest.fail("nothing was refused"),
        "manifest.json": lambda path: folder_cache.verified(path.parent),
        "tokenizer.json": Tokenizer.load,
    }
    for name, read in readers.items():
        (tmp_path / name).write_bytes(content + b"\n")
        with pytest.raises((ValueError, OSError)):
            read(tmp_path / name)
    assert not canary.exists()


@pytest.mark.parametrize(
    ("program", "event"),
    [
        ("import socket; socket.socket().connect_ex(('192.0.2.1', 9))", "socket.connect"),
        ("import os; os.system('true')", "os.system"),
        ("import subprocess; subprocess.run(['sh', '-c', 'true'])", "subprocess.Popen"),
        ("import os; os.close(os.open('x', os.O_CREAT))", "open"),
        ("import os, tempfile; os.rename(tempfile.mkstemp()[1], 'x')", "os.rename"),
    ],
)
def test_the_audit_reports_each_forbidden_action(tmp_path: Path, program: str, event: str) -> None:
    _, wrong, said = audited(tmp_path, str(put(tmp_path / "program.py", program)))
    assert [line.split(":")[0] for line in wrong] == [f"VIOLATION {event}"], said
