"""Make the files under results/ from their records, or check them.

python -m repro report              make every published file under results/ again, that over all scales too
python -m repro report --check      exit 1 with a diff where a file is not what its records say
python -m repro report --html       write reports for the browser: one file a scale, results/report.html, and your own
python -m repro report --own        the same for your own results, in results/own/
python -m repro report --tests      run the tests that settle claims, and note what came out in results/tests.json
"""

import difflib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from repro.results.places import OWN, PACKAGE, PUBLISHED
from repro.runs.command import Parser, folder_named, ours
from repro.runs.options import add_options
from repro.storage.atomic import write_text


def main(argv: Sequence[str] | None = None) -> int:
    """Make every table again from its records, or with --check say which files differ."""
    parser = Parser(prog=ours("report"), description=main.__doc__)
    where = f"folder of the records; default: {PUBLISHED}, or {OWN} with --own"
    parser.add_argument("--results", type=folder_named, help=where)
    parser.add_argument("--own", action="store_true", help="your own results, with the published numbers beside them")
    one_of = parser.add_mutually_exclusive_group()
    one_of.add_argument("--check", action="store_true", help="write nothing; exit 1 with a diff")
    reports = "write only the reports for the browser, one per scale, and their index"
    one_of.add_argument("--html", action="store_true", help=reports)
    tests = "first run the tests that settle claims; the pages say what came out"
    one_of.add_argument("--tests", action="store_true", help=tests)
    add_options(parser, "cache_dir", cache_dir="where generated text is kept, for the sentences of --html")
    options = parser.parse_args(argv)
    from repro.pages.build import build_all, scales  # SciPy, which --help does without

    results = options.results or (OWN if options.own else PUBLISHED)
    if not results.is_dir():
        parser.error(f"{results}: expected a folder of records, found none. Run an experiment first.")
    # the folder that was named, else the published results and your own
    shown = [results] if options.results or options.own else [PUBLISHED, OWN]
    if options.html and (there := [place for place in shown if scales(place)]):
        from repro.web.files import write_reports

        for place in there:
            own = options.own or place == OWN
            print(*write_reports(place, own=own, cache=options.cache_dir), sep="\n")
        return 0
    failed = _tested(options.results or PUBLISHED) if options.tests else False
    texts = {} if options.html else build_all(results, own=options.own)
    if not any(texts.values()) and not options.tests:
        beside = not options.own and not options.results and any(OWN.glob("*/*/*.json"))
        how = f"Your own are in {OWN}: add --own." if beside else "Run an experiment first."
        raise ValueError(f"{results}: expected records of finished runs, found none. {how}")
    if options.check:
        return int(_differ(texts))
    for said in write_changed(texts):
        print(said)
    return int(failed)


def _tested(results: Path) -> bool:
    """Run the tests that settle claims and keep what came out; returns whether one of them did not pass."""
    from repro.claims.catalogue import LISTED
    from repro.claims.tested import named_tests, read_outcomes, run, write_outcomes

    before = {one.test: one.outcome for one in read_outcomes(results).ran}
    tests = run(named_tests(LISTED), PACKAGE.parent)
    missed = [f"{one.test} {one.outcome}" for one in tests.ran if one.outcome != "passed"]
    print(f"{write_outcomes(results, tests)}: {len(tests.ran)} tests, {'; '.join(missed) or 'all passed'}")
    for one in tests.ran:
        if before and (was := before.get(one.test, "not there")) != one.outcome:
            print(f"changed: {one.test}: {was} -> {one.outcome}")
    return bool(missed)


def _differ(texts: Mapping[Path, str]) -> bool:
    """Show how files differ from what their records say; returns whether one does."""
    from repro.pages.build import read

    differing = [(file, there) for file in texts if (there := read(file) if file.exists() else "") != texts[file]]
    for file, there in differing:
        sides = there.split("\n"), texts[file].split("\n")
        print(*difflib.unified_diff(*sides, f"{file}", "from its records", lineterm=""), sep="\n")
    return bool(differing)


def write_changed(texts: Mapping[Path, str]) -> Iterator[str]:
    """Write the files that do not hold their text, and say of each whether it is new, changed or gone.

    A file without a text, which no record makes, is deleted.
    """
    from repro.pages.build import read

    for file, text in texts.items():
        if not text:
            file.unlink()
            yield f"gone: {file}"
        elif not file.exists() or read(file) != text:
            said = "changed" if file.exists() else "new"
            write_text(file, text)
            yield f"{said}: {file}"
