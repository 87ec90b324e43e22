"""repro runs and repro compare: which runs there are, and how two of them differ."""

import os
from pathlib import Path
from typing import Any

import pytest
from figures.conftest import record
from typed import typed

from repro.corpora.catalogue import GrammarSizes, open_corpus
from repro.results.record import Record

Said = pytest.CaptureFixture[str]

SIZES = GrammarSizes(n_train=5, n_dev=40, n_test=2)


@pytest.fixture(scope="module")
def dev(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, list[tuple[str, str]]]:
    """A cache with generated text, its SHA-256, and the pairs of its dev."""
    cache = tmp_path_factory.mktemp("cache")
    corpus = open_corpus("grammar", "en-de", data_dir=None, cache=cache, sizes=SIZES)
    return cache, corpus.sha256, list(corpus.dev.pairs())


def saved(runs: Path, made: Record, lines: list[str], when: int) -> None:
    folder = runs / made.run
    made.save(folder / "record.json")
    (folder / "dev.hyp").write_text("".join(f"{line}\n" for line in lines), "utf-8")
    os.utime(folder / "record.json", (when, when))


def made(row: str, seed: int, sha256: str, **other: Any) -> Record:
    corpus = {"name": "grammar", "sha256": sha256, "n_train": 5, "n_dev": 40, "n_test": 2, "dropped": {}}
    return record(row, seed, corpus=corpus, **other)


@pytest.fixture
def runs(tmp_path: Path, dev: tuple[Path, str, list[tuple[str, str]]]) -> Path:
    """The base translates all of dev; h=1 leaves the last word of one sentence out."""
    _, sha256, pairs = dev
    right = [target for _, target in pairs]
    ours = {"step": [10, 20], "nll": [4.0, 3.0]}
    theirs = {"step": [10, 15, 20], "nll": [4.5, 3.5, 2.5]}
    base = made("base", 1, sha256, bleu=100.0, curves={"train": ours, "dev": ours})
    h1 = made("h=1", 2, sha256, bleu=99.0, hyper={**base.hyper, "n_heads": 1}, curves={"train": theirs, "dev": theirs})
    saved(tmp_path, base, right, 1_000)
    saved(tmp_path, h1, [" ".join(right[0].split()[:-1]), *right[1:]], 2_000)
    return tmp_path


def test_runs_are_listed_the_newest_first(runs: Path, capsys: Said) -> None:
    (runs / "0003").mkdir()
    for folder in runs.iterdir():
        (folder / "run.json").touch()
    shown = typed(capsys, "runs", f"--runs-dir={runs}").split("\n")
    assert shown[0] == "laptop: grammar en-de, 5 pairs, BLEU of dev:"
    assert [line.split()[:5] for line in shown[1:4]] == [
        ["run", "table", "row", "seed", "dev"],
        ["00000000", "table3_A", "h=1", "2", "99.0"],
        ["00000000", "base", "base", "1", "100.0"],
    ]
    assert "1 more have not ended" in "\n".join(shown)
    assert max(map(len, shown[:4])) <= 80


def test_where_no_run_ended_that_is_said(tmp_path: Path, capsys: Said) -> None:
    assert "expected runs that ended, found none" in typed(capsys, "runs", f"--runs-dir={tmp_path}", code=2)


def test_two_runs_are_compared(runs: Path, dev: tuple[Path, str, list[tuple[str, str]]], capsys: Said) -> None:
    cache, _, pairs = dev
    shown = typed(capsys, "compare", "base", "latest", f"--runs-dir={runs}", f"--cache-dir={cache}")
    settings = shown[shown.index("Settings that differ:") : shown.index("Scores:")]
    assert [line.split() for line in settings.split("\n")[2:-2]] == [["seed", "1", "2"], ["n_heads", "2", "1"]]
    assert ["dev", "BLEU", "100.0", "99.0", "−1.0"] in [line.split() for line in shown.split("\n")]
    curves = shown[shown.index("Loss on dev") : shown.index("BLEU of dev")]
    lines = [line.split() for line in curves.split("\n")[1:-2]]
    assert lines == [["10", "4.000", "4.500", "+0.500"], ["20", "3.000", "2.500", "−0.500"]]
    assert "95 % interval over 40 sentences" in shown
    worst = shown[shown.index("where A is ahead by most") :]
    assert worst.index(pairs[0][0]) < worst.index("  A ") < worst.index("  B ")


def test_runs_on_other_text_are_compared_without_sentences(runs: Path, capsys: Said, tmp_path: Path) -> None:
    saved(runs, made("h=4", 3, "ee" * 32, bleu=10.0), [], 3_000)
    shown = typed(capsys, "compare", "base", "latest", f"--runs-dir={runs}", f"--cache-dir={tmp_path}")
    assert "corpus" in shown
    assert "Sentences are not compared" in shown


def test_one_run_twice_is_refused(runs: Path, capsys: Said) -> None:
    said = typed(capsys, "compare", "base", "best", f"--runs-dir={runs}", code=2)
    assert "expected two runs, got 0000000000000001 twice" in said
