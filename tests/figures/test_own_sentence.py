"""A sentence of the model's own text: which words are asked, whose weights are shown, and labels that keep apart."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from figure_samples import assert_words_stand_apart, attention, leave_inside

from repro.figures import own_sentence as own
from repro.figures import style
from repro.figures.own_sentence import OwnSentence, farthest, paint_alignment, pieces, pronoun
from repro.results.record import Record
from repro.runs.inside import NAMES_OF_PAPER

Make = Callable[..., Record]
SOURCE: dict[str, Any] = {
    "tokens": ["The", " cat", "s", " saw", " him", " and", " the", " cats", ".", "</s>"],
    "words": ["The", "cats", "saw", "him", "and", "the", "cats", ".", "</s>"],
    "of": [0, 1, 1, 2, 3, 4, 5, 6, 7, 8],
}
TARGET: dict[str, Any] = {
    "tokens": ["Die", " Kat", "zen", ".", "</s>"],
    "words": ["Die", "Katzen", ".", "</s>"],
    "of": [0, 1, 1, 2, 3],
}


def seen(random: np.random.Generator, n_layers: int, source: int = 10, target: int = 5) -> dict[str, Any]:
    shapes = {"encoder": (source, source), "decoder": (target, target), "cross": (target, source)}
    return {kind: attention(random, (n_layers, 2, q), k) for kind, (q, k) in shapes.items()}


def leave(results: Path, record: Record, sentences: dict[str, dict[str, Any]]) -> None:
    """A record, and beside it what it did on sentences, by where they are from."""
    told = [({"about": about, "source": SOURCE, "target": TARGET}, weights) for about, weights in sentences.items()]
    leave_inside(results, record, told)


def test_the_word_that_looks_farther_than_an_even_share_is_asked() -> None:
    words = ["a", "b", "c", "</s>"]
    near, far = np.eye(4), np.eye(4)[[0, 3, 2, 0]]  # b looks two words away; the end symbol three, and is not asked
    assert farthest(np.stack([near, far]), words) == "b"
    assert farthest(np.stack([near, np.eye(4)[[1, 1, 0, 3]]]), words) == "c"
    edge = np.stack([np.full((4, 4), 0.25)] * 2)
    edge[:, 1] = [0.6, 0.0, 0.0, 0.4]  # 1.4 words away, an even share 1; from "a" it is 1.5 away, and so an even share
    assert farthest(edge, words) == "b"


def test_a_pronoun_is_asked_or_else_the_sharpest_word() -> None:
    weights = np.full((2, 9, 9), 1 / 9)
    weights[1, 6] = np.eye(9)[0]  # the second "cats", which is not asked: the first has its name
    weights[1, 2] = [0.6, 0.4, *[0] * 7]
    assert pronoun(weights, SOURCE["words"]) == "him"
    assert pronoun(weights, ["x" if word == "him" else word for word in SOURCE["words"]]) == "saw"


def test_the_first_own_sentence_of_the_lowest_seed_is_shown(a_record: Make, tmp_path: Path) -> None:
    random = np.random.default_rng(3)
    paper, first, second = (seen(random, 3) for _ in range(3))
    leave(tmp_path, a_record("base", 1, dirty=True), {"line 2 of dev": first})
    leave(tmp_path, a_record("base", 2), {NAMES_OF_PAPER["its"]: paper})
    of_third = {NAMES_OF_PAPER["its"]: paper, "line 5 of dev": first, "line 7 of dev": second}
    leave(tmp_path, a_record("base", 3), of_third)
    leave(tmp_path, a_record("base", 4), {"line 9 of dev": second})
    records = [a_record("base", 1, dirty=True), *(a_record("base", seed) for seed in (5, 4, 3, 2))]
    found = own.own_sentence(records, tmp_path)
    assert (found.record.seed, found.told["about"]) == (3, "line 5 of dev")
    np.testing.assert_allclose(found.weights["cross"], first["cross"], atol=0.02)  # weights are kept in a byte
    np.testing.assert_allclose(found.weights["encoder"].sum(-1), 1)
    with pytest.raises(ValueError, match=r"left a sentence of its own text .* Type the command of a run again"):
        own.own_sentence([a_record("base", 2), a_record("base", 5)], tmp_path)


def test_four_pictures_say_whose_and_which(a_record: Make, tmp_path: Path, notes: list[str]) -> None:
    weights = seen(np.random.default_rng(5), 3)
    weights["encoder"][1, 0] = np.eye(10)  # the sharpest head of layer 2, and no other layer
    leave(tmp_path, a_record("base", 4), {"line 5 of dev": weights})
    made = own.draw_own(tmp_path / "figures", [a_record("base", 4)], tmp_path)
    assert [file.stem for file in made] == [
        "figure3_long_distance_own", "figure4_sharp_heads_own", "figure5_different_heads_own", "alignment",
    ]  # fmt: skip
    assert all("line 5 of dev" in note and "seed 4" in note and "0000000000000004" in note for note in notes)
    assert "lowest entropy at “him”: 1 (0.00 nats)" in notes[1]
    assert notes[0].startswith("Encoder layer 2 of 3. All 2 heads, query word")
    assert "9 words in 10 tokens" in notes[0]


def test_a_piece_that_goes_on_with_a_word_begins_with_a_hyphen() -> None:
    assert pieces(TARGET) == ["Die", "Kat", "-zen", ".", "</s>"]


def test_a_row_of_the_alignment_is_a_piece_of_the_translation(a_record: Make) -> None:
    weights = seen(np.random.default_rng(7), 6)
    one = OwnSentence(a_record(), {"about": "line 1 of dev", "source": SOURCE, "target": TARGET}, weights)
    drawn = [axes.images[0].get_array() for axes in _painted(one, 5).axes]
    for image, layer in zip(drawn, (0, 4, 5), strict=True):
        np.testing.assert_allclose(image, weights["cross"][layer].mean(0))


@pytest.mark.parametrize(("n_source", "n_target", "n_layers"), [(18, 40, 1), (30, 30, 6)])
def test_no_two_labels_touch(a_record: Make, n_source: int, n_target: int, n_layers: int) -> None:
    told = [{"tokens": [f" Geschw{n}"] * n, "words": ["x"] * n, "of": [*range(n)]} for n in (n_source, n_target)]
    weights = seen(np.random.default_rng(7), n_layers, n_source, n_target)
    figure = _painted(
        OwnSentence(a_record(), dict(zip(("source", "target"), told, strict=True), about="line 1"), weights), n_target
    )
    texts = [
        text for axes in figure.axes for text in (*axes.get_xticklabels(), *axes.get_yticklabels(), axes.xaxis.label)
    ]
    n_seen = assert_words_stand_apart(figure, [*texts, *figure.texts])
    assert n_seen == n_target + min(n_layers, 3) * (n_source + 1) + 1


def _painted(one: OwnSentence, n_target: int) -> Any:
    with style.house():
        return style.painted((style.WIDTH, own.alignment_height(n_target)), lambda figure: paint_alignment(figure, one))
