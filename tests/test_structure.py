"""The house: a folder is a floor, imports go down between folders, and inside a folder nothing goes in a circle."""

import ast
import graphlib
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

# The lowest floor first; those of one line know nothing of each other.
FLOORS = """
    storage render paper
    model
    data results
    decoding tracking claims
    training pages
    complexity
    runs
    figures
    web
    experiment
    cli
""".strip().split("\n")
FLOOR_OF = {name: number for number, names in enumerate(FLOORS) for name in names.split()}
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
    "repro.figures.table1.",
    "repro.pages.build.",
    "repro.results.layer_costs.",
    "repro.decoding.outputs_2017.",
    "repro.results.outputs_2017.",
)
# public names that several modules have: the same thing, for each of them
SHARED_NAMES = {
    "main": "a command, called by the name of its module",
    "NAME": "the file name of a page",
    "page": "the page of a module",
    "sheet": "the same as a spreadsheet has it",
    "Table": "one of the paper's, as an experiment makes it; one on a page",
    "load": "what `save` of the same module wrote",
    "save": "what `load` of the same module reads",
    "read": "what `write` of the same module wrote",
    "export": "the command, and what it calls",
    "translate": "the command, and what it calls",
    "console": "what a terminal is for: a command of the package, the tables at the end of an experiment",
    "BASE": "the base model: its hyper-parameters, and its name in records",
}
MOST_ENTRIES, MOST_LINES, MOST_LINES_OF_A_FUNCTION = 21, 500, 60
WORD_LISTS = {"repro.data.grammar.lexicon"}  # they may be as long as a language


def folder(module: str) -> str:
    """`data` of repro.data.grammar.tree, `experiment` of repro.experiment."""
    return module.split(".")[1]


def is_door(module: str) -> bool:
    """Whether it is what `python -m` begins with: it stands before the house, and only calls a command."""
    return module.endswith(".__main__") or module in ("repro.report", "repro.ui")


def floor(module: str) -> int:
    """Raises KeyError for a folder that is on no floor."""
    return len(FLOORS) if is_door(module) else FLOOR_OF[folder(module)]


def imported(source: str) -> Iterator[str]:
    """Every name that an import statement reaches for: at the top, in functions, under TYPE_CHECKING."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                raise AssertionError(f"line {node.lineno}: relative import; write the whole name.")
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


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


def circle(sources: Mapping[str, str]) -> list[str]:
    """Modules that import each other in a circle; empty where there is none."""
    graph = {module: modules_of_ours(source, sources) & sources.keys() for module, source in sources.items()}
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        return list(error.args[1])
    return []


def entries(package: Path) -> list[str]:
    """What somebody sees who opens the folder: neither byte code nor what an installation leaves."""
    return sorted(one.name for one in package.iterdir() if one.suffix in ("", ".py") and one.name != "__pycache__")


def long_functions(source: str) -> list[str]:
    """The functions of more lines than a screen has."""
    return [
        node.name
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (node.end_lineno or 0) - node.lineno + 1 > MOST_LINES_OF_A_FUNCTION
    ]


def defined(source: str) -> Iterator[str]:
    """The names without an underscore that a module makes at its top: classes, functions, constants."""
    for node in ast.parse(source).body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from (one.id for target in targets for one in ast.walk(target) if isinstance(one, ast.Name))


def reached(source: str) -> Iterator[tuple[str, str]]:
    """(module, name) of all that a source takes from other modules of ours: by an import, or as `module.name`."""
    local: dict[str, str] = {}
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                yield node.module or "", alias.name
                local[alias.asname or alias.name] = f"{node.module}.{alias.name}"
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in local:
            yield local[node.value.id], node.attr


def ambiguous(sources: Mapping[str, str], users: Iterable[str] = ()) -> dict[str, list[str]]:
    """Public names that stand for two things, with their modules. What no other module uses is a module's own."""
    used = {pair for source in (*sources.values(), *users) for pair in reached(source)}
    places: dict[str, set[str]] = {}
    for module, source in sources.items():
        for name in defined(source):
            if not name.startswith("_") and (module, name) in used:
                places.setdefault(name, set()).add(module)
    return {name: sorted(of) for name, of in places.items() if len(of) > 1}


@pytest.mark.parametrize("module", MODULES)
def test_imports_run_downward(module: str) -> None:
    assert is_door(module) or folder(module) in FLOOR_OF, f"{folder(module)} stands on no floor: draw it in FLOORS."
    assert wrong(module, MODULES[module].read_text("utf-8")) == []


