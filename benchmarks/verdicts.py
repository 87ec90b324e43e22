"""How often does a page hold a wrong verdict, and how often do its verdicts find what is there?

Draws the runs of a whole page of which the truth is known, has them judged by the functions that judge the records, at
both looks, and counts: pages with any wrong verdict, tables with one, claims that are found. The spread between seeds
is a supposed one, that of the paper's world, and then that of the published runs of a scale. The largest of many shares
is large by chance too, so the truth that has it is drawn anew, on more pages, and that share is the one to quote.
Writes the numbers into `benchmarks/records/verdicts.json`, the section of docs/claims.md that is made of it, and what
pages of verdicts say of it into `repro/claims/simulated.json`.

Run:  python benchmarks/verdicts.py --pages 1000       (an hour, one core)
      python benchmarks/verdicts.py --published        (six minutes: anew what depends on the published runs)
      python benchmarks/verdicts.py --render           (only the section, from the record; --check: is it that?)
"""

import argparse
import json
import re
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from repro.claims.catalogue import CLAIMS
from repro.claims.claim import B0, Claim, Endpoint
from repro.claims.decisions import BASE_SEEDS, LOOKS, OF_SIGN, OF_SIZE, Look
from repro.claims.evidence import needed
from repro.claims.judge import Judged, Suite, evidence_of, judge_suite, may_judge, noise_of, suite
from repro.claims.lists import catalogue_digest
from repro.claims.simulated import FILE as TOLD
from repro.claims.statistics import Noise, Sample, slope_weights
from repro.results.frame import ResultSet, noted_rows
from repro.results.provenance import provenance
from repro.storage import atomic

ROOT = Path(__file__).parents[1]
RECORD = ROOT / "benchmarks" / "records" / "verdicts.json"
PAGE = ROOT / "docs" / "claims.md"
SCALES = ("laptop", "captions", "paper")
SPREAD = 0.2  # BLEU between seeds; of log PPL a thirtieth, as the paper's tables relate the two
UNIT = 1 / 30
YES = {OF_SIZE.yes, OF_SIGN.yes}
NO = {OF_SIZE.no, OF_SIGN.no}
Rows = Mapping[str, float]

AS_MEASURED = "effects as printed, seeds as published"
AS_FAR = "; as many seeds as published"
OF_PUBLISHED = 7  # the seed from which pages with the spread of published runs are drawn
ANEW, OF_ANEW = 10, 100  # times as many pages, and the first of the seeds, of the truth that had the most wrong ones
MEASURED = ("laptop", "captions-bf16")  # folders of results, whose spread between seeds is taken as well

PRINTED = {f"{table}/{row}": one.paper for (table, row), one in noted_rows(ROOT / "results" / "laptop").items()}
TRAINED = [claim for claim in CLAIMS if claim.is_trained]
ENDPOINTS = {endpoint.name: endpoint for claim in TRAINED for endpoint in claim.endpoints}


@dataclass(frozen=True)
class World:
    """What is true of a page: effects as a multiple of the printed ones, and how noisy the rows are."""

    name: str
    size: float
    spreads: Callable[[np.random.Generator, Sequence[str]], Rows]  # "table/row" -> its spread, times that of its score
    units: Mapping[str, float] = field(default_factory=dict)  # endpoint -> its spread, where it is not the supposed one
    own: Mapping[str, Rows] = field(default_factory=dict)  # the same of a row that is not like the others

    def unit(self, endpoint: Endpoint, row: str) -> float:
        """The spread between seeds of a row: that of the others, if it has none of its own."""
        others = self.units.get(endpoint.name, SPREAD * (UNIT if endpoint.score == "nll" else 1.0))
        return self.own.get(endpoint.name, {}).get(row, others)


def alike(_: np.random.Generator, rows: Sequence[str]) -> Rows:
    """All rows as noisy as each other."""
    return dict.fromkeys(rows, 1.0)


