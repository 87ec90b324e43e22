"""The house: a folder is a floor, imports go down between folders, and inside a folder nothing goes in a circle."""

import ast
import functools
import graphlib
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from repro.results.provenance import DECIDING, fingerprints

ROOT = Path(__file__).parent.parent

# The lowest floor first; those of one line know nothing of each other.
FLOORS = """
    storage render paper
    model
    data
    decoding
    training
    corpora
    results
    tracking claims
    pages
    complexity
    runs
    figures
    web
    experiment
    cli
""".strip().split("\n")
FLOOR_OF = {name: number for number, names in enumerate(FLOORS) for name in names.split()}
WRITES = "repro.storage.atomic"  # what decides may use it: it makes no number
MOST_DECIDING = 7_000  # lines of the files of a fingerprint, and of that
MODULES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts): path
    for path in sorted((ROOT / "repro").rglob("*.py"))
    if path.name != "__init__.py"
}
EXPERIMENTS = sorted((ROOT / "experiments").glob("*.py"))
# what an experiment file may use
SHOWN = (
    "repro.experiment.",
    "repro.runs.command.",
    "repro.runs.options.",
    "repro.model.",
    "repro.figures.draw.",
    "repro.complexity.",
    "repro.pages.build.",
    "repro.results.measured.",
    "repro.storage.atomic",
)
# Lines of Python in each folder, tests last: no more than there are. A change that needs more takes them elsewhere.
MOST_LINES = {
    "storage": 756,
    "render": 693,
    "paper": 106,
    "model": 3_494,
    "data": 1_697,
    "corpora": 3_600,
    "results": 3_421,
    "training": 1_853,
    "tracking": 990,
    "claims": 1_800,
    "decoding": 1_636,
    "pages": 2_002,
    "complexity": 455,
    "runs": 4_785,
    "figures": 2_651,
    "web": 1_353,
    "experiment": 181,
    "cli": 1_410,
    "tests": 33_609,
}


def folder(module: str) -> str:
    """`data` of repro.corpora.grammar.tree, `experiment` of repro.experiment."""
    return module.split(".")[1]


def is_door(module: str) -> bool:
    """Whether it is what `python -m` begins with: it stands before the house, and only calls a command."""
    return module.endswith(".__main__")


def floor(module: str) -> int:
    """Raises KeyError for a folder that is on no floor."""
    return len(FLOORS) if is_door(module) else FLOOR_OF[folder(module)]


