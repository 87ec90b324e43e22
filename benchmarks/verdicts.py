"""How often does a page have a wrong verdict, and how often do its verdicts find a true effect?

Draws the runs of whole pages whose truth is known, judges them by the functions that judge the records, and counts
pages with any wrong verdict on any score, and claims that are found. Differences between seeds are mostly shared by all
rows, or independent in each. Writes `benchmarks/records/verdicts.json` and the section of docs/claims.md made of it.

Run:  python benchmarks/verdicts.py                    (ten minutes, one core)
      python benchmarks/verdicts.py --render           (only the section, from the record)
"""

import json
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from command import new_parser, save
from numpy.typing import NDArray
from performance import grid, renewed

from repro.claims.blocks import slope_weights
from repro.claims.catalogue import B0, CLAIMS, ENDPOINTS, Claim, Endpoint, catalogue_digest
from repro.claims.decisions import EXCLUDED, FIRST_SEED, OF_SIGN, SEEDS
from repro.claims.judge import Found, Suite, judge_suite, may_judge
from repro.results.frame import noted_rows
from repro.results.provenance import provenance
from repro.storage import atomic

ROOT = Path(__file__).parents[1]
RECORD = ROOT / "benchmarks" / "records" / "verdicts.json"
PAGE = ROOT / "docs" / "claims.md"
SCALE = "captions"  # the scale that judges most of what is judged below `paper`
SPREAD = 0.5  # BLEU between seeds: half of the spread of the published runs there
UNITS = {"nll": 1 / 60, "accuracy": 1 / 200}  # spread of other scores, in times that of BLEU
SHARED = 0.6  # share of the variance between seeds that rows have in common, as for BLEU at captions

NUMBERS = (":--", "--:", "--:")  # how the columns of its tables stand
LOST = 3  # rows of a page of which one run diverged

PRINTED = {f"{table}/{row}": one.paper for (table, row), one in noted_rows(ROOT / "results" / "laptop").items()}
TRAINED = [claim for claim in CLAIMS if claim.is_trained and may_judge(SCALE, claim)]
ROWS = sorted({row for claim in TRAINED for row in claim.rows})
N2, SMOOTH_0, DROP_2, BIG = "table3_C/N=2", "table3_D/eps_ls=0.0", "table3_D/P_drop=0.2", "table3_big/big"

Random = np.random.Generator
Numbers = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class World:
    """What is true of a page: effects as a multiple of the printed ones, and how its numbers differ from them."""

    name: str
    size: float = 0.0
    spreads: Callable[[Random], Mapping[str, float]] = lambda _: {}  # rows whose noise is not 1 times the usual
    noise: Callable[[Random, int], Numbers] = lambda random, n: random.standard_normal(n)
    bad_seed: float = 0.0  # one seed is worse in every row by this many spreads, times 0.5 to 1.5
    halves: bool = False  # whether every second row has other seeds, shared by those rows
    shift: float = 0.0  # spreads by which whole rows differ: from commit or processor


def noisy(times: float, *rows: str) -> Callable[[Random], Mapping[str, float]]:
    """Some rows noisier than the others."""
    return lambda _: dict.fromkeys(rows, times)


def lognormal(random: Random) -> Mapping[str, float]:
    """Every row has a spread of its own: two thirds of them from 0.6 to 1.65."""
    return {row: float(np.exp(0.5 * random.standard_normal())) for row in ROWS}


def heavy(random: Random, n: int) -> Numbers:
    """Student's t with three degrees of freedom, of variance 1."""
    return random.standard_t(3, n) / 3**0.5