def either_way(random: np.random.Generator, rows: Sequence[str]) -> Rows:
    """From 0.6 to 1.65 times."""
    return {row: float(1.65 ** random.uniform(-1, 1)) for row in rows}


def noisy(*those: str) -> Callable[[np.random.Generator, Sequence[str]], Rows]:
    """Some rows three times as noisy as the others."""
    return lambda _, rows: {one: 3.0 if one in those else 1.0 for one in rows}


WORLDS = (
    World("all rows equal", 0.0, alike),
    World("all rows equal, base three times as noisy", 0.0, noisy(B0)),
    World("all rows equal, N=2 three times as noisy", 0.0, noisy("table3_C/N=2")),
    World("all rows equal, spreads of 0.6 to 1.65", 0.0, either_way),
    World("a quarter of the printed effects", 0.25, alike),
    World("effects as printed", 1.0, alike),
    World("effects as printed, the other way round", -1.0, alike),
    World("all rows equal, eps_ls=0.0 three times as noisy", 0.0, noisy("table3_D/eps_ls=0.0")),
    World(
        "all rows equal, big and P_drop=0.2 three times as noisy", 0.0, noisy("table3_big/big", "table3_D/P_drop=0.2")
    ),
    World("all rows equal, WSJ only three times as noisy", 0.0, noisy("table4/WSJ only")),
)


def center(endpoint: Endpoint, row: str) -> float:
    """What the paper prints for the row, else for its base: more is better."""
    own = endpoint.printed(PRINTED[row]) if row in PRINTED else None
    return own if own is not None else endpoint.printed(PRINTED[B0]) or 0.0


def truth(world: World, endpoint: Endpoint, row: str) -> float:
    """The true score of a row."""
    base = center(endpoint, B0)
    return base + world.size * (center(endpoint, row) - base)


Runs = Mapping[str, Mapping[str, NDArray[np.float64]]]  # endpoint -> "table/row" -> a number a seed


def drawn(world: World, random: np.random.Generator, rows: Sequence[str], endpoints: Iterable[Endpoint]) -> Runs:
    """The runs of a page on each endpoint, as many as any look takes: a run that is good on one is on the others."""
    n = {row: max(needed(row, look) for look in LOOKS) for row in rows}
    luck = {row: random.standard_normal(n[row]) for row in rows}
    spreads = world.spreads(random, rows)
    runs: dict[str, dict[str, NDArray[np.float64]]] = {}
    for endpoint in endpoints:
        runs[endpoint.name] = {
            row: truth(world, endpoint, row)
            + world.unit(endpoint, row) * spreads[row] * (0.8 * luck[row] + 0.6 * random.standard_normal(n[row]))
            for row in rows
        }
    return runs


def at(runs: Runs, look: Look, scale: str, seeds: Mapping[str, int] | None = None) -> Suite:
    """What a look takes of them: all that it needs, or nothing of a row that has fewer `seeds`."""
    n = {row: needed(row, look) for row in next(iter(runs.values()))}
    has = {row for row in n if seeds is None or seeds.get(row, 0) >= n[row]}
    taken = {
        name: {row: Sample(values=tuple(values[: n[row]])) for row, values in of.items() if row in has}
        for name, of in runs.items()
    }
    return Suite(scale=scale, runs=taken, printed=PRINTED, look=look)


def is_wrong(one: Judged, world: World) -> bool:
    """Whether a verdict says what is not so."""
    claim = one.claim
    if one.verdict == "not consistent":
        return world.size == 1.0
    if one.verdict not in YES | NO:
        return False
    effects = [effect(claim, endpoint, world) for endpoint in claim.endpoints]
    if claim.kind == "equivalence":
        inside = all(abs(size) <= endpoint.margin for size, endpoint in zip(effects, claim.endpoints, strict=True))
        return inside != (one.verdict in YES)
    return not any(size > 0 for size in effects) if one.verdict in YES else not any(size < 0 for size in effects)


