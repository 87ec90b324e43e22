"""The hash of the list of claims: all that decides a verdict changes it, and no word does."""

import ast
import sys
from dataclasses import fields, replace
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import pytest

from repro.claims import arithmetic, lists
from repro.claims.claim import BLEU, Checked, Claim
from repro.claims.lists import WORDS, catalogue_digest
from repro.claims.spelling import function, spelled, syntax
from repro.claims.statements import LISTED

BOUND = 3
OTHERS = (1.5, 2)


def compute(_: object) -> Checked:
    """Words."""
    found = _helper(BOUND) + OTHERS[0]  # a word
    return Checked(found > 1, f"{found} found")


def _helper(n: int) -> int:
    return n + 1


def one(id: str) -> Claim:
    return next(of for of in LISTED if of.id == id)


def with_claim(changed: str, **change: Any) -> tuple[Claim, ...]:
    """The list with one claim changed."""
    return tuple(replace(of, **change) if of.id == changed else of for of in LISTED)


# Claims


def test_the_hash_is_the_same_twice_and_short() -> None:
    assert catalogue_digest() == catalogue_digest(tuple(LISTED))
    assert len(catalogue_digest()) == 16


DECIDING = ("id", "kind", "rows", "endpoints", "scale", "needs", "named", "sizes", "compute", "tests", "holds")
SAYING = ("where", "sentence", "template", "missing", "note")


def test_every_field_decides_or_says() -> None:
    assert {*DECIDING, *SAYING} == {field.name for field in fields(Claim)}


@pytest.mark.parametrize("field", DECIDING)
def test_every_field_that_decides_is_in_the_hash(field: str) -> None:
    # each field is given what another claim has there
    mine = one("C29a")
    other = next(of for of in LISTED if getattr(of, field) != getattr(mine, field))
    assert catalogue_digest(with_claim("C29a", **{field: getattr(other, field)})) != catalogue_digest()


@pytest.mark.parametrize("field", SAYING)
def test_no_word_is_in_the_hash(field: str) -> None:
    assert catalogue_digest(with_claim("C29a", **{field: "another"})) == catalogue_digest()


@pytest.mark.parametrize(
    "change", [{"margin": 0.5}, {"widest": 2.0}, {"sign": -1}, {"split": "test"}, {"score": "nll"}, {"name": "other"}]
)
def test_every_bound_of_a_score_is_in_the_hash(change: dict[str, Any]) -> None:
    assert catalogue_digest(with_claim("C27c", endpoints=(replace(BLEU, **change),))) != catalogue_digest()
    assert catalogue_digest(with_claim("C27c", endpoints=(replace(BLEU, decimals=7),))) == catalogue_digest()


def test_levels_are_in_the_hash(monkeypatch: pytest.MonkeyPatch) -> None:
    before = catalogue_digest()
    monkeypatch.setattr(lists, "LEVELS", (*lists.LEVELS[:-1], 2))
    assert catalogue_digest() != before


def test_a_claim_fewer_and_another_order_are_in_the_hash() -> None:
    assert catalogue_digest(LISTED[1:]) != catalogue_digest()
    assert catalogue_digest(LISTED[::-1]) != catalogue_digest()


# What is computed


def rewritten(module: ModuleType, old: str, new: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The hash of the list whose arithmetic is read from a changed copy of a module."""
    text = Path(str(module.__file__)).read_text("utf-8")
    assert text.count(old) == 1
    file = tmp_path / "copy.py"
    file.write_text(text.replace(old, new), "utf-8")
    copy = ModuleType(module.__name__)
    copy.__file__ = str(file)
    exec(compile(file.read_text("utf-8"), str(file), "exec"), vars(copy))
    monkeypatch.setitem(sys.modules, module.__name__, copy)
    computed = tuple(
        replace(of, compute=getattr(copy, of.compute.__name__)) if isinstance(of.compute, FunctionType) else of
        for of in LISTED
    )
    return catalogue_digest(computed)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("lead > 2.0", "lead > 1.0"),  # a bound
        ("ours / theirs < 1 / 4", "ours / theirs <= 1 / 4"),
        ("round(seconds, 1) == printed", "round(seconds, 2) == printed"),  # in a function that is called
        ('"en-de" in line.flops),\n        key', '"en-fr" in line.flops),\n        key'),
        ("LADDERS = ((N2, N4, B0, N8),", "LADDERS = ((N2, B0, N8),"),  # a number that is asked
    ],
)
def test_what_is_computed_is_in_the_hash(old: str, new: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert rewritten(arithmetic, old, new, tmp_path, monkeypatch) != catalogue_digest()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("= {lead:.2f}", "is {lead:.2f}"),  # the reason that is given
        ("The lead of the big model on English-German", "How far it leads"),  # a docstring
        (
            "def two_above_all(_: PrintedRows) -> Checked:\n",
            "def two_above_all(_: PrintedRows) -> Checked:\n    # word\n",
        ),
    ],
)
def test_words_of_what_is_computed_are_not(old: str, new: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert rewritten(arithmetic, old, new, tmp_path, monkeypatch) == catalogue_digest()


def test_a_printed_number_that_is_asked_is_in_the_hash(monkeypatch: pytest.MonkeyPatch) -> None:
    before = catalogue_digest()
    monkeypatch.setattr(arithmetic, "BIG_MODEL", replace(arithmetic.BIG_MODEL, bleu={"en-de": 28.5, "en-fr": 41.8}))
    lists._digest.cache_clear()  # a process reads what is computed once
    assert catalogue_digest() != before
    lists._digest.cache_clear()


# How it is spelled


def test_a_function_is_spelled_with_what_it_asks() -> None:
    # `_helper` is none of this package's, or it would stand here as well
    assert function(compute).keys() == {f"{__name__}.compute", "BOUND", "OTHERS"}
    assert function(compute)["BOUND"] == 3
    assert function(compute)["OTHERS"] == [1.5, 2]


@pytest.mark.parametrize(
    ("source", "alike"),
    [
        ("def f(x: int) -> int:\n    return x + 1", True),
        ("def f(x):\n    # a word\n    return (x + 1)", True),
        ('def f(x):\n    """A word."""\n    return x + 1', True),
        ("def f(x):\n    return x + 2", False),
        ("def f(y):\n    return y + 1", False),
    ],
)
def test_syntax_has_no_words(source: str, alike: bool) -> None:
    assert (syntax(ast.parse(source)) == syntax(ast.parse("def f(x):\n    return x + 1"))) is alike


@pytest.mark.parametrize(
    ("source", "alike"),
    [
        ('Checked(x > 1, f"{x} is more")', True),
        ('Checked(x > 1, "more" + x)', True),
        ("Checked(x > 2, f'{x}')", False),
        ("Other(x > 1, x)", False),
    ],
)
def test_the_reason_of_a_verdict_is_words(source: str, alike: bool) -> None:
    assert (syntax(ast.parse(source)) == syntax(ast.parse("Checked(x > 1, 'x')"))) is alike


def test_what_is_not_known_is_refused() -> None:
    with pytest.raises(TypeError, match="expected what can be spelled out, got <object"):
        spelled(object())


def test_the_methods_of_a_precondition_are_spelled() -> None:
    assert any("sign" in part for part in spelled(BLEU)["printed"].values() if isinstance(part, str))
    assert "sentence_here" not in spelled(one("C29a"), without=WORDS)
