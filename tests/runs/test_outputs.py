"""Translations stand beside their record, are those that were scored, and are scored again where their text is here."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from kept_sentences import REFERENCES, hypotheses, with_scores
from paper_runs import paper_run

from repro.corpora.catalogue import GrammarSizes, open_corpus
from repro.results import artifacts
from repro.results.artifacts import are_of, own_file
from repro.results.record import Record, path
from repro.results.sentences import (
    Translated,
    faults,
    read_hypotheses,
    read_places,
    sha256_of,
    write_sentences,
)
from repro.runs import outputs
from repro.runs.outputs import at_hand, keep_outputs, rescored

LENGTHS = {"dev": [7, 5, 3], "test": [11, 2]}
SIZES = GrammarSizes(n_train=30, n_dev=3, n_test=2)


def a_run(folder: Path, seed: int = 1) -> Any:
    """As much of a run as is asked for, its translations in its folder."""
    folder.mkdir(exist_ok=True)
    for split in REFERENCES:
        (folder / f"{split}.hyp").write_text("".join(f"{line}\n" for line in hypotheses(seed, split)), "utf-8")
    prepared = {
        split: SimpleNamespace(references=lines, source=SimpleNamespace(lengths=np.array(LENGTHS[split], np.uint16)))
        for split, lines in REFERENCES.items()
    }
    return SimpleNamespace(
        folder=folder, prepared=SimpleNamespace(**prepared), corpus=SimpleNamespace(name="folder", in_tokens=False)
    )


def record(seed: int = 1, **other: Any) -> Record:
    return with_scores(paper_run("h=1", "table3_A", seed=seed, run=f"{seed:016x}", scale="lab", **other))


def test_what_a_run_translated_stands_beside_its_record(tmp_path: Path) -> None:
    keep_outputs(a_run(tmp_path / "run"), record(), tmp_path)
    assert not list(faults(tmp_path, record()))
    assert read_hypotheses(path(tmp_path, record()), "test") == hypotheses(1, "test")
    places = read_places(tmp_path, record(), "dev")
    assert places is not None
    assert places.source == LENGTHS["dev"]
    assert [len(third.hypothesis) for third in places.thirds] == [3] * 3
    assert read_places(tmp_path, record(), "test") is None


def test_places_of_another_run_are_refused(tmp_path: Path) -> None:
    keep_outputs(a_run(tmp_path / "run"), record(), tmp_path)
    with pytest.raises(ValueError, match="expected dev of run 0{14}ff, got that of run 0{15}1"):
        read_places(tmp_path, replace(record(), run=f"{255:016x}"), "dev")


def test_what_stands_there_is_not_made_again_unless_it_is_of_another_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = []
    monkeypatch.setattr(outputs, "Translated", lambda *of, **how: made.append(1) or Translated(*of, **how))
    for _ in range(2):
        keep_outputs(a_run(tmp_path / "run"), record(), tmp_path)
    assert len(made) == 2, "dev and test, once"
    other = replace(record(2), seed=1)  # the row again, of other code
    keep_outputs(a_run(tmp_path / "run", seed=2), other, tmp_path)
    assert len(made) == 4
    assert are_of(path(tmp_path, other), other.run)
    own_file(path(tmp_path, other), "dev").write_bytes(b"damaged")
    keep_outputs(a_run(tmp_path / "run", seed=2), other, tmp_path)
    assert not list(faults(tmp_path, other))


@pytest.mark.parametrize("why", ["diverged", "no translations", "another task"])
def test_where_a_run_has_none_those_of_another_do_not_stay(tmp_path: Path, why: str) -> None:
    keep_outputs(a_run(tmp_path / "run"), record(), tmp_path)
    run, now = a_run(tmp_path / "run"), record()
    if why == "diverged":
        nothing: Any = {split: dict.fromkeys(now.scores[split]) for split in ("dev", "test")}  # type: ignore[literal-required]
        now = replace(now, status="diverged", scores=nothing)
    elif why == "no translations":
        (tmp_path / "run/test.hyp").unlink()
    else:
        own: Any = {"nll": 0.0, "ppl": 1.0, "exact": 1.0, "exact_signature": "s"}
        other: Any = {"name": "another", "scores": ["exact"], "search": {}}
        now = replace(now, task=other, scores={"dev": own, "test": own})
    keep_outputs(run, now, tmp_path)
    assert artifacts.texts(path(tmp_path, now)) == []


def on_grammar(cache: Path, results: Path, shift: int = 0) -> Record:
    """A run that translated the embedded corpus with its own references, as if `shift` lines further down."""
    corpus = open_corpus("grammar", "en-de", data_dir=None, cache=cache, sizes=SIZES)
    splits = {}
    for split, text in (("dev", corpus.dev), ("test", corpus.test)):
        lines = [target for _, target in text.pairs()]
        splits[split] = Translated(lines[shift:] + lines[:shift], lines, "en-de", in_tokens=False)
    of = {"name": "grammar", "sha256": corpus.sha256, "n_train": 28, "dropped": {"too long": 2}}
    made = record(corpus={**paper_run().corpus, **of})
    made = with_scores(made, splits)
    write_sentences(path(results, made), made.run, splits)
    return made


def test_text_that_is_generated_is_at_hand_and_scored_again(tmp_path: Path) -> None:
    made = on_grammar(tmp_path / "cache", tmp_path)
    assert made.score("dev", "bleu") == pytest.approx(100)
    assert not list(faults(tmp_path, made))
    assert rescored(made, tmp_path, tmp_path / "cache") is None


def test_counts_that_fit_the_record_but_not_the_text_are_found(tmp_path: Path) -> None:
    whole = on_grammar(tmp_path / "cache", tmp_path)
    on_grammar(tmp_path / "cache", tmp_path / "other", shift=1)
    # translations with counts and scores of others, all of it signed
    shifted = read_hypotheses(path(tmp_path / "other", whole), "dev")
    place = path(tmp_path, whole)
    kept = artifacts.read(place, "dev")
    assert kept is not None
    about = {**kept.about, "hypotheses": sha256_of(shifted)}
    artifacts.write(place, "dev", artifacts.Artifact(about, {**kept.columns, "hypothesis": shifted}))
    assert not list(faults(tmp_path, whole))
    said = rescored(whole, tmp_path, tmp_path / "cache")
    assert said is not None
    assert said.startswith("its translations of dev score bleu ")
    assert said.endswith(f"but the record says {whole.score('dev', 'bleu')}")


@pytest.mark.parametrize("corpus", [{"sha256": "ab"}, {"name": "folder"}, {"name": "gone"}, {"name": "wmt14"}])
def test_text_that_is_not_at_hand_is_not_scored_again(
    tmp_path: Path, corpus: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REPRO_DATA", str(tmp_path / "nowhere"))
    made = on_grammar(tmp_path / "cache", tmp_path)
    assert at_hand(made, tmp_path / "cache") is not None
    elsewhere: Any = {**made.corpus, **corpus}
    assert at_hand(replace(made, corpus=elsewhere), tmp_path / "cache") is None
    assert rescored(replace(made, corpus=elsewhere), tmp_path, tmp_path / "cache") is None
