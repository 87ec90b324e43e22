"""Gradients by source position: against finite differences, of the sentences and the token that are meant."""

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

from repro.data.shards import Encoded
from repro.figures import source_gradients, style
from repro.figures.source_gradients import (
    ROWS,
    draw_gradients,
    gradient_norms,
    length_shown,
    measure,
    paint_gradients,
    shares_of,
)
from repro.model.build import build
from repro.model.config import Hyper
from repro.model.rivals.attention_rnn import SoftAlignment
from repro.model.rivals.recurrent import Simple
from repro.model.special_tokens import PAD
from repro.results.record import Record
from repro.runs.load import Trained

HYPER = Hyper(n_layers=1, d_model=6, d_ff=200, n_heads=2, d_k=3, d_v=3, dropout=0.4)
SOURCE, FIRST = torch.tensor([[5, 6, 7, 2], [8, 9, 8, 2]]), torch.tensor([3, 4])


def loss_with(model: Any, source: Tensor, first: int, place: int, change: Tensor) -> float:
    """-log p(first | source), where `change` [D] is added to the embedding of one source token."""

    def shifted(module: Any, inputs: tuple[Tensor], made: Tensor) -> Tensor:
        return made + torch.eye(made.shape[1], dtype=made.dtype)[place, :, None] * change

    with torch.no_grad():
        handle = model.embedding.register_forward_hook(shifted)
        memory = model.encode(source[None])
        handle.remove()
        hidden = model.decode(torch.full((1, 1), PAD), memory, source[None])
        return -float(model.embedding.logits(hidden)[0, 0].log_softmax(-1)[first])


@pytest.mark.parametrize("system", [None, SoftAlignment])
def test_a_gradient_is_what_a_small_change_of_the_embedding_does_to_the_loss(system: Any) -> None:
    torch.manual_seed(3)
    model = build(system, HYPER, 11).double()
    found = gradient_norms(model, SOURCE, FIRST)
    assert found.shape == SOURCE.shape
    small = 1e-5 * torch.eye(HYPER.d_model, dtype=torch.float64)
    for i, place in np.ndindex(*SOURCE.shape):
        both = [[loss_with(model, SOURCE[i], int(FIRST[i]), place, sign * way) for way in small] for sign in (1, -1)]
        assert found[i, place].item() == pytest.approx(np.linalg.norm(np.subtract(*both) / 2e-5), rel=1e-6)


def test_the_greatest_length_that_many_have() -> None:
    assert length_shown([*[5] * 40, *[9] * 32, *[12] * 31]) == 9
    assert length_shown([5, 5, 9, 9, 12]) == 9


def test_sentences_of_one_length_and_the_first_token_of_their_references(
    a_record: Callable[..., Record], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    ids = {"a": [5, 6, 2], "b": [7, 2], "c": [8, 9, 2], "A": [3, 2], "B": [4, 2], "C": [6, 5, 2]}

    def side(tokenizer: Any, lines: list[str]) -> Encoded:
        each = [ids[line] for line in lines]
        return Encoded(np.concatenate(each).astype(np.uint16), np.cumsum([0, *map(len, each)]))

    torch.manual_seed(5)
    model: Any = build(Simple, HYPER, 11)
    record = replace(a_record("base", 7), hyper=vars(HYPER))
    monkeypatch.setattr(source_gradients, "dev_pairs", lambda record, cache: [("a", "A"), ("b", "B"), ("c", "C")])
    monkeypatch.setattr(
        source_gradients, "sides_of", lambda pairs, of: [side(of, lines) for lines in zip(*pairs, strict=True)]
    )
    trained = Trained(record=record, model=model, tokenizer=None)  # type: ignore[arg-type]
    monkeypatch.setattr("repro.runs.load.open_run", lambda folder, cache: trained)
    [norms] = measure([record], tmp_path, tmp_path)["norms"]
    expected = gradient_norms(model.double(), torch.tensor([ids["a"], ids["c"]]), torch.tensor([3, 6]))
    np.testing.assert_allclose(norms, expected, rtol=1e-12)


def measured(n: int = 33, length: int = 14) -> dict[str, Any]:
    random = np.random.default_rng(7)
    whose = {"seed": 4, "scale": "laptop", "corpus": "grammar", "pair": "en-de", "run": "ab" * 8, "commit": "12" * 20}
    norms = random.uniform(1e-6, 1e-2, (len(ROWS), n, length)).tolist()
    return {"runs": [{**whose, "row": one.row} for one in ROWS], "norms": norms}


def test_the_numbers_beside_the_picture(tmp_path: Path) -> None:
    content = measured()
    picture, numbers = draw_gradients(tmp_path, content)
    assert picture.name == "source_gradients.svg"
    cells = list(csv.DictReader(numbers.read_text("utf-8").splitlines()))
    assert len(cells) == 3 * 2 * 14
    norms = np.array(content["norms"][1])
    shares = [row[4] / sum(row) for row in norms]
    for what, values in (("norm", norms[:, 4]), ("share", shares)):
        [one] = [cell for cell in cells if [*cell.values()][:4] == ["soft alignment", "4", "5", what]]
        ordered = sorted(values)  # of 33 the quartiles are the 9th, the 17th and the 25th
        expected = [ordered[8], ordered[16], ordered[24], sum(values) / 33, 33]
        assert [float(value) for value in [*one.values()][4:]] == pytest.approx(expected, rel=1e-5)


def test_a_line_is_the_median_and_no_two_labels_touch() -> None:
    content = measured(length=55)
    norms = np.array(content["norms"])
    with style.house():
        paint = partial(paint_gradients, measured=content, norms=norms)
        figure: Any = style.painted((style.WIDTH, 3.75), paint)
    left, right = figure.axes
    for axes, values in ((left, norms[2]), (right, shares_of(norms[2]))):
        [line] = [line for line in axes.get_lines() if line.get_label() == "base"]
        np.testing.assert_allclose(line.get_ydata(), np.median(values, axis=0))
        assert axes.get_yscale() == "log"
    texts = [text for axes in figure.axes for text in (*axes.get_xticklabels(), axes.title, axes.xaxis.label)]
    assert_words_stand_apart(figure, [*texts, *figure.legends[0].get_texts(), *figure.texts])
