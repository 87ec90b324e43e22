"""A system that is no Transformer goes the whole way; and one that cannot is refused before anything is trained."""

import importlib
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, NamedTuple

import pytest
import torch
from looked_inside import spec_of
from own_signals import own_signals, places
from text_folders import put, text_folder
from toy_system import Toy

from repro.cli.commands import main as command
from repro.experiment import Paper, Row, main
from repro.model import cost, counted
from repro.model.ablations.batch_norm import BatchNormalised
from repro.model.ablations.scores import UnscaledDot
from repro.model.config import BASE, Hyper
from repro.model.rivals.recurrent import Simple
from repro.model.transformer import Transformer
from repro.results import provenance, record
from repro.results.comparable import differences
from repro.results.record import Record
from repro.runs import load
from repro.runs.run import COMPILED, PACKED, made_for_gpu
from repro.runs.run_dir import made_of
from repro.runs.scales import SCALES
from repro.runs.table import Table, Translation, rows_of

pytestmark = pytest.mark.usefixtures("not_looked_inside")
EXPERIMENT = '''"""A toy beside the base."""

from dataclasses import replace
from functools import partial

from toy_system import Toy

from repro.experiment import Paper, Row

TABLE = "table_toy"
ROWS = [
    Row("plain", lambda base: replace(base, average=2, average_every=3), Paper(), system=Toy),
    Row("deep", lambda base: replace(base, dropout=0.0), Paper(), system=partial(Toy, depth=3)),
]
'''
WORDS = ["ab", "cde", "f", "gh", "ik"]


def write(folder: Path) -> None:
    """An experiment file, and text that takes no time."""
    put(folder / "experiments" / "table_toy.py", EXPERIMENT)
    splits = {}
    for split, n in {"train": 60, "dev": 7, "test": 5}.items():
        lines = [" ".join(WORDS[(i * k + len(split) + 2) % 5] for k in range(2 + i % 5)) for i in range(n)]
        splits[split] = [(f"{i} {line}",) * 2 for i, line in enumerate(lines)]
    text_folder(folder / "text", **splits)


def make(folder: Path, *more: str, of: list[Row] | None = None) -> None:
    """The command, in this process."""
    rows = load.experiment(folder / "experiments" / "table_toy.py")["ROWS"] if of is None else of
    text = ["--scale=smoke", "--corpus=folder", f"--data-dir={folder / 'text'}", "--vocab-size=300", "--steps=10"]
    with own_signals():
        main("table_toy", rows, [*text, *places(folder, *more)])


class Made(NamedTuple):
    """What the command left."""

    folder: Path
    records: dict[str, Record]

    def run(self, row: str) -> Path:
        return self.folder / "runs" / self.records[row].run


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    folder = tmp_path_factory.mktemp("toy")
    write(folder)
    make(folder)
    found = [record.load(path) for path in (folder / "runs").glob("*/record.json")]
    return Made(folder, {one.row: one for one in found})


def test_it_is_trained_averaged_searched_scored_and_recorded(made: Made) -> None:
    assert {row: one.system for row, one in made.records.items()} == {
        "base": None, "plain": "toy_system.Toy", "deep": "toy_system.Toy(depth=3)",
    }  # fmt: skip
    assert "system" not in json.loads((made.run("base") / "record.json").read_bytes())
    for one in made.records.values():
        assert one.status == "finished"
        assert len((made.folder / "runs" / one.run / "test.hyp").read_bytes().split(b"\n")) == 5 + 1
    assert "system" in differences(made.records["plain"], made.records["deep"])
    tags = {row: json.loads((made.run(row) / "run.json").read_bytes())["tags"] for row in made.records}
    assert tags["deep"]["system"] == "toy_system.Toy(depth=3)"
    assert "system" not in tags["base"]