def effect(claim: Claim, endpoint: Endpoint, world: World) -> float:
    """The true difference, slope or lead that a claim is about: positive where it is true."""
    values = {row: truth(world, endpoint, row) for row in claim.rows}
    if claim.kind == "trend":
        return sum(w * values[row] for w, row in zip(slope_weights(claim.sizes), claim.rows, strict=True))
    if claim.kind == "best of family":
        return max(values[row] for row in claim.named) - max(values[row] for row in values if row not in claim.named)
    better, worse = claim.rows
    return values[better] - values[worse]


def count(world: World, scale: str, pages: int, seed: int, seeds: Mapping[str, int] | None = None) -> dict[str, Any]:
    """Of so many pages of a scale: the share with a wrong verdict, by page and by table, and what was found."""
    random = np.random.default_rng(seed)
    rows = sorted({row for claim in TRAINED for row in claim.rows})
    wrong_pages, wrong_tables, found, opposite = 0, Counter[str](), Counter[str](), Counter[str]()
    for _ in range(pages):
        runs = drawn(world, random, rows, ENDPOINTS.values())
        looks = [judge_suite(at(runs, look, scale, seeds), TRAINED) for look in LOOKS]
        mistaken = {one.claim.table for results in looks for one in results if is_wrong(one, world)}
        wrong_pages += bool(mistaken)
        wrong_tables.update(mistaken)
        found.update(one.claim.id for one in looks[-1] if one.verdict in YES | {"consistent"})
        opposite.update(one.claim.id for one in looks[-1] if one.verdict in NO)
    judged = [claim.id for claim in TRAINED if may_judge(scale, claim) and is_printed(claim)]
    return {
        "world": world.name,
        "scale": scale,
        "pages": pages,
        "wrong": wrong_pages / pages,
        "wrong_by_table": {table: wrong_tables[table] / pages for table in sorted({claim.table for claim in TRAINED})},
        "found": {id: found[id] / pages for id in judged},
        "opposite": {id: opposite[id] / pages for id in judged},
    }


def is_printed(claim: Claim) -> bool:
    """Whether the paper prints the numbers of all its rows, so that there is a size to be found."""
    return any(all(one.printed(PRINTED[row]) is not None for row in claim.rows) for one in claim.endpoints)


class Spreads(NamedTuple):
    """Standard deviations between the published seeds of a row."""

    pooled: dict[str, float]  # endpoint -> that of the rows that are alike
    own: dict[str, dict[str, float]]  # endpoint -> "table/row" -> that of a row that is not


def measured_spreads(scale: str) -> Spreads:
    """Of each endpoint by the last look that has any.

    The base, and a row that is found wider on any endpoint, have their own on all of them: what makes the seeds of a
    row differ on one score does on the others. Nearly half of equal rows are wider than the rest by chance, so one that
    is only that (`Noise.wide`) is drawn like the rest; the verdicts on it count the larger variance all the same.
    """
    runs, found = evidence_of(ResultSet.read(ROOT / "results" / scale).everything), dict[str, tuple[Noise, Suite]]()
    for look in LOOKS:
        taken = suite(runs, look)
        noises = {name: noise_of(taken, one, TRAINED) for name, one in ENDPOINTS.items()}
        found |= {name: (noise, taken) for name, noise in noises.items() if noise.variance}
    apart = {B0, *(row for noise, _ in found.values() for row in noise.taken_out)}
    return Spreads(
        pooled={name: noise.variance**0.5 for name, (noise, _) in found.items()},
        own={
            name: {
                row: statistics.stdev(runs.values)
                for row, runs in sorted(taken.runs[name].items())
                if row in apart & _rows_of(ENDPOINTS[name]) and len(runs.values) > 1
            }
            for name, (_, taken) in found.items()
        },
    )


def _rows_of(endpoint: Endpoint) -> set[str]:
    """Those that a claim looks at by it."""
    return {row for claim in TRAINED if endpoint in claim.endpoints for row in claim.rows}


