"""Make the files under results/ from their records, check them, or publish one's own.

python -m repro report              make every published file under results/ again, that over all scales too
python -m repro report --check      exit 1 with a diff where a file is not what its records say
python -m repro report --html       write reports for the browser: one file a scale, results/report.html, and your own
python -m repro report --own        the same for your own results, in results/own/
python -m repro report --tests      run the tests that settle claims, and note what came out in results/tests.json
python -m repro publish             put your own results among the published ones, or say why not
"""

import argparse
import difflib
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from repro.render.several import several
from repro.results.layer_costs import FILE, LAYER_COSTS_FOLDER
from repro.results.places import EXPERIMENTS, OWN, PACKAGE, PUBLISHED
from repro.runs.command import Parser, code_of, folder_named, ours
from repro.storage.atomic import DiskError, write_text

if TYPE_CHECKING:
    from repro.results.frame import ResultSet
    from repro.results.layer_costs import Measured


def main(arguments: Sequence[str] | None = None) -> int:
    """Make every table again from its records, or with --check say which files differ."""
    parser = Parser(prog=ours("report"), description=main.__doc__)
    parser.add_argument(
        "--results", type=folder_named, help=f"folder of the records; default: {PUBLISHED}, or {OWN} with --own"
    )
    parser.add_argument("--own", action="store_true", help="your own results, with the published numbers beside them")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 with a diff")
    parser.add_argument(
        "--html", action="store_true", help="write only the reports for the browser, one per scale, and their index"
    )
    parser.add_argument(
        "--tests", action="store_true", help="first run the tests that settle claims; the pages say what came out"
    )
    parser.add_argument(
        "--cache-dir",
        type=folder_named,
        default=Path("cache"),
        help="where generated text is kept, for the sentences of --html (default: %(default)s)",
    )
    options = parser.parse_args(arguments)
    from repro.pages.build import build_all, scales  # SciPy, which --help does without

    results = options.results or (OWN if options.own else PUBLISHED)
    if not results.is_dir():
        parser.error(f"{results}: expected a folder of records, found none. Run an experiment first.")
    if options.html and (options.check or options.tests):
        parser.error("--html: expected it alone or with --own, got --check or --tests. Run them one after the other.")
    if options.tests and options.check:
        parser.error("--tests and --check: expected one of them, got both; --check writes nothing. Run --tests first.")
    try:
        if options.html and (there := [place for place in _shown(options, results) if scales(place)]):
            for place in there:
                _report(place, own=options.own or place == OWN, cache=options.cache_dir)
            return 0
        failed = _tested(options.results or PUBLISHED) if options.tests else False
        texts = {} if options.html else build_all(results, own=options.own)
        if not any(texts.values()) and not options.tests:
            raise ValueError(f"{results}: expected records of finished runs, found none. {_where(options)}")
        return _made(texts, check=options.check) or int(failed)
    except (ValueError, DiskError) as error:
        parser.exit(code_of(error), f"error: {error}\n")


def _shown(options: argparse.Namespace, results: Path) -> list[Path]:
    """Of which folders a report is made: where none was named, of what is published and of your own."""
    return [results] if options.results or options.own else [PUBLISHED, OWN]


def _where(options: argparse.Namespace) -> str:
    """Where records are instead, or how they are made."""
    own_alone = not options.own and not options.results and any(OWN.glob("*/*/*.json"))
    return f"Your own are in {OWN}: add --own." if own_alone else "Run an experiment first."


def _report(results: Path, *, own: bool, cache: Path) -> None:
    """Write the reports, and say where they are."""
    from repro.web.files import write_reports

    print(*write_reports(results, own=own, cache=cache), sep="\n")


def _tested(results: Path) -> bool:
    """Run the tests that settle claims and keep what came out; whether one of them did not pass."""
    from repro.claims.statements import LISTED
    from repro.claims.tested import named_tests, run, write_outcomes

    tests = run(named_tests(LISTED), PACKAGE.parent)
    missed = [f"{one.test} {one.outcome}" for one in tests.ran if one.outcome != "passed"]
    print(f"{write_outcomes(results, tests)}: {len(tests.ran)} tests, {'; '.join(missed) or 'all passed'}")
    return bool(missed)