def test_it_is_counted_from_its_module(made: Made) -> None:
    d, v, hyper = 64, made.records["deep"].tokenizer["size"], SCALES["smoke"].base
    assert made.records["deep"].params["here"] == v * d + 3 * (d * d + d) + 3 * d * d + d
    assert made.records["deep"].params["paper_size"] == 40_960 * 512 + 3 * (512 * 513) + 3 * 512 * 512 + 512
    # a sentence of 5 source and 7 target tokens: three maps of the source, one of three widths, the softmax
    expected = 3 * 2 * (5 * 3 * d * d + 7 * 3 * d * d + 7 * v * d)
    assert counted.counted_flops(partial(Toy, depth=3), hyper, v, 2, 10, 14) == 2 * expected
    text = cost.TextSizes(sentences=2, source_tokens=10, target_tokens=14)
    assert cost.training_flops(hyper, v, text, partial(Toy, depth=3)) == 2 * expected


def test_its_tables_name_it(made: Made) -> None:
    [folder] = [path for path in (made.folder / "results").iterdir() if path.is_dir()]
    page, sheet = ((folder / f"table_toy.{kind}").read_text() for kind in ("md", "csv"))
    assert " Toy(depth=3) " in page.replace("\\", "")
    assert "toy_system.Toy(depth=3)" in sheet, "whole where programs read it"
    assert ",system," in sheet.partition("\n")[0]


def open_in(folder: Path, run: Path, monkeypatch: pytest.MonkeyPatch) -> load.Trained:
    monkeypatch.chdir(folder)
    return load.open_run(run)


