"""How often are verdicts wrong, and how often do they find what is there?

Draws runs whose truth is known and counts, in the functions that judge the records: errors of a single test, of a
family under Holm's procedure, of the pooled variance where rows are not equally noisy, and power.

Run:  python benchmarks/verdicts.py           (about a minute, one core)
"""

import argparse
import math
from collections.abc import Iterable, Sequence

import numpy as np

from repro.claims.decisions import Best, Direction, Equivalence, Magnitude, judged
from repro.claims.statistics import ALPHA, Contrast, pool
from repro.claims.statistics import difference as difference_of

SPREADS = (0.1, 0.15, 0.2, 0.3)  # BLEU, between seeds
HOLM = ALPHA / 12  # the hardest level in a family of twelve


def drawn(truth: float, s: float, draws: int, n: int = 5, rows: int = 30) -> Contrast:
    """`draws` differences of two rows, their variance pooled over `rows` rows."""
    random = np.random.default_rng(1)
    df = rows * (n - 1)
    found = s * np.sqrt(random.chisquare(df, draws) / df)
    values = truth + s * math.sqrt(2 / n) * random.standard_normal(draws)
    return Contrast(value=values, se=found * math.sqrt(2 / n), df=df, single=found * math.sqrt(2))


def share(p_values: object, level: float = ALPHA) -> str:
    """How often the p-value is at most the level."""
    return f"{np.mean(np.asarray(p_values) <= level):.3f}"


def show(title: str, head: Sequence[str], lines: Iterable[Sequence[str]]) -> None:
    """A table of Markdown."""
    print(f"\n### {title}\n\n| {' | '.join(head)} |\n| :-- |{' --: |' * (len(head) - 1)}")
    for line in lines:
        print(f"| {' | '.join(line)} |")


def single_tests(draws: int) -> None:
    """Errors of one test, and power."""
    head = ["true difference", *(f"s = {s}" for s in SPREADS)]
    show(
        "Wrong verdicts of one test at 0.05",
        head,
        [
            ["0: better", *(share(Direction(contrast=drawn(0, s, draws), reported=0.9).p_reproduced) for s in SPREADS)],
            *(
                [
                    f"{size}, as printed: contradicted",
                    *(share(Direction(contrast=drawn(size, s, draws), reported=size).p_contradicted) for s in SPREADS),
                ]
                for size in (0.9, 0.3)
            ),
            ["0.3, the margin: the same", *(share(equal(0.3, s, draws).p_reproduced) for s in SPREADS)],
            ["0.3, the margin: not the same", *(share(equal(0.3, s, draws).p_contradicted) for s in SPREADS)],
        ],
    )
    show(
        "Power of a direction, n = 5, level 0.05 / 12",
        head,
        [
            [str(d), *(share(Direction(contrast=drawn(d, s, draws), reported=0.9).p_reproduced, HOLM) for s in SPREADS)]
            for d in (0.9, 0.7, 0.5, 0.4, 0.3)
        ],
    )
    show(
        "Power of an equivalence, n = 5, level 0.05",
        head,
        [
            [f"{d}, margin {margin}", *(share(equal(d, s, draws, margin).p_reproduced) for s in SPREADS)]
            for d, margin in ((0.0, 0.3), (0.1, 0.3), (0.0, 0.5))
        ],
    )
    halves = [Magnitude(contrast=typical(s), reported=0.9).contrast.prediction() for s in SPREADS]
    show("Half-width of the interval of a magnitude, n = 5", head, [["", *(f"{half:.2f}" for half in halves)]])
    found = [f"{typical(s).detectable(ALPHA):.2f} / {typical(s).detectable(HOLM):.2f}" for s in SPREADS]
    fewer = [f"{typical(s, 3).detectable(ALPHA):.2f} / {typical(s, 3).detectable(HOLM):.2f}" for s in SPREADS]
    show("Found with 80 %, level 0.05 / (0.05 / 12)", ["seeds", *head[1:]], [["3", *fewer], ["5", *found]])


