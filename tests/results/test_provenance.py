"""A stamp names the code that decides a number, sees what is not committed, and gives nobody away."""

import functools
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

from repro.results import provenance as stamp
from repro.results.provenance import Processor, processor

ROOT = stamp.PACKAGE.parent
LAYER = b'''"""A layer."""

class Layer:
    """Holds a number."""

    def size(self) -> int:
        """Its size."""
        return 512
'''
STAGES = b"""from math import sin
from repro.data import order
from repro.model.layer import Layer
if TYPE_CHECKING:
    from repro.report import Page

def score(page: "Page"):
    from repro.decoding.bleu import score
    return score(Layer(), order.first(), sin(1))
"""
FILES = {
    "training/stages.py": STAGES,
    "data/order.py": b"def first(): return 1\n",
    "data/fetch.py": b"WAIT = 10\n",
    "model/layer.py": LAYER,
    "model/other.py": b"from repro.model.layer import Layer\n",
    "decoding/bleu.py": b"from repro.data.words import cut\nfrom repro.storage.atomic import write\n"
    b"def score(*what): return write(cut(what))\n",
    "decoding/evalb.py": b"from repro.data.brackets import depth\ndef f1(what): return depth(what)\n",
    "data/brackets.py": b"def depth(what): return 1\n",
    "data/words.py": b"def cut(what): return what\n",
    "storage/atomic.py": b"def write(what): return what\n",
    "report.py": b"class Page: pass\n",
}


def write(root: Path, **changed: bytes | None) -> Path:
    """A project of eleven files, some of them changed or (None) left out: `model__layer` is model/layer.py."""
    files = FILES | {f"{name.replace('__', '/')}.py": text for name, text in changed.items()}
    for name, text in files.items():
        if text is not None:
            (root / "repro" / name).parent.mkdir(parents=True, exist_ok=True)
            (root / "repro" / name).write_bytes(text)
    return root


def fingerprint(root: Path) -> str:
    """Of the project in a folder."""
    with pytest.MonkeyPatch.context() as patch:
        point_at(root, patch)
        return stamp.fingerprint()


