"""A third engine says the same: our weights in Hugging Face's MarianMT, opened by transformers alone.

Where transformers is not installed these tests are skipped, all but those of what is refused.
"""

import copy
import importlib.util
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from decoding.conftest import HYPER, decode
from decoding.test_ctranslate import drawn, export, load, translate_ctranslate2, with_library
from decoding.test_translate import padded
from torch import Tensor, nn

from repro.data.tokenizer import Tokenizer, train_tokenizer
from repro.data.vocabulary import Subwords
from repro.decoding.marian import export_marian
from repro.decoding.search import PAPER_SEARCH, Search
from repro.decoding.translate import translate
from repro.model.ablations.norms import PreNorm
from repro.model.special_tokens import EOS, PAD
from repro.model.transformer import Transformer
from repro.runs.refused import as_ids

with_transformers = pytest.mark.skipif(
    importlib.util.find_spec("transformers") is None, reason='needs transformers: pip install -e ".[dev]"'
)
pytestmark = pytest.mark.filterwarnings("ignore")  # of transformers, which warns of itself
LINES = [f"the cat {i} sees {i % 7} dogs and {i * i} houses" for i in range(200)]
HOSTILE = ["</s>", "a <s> b </s> c", "  two  blanks ", "<pad>", "tab\tand \u2028 \U0001f642", "à 东京"]


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return train_tokenizer(LINES * 3, Subwords("bpe", 400))


@pytest.fixture(scope="module")
def ours(tokenizer: Tokenizer) -> Transformer:
    with torch.random.fork_rng():
        model: Transformer = decode.rambling(HYPER, tokenizer.size, length=10, spread=3, heard=3.0)
    return model


@pytest.fixture(scope="module")
def source(text: Any) -> Tensor:
    return padded(text)


