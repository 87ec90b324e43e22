"""Make the files under results/ from their records, or check them; or put your own results among the published ones.

What is published changes in no other way.
"""

import argparse
import difflib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from repro.render.text import several
from repro.results.measured import LAYER_COSTS_FOLDER
from repro.results.places import EXPERIMENTS, OWN, PACKAGE, PUBLISHED
from repro.runs.command import Parser, folder_named, ours
from repro.runs.options import add_options
from repro.storage.atomic import write_text


def report(argv: Sequence[str] | None = None) -> int:
    """Make every table again from its records, or with --check say which files differ."""
    parser = Parser(prog=ours("report"), description=report.__doc__)
    parser.add_argument("--results", type=folder_named, help=f"default: {PUBLISHED}, or {OWN} with --own")
    parser.add_argument("--own", action="store_true", help="your own results, with the published numbers beside them")
    one_of = parser.add_mutually_exclusive_group()
    one_of.add_argument("--check", action="store_true", help="write nothing; exit 1 with a diff")
    one_of.add_argument("--html", action="store_true", help="write only the reports for the browser, and their index")
    one_of.add_argument("--tests", action="store_true", help="first run the tests that settle claims")
    add_options(parser, "cache_dir", cache_dir="where generated text is kept, for the sentences of --html")
    options = parser.parse_args(argv)
    from repro.pages.build import build_all, read  # SciPy, which --help does without
    from repro.pages.scale_data import scales

    results = options.results or (OWN if options.own else PUBLISHED)
    if options.html:
        from repro.web.files import write_reports

        # the folder that was named, else the published results and your own
        shown = [results] if options.results or options.own else [PUBLISHED, OWN]
        for place in [place for place in shown if scales(place)] or [results]:
            own = options.own or place == OWN
            print(*write_reports(place, own=own, cache=options.cache_dir), sep="\n")
        return 0
    failed = _tested(options.results or PUBLISHED) if options.tests else False
    texts = build_all(results, own=options.own)
    if not any(texts.values()) and not options.tests:
        beside = not options.own and not options.results and any(OWN.glob("*/*/*.json"))
        how = f"Your own are in {OWN}: add --own." if beside else "Run an experiment first."
        raise ValueError(f"{results}: expected records of finished runs, found none. {how}")
    if options.check:
        differing = {file: was for file in texts if (was := read(file) if file.exists() else "") != texts[file]}
        for file, was in differing.items():
            sides = was.split("\n"), texts[file].split("\n")
            print(*difflib.unified_diff(*sides, f"{file}", "from its records", lineterm=""), sep="\n")
        return int(bool(differing))
    _write_changed(texts)
    return int(failed)


def _tested(results: Path) -> bool:
    """Run the tests that settle claims and keep what came out; returns whether one of them did not pass."""
    from repro.claims.catalogue import LISTED
    from repro.claims.tested import named_tests, run, write_outcomes

    tests = run(named_tests(LISTED), PACKAGE.parent)
    missed = [f"{one.test} {one.outcome}" for one in tests.ran if one.outcome != "passed"]
    print(f"{write_outcomes(results, tests)}: {len(tests.ran)} tests, {'; '.join(missed) or 'all passed'}")
    return bool(missed)


def _write_changed(texts: Mapping[Path, str]) -> None:
    """Write the files that do not hold their text, and say of each whether it is new, changed or gone.

    A file without a text, which no record makes, is deleted.
    """
    from repro.pages.build import read

    for file, text in texts.items():
        if not text:
            file.unlink()
            print(f"gone: {file}")
        elif not file.exists() or read(file) != text:
            said = "changed" if file.exists() else "new"
            write_text(file, text)
            print(f"{said}: {file}")


# Among the published ones --------------------------------------------------------------------------------


# what publishing would do: what is new or stays one's own; what is replaced, old -> new; verdicts that change; do it
Plan = tuple[list[str], list[str], list[str], Callable[[], object]]