def published_seeds(scale: str) -> dict[str, int]:
    """How many seeds count of each "table/row" of a claim, as published."""
    taken = evidence_of(ResultSet.read(ROOT / "results" / scale).everything)
    return {row: taken.count(row) for row in sorted({row for claim in TRAINED for row in claim.rows})}


class Drawn(NamedTuple):
    """Pages of a scale of which one truth holds."""

    world: World
    scale: str
    seed: int
    seeds: Mapping[str, int] | None = None  # how many of each "table/row" there are; None: all that a look needs


def of_supposed() -> list[Drawn]:
    """All worlds at all scales; a world has the same draws at each."""
    return [
        Drawn(world, scale, number + (number >= OF_PUBLISHED))
        for scale in SCALES
        for number, world in enumerate(WORLDS)
    ]


def of_published(measured: Mapping[str, Spreads]) -> list[Drawn]:
    """Those of runs that differ, or are as many, as the published ones; `measured` are their spreads."""
    found = []
    for scale, spreads in measured.items():
        found.append(Drawn(World(AS_MEASURED, 1.0, alike, *spreads), scale, OF_PUBLISHED))
        few, seeds = [world for world in WORLDS[:OF_PUBLISHED] if not world.size], published_seeds(scale)
        found += [Drawn(replace(world, name=world.name + AS_FAR), scale, OF_PUBLISHED, seeds) for world in few]
    return found