@pytest.fixture(scope="module")
def folder(ours: Transformer, tokenizer: Tokenizer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("marian")
    export_marian(ours, tokenizer, folder)
    return folder


@pytest.fixture(scope="module")
def theirs(folder: Path) -> Any:
    return opened(folder)


def opened(folder: Path) -> Any:
    """By the class that the folder names."""
    from transformers import AutoModelForSeq2SeqLM

    return AutoModelForSeq2SeqLM.from_pretrained(folder)


def generated(model: Any, source: Tensor, **options: Any) -> list[tuple[int, ...]]:
    """What its search finds, without symbols, cut where ours would cut it: its limit is one for all sentences."""
    seen = source != PAD
    limits = (seen.sum(1) + PAPER_SEARCH.extra).tolist()
    found = model.generate(input_ids=source, attention_mask=seen.long(), max_new_tokens=max(limits), **options)
    rows = [row[1 : 1 + limit] for row, limit in zip(found.tolist(), limits, strict=True)]
    return [tuple(id for id in row if id not in (PAD, EOS)) for row in rows]


@with_transformers
@pytest.mark.parametrize("change", [{}, {"n_layers": 1, "d_model": 24, "n_heads": 2, "d_k": 12, "d_v": 12}], ids=str)
def test_given_targets_are_as_likely_in_both_but_for_the_epsilon(
    change: dict[str, int], tokenizer: Tokenizer, source: Tensor, tmp_path: Path
) -> None:
    model = drawn(replace(HYPER, **change), tokenizer.size)
    export_marian(model, tokenizer, tmp_path)
    theirs = opened(tmp_path)
    target = source.flip(0)
    begins = torch.full((len(target), 1), theirs.config.decoder_start_token_id)
    given = {"input_ids": source, "attention_mask": (source != PAD).long()}
    given["decoder_input_ids"] = torch.cat([begins, target[:, :-1]], dim=1)
    with torch.no_grad():
        expected = model(source, F.pad(target[:, :-1], (1, 0), value=PAD)).log_softmax(-1)[target != PAD]
        found = theirs(**given).logits.log_softmax(-1)[target != PAD]
        assert found[:, -1].exp().max() == 0, "the start symbol is never written"
        torch.testing.assert_close(found[:, :-1], expected, rtol=0, atol=1e-3)
        for part in theirs.modules():
            if isinstance(part, nn.LayerNorm):
                part.eps = 1e-6
        torch.testing.assert_close(
            theirs(**given).logits.log_softmax(-1)[target != PAD][:, :-1], expected, rtol=0, atol=2e-5
        )


@with_transformers
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_a_smoothed_loss_and_half_precision_stay_numbers(theirs: Any, source: Tensor, dtype: torch.dtype) -> None:
    begins = torch.full((len(source), 1), theirs.config.decoder_start_token_id)
    given = {"input_ids": source, "attention_mask": (source != PAD).long()}
    given["decoder_input_ids"] = torch.cat([begins, source[:, :-1]], dim=1)
    model, real = copy.deepcopy(theirs).to(dtype), source != PAD
    with torch.no_grad():
        logits = model(**given).logits[real]
    assert logits.dtype == dtype
    assert logits.isfinite().all()
    size = theirs.config.vocab_size
    smoothed = [F.cross_entropy(x.float(), source[real], label_smoothing=0.1) for x in (logits, logits[:, :-1])]
    assert smoothed[0] - smoothed[1] < 20 / size + 0.01
    assert logits.float().softmax(-1)[:, -1].max() == 0


@with_transformers
def test_a_beam_at_penalty_0_finds_nearly_the_same(ours: Transformer, theirs: Any, source: Tensor, text: Any) -> None:
    # of the candidates of a step an end counts only among its first four, as for CTranslate2; and the epsilon
    mine = translate(ours, text, Search(beam=4, alpha=0.0))
    found = generated(theirs, source, num_beams=4, length_penalty=0.0)
    same = sum(x == y for x, y in zip(found, mine, strict=True))
    assert same >= 180, same


@with_library
@with_transformers
def test_three_engines_make_the_same_200_greedy_translations_token_for_token(
    ours: Transformer, theirs: Any, source: Tensor, text: Any, tmp_path: Path
) -> None:
    expected = translate(ours, text, Search(beam=1))
    assert len(set(expected)) > 100, "the sentences are to differ"
    export(ours, tmp_path)
    assert translate_ctranslate2(load(tmp_path, threads=1), text, Search(beam=1)) == expected
    assert generated(theirs, source, num_beams=1) == expected


@with_transformers
def test_its_generate_makes_of_200_lines_of_text_what_we_do(
    ours: Transformer, tokenizer: Tokenizer, folder: Path, theirs: Any
) -> None:
    # as the card of an export says, in every version
    from transformers import AutoTokenizer

    random, words = np.random.default_rng(0), sorted({word for line in LINES for word in line.split()})
    lines = [" ".join(random.choice(words, n)) for n in random.integers(1, 16, 200)]
    expected = translate(ours, as_ids(tokenizer, lines), Search(beam=1))
    assert len(set(expected)) > 50, "the translations are to differ"
    read = AutoTokenizer.from_pretrained(folder)
    ids = theirs.generate(**read(lines, return_tensors="pt", padding=True), num_beams=1)
    assert read.batch_decode(ids, skip_special_tokens=True) == [*map(tokenizer.decode, expected)]


@with_transformers
def test_its_tokenizer_reads_and_writes_as_ours_does(folder: Path, tokenizer: Tokenizer) -> None:
    from transformers import AutoTokenizer

    found = AutoTokenizer.from_pretrained(folder)
    for line in [*LINES, *HOSTILE]:
        ids = tokenizer.encode([line])[0].tolist()
        assert found(line).input_ids == ids, line
        assert found.decode([len(found) - 1, *ids, PAD], skip_special_tokens=True) == line


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (lambda: drawn(replace(HYPER, d_k=4)), "d_k = 4 and d_v = 8"),
        (lambda: drawn(replace(HYPER, d_v=11)), "as wide as d_model / h, here 8"),
        (lambda: drawn(replace(HYPER, learned_positions=True)), "this one learned its own"),
        (lambda: Transformer(HYPER, 400, around=PreNorm), "this one has other parts"),
    ],
)
def test_what_it_cannot_express_is_refused(model: Any, said: str, tokenizer: Tokenizer, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=said):
        export_marian(model(), tokenizer, tmp_path)
    assert list(tmp_path.iterdir()) == []
