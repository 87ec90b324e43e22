"""What heads look at: tokens put together to words by hand, a measured model, a file that can be believed."""

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from repro.data.tokenizer import train_tokenizer
from repro.data.vocabulary import Subwords
from repro.figures import attention_maps as maps
from repro.figures.attention_maps import (
    Map,
    distances,
    entropies,
    merged_to_words,
    most_different,
    sharpest,
    word_of_token,
)
from repro.model.config import Hyper
from repro.model.special_tokens import EOS
from repro.model.transformer import Transformer
from repro.results.record import Record
from repro.training import checkpoint

Make = Callable[..., Record]


def test_keys_are_summed_and_queries_averaged() -> None:
    weights = np.array([[[0.1, 0.2, 0.7], [0.3, 0.4, 0.3], [0.0, 0.5, 0.5]]])
    expected = [[[0.5, 0.5], [0.5, 0.5]]]  # tokens 0 and 1 are one word: the mean of 0.3 and 0.7 in its own corner
    np.testing.assert_allclose(merged_to_words(weights, [0, 0, 1]), expected)


def test_pieces_find_their_words() -> None:
    spelled = {5: "La", 6: "w", 7: " wi", 8: "ll", 9: "."}
    decode = lambda ids: "".join(spelled[id] for id in ids)  # noqa: E731
    words, numbers = word_of_token("Law will.", [5, 6, 7, 8, 9, EOS], decode)
    assert words == ["Law", "will", ".", "</s>"]
    assert numbers == [0, 0, 1, 1, 2, 3]


def test_a_word_without_pieces_is_refused() -> None:
    with pytest.raises(ValueError, match="expected tokens of each word in turn"):
        word_of_token("Law will.", [5, EOS], lambda ids: "Law will.")


def test_entropy_and_distance_by_hand() -> None:
    one, alike = [[1.0, 0.0], [1.0, 0.0]], [[0.5, 0.5], [0.5, 0.5]]
    weights = np.array([one, alike])
    np.testing.assert_allclose(entropies(weights), [[0, 0], [math.log(2)] * 2])
    np.testing.assert_allclose(distances(weights), [[0, 0.5], [0.5, 0]])


def test_the_heads_shown_follow_the_stated_rules() -> None:
    seen = Map(
        about="its",
        words=["but", "its"],
        pieces=[1, 1],
        weights=[[[0.5, 0.5]] * 2] * 3,
        entropies=[[0.1, 0.9], [0.9, 0.3], [0.5, 0.2]],
        distances=[[0.0, 0.2, 0.3], [0.2, 0.0, 0.6], [0.3, 0.6, 0.0]],
    )
    assert sharpest(seen) == [2, 1]
    assert most_different(seen) == [1, 2]


@pytest.fixture
def trained(a_record: Make, tmp_path: Path) -> Callable[[], Record]:
    """A finished run of three layers: its checkpoint, its record and the tokenizer of its text."""

    def make(seed: int = 1) -> Record:
        tokenizer = train_tokenizer(maps.FIGURE_SENTENCES.values(), Subwords("bpe", 300))
        tokenizer.save(tmp_path / "cache/text/tokenizer/tokenizer.json")
        run = a_record("base", seed, tokenizer={"sha256": tokenizer.sha256, "size": tokenizer.size})
        torch.manual_seed(seed)
        weights = Transformer(Hyper(**run.hyper), tokenizer.size).state_dict()
        folder = tmp_path / "runs" / run.run
        state = {"state_dict": {f"model.{name}": tensor for name, tensor in weights.items()}}
        checkpoint.save(checkpoint.path_of(folder / "checkpoints", 20), state, run.run)
        run.save(folder / "record.json")
        return run

    return make


def test_a_measurement_says_whose_it_is_and_what_each_head_of_the_last_layer_but_one_saw(
    trained: Callable[[], Record], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []
    original = Transformer.attention_maps

    def spied(model: Transformer, source: torch.Tensor, decoder_in: torch.Tensor) -> dict[str, torch.Tensor]:
        found = original(model, source, decoder_in)
        asked.append(found["encoder.1.self_attention"])
        return found

    monkeypatch.setattr(Transformer, "attention_maps", spied)
    run = trained()
    measured = maps.measure([run], tmp_path / "runs", tmp_path / "cache")
    assert (measured["layer"], measured["n_layers"], measured["run"]) == (2, 3, run.run)
    making, its = measured["maps"]
    assert making["words"][-3:] == ["difficult", ".", "</s>"]
    assert (len(making["words"]), len(its["words"])) == (27, 26)
    assert np.array(its["weights"]).shape == (2, 26, 26)
    np.testing.assert_allclose(np.array(its["weights"]).sum(-1), 1, atol=3e-4)
    words = np.repeat(np.arange(27), making["pieces"]).tolist()
    np.testing.assert_allclose(merged_to_words(asked[0][0].double().numpy(), words), making["weights"], atol=1e-5)
    assert maps.measure([run], tmp_path / "runs", tmp_path / "cache") == measured
