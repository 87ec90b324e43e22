"""Make the files under results/ from their records, check them, or publish one's own.

python -m repro.report              make every published file under results/ again
python -m repro.report --check      exit 1 with a diff where a file is not what its records say
python -m repro.report --own        the same for one's own results, in results/own/
python -m repro.report publish      put one's own results among the published ones, or say why not
"""

import difflib
import sys
from collections.abc import Sequence
from pathlib import Path

from repro.pages.build import EXPERIMENTS, OWN, PUBLISHED, build_all, read, scales
from repro.results.frame import ResultSet
from repro.results.publish import publish
from repro.runs.command import Parser
from repro.storage.atomic import write_text


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
        texts = build_all(results, own=options.own)
    except ValueError as error:
        parser.exit(1, f"{error}\n")
    differs = False
    for file, text in texts.items():
        stands = read(file) if file.exists() else ""
        if stands != text and options.check:
            differs = True
            sides = stands.split("\n"), text.split("\n")
            print(*difflib.unified_diff(*sides, f"{file}", "from its records", lineterm=""), sep="\n")
        elif stands != text:
            write_text(file, text)
            print(file)
    return int(differs)


def _publish(source: Path, to: Path, names: Sequence[str]) -> int:
    """The command `publish`."""
    folders = [source / name for name in names] or scales(source)
    if not folders:
        print(f"{source}: expected results of your own, found none. Run an experiment first.", file=sys.stderr)
        return 1
    try:
        for folder in folders:
            published = publish(ResultSet.read(folder), ResultSet.read(to / folder.name), EXPERIMENTS)
            print(f"{folder.name}: {len(published)} records are published.")
        for file, text in build_all(to).items():
            write_text(file, text)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 1
    print(f"The pages under {to} are made anew. Look at them, and commit records and pages together.")
    return 0
