"""CTranslate2 is an independent witness: our weights in somebody else's Transformer say what they say in ours.

Where it is not installed these tests are skipped, all but those of what is said then.
"""

import importlib.util
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from decoding.conftest import HYPER, V, decode
from decoding.test_translate import padded
from model.samples import encoded, with_vectors_drawn
from torch import Tensor
from waiting import exact_8_bits

from repro.data.batch import Batch, make_batch
from repro.decoding import ctranslate
from repro.decoding.ctranslate import export, load, score_tokens_ctranslate2, translate_ctranslate2
from repro.decoding.search import Search
from repro.decoding.translate import score_tokens, translate
from repro.model.config import Hyper
from repro.model.special_tokens import EOS, PAD
from repro.model.transformer import Transformer

with_library = pytest.mark.skipif(
    importlib.util.find_spec("ctranslate2") is None, reason="needs CTranslate2: pip install -e '.[fast]'"
)


@pytest.fixture(scope="module")
def folder(model: Transformer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("exported")
    export(model, folder)
    return folder


@pytest.fixture(scope="module")
def translator(folder: Path) -> Any:
    return load(folder, threads=1)


def drawn(hyper: Hyper, vocab_size: int = V) -> Transformer:
    """A random model whose biases and norms are random as well."""
    torch.manual_seed(0)
    model: Transformer = with_vectors_drawn(Transformer(hyper, vocab_size).eval())
    return model


def pairs(n: int = 7) -> Batch:
    """Random sentences of unequal length."""
    random = np.random.default_rng(0)
    sides = (
        encoded([random.integers(EOS + 1, V, longest - 1 - (3 * row + i) % 8) for row in range(n)])
        for i, longest in enumerate((13, 11))
    )
    return make_batch(*sides, np.arange(n), n_update=1)


@with_library
@pytest.mark.parametrize(
    "change",
    [{}, {"d_k": 3, "d_v": 11}, {"d_k": 11, "d_v": 3}, {"n_layers": 1, "d_model": 20}, {"learned_positions": True}],
    ids=str,
)
def test_given_targets_are_as_likely_in_both(change: dict[str, int], tmp_path: Path) -> None:
    model, batch = drawn(replace(HYPER, **change)), pairs()
    export(model, tmp_path)
    begun = ctranslate._begin_to_score(load(tmp_path, threads=1), batch.source, batch.target)
    found = [pending.result().log_probs for pending in begun]
    with torch.no_grad():
        log_prob = model(batch.source, batch.decoder_in).log_softmax(-1)
    expected = log_prob.gather(2, batch.target[:, :, None])[:, :, 0]
    for row, target, theirs in zip(expected, batch.target, found, strict=True):
        torch.testing.assert_close(torch.tensor(theirs), row[target != PAD], rtol=0, atol=1e-5)


@with_library
def test_norms_divide_by_the_same_epsilon(tmp_path: Path) -> None:
    # numbers so small that it shows: their variance is about 1e-6 as well
    model, batch = drawn(replace(HYPER, learned_positions=True)), pairs()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "norms" not in name or name.endswith("bias"):
                parameter.mul_(1e-3)
        model.decoder_layers[-1].norms[-1].weight.mul_(1e4)
    export(model, tmp_path)
    found = score_tokens_ctranslate2(load(tmp_path, threads=1), [batch])
    assert found.nll == pytest.approx(score_tokens(model, [batch]).nll, abs=1e-4)


@with_library
def test_the_mean_over_batches(model: Transformer, translator: Any) -> None:
    batches = [pairs(7), pairs(3)]
    found, expected = score_tokens_ctranslate2(translator, batches), score_tokens(model, batches)
    assert found.nll == pytest.approx(expected.nll, abs=1e-5)


@torch.no_grad()
def by_its_rules(model: Any, source: Tensor, limits: list[int], width: int, alpha: float) -> list[list[int]]:
    """Translations of source [N, S], by whole passes over all that was written."""
    live: dict[int, list[tuple[float, list[int]]]] = {i: [(0.0, [])] for i in range(len(source))}
    ended: dict[int, list[tuple[float, list[int]]]] = {i: [] for i in live}  # the end symbol included
    topped = set[int]()  # sentences whose best candidate was an end, once
    length = 0
    while live:
        length += 1
        rows = [(i, ids) for i, beams in live.items() for _, ids in beams]
        decoder_in, read = torch.tensor([[PAD, *ids] for _, ids in rows]), source[[i for i, _ in rows]]
        logits = model.embedding.logits(model.decode(decoder_in, model.encode(read), read)[:, -1])
        logits[:, PAD] = -torch.inf
        value, token = logits.log_softmax(-1).sort(dim=1, descending=True, stable=True)
        best = iter(zip(value[:, : 2 * width].tolist(), token[:, : 2 * width].tolist(), strict=True))
        for i, beams in list(live.items()):
            found = [(total + more, [*ids, id]) for total, ids in beams for more, id in zip(*next(best), strict=True)]
            found = sorted(found, key=lambda candidate: -candidate[0])[: 2 * width]
            if found[0][1][-1] == EOS:
                topped.add(i)
            ended[i] += [one for one in found[:width] if one[1][-1] == EOS or length == limits[i]]
            live[i] = [one for one in found if one[1][-1] != EOS][:width]
            if length == limits[i] or (len(ended[i]) >= width and (alpha > 0 or i in topped)):
                del live[i]
    answers = []
    for found in ended.values():  # no more than the beam is wide come back, by their own penalty
        kept = sorted(found, key=lambda one: -one[0] / (len(one[1]) if alpha else 1))[:width]
        _, ids = max(kept, key=lambda one: (one[1][-1] == EOS, one[0] / ((5 + len(one[1])) / 6) ** alpha))
        answers.append([id for id in ids if id != EOS])
    return answers


@with_library
@pytest.mark.parametrize(("width", "alpha"), [(4, 0.0), (4, 0.6)])
def test_200_translations_are_those_of_a_plain_search_by_its_rules(
    model: Transformer, text: Any, translator: Any, width: int, alpha: float
) -> None:
    limits = [length + 9 for length in text.lengths.tolist()]
    found = translate_ctranslate2(translator, text, Search(width, alpha, extra=9))
    assert [[*ids] for ids in found] == by_its_rules(model, padded(text), limits, width, alpha)


@with_library
def test_greedy_search_is_ours(model: Transformer, text: Any, translator: Any) -> None:
    assert translate_ctranslate2(translator, text, Search(beam=1)) == translate(model, text, Search(beam=1))


@with_library
@exact_8_bits
def test_8_bits_translate_nearly_the_same(model: Transformer, text: Any, folder: Path) -> None:
    found = translate_ctranslate2(load(folder, compute_type="int8", threads=1), text, Search(beam=1))
    same = sum(a == b for a, b in zip(found, translate(model, text, Search(beam=1)), strict=True))
    assert len(found) / 2 < same < len(found)


@with_library
def test_several_batches_at_once_change_nothing(translator: Any, folder: Path, text: Any) -> None:
    two = load(folder, threads=2)
    options: dict[str, Any] = {"search": Search(2), "batch_tokens": 64}
    assert translate_ctranslate2(two, text, **options) == translate_ctranslate2(translator, text, **options)
    batches = [pairs(n) for n in (7, 3, 5)]
    assert score_tokens_ctranslate2(two, batches) == score_tokens_ctranslate2(translator, batches)


@with_library
def test_what_cannot_be_opened_is_named_and_no_sentences_have_no_translations(
    translator: Any, folder: Path, tmp_path: Path
) -> None:
    with pytest.raises(FileNotFoundError, match="expected a CTranslate2 model in .*, got no model.bin"):
        load(tmp_path)
    with pytest.raises(ValueError, match="expected one of .*float32.* on this processor, got 'float7'"):
        load(folder, compute_type="float7")
    assert translate_ctranslate2(translator, decode.encoded([])) == []


def test_where_the_library_is_missing_the_command_is_said(
    model: Transformer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ctranslate2", None)
    with pytest.raises(ImportError, match=r"expected CTranslate2, got .* Install it: pip install .*\[fast\]"):
        export(model, tmp_path)
    with pytest.raises(ImportError, match="Install it"):
        load(tmp_path)