def _made(texts: Mapping[Path, str], *, check: bool) -> int:
    """Write the files that are not what their records say, or with `check` show how they differ; 1 if one does."""
    from repro.pages.build import read

    differs = False
    for file, text in texts.items():
        stands = read(file) if file.exists() else ""
        if stands != text and check:
            differs = True
            sides = stands.split("\n"), text.split("\n")
            print(*difflib.unified_diff(*sides, f"{file}", "from its records", lineterm=""), sep="\n")
        elif stands != text:
            _keep(file, text)
            print(file)
    return int(differs)


def _keep(file: Path, text: str) -> None:
    """Write a file; without a text, which no record makes, it goes."""
    if text:
        write_text(file, text)
    else:
        file.unlink()


def publish_own(arguments: Sequence[str] | None = None) -> int:
    """Add your own results to the published ones and make the pages again, or say why not.

    Translations go with their records, and are scored again if their text is available.
    """
    parser = Parser(prog=ours("publish"), description=publish_own.__doc__)
    parser.add_argument(
        "scale", nargs="*", help=f"which scales; {LAYER_COSTS_FOLDER} is the measurement of Table 1 (default: all)"
    )
    parser.add_argument(
        "--from", dest="source", type=folder_named, default=OWN, help="your results (default: %(default)s)"
    )
    parser.add_argument("--to", type=folder_named, default=PUBLISHED, help="the published ones (default: %(default)s)")
    parser.add_argument(
        "--cache-dir",
        type=folder_named,
        default=Path("cache"),
        help="where generated text is kept (default: %(default)s)",
    )
    options = parser.parse_args(arguments)
    from repro.pages.build import build_all

    try:
        for write in _publishable(options):
            print(write())
        for file, text in build_all(options.to).items():
            _keep(file, text)
    except (ValueError, DiskError) as error:
        print(f"error: {error}", file=sys.stderr)
        return code_of(error)
    print(f"The pages under {options.to} have been made again. Look at them, and commit records and pages together.")
    return 0


def _publishable(options: argparse.Namespace) -> list[Callable[[], str]]:
    """What writes each thing that was asked for and says what it was; nothing is written before all of it may be.

    Raises ValueError with every reason why something may not.
    """
    from repro.pages.build import scales
    from repro.results.publish import layers_to_publish

    has_layers = (options.source / LAYER_COSTS_FOLDER / FILE).exists()
    names = options.scale or [*(folder.name for folder in scales(options.source)), *[LAYER_COSTS_FOLDER] * has_layers]
    if not names:
        raise ValueError(f"{options.source}: expected results of your own, found none. Run an experiment first.")
    writes: list[Callable[[], str]] = []
    reasons = []
    for name in names:
        try:
            if name == LAYER_COSTS_FOLDER:
                measured = layers_to_publish(options.source, options.to)
                writes.append(partial(_publish_layers, measured, options.to))
            else:
                writes.append(_publishable_scale(name, options))
        except ValueError as error:
            reasons.append(str(error))
    if reasons:
        raise ValueError("\n".join(reasons))
    return writes


def _publishable_scale(name: str, options: argparse.Namespace) -> Callable[[], str]:
    from repro.results.frame import ResultSet
    from repro.results.publish import refuse_unpublishable, without_programs
    from repro.runs.outputs import rescored

    all_own, there = ResultSet.read(options.source / name), ResultSet.read(options.to / name)
    own = without_programs(all_own)
    if own.everything or not all_own.everything:
        refuse_unpublishable(own, there, EXPERIMENTS, partial(rescored, cache=options.cache_dir))
    return partial(_publish_scale, own, there, len(all_own.everything) - len(own.everything))


def _publish_scale(own: "ResultSet", published: "ResultSet", n_left: int) -> str:
    from repro.results.publish import publish

    left = (
        f" {several(n_left, 'run')} of rows that a program gave to repro.run stay yours: put the rows into an "
        "experiment file, and type its command."
    )
    n = len(publish(own, published))
    return f"{own.folder.name}: {several(n, 'record')} {'is' if n == 1 else 'are'} published.{left * bool(n_left)}"


def _publish_layers(measured: "Measured", results: Path) -> str:
    from repro.figures.table1 import draw_table1
    from repro.results import layer_costs

    layer_costs.save(results / LAYER_COSTS_FOLDER / FILE, measured)
    draw_table1(results)
    return f"{LAYER_COSTS_FOLDER}: the measurement is published."