def equal(truth: float, s: float, draws: int, margin: float = 0.3) -> Equivalence:
    """Equivalence of rows that truly differ by `truth`."""
    return Equivalence(contrast=drawn(truth, s, draws), margin=margin)


def typical(s: float, n: int = 5) -> Contrast:
    """A difference whose spread was found to be what it is."""
    return Contrast(value=0.0, se=s * math.sqrt(2 / n), df=30 * (n - 1), single=s * math.sqrt(2))


def unequal_rows(suites: int) -> None:
    """Pooling where rows are not equally noisy: each row is compared with the first, of which nothing is better."""
    lines = []
    kinds = {
        "all alike": lambda random: np.full(20, 0.2),
        "sd x1.65 either way": lambda random: 0.2 * 1.65 ** random.uniform(-1, 1, 20),
        "one row three times as noisy": lambda random: np.where(np.arange(20) == 1, 0.6, 0.2),
    }
    for n in (3, 5):
        for name, spreads in kinds.items():
            random = np.random.default_rng(2)
            wrong, noisy, taken = [], [], 0
            for _ in range(suites):
                values = 25 + spreads(random)[:, None] * random.standard_normal((20, n))
                rows = {str(i): row.tolist() for i, row in enumerate(values)}
                noise = pool(rows)
                taken += bool(noise.taken_out)
                p = [difference_of(rows, "0", str(i), noise).p_above(0) <= ALPHA for i in range(1, 20)]
                wrong.append(np.mean(p))
                noisy.append(p[0])
            shares = (np.mean(wrong), np.mean(noisy), taken / suites)
            lines.append([f"n = {n}, {name}", *(f"{x:.3f}" for x in shares)])
    show(
        f"Wrong at 0.05, 20 rows, pooled after the check ({suites:,} suites)",
        ["spread between seeds", "all rows", "row 1", "some row taken out"],
        lines,
    )


def families(suites: int) -> None:
    """Any wrong verdict among the claims of a table; a best row that is lost."""
    random = np.random.default_rng(3)
    truths = np.array([0.0, 0.0, 0.0, 0.0, 0.3, 0.3, 0.3, 0.3])  # against the base; the paper prints 0.3 for each
    found, denied, share_wrong, lost = 0, 0, 0, 0
    for _ in range(suites):
        values = 25 - np.append(0, truths)[:, None] + 0.2 * random.standard_normal((9, 5))
        rows = {str(i): row.tolist() for i, row in enumerate(values)}
        noise = pool(rows)
        tests = [Direction(contrast=difference_of(rows, "0", str(i), noise), reported=0.3) for i in range(1, 9)]
        outcomes = [result[0].outcome for result in judged(tests) if result]
        judged_so = list(zip(outcomes, truths, strict=True))
        wrongly = [outcome == "reproduced" and truth <= 0 for outcome, truth in judged_so]
        denials = [outcome == "contradicted" and truth >= 0.3 for outcome, truth in judged_so]
        found += any(wrongly)
        denied += any(denials)
        share_wrong += sum(wrongly) + sum(denials)
        alike = {name: rows[name] for name in "01234"}  # the first of five that are equally good
        lost += "0" not in Best(rows=alike, named=["0"], noise=noise).possible()
    show(
        f"Families ({suites:,} suites)",
        ["", "share"],
        [
            ["any of 8 claims wrongly reproduced, Holm at 0.05", f"{found / suites:.3f}"],
            ["any of them wrongly contradicted", f"{denied / suites:.3f}"],
            ["wrong verdicts among all", f"{share_wrong / suites / len(truths):.4f}"],
            ["a best row of five equal ones is lost, at 0.05", f"{lost / suites:.3f}"],
        ],
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(allow_abbrev=False, description=__doc__)
    parser.add_argument("--draws", type=int, default=20_000, help="of each single test")
    parser.add_argument("--suites", type=int, default=2_000, help="of each family; they are judged one by one")
    options = parser.parse_args()
    single_tests(options.draws)
    unequal_rows(options.suites)
    families(options.suites)
