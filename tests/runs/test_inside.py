"""What a run shows of its inside is what its model does: weights, entropies, translation, tree. And whose text."""

import gzip
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from looked_inside import HYPER, LINES, RUN, its_record, looked_at
from torch import Tensor

from repro.decoding.inside import KINDS, by_words
from repro.decoding.search import Search
from repro.decoding.translate import translate
from repro.model.build import build
from repro.model.special_tokens import EOS, PAD
from repro.results.artifacts import inside_file, is_inside_of, read_inside, weights_of
from repro.results.record import Record, path
from repro.runs import outputs
from repro.runs.outputs import keep_beside, seen_inside
from repro.training.checkpoint import weights as averaged_weights
from repro.training.run_spec import path_of


@pytest.fixture(autouse=True)
def _learned(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two updates are enough here for a look at the paper's sentences."""
    monkeypatch.setattr(outputs, "LEARNED", HYPER.steps)


@pytest.fixture
def run(tmp_path: Path) -> Any:
    return looked_at(tmp_path / "run")


def keep(run: Any, record: Record, results: Path) -> None:
    nobody: Any = None  # there are no other test sets to score
    keep_beside(run, record, results, nobody, print)


def test_what_is_kept_is_what_the_model_does(run: Any, tmp_path: Path) -> None:
    record = its_record()
    keep(run, record, tmp_path)
    content, data = read_inside(path(tmp_path, record))
    model, tokenizer = build(None, HYPER, run.prepared.tokenizer.size).eval(), run.prepared.tokenizer
    model.load_state_dict(averaged_weights(path_of(run.folder / "checkpoints", 2), RUN))
    assert [one["about"] for one in content["sentences"][:3]] == ["line 2 of dev", "line 4 of dev", "line 6 of dev"]
    assert {one["about"] for one in content["left_out"]} <= {*outputs.NAMES_OF_PAPER.values()}
    unpacked = weights_of(content, data)
    assert len(unpacked) == len(content["sentences"])
    for one, kept, line in zip(content["sentences"], unpacked, (1, 3, 5), strict=False):
        ids = run.prepared.dev.source.sentence(line)
        side: Any = SimpleNamespace(lengths=[len(ids)], sentence=lambda i, ids=ids: ids)
        [found] = translate(model, side, Search.of(record.settings))
        assert "".join(one["source"]["tokens"][:-1]) == LINES[line]
        assert "".join(token for token in one["target"]["tokens"] if token != "</s>") == tokenizer.decode(found)
        finished = one["target"]["tokens"][-1:] == ["</s>"]
        decoder_in = torch.tensor([[PAD, *found][: len(found) + finished]])
        maps = model.attention_maps(torch.tensor([[int(id) for id in ids]]), decoder_in)
        assert [of["kind"] for of in one["attention"]] == [*KINDS]
        for of in one["attention"]:
            layers = [maps[KINDS[of["kind"]].format(n)][0] for n in range(HYPER.n_layers)]
            expected: Tensor = torch.stack(layers).double()
            np.testing.assert_allclose(kept[of["kind"]], expected, atol=1 / 510 + 1e-9)
            entropy = torch.special.entr(expected).sum(-1).mean(-1)
            np.testing.assert_allclose(of["entropies"], entropy, atol=6e-4)
        assert tree_says(one["tree"]) == (tokenizer.decode(found), finished)


def tree_says(tree: dict[str, Any]) -> tuple[str, bool]:
    """The translation that the answer of a tree spells, and whether it ended."""
    words: list[str] = []
    place = tree["best"]
    while place >= 0:
        parent, piece, *_ = tree["nodes"][place]
        words.insert(0, tree["pieces"][piece])
        place = parent
    return "".join(word for word in words if word != "</s>").removeprefix(" "), words[-1] == "</s>"


def test_it_is_made_once_and_again_for_another_run(run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    monkeypatch.setattr(outputs, "seen_inside", lambda *of: made.append(1) or seen_inside(*of))
    record = its_record()
    place = path(tmp_path, record)
    for _ in range(2):
        keep(run, record, tmp_path)
    first = inside_file(place).read_bytes()
    assert len(made) == 1
    inside_file(place).write_bytes(first[:-9])
    assert not is_inside_of(place, RUN), "damaged"
    keep(run, record, tmp_path)
    assert inside_file(place).read_bytes() == first, "the same bytes"
    assert len(made) == 1, "the folder of the run has it"
    inside_file(run.folder / "record.json").unlink()
    inside_file(place).unlink()
    keep(run, record, tmp_path)
    assert inside_file(place).read_bytes() == first, "the same bytes"
    assert len(made) == 2, "of a run that finished before there was such a file"
    inside_file(run.folder / "record.json").unlink()
    path_of(run.folder / "checkpoints", 2).unlink()
    keep(run, record, tmp_path)
    assert is_inside_of(place, RUN), "what is its own stays when the checkpoint goes"
    keep(run, replace(record, run="00000000000000cd"), tmp_path)
    assert not inside_file(place).exists(), "of another run, and nothing to make it from"


def test_only_generated_text_is_shown_and_the_papers(tmp_path: Path) -> None:
    run = looked_at(tmp_path / "run", corpus="multi30k")
    keep(run, its_record(), tmp_path)
    content, _ = read_inside(path(tmp_path, its_record()))
    told = [*content["sentences"], *content["left_out"]]
    assert sorted(one["about"] for one in told) == sorted(outputs.NAMES_OF_PAPER.values())
    assert b"dog" not in gzip.decompress(inside_file(path(tmp_path, its_record())).read_bytes())


def test_what_has_learned_nothing_is_not_looked_at_on_the_papers_sentences(
    run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outputs, "LEARNED", HYPER.steps + 1)
    keep(run, its_record(), tmp_path)
    content, _ = read_inside(path(tmp_path, its_record()))
    assert [one["about"].split()[0] for one in content["sentences"]] == ["line"] * 3
    assert content["left_out"] == []


def test_a_file_is_as_large_as_it_may_be_and_names_what_it_lacks(
    run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outputs, "LARGEST", 9_000)
    keep(run, its_record(), tmp_path)
    content, _ = read_inside(path(tmp_path, its_record()))
    assert 0 < inside_file(path(tmp_path, its_record())).stat().st_size <= 9_000
    assert content["left_out"]
    assert len(content["sentences"]) + len(content["left_out"]) == 5


def test_words_are_made_of_their_tokens() -> None:
    spelled = {2: "the", 3: " Schr", 4: "ank", 5: ",", 6: " no. 7", 7: "s"}
    tokenizer: Any = SimpleNamespace(decode=lambda ids: "".join(spelled.get(id, "") for id in ids))
    found = by_words([2, 3, 4, 5, EOS], tokenizer)
    assert found == {
        "tokens": ["the", " Schr", "ank", ",", "</s>"],
        "words": ["the", "Schrank", ",", "</s>"],
        "of": [0, 1, 1, 2, 3],
    }
    over = by_words([2, 6, 7], tokenizer)
    assert (over["words"], over["of"]) == (["the", "no. 7s"], [0, 1, 1]), "a token over several words makes one of them"
    assert by_words([EOS], tokenizer) == {"tokens": ["</s>"], "words": ["</s>"], "of": [0]}
