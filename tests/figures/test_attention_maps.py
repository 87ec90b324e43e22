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
from repro.figures.attention_maps import Map, merged_to_words, most_different, sharpest
from repro.model.config import Hyper
from repro.model.transformer import Transformer
from repro.results.record import Record
from repro.training import checkpoint

Make = Callable[..., Record]


def test_keys_are_summed_and_queries_averaged() -> None:
    weights = np.array([[[0.1, 0.2, 0.7], [0.3, 0.4, 0.3], [0.0, 0.5, 0.5]]])
    expected = [[[0.5, 0.5], [0.5, 0.5]]]  # tokens 0 and 1 are one word: the mean of 0.3 and 0.7 in its own corner
    np.testing.assert_allclose(merged_to_words(weights, [0, 0, 1]), expected)


def test_the_heads_shown_follow_the_stated_rules() -> None:
    half, first, last = [0.5, 0.5], [1.0, 0.0], [0.0, 1.0]
    maps = [[first, half], [half, [0.25, 0.75]], [last, first]]
    seen = Map(about="its", words=["but", "its"], pieces=[1, 1], weights=maps)
    assert sharpest(seen) == [(2, 0.0), (1, pytest.approx(2 * math.log(2) - 0.75 * math.log(3), abs=1e-5))]
    # by hand, at "but" and "its": 0 and 1, 0.5 and 0.25; 0 and 2, 1 and 0.5; 1 and 2, 0.5 and 0.75
    assert most_different(seen) == ([0, 2], 0.75)
    assert most_different({**seen, "weights": maps[:1]}) == ([0], 0.0)


@pytest.fixture
def trained(a_record: Make, tmp_path: Path) -> Callable[[], Record]:
    """A finished run of three layers: its checkpoint, its record and the tokenizer of its text."""

    def make(seed: int = 1) -> Record:
        tokenizer = train_tokenizer(maps.FIGURE_SENTENCES.values(), Subwords("bpe", 300))
        run = a_record("base", seed, tokenizer={"sha256": tokenizer.sha256, "size": tokenizer.size})
        torch.manual_seed(seed)
        weights = Transformer(Hyper(**run.hyper), tokenizer.size).state_dict()
        folder = tmp_path / "runs" / run.run
        state = {"state_dict": {f"model.{name}": tensor for name, tensor in weights.items()}}
        checkpoint.save(checkpoint.path_of(folder / "checkpoints", 20), state, run.run)
        tokenizer.save(folder / "tokenizer.json")
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