def measure(pages: int, before: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """All worlds, or of the supposed ones what a record `before` has; then the worst of each scale anew.

    Raises ValueError where rows of claims are unknown, or the record is of another list of claims.
    """
    if missing := sorted({row for claim in TRAINED for row in claim.rows if row not in PRINTED}):
        raise ValueError(f"results/laptop/rows.json: expected all rows of claims, got none of {', '.join(missing)}.")
    if before is not None and (before["claims"], before["spread"]) != (catalogue_digest(), SPREAD):
        raise ValueError(f"{RECORD} is of other claims or another spread. Measure all: leave out --published.")
    measured = {scale: measured_spreads(scale) for scale in MEASURED}
    supposed, published = of_supposed(), of_published(measured)
    known: dict[tuple[str, str], Any] = {}  # of the worst anew: what no published run changes
    if before is None:
        lines = [_counted(of, pages) for of in supposed]
    else:
        names = {of.world.name for of in supposed}
        lines = [line for line in before["lines"] if line["world"] in names]
        pages = lines[0]["pages"]
        known = {(line["world"], line["scale"]): line for line in before["anew"] if line["world"] in names}
    lines += [_counted(of, pages) for of in published]
    for line in lines:
        if line["world"] == AS_MEASURED:
            spreads = measured[line["scale"]].pooled
            measurable = {claim.id for claim in TRAINED if any(one.name in spreads for one in claim.endpoints)}
            line["found"] = {id: share for id, share in line["found"].items() if id in measurable}
    anew = []
    for number, scale in enumerate(SCALES):
        worst = max((line for line in lines if _is_of(line, scale)), key=lambda line: float(line["wrong"]))
        name = (worst["world"], worst["scale"])
        of = next(one for one in (*supposed, *published) if (one.world.name, one.scale) == name)
        anew.append(known.get(name) or _counted(of._replace(seed=OF_ANEW + number), ANEW * pages))
    return {
        "claims": catalogue_digest(),
        "spread": SPREAD,
        "measured_spreads": {scale: spreads.pooled for scale, spreads in measured.items()},
        "own_spreads": {scale: spreads.own for scale, spreads in measured.items()},
        "published_seeds": {scale: published_seeds(scale) for scale in MEASURED},
        "lines": lines,
        "anew": anew,
        "stamp": provenance(),
    }


def _counted(of: Drawn, pages: int) -> dict[str, Any]:
    started = time.monotonic()
    line = count(of.world, of.scale, pages, of.seed, of.seeds)
    seconds = time.monotonic() - started
    print(f"{of.scale}, {of.world.name}: {line['wrong']:.3f} of {pages:,} ({seconds:.0f} s)", flush=True)
    return line


def _is_of(line: Mapping[str, Any], scale: str) -> bool:
    """Whether the pages are those of a scale, or of one of its folders: captions-bf16 is one of captions."""
    return bool(line["scale"].split("-")[0] == scale)


def told(record: Mapping[str, Any]) -> dict[str, Any]:
    """What a page of verdicts says of it: of each scale the worst world, and the share of wrong pages drawn anew."""
    worst = {
        scale: {"share": line["wrong"], "pages": line["pages"], "truth": line["world"]}
        for scale in SCALES
        for line in record["anew"]
        if _is_of(line, scale)
    }
    return {"claims": record["claims"], "worst": worst}


# The section of the page


def grid(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """A Markdown table."""
    return [f"| {' | '.join(row)} |" for row in (head, [":--", *["--:"] * (len(head) - 1)], *rows)]


def section(record: Mapping[str, Any]) -> str:
    """What stands between the marks of docs/claims.md."""
    lines = record["lines"]
    pages = lines[0]["pages"]
    again = record["anew"]
    looks = " and ".join(f"{look.seeds} seeds at {100 * look.alpha:g} %" for look in LOOKS)
    by = {(line["scale"], line["world"]): line for line in lines}
    worlds = [world.name for world in WORLDS]
    tables = sorted({table for line in lines for table in line["wrong_by_table"]})
    power, quarter = (
        [by[scale, world] for scale in SCALES] for world in ("effects as printed", "a quarter of the printed effects")
    )
    seeds = {scale: by[scale, AS_MEASURED] for scale in record["measured_spreads"]}
    ids = [claim.id for claim in TRAINED if any(claim.id in line["found"] for line in seeds.values())]
    return "\n".join(
        [
            f"{pages:,} pages a cell, base {BASE_SEEDS} seeds, the other rows {looks}; a page counts as wrong if a "
            f"verdict of either look is; with so many pages a share of 0.05 is known to within ± {_unsure(pages):.3f}. "
            "The scales of a line share their draws, so none confirms another. "
            f"Spread between seeds {record['spread']} BLEU and a thirtieth of it in log "
            f"PPL. List of claims {record['claims']}.",
            "",
            "### Pages with any wrong verdict (promised: at most 0.05)",
            "",
            *grid(
                ["truth", *SCALES],
                [[name, *(f"{by[scale, name]['wrong']:.3f}" for scale in SCALES)] for name in worlds],
            ),
            "",
            f"The largest of so many shares is large by chance as well. So the truth with the most wrong pages of each "
            f"scale was drawn anew, on {again[0]['pages']:,} other pages (± {_unsure(again[0]['pages']):.3f}): "
            f"{'; '.join(_anew(line) for line in again)}. Pages of verdicts quote these.",
            "",
            *(line for scale in SCALES for line in _by_table(by, scale, worlds, tables)),
            "### Pages with any wrong verdict, with as many seeds of each row as were published",
            "",
            *grid(
                ["truth", *seeds],
                [
                    [world.name, *(f"{by[scale, world.name + AS_FAR]['wrong']:.3f}" for scale in seeds)]
                    for world in WORLDS[:OF_PUBLISHED]
                    if not world.size
                ],
            ),
            "",
            f"Rows by seeds that count: {'; '.join(_seeds(*of) for of in record['published_seeds'].items())}.",
            "",
            "### How often a claim is found at five seeds",
            "",
            *grid(
                ["claim", *(f"printed, {line['scale']}" for line in power), *(f"a quarter, {of}" for of in SCALES)],
                [[id, *(_share(line["found"], id) for line in (*power, *quarter))] for id in quarter[-1]["found"]],
            ),
            "",
            "Claims about rows for which the paper prints no number are not in the list: there is no size to be found.",
            "",
            "### How often a claim is found where seeds differ as in the published runs",
            "",
            f"{'; '.join(_spread(scale, of) for scale, of in record['measured_spreads'].items())}, pooled as for a "
            "verdict. The base, and a row that pooling leaves out on any score, are drawn with their own: "
            f"{'; '.join(_own(scale, of) for scale, of in record['own_spreads'].items())}. Effects as printed, "
            "five seeds. A claim that is seldom found here is not worth five runs of its row.",
            "",
            *grid(["claim", *seeds], [[id, *(_share(line["found"], id) for line in seeds.values())] for id in ids]),
        ]
    )


def _unsure(pages: int) -> float:
    """The half-width of the 95 % interval of a share of 0.05."""
    return 1.96 * (0.05 * 0.95 / pages) ** 0.5


def _anew(line: Mapping[str, Any]) -> str:
    return f"`{line['scale']}` {line['wrong']:.3f} ({line['world']})"


def _by_table(by: Mapping[tuple[str, str], Any], scale: str, worlds: Sequence[str], tables: Sequence[str]) -> list[str]:
    lines = [[name, *(f"{by[scale, name]['wrong_by_table'][table]:.3f}" for table in tables)] for name in worlds]
    return [f"### Tables with a wrong verdict, scale `{scale}`", "", *grid(["truth", *tables], lines), ""]


def _seeds(scale: str, of: Mapping[str, int]) -> str:
    rows = Counter(of.values())
    return f"`{scale}`: {', '.join(f'{rows[n]} with {n}' for n in sorted(rows, reverse=True) if n)}"


def _spread(scale: str, of: Mapping[str, float]) -> str:
    return f"`{scale}`: {of['BLEU']:.2f} BLEU and {of['log PPL']:.4f} in log PPL"


def _own(scale: str, of: Mapping[str, Rows]) -> str:
    rows = {row.split("/", 1)[1]: (of["BLEU"][row], of["log PPL"][row]) for row in of["BLEU"]}
    return f"`{scale}`: {', '.join(f'{row} {bleu:.2f} and {ppl:.4f}' for row, (bleu, ppl) in rows.items())}"


def _share(found: Mapping[str, float], id: str) -> str:
    return f"{found[id]:.2f}" if id in found else ""


def rendered(text: str, record: Mapping[str, Any]) -> str:
    """The page with its section renewed."""
    begin, end = "<!-- made by benchmarks/verdicts.py -->\n", "\n<!-- end -->"
    if text.count(begin) != 1:
        raise ValueError(f"{PAGE}: expected one mark {begin.strip()}, got {text.count(begin)}. Restore the page.")
    pattern = f"(?<={re.escape(begin)}).*?(?={re.escape(end)})"
    return re.sub(pattern, lambda _: section(record), text, count=1, flags=re.DOTALL)


def main() -> None:
    """Measure, or only render the section or check it."""
    parser = argparse.ArgumentParser(
        allow_abbrev=False, description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pages", type=int, default=1_000, help="of each world and scale")
    parser.add_argument("--published", action="store_true", help="keep the worlds that no published run changes")
    parser.add_argument("--render", action="store_true", help="measure nothing")
    parser.add_argument("--check", action="store_true", help="write nothing")
    options = parser.parse_args()
    if not (options.render or options.check):
        before = json.loads(RECORD.read_bytes()) if options.published else None
        atomic.write_json(RECORD, measure(options.pages, before))
    record, text = json.loads(RECORD.read_bytes()), PAGE.read_bytes().decode()
    made, said = rendered(text, record), told(record)
    if options.check:
        why = f"{PAGE} or {TOLD} is not what {RECORD} makes. Run: python benchmarks/verdicts.py --render"
        sys.exit(0 if (made, said) == (text, json.loads(TOLD.read_bytes())) else why)
    atomic.write_text(PAGE, made)
    atomic.write_json(TOLD, said)


if __name__ == "__main__":
    main()
