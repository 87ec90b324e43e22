"""The project keeps its promises: exact versions, commands that CI runs, light imports, true documents."""

import ast
import importlib
import importlib.metadata
import importlib.util
import itertools
import os
import re
import runpy
import shlex
import shutil
import socket
import subprocess
import sys
import tomllib
from pathlib import Path

import beside
import pytest

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
SOURCES = [*(ROOT / "repro").rglob("*.py"), *(ROOT / "experiments").glob("*.py")]
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md", *sorted((ROOT / "docs").glob("*.md"))]

DISTRIBUTION = {"pynvml": "nvidia-ml-py", "vl_convert": "vl-convert-python"}  # where the package has another name


def requirement(line: str) -> tuple[str, str]:
    """The name and the rest: ("rich", ">=15,<16") for "rich>=15,<16"."""
    match = re.fullmatch(r"([A-Za-z0-9._-]+)(?:\[[a-z]+\])?\s*(.*)", line)
    assert match, line
    return re.sub(r"[-_.]+", "-", match[1]).lower(), match[2]


def constraints() -> dict[str, str]:
    lines = (ROOT / "constraints.txt").read_text("utf-8").split("\n")
    return dict(requirement(line) for line in lines if line and not line.startswith("#"))


def command(name: str) -> str:
    """The code block of README.md that follows the mark `<!-- command: name -->`."""
    readme = (ROOT / "README.md").read_text("utf-8")
    [block] = re.findall(rf"^<!-- command: {name} -->\n```\w*\n(.*?)^```$", readme, flags=re.MULTILINE | re.DOTALL)
    return str(block)