def test_it_is_found_again_through_its_row(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    model: Any = open_in(made.folder, made.run("deep"), monkeypatch).model
    assert isinstance(model, Toy)
    assert len(model.layers) == 3
    assert not model.training


def test_a_row_that_is_gone_or_another_is_refused(made: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match=r"of table_toy, of which there is no file in the folder experiments\. Type"):
        open_in(tmp_path, made.run("deep"), monkeypatch)
    for before, after, message in (
        ("depth=3", "depth=2", r"is toy_system\.Toy\(depth=2\)\. Give the system of its row"),
        ('"deep"', '"deeper"', r"is the Transformer or gone\. Give"),
    ):
        put(tmp_path / "experiments" / "table_toy.py", EXPERIMENT.replace(before, after))
        with pytest.raises(ValueError, match=message):
            open_in(tmp_path, made.run("deep"), monkeypatch)


def test_it_translates_and_is_not_exported(
    made: Made, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(made.folder)
    run = str(made.run("deep"))
    assert command(["translate", run, "text/test.en"]) == 0
    assert capsys.readouterr().out.encode() == (made.run("deep") / "test.hyp").read_bytes()
    pytest.importorskip("ctranslate2")
    assert command(["export", run, "--format", "ctranslate2", "to"]) == 2
    said = capsys.readouterr().err.splitlines()[-1]
    row = "row 'deep' of table_toy cannot be exported to ctranslate2"
    printed = "CTranslate2 knows the Transformer as printed, and this row is another system or has other parts."
    assert said == f"error: {row}: {printed} Export it with --format safetensors, which keeps any row."


lacking = type("Lacking", (torch.nn.Module,), {"__init__": lambda self, hyper, size: torch.nn.Module.__init__(self)})
lacking.__module__ = __name__


def same(base: Hyper) -> Hyper:
    return base


class Huge(Simple):
    """Of no width small enough."""

    def layers(self, *_: Any) -> dict[str, torch.nn.Module]:
        return {"encoder": torch.nn.Linear(600, 600)}


TYPED_IN = type("Mine", (Toy,), {"__module__": "__main__"})


@pytest.mark.parametrize(
    ("system", "options", "message"),
    [
        (same, [], "of one with classes, functions and numbers, got <function same"),
        (Toy(SCALES["smoke"].base, 7), [], "A system: expected a class at the top of a module, or functools.partial"),
        (partial(Toy, depth="3"), [], "of one with classes, functions and numbers, got '3'."),
        (TYPED_IN, [], "A system: Mine was typed in. Put it into a file and import it."),  # as in a notebook
        (Huge, [], "Huge: expected a width that fits into the 350,208 parameters of the base outside its embedding"),
        (lacking, [], "Lacking lacks embedding, encode, decode, start, advance, prepacked, reads_ragged, in_ctr"),
        (
            partial(Toy, depth=3),
            ["--backend=ctranslate2"],
            "Row 'x' of table_toy (toy_system.Toy(depth=3)): CTranslate2 knows the Transformer as printed, and Toy is",
        ),
        (BatchNormalised, ["--devices=2"], "got 2 parts of each (processes or micro-batches)"),
    ],
)
def test_what_is_no_system_is_refused_before_any_training(
    system: Any,
    options: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    if "--backend=ctranslate2" in options:
        pytest.importorskip("ctranslate2")
    monkeypatch.setitem(sys.modules, "__main__", ModuleType("__main__"))
    write(tmp_path)
    row = Row("x", lambda base: replace(base, dropout=0.2), Paper(), system=system)
    with pytest.raises(SystemExit, match="2"):
        make(tmp_path, "--rows=x", *options, of=[row])
    assert message in capsys.readouterr().err
    assert not [*(tmp_path / "runs").glob("*/checkpoints")]


def test_systems_are_told_apart_by_class_and_arguments() -> None:
    names = [
        provenance.system_text(one) for one in (None, Toy, partial(Toy, depth=2), partial(Transformer, positions=Toy))
    ]
    assert names == [
        "", "toy_system.Toy", "toy_system.Toy(depth=2)",
        "repro.model.transformer.Transformer(positions=toy_system.Toy)",
    ]  # fmt: skip
    base = SCALES["smoke"].base
    twins = [Row("a", same, Paper(), system=Toy), Row("b", same, Paper(), system=partial(Toy, depth=2))]
    table = Table(name="t", rows=twins, title="")
    assert len(rows_of([table], base, ["a", "b"], Translation("en-de"))) == 2
    table = replace(table, rows=[*twins, Row("c", same, Paper(), system=Toy)])
    with pytest.raises(ValueError, match="is row 'a' of t again"):
        rows_of([table], base, [], Translation("en-de"))


def test_two_systems_of_one_file_are_two_runs() -> None:
    spec = spec_of(hyper=SCALES["smoke"].base)
    assert len({spec, replace(spec)}) == 1, "what is alike is one, as plain data are"
    of_base = made_of(spec)
    assert "system" not in of_base
    systems = Toy, partial(Toy, depth=2), partial(Toy, depth=3)
    kinds = [made_of(replace(spec, system=system)) for system in systems]
    assert of_base.pop("code") not in {kind.pop("code") for kind in kinds}
    assert [kind.pop("system") for kind in kinds] == [
        "toy_system.Toy", "toy_system.Toy(depth=2)", "toy_system.Toy(depth=3)",
    ]  # fmt: skip
    assert kinds == [of_base] * 3


RIVALS = {  # files of somebody's package, and of a script beside it
    "kin/__init__.py": "from .cells import Cell\n",
    "kin/cells.py": "from . import sizes\nfrom .deep.gates import GATE\n\nclass Cell:\n    width = sizes.WIDTH, GATE\n",
    "kin/sizes.py": "WIDTH = 1\n",
    "kin/deep/gates.py": "from ..units import UNIT\n\nGATE = 1 * UNIT\n",
    "kin/units.py": "UNIT = 1\n",
    "script_of_kin.py": "import repro\nfrom kin import Cell\nfrom kin.cells import Cell as Same\n\n"
    "class Mine(Cell):\n    run = repro.run, Same\n",
}


@pytest.fixture
def kin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """What tells the code of a class that a new process finds in such files."""
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def digest(module: str, name: str, files: dict[str, str] = RIVALS) -> str:
        for file, text in files.items():
            put(tmp_path / file, text)
        for loaded in [known for known in sys.modules if known.startswith(("kin", "script_of_kin"))]:
            monkeypatch.delitem(sys.modules, loaded)
        importlib.invalidate_caches()
        return provenance.fingerprint(getattr(importlib.import_module(module), name))

    return digest


@pytest.mark.parametrize(
    ("module", "name", "changed"),
    [("kin", "Cell", "kin/sizes.py"), ("script_of_kin", "Mine", "kin/units.py")],  # `from . import`; two imports away
)
def test_the_fingerprint_covers_a_package_and_what_it_imports_from_itself(
    kin: Callable[..., str], tmp_path: Path, module: str, name: str, changed: str
) -> None:
    before = kin(module, name, {file: f"# a comment\n{text}" for file, text in RIVALS.items()})
    other = {**RIVALS, changed: RIVALS[changed].replace("1", "2")}
    assert kin(module, name, other) != before
    assert kin(module, name) == before
    (tmp_path / changed).write_text(other[changed])
    kind = getattr(sys.modules[module], name)
    now = provenance.fingerprint(partial(kind, 3))
    assert now == before != provenance.fingerprint(), "what is edited is not what runs, until it is read again"


@pytest.mark.skipif(not shutil.which("git"), reason="needs git, which is absent.")
def test_what_a_system_imports_is_to_be_committed_too(
    kin: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    of_package = {"ls-files": "repro", "rev-parse": "12" * 20, "status": ""}  # whose own state is another matter
    real = provenance._git
    whose = {provenance.PACKAGE.parent: lambda _, *words: of_package[words[0]]}
    monkeypatch.setattr(provenance, "_git", lambda folder, *words: whose.get(folder, real)(folder, *words))
    kin("script_of_kin", "Mine")
    mine = sys.modules["script_of_kin"].Mine

    def git(*words: str) -> None:
        who = ("-c", "user.name=A", "-c", "user.email=a@example.org")
        subprocess.run(["git", *who, *words], cwd=tmp_path, check=True, capture_output=True)

    git("init", "-q")
    git("add", ".")
    git("commit", "-qm", "one")
    assert provenance.provenance(system=mine)["why_dirty"] is None
    (tmp_path / "kin/units.py").write_text("UNIT = 2\n")
    then = provenance.provenance(system=mine)
    assert then["why_dirty"] == "not committed: units.py"
    git("commit", "-qam", "two")
    assert not provenance.cleared(then, mine)["dirty"]


@pytest.mark.parametrize(
    ("gpu", "settings", "expected"),
    [
        (True, {}, (COMPILED, PACKED)),
        (False, {}, ()),
        (True, {"precision": "fp32"}, (PACKED,)),  # no kernel: attention pads
        (True, {"hyper": replace(BASE, n_heads=1, d_k=512, d_v=512)}, (PACKED,)),
        (True, {"hyper": replace(BASE, attention_dropout=0.1)}, (PACKED,)),  # as in Table 4
        (True, {"system": partial(Transformer, mix=UnscaledDot)}, ()),
        (True, {"system": Simple}, ()),
    ],
)
def test_a_gpu_compiles_what_reads_packed_batches_by_the_kernel(
    monkeypatch: pytest.MonkeyPatch, gpu: bool, settings: dict[str, Any], expected: tuple[str, ...]
) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: gpu)
    calls, said = list[str](), list[str]()
    monkeypatch.setattr("repro.model.compiled.begin_run", calls.clear)
    monkeypatch.setattr("repro.model.compiled.why_not", lambda: calls.append("the trial"))
    model = SimpleNamespace(compile_layers=lambda: calls.append("compiled"))
    spec: Any = SimpleNamespace(**{"system": None, "hyper": BASE, "precision": "bf16"} | settings)
    assert made_for_gpu(model, spec, said.append) == expected
    assert calls == ["compiled"] * (COMPILED in expected)
    monkeypatch.setattr("repro.model.compiled.why_not", lambda: "RuntimeError: Failed to find C compiler.")
    assert made_for_gpu(model, spec, said.append) == expected[-1:]
    assert calls == []
    assert ["(RuntimeError: Failed to find C compiler.)" in line for line in said] == [True] * gpu
