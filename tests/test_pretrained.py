"""The trained model that comes with this code: it is what its card says, and works before anything was trained."""

import contextlib
import hashlib
import re
from itertools import islice
from pathlib import Path

import pytest

import repro
from repro.cli.commands import main
from repro.corpora.grammar.generate import sentences
from repro.decoding.bleu import sacrebleu_score
from repro.results.places import pretrained
from repro.results.record import load
from repro.runs.export import model_card
from repro.storage.folder_cache import verified

NAME = "laptop-base"
FEW = 100  # sentences that are translated, which takes longer than to score a thousand
FOLDER = pretrained()[NAME]
README = Path(__file__).parents[1] / "README.md"


def test_its_card_is_made_from_its_record_and_names_its_weights() -> None:
    verified(FOLDER)
    digest = hashlib.sha256((FOLDER / "model.safetensors").read_bytes()).hexdigest()
    run, card = load(FOLDER / "record.json"), (FOLDER / "README.md").read_text("utf-8")
    assert card == model_card(run, "safetensors", weights=digest), "export it again: docs/release.md"
    for said in (digest, f"commit {run.stamp['commit']}"[:19], f"seed {run.seed}", f"{run.scores['dev']['bleu']:.2f}"):
        assert said in card
    assert (run.scale, run.row, run.status, run.stamp["dirty"]) == ("laptop", "base", "finished", False)


def test_its_scores_are_those_of_its_weights() -> None:
    model = repro.load(NAME)
    corpus, scores = model.record.corpus, model.record.scores["dev"]
    dev = [*islice(sentences(0), corpus["n_test"], corpus["n_test"] + corpus["n_dev"])]
    sources, targets = [one[0] for one in dev], [one[1] for one in dev]
    assert model.score(sources, targets).nll == pytest.approx(scores["nll"], rel=1e-4)
    of_some = sacrebleu_score(model.translate(sources[:FEW]), targets[:FEW], "de").bleu
    assert of_some == pytest.approx(scores["bleu"], abs=8), "the first sentences of a thousand"


def test_it_translates_and_is_explained_where_nothing_was_trained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    known, strange = next(islice(sentences(0), 5_000, None))[0], "Attention is all you need."
    Path("news.en").write_text(f"{known}\n{strange}\n", "utf-8")
    for words in (("--model", NAME, "news.en"), ("news.en", f"--model={NAME}")):
        assert main(["translate", *words]) == 0
        said = capsys.readouterr()
        assert len(said.out.splitlines()) == 2
        assert "such as 'attention'" in said.err
        assert f"{NAME}: base, base, seed 4, scale laptop, en-de" in said.err
    assert main(["explain", NAME, strange, "--without", "mask"]) == 0
    said = capsys.readouterr()
    assert "What run" in said.out
    assert "never stood in the generated text" in said.err
    assert main(["explain", "--model", NAME, " ".join(["big"] * 99)]) == 2
    assert "expected a sentence of at most 40 tokens, got 99" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["news.en"]


def test_the_example_of_the_readme_is_a_sentence_that_it_knows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = README.read_text("utf-8")
    [example] = re.findall(r"^echo '(.+)' \| repro translate --model laptop-base$", text, re.M)
    assert f'repro explain laptop-base "{example}"' in text
    (tmp_path / "example.en").write_text(f"{example}\n", "utf-8")
    assert main(["translate", "--model", NAME, str(tmp_path / "example.en")]) == 0
    said = capsys.readouterr()
    assert "such as" not in said.err, "all its words are of the text that the model learned from"
    assert len(said.out.split()) > 3


def test_where_there_is_no_run_those_that_come_along_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for words in (["translate", "best"], ["runs"]):
        with contextlib.suppress(SystemExit):  # argparse ends so
            main(words)
        assert "Run an experiment first, or take one that comes with this code: laptop-base." in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["translate", "--model"])
    assert "the following arguments are required: run" in capsys.readouterr().err
