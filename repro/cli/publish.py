"""Put one's own results among the published ones, or say why not: what is published changes in no other way.

python -m repro publish laptop             add new records of a scale, and make the pages again
python -m repro publish laptop --dry-run   say what that would change, and write nothing
python -m repro publish laptop --replace   also replace records that are published, and say which and what they decided
"""

import argparse
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from repro.cli.report import write_changed
from repro.render.text import several
from repro.results.measured import LAYER_COSTS_FOLDER
from repro.results.places import EXPERIMENTS, OWN, PUBLISHED
from repro.runs.command import Parser, folder_named, ours
from repro.runs.options import add_options


class _Plan(NamedTuple):
    """What publishing one scale, or the measurement of Table 1, would do."""

    added: list[str]  # what is new, or stays one's own
    replaced: list[str]  # each thing that is replaced by another: old -> new
    verdicts: list[str]  # those that change: old -> new
    write: Callable[[], object]


def main(argv: Sequence[str] | None = None) -> int:
    """Add your own results to the published ones and make the pages again, or say why not.

    Translations go with their records, and are scored again if their text is available. A published record stays as it
    is unless --replace is given.
    """
    parser = Parser(prog=ours("publish"), description=main.__doc__)
    layers = f"{LAYER_COSTS_FOLDER} stands for the measurement of Table 1"
    parser.add_argument("scale", help=f"the scale to publish; {layers}")
    from_ = "your results (default: %(default)s)"
    parser.add_argument("--from", dest="source", type=folder_named, default=OWN, help=from_)
    parser.add_argument("--to", type=folder_named, default=PUBLISHED, help="the published ones (default: %(default)s)")
    parser.add_argument("--replace", action="store_true", help="let your records replace published ones that differ")
    parser.add_argument("--dry-run", action="store_true", help="say what would change; write nothing")
    add_options(parser, "cache_dir", cache_dir="where generated text is kept")
    options = parser.parse_args(argv)
    from repro.pages.build import build_all

    plan = (_plan_of_layers if options.scale == LAYER_COSTS_FOLDER else _plan_of_scale)(options)
    changes = [f"{options.scale}: {line}" for line in (*plan.replaced, *plan.verdicts)]
    if plan.replaced and not options.replace:
        how = f"Type the same with --replace if that is meant, or delete yours in {options.source}."
        said = ["What is published would be replaced:", *(f"  {line}" for line in changes)]
        raise ValueError("\n".join([*said, f"Nothing was written. {how}"]))
    told = [*(f"{options.scale}: {line}" for line in plan.added), *changes]
    print(*(told or [f"{options.scale}: nothing is new."]), sep="\n")
    if options.dry_run:
        print("Nothing was written: --dry-run.")
        return 0
    plan.write()
    for line in write_changed(build_all(options.to)):
        print(line)
    print(f"The pages under {options.to} are of these records. Look at them, and commit records and pages together.")
    return 0


def _plan_of_scale(options: argparse.Namespace) -> _Plan:
    from repro.pages.build import verdicts_of
    from repro.results.frame import ResultSet
    from repro.results.publish import added, publish, published_with, refuse_unpublishable, replaced, without_programs
    from repro.runs.outputs import rescored

    all_own, there = (ResultSet.read(folder / options.scale) for folder in (options.source, options.to))
    own = without_programs(all_own)
    if own.everything or not all_own.everything:
        refuse_unpublishable(own, there, EXPERIMENTS, partial(rescored, cache=options.cache_dir))
    new = added(own, there)
    if n_left := len(all_own.everything) - len(own.everything):
        how = "put the rows into an experiment file, and type its command."
        new.append(f"{several(n_left, 'run')} of rows that a program gave to repro.run stay yours: {how}")
    verdicts = _differing(verdicts_of(there), verdicts_of(published_with(own, there)))
    return _Plan(new, replaced(own, there), verdicts, partial(publish, own, there))


def _plan_of_layers(options: argparse.Namespace) -> _Plan:
    from repro.claims.layers import verdicts
    from repro.results.measured import Measured, load, save
    from repro.results.publish import layers_to_publish

    mine, theirs = layers_to_publish(options.source, options.to), load(options.to, Measured)
    before, after = ({claim: one[0] for claim, one in verdicts(of).items()} if of else {} for of in (theirs, mine))
    commits = [(of.stamp["commit"] or "none")[:12] for of in (theirs, mine) if of]
    return _Plan(
        [] if theirs else ["new: the measurement"],
        [f"the measurement of commit {' -> '.join(commits)}"] if theirs and mine != theirs else [],
        _differing(before, after),
        partial(save, options.to, mine),
    )


def _differing(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    """verdict of C27a: opposite sign -> undetermined; nothing where no verdict stands yet."""
    return [
        f"verdict of {claim}: {before.get(claim, 'none')} -> {after.get(claim, 'none')}"
        for claim in {**before, **after}
        if before and before.get(claim) != after.get(claim)
    ]