def point_at(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have this project stamped, as it is now."""
    monkeypatch.setattr(stamp, "PACKAGE", root / "repro")
    monkeypatch.setattr(stamp, "_code", functools.cache(stamp._code.__wrapped__))


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project of its own, committed, whose package is the one that gets stamped."""
    if not shutil.which("git"):
        pytest.skip("needs git, which is absent.")
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    root = write(tmp_path / "project")
    for name in ("experiments/table3_A.py", "results/table.md"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(b"1\n")
    git(root, "init", "-q")
    commit(root)
    point_at(root, monkeypatch)
    return root


def commit(root: Path) -> None:
    git(root, "add", ".")
    git(root, "-c", "user.name=A", "-c", "user.email=a@example.org", "commit", "-qm", "one")


def git(root: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=root, check=True, capture_output=True).stdout.decode()


def changed(folder: Path, old: bytes, new: bytes) -> str:
    """The fingerprint where the layer has another text in one place."""
    assert old in LAYER
    return fingerprint(write(folder / new.hex()[-60:], model__layer=LAYER.replace(old, new)))


def test_what_the_code_does_makes_the_fingerprint_and_not_its_words_layout_and_import_statements(
    tmp_path: Path,
) -> None:
    as_it_was = fingerprint(write(tmp_path / "as it was"))
    for old, new in (
        (b'"""A layer."""\n', b""),
        (b'"""Its size."""', b"'''Its size, at length.'''"),
        (b"return 512", b"return (512)  # paper: Table 3"),
        (b"\n\nclass", b"\n\nimport os, math\nfrom repro.data.words import cut\nclass"),  # and nothing made of it
    ):
        assert changed(tmp_path, old, new) == as_it_was, new
    for old, new in (
        (b"512", b"513"),
        (b"512", b"512.0"),
        (b"size", b"width"),
        (b"return 512", b"x = 'a text that is no docstring'\n        return 512"),
    ):
        assert changed(tmp_path, old, new) != as_it_was, new


def test_it_covers_what_is_imported_at_any_distance_and_nothing_else(tmp_path: Path) -> None:
    seen = {fingerprint(write(tmp_path / "as it was"))}
    # for types alone; by nobody; an importer; outside the wall
    for name in ("report", "data__fetch", "model__other", "storage__atomic"):
        assert fingerprint(write(tmp_path / name, **{name: b"x = 1"})) in seen
    deciding = {"data__words": b"def cut(what): return [what]", "decoding__bleu": b"x = 1", "data__order": b"x = 1"}
    for name, text in deciding.items():
        seen.add(fingerprint(write(tmp_path / name, **{name: text})))
    seen.add(fingerprint(write(tmp_path / "more", data__words=b"import repro.data.fetch\n" + FILES["data/words.py"])))
    assert len(seen) == 5


def test_a_moved_file_changes_nothing(tmp_path: Path) -> None:
    moved = {
        "training__stages": STAGES.replace(b"repro.data import order", b"repro.data.plan import digest as order")
        .replace(b"repro.model.layer", b"repro.model.deep.layers")
        .replace(b"from math import sin\n", b"")
        .replace(b"import Layer\n", b"import Layer\nfrom math import sin\n"),
        "data__order": None,
        "data__plan__digest": FILES["data/order.py"],
        "model__layer": None,
        "model__other": None,
        "model__deep__layers": LAYER,
    }
    assert fingerprint(write(tmp_path / "moved", **moved)) == fingerprint(write(tmp_path / "as it was"))


def test_the_same_name_for_another_thing_counts(tmp_path: Path) -> None:
    other = {"model__other": LAYER.replace(b"512", b"256"), "data__words": b"import repro.data.order as o\n"}
    both = {**other, "decoding__bleu": FILES["decoding/bleu.py"] + b"import repro.model.other\n"}
    seen = {fingerprint(write(tmp_path / "as it was", **both))}
    for old, new in (
        (b"from math import sin", b"from math import cos as sin"),
        (b"from math import sin", b"from cmath import sin"),
        (b"repro.model.layer import", b"repro.model.other import"),
        (b"from repro.data import order", b"from repro.data import words as order"),
    ):
        assert old in STAGES
        seen.add(fingerprint(write(tmp_path / str(len(seen)), **both, training__stages=STAGES.replace(old, new))))
    assert len(seen) == 5


def test_a_package_without_sources_and_a_circle_of_imports_have_no_fingerprint(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"expected the source repro/data"):
        fingerprint(write(tmp_path / "without", data__order=None))
    circle = write(tmp_path / "circle", data__words=b"from repro.decoding.bleu import score\n")
    with pytest.raises(ValueError, match=r"bleu -> repro\.data\.words -> repro\.decoding\.bleu: expected no"):
        fingerprint(circle)


def test_our_own_code_that_decides() -> None:
    assert {file.partition("/")[0] for file in stamp.fingerprints()} == {*stamp.DECIDING}


def test_what_decides_nothing_makes_nothing_dirty(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("results/table.md", "experiments/table3_A.py", "repro/data/fetch.py"):
        (checkout / name).write_bytes(b"2\n")  # a sweep writes its tables as it goes
    point_at(checkout, monkeypatch)
    monkeypatch.setenv("GIT_DIR", str(checkout / "elsewhere"))  # git sets it for its hooks
    found = stamp.provenance()
    monkeypatch.delenv("GIT_DIR")
    head = git(checkout, "rev-parse", "HEAD").strip()
    assert (found["commit"], found["dirty"], found["why_dirty"]) == (head, False, None)


def test_uncommitted_deciding_code_is_dirty_and_named_until_it_is_committed(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    layer = checkout / "repro" / "model" / "layer.py"
    layer.write_bytes(LAYER.replace(b"512", b"256"))
    (checkout / "repro" / "training" / "stages.py").write_bytes(STAGES + b"import repro.data.scale\n")
    (checkout / "repro" / "data" / "scale.py").write_bytes(b"x = 1\n")
    (checkout / "repro" / "report.py").write_bytes(b"x = 1\n")
    point_at(checkout, monkeypatch)
    then, commit_then = stamp.provenance(), git(checkout, "rev-parse", "HEAD").strip()
    why = "not committed: repro/data/scale.py, repro/model/layer.py, repro/training/stages.py"
    assert (then["commit"], then["dirty"], then["why_dirty"]) == (commit_then, True, why)
    assert stamp.cleared(then) == then
    commit(checkout)
    commit_now = git(checkout, "rev-parse", "HEAD").strip()
    assert stamp.provenance()["commit"] == commit_now != commit_then
    # a run is clean once its code is committed: it stayed out of the tables for ever
    assert stamp.cleared(then) == {**then, "commit": commit_now, "dirty": False, "why_dirty": None}
    layer.write_bytes(LAYER.replace(b"512", b"128"))
    point_at(checkout, monkeypatch)
    commit(checkout)
    assert stamp.cleared(then) == then  # this is other code


def test_what_scores_parsers_has_a_digest_of_its_own_and_is_looked_at_with_what_it_imports(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # it is not among what all rows share: with another parser a run was clean
    before = stamp.fingerprint(), stamp.parsing_digest()
    (checkout / "repro" / "data" / "brackets.py").write_bytes(b"def depth(what): return 2\n")
    (checkout / "repro" / "report.py").write_bytes(b"x = 2\n")
    point_at(checkout, monkeypatch)
    assert stamp.fingerprint() == before[0]
    assert stamp.parsing_digest() != before[1]
    assert stamp.provenance()["why_dirty"] == "not committed: repro/data/brackets.py"


def test_without_a_commit_a_stamp_is_dirty_and_says_why(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    point_at(write(checkout / "experiments"), monkeypatch)
    in_anothers = stamp.provenance()
    monkeypatch.setenv("PATH", "")
    for found in (in_anothers, stamp.provenance()):
        assert (found["commit"], found["dirty"]) == (None, True)
        assert "git names no commit" in str(found["why_dirty"])


def test_a_release_without_git_is_as_good_as_its_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = write(tmp_path)
    point_at(root, monkeypatch)
    release = {"version": "1.2", "commit": "12" * 20, "fingerprint": stamp.fingerprint()}
    (root / "repro" / stamp.RELEASE).write_text(json.dumps(release))
    found = stamp.provenance()
    assert (found["commit"], found["dirty"], found["why_dirty"]) == ("12" * 20, False, None)
    point_at(write(tmp_path, data__words=b"def cut(what): return [what]"), monkeypatch)
    found = stamp.provenance()
    assert (found["dirty"], found["why_dirty"]) == (True, "changed since release 1.2 was built")


def test_it_gives_away_no_person_and_no_place() -> None:
    found = stamp.provenance()
    assert re.fullmatch("[0-9a-f]{64}", found["fingerprint"])
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", found["started"])
    text = json.dumps(found)
    private = [str(Path.home()), str(Path.cwd()), getpass.getuser(), socket.gethostname()]
    assert [word for word in private if len(word) > 4 and word in text] == []
    assert re.findall(r"(?<!\w)/\w+/|[A-Z]:\\", text) == []


def test_the_device_is_the_one_that_was_used(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = SimpleNamespace(
        cuda=SimpleNamespace(is_available=lambda: True, get_device_name=lambda: "H200"),
        backends=SimpleNamespace(cpu=SimpleNamespace(get_cpu_capability=lambda: "AVX2")),
        get_num_threads=lambda: 3,
    )
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setattr(stamp, "processor", lambda: Processor("a processor", "Z, family 6", ("avx2", "fma")))
    for device_type, name in ((None, "H200"), ("cpu", "a processor")):
        found = stamp.provenance(device_type)
        assert (found["device"], found["n_threads"], found["instructions"]) == (name, 3, "AVX2")
    assert (found["cpu"], found["cpu_model"], found["cpu_flags"]) == ("a processor", "Z, family 6", ["avx2", "fma"])


def test_a_stamp_costs_no_import() -> None:
    code = "import sys, repro.results.provenance as p; print(p.provenance()['device'], 'torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, check=True)
    assert done.stdout == b"None False\n"


# The processor


X86 = """processor\t: 0
vendor_id\t: GenuineIntel
cpu family\t: 6
model\t\t: 167
model name\t: A Processor @ 2.60GHz
stepping\t: 1
flags\t\t: fpu sse sse4_2 avx avx2 fma f16c avx512_vnni erms amx_tile

processor\t: 1
model\t\t: 168
"""


def test_the_first_processor_is_described(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.processor", lambda: "")
    monkeypatch.setattr("platform.machine", lambda: "aarch64")
    assert processor(tmp_path / "none") == Processor("aarch64", None, ())
    (tmp_path / "cpuinfo").write_text(X86)
    vectors = "amx_tile", "avx", "avx2", "avx512_vnni", "f16c", "fma", "sse4_2"
    described = "GenuineIntel, family 6, model 167, stepping 1"
    assert processor(tmp_path / "cpuinfo") == Processor("A Processor @ 2.60GHz", described, vectors)


def test_where_a_package_is_built_nothing_is_installed() -> None:
    """setup.py asks for the commit in an environment that has setuptools alone."""
    asks = "from repro.results import provenance as of; print(of.committed()[0], of.fingerprint())"
    command = [sys.executable, "-I", "-S", "-c", f"import sys; sys.path.insert(0, {str(ROOT)!r}); {asks}"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.split() == [str(stamp.committed()[0]), stamp.fingerprint()]
