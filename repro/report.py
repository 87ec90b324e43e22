"""What stands under results/ is made from records; nobody types a number into it.

python -m repro.report              make every published file under results/ again
python -m repro.report --check      exit 1 with a diff where a file is not what its records say
python -m repro.report --own        the same for one's own results, in results/own/
python -m repro.report publish      put one's own results among the published ones, or say why not
"""

import difflib
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from repro import claims, page, table2, table3
from repro.command import Parser, ended
from repro.durable import write_text
from repro.grid import markdown_grid
from repro.publish import publish
from repro.record import BASE
from repro.stamp import is_committed
from repro.table1 import page as table1
from repro.tables import Shelf, closing, files, latex, markdown, record_folders, render

PUBLISHED, OWN, EXPERIMENTS = Path("results"), Path("results/own"), Path("experiments")  # of the project


def build(shelf: Shelf, name: str) -> dict[Path, str]:
    """The files of one table and their texts, made from its records alone."""
    frame = shelf.frame([name])
    if frame is None:
        raise ValueError(f"{shelf.folder / name}: expected records, found none. Run experiments/{name}.py first.")
    return files(shelf, name, frame, markdown(frame, shelf.scale, name), latex(frame, shelf.scale, name))


def build_scale(shelf: Shelf) -> dict[Path, str]:
    """All files of one scale: a page for each table, Table 3 on one page, the verdicts, and the page of pages."""
    texts: dict[Path, str] = {}
    for name, records in shelf.tables.items():
        if records and name not in (BASE, table2.NAME):
            texts |= build(shelf, name)
    layers = table1.judged(shelf.folder.parent)  # of no scale
    if shelf.own and not layers:
        layers = table1.judged(PUBLISHED)
    judged = claims.judge(shelf.everything, shelf.rows, layers)
    return texts | table2.build(shelf) | table3.build(shelf) | claims.build(shelf, judged) | page.build(shelf, judged)


def console(shelf: Shelf, tables: Iterable[str]) -> str:
    """What an experiment shows at its end: the rows of these tables, yours beside the published and the paper's."""
    names = [*tables]
    others = shelf.frame({BASE, *names} - {table2.NAME})
    second = shelf.frame([table2.NAME]) if table2.NAME in names else None
    shown = [render(others)] if others is not None and names != [table2.NAME] else []
    return "\n".join([*shown, *([table2.render(second)] if second is not None else [])])


def write_scale(shelf: Shelf) -> list[Path]:
    """Write all files of one scale anew; returns them."""
    texts = build_scale(shelf)
    for file, text in texts.items():
        write_text(file, text)
    return list(texts)


def uncommitted(tables: Iterable[str], experiments: Path = EXPERIMENTS) -> list[str]:
    """The tables of which the experiment file is not as its commit has it; none where there is no git to ask."""
    return [name for name in tables if name != BASE and is_committed(experiments / f"{name}.py") is False]


def scales(results: Path) -> list[Path]:
    """The folders of scales that have records."""
    return sorted(folder for folder in results.glob("*/") if folder.name != OWN.name and record_folders(folder))


def main(arguments: Sequence[str] | None = None) -> int:
    """Make every table again from its records, or with --check say which files differ."""
    parser = Parser(prog="python -m repro.report", description=main.__doc__)
    parser.add_argument(
        "--results", type=Path, help=f"folder of the records; default: {PUBLISHED}, or {OWN} with --own"
    )
    parser.add_argument("--own", action="store_true", help="one's own results: marked rows, beside what is published")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 with a diff")
    commands = parser.add_subparsers(dest="command")
    publishing = commands.add_parser("publish", help="put one's own results among the published ones, or say why not")
    publishing.add_argument("scale", nargs="*", help="which of them; default: all")
    publishing.add_argument("--from", dest="source", type=Path, default=OWN, help="default: %(default)s")
    publishing.add_argument("--to", type=Path, default=PUBLISHED, help="default: %(default)s")
    options = parser.parse_args(arguments)
    if options.command == "publish":
        return _publish(options.source, options.to, options.scale)
    results = options.results or (OWN if options.own else PUBLISHED)
    if not results.is_dir():
        parser.error(f"{results}: expected a folder of records, found none. Run an experiment first.")
    try:
        texts = _all(results, own=options.own)
    except ValueError as error:
        parser.exit(1, f"{error}\n")
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


def _all(results: Path, *, own: bool = False) -> dict[Path, str]:
    """Every file that is made of the records under `results`, the table in the README of their project among them."""
    texts = table1.build(results)
    shelves = [Shelf.read(folder) for folder in scales(results)]
    if own:
        shelves = [Shelf.read_own(shelf.folder, PUBLISHED, uncommitted(shelf.tables)) for shelf in shelves]
    for shelf in shelves:
        texts |= build_scale(shelf)
    readme = results.parent / "README.md"
    if readme.exists() and not own:
        texts[readme] = quote(_text(readme), {shelf.folder.name: shelf for shelf in shelves})
    return texts


def _publish(source: Path, to: Path, names: Sequence[str]) -> int:
    """The command `publish`."""
    folders = [source / name for name in names] or scales(source)
    if not folders:
        print(f"{source}: expected results of your own, found none. Run an experiment first.", file=sys.stderr)
        return 1
    try:
        for folder in folders:
            published = publish(Shelf.read(folder), Shelf.read(to / folder.name), EXPERIMENTS)
            print(f"{folder.name}: {len(published)} records are published.")
        for file, text in _all(to).items():
            write_text(file, text)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 1
    print(f"The pages under {to} are made anew. Look at them, and commit records and pages together.")
    return 0


def quote(document: str, published: Mapping[str, Shelf]) -> str:
    """Renew what stands between `<!-- closing table: SCALE TABLE seed N -->` and `<!-- end -->`.

    It is the table that the experiment shows at its end, to somebody who gets what was published with that seed.
    """

    def grid(mark: re.Match[str]) -> str:
        shelf = published.get(mark["scale"])
        if shelf is None:
            return f"{mark['begin']}{mark['end']}"
        one = {
            name: [record for record in records if record.seed == int(mark["seed"])]
            for name, records in shelf.tables.items()
        }
        frame = replace(shelf, tables=one, own=True, published=shelf).frame([mark["table"]])
        table = markdown_grid(closing(frame)) if frame is not None else ""
        return f"{mark['begin']}{table}\n{mark['end']}"

    begin = r"(?P<begin><!-- closing table: (?P<scale>\S+) (?P<table>\S+) seed (?P<seed>\d+) -->\n)"
    return re.sub(rf"{begin}.*?(?P<end><!-- end -->)", grid, document, flags=re.DOTALL)


def _text(file: Path) -> str:
    return file.read_bytes().decode("utf-8", "backslashreplace")


if __name__ == "__main__":
    sys.exit(ended(main))
