"""What stands under results/ is made from records; nobody types a number into it.

python -m repro.report              make every file under results/ again
python -m repro.report --check      exit 1 with a diff where a file is not what its records say
"""

import difflib
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from repro import claims, page, table2, table3
from repro.command import Parser, ended
from repro.durable import write_text
from repro.record import BASE, Record
from repro.table1 import page as table1
from repro.tables import Rows, Shelf, files, latex, markdown, record_folders, render, table


def build(shelf: Shelf, name: str) -> dict[Path, str]:
    """The files of one table and their texts, made from its records alone."""
    frame = shelf.frame([name])
    if frame is None:
        raise ValueError(f"{shelf.folder / name}: expected records, found none. Run experiments/{name}.py first.")
    return files(shelf, name, frame, markdown(frame, shelf.scale, name), latex(frame, shelf.scale, name))


def build_scale(results: Path, scale: str) -> dict[Path, str]:
    """All files of one scale: a page for each table, Table 3 on one page, the verdicts, and the page of pages."""
    shelf = Shelf.read(results / scale)
    texts: dict[Path, str] = {}
    for name in shelf.tables:
        if name not in (BASE, table2.NAME):
            texts |= build(shelf, name)
    judged = claims.judge(shelf.everything, shelf.rows, table1.judged(results))
    return texts | table2.build(shelf) | table3.build(shelf) | claims.build(shelf, judged) | page.build(shelf, judged)


def console(records: Iterable[Record], rows: Rows) -> str:
    """What an experiment shows at its end: its rows, of uncommitted code too, beside the paper's."""
    runs = list(records)

    def part(wanted: Callable[[str], bool], text: Callable[[Any], str]) -> str:
        known = {key: row for key, row in rows.items() if key[0] == BASE or wanted(key[0])}
        kept = [record for record in runs if record.table == BASE or wanted(record.table)]
        return text(table(kept, rows=known, dirty=True)) if len(known) > 1 else ""

    others = part(lambda name: name not in (BASE, table2.NAME), render)
    return "\n".join(filter(None, [others, part(lambda name: name == table2.NAME, table2.render)]))


def write_scale(results: Path, scale: str) -> list[Path]:
    """Write all files of one scale anew; returns them."""
    texts = build_scale(results, scale)
    for file, text in texts.items():
        write_text(file, text)
    return list(texts)


def main(arguments: Sequence[str] | None = None) -> int:
    """Make every table again from its records, or with --check say which files differ."""
    parser = Parser(prog="python -m repro.report", description=main.__doc__)
    parser.add_argument("--results", type=Path, default=Path("results"), help="folder of the records")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 with a diff")
    options = parser.parse_args(arguments)
    if not options.results.is_dir():
        parser.error(f"{options.results}: expected a folder of records, found none. Run an experiment first.")
    texts: dict[Path, str] = {}
    try:
        texts |= table1.build(options.results)
        for scale in sorted(folder for folder in options.results.glob("*/") if record_folders(folder)):
            texts |= build_scale(options.results, scale.name)
    except ValueError as error:
        parser.exit(1, f"{error}\n")
    readme = options.results.parent / "README.md"
    if readme.exists():
        texts[readme] = quote(_text(readme), readme.parent, texts)
    differs = False
    for file, text in texts.items():
        stands = _text(file) if file.exists() else ""
        if stands != text and options.check:
            differs = True
            sides = stands.split("\n"), text.split("\n")
            print(*difflib.unified_diff(*sides, f"{file}", "from its records", lineterm=""), sep="\n")
        elif stands != text:
            write_text(file, text)
            print(file)
    return int(differs)


def quote(document: str, root: Path, files: Mapping[Path, str]) -> str:
    """Renew what stands between `<!-- table: FILE -->` and `<!-- end -->`: the first table of that file."""

    def grid(mark: re.Match[str]) -> str:
        page = files.get(root / mark["file"], "")
        table = re.search(r"(?:^\|.*\n)+", page, flags=re.MULTILINE)
        return f"{mark['begin']}{table[0] if table else ''}{mark['end']}"

    marked = r"(?P<begin><!-- table: (?P<file>\S+) -->\n).*?(?P<end><!-- end -->)"
    return re.sub(marked, grid, document, flags=re.DOTALL)


def _text(file: Path) -> str:
    return file.read_bytes().decode("utf-8", "backslashreplace")


if __name__ == "__main__":
    sys.exit(ended(main))
