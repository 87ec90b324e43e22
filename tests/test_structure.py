"""Imports run downward: each arrow of the data is one file, and no file knows what comes after it."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

# A file imports from lower floors, and inside its own folder from those listed before it.
FLOORS: dict[float, str] = {
    0: """
        symbols packed products hyper escape terminal command durable journal signed lease signals stamp record
        processors machine launch latest published
    """,
    1: """
        model.attention model.layers model.embedding model.transformer
        data.lexicon data.sentence data.english data.german data.french data.synthetic
        data.pair data.pieces data.cache data.sources data.archive data.text data.subset data.fetch data.corpus
        data.tokenizer data.cleaning data.store data.card data.importer data.prepare
        data.buckets data.order data.batch data.translation
        training.loss training.schedule training.averaging training.checkpoint
        decoding.beam decoding.likeliest decoding.bleu
        verdicts
    """,
    1.5: "training.module table1.layers",
    1.6: """
        tracking.folder tracking.store tracking.tracker tracking.system tracking.mirror tracking.records tracking.views
    """,
    2: "cost kinds grid labels fidelity tables progress ui paper_claims",
    2.1: "tracking.__main__",
    2.5: "table1.records table1.laws table1.costs table1.verdicts table1.page claims",
    2.6: "table2 table3",
    3: "training.witness training.fit decoding.translate decoding.ctranslate scales rows page",
    3.1: "data.__main__ decoding.engine trained",
    3.2: "decoding.__main__",
    3.3: "trial",
    3.4: "publish forecast determinism lineage",
    3.5: "run report",
    3.6: """
        figures.style figures.trace figures.architecture figures.operations
        figures.attention_maps figures.mechanism figures.curves figures.quality figures.draw
    """,
    3.7: "table1.picture",
    3.8: "sweep",
    4: "experiment",
}
PLACE = {
    f"repro.{name}": (floor, position) for floor, names in FLOORS.items() for position, name in enumerate(names.split())
}
MODULES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts): path
    for path in sorted((ROOT / "repro").rglob("*.py"))
    if path.name != "__init__.py"
}
EXPERIMENTS = sorted((ROOT / "experiments").glob("*.py"))
# what an experiment file may use
SHOWN = ("repro.experiment.", "repro.command.", "repro.hyper.", "repro.figures.draw.", "repro.table1.")


def folder(module: str) -> str:
    return module.rpartition(".")[0]


def imported(source: str) -> Iterator[str]:
    """Every name that an import statement reaches for: at the top, in functions, under TYPE_CHECKING."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                raise AssertionError(f"line {node.lineno}: relative import; write the whole name.")
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def modules_of_ours(source: str) -> set[str]:
    """The modules of the package among the imports: `repro.hyper` for `from repro.hyper import Hyper`."""
    ours = {name for name in imported(source) if name.split(".")[0] == "repro"}
    return {folder(name) if folder(name) in PLACE else name for name in ours}


def may_import(module: str, other: str) -> bool:
    (floor, position), (other_floor, other_position) = PLACE[module], PLACE[other]
    if floor == other_floor:
        return folder(module) == folder(other) and other_position < position
    return other_floor < floor


def upward(module: str, source: str) -> list[str]:
    """The imports of `module` that do not run downward."""
    return sorted(other for other in modules_of_ours(source) if other not in PLACE or not may_import(module, other))


@pytest.mark.parametrize("module", MODULES)
def test_imports_run_downward(module: str) -> None:
    assert module in PLACE, f"{module} stands on no floor: put it in FLOORS and in docs/data_flow.md."
    assert upward(module, MODULES[module].read_text("utf-8")) == []


def test_every_file_of_the_plan_exists() -> None:
    assert set(PLACE) - set(MODULES) == set()


@pytest.mark.parametrize(
    ("module", "source", "found"),
    [
        ("repro.model.layers", "from repro.model.attention import SelfAttention", []),
        ("repro.model.attention", "from repro.model.layers import Dropout", ["repro.model.layers"]),
        ("repro.model.layers", "from repro.data import batch", ["repro.data.batch"]),
        ("repro.data.batch", "def f():\n    import repro.model.layers", ["repro.model.layers"]),
        ("repro.training.loss", "import repro.training.module", ["repro.training.module"]),
        ("repro.training.module", "from repro.model.transformer import Transformer", []),
        ("repro.report", "from repro.experiment import Row", ["repro.experiment"]),
        ("repro.hyper", "import repro", ["repro"]),
        ("repro.hyper", "from repro import symbols", []),
        ("repro.hyper", "from repro.nowhere import x", ["repro.nowhere.x"]),
    ],
)
def test_the_rule_itself(module: str, source: str, found: list[str]) -> None:
    # planted sources: what the rule above must and must not catch
    assert upward(module, source) == found


def test_relative_imports_are_refused() -> None:
    with pytest.raises(AssertionError, match="relative import"):
        list(imported("from .symbols import PAD"))


def test_packages_hold_no_code() -> None:
    # an __init__.py that imports makes every import of its folder pay for all of it
    packages = (ROOT / "repro").rglob("__init__.py")
    assert [
        path for path in packages if ast.get_docstring(ast.parse(path.read_bytes())) is None and path.stat().st_size
    ] == []


@pytest.mark.parametrize("path", EXPERIMENTS, ids=lambda path: path.stem)
def test_an_experiment_holds_the_experiment_only(path: Path) -> None:
    others = {name.split(".")[0] for name in imported(path.read_text("utf-8")) if not name.startswith(SHOWN)}
    assert others - sys.stdlib_module_names - {one.stem for one in EXPERIMENTS} == set()