WORLDS = (
    World(name="all rows equal"),
    World(name="base three times as noisy", spreads=noisy(3, B0)),
    World(name="N=2 three times as noisy", spreads=noisy(3, N2)),
    World(name="eps_ls=0.0, P_drop=0.2 and big four times as noisy", spreads=noisy(4, SMOOTH_0, DROP_2, BIG)),
    World(name="log-normal spreads", spreads=lognormal),
    World(name="one seed bad in every row", bad_seed=5.0),
    World(name="heavy tails", noise=heavy),
    World(name="a quarter of the printed effects", size=0.25),
    World(name="effects as printed", size=1.0),
    World(name="effects as printed, the other way round", size=-1.0),
)
BEYOND = (
    World(name="every second row with other seeds", halves=True),
    World(name="whole rows shifted by half a spread", shift=0.5),
)


def truth(world: World, endpoint: Endpoint, row: str) -> float:
    """The true score of a row; that of the base if the paper prints none."""
    base, own = (endpoint.printed(PRINTED[one]) or 0.0 for one in (B0, row))
    return base + world.size * (own - base) if own else base


def drawn(world: World, random: Random, *, shared: bool) -> dict[str, dict[str, dict[int, float]]]:
    """Draw the runs of a page: a seed or run that is good on one score is mostly good on the others."""
    spreads = dict.fromkeys(ROWS, 1.0) | dict(world.spreads(random))
    bad, luck = int(random.integers(SEEDS)), {row: world.noise(random, SEEDS) for row in ROWS}
    of_seeds = random.standard_normal((len(ROWS), SEEDS))
    share = {row: i % 2 if world.halves else 0 if shared else i for i, row in enumerate(ROWS)}  # its set of seeds
    shifts = {row: world.shift * random.standard_normal() for row in ROWS}
    lost = dict(zip(random.choice(ROWS, LOST, replace=False), random.integers(SEEDS, size=LOST), strict=True))
    runs: dict[str, dict[str, dict[int, float]]] = {}
    for name, endpoint in ENDPOINTS.items():
        unit = SPREAD * UNITS.get(endpoint.score, 1.0)
        block = SHARED**0.5 * (0.9 * of_seeds + 0.19**0.5 * random.standard_normal((len(ROWS), SEEDS)))
        runs[name] = {}
        for row in ROWS:
            own = spreads[row] * (1 - SHARED) ** 0.5 * (0.8 * luck[row] + 0.6 * world.noise(random, SEEDS))
            own[bad] -= world.bad_seed * random.uniform(0.5, 1.5)
            values = truth(world, endpoint, row) + unit * (block[share[row]] + own + shifts[row])
            runs[name][row] = {FIRST_SEED + i: float(value) for i, value in enumerate(values) if i != lost.get(row)}
    return runs


def is_wrong(claim: Claim, found: Found, world: World) -> bool:
    """Whether a verdict on one score is false."""
    effect, outcome = effect_of(claim, found.endpoint, world), found.verdict.outcome
    if outcome == EXCLUDED:
        return found.printed is not None and effect >= found.printed - 1e-9
    return (outcome == OF_SIGN.yes and effect <= 1e-9) or (outcome == OF_SIGN.no and effect >= -1e-9)


def effect_of(claim: Claim, endpoint: Endpoint, world: World) -> float:
    """The true difference, slope or lead that a claim is about: positive if the claim is true."""
    values = {row: truth(world, endpoint, row) for row in claim.rows}
    if claim.kind == "trend":
        return sum(w * values[row] for w, row in zip(slope_weights(claim.sizes), claim.rows, strict=True))
    if claim.kind == "best of family":
        return max(values[row] for row in claim.named) - max(values[row] for row in values if row not in claim.named)
    better, worse = claim.rows
    return values[better] - values[worse]


