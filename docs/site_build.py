"""What the site has beside docs/: the README, what pages link to, a reference made of docstrings, the formulas.

MkDocs calls the functions `on_...` (hooks in mkdocs.yml); `tox -e docs` builds. Pages stay where they are: a link that
leads out of docs/ is followed, and what it leads to becomes a page or a file of the site, at the same path below it.
"""

import ast
import logging
import posixpath
import re
from functools import cache
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parent.parent
LOG = logging.getLogger("mkdocs.hooks.site_build")  # a warning here ends a strict build
ENTRANCES = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", "results/laptop/claims.md")
MOVED = {"README.md": "start.md"}  # index.md is the first page
FORMULAS = "explorables.html"  # made of the section of the report; formulas.md shows it
REPORTS = ("laptop", "captions-bf16")  # scales whose whole report is a page: report-laptop.html
ORIGIN = "Made by tox -e docs."
REFERENCE = "Reference"  # the entry of the navigation that is filled here
LINK = re.compile(r"(\]\()(?!https?://|mailto:|#)([^)#\s]+)((?:#[^)\s]*)?\))")
FENCE = re.compile(r"^\s*(```+|~~~+)")
ITEM = re.compile(r"^(?:[-*] |\d+\. )")
NUMBER = re.compile(r"^\d+\. ")
MODULE = re.compile(r"(?<!\[)`(repro/[\w/]+\.py)`(?!\])")
COMMENT = re.compile(r"^( *)<!-- (not in CI|in CI): (.+?) -->$")


# ---- where a file of the repository stands on the site


def address(path: str) -> str:
    """Of a file by its path in the repository: its path among the sources of the site."""
    if path in MOVED:
        return MOVED[path]
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    return reference(path) if path.startswith("repro/") and path.endswith(".py") else path


def reference(module: str) -> str:
    """The page of a module: "reference/repro/model/attention.md" for "repro/model/attention.py"."""
    return f"reference/{module.removesuffix('.py').removesuffix('/__init__')}.md"


def modules() -> list[str]:
    """Every module of the package that holds something, by its path in the repository."""
    files = sorted((ROOT / "repro").rglob("*.py"))
    described = [file for file in files if ast.get_docstring(ast.parse(file.read_bytes()))]
    return [file.relative_to(ROOT).as_posix() for file in described if file.stem != "__main__"]


def targets(path: str, text: str) -> dict[str, str]:
    """What the links of a page lead to, those inside the repository: {as written: path in the repository}."""
    folder = posixpath.dirname(path)
    return {written: posixpath.normpath(posixpath.join(folder, written)) for _, written, _ in LINK.findall(text)}


def brought_in(entrances: tuple[str, ...] = ENTRANCES) -> list[str]:
    """The files outside docs/ and repro/ that the site needs: the entrances, and all that links lead to from there."""
    found: list[str] = []
    waiting = [*entrances, *(f"docs/{file.name}" for file in sorted((ROOT / "docs").glob("*.md")))]
    seen = set(waiting)
    while waiting:
        path = waiting.pop(0)
        if not path.startswith(("docs/", "repro/")):
            found.append(path)
        if path.endswith(".md"):
            for written, target in targets(path, (ROOT / path).read_text("utf-8")).items():
                if not (ROOT / target).is_file():
                    LOG.warning(f"{path}: expected a file behind the link {written}, found none. Mend the link.")
                elif target not in seen:
                    seen.add(target)
                    waiting.append(target)
    return found


# ---- MkDocs calls these


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add what is not in docs/."""
    listed = str(config.nav)
    for path in brought_in():
        place = address(path)
        level = InclusionLevel.INCLUDED if f"'{place}'" in listed else InclusionLevel.NOT_IN_NAV
        files.append(File.generated(config, place, abs_src_path=str(ROOT / path), inclusion=level))
    for module in modules():
        files.append(File.generated(config, reference(module), content=reference_page(module)))
    made = {FORMULAS: formulas(), **{f"report-{scale}.html": report(scale) for scale in REPORTS}}
    for place, content in made.items():
        files.append(File.generated(config, place, content=content, inclusion=InclusionLevel.NOT_IN_NAV))
    for entry in config.nav or []:
        if isinstance(entry, dict) and REFERENCE in entry:
            entry[REFERENCE] = reference_navigation()
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Lead links to pages of the site, names of modules to the reference; show whether CI runs a command."""
    place = page.file.src_uri
    if place.startswith("reference/"):
        return markdown
    path = source_of(place)
    text = outside_code(markdown, lambda line: with_links(line, path, files))
    return "\n".join(indented(spaced(text.split("\n"))))


