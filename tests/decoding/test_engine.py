"""Each engine answers the same questions about the same weights."""

import importlib.util
from pathlib import Path
from typing import Any

import pytest
import torch
from decoding.test_ctranslate import pairs
from torch import Tensor

from repro import products
from repro.decoding import ctranslate
from repro.decoding.engine import NAMES, opened
from repro.decoding.translate import mean_nll, translate
from repro.experiment import _options
from repro.model.transformer import Transformer

needs_library = pytest.mark.skipif(
    importlib.util.find_spec("ctranslate2") is None, reason=f"needs CTranslate2: {ctranslate.INSTALL}"
)


def test_our_own_is_what_the_functions_give(model: Transformer, text: Any) -> None:
    with opened("torch", model) as engine:
        assert engine.translate(text) == translate(model, text)
        assert engine.mean_nll([pairs()]) == mean_nll(model, [pairs()])


def test_products_in_bfloat16_are_the_own_engines_choice(model: Transformer) -> None:
    with opened("torch", model, bf16=True) as engine:
        found = engine.mean_nll([pairs()])
    with torch.autocast("cpu", torch.bfloat16):
        assert found == mean_nll(model, [pairs()])
    assert found != mean_nll(model, [pairs()])


def test_a_processor_without_bfloat16_products_of_its_own_translates_all_the_same(
    model: Transformer, text: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    # as one with AVX2 and no more: oneDNN refuses to lay such matrices out
    laid_out = products.Product.__init__

    def refused(self: products.Product, weight: Tensor, bias: Tensor | None, dtype: torch.dtype) -> None:
        if dtype == torch.bfloat16:
            raise RuntimeError("bf16 path needs the cpu support")
        laid_out(self, weight, bias, dtype)

    monkeypatch.setattr(products.Product, "__init__", refused)
    monkeypatch.setattr(products, "has_bfloat16", lambda: False)
    with opened("torch", model, bf16=True) as rough, opened("torch", model) as exact:
        pairs_of = zip(rough.translate(text, width=1), exact.translate(text, width=1), strict=True)
        assert sum(found == expected for found, expected in pairs_of) > len(text) / 2


@needs_library
@pytest.mark.parametrize(("name", "close"), [("ctranslate2", 1e-4), ("ctranslate2-int8", 0.3)])
def test_the_other_scores_alike(model: Transformer, name: Any, close: float) -> None:
    with opened(name, model) as engine:
        found = engine.mean_nll([pairs()])
    assert found == pytest.approx(mean_nll(model, [pairs()]), abs=close)
    assert (found == pytest.approx(mean_nll(model, [pairs()]), abs=1e-4)) == (name == "ctranslate2")


@needs_library
def test_the_other_translates_and_says_how_far_it_is(model: Transformer, text: Any, tmp_path: Path) -> None:
    # what it finds is compared with what we find in test_ctranslate.py
    done: list[int] = []
    with opened("ctranslate2", model) as engine:
        found = engine.translate(text, width=2, alpha=0.6, between=done.append)
    ctranslate.export(model, tmp_path)
    assert found == ctranslate.translate_ctranslate2(ctranslate.load(tmp_path), text, width=2, alpha=0.6)
    assert done == sorted(done)
    assert done[-1] == len(text)


def test_the_command_line_knows_them_all() -> None:
    for name in NAMES:
        assert _options("table3_A", [f"--engine={name}"])[0].engine == name