def count(world: World, pages: int, seed: int, *, shared: bool) -> dict[str, Any]:
    """The share of `pages` with a wrong verdict, and how often each claim came out as printed."""
    random, wrong, found = np.random.default_rng(seed), 0, Counter[str]()
    started = time.monotonic()
    for _ in range(pages):
        page = judge_suite(Suite(scale=SCALE, runs=drawn(world, random, shared=shared), printed=PRINTED), TRAINED)
        wrong += any(is_wrong(one.claim, of, world) for one in page for of in one.found)
        found.update(one.claim.id for one in page if one.verdict == OF_SIGN.yes)
    print(f"{world.name}, {shared=}: {wrong / pages:.3f} ({time.monotonic() - started:.0f} s)", flush=True)
    shares = {claim.id: found[claim.id] / pages for claim in TRAINED}
    return {"world": world.name, "shared": shared, "wrong": wrong / pages, "found": shares}


def measure(pages: int) -> dict[str, Any]:
    """Measure every world, with seeds that rows share and with seeds that they do not."""
    if missing := [row for row in ROWS if row not in PRINTED]:
        raise ValueError(f"results/laptop/rows.json: expected all rows of claims, got none of {', '.join(missing)}.")
    worlds = enumerate((*WORLDS, *BEYOND))
    lines = [count(world, pages, i, shared=shared) for i, world in worlds for shared in (True, False)]
    return {"claims": catalogue_digest(), "pages": pages, "spread": SPREAD, "lines": lines}


# The section of the page


def section(record: Mapping[str, Any]) -> list[str]:
    """The lines between the marks of docs/claims.md."""
    by = {(line["world"], line["shared"]): line for line in record["lines"]}
    unsure = 1.96 * (0.05 * 0.95 / record["pages"]) ** 0.5
    promised, beyond = (
        [[one.name, *(f"{by[one.name, of]['wrong']:.3f}" for of in (True, False))] for one in worlds]
        for worlds in (WORLDS, BEYOND)
    )
    head = ["truth", "seeds shared", "seeds not shared"]
    as_printed, quarter = (
        by[name, True]["found"] for name in ("effects as printed", "a quarter of the printed effects")
    )
    numbered = {  # of which some score is printed for all rows
        claim.id
        for claim in TRAINED
        if any(all(one.printed(PRINTED[row]) is not None for row in claim.rows) for one in claim.endpoints)
    }
    found = [[id, f"{as_printed[id]:.2f}", f"{quarter[id]:.2f}"] for id in as_printed if id in numbered]
    return [
        f"{record['pages']:,} pages of `{SCALE}` a cell, all its rows with {SEEDS} seeds, spread between seeds "
        f"{record['spread']} BLEU, of which seeds that are shared have {100 * SHARED:.0f} % of the variance in "
        "common; of three rows one run diverged. A page is wrong if a verdict on any score is. With so many pages "
        f"a share of 0.05 is known to within ± {unsure:.3f}. List of claims {record['claims']}.",
        "",
        *grid(head, promised, NUMBERS),
        "",
        "Beyond the model: rows that share seeds with some rows alone; and, which no analysis of these numbers "
        "holds, a shift of a whole row by its commit or its processor, which looks like an effect. So the rows of "
        "one table are run from one commit on one kind of processor, or seeds are spread over both alike.",
        "",
        *grid(head, beyond, NUMBERS),
        "",
        "How often a claim comes out as printed, where seeds are shared; those without printed numbers are left out:",
        "",
        *grid(["claim", "effects as printed", "a quarter of them"], found, NUMBERS),
    ]


def rendered(text: str, record: Mapping[str, Any]) -> str:
    """The page with its section renewed."""
    return renewed(PAGE, text, "verdicts.py", section(record))


def main() -> None:
    """Measure, or only render the section."""
    parser = new_parser(__doc__)
    parser.add_argument("--pages", type=int, default=1_000, help="of each world")
    parser.set_defaults(json=RECORD)
    parser.add_argument("--render", action="store_true", help="measure nothing")
    options = parser.parse_args()
    if not options.render:
        save(options.json, measure(options.pages), provenance())
    atomic.write_text(PAGE, rendered(PAGE.read_bytes().decode(), json.loads(options.json.read_bytes())))


if __name__ == "__main__":
    main()