def test_nothing_is_imported_in_a_circle() -> None:
    assert circle({module: path.read_text("utf-8") for module, path in MODULES.items()}) == []


def test_a_public_name_means_one_thing() -> None:
    sources = {module: path.read_text("utf-8") for module, path in MODULES.items()}
    found = ambiguous(sources, [path.read_text("utf-8") for path in EXPERIMENTS])
    assert {name: of for name, of in found.items() if name not in SHARED_NAMES} == {}, "Give one of them another name."
    assert SHARED_NAMES.keys() <= found.keys(), "Take from SHARED_NAMES what stands for one thing by now."


def test_every_floor_is_there() -> None:
    assert {folder(module) for module in MODULES if not is_door(module)} == set(FLOOR_OF)


def test_the_package_has_few_doors() -> None:
    assert len(entries(ROOT / "repro")) <= MOST_ENTRIES, entries(ROOT / "repro")


@pytest.mark.parametrize("module", MODULES)
def test_a_file_has_one_subject_and_a_function_one_screen(module: str) -> None:
    source = MODULES[module].read_text("utf-8")
    assert source.count("\n") <= MOST_LINES or module in WORD_LISTS, "Split the file: it has two subjects."
    assert long_functions(source) == []


@pytest.mark.parametrize(
    ("module", "source", "found"),
    [
        ("repro.model.layers", "from repro.model.attention import SelfAttention", []),
        ("repro.model.layers", "from repro.data import batch", ["repro.data.batch"]),
        ("repro.data.batch", "def f():\n    import repro.training.loop", ["repro.training.loop"]),
        ("repro.data.batch", "from repro.model.ragged import pack", []),
        ("repro.data.batch", "from repro.results.record import Record", ["repro.results.record"]),
        ("repro.training.module", "from repro.model.transformer import Transformer", []),
        ("repro.pages.build", "from repro.experiment import Row", ["repro.experiment"]),
        ("repro.paper", "from repro.storage import atomic", ["repro.storage.atomic"]),
        ("repro.data.__main__", "from repro.cli.data import main", []),
        ("repro.report", "from repro.data.__main__ import main", ["repro.data.__main__"]),
        ("repro.runs.run", "from repro.report import main", ["repro.report"]),
        ("repro.data.batch", "import repro.data.__main__", ["repro.data.__main__"]),
        ("repro.model.config", "import repro", ["repro"]),
        ("repro.model.config", "from repro.nowhere import x", ["repro.nowhere.x"]),
    ],
)
def test_the_rule_itself(module: str, source: str, found: list[str]) -> None:
    # planted sources: what the rule above must and must not catch
    assert wrong(module, source) == found


def test_a_planted_circle_is_found() -> None:
    line = {
        "repro.data.a": "from repro.data import b",
        "repro.data.b": "from repro.data.c import x",
        "repro.data.c": "",
    }
    assert circle(line) == []
    assert {*circle(line | {"repro.data.c": "def f():\n    from repro.data import a"})} == line.keys()


def test_a_planted_second_meaning_is_found() -> None:
    sources = {
        "repro.data.a": "def score(): ...\nclass Own: ...",
        "repro.data.b": "score: int = 3\n_hidden = 4",
        "repro.data.c": "class Own: ...\n_hidden = 5",
        "repro.data.d": "from repro.data.a import score\nfrom repro.data.b import _hidden",
    }
    assert ambiguous(sources) == {}  # nobody uses b's; `Own` is each module's own
    assert ambiguous(sources, ["from repro.data import b\nb.score"]) == {"score": ["repro.data.a", "repro.data.b"]}


def test_planted_length_is_found(tmp_path: Path) -> None:
    body = "    x = 1\n" * MOST_LINES_OF_A_FUNCTION
    assert long_functions(f"class A:\n    def f():\n{body.replace('    x', '        x')}") == ["f"]
    assert long_functions(f"def f():\n{body[:-10]}") == []
    for name in ("a.py", "b", "__pycache__", "release.json"):
        (tmp_path / name).mkdir()
    assert entries(tmp_path) == ["a.py", "b"]


def test_relative_imports_are_refused() -> None:
    with pytest.raises(AssertionError, match="relative import"):
        list(imported("from .special_tokens import PAD"))


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
