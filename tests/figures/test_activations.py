"""Moments of what flows between sub-layers: against the layers called by hand, and whose weights they are."""

import csv
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from figure_samples import assert_words_stand_apart
from torch import Tensor

from repro.data.batch import make_batch
from repro.data.shards import Encoded
from repro.figures import activations, style
from repro.figures.activations import (
    ROWS,
    draw_activations,
    measure,
    moments,
    paint_activations,
    places_of,
    watched_stream,
)
from repro.model.ablations.norms import NoNorm, PreNorm
from repro.model.build import build
from repro.model.config import Hyper
from repro.model.masks import Padded
from repro.model.transformer import Transformer
from repro.results.record import Record
from repro.runs.load import Trained
from repro.training.module import TranslationModule

HYPER = Hyper(n_layers=2, d_model=14, d_ff=10, n_heads=2, d_k=3, d_v=5, dropout=0.4)
SENTENCES = [[5, 6, 7, 2], [8, 2], [4, 9, 2]]
TARGETS = [[3, 2], [4, 5, 6, 7, 2], [9, 8, 2]]


def side(sentences: list[list[int]]) -> Encoded:
    return Encoded(np.array([id for one in sentences for id in one], np.uint16), np.cumsum([0, *map(len, sentences)]))


def batch() -> Any:
    return make_batch(side(SENTENCES), side(TARGETS), range(3), n_update=10)


def stream_by_hand(model: Transformer, source: Tensor, decoder_in: Tensor) -> dict[str, list[Tensor]]:
    """Sub-layer after sub-layer, for post-norm and for none (whose norm is the identity)."""
    bias, causal = (
        Padded(source).seen_from(Padded(decoder_in), torch.float64),
        Padded(decoder_in).causal(torch.float64),
    )
    x = model.embedding(source) + model.source_positions(0, source.shape[1])
    encoder = [x]
    for layer in model.encoder:
        for norm, sub_layer in zip(
            layer.norms, (lambda x, of=layer: of.self_attention(x, bias), layer.feed_forward), strict=True
        ):
            x = norm(x + sub_layer(x))
            encoder.append(x)
    memory, x = x, model.embedding(decoder_in) + model.target_positions(0, decoder_in.shape[1])
    decoder = [x]
    for layer in model.decoder:
        attentions = (
            lambda x, of=layer: of.self_attention(x, causal),
            lambda x, of=layer: of.cross_attention(x, memory, bias),
            layer.feed_forward,
        )
        for norm, sub_layer in zip(layer.norms, attentions, strict=True):
            x = norm(x + sub_layer(x))
            decoder.append(x)
    return {"encoder": encoder, "decoder": decoder}


@pytest.mark.parametrize("system", [None, partial(Transformer, around=NoNorm)], ids=["post-norm", "no norm"])
def test_each_moment_is_that_of_the_tokens_after_a_sub_layer(system: Any) -> None:
    torch.manual_seed(3)
    model, read = build(system, HYPER, 11).double(), batch()
    for norm in (part for part in model.modules() if isinstance(part, torch.nn.LayerNorm)):
        torch.nn.init.uniform_(norm.weight, 0.5, 3)  # else each has variance 1
        torch.nn.init.normal_(norm.bias)
    found = moments(model, read)
    with torch.no_grad():
        expected = stream_by_hand(model.eval(), read.source, read.decoder_in)
    for stack, sentences in (("encoder", SENTENCES), ("decoder", TARGETS)):
        assert len(found[stack]) == len(expected[stack]) == len(places_of(stack, HYPER.n_layers))
        for (mean, variance), x in zip(found[stack], expected[stack], strict=True):
            values = np.concatenate([x[i, : len(one)].numpy().ravel() for i, one in enumerate(sentences)])
            assert (mean, variance) == (pytest.approx(values.mean(), abs=1e-12), pytest.approx(values.var()))


def test_the_stream_of_pre_norm_is_the_sum_and_nothing_is_left_behind() -> None:
    torch.manual_seed(4)
    model, read = build(partial(Transformer, around=PreNorm), HYPER, 11).eval(), batch()
    around = [layer.around for layer in (*model.encoder, *model.decoder)]
    with torch.no_grad(), watched_stream(model) as kept:
        model(read.source, read.decoder_in)
    layer = model.encoder[1]
    expected = kept["encoder"][3] + layer.feed_forward(layer.norms[1](kept["encoder"][3]))
    torch.testing.assert_close(kept["encoder"][4], expected)
    assert [layer.around for layer in (*model.encoder, *model.decoder)] == around


