"""Table 1 as text: what the paper prints, beside it what was measured, and the verdicts. Paper: section 4."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from repro.claims.growth import LABELS, QUANTITIES, Fit, Growth, fits, order, path_of, steps_of
from repro.claims.layers import CLAIMS, ROWS, WINDOWS, Verdict, in_words, verdicts
from repro.render.escape import markdown_text
from repro.render.grid import Column, markdown_grid, sheet_number, tabular, tex_text
from repro.render.origin import COMMAND, made_from
from repro.results.layer_costs import FILE, FOLDER, Measured, load
from repro.storage.atomic import write_text


def build(results: Path) -> dict[Path, str]:
    """table1.md, .tex and .csv from the measurements in results/table1; nothing where there are none."""
    folder = results / FOLDER
    if not (folder / FILE).exists():
        return {}
    measured = load(folder / FILE)
    return {
        folder / "table1.md": markdown(measured),
        folder / "table1.tex": latex(measured),
        folder / "table1.csv": csv(measured),
    }


def judged(results: Path) -> dict[str, Verdict]:
    """The verdicts on the paper's claims about layers, by claim; none where nothing was measured."""
    file = results / FOLDER / FILE
    return verdicts(load(file)) if file.exists() else {}


def columns(measured: Measured) -> list[Column]:
    """Like the paper's table: what is printed, and beside it what was counted."""
    found = [fits(measured)[row.layer, "operations of the mixing"] for row in ROWS]
    return [
        Column("", "layer", [row.label for row in ROWS]),
        Column("complexity", "paper", [row.complexity for row in ROWS]),
        *(
            Column("exponent counted", heading, [_exponent(fit, size) for fit in found])
            for size, heading in (("n", "n"), ("d", "d"), ("window", "k or r"))
        ),
        Column("sequential operations", "paper", [row.steps for row in ROWS]),
        Column("sequential operations", "counted", [in_words(steps_of(measured, row.layer), None) for row in ROWS]),
        Column("longest path", "paper", [row.path for row in ROWS]),
        Column(
            "longest path",
            "followed",
            [in_words(path_of(measured, row.connects), WINDOWS.get(row.layer)) for row in ROWS],
        ),
    ]


def cost_columns(measured: Measured) -> list[Column]:
    """The exponents of everything counted and timed, for every layer."""
    found = fits(measured)
    layers = [layer for layer in LABELS if any(key[0] == layer for key in found)]
    sizes = {"n": "n", "d": "d", "window": "k or r"}
    shown = [Column("", "layer", [LABELS[layer] for layer in layers])]
    for quantity in (*QUANTITIES, "time"):
        for size, heading in sizes.items():
            texts = [_exponent(found.get((layer, quantity)), size) for layer in layers]
            shown += [Column(quantity, heading, texts)] if any(texts) else []
    return shown


ABOUT = """\
**complexity**: operations of the products that bring positions together, as O(n^2 d) counts them; each exponent is
of least squares over logarithms, ± the half-width of its 95 % t-interval, which is 0 where the points lie on the law.
**sequential operations**: matrix products of one layer that wait for one another. **longest path**: layers, for a
recurrence steps, until the gradient of every output arrives at every input (of a recurrence: every earlier one).
Of a constant, the logarithm and n the law that explains most is shown, with its factor."""
ABOUT_COSTS = """\
**operations of the layer** hold the projections of each position as well, 4 n d^2 multiplications in self-attention,
so their exponents lie between the two. **memory** is what the layer keeps for its backward pass. **time** is that of
forward and backward, one sequence; what a call costs at any size flattens its exponents."""