def source_of(place: str) -> str:
    """The path in the repository of a page of the site that is no page of the reference."""
    for path, moved in MOVED.items():
        if place == moved:
            return path
    return place if (ROOT / place).exists() and not (ROOT / "docs" / place).exists() else f"docs/{place}"


# ---- the text of a page


def outside_code(text: str, change: Any) -> str:
    """The text with each line changed that stands in no code block."""
    lines, fence = [], ""
    for line in text.split("\n"):
        mark = FENCE.match(line)
        if mark and (not fence or line.strip() == fence):
            fence = "" if fence else mark[1]
            lines.append(line)
        else:
            lines.append(line if fence else change(line))
    return "\n".join(lines)


def with_links(line: str, path: str, files: Files) -> str:
    """A line whose links lead to where their files stand on the site; modules lead to the reference."""
    here = posixpath.dirname(address(path))

    def led(place: str) -> str:
        return posixpath.relpath(place, here or ".")

    def link(match: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(path), match[2]))
        return f"{match[1]}{led(address(target))}{match[3]}"

    def module(match: re.Match[str]) -> str:
        place = reference(match[1])
        return f"[`{match[1]}`]({led(place)})" if place in files.src_uris else match[0]

    if told := COMMENT.match(line):
        why = re.sub(r"`([^`]+)`", r"<code>\1</code>", told[3])
        return f'{told[1]}<p class="ci">{told[2].capitalize().replace("ci", "CI")}: {why}</p>'
    line = LINK.sub(link, line)
    return line if line.startswith("#") else MODULE.sub(module, line)


def spaced(lines: list[str]) -> list[str]:
    """Lines with an empty one before each list, table and code block: the Markdown of MkDocs asks for it."""
    out: list[str] = []
    fence = ""
    for line in lines:
        before = out[-1] if out else ""
        mark = FENCE.match(line)
        begins_list = ITEM.match(line) and not ITEM.match(before) and not before.startswith(" ")
        begins_table = line.startswith("|") and not before.startswith("|")
        if before.strip() and not fence and (begins_list or begins_table or (mark and not before.startswith("<!--"))):
            out.append("")
        if mark and (not fence or line.strip() == fence):
            fence = "" if fence else mark[1]
        out.append(line)
    return out


def indented(lines: list[str]) -> list[str]:
    """Lines with four blanks, not three, before what belongs to a numbered item: else the next item is a first one."""
    out: list[str] = []
    inside = False
    for line in lines:
        if line and not line.startswith(" "):
            inside = bool(NUMBER.match(line))
        out.append(f" {line}" if inside and line.startswith("   ") else line)
    return out


# ---- pages that are made


def reference_page(module: str) -> str:
    """The page of a module, which mkdocstrings fills from its docstrings."""
    dotted = module.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    return f"---\ntitle: {dotted}\n---\n\n::: {dotted}\n"


def reference_navigation() -> list[Any]:
    """The modules, folder by folder: [{"repro": [...]}, {"repro.model": [{"attention": its page}, ...]}]."""
    folders: dict[str, list[dict[str, str]]] = {}
    for module in modules():
        folder = "/".join(posixpath.dirname(module).split("/")[:2])
        name = posixpath.relpath(module, folder).removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        folders.setdefault(folder.replace("/", "."), []).append({name: reference(module)})
    return [{folder: entries} for folder, entries in sorted(folders.items())]


def formulas() -> str:
    """The report's section of formulas as a page of its own, of what is published at laptop scale."""
    from repro.web.charts import explorables_section
    from repro.web.report import report_html

    return report_html([explorables_section(_published("laptop"))], title="The formulas of the paper", origin=ORIGIN)


def report(scale: str) -> str:
    """The report of what is published at a scale."""
    from repro.web.files import lead, sections_of
    from repro.web.report import report_html

    data = _published(scale)
    title = f"Attention Is All You Need at scale {scale}"
    return report_html(sections_of(data), title=title, lead=lead(data), origin=ORIGIN)


@cache
def _published(scale: str) -> Any:
    from repro.pages.scale_data import scale_data
    from repro.results.frame import ResultSet

    return scale_data(ResultSet.read(ROOT / "results" / scale))