def test_first_are_the_weights_that_the_seed_draws_and_last_those_of_the_run(
    a_record: Callable[..., Record], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    tokenizer: Any = type("Tokens", (), {"size": 11, "encode": lambda self, lines: list(map(ids, lines))})()
    ids = {"one": SENTENCES[0], "two": SENTENCES[1], "eins": TARGETS[0], "zwei": TARGETS[1]}.__getitem__
    torch.manual_seed(5)
    last = build(None, HYPER, 11).eval()
    record = a_record("base", 7)
    record = replace(record, hyper=vars(HYPER))
    monkeypatch.setattr(activations, "dev_pairs", lambda record, cache: [("one", "eins"), ("two", "zwei")])
    monkeypatch.setattr(
        activations,
        "sides_of",
        lambda pairs, tokenizer: [side([*map(ids, lines)]) for lines in zip(*pairs, strict=True)],
    )
    monkeypatch.setattr(
        "repro.runs.load.open_run", lambda folder, cache: Trained(record=record, model=last, tokenizer=tokenizer)
    )
    before = torch.random.get_rng_state()
    found = measure([record], tmp_path, tmp_path)
    assert torch.equal(torch.random.get_rng_state(), before)
    read = make_batch(side(SENTENCES[:2]), side(TARGETS[:2]), range(2), n_update=7)
    first = TranslationModule(HYPER, 11, 7).model
    assert found.pop("runs")[0]["run"] == record.run
    assert found == {"sentences": 2, "moments": [{"first": moments(first, read), "last": moments(last, read)}]}
    assert found["moments"][0]["first"] != found["moments"][0]["last"]


def measured(n_layers: int = 3) -> dict[str, Any]:
    random = np.random.default_rng(7)

    def some() -> dict[str, Any]:
        return {
            stack: random.uniform(0.1, 9, (len(places_of(stack, n_layers)), 2)).tolist() for stack in activations.STACKS
        }

    whose = {"seed": 4, "scale": "laptop", "corpus": "grammar", "pair": "en-de", "run": "ab" * 8, "commit": "12" * 20}
    runs = [{**whose, "row": one.row} for one in ROWS]
    return {"runs": runs, "sentences": 64, "moments": [{"first": some(), "last": some()} for _ in runs]}


def test_the_numbers_beside_the_picture(tmp_path: Path) -> None:
    content = measured()
    picture, numbers = draw_activations(tmp_path, content)
    assert picture.name == "activations.svg"
    cells = list(csv.DictReader(numbers.read_text("utf-8").splitlines()))
    assert len(cells) == 2 * 2 * (7 + 10)
    [one] = [
        cell
        for cell in cells
        if [*cell.values()][:6] == ["no norm", "4", "last step", "decoder", "5", "layer 2, source"]
    ]
    mean, variance = content["moments"][1]["last"]["decoder"][5]
    assert (float(one["mean"]), float(one["variance"])) == (
        pytest.approx(mean, rel=1e-5),
        pytest.approx(variance, rel=1e-5),
    )


@pytest.mark.parametrize("n_layers", [3, 6])
def test_a_line_is_a_row_at_a_step_and_no_two_labels_touch(n_layers: int) -> None:
    content = measured(n_layers)
    with style.house():
        figure: Any = style.painted((style.WIDTH, 5.0), partial(paint_activations, measured=content))
    lines = {line.get_label(): line.get_ydata() for line in figure.axes[3].get_lines() if "," in line.get_label()}
    assert [*lines] == ["base, first step", "base, last step", "no norm, first step", "no norm, last step"]
    np.testing.assert_allclose(lines["no norm, first step"], np.array(content["moments"][1]["first"]["decoder"])[:, 1])
    texts = [text for axes in figure.axes for text in (*axes.get_xticklabels(), axes.title)]
    words = [*texts, *figure.legends[0].get_texts(), *figure.texts]
    assert assert_words_stand_apart(figure, words) == 4 * (n_layers + 2) + 4 + 1
