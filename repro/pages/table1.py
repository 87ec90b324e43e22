"""Table 1 as text: the printed orders, our measurements beside them, and the verdicts. Paper: section 4."""

import math
from typing import Any

from repro.claims.catalogue import CLAIMS
from repro.claims.layers import ROWS, WINDOWS, Fit, Growth, fits, in_words, longest_path, order, steps_of, verdicts
from repro.pages.columns import comma_separated, marked
from repro.render.page import Code, Column, Formula, Heading, Listing, Page, Strong, Table, Text, blocks, made_from
from repro.results.measured import Measured

NAME = "table1"


def columns(measured: Measured) -> list[Column]:
    """The columns of the paper's table: what is printed, and beside it what was counted."""
    found = [fits(measured)[row.layer, "operations of the mixing"] for row in ROWS]
    return [
        Column("", "layer", [row.label for row in ROWS]),
        Column("complexity", "paper", [(Formula(row.complexity),) for row in ROWS]),
        *(
            Column("exponent counted", heading, [_exponent(fit, size) for fit in found])
            for size, heading in (("n", Formula("n")), ("d", Formula("d")), ("window", "k or r"))
        ),
        Column("sequential operations", "paper", [(Formula(row.steps),) for row in ROWS]),
        Column("sequential operations", "counted", [in_words(steps_of(measured, row.layer), None) for row in ROWS]),
        Column("longest path", "paper", [(Formula(row.path),) for row in ROWS]),
        Column(
            "longest path",
            "followed",
            [in_words(longest_path(measured, row.connects), WINDOWS.get(row.layer)) for row in ROWS],
        ),
    ]


ABOUT = marked(
    "**complexity**: operations of the products that bring positions together; each exponent is a least-squares fit "
    "over logarithms; those of the whole layer, of memory and of time, with 95 % t-intervals, are in `table1.csv`. "
    "**sequential operations**: matrix products of one layer that wait for one another. **longest path**: layers, or "
    "steps of a recurrence, until the gradient of every output reaches every input (in a recurrence, every earlier "
    "one). Shown is the law that explains most, of a constant, the logarithm and n, with its factor."
)


def page(measured: Measured) -> Page:
    """The page: printed and counted orders, verdicts, and how they were measured; all exponents are in its sheet."""
    says, said = {one.id: one.says for one in CLAIMS}, dict[str, list[str]]()
    judged = verdicts(measured).items()
    for claim, (word, _) in judged:
        said.setdefault(word, []).append(says[claim])
    notes = {one.id: f" {one.note}" for one in CLAIMS if one.note}
    return Page(
        made_from("the measurements beside it"),
        blocks(
            Heading("Table 1: layer types", 1),
            Listing(tuple((Strong(word), f": {'; '.join(claims)}.") for word, claims in said.items())),
            Table(tuple(columns(measured))),
            Text(ABOUT),
            Heading("Verdicts"),
            Listing(
                tuple(
                    (Strong(claim), ": ", Strong(word), f". {why[0].upper()}{why[1:]}.{notes.get(claim, '')}")
                    for claim, (word, why) in judged
                )
            ),
            Heading("How it was made"),
            *_made(measured),
        ),
    )


def _made(measured: Measured) -> tuple[Text, Listing]:
    stamp, grid = measured.stamp, measured.grid
    sizes = ", ".join(f"{name} {' '.join(map(str, grid[name]))}" for name in ("n", "d", "windows", "n_paths"))
    timed = ", ".join(f"{name} {' '.join(map(str, grid[name]))}" for name in ("n_timed", "d_timed", "n_scored", "d_k"))
    uncommitted = " The code was not committed, so its commit does not reproduce these numbers." * stamp["dirty"]
    return (
        Text((Code("python experiments/table1.py"), " measured, ", Code("docs/table1.md"), f" says how.{uncommitted}")),
        Listing(
            (
                f"counted at {sizes}",
                f"timed at {timed}: {grid['rounds']} interleaved rounds, threads: {stamp['n_threads']}, "
                f"clock: {measured.settings['clock'].replace('_', ' ')}",
                f"{stamp['device']}, Python {stamp['python']}, torch {stamp['versions']['torch']}",
                f"commit {(stamp['commit'] or 'none')[:12]}, {stamp['started']}",
            )
        ),
    )


def sheet(measured: Measured) -> str:
    """One line for each fitted exponent and for each law, as comma-separated values."""
    lines: list[dict[str, Any]] = []
    for (layer, quantity), fit in fits(measured).items():
        for size, exponent in fit.exponents.items():
            half_width = None if math.isnan(fit.half_widths[size]) else fit.half_widths[size]
            fitted = {"exponent": exponent, "half_width": half_width, "points": fit.points}
            lines.append({"layer": layer, "quantity": quantity, "size": size, **fitted})
    for layer in dict.fromkeys(line.layer for line in measured.steps):
        lines.append({"layer": layer, "quantity": "sequential operations"} | _law(steps_of(measured, layer)))
    for layer in dict.fromkeys(line.layer for line in measured.paths):
        found = _law(longest_path(measured, layer), WINDOWS.get(layer))
        lines.append({"layer": layer, "quantity": "longest path"} | found)
    return comma_separated(lines)


def _law(found: Growth, window: str | None = None) -> dict[str, Any]:
    return {"law": order(found.law, window), "factor": found.factor, "explained": found.explained}


def _exponent(fit: Fit | None, size: str) -> str:
    """An exponent as text: 2.00 where the points fit exactly, else 1.61 ± 0.12."""
    if fit is None or size not in fit.exponents:
        return ""
    exponent, half_width = f"{fit.exponents[size]:z.2f}", f"{fit.half_widths[size]:.2f}"
    return exponent if half_width in ("0.00", "nan") else f"{exponent} ± {half_width}"