@functools.cache
def imported(source: str) -> list[str]:
    """Every name that an import statement reaches for: at the top, in functions, under TYPE_CHECKING."""
    names: list[str] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names += (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                raise AssertionError(f"line {node.lineno}: relative import; write the whole name.")
            names += (f"{node.module}.{alias.name}" for alias in node.names)
    return names


def modules_of_ours(source: str, modules: Mapping[str, object]) -> set[str]:
    """The modules of the package among the imports: `repro.paper` for `from repro.paper import ROWS`."""
    ours = {name for name in imported(source) if name.split(".")[0] == "repro"}
    return {name.rpartition(".")[0] if name.rpartition(".")[0] in modules else name for name in ours}


def wrong(module: str, source: str, modules: Mapping[str, object] = MODULES) -> list[str]:
    """The imports of `module` that lead nowhere, up, or sideways."""
    return sorted(
        other
        for other in modules_of_ours(source, modules)
        if other not in modules or is_door(other) or (floor(other) >= floor(module) and folder(other) != folder(module))
    )


def through_the_wall(module: str, source: str, modules: Mapping[str, object] = MODULES) -> set[str]:
    """What a module behind the wall imports from outside it, but for the one way to write a file."""
    if folder(module) not in DECIDING:
        return set()
    return {other for other in modules_of_ours(source, modules) if folder(other) not in DECIDING} - {WRITES}


def circle(sources: Mapping[str, str]) -> list[str]:
    """Modules that import each other in a circle; empty where there is none."""
    graph = {module: modules_of_ours(source, sources) & sources.keys() for module, source in sources.items()}
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        return list(error.args[1])
    return []


def lines(folder: Path) -> int:
    """Of all Python in a folder, or in a file of this name."""
    files = [folder.with_suffix(".py")] if folder.with_suffix(".py").exists() else folder.rglob("*.py")
    return sum(file.read_bytes().count(b"\n") for file in files)


def test_imports_run_downward() -> None:
    assert {folder(module) for module in MODULES if not is_door(module)} == set(FLOOR_OF), "Draw it in FLOORS."
    found = {module: wrong(module, path.read_text("utf-8")) for module, path in MODULES.items()}
    assert {module: imports for module, imports in found.items() if imports} == {}


def test_what_decides_stands_behind_a_wall() -> None:
    """A change of a page, a card, a message or an option makes no run old: what decides does not read it."""
    assert FLOORS[1:5] == [f"    {name}" for name in DECIDING]
    found = {module: through_the_wall(module, path.read_text("utf-8")) for module, path in MODULES.items()}
    assert {module: others for module, others in found.items() if others} == {}
    files = [ROOT / "repro" / file for file in fingerprints()]
    assert sum(file.read_bytes().count(b"\n") for file in (*files, MODULES[WRITES])) <= MOST_DECIDING


def test_nothing_is_imported_in_a_circle() -> None:
    assert circle({module: path.read_text("utf-8") for module, path in MODULES.items()}) == []


@pytest.mark.parametrize("name", MOST_LINES)
def test_no_folder_grows(name: str) -> None:
    there = lines(ROOT / "tests" if name == "tests" else ROOT / "repro" / name)
    assert there <= MOST_LINES[name], "Shorten it, or lower another folder's number by as much and say why."


def test_each_folder_has_a_budget() -> None:
    assert MOST_LINES.keys() == {*FLOOR_OF, "tests"}


@pytest.mark.parametrize(
    ("module", "source", "found"),
    [
        ("repro.model.layers", "from repro.model.attention import SelfAttention", []),
        ("repro.model.layers", "from repro.data import batch", ["repro.data.batch"]),
        ("repro.data.batch", "def f():\n    import repro.training.loop", ["repro.training.loop"]),
        ("repro.data.batch", "from repro.model.masks import pack", []),
        ("repro.data.batch", "from repro.results.record import Record", ["repro.results.record"]),
        ("repro.training.module", "from repro.model.transformer import Transformer", []),
        ("repro.pages.build", "from repro.experiment import Row", ["repro.experiment"]),
        ("repro.paper", "from repro.storage import atomic", ["repro.storage.atomic"]),
        ("repro.__main__", "from repro.cli.data import main", []),
        ("repro.runs.run", "from repro.__main__ import main", ["repro.__main__"]),
        ("repro.data.batch", "import repro.__main__", ["repro.__main__"]),
        ("repro.model.config", "import repro", ["repro"]),
        ("repro.model.config", "from repro.nowhere import x", ["repro.nowhere.x"]),
    ],
)
def test_the_rule_itself(module: str, source: str, found: list[str]) -> None:
    # planted sources: what the rule above must and must not catch
    assert wrong(module, source) == found


def test_a_planted_hole_in_the_wall_is_found() -> None:
    hole = "def f():\n    from repro.render.page import Page\n    from repro.storage import atomic"
    assert through_the_wall("repro.data.shards", hole) == {"repro.render.page"}
    assert through_the_wall("repro.data.shards", "from repro.model import loss") == set()
    assert through_the_wall("repro.corpora.prepare", hole) == set()


def test_a_planted_circle_is_found() -> None:
    line = {
        "repro.data.a": "from repro.data import b",
        "repro.data.b": "from repro.data.c import x",
        "repro.data.c": "",
    }
    assert circle(line) == []
    assert {*circle(line | {"repro.data.c": "def f():\n    from repro.data import a"})} == line.keys()


def test_relative_imports_are_refused() -> None:
    with pytest.raises(AssertionError, match="relative import"):
        imported("from .special_tokens import PAD")


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