def run(*arguments: str, cwd: Path = ROOT, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | variables
    return subprocess.run(arguments, cwd=cwd, env=environment, capture_output=True, text=True, check=False)


# ---- versions


def test_the_citation_file_names_the_version() -> None:
    import yaml  # MLflow brings it

    said = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    assert said["version"] == PROJECT["project"]["version"]
    assert {"cff-version", "message", "title", "authors"} <= said.keys()  # what the format asks for


def test_the_changelog_has_the_version_and_its_day_or_has_it_unreleased() -> None:
    # a release has a section of its own; until then the version ends in .dev0 and all is unreleased
    version = PROJECT["project"]["version"]
    assert re.fullmatch(r"\d+\.\d+\.\d+(\.dev0)?", version)
    heads = re.findall(r"^## \[(.*)$", (ROOT / "CHANGELOG.md").read_text("utf-8"), flags=re.MULTILINE)
    released = [head.split("]")[0] for head in heads if re.fullmatch(r"\d+\.\d+\.\d+\] - \d{4}-\d\d-\d\d", head)]
    assert heads[len(heads) - len(released) :] == [head for head in heads if head != "Unreleased]"]
    if version.endswith(".dev0"):
        assert heads[0] == "Unreleased]"
        assert version.removesuffix(".dev0") not in released, "released already: the next version is another"
    else:
        assert released[:1] == [version], "the newest section is this release"


def test_constraints_are_exact_and_installable_by_everyone() -> None:
    wrong = {name: rest for name, rest in constraints().items() if not re.fullmatch(r"==[0-9][0-9a-z.]*", rest)}
    assert wrong == {}, "expected name==version; a local suffix such as +cpu exists on one machine only"


def test_each_declared_package_is_locked_inside_its_range() -> None:
    from packaging.specifiers import SpecifierSet

    project = PROJECT["project"]
    lists = [project["dependencies"], *project["optional-dependencies"].values(), PROJECT["build-system"]["requires"]]
    for name, allowed in map(requirement, itertools.chain(*lists)):
        if name != project["name"]:
            assert SpecifierSet(allowed).contains(constraints()[name].removeprefix("==")), name


def test_every_extra_that_is_advised_exists() -> None:
    texts = [path.read_text("utf-8") for path in SOURCES]
    advised = {extra for text in texts for extra in re.findall(r"(?:attention-repro|\.)\[(\w+)\]'", text)}
    assert {"fast", "ray", "test"} <= advised <= {*PROJECT["project"]["optional-dependencies"]}


def test_imported_and_declared_packages_are_the_same() -> None:
    project = PROJECT["project"]
    needed = {requirement(line)[0] for line in project["dependencies"]}
    extras = project["optional-dependencies"]
    optional = {requirement(line)[0] for name in ("gpu", "fast", "ray") for line in extras[name]}
    nodes = [node for path in SOURCES for node in ast.walk(ast.parse(path.read_bytes()))]
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    names |= {str(node.module) for node in nodes if isinstance(node, ast.ImportFrom)}
    ours = {"repro", *(path.stem for path in (ROOT / "experiments").glob("*.py"))}
    used = {name.split(".")[0] for name in names} - sys.stdlib_module_names - ours
    used = {DISTRIBUTION.get(name, name) for name in used}
    assert used - needed - optional == set(), "imported, but not among the dependencies in pyproject.toml"
    assert (needed | optional) - used == set(), "declared, but nobody imports it"


def test_malicious_releases_of_lightning_are_not_allowed() -> None:
    # lightning 2.6.2 and 2.6.3 stole credentials on import; before 2.6.6 a checkpoint could run code
    from packaging.specifiers import SpecifierSet

    allowed = SpecifierSet(dict(map(requirement, PROJECT["project"]["dependencies"]))["lightning"])
    assert [version for version in ("2.6.2", "2.6.3", "2.6.5") if version in allowed] == []


# ---- the description of the package


def describe(readme: str, source: str | None, version: str) -> str:
    pytest.importorskip("setuptools")
    return str(runpy.run_path(str(ROOT / "setup.py"), run_name="setup")["description"](readme, source, version))


def test_links_on_the_page_of_an_index_lead_to_the_release_or_name_the_file() -> None:
    text = "[a](docs/x.md#y) ![b](docs/p.png) [c](https://e.org/d) [d](#e) [`F.md`](F.md)"
    at = "https://example.org/us"
    assert describe(text, f"{at}/", "1.2.0") == (
        f"[a]({at}/blob/v1.2.0/docs/x.md#y) ![b]({at}/raw/v1.2.0/docs/p.png) [c](https://e.org/d) [d](#e) "
        f"[`F.md`]({at}/blob/v1.2.0/F.md)"
    )
    assert describe("[a](b)", at, "1.3.0.dev0") == f"[a]({at}/blob/HEAD/b)", "there is no tag yet"
    assert describe(text, None, "1.2.0") == ("a (`docs/x.md`) b (`docs/p.png`) [c](https://e.org/d) [d](#e) `F.md`")


# ---- the two commands


def test_the_readme_has_two_commands_that_need_no_global_install() -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    assert re.findall(r"^<!-- command: (\w+) -->$", readme, flags=re.MULTILINE) == ["run", "test"]
    for name in ("run", "test"):
        steps = [step.strip() for step in command(name).replace("\\\n", " ").split("&&")]
        assert steps[0] == "python3 -m venv .venv"
        assert all(step.startswith(".venv/bin/") for step in steps[1:])
        assert all("-c constraints.txt" in step for step in steps if "pip install" in step)
    assert steps[-1] == ".venv/bin/tox"


def planted_project(folder: Path, block: str) -> Path:
    (folder / ".ci").mkdir()
    shutil.copy(ROOT / ".ci" / "run", folder / ".ci" / "run")
    (folder / "README.md").write_text(block, "utf-8")
    return folder / ".ci" / "run"


def program(folder: Path, name: str, does: str) -> None:
    (folder / name).write_text(f"#!/bin/sh\n{does}\n", "utf-8")
    (folder / name).chmod(0o755)


def test_ci_runs_the_test_command_of_the_readme(tmp_path: Path) -> None:
    # in a folder of its own, with a python3 that only says how it was called and fails
    script = planted_project(tmp_path, (ROOT / "README.md").read_text("utf-8"))
    program(tmp_path, "python3", 'echo "python3 $*"; exit 3')
    done = run("bash", str(script), PATH=f"{tmp_path}:{os.environ['PATH']}", CI="")
    assert done.stdout == f"+ {command('test')}python3 -m venv .venv\n"
    assert done.returncode == 3


def test_ci_prints_the_command_and_passes_its_exit_code_on(tmp_path: Path) -> None:
    other = "```bash\necho other\n```\n"
    block = "<!-- command: test -->\n```bash\necho one &&\n  pwd\nfalse\necho later\n```\n"
    script = planted_project(tmp_path, other + block + other)
    done = run("bash", str(script), cwd=tmp_path.parent, CI="")
    assert done.stdout == f"+ echo one &&\n  pwd\nfalse\necho later\none\n{tmp_path}\n", "it stops at a failure"
    assert done.returncode == 1
    (tmp_path / "README.md").write_text(other, "utf-8")
    done = run("bash", str(script), CI="true")
    assert done.returncode == 2
    assert "expected a code block" in done.stderr


# ---- imports


def test_the_command_line_and_the_tables_import_nothing_heavy() -> None:
    # torch, lightning and mlflow cost five seconds: --help, --dry-run and tables must not pay them
    heavy = {"torch", "lightning", "pytorch_lightning", "mlflow", "sacrebleu"}
    script = f"import sys, repro.experiment, repro.pages.build; print({heavy} & set(sys.modules))"
    assert run(sys.executable, "-c", script).stdout == "set()\n"


def test_no_test_reaches_another_machine() -> None:
    with socket.socket() as connection:
        connection.settimeout(0.1)
        with pytest.raises(PermissionError, match="without a network"):
            connection.connect(("192.0.2.1", 9))  # an address kept for examples: nobody answers there


# ---- documents

MADE = {"results/report.html", "results/own/report.html"}  # by the command that stands beside it; git ignores it


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_documents_name_what_exists(path: Path) -> None:
    # every `folder/file.py` and every `tests/file.py::test_name` in a document
    text = path.read_text("utf-8")
    names = set(re.findall(r"`((?:repro|tests|experiments|benchmarks|docs|results)/[\w./-]*\w)(?:::\w+)*`", text))
    assert {name for name in names - MADE if not (ROOT / name).exists()} == set()
    for file, test in re.findall(r"`(tests/[\w./-]+\.py)::(\w+)`", text):
        assert f"def {test}(" in (ROOT / file).read_text("utf-8"), f"{file}::{test}"
    tests = "".join(file.read_text("utf-8") for file in (ROOT / "tests").rglob("test_*.py"))
    assert [test for test in re.findall(r"`::(\w+)`", text) if f"def {test}(" not in tests] == []


def test_the_way_of_the_data_is_what_the_modules_say() -> None:
    made = runpy.run_path(str(ROOT / "docs" / "data_flow.py"))
    assert made["page"]() == made["PAGE"].read_text("utf-8"), "run docs/data_flow.py"
    assert made["picture"]() == made["PICTURE"].read_text("utf-8"), "run docs/data_flow.py"


def test_every_module_says_what_it_is_in_one_line() -> None:
    first = {path: (ast.get_docstring(ast.parse(path.read_bytes())) or "").partition("\n\n")[0] for path in SOURCES}
    wrong = [path for path, line in first.items() if path.stat().st_size and ("\n" in line or not line.endswith("."))]
    assert wrong == [], "expected a sentence on the first line, and an empty line after it"


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_links_inside_the_project_lead_somewhere(path: Path) -> None:
    targets = re.findall(r"\]\((?!https?://)([^)#]+)[^)]*\)", path.read_text("utf-8"))
    assert [target for target in targets if not (path.parent / target).exists()] == []


@pytest.mark.parametrize("path", sorted((ROOT / "benchmarks").glob("*.py")), ids=lambda path: path.stem)
def test_a_benchmark_reaches_only_for_what_is_there(path: Path) -> None:
    # they are run by hand, and nothing else tells when a name they use has moved
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("repro"):
            module = importlib.import_module(str(node.module))
            for alias in node.names:
                found = hasattr(module, alias.name) or importlib.util.find_spec(f"{node.module}.{alias.name}")
                assert found, f"{node.module} has no {alias.name}"


# ---- tox runs commands beside each other


def program_of(code: str) -> str:
    return shlex.join([sys.executable, "-c", code])


def test_outputs_stand_one_after_the_other_and_one_failure_is_enough(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    there = tmp_path / "there"  # the second makes what the first waits for
    waits = f"import os, time\nwhile not os.path.exists({str(there)!r}): time.sleep(0.05)\nexit('last words')"
    assert (
        beside.main([program_of(waits), program_of(f"print('good', file=open({str(there)!r}, 'w'))\nprint('made')")])
        == 1
    )
    said = re.sub(r"\d+ s$", "N s", capsys.readouterr().out, flags=re.MULTILINE).split("\n")
    first = said.index("last words")
    assert said[first : first + 2] == ["last words", "exit status 1 after N s"]
    assert said[-3:] == ["made", "exit status 0 after N s", ""]
    assert beside.main([program_of("")]) == 0


# ---- the lock is that of constraints.txt, whole and with a hash for each file; the image installs nothing else


PIN = re.compile(r"([a-z0-9._-]+)==([0-9][\w.]*)(\+cpu)? --hash=sha256:[0-9a-f]{64}")


def pinned() -> dict[str, str]:
    text = (ROOT / "requirements-locked.txt").read_text("utf-8")
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    assert [line for line in lines if not PIN.fullmatch(line)] == []
    return {match[1]: match[2] for match in map(PIN.fullmatch, lines) if match}


def test_each_file_has_its_hash_and_the_version_of_the_constraints() -> None:
    exact = constraints()
    assert {name: version for name, version in pinned().items() if exact.get(name) != f"=={version}"} == {}


def test_whatever_the_package_needs_is_locked() -> None:
    # from what is installed here: each requirement, and what that requires, on this platform
    from importlib.metadata import PackageNotFoundError, requires

    from packaging.requirements import Requirement

    def needs(name: str, extras: set[str]) -> list[Requirement]:
        try:
            found = [Requirement(one) for one in requires(name) or []]
        except PackageNotFoundError:
            pytest.skip(f"{name} is not installed here")
        environments = [{"extra": extra} for extra in extras or {""}]
        return [one for one in found if not one.marker or any(one.marker.evaluate(each) for each in environments)]

    waiting, seen = [Requirement("attention-repro[fast]")], set()
    while waiting:
        one = waiting.pop()
        key = (one.name, frozenset(one.extras))
        if key not in seen:
            seen.add(key)
            waiting += needs(one.name, one.extras)
    names = {re.sub(r"[-_.]+", "-", name).lower() for name, _ in seen} - {"attention-repro"}
    assert len(names) > 100
    assert names - {re.sub(r"[-_.]+", "-", name) for name in pinned()} == set()


def test_the_image_has_a_base_of_one_version_and_installs_by_hashes() -> None:
    image = (ROOT / "Dockerfile").read_text("utf-8")
    bases = re.findall(r"^FROM (\S+)", image, re.MULTILINE)
    assert [
        base for base in bases if not re.fullmatch(r"python:\d+\.\d+\.\d+-slim-\w+(@sha256:[0-9a-f]{64})?", base)
    ] == []
    [python] = re.findall(r"Python (\d+\.\d+)", (ROOT / "requirements-locked.txt").read_text("utf-8"))
    assert {base.split(":")[1].rpartition(".")[0] for base in bases} == {python}
    installs = re.findall(r"pip install ((?:[^\n]|\\\n)*)", image.replace("\\\n", " "))
    assert [one for one in installs if "--require-hashes" not in one and "--no-deps" not in one] == []
    assert len(installs) == 2
