"""The paper's formulas as MathML, which browsers typeset themselves. Paper: sections 3.2.1, 3.5, 4 and 5.3.

Parts of a formula are words apart: a number, a name, anything else is an operator; or what a function here made.
"""

import re
from collections.abc import Iterator

from markupsafe import Markup

NUMBER, NAME = re.compile(r"[\d.]+"), re.compile(r"[A-Za-z]+")


def _row(*parts: str | Markup) -> Markup:
    """Parts beside each other, as one."""
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
    return Markup("<{0}>{1}</{0}>").format(kind, Markup().join(map(_row, parts)))


def _power(base: str | Markup, exponent: str | Markup) -> Markup:
    return _of("msup", base, exponent)


def _fraction(above: str | Markup, below: str | Markup) -> Markup:
    return _of("mfrac", above, below)


def _math(*parts: str | Markup) -> Markup:
    return Markup('<math displaystyle="true">{}</math>').format(_row(*parts))


def _code(dimension: str, function: str) -> Markup:
    angle = _fraction("pos", _power("10000", _row("2 i /", D_MODEL)))
    return _math(_of("msub", "PE", f"( pos , {dimension} )"), f"= {function}", _row("(", angle, ")"))


D_MODEL = _of("msub", "d", "model")
OF_FORMULA = {  # by what explores it
    "rate": _math(
        "rate =", _of("msubsup", "d", "model", "− 0.5"), "· min", _row("(", _power("step", "− 0.5"), ", step ·"),
        _row(_power("warmup", "− 1.5"), ")"),
    ),
    "codes": _code("2 i", "sin") + _code("2 i + 1", "cos"),
    "softmax": _math("softmax", _row("(", _fraction("q · k", _of("msqrt", _of("msub", "d", "k"))), ")")),
    "layers": _math(
        *("O (", _power("n", "2"), "d ) , O ( n", _power("d", "2"), ") , O ( k n", _power("d", "2"), ") , O ( r n d )")
    ),
}  # fmt: skip
