"""A part of a test set is found line by line, in whatever order, and scored from the translation of the whole."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import sacrebleu

from repro.corpora.catalogue import open_corpus
from repro.corpora.parallel_text import Parallel
from repro.corpora.subset import subset_of
from repro.runs.execution import Execution
from repro.runs.task import Translation
from repro.training.trial import Trial

WHOLE = [("one dog", "ein Hund"), ("two  cats", "zwei Katzen"), ("one dog", "ein Hund!"), ("a bird", "ein Vogel")]


def parallel(folder: Path, name: str, pairs: list[tuple[str, str]]) -> Parallel:
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{name}.{language}" for language in ("en", "de")]
    for path, lines in zip(paths, zip(*pairs, strict=True), strict=True):
        path.write_bytes("".join(f"{line}\n" for line in lines).encode())
    return Parallel(paths[0], paths[1])


def test_lines_are_found_in_whatever_order(tmp_path: Path) -> None:
    whole = parallel(tmp_path, "whole", WHOLE)
    part = parallel(tmp_path, "part", [("a bird ", "der Vogel"), ("one dog", "ein Hund!"), ("two cats", "zwei Katzen")])
    found = subset_of("part", part, whole)
    assert found.places == (3, 0, 1)
    assert found.references == ("der Vogel", "ein Hund!", "zwei Katzen")  # its own, should they differ
    assert found.name == "part"
    other = subset_of("part", parallel(tmp_path / "other", "part", [("a bird", "der Vogel")]), whole)
    assert found.sha256 != other.sha256


def test_a_line_that_is_not_in_the_whole_is_named(tmp_path: Path) -> None:
    part = parallel(tmp_path, "part", [("a bird", "ein Vogel"), ("a fish", "ein Fisch")])
    with pytest.raises(ValueError, match=r"part\.en, line 2 is not in .*whole\.en; expected each line of x to be one"):
        subset_of("x", part, parallel(tmp_path, "whole", WHOLE))


def news(folder: Path, *names: str) -> Path:
    """A folder like that of WMT 2014, with the test sets of these names."""
    parallel(folder, "train", WHOLE)
    parallel(folder, "newstest2013", WHOLE[:1])
    tests = {"newstest2014_full": [*WHOLE[1:], ("a horse", "ein Pferd")], "newstest2014": [WHOLE[3], WHOLE[1]]}
    for name in names:
        parallel(folder, name, tests[name])
    return folder


def test_wmt14_has_its_whole_test_set_and_the_part_that_the_task_scored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("repro.corpora.catalogue.SHA256", {})

    def opened(*names: str) -> Any:
        folder = news(tmp_path / "-".join(names), *names)
        return open_corpus("wmt14", "en-de", data_dir=folder, cache=tmp_path / "cache")

    both = opened("newstest2014_full", "newstest2014")
    assert len(list(both.test.pairs())) == 4
    assert (both.subset.name, both.subset.places) == ("newstest2014", (2, 0))
    whole, part = opened("newstest2014_full"), opened("newstest2014")
    assert (whole.subset, part.subset) == (None, None)
    assert len(list(part.test.pairs())) == 2  # what was there before there were two
    assert both.sha256 == whole.sha256 != part.sha256  # the part decides nothing of how a model is trained


def test_the_part_is_scored_from_the_lines_of_its_own() -> None:
    hypotheses = ["zwei Katzen schlafen hier", "falsch", "ein Vogel singt dort oben", "auch falsch"]
    subset = SimpleNamespace(
        name="newstest2014", places=(2, 0), references=("ein Vogel singt dort oben", "zwei Katzen schlafen dort")
    )
    trial = Trial.__new__(Trial)
    for name, value in {"task": Translation("en-de"), "in_tokens": False}.items():
        object.__setattr__(trial, name, value)
    run = SimpleNamespace(corpus=SimpleNamespace(subset=subset), trial=trial)
    found = Execution._score_subset(run, hypotheses)  # type: ignore[arg-type]
    chosen = ["ein Vogel singt dort oben", "zwei Katzen schlafen hier"]
    assert found is not None
    assert (found["name"], found["n"]) == ("newstest2014", 2)
    assert found["bleu"] == sacrebleu.corpus_bleu(chosen, [list(subset.references)]).score
    assert found["bleu_published"] is not None
    run.corpus.subset = None
    assert Execution._score_subset(run, hypotheses) is None  # type: ignore[arg-type]


def test_the_real_test_set_and_its_part(real_text: Path, tmp_path: Path) -> None:
    folder = real_text / "wmt_ende"
    whole = Parallel(folder / "newstest2014_full.en.gz", folder / "newstest2014_full.de.gz")
    part = Parallel(folder / "newstest2014.en.gz", folder / "newstest2014.de.gz")
    found = subset_of("newstest2014", part, whole)
    references = [target for _, target in whole.pairs()]
    assert (len(references), len(found.places), len(set(found.places))) == (3_003, 2_737, 2_737)
    assert list(found.places) != sorted(found.places)
    differ = [i for i, place in enumerate(found.places) if references[place] != found.references[i]]
    assert len(differ) <= 2  # two source lines stand twice in the whole, each with another translation
