"""Four formulas of the paper with a slider each: learning rate, position codes, scaled scores, Table 1.

The browser computes what it shows (`assets/explorables.js`); the values offered as files are computed here, and a test
compares the two. Paper: sections 3.2.1, 3.5, 4 and 5.3.
"""

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
from markupsafe import Markup

from repro.claims.layers import ROWS, WINDOWS
from repro.figures.mechanism import encodings, jacobian_norm
from repro.model.config import BASE as PAPER
from repro.pages.build import measured_layers
from repro.pages.columns import comma_separated
from repro.pages.scale_data import ScaleData
from repro.results.layer_costs import Measured
from repro.results.record import BASE
from repro.training.schedule import rate
from repro.web.section import Section

# The formulas as MathML, which browsers typeset themselves. A formula is a string of words separated by blanks, each
# a number, a name or else an operator; or the result of a function below

NUMBER, NAME = re.compile(r"[\d.]+"), re.compile(r"[A-Za-z]+")


def _mrow(*parts: str | Markup) -> Markup:
    """Parts beside each other, as one element."""
    return Markup("<mrow>{}</mrow>").format(Markup().join(of for part in parts for of in _elements(part)))


def _elements(part: str | Markup) -> Iterator[Markup]:
    if isinstance(part, Markup):
        yield part
        return
    for word in part.split():
        kind = "mn" if NUMBER.fullmatch(word) else "mi" if NAME.fullmatch(word) else "mo"
        yield Markup("<{0}>{1}</{0}>").format(kind, word)


def _of(kind: str, *parts: str | Markup) -> Markup:
    """An element whose children are these parts."""
    return Markup("<{0}>{1}</{0}>").format(kind, Markup().join(map(_mrow, parts)))


def _power(base: str | Markup, exponent: str | Markup) -> Markup:
    return _of("msup", base, exponent)


def _fraction(above: str | Markup, below: str | Markup) -> Markup:
    return _of("mfrac", above, below)


def _math(*parts: str | Markup) -> Markup:
    return Markup('<math displaystyle="true">{}</math>').format(_mrow(*parts))


def _code(dimension: str, function: str) -> Markup:
    angle = _fraction("pos", _power("10000", _mrow("2 i /", D_MODEL)))
    return _math(_of("msub", "PE", f"( pos , {dimension} )"), f"= {function}", _mrow("(", angle, ")"))


D_MODEL = _of("msub", "d", "model")
OF_FORMULA = {  # name of the explorable -> its formula
    "rate": _math(
        "rate =", _of("msubsup", "d", "model", "− 0.5"), "· min", _mrow("(", _power("step", "− 0.5"), ", step ·"),
        _mrow(_power("warmup", "− 1.5"), ")"),
    ),
    "codes": _code("2 i", "sin") + _code("2 i + 1", "cos"),
    "softmax": _math("softmax", _mrow("(", _fraction("q · k", _of("msqrt", _of("msub", "d", "k"))), ")")),
    "layers": _math(
        *("O (", _power("n", "2"), "d ) , O ( n", _power("d", "2"), ") , O ( k n", _power("d", "2"), ") , O ( r n d )")
    ),
}  # fmt: skip


KEY, SCRIPT = "explorables", "explorables.js"
N_KEYS, LENGTH = 16, 100  # keys of one query; positions
RATES_AT = (1, 100, 1_000, 4_000, 10_000, 100_000)  # optimizer steps in the sheet
PAIRS = (0, 16, 64, 128)  # pairs of dimensions in the sheet
WIDTHS = tuple(2**power for power in range(11))  # d_k
EXPLAINED = (
    ("rate", "The learning rate", "5.3"),
    ("codes", "Position codes", "3.5"),
    ("softmax", "Scaled scores", "3.2.1"),
    ("layers", "Table 1: operations of a layer", "4"),
)


def explorables_section(data: ScaleData) -> Section:
    """The formulas at the paper's sizes; the rate of this scale too. Table 1 only if its layers were measured."""
    measured = measured_layers(data.result_set.folder.parent)
    own = next((one.hyper for one in data.result_set.everything if one.table == BASE), None)
    shown = [one for one in EXPLAINED if measured or one[0] != "layers"]
    body = Markup("<p>Move a slider: your browser computes what the formula gives, at the paper's sizes.</p>")
    body += Markup('<div class="beside">{}</div>').format(
        Markup().join(
            Markup(
                '<figure class="explorable" id="explore-{}"><h3>{} <span class="small">Section {}</span></h3>'
                '<p class="formula">{}</p></figure>'
            ).format(name, title, section, OF_FORMULA[name])
            for name, title, section in shown
        )
    )
    values = {
        "paper": {"d_model": PAPER.d_model, "warmup": PAPER.warmup, "d_k": PAPER.d_k},
        "own": {"scale": data.runs.scale, "d_model": own["d_model"], "warmup": own["warmup"]} if own else None,
        "scores": scores().round(6).tolist(),
        "length": LENGTH,
        "laws": [*laws(measured)] if measured else [],
        "counted": [[one.layer, one.n, one.d, one.window, one.mixing_flops] for one in measured.counts]
        if measured
        else [],
    }
    return Section(key=KEY, title="The formulas", body=body, data=values, script=SCRIPT, csv=sheets(measured))


def scores() -> np.ndarray[Any, np.dtype[np.float64]]:
    """q . k of one query and its keys at d_k = 1: independent N(0, 1), the same in each report; [keys]."""
    return np.random.default_rng(17).standard_normal(N_KEYS)


def laws(measured: Measured) -> Iterator[dict[str, Any]]:
    """Each layer of Table 1 with the powers that the paper prints and the factor that we counted."""
    for row in ROWS:
        counted = next(count for count in measured.counts if count.layer == row.layer)
        sizes = {"n": counted.n, "d": counted.d, "window": counted.window or 1}
        whole = float(np.prod([sizes[name] ** power for name, power in row.exponents.items()]))
        yield {
            "layer": row.layer,
            "label": row.label,
            "window": WINDOWS.get(row.layer),
            "powers": row.exponents,
            "factor": counted.mixing_flops / whole,
        }


def sheets(measured: Measured | None) -> dict[str, str]:
    """The values of the formulas at some sizes, by file name."""
    paper = PAPER
    codes = encodings(LENGTH, paper.d_model)
    z = scores().round(6)
    found = {
        "rate.csv": [{"step": step, "rate": rate(step, paper.d_model, paper.warmup)} for step in RATES_AT],
        "codes.csv": [
            {
                "position": position,
                "i": i,
                "sin": float(codes[position, 2 * i]),
                "cos": float(codes[position, 2 * i + 1]),
            }
            for i in PAIRS
            for position in range(0, LENGTH, 11)
        ],
        "softmax.csv": [
            {
                "d_k": d_k,
                "jacobian": float(jacobian_norm(z * d_k**0.5)),
                "jacobian_scaled": float(jacobian_norm(z)),
            }
            for d_k in WIDTHS
        ],
    }
    if measured:
        found["layers.csv"] = [
            {"layer": one.layer, "n": one.n, "d": one.d, "window": one.window, "operations": one.mixing_flops}
            for one in measured.counts
            if one.layer in {row.layer for row in ROWS}
        ]
    return {name: comma_separated(lines) for name, lines in found.items()}
