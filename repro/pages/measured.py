"""The pages of what is measured at no scale: the layers of Table 1, and published translations. Paper: section 4.

Table 1 has the printed orders, our measurements beside them, and the verdicts. The translations are of newstest2017, by
the ladder's systems at full size; others published them, and they are scored here.
"""

from collections.abc import Callable
from typing import Any

from repro.claims.catalogue import CLAIMS
from repro.claims.layers import ROWS, WINDOWS, Fit, fits, in_words, longest_path, order, steps_of, verdicts
from repro.pages.columns import comma_separated, marked, rules_between
from repro.render.page import Code, Column, Formula, Heading, Listing, Page, Strong, Table, Text, blocks, made_from
from repro.results import measured as kept
from repro.results.measured import QUARTERS, Measured, Outputs2017, ScoredOutput

# Table 1


def layers_columns(measured: Measured) -> list[Column]:
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


ABOUT_LAYERS = marked(
    "**complexity**: operations of the products that bring positions together; each exponent is a least-squares fit "
    "over logarithms; those of the whole layer, of memory and of time, with 95 % t-intervals, are in `table1.csv`. "
    "**sequential operations**: matrix products of one layer that wait for one another. **longest path**: layers, or "
    "steps of a recurrence, until the gradient of every output reaches every input (in a recurrence, every earlier "
    "one). Shown is the law that explains most, of a constant, the logarithm and n, with its factor."
)


def layers_page(measured: Measured) -> Page:
    """The page: printed and counted orders, verdicts, and how they were measured; all exponents are in its sheet."""
    claims, judged = {one.id: one for one in CLAIMS}, verdicts(measured)
    said: dict[str, list[str]] = {}
    told = []
    for id, (word, why) in judged.items():
        said.setdefault(word, []).append(claims[id].says)
        note = f" {claims[id].note}" if claims[id].note else ""
        told.append((Strong(id), ": ", Strong(word), f". {why[0].upper()}{why[1:]}.{note}"))
    return Page(
        made_from("the measurements beside it"),
        blocks(
            Heading("Table 1: layer types", 1),
            Listing(tuple((Strong(word), f": {'; '.join(of)}.") for word, of in said.items())),
            Table(tuple(layers_columns(measured))),
            Text(ABOUT_LAYERS),
            Heading("Verdicts"),
            Listing(tuple(told)),
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


def layers_sheet(measured: Measured) -> str:
    """One line for each fitted exponent and for each law, as comma-separated values."""
    lines: list[dict[str, Any]] = [
        {"layer": layer, "quantity": quantity, "size": size, "exponent": exponent}
        | {"half_width": fit.half_widths[size], "points": fit.points}
        for (layer, quantity), fit in fits(measured).items()
        for size, exponent in fit.exponents.items()
    ]
    waits = dict.fromkeys(line.layer for line in measured.steps)
    reach = dict.fromkeys(line.layer for line in measured.paths)
    for layer, quantity, found, window in (
        *((layer, "sequential operations", steps_of(measured, layer), None) for layer in waits),
        *((layer, "longest path", longest_path(measured, layer), WINDOWS.get(layer)) for layer in reach),
    ):
        law = {"law": order(found.law, window), "factor": found.factor, "explained": found.explained}
        lines.append({"layer": layer, "quantity": quantity} | law)
    return comma_separated(lines)


def _exponent(fit: Fit, size: str) -> str:
    """An exponent as text: 2.00 where the points fit exactly, else 1.61 ± 0.12; empty for a size that none has."""
    if size not in fit.exponents:
        return ""
    exponent, half_width = f"{fit.exponents[size]:z.2f}", f"{fit.half_widths[size]:.2f}"
    return exponent if half_width in ("0.00", "nan") else f"{exponent} ± {half_width}"


# Translations of newstest2017

ABOUT_OUTPUTS = (
    "Systems of several layers, trained on WMT 2017 by the authors of a toolkit or by Hieber et al. (2017): their "
    "translations are scored here, their training was not repeated. So they are not rows of the ladder; they show "
    "where its upper rungs are at full size."
)


def outputs_page(scored: Outputs2017) -> Page:
    """The page: one line per system, by kind, the best of each kind first."""
    systems = _ordered(scored)
    shown = [
        Column("", "system", [kept.KINDS[one.kind] for one in systems]),
        Column("", "toolkit", [one.toolkit for one in systems], is_words=True),
        Column("BLEU", "all", [f"{one.bleu:.1f}" for one in systems]),
        *(
            Column("BLEU by quarter of source length", name, [f"{one.quarters[i]:.1f}" for one in systems])
            for i, name in enumerate(("shortest", "second", "third", "longest"))
        ),
    ]
    return Page(
        made_from(kept.SCORES_2017),
        blocks(
            Heading("Published translations of newstest2017, English-German", 1),
            Listing(tuple(_said(systems))),
            Table(tuple(shown), rules_between([one.kind for one in systems])),
            Text(
                f"{scored.sentences:,} sentences, sorted by the words of their source, in {QUARTERS} equal parts; "
                "BLEU is sacreBLEU's, and differences are of scores that are not rounded."
            ),
            Heading("How it was made"),
            Text(ABOUT_OUTPUTS),
            Text((Code("python experiments/outputs_2017.py"), f" scored them with {scored.signature}.")),
        ),
    )


def outputs_sheet(scored: Outputs2017) -> str:
    """The same as comma-separated values."""
    return comma_separated(
        {"kind": one.kind, "toolkit": one.toolkit, "bleu": one.bleu}
        | {f"quarter {i + 1}": one.quarters[i] for i in range(QUARTERS)}
        for one in _ordered(scored)
    )


def _ordered(scored: Outputs2017) -> list[ScoredOutput]:
    kinds = [*kept.KINDS]
    return sorted(scored.systems, key=lambda one: (kinds.index(one.kind), -one.bleu))


def _said(systems: list[ScoredOutput]) -> list[str]:
    """The findings in sentences, from the numbers."""
    ours = [one.bleu for one in systems if one.kind == "transformer"]
    best = max(one.bleu for one in systems if one.kind in ("rnn", "cnn"))
    fall = [one.quarters[0] - one.quarters[-1] for one in systems]
    return [
        f"Against the best of the others the weakest Transformer has {min(ours) - best:+.1f} BLEU, the strongest "
        f"{max(ours) - best:+.1f}.",
        f"From the shortest to the longest quarter of sentences they lose {min(fall):.1f} to {max(fall):.1f} BLEU.",
    ]


# a kind of measurement -> the place of its page under results/, its title among the tables, and its makers
PAGES: dict[type, tuple[str, str, Callable[[Any], Page], Callable[[Any], str]]] = {
    Measured: (f"{kept.LAYER_COSTS_FOLDER}/table1", "Table 1: layers", layers_page, layers_sheet),
    Outputs2017: (f"{kept.FOLDER_2017}/outputs", "Published translations of newstest2017", outputs_page, outputs_sheet),
}
