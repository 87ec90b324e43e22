"""Each backend answers the same questions about the same weights."""

import copy
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from decoding.conftest import decode
from decoding.test_ctranslate import pairs, with_library
from model.samples import NoneOfBfloat16
from torch import Tensor
from waiting import exact_8_bits

from repro.decoding import ctranslate
from repro.decoding.backend import opened
from repro.decoding.search import Search
from repro.decoding.translate import score_tokens, translate
from repro.model import bfloat16, prepacked
from repro.model.bfloat16 import bfloat16_products
from repro.model.transformer import Transformer


def test_the_torch_backend_gives_what_the_functions_give(model: Transformer, text: Any) -> None:
    with opened("torch", model) as backend:
        assert backend.translate(text) == translate(model, text)
        assert backend.score_tokens([pairs()]) == score_tokens(model, [pairs()])


@pytest.mark.parametrize("gpu", [True, False])
def test_the_torch_backend_moves_the_model_to_the_gpu(gpu: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    # training leaves the model on the CPU, wherever it was
    went: list[torch.device] = []
    model: Any = SimpleNamespace(to=lambda device: went.append(device) or model)
    monkeypatch.setattr("torch.cuda.is_available", lambda: gpu)
    with opened("torch", model):
        pass
    assert went == [torch.device("cuda" if gpu else "cpu")]


def test_nothing_is_dropped_out_of_a_model_that_comes_from_training(model: Transformer, text: Any) -> None:
    assert model.dropout.p > 0
    assert score_tokens(copy.deepcopy(model).train(), [pairs()]) == score_tokens(model, [pairs()])
    assert translate(copy.deepcopy(model).train(), text, Search(beam=1)) == translate(model, text, Search(beam=1))


def test_scoring_no_sentence_is_refused(model: Transformer) -> None:
    with pytest.raises(ValueError, match="expected at least one sentence to score, got none"):
        score_tokens(model, [])


def test_the_torch_backend_can_make_products_in_bfloat16(model: Transformer) -> None:
    with opened("torch", model, bf16=True) as backend:
        found = backend.score_tokens([pairs()])
    with bfloat16_products(torch.device("cpu")), torch.autocast("cpu", torch.bfloat16):
        assert found == score_tokens(model, [pairs()])
    assert found.nll != score_tokens(model, [pairs()]).nll


def test_where_the_processor_has_no_bfloat16_products_go_through_float32(
    model: Transformer, text: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    sound = prepacked.PackedLinear.__init__

    def refused(self: prepacked.PackedLinear, weight: Tensor, bias: Tensor | None, dtype: torch.dtype) -> None:
        assert dtype == torch.float32, "oneDNN lays out no such matrix"
        sound(self, weight, bias, dtype)

    monkeypatch.setattr(prepacked.PackedLinear, "__init__", refused)
    for place in (bfloat16, prepacked):
        monkeypatch.setattr(place, "has_bfloat16", lambda: False)
    few = decode.encoded([text.sentence(i) for i in range(20)])
    with opened("torch", model, bf16=True) as rough, NoneOfBfloat16():
        pairs_of = zip(rough.translate(few, Search(beam=2)), translate(model, few, Search(beam=2)), strict=True)
        assert sum(found == expected for found, expected in pairs_of) > len(few) / 2
        rough.score_tokens([pairs()])
        with pytest.raises(AssertionError, match="reads bfloat16"):  # what there is to be seen
            torch.mm(torch.ones(2, 2).bfloat16(), torch.ones(2, 2).bfloat16())


@with_library
@pytest.mark.parametrize(
    ("name", "close"), [("ctranslate2", 1e-4), pytest.param("ctranslate2-int8", 0.3, marks=exact_8_bits)]
)
def test_ctranslate2_scores_nearly_the_same(model: Transformer, name: Any, close: float) -> None:
    with opened(name, model) as backend:
        found = backend.score_tokens([pairs()])
    expected = score_tokens(model, [pairs()])
    assert found.nll == pytest.approx(expected.nll, abs=close)
    assert (found.nll == pytest.approx(expected.nll, abs=1e-4)) == (name == "ctranslate2")
    assert found.accuracy is None, "CTranslate2 tells of no token but the given one"


@with_library
def test_ctranslate2_translates_and_reports_its_progress(model: Transformer, text: Any, tmp_path: Path) -> None:
    # what it finds is compared with what we find in test_ctranslate.py
    done: list[int] = []
    with opened("ctranslate2", model) as backend:
        found = backend.translate(text, Search(beam=2), between=done.append)
    ctranslate.export(model, tmp_path)
    assert found == ctranslate.translate_ctranslate2(ctranslate.load(tmp_path), text, Search(beam=2))
    assert done == sorted({*done})
    assert done[-1] == len(text)