def markdown(measured: Measured) -> str:
    """The page for a code host."""
    stamp, grid = measured.stamp, measured.grid
    sizes = ", ".join(f"{name} {' '.join(map(str, grid[name]))}" for name in ("n", "d", "windows", "n_paths"))
    timed = ", ".join(f"{name} {' '.join(map(str, grid[name]))}" for name in ("n_timed", "d_timed", "n_scored", "d_k"))
    layer, *costs = cost_columns(measured)  # in two grids, because a code host has no room for all in one
    operations = [column for column in costs if column.group.startswith("operations")]
    parts = [
        f"<!-- {made_from('the measurements beside it')} -->",
        "# Table 1: layer types",
        markdown_grid(columns(measured)),
        ABOUT,
        "## Verdicts",
        "\n".join(
            f"- **{claim}** {markdown_text(CLAIMS[claim])}: **{word}**. {markdown_text(_sentence(evidence))}"
            for claim, (word, evidence) in verdicts(measured).items()
        ),
        "## Exponents of all costs",
        markdown_grid([layer, *operations]),
        markdown_grid([layer, *(column for column in costs if column not in operations)]),
        ABOUT_COSTS,
        "## How it was made",
        "`python experiments/table1.py` measured, `docs/table1.md` says how. " + _uncommitted(stamp),
        f"- counted at {sizes}\n"
        f"- timed at {timed}: {grid['rounds']} interleaved rounds, threads: {stamp['n_threads']}, "
        f"clock: {measured.settings['clock'].replace('_', ' ')}\n"
        f"- {stamp['device']}, Python {stamp['python']}, torch {stamp['versions']['torch']}\n"
        f"- commit {(stamp['commit'] or 'none')[:12]}, {stamp['started']}",
    ]
    return "\n\n".join(part.strip() for part in parts) + "\n"


def _sentence(evidence: str) -> str:
    return f"{evidence[0].upper()}{evidence[1:]}."


def _uncommitted(stamp: Mapping[str, Any]) -> str:
    return "The code was not committed, so its commit does not give these numbers back." if stamp["dirty"] else ""


def latex(measured: Measured) -> str:
    r"""A tabular to \input, ruled by booktabs where the document loads it."""
    text = "\n".join(tabular(columns(measured), ()))
    for row in ROWS:
        for formula in (row.complexity, row.steps, row.path):
            text = text.replace(tex_text(formula), f"${formula}$".replace("log", r"\log"))
    return "\n".join(
        [
            f"% Made from measured.json by {COMMAND}; do not edit.",
            *(rf"\providecommand{{\{rule}}}{{\hline}}" for rule in ("toprule", "midrule", "bottomrule")),
            r"\ifx\cmidrule\undefined\def\cmidrule(#1)#2{\cline{#2}}\fi",
            text,
            "",
        ]
    )


def csv(measured: Measured) -> str:
    """One line for each fitted exponent and for each law, in 12 digits."""
    lines = ["layer,quantity,size,exponent,half_width,points,law,factor,explained"]
    for (layer, quantity), fit in fits(measured).items():
        for size, exponent in fit.exponents.items():
            half_width = fit.half_widths[size]
            shown = "" if math.isnan(half_width) else sheet_number(half_width)
            lines.append(f"{layer},{quantity},{size},{sheet_number(exponent)},{shown},{fit.points},,,")
    for layer in dict.fromkeys(line.layer for line in measured.steps):
        lines.append(f"{layer},sequential operations,{_csv(steps_of(measured, layer), None)}")
    for layer in dict.fromkeys(line.layer for line in measured.paths):
        lines.append(f"{layer},longest path,{_csv(path_of(measured, layer), WINDOWS.get(layer))}")
    return "\n".join(lines) + "\n"


def _csv(found: Growth, window: str | None) -> str:
    return f",,,,{order(found.law, window)},{sheet_number(found.factor)},{sheet_number(found.explained)}"


def _exponent(fit: Fit | None, size: str) -> str:
    """2.00 where the points leave no doubt, 1.61 ± 0.12 where they do."""
    if fit is None or size not in fit.exponents:
        return ""
    exponent, half_width = f"{fit.exponents[size]:z.2f}", f"{fit.half_widths[size]:.2f}"
    return exponent if half_width in ("0.00", "nan") else f"{exponent} ± {half_width}"


def write(results: Path) -> list[Path]:
    """Make the texts from results/table1/measured.json; returns their files."""
    texts = build(results)
    for file, text in texts.items():
        write_text(file, text)
    return list(texts)