def publish(argv: Sequence[str] | None = None) -> int:
    """Add your own results to the published ones and make the pages again, or say why not.

    Translations go with their records, and are scored again if their text is available. A published record stays as it
    is unless --replace is given.
    """
    parser = Parser(prog=ours("publish"), description=publish.__doc__)
    parser.add_argument("scale", help=f"the scale, or {LAYER_COSTS_FOLDER} for the measurement of Table 1")
    default = " (default: %(default)s)"
    parser.add_argument("--from", dest="source", type=folder_named, default=OWN, help="your results" + default)
    parser.add_argument("--to", type=folder_named, default=PUBLISHED, help="the published ones" + default)
    parser.add_argument("--replace", action="store_true", help="let your records replace published ones that differ")
    parser.add_argument("--dry-run", action="store_true", help="say what would change; write nothing")
    add_options(parser, "cache_dir", cache_dir="where generated text is kept")
    options = parser.parse_args(argv)
    from repro.pages.build import build_all

    plan = _plan_of_layers if options.scale == LAYER_COSTS_FOLDER else _plan_of_scale
    new, replaced, verdicts, write = plan(options)
    changes = [f"{options.scale}: {line}" for line in (*replaced, *verdicts)]
    if replaced and not options.replace:
        how = f"Type the same with --replace if that is meant, or delete yours in {options.source}."
        said = ["What is published would be replaced:", *(f"  {line}" for line in changes)]
        raise ValueError("\n".join([*said, f"Nothing was written. {how}"]))
    told = [*(f"{options.scale}: {line}" for line in new), *changes]
    print(*(told or [f"{options.scale}: nothing is new."]), sep="\n")
    if options.dry_run:
        print("Nothing was written: --dry-run.")
        return 0
    write()
    _write_changed(build_all(options.to))
    print(f"The pages under {options.to} are of these records. Look at them, and commit records and pages together.")
    return 0


def _plan_of_scale(options: argparse.Namespace) -> Plan:
    from repro.pages.build import verdicts_of
    from repro.results.frame import ResultSet
    from repro.results.publish import publish, published_with, refuse_unpublishable, what_changes, without_programs
    from repro.runs.outputs import rescored

    all_own, there = (ResultSet.read(folder / options.scale) for folder in (options.source, options.to))
    own = without_programs(all_own)
    if own.everything or not all_own.everything:
        refuse_unpublishable(own, there, EXPERIMENTS, partial(rescored, cache=options.cache_dir))
    new, replaced = what_changes(own, there)
    if n_left := len(all_own.everything) - len(own.everything):
        how = "put the rows into an experiment file, and type its command."
        new.append(f"{several(n_left, 'run')} of rows that a program gave to repro.run stay yours: {how}")
    verdicts = _differing(verdicts_of(there), verdicts_of(published_with(own, there)))
    return new, replaced, verdicts, partial(publish, own, there)


def _plan_of_layers(options: argparse.Namespace) -> Plan:
    from repro.claims.layers import verdicts
    from repro.results.measured import Measured, load, save
    from repro.results.publish import layers_to_publish

    mine, theirs = layers_to_publish(options.source), load(options.to, Measured)
    before, after = ({claim: one[0] for claim, one in verdicts(of).items()} if of else {} for of in (theirs, mine))
    commits = [(of.stamp["commit"] or "none")[:12] for of in (theirs, mine) if of]
    new = [] if theirs else ["new: the measurement"]
    replaced = [f"the measurement of commit {' -> '.join(commits)}"] if theirs and mine != theirs else []
    return new, replaced, _differing(before, after), partial(save, options.to, mine)


def _differing(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    """verdict of C27a: opposite sign -> undetermined; nothing where no verdict stands yet."""
    return [
        f"verdict of {claim}: {before.get(claim, 'none')} -> {after.get(claim, 'none')}"
        for claim in {**before, **after}
        if before and before.get(claim) != after.get(claim)
    ]
